"""Pages of the lists, as quick at the end of a long list as at its beginning."""

from __future__ import annotations

import sqlite3


class Lists:
    """
    The rows of each table and organization, in order.

    SQLite counts and skips rows one by one, which takes longer than all the rest when a client reads through a hundred
    thousand members. So the row ids of a list are kept until anything in the database changes.

    :param db: The one connection to the database.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self.db = db
        self._rows: dict[tuple[str, str], list[int]] = {}
        self._rows_as_of = -1

    def count(self, table: str, organization_id: str) -> int:
        """
        Count the rows of an organization.

        :param table: One of the tables that have a column of that name.
        :param organization_id: UUID of the organization.
        """
        return len(self._rows_of(table, organization_id))

    def page(
        self, table: str, organization_id: str, limit: int, offset: int, column: str = "record", *values: object
    ) -> list[str]:
        """
        Return records of an organization as JSON text, oldest first.

        :param table: One of the tables that have records and belong to an organization.
        :param organization_id: UUID of the organization.
        :param limit: How many at most.
        :param offset: How many to skip.
        :param column: What to select.
        :param values: The values in ``column``.
        """
        rows = self._rows_of(table, organization_id)[offset : offset + limit]
        if not rows:
            return []
        where = "organization_id = ? AND rowid BETWEEN ? AND ? ORDER BY rowid"
        sql = f"SELECT {column} FROM {table} WHERE {where}"  # noqa: S608 -- names of our own schema
        return [row[0] for row in self.db.execute(sql, (*values, organization_id, rows[0], rows[-1]))]

    def _rows_of(self, table: str, organization_id: str) -> list[int]:
        if self._rows_as_of != self.db.total_changes:
            self._rows.clear()
            self._rows_as_of = self.db.total_changes
        place = (table, organization_id)
        if place not in self._rows:
            sql = f"SELECT rowid FROM {table} WHERE organization_id = ? ORDER BY rowid"  # noqa: S608 -- as above
            self._rows[place] = [row[0] for row in self.db.execute(sql, (organization_id,))]
        return self._rows[place]
