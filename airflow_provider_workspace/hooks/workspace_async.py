"""The hook for the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, Concatenate, TypeVar, cast

import greenback
from typing_extensions import ParamSpec

from airflow_provider_workspace.client.client import WorkspaceClient
from airflow_provider_workspace.client.loop import LoopBackend
from airflow_provider_workspace.client.settings import read_connection
from airflow_provider_workspace.errors import WorkspaceConfigError
from airflow_provider_workspace.hooks.workspace import WorkspaceConnectionHook, WorkspaceHook
from airflow_provider_workspace.version_compat import aget_connection, amask_secret

if TYPE_CHECKING:
    from typing_extensions import Self

    from airflow_provider_workspace.api.models import Page
    from airflow_provider_workspace.api.operation import Operation

P = ParamSpec("P")
T = TypeVar("T")


class _LoopHook(WorkspaceHook):
    """The hook whose methods the asynchronous hook runs, with a client that was opened before."""

    def __init__(self, client: WorkspaceClient, workspace_conn_id: str, **defaults: Any) -> None:
        super().__init__(workspace_conn_id, **defaults)
        self._client = client
        self._process = os.getpid()
        self._prepare(client)

    def _rows(self, operation: Operation[Page[T]]) -> Iterator[T]:
        """Return the rows of each page; :func:`_listed` takes them apart."""
        return cast("Iterator[T]", self.client.pages(operation))


def _called(
    method: Callable[Concatenate[WorkspaceHook, P], T],
) -> Callable[Concatenate[WorkspaceAsyncHook, P], Coroutine[Any, Any, T]]:
    """Return a method of the hook as a coroutine function."""

    async def call(self: WorkspaceAsyncHook, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await greenback.with_portal_run_sync(method, await self.opened(), *args, **kwargs)

    update_wrapper(call, method)
    return call


def _listed(
    method: Callable[Concatenate[WorkspaceHook, P], Iterator[T]],
) -> Callable[Concatenate[WorkspaceAsyncHook, P], AsyncIterator[T]]:
    """Return a method of the hook that lists as an asynchronous generator."""

    async def rows(self: WorkspaceAsyncHook, /, *args: P.args, **kwargs: P.kwargs) -> AsyncIterator[T]:
        hook = await self.opened()
        pages = cast("Iterator[list[T]]", method(hook, *args, **kwargs))
        while (page := await greenback.with_portal_run_sync(lambda: next(pages, None))) is not None:
            for row in page:
                yield row

    update_wrapper(rows, method)
    return rows


class WorkspaceAsyncHook(WorkspaceConnectionHook):
    """
    Interact with the workspace administration service, for the event loop. Close the hook, or use it in ``async with``.

    It has the arguments and methods of :class:`~airflow_provider_workspace.hooks.workspace.WorkspaceHook`: await the
    methods, and iterate over those that list with ``async for``. Cancelling a call ends that call only.

    :ivar max_concurrency: concurrent requests, if set before the first; by default those of the connection
    """

    max_concurrency: int | None = None
    _hook: WorkspaceHook | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _opening: asyncio.Lock

    async def __aenter__(self) -> Self:
        """Use the hook in an ``async with`` statement."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections to the service."""
        await self.aclose()

    async def opened(self) -> WorkspaceHook:
        """Return the hook whose methods to run; the connection is read once in each event loop."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # such as in the second of two calls of asyncio.run
            self._loop = loop
            self._hook = None
            self._opening = asyncio.Lock()
        if self._hook is None:
            async with self._opening:
                if self._hook is None:
                    self._hook = await self._open()
        return self._hook

    async def _open(self) -> WorkspaceHook:
        try:
            settings = read_connection(await aget_connection(self.workspace_conn_id), self.workspace_conn_id)
            if self.max_concurrency is not None:
                settings = settings.model_copy(update={"max_concurrency": self.max_concurrency})
            client = WorkspaceClient(
                settings, mask=lambda secret: greenback.await_(amask_secret(secret)), backend=LoopBackend(settings)
            )
        except WorkspaceConfigError as error:
            raise error.with_traceback(None) from None  # the frames below contain the password
        for secret in settings.secrets:
            await amask_secret(secret)
        return _LoopHook(
            client, self.workspace_conn_id, organization_id=self.organization_id, project_id=self.project_id
        )

    async def client(self) -> WorkspaceClient:
        """Return the client; see :meth:`run`."""
        return (await self.opened()).client

    async def run(self, function: Callable[Concatenate[WorkspaceClient, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function with the client, and with arguments; whenever it waits, other tasks of the loop run."""
        return await greenback.with_portal_run_sync(function, await self.client(), *args, **kwargs)

    async def aclose(self) -> None:
        """Close the connections to the service."""
        if self._hook is not None and self._loop is asyncio.get_running_loop():
            await greenback.with_portal_run_sync(self._hook.close)
        self._hook = None

    send = _called(WorkspaceHook.send)
    organization_or_default = _called(WorkspaceHook.organization_or_default)
    project_or_default = _called(WorkspaceHook.project_or_default)

    # Dashboards

    create_dashboard = _called(WorkspaceHook.create_dashboard)
    get_dashboard = _called(WorkspaceHook.get_dashboard)
    update_dashboard = _called(WorkspaceHook.update_dashboard)
    delete_dashboard = _called(WorkspaceHook.delete_dashboard)
    get_dashboard_access_controls = _called(WorkspaceHook.get_dashboard_access_controls)
    list_dashboard_collaborators = _listed(WorkspaceHook.list_dashboard_collaborators)
    add_dashboard_collaborator = _called(WorkspaceHook.add_dashboard_collaborator)
    remove_dashboard_collaborator = _called(WorkspaceHook.remove_dashboard_collaborator)
    get_dashboard_sharing = _called(WorkspaceHook.get_dashboard_sharing)

    # Batch exports

    pause_batch_export = _called(WorkspaceHook.pause_batch_export)
    unpause_batch_export = _called(WorkspaceHook.unpause_batch_export)

    # Domains

    list_domains = _listed(WorkspaceHook.list_domains)
    create_domain = _called(WorkspaceHook.create_domain)
    get_domain = _called(WorkspaceHook.get_domain)
    update_domain = _called(WorkspaceHook.update_domain)
    delete_domain = _called(WorkspaceHook.delete_domain)
    verify_domain = _called(WorkspaceHook.verify_domain)

    # Invites

    list_invites = _listed(WorkspaceHook.list_invites)
    create_invite = _called(WorkspaceHook.create_invite)
    delete_invite = _called(WorkspaceHook.delete_invite)
    create_invites = _called(WorkspaceHook.create_invites)

    # Members

    list_members = _listed(WorkspaceHook.list_members)
    update_member = _called(WorkspaceHook.update_member)
    delete_member = _called(WorkspaceHook.delete_member)

    # Projects

    list_projects = _listed(WorkspaceHook.list_projects)
    create_project = _called(WorkspaceHook.create_project)
    get_project = _called(WorkspaceHook.get_project)
