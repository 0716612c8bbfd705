"""Pagination: which page to request next, when to stop, and whether the list is complete."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from urllib.parse import parse_qs, urljoin, urlsplit

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.request_errors import incomplete_list_error, origin, request_error
from airflow_provider_workspace.api.retry import MAX_READINGS
from airflow_provider_workspace.errors import WorkspacePaginationError

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Page
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")

# Maximum pages in one reading of a list.
MAX_PAGES = 100_000
# Rows that a list may have beyond twice its count before it counts as endless.
SLACK = 100


class Pages(Generic[T]):
    """
    The pages of one list. For each page call :meth:`new_rows`, then :meth:`next_operation`.

    Of the URL in ``next`` only the ``offset`` is used, and only if it has the origin of the connection; requests always
    go to the base URL. So no ``next`` link can send the API key to another server.

    A list that has fewer rows than it counts is read again, and the readings are merged by row id. Each reading has
    pages with one row less than the one before, so that rows lost at page boundaries show up.

    :param first: operation for the first page
    :param base_url: base URL of the connection
    """

    def __init__(self, first: Operation[Page[T]], base_url: str) -> None:
        self.first = first
        self.base_url = base_url
        self.start: int = getattr(first, "offset", None) or 0
        self.seen = _Ids(bytearray)
        self.reads = self.distinct = 0
        self.max_count = 0
        self.unchanged_readings = 0
        self._begin(first)

    def _begin(self, first: Operation[Page[T]]) -> None:
        """Start a reading."""
        self.current: Operation[Page[T]] = first
        self.reads += 1
        self.reading = _Ids(bytearray)
        self.offset = self.start
        self.asked_for = {self.offset}
        self.rows: list[T] = []
        self.received = self.without_id = self.distinct_here = 0
        self.counts: tuple[int, int] | None = None
        self.distinct_before = self.distinct

    def new_rows(self, page: Page[T]) -> list[T]:
        """Return the new rows of a page."""
        if self.is_repeated(page):
            return []
        fresh: list[T] = []
        for row in page.results:
            row_id: Any = getattr(row, "id", None)
            if not row_id:
                self.without_id += 1
                row_id = ("row without id", self.without_id)
            if self.reading.add(row_id):
                self.distinct_here += 1
                if self.seen.add(row_id):
                    fresh.append(row)
        self.distinct += len(fresh)
        return fresh

    def next_operation(self, page: Page[T]) -> Operation[Page[T]] | None:
        """
        Return the operation for the next page, or for the first page of another reading; ``None`` at the end.

        :param page: the page just read
        :raises WorkspacePaginationError: if the list never ends
        :raises WorkspaceIncompleteListError: if the list still has fewer rows than it counts
        """
        self.received += len(page.results)
        if page.count is not None:
            least, most = self.counts or (page.count, page.count)
            self.counts = min(least, page.count), max(most, page.count)
        offset = self._next_offset(page)
        if offset is None:
            return self._start_again()
        if offset in self.asked_for:
            raise self._endless(f"the page at offset {self.offset} leads back to offset {offset}")
        # With a count, a page may equal the one before it because rows moved; such a list ends by its count.
        if page.count is None and page.results and page.results == self.rows:
            raise self._endless(f"the page at offset {self.offset} is the one before it once more")
        if page.count is not None and self.received > 2 * page.count + SLACK:
            raise self._endless(
                f"it counts {page.count} rows, gave {self.received}, and has another page. If the service counts "
                "wrong, set trust_counts to false in the extra of the connection"
            )
        if len(self.asked_for) == MAX_PAGES:
            raise self._endless(f"it has more than {MAX_PAGES} pages")
        self.offset, self.rows = offset, page.results
        self.asked_for.add(offset)
        self.current = self.current.model_copy(update={"offset": offset})
        return self.current

    def _next_offset(self, page: Page[T]) -> int | None:
        """Return the offset of the next page; ``None`` if there is none."""
        reached = self.offset + len(page.results)
        if page.next:
            offset = self._offset_in(page.next)
            offset = reached if offset is None else offset
            # An empty page before the end has lost its rows to a delete.
            empty_end = not page.results and (page.count is None or not self.offset < offset < page.count)
            return None if empty_end else offset
        if not page.results or self.is_repeated(page):
            return None
        if page.count is not None:
            return reached if reached < page.count else None
        # Without count and next, only a request for the next page shows whether there is one.
        unsaid = "next" not in page.model_fields_set and "limit" in type(self.current).model_fields
        return reached if unsaid else None

    def _start_again(self) -> Operation[Page[T]] | None:
        """Return the operation that starts another reading; ``None`` if the list is complete or has no count."""
        if self.counts is None:
            return None
        least, most = self.counts
        self.max_count = max(self.max_count, most)
        if self.distinct_here >= most - self.start or self.distinct >= self.max_count - self.start:
            return None
        same = self.distinct_here == self.distinct == self.distinct_before
        self.unchanged_readings = self.unchanged_readings + 1 if same else 0
        if self.reads == MAX_READINGS or self.unchanged_readings == 2:
            if least < most and self.distinct >= least - self.start:
                return None  # the list changed while it was read: all rows that were there throughout were read
            cure = (
                "Try again. If the list stays short because the service counts rows that the API key may not see, or "
                "counts wrong, set trust_counts to false in the extra of the connection."
            )
            what = f"counts {most} rows, and {self.start + self.distinct} came in {self.reads} readings"
            raise incomplete_list_error(self.first, what, cure, problem="list-too-short")
        limit = getattr(self.current, "limit", None)
        self._begin(self.first.model_copy(update={"limit": max(1, limit - 1)}) if limit else self.first)
        return self.current

    def _endless(self, why: str) -> WorkspacePaginationError:
        end = "This is a bug of the service; nothing was changed."
        return request_error(
            WorkspacePaginationError,
            self.current,
            f"never ends: {why}",
            end=end,
            outcome=Outcome.REJECTED,
            retryable=False,
        )

    def is_repeated(self, page: Page[T]) -> bool:
        """Return whether a service without pagination sent its whole list again."""
        return bool(page.results) and not page.next and page.results == self.rows

    def _offset_in(self, link: Any) -> int | None:
        """Return the offset in a ``next`` link; ``None`` if it has none or another origin."""
        try:
            target = urljoin(self.base_url, str(link))
            if origin(target) != origin(self.base_url):
                return None
            offset = int(parse_qs(urlsplit(target).query)["offset"][0])
        except (ValueError, KeyError):
            return None
        return offset if offset >= 0 else None


class _Ids(defaultdict[int, bytearray]):
    """A set of row ids with eight bytes per id, a tenth of the memory of a set of texts."""

    def add(self, row_id: Hashable) -> bool:
        """Add an id, and return whether it is new."""
        digest = hash((row_id,))
        part, written = self[digest & 4095], digest.to_bytes(8, "little", signed=True)
        if written in part:
            return False
        part += written
        return True
