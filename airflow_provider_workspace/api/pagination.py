"""Lists page by page: what to ask next, and when to stop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import parse_qs, urljoin, urlsplit

from airflow_provider_workspace.api.request_errors import described
from airflow_provider_workspace.api.response import origin
from airflow_provider_workspace.errors import WorkspacePaginationError

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Page
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")


class Pages(Generic[T]):
    """
    The walk through one list.

    The address in ``next`` is only ever read for its ``offset``, and only if it lies within the origin of the
    connection; the request always goes to the connection's own base URL. So a ``next`` that points abroad, as
    proxies produce and attackers wish for, takes no API key anywhere.

    :param first: the operation that asks for the first page
    :param base_url: base URL of the connection
    """

    def __init__(self, first: Operation[Page[T]], base_url: str) -> None:
        self.current: Operation[Page[T]] = first
        self.base_url = base_url
        self.offset: int = getattr(first, "offset", None) or 0
        self.asked_for = {self.offset}
        self.rows: list[T] = []

    def following(self, page: Page[T]) -> Operation[Page[T]] | None:
        """
        Return the operation that asks for the next page; ``None`` after the last one.

        :param page: the page just read
        :raises WorkspacePaginationError: if the service sends the same page over and over
        """
        if not page.next and not self.may_go_on(page):
            return None
        offset = self.offset_in(page.next) if page.next else None
        if offset is None:
            offset = self.offset + len(page.results)
        if not page.results and (page.count is None or not self.offset < offset < page.count):
            return None  # the end; an empty page before it has lost its rows to somebody who deleted them
        if offset in self.asked_for or (page.results and page.results == self.rows):
            msg = (
                f"{described(self.current)} never ends: the page at offset {self.offset} leads back to offset "
                f"{offset}. This is a fault of the service; nothing was changed."
            )
            raise WorkspacePaginationError(msg, operation=type(self.current).__name__, retryable=False)
        self.offset, self.rows = offset, page.results
        self.asked_for.add(offset)
        self.current = self.current.model_copy(update={"offset": offset})
        return self.current

    def may_go_on(self, page: Page[T]) -> bool:
        """
        Tell whether there may be more after a page that does not say so: an array, or an envelope without ``next``.

        There is while fewer rows came than the list counts. Where it does not count, only another page tells: how many
        rows a service gives at most is not shown.
        """
        if "next" in page.model_fields_set or not page.results or self.repeats(page):
            return False
        if page.count is not None:
            return self.offset + len(page.results) < page.count
        return "limit" in type(self.current).model_fields

    def repeats(self, page: Page[T]) -> bool:
        """Tell whether a service that knows no pages has sent its whole list once more."""
        return bool(page.results) and "next" not in page.model_fields_set and page.results == self.rows

    def offset_in(self, link: Any) -> int | None:
        """Return the offset a ``next`` link names; ``None`` if it names none or leads to another origin."""
        try:
            target = urljoin(self.base_url, str(link))
            if origin(target) != origin(self.base_url):
                return None
            offset = int(parse_qs(urlsplit(target).query)["offset"][0])
        except (ValueError, KeyError):
            return None
        return offset if offset >= 0 else None
