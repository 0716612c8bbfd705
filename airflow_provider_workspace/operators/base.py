"""What all operators share: the hook, errors that no retry can mend, results without secrets."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from airflow.sdk import BaseOperator
from airflow.sdk.log import mask_secret

from airflow_provider_workspace.airflow_version import AirflowFailException, has_own_retry_policy, usual_retry_policy
from airflow_provider_workspace.arguments import check_ids, choice_of, fields_of, names_of, whole_of
from airflow_provider_workspace.errors import (
    WorkspaceError,
    WorkspaceInputError,
    WorkspaceNotFoundError,
    WorkspaceOutcomeUnknownError,
)
from airflow_provider_workspace.links import WorkspaceLink
from airflow_provider_workspace.planned import WorkspaceWritePlannedError
from airflow_provider_workspace.secret_names import is_secret, secrets_under

if TYPE_CHECKING:
    from airflow.sdk import BaseOperatorLink, Context

    from airflow_provider_workspace.api.models import Resource
    from airflow_provider_workspace.hooks.workspace import WorkspaceHook
    from airflow_provider_workspace.task_memory import TaskMemory

R = TypeVar("R")

log = logging.getLogger(__name__)

# How often a create is sent whose answers are lost and whose effect cannot be found.
MOST_CREATES = 3
# When to look for the effect of a create whose answer was lost: seconds after the look before.
SETTLE_SECONDS = (0.5, 5.0)
# What a task remembers that has begun to invite many people.
INVITING = "invites"


class WorkspaceOperator(BaseOperator):
    """
    Base of the operators: asks the service once and returns plain JSON.

    Where the result is a record with an ``id``, the id is an XCom of its own, so that ``task.output["id"]`` works. An
    operator that creates one record pushes the XCom ``created``: whether this try made it, or found it there.

    An error that the same request would meet again (wrong input, a key without the scope, an unknown id) fails the
    task at once; every other error leaves it to the task's own retries.

    :param workspace_conn_id: connection to the service
    :param return_secrets: whether the result keeps the fields that hold secrets, such as a project's ``api_token``.
        XCom is neither masked nor encrypted: ask for them only where nobody else can read it
    """

    template_fields: Collection[str] = ("workspace_conn_id",)
    operator_extra_links: Collection[BaseOperatorLink] = (WorkspaceLink(),)
    workspace_url: str = ""
    created: bool | None = None

    def __init__(
        self, *, workspace_conn_id: str = "workspace_default", return_secrets: bool = False, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        if getattr(self, "retry_policy", None) is None:
            self.retry_policy = usual_retry_policy()
        self.workspace_conn_id = workspace_conn_id
        self.return_secrets = return_secrets

    def __setattr__(self, key: str, value: Any) -> None:
        """Mask a secret as soon as it is an argument: Airflow shows rendered fields before the task runs."""
        super().__setattr__(key, value)
        if key in self.template_fields:
            for secret in secrets_under(key, value):
                mask_secret(secret)

    @property
    def hook(self) -> WorkspaceHook:
        """A new hook for the connection."""
        from airflow_provider_workspace.hooks.workspace import WorkspaceHook

        return WorkspaceHook(self.workspace_conn_id)

    def execute(self, context: Context) -> Any:
        """Ask the service, and return what it answered as plain JSON."""
        try:
            self.check_rendered()
            with closing(self.hook) as hook:
                result = self.run_work(hook, context)
        except WorkspaceError as error:
            if error.permanent and not has_own_retry_policy(self):
                msg = f"{type(error).__name__}: {error}"
                raise AirflowFailException(msg) from error
            raise
        if isinstance(result, dict) and "id" in result and "ti" in context and self.do_xcom_push:
            context["ti"].xcom_push(key="id", value=result["id"])
            if self.created is not None:
                context["ti"].xcom_push(key="created", value=self.created)
        return result

    def run_work(self, hook: WorkspaceHook, context: Context) -> Any:
        """Do the work; operators that write may only plan it."""
        return self.work(hook, context)

    def work(self, hook: WorkspaceHook, context: Context) -> Any:
        """Do what the operator is for; each operator has its own."""
        raise NotImplementedError

    def check_rendered(self) -> None:
        """
        Refuse an id or address whose template found nothing, and what can be neither.

        :raises WorkspaceInputError: naming the field
        """
        check_ids(self, self.template_fields)

    def show(self, hook: WorkspaceHook, kind: str, **ids: object) -> None:
        """
        Set where the task's link leads.

        :param kind: one of :data:`~airflow_provider_workspace.client.addresses.PATHS`
        """
        from airflow_provider_workspace.client.addresses import address_of

        self.workspace_url = address_of(hook.client.settings, kind, ids)

    def plain(self, resource: Resource) -> dict[str, Any]:
        """Turn an answer into plain JSON, without secrets unless they are asked for."""
        return resource.to_dict(return_secrets=self.return_secrets)


class WorkspaceWriteOperator(WorkspaceOperator):
    """
    Base of the operators that write.

    :param dry_run: only plan: decide as always, but send nothing that writes. The plan is the result, and in the log:
        ``action`` (``create``, ``change``, ``remove`` or ``skip``) and ``why``; ``operation``, ``request`` and
        ``fields`` of what would be sent, or what was ``found`` instead. Operators for many people have reports
        of their own
    """

    plans_itself = False

    def __init__(self, *, dry_run: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Airflow's operators have a method dry_run.
        self.plan_only = dry_run

    @property
    def hook(self) -> WorkspaceHook:
        """A new hook for the connection; one that does not write if only a plan is wanted."""
        if not self.plan_only:
            return super().hook
        from airflow_provider_workspace.hooks.planning import WorkspacePlanningHook

        return WorkspacePlanningHook(self.workspace_conn_id)

    def run_work(self, hook: WorkspaceHook, context: Context) -> Any:
        """Do the work, up to the first write if only a plan is wanted."""
        if not self.plan_only or self.plans_itself:
            return self.work(hook, context)
        try:
            found = self.work(hook, context)
        except WorkspaceWritePlannedError as planned:
            plan = self.plan_of(planned)
        else:
            plan = {"action": "skip", "why": "it is there", "found": found}
            plan |= {"id": found["id"]} if "id" in found else {}
        self.log.info("Plan: %s, for %s. Nothing was sent. %s", plan["action"], plan["why"], plan.get("request", ""))
        return {"dry_run": True, **plan}

    def memory(self, context: Context) -> TaskMemory:
        """Return what this task remembers from try to try."""
        from airflow_provider_workspace.task_memory import TaskMemory

        return TaskMemory(context, plan_only=self.plan_only)

    def settle(self, hook: WorkspaceHook, context: Context) -> None:
        """Before many people are invited: wait until the lists show whom an earlier try may just have invited."""
        memory = self.memory(context)
        if memory.may_have_begun(INVITING):
            self.log.info("An earlier try may have invited people a moment ago: waiting until the lists show them.")
            hook.client.settle()
        memory.write(INVITING)

    def plan_of(self, planned: WorkspaceWritePlannedError) -> dict[str, Any]:
        """Describe the write that was not sent."""
        fields = planned.fields or {}
        actions = {"Create": "create", "Add": "create", "Delete": "remove", "Remove": "remove"}
        action = next((action for verb, action in actions.items() if planned.operation.startswith(verb)), "change")
        return {
            "action": "remove" if fields == {"deleted": True} else action,
            "why": planned.why,
            "operation": planned.operation,
            "request": planned.request,
            "fields": {name: value for name, value in fields.items() if self.return_secrets or not is_secret(name)},
        }


class WorkspaceListOperator(WorkspaceOperator):
    """
    Base of the operators that list: reads page after page and keeps only what is asked for.

    :param where: keep rows whose fields have these values; a dot leads into a nested object, a list holds
        alternatives: ``{"is_expired": True, "user.email": ["a@example.com", "b@example.com"]}``
    :param fields: fields to keep of each row, with dots as in ``where``; by default all
    :param count_only: return only how many rows there are
    :param max_rows: most rows to return. XCom is no place for long lists: where there are more, the task fails and
        says so, for a list that is silently cut would be taken for the whole
    """

    template_fields: Collection[str] = ("workspace_conn_id", "where", "fields")

    def __init__(
        self,
        *,
        where: Mapping[str, Any] | None = None,
        fields: Sequence[str] | None = None,
        count_only: bool = False,
        max_rows: int = 1000,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.where = where
        self.fields = fields
        self.count_only = count_only
        self.max_rows = max_rows

    def rows(self, hook: WorkspaceHook) -> Iterable[Resource]:
        """Ask for the list; each operator has its own."""
        raise NotImplementedError

    def work(self, hook: WorkspaceHook, context: Context) -> list[dict[str, Any]] | int:  # noqa: ARG002
        """Read the list to its end, one page at a time."""
        where = fields_of("where", self.where)
        fields = names_of("fields", self.fields)
        most = whole_of("max_rows", self.max_rows)
        kept: list[dict[str, Any]] = []
        count = 0
        for resource in self.rows(hook):
            row = self.plain(resource)
            if not all(matches(value_at(row, path), wanted) for path, wanted in where.items()):
                continue
            count += 1
            if self.count_only:
                continue
            if count > most:
                msg = (
                    f"The list has more than max_rows={most} rows. Narrow it with where=…, take only what you "
                    "need with fields=…, ask for count_only=True, or raise max_rows."
                )
                raise AirflowFailException(msg)
            kept.append({path: value_at(row, path) for path in fields} if fields else row)
        self.log.info("%d rows", count)
        return count if self.count_only else kept


def value_at(row: Mapping[str, Any], path: str) -> Any:
    """Return the value at a path with dots; ``None`` where there is nothing."""
    value: Any = row
    for part in path.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def matches(value: Any, wanted: Any) -> bool:
    """Tell whether a value is the wanted one, or one of those."""
    return any(value == item for item in wanted) if isinstance(wanted, list | tuple | set) else value == wanted


def given(**fields: Any) -> Any:
    """Return the fields that are not ``None``: what an author leaves out is not sent."""
    return {name: value for name, value in fields.items() if value is not None}


def create_once(
    what: str,
    *,
    find: Callable[[], R | None],
    create: Callable[[], R],
    if_exists: str,
    memory: TaskMemory,
    sleep: Callable[[float], None] = time.sleep,
) -> tuple[R, bool]:
    """
    Create what is not there yet, and look for it where the answer to the create was lost.

    :param what: what is created, for messages, such as ``project 'Sales'``
    :param find: reads whether it is there; ``None`` if not
    :param create: sends the create
    :param if_exists: ``return`` what is there, or ``fail``
    :param memory: what the task remembers from try to try; what an earlier try made is no reason to fail
    :return: the record, and whether this task created it
    :raises WorkspaceInputError: if it is there and ``if_exists`` is ``fail``; nothing was sent
    :raises WorkspaceOutcomeUnknownError: if answer after answer was lost and nothing can be found
    """
    choice_of("if_exists", if_exists, ("return", "fail"))
    found = find()
    if found is None and memory.may_have_begun(what):
        found = find_later(find, sleep)
    if found is not None and memory.read() == what:
        log.info("An earlier try of this task created the %s.", what)
        return found, True
    if found is not None:
        if if_exists == "fail":
            msg = f"There is a {what} already. Nothing was sent; if_exists='return' would take it as it is."
            raise WorkspaceInputError(msg)
        log.info("There is a %s already: nothing was sent.", what)
        return found, False
    memory.write(what)
    for attempt in range(1, MOST_CREATES + 1):
        try:
            made = create()
        except WorkspaceWritePlannedError as planned:  # noqa: PERF203 - three rounds at most
            planned.why = f"there is no {what}"
            raise
        except WorkspaceOutcomeUnknownError as error:
            found = find_later(find, sleep)
            if found is not None:
                log.warning("The answer was lost, but the %s is there: taken as made by this task.", what)
                return found, True
            if attempt == MOST_CREATES:
                raise
            log.warning("%s It is not there, so it is sent again.", error)
        except WorkspaceError as error:
            memory.forget()  # refused or not sent
            found = find_later(find, sleep) if if_exists == "return" and is_taken(error) else None
            if found is None:
                raise
            log.info("Somebody else created the %s at the same time: nothing was made here.", what)
            return found, False
        else:
            log.info("Created the %s.", what)
            return made, True
    raise AssertionError(what)  # the loop returns or raises


def is_taken(error: WorkspaceError) -> bool:
    """Tell whether a create was refused because there is one already."""
    return getattr(error, "code", None) == "unique" or getattr(error, "status", None) == 409


def find_later(find: Callable[[], R | None], sleep: Callable[[float], None]) -> R | None:
    """
    Look for what was sent a moment ago.

    A service under load may apply what it has received after it gave up answering, and a list may lag behind.
    """
    for pause in SETTLE_SECONDS:
        sleep(pause)
        found = find()
        if found is not None:
            return found
    return None


def delete_once(what: str, delete: Callable[[], Any], if_missing: str) -> bool:
    """
    Delete, and take for done what is gone already: so a retry after a lost worker succeeds.

    :param if_missing: ``ignore`` or ``fail``
    :return: whether this call deleted it
    """
    choice_of("if_missing", if_missing, ("ignore", "fail"))
    try:
        delete()
    except WorkspaceWritePlannedError as planned:
        planned.why = f"the {what} is to go, unless it is gone"
        raise
    except WorkspaceNotFoundError as error:
        if error.outcome == "unknown":  # the answer to an earlier attempt was lost
            log.warning("The answer was lost, but there is no %s any more: taken as deleted by this task.", what)
            return True
        if if_missing == "fail":
            raise
        log.warning("There is no %s: it was deleted before, or never existed.", what)
        return False
    log.info("Deleted the %s.", what)
    return True
