"""Pagination: which page to request next, when to stop, and whether the list is complete."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Generic, TypeVar
from urllib.parse import parse_qs, quote, urljoin, urlsplit

from airflow_provider_workspace.api.outcome import Outcome
from airflow_provider_workspace.api.request_errors import incomplete_list_error, origin, request_error
from airflow_provider_workspace.api.retry import MAX_READINGS
from airflow_provider_workspace.errors import WorkspacePaginationError

if TYPE_CHECKING:
    from airflow_provider_workspace.api.models import Page
    from airflow_provider_workspace.api.operation import Operation

T = TypeVar("T")
Position = int | str
"""Where a page begins: its offset, or the query of the link to it."""

# Maximum pages in one reading of a list.
MAX_PAGES = 100_000
# Rows that a list may have beyond twice its count before it counts as endless.
SLACK = 100
# What a query may hold unencoded.
QUERY_CHARACTERS = "!$%&'()*+,-./:;=?@[]_~"
PACKED = Struct("q")
SERVICE_BUG = "This is a bug of the service; nothing was changed."


def pages_of(first: Operation[Page[T]], base_url: str) -> Pages[T]:
    """
    Return the pages of a list, by offset, or by cursor if the operation has a field ``cursor``.

    :param first: operation for the first page
    :param base_url: base URL of the connection
    """
    by_cursor = "cursor" in type(first).model_fields
    return CursorPages(first, base_url) if by_cursor else Pages(first, base_url)


class Pages(Generic[T]):
    """
    The pages of one list. For each page call :meth:`new_rows`, then :meth:`next_operation`.

    This class pages by offset, :class:`CursorPages` by cursor; :func:`pages_of` chooses.

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
        self.origin = origin(base_url)
        self.start: int = getattr(first, "offset", None) or 0
        self.seen = _Ids()
        self.reads = self.distinct = 0
        self.max_count = 0
        self.unchanged_readings = 0
        self._begin(first)

    def _begin(self, first: Operation[Page[T]]) -> None:
        """Start a reading."""
        self.current: Operation[Page[T]] = first
        self.reads += 1
        # The first reading has seen what was seen at all: one set of ids is enough for most lists.
        self.reading = self.seen if self.reads == 1 else _Ids()
        self.offset = self.start
        self.position = self._first_position(first)
        self.pages = 1
        self.asked_for = _Ids()
        self.asked_for.add([self.position])
        self.rows: list[T] = []
        self.received = self.without_id = self.distinct_here = 0
        self.counts: tuple[int, int] | None = None
        self.distinct_before = self.distinct

    def _first_position(self, first: Operation[Page[T]]) -> Position:  # noqa: ARG002 - that of a cursor is in it
        return self.start

    def new_rows(self, page: Page[T]) -> list[T]:
        """Return the new rows of a page."""
        if self.is_repeated(page):
            return []
        row_ids = [getattr(row, "id", None) or self._number_without_id() for row in page.results]
        is_new = self.seen.add(row_ids)
        is_new_here = is_new if self.reading is self.seen else self.reading.add(row_ids)
        fresh = [row for row, row_is_new in zip(page.results, is_new, strict=True) if row_is_new]
        self.distinct_here += sum(is_new_here)
        self.distinct += len(fresh)
        return fresh

    def _number_without_id(self) -> tuple[str, int]:
        """Return what stands for the id of a row that has none."""
        self.without_id += 1
        return "row without id", self.without_id

    def next_operation(self, page: Page[T]) -> Operation[Page[T]] | None:
        """
        Return the operation for the next page, or for the first page of another reading; ``None`` at the end.

        :param page: the page just read
        :raises WorkspacePaginationError: if the list never ends, or a link cannot be followed
        :raises WorkspaceIncompleteListError: if the list still has fewer rows than it counts
        """
        self.received += len(page.results)
        if page.count is not None:
            least, most = self.counts or (page.count, page.count)
            self.counts = min(least, page.count), max(most, page.count)
        position = self._next_position(page)
        if position is None:
            return self._start_again()
        # With a count, a page may equal the one before it because rows moved; such a list ends by its count.
        is_repeated = page.count is None and bool(page.results) and page.results == self.rows
        (is_new,) = self.asked_for.add([position])
        if not is_new:
            raise self._endless(self._loop(position))
        if is_repeated:
            raise self._repeated(page)
        if page.count is not None and self.received > 2 * page.count + SLACK:
            raise self._endless(
                f"it counts {page.count} rows, gave {self.received}, and has another page. If the service counts "
                "wrong, set trust_counts to false in the extra of the connection"
            )
        if self.pages == MAX_PAGES:
            raise self._pagination_error(f"has more than {MAX_PAGES} pages", "Nothing was changed.")
        self.rows = page.results
        self.pages += 1
        self._go_to(position)
        return self.current

    def _go_to(self, position: Position) -> None:
        """Make the operation for the page at a position the current one."""
        self.position = self.offset = int(position)
        self.current = self.current.model_copy(update={"offset": self.offset})

    def _loop(self, position: Position) -> str:
        return f"the page at offset {self.offset} leads back to offset {position}"

    def _repeated(self, page: Page[T]) -> WorkspacePaginationError:
        """Return the error for a page that is the one before it once more."""
        why = f"never ends: the page at offset {self.offset} is the one before it once more"
        if not page.next or self._offset_in(page.next) is not None:
            return self._pagination_error(why, SERVICE_BUG)
        cure = "If the service pages by cursor, declare 'cursor: Cursor = None' in place of 'offset'."
        return self._pagination_error(why, "Its link has no offset; nothing was changed.", cure)

    def _next_position(self, page: Page[T]) -> Position | None:
        """Return the position of the next page; ``None`` if there is none."""
        return self._next_offset(page)

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
        return self._pagination_error(f"never ends: {why}", SERVICE_BUG)

    def _pagination_error(self, what: str, end: str, cure: str = "") -> WorkspacePaginationError:
        return request_error(
            WorkspacePaginationError,
            self.current,
            what,
            cure=cure,
            end=end,
            outcome=Outcome.REJECTED,
            retryable=False,
        )

    def is_repeated(self, page: Page[T]) -> bool:
        """Return whether a service without pagination sent its whole list again."""
        return bool(page.results) and not page.next and page.results == self.rows

    def _offset_in(self, link: object) -> int | None:
        """Return the offset in a ``next`` link; ``None`` if it has none or another origin."""
        try:
            target = urljoin(self.base_url, str(link))
            if origin(target) != self.origin:
                return None
            offset = int(parse_qs(urlsplit(target).query)["offset"][0])
        except (ValueError, KeyError):
            return None
        return offset if offset >= 0 else None


class CursorPages(Pages[T]):
    """
    The pages of a list whose ``next`` links have a cursor that only the service understands.

    A link is followed as it is, with all of its query, and only within the origin of the connection. Its path is not
    used: requests always go to that of the operation. A page without rows is no end, as long as it has a link.
    """

    def _first_position(self, first: Operation[Page[T]]) -> Position:
        return first.request().target.partition("?")[2]

    def _next_position(self, page: Page[T]) -> Position | None:
        if page.next:
            return self._query_in(page.next)
        is_complete = page.count is not None and self.received >= page.count
        if page.results and self.pages == 1 and "next" not in page.model_fields_set and not is_complete:
            raise self._pagination_error(
                "has a first page without 'next'",
                "Nothing was changed.",
                "Declare the result as list[X] if the service gives the whole list at once: the end cannot be known.",
            )
        return None

    def _go_to(self, position: Position) -> None:
        self.position = position
        self.current = self.first.with_query(str(position))

    def _loop(self, position: Position) -> str:  # noqa: ARG002 - a cursor may be long, and tells people nothing
        return f"page {self.pages} leads back to one that was read before"

    def _repeated(self, page: Page[T]) -> WorkspacePaginationError:  # noqa: ARG002
        return self._endless(f"page {self.pages} is the one before it once more")

    def _start_again(self) -> Operation[Page[T]] | None:
        """Return the operation that starts another reading; the count says nothing about a list read from a cursor."""
        is_whole = getattr(self.first, "cursor", None) is None
        return super()._start_again() if is_whole else None

    def is_repeated(self, page: Page[T]) -> bool:  # noqa: ARG002
        """Return false: without a link there is no next page that could be the same."""
        return False

    def _query_in(self, link: object) -> str:
        """
        Return the query of a ``next`` link.

        :raises WorkspacePaginationError: if it has none, or another origin
        """
        try:
            target = urljoin(self.base_url, str(link))
            query = quote(urlsplit(target).query, safe=QUERY_CHARACTERS)
            is_own = origin(target) == self.origin
        except ValueError:
            query, is_own = "", False
        if query and is_own:
            return query
        raise self._pagination_error(
            f"has a 'next' on page {self.pages} that cannot be followed",
            "Nothing was changed.",
            "Check the host of the connection: a link must have its scheme, host and port, and a query.",
        )


class _Ids(dict[int, str]):
    """
    A set of row ids with eight characters of one byte per id, a tenth of the memory of a set of texts.

    Not bytes: looking for them takes twice as long.
    """

    def add(self, row_ids: Sequence[Hashable]) -> list[bool]:
        """Add ids, and return whether each is new."""
        is_new: list[bool] = []
        get, pack = self.get, PACKED.pack
        for row_id in row_ids:
            digest = hash((row_id,))
            written = pack(digest).decode("latin-1")
            part = digest & 4095
            known = get(part, "")
            is_known = written in known
            if not is_known:
                self[part] = known + written
            is_new.append(not is_known)
        return is_new
