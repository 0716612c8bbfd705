"""One request on its way through a handler: who asks, for what, and the checks that several operations share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from airflow_provider_workspace.sandbox.answers import JsonObject, answer_text, denied, dumps, invalid, not_found
from airflow_provider_workspace.sandbox.fields import check_fields

if TYPE_CHECKING:
    from starlette.responses import Response

    from airflow_provider_workspace.sandbox.limits import Limits
    from airflow_provider_workspace.sandbox.profiles import Profile
    from airflow_provider_workspace.sandbox.state import Key, State

PAGE_SIZE = 100
LARGEST_NUMBER = 2**53


@dataclass(frozen=True)
class Call:
    """What a handler gets."""

    state: State
    profile: Profile
    limits: Limits | None
    """The rates to keep, or None where they are off."""
    key: Key
    path: Mapping[str, str]
    """The path parameters, decoded."""
    query: Mapping[str, str]
    body: Any
    """The parsed JSON; an empty object where there was no body."""
    url: str
    """The absolute address of the request without its query."""

    def organization(self) -> str:
        """Return the organization in the path, which the key must belong to."""
        organization_id = self.path["organization_id"]
        if self.state.one("SELECT 1 FROM organizations WHERE id = ?", organization_id) is None:
            raise not_found()
        self._check_membership(organization_id)
        return organization_id

    def project(self) -> tuple[int, str]:
        """Return the project in the path of an environment, and its organization, which the key must belong to."""
        project_id = integer(self.path["project_id"])
        row = self.state.one("SELECT organization_id FROM projects WHERE id = ?", project_id)
        if row is None:
            raise not_found()
        organization_id = str(row["organization_id"])
        self._check_membership(organization_id)
        return project_id, organization_id

    def fields(self, allowed: Mapping[str, str]) -> JsonObject:
        """
        Return the checked fields of the body.

        :param allowed: Field name to kind.
        """
        return check_fields(self.body, allowed, unnamed_refused=self.profile.unnamed_refused)

    def user(self) -> JsonObject:
        """Return the User on whose behalf the key acts."""
        return self.state.user(self.key.user_uuid)

    def page(
        self,
        table: str,
        organization_id: str,
        column: str = "record",
        *values: object,
        shorten: Callable[[str], str] = str,
    ) -> Response:
        """
        Answer the page of a list that ``limit`` and ``offset`` ask for.

        :param table: The table of the resource.
        :param organization_id: UUID of the organization.
        :param column: What to select.
        :param values: The values in ``column``.
        :param shorten: Turns a stored record into what the list shows.
        """
        limit, offset = self._number("limit", 1, PAGE_SIZE), self._number("offset", 0, 0)
        count = self.state.lists.count(table, organization_id)
        records = self.state.lists.page(table, organization_id, limit, offset, column, *values)
        following = self._page_url(limit, offset + limit) if offset + limit < count else None
        previous = self._page_url(limit, max(0, offset - limit)) if offset > 0 else None
        # Records are stored as JSON, so they are put into the envelope as they are.
        head = f'{{"count":{count},"next":{dumps(following)},"previous":{dumps(previous)},"results":['
        return answer_text(head + ",".join(map(shorten, records)) + "]}")

    def effect(self, operation: str, organization_id: str, target: str, **detail: object) -> None:
        """
        Note in the audit what this request has changed.

        :param operation: Name of the operation.
        :param organization_id: UUID of the organization.
        :param target: What was changed.
        :param detail: What else to know, without secrets.
        """
        self.state.add_effect(operation, organization_id, target, self.key.name, detail)

    def _check_membership(self, organization_id: str) -> None:
        if organization_id in self.key.organizations:
            return
        if self.profile.foreign_status == 403:
            raise denied("You don't have access to the organization.")
        raise not_found()

    def _number(self, name: str, least: int, default: int) -> int:
        text = self.query.get(name)
        if text is None:
            return default
        number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
        if number >= least:
            return min(number, LARGEST_NUMBER)
        if self.profile.unnamed_refused:
            raise invalid("A valid integer is required.", name)
        return default

    def _page_url(self, limit: int, offset: int) -> str:
        return f"{self.url}?{urlencode({'limit': limit, 'offset': offset})}"


@dataclass(frozen=True)
class Endpoint:
    """One row of the interface's table of operations."""

    method: str
    path: str
    scope: str | None
    """The scope the key needs; None where the interface lists none."""
    handler: Callable[[Call], Response]
    query: tuple[str, ...] = ()

    @property
    def operation(self) -> str:
        """The name of the operation, that of its handler: as in the audit, wherever the operation changes something."""
        return self.handler.__name__


def integer(text: str) -> int:
    """
    Read the number of a dashboard or project out of a path.

    :param text: The path segment.
    """
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise not_found()
    return int(text)
