"""What the roads do not reach of reading rows: shapes without an address, nested values that are not there."""

from __future__ import annotations

from datetime import datetime, timezone

import pytest

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.apply_plan import send_changes
from airflow_provider_workspace.procedures.invites_report import InvitesReport, name_entries
from airflow_provider_workspace.procedures.journal import Journal
from airflow_provider_workspace.procedures.plan import Change, ChangeResult, Plan
from airflow_provider_workspace.procedures.roster import Entry
from airflow_provider_workspace.procedures.roster_columns import Layout
from airflow_provider_workspace.procedures.roster_files import read_roster
from airflow_provider_workspace.procedures.roster_tables import rows_at
from airflow_provider_workspace.procedures.row_shape import ADDRESS_FIELD, _displaced_address


def test_a_layout_without_addresses_has_none_in_another_column() -> None:
    layout = Layout(("Name", "Team"), ("first_name", None), {}, 2)
    assert _displaced_address(["Ada", "ada@example.com"], layout) == ""
    layout = Layout(("Mail", "Team"), (ADDRESS_FIELD, None), {}, 2)
    assert _displaced_address(["Ada", "data"], layout) == ""


@pytest.mark.parametrize(
    ("value", "cure"), [("text", "If a list is nested"), ({"users": [1]}, r"rows='users' \(1 row")]
)
def test_a_source_without_a_list_of_rows_names_those_that_there_are(value: object, cure: str) -> None:
    with pytest.raises(WorkspaceInputError, match=cure):
        rows_at(value, None, "expected rows", "the answer")


def test_problems_of_rows_are_grouped_and_cut() -> None:
    entries = [Entry(number, "", "invalid", f"reason {number}") for number in range(60)]
    assert name_entries(entries).endswith("more problems.")


def test_an_outcome_of_what_is_never_sent_is_not_noted() -> None:
    plan = Plan("here")
    line = Change("skip", "members", "person ada@example.com")
    plan.outcomes[line] = ChangeResult("skipped")

    class Empty:
        def read(self) -> None:
            return None

        def write(self, value: object) -> None:
            raise AssertionError(value)

    send_changes(None, plan, lambda _: InvitesReport(), journal=Journal(lambda _: Empty(), "try 1"))  # type: ignore[arg-type]


def test_a_row_may_lack_a_nested_value() -> None:
    rows = [{"profile": {"email": "ada@example.com", "first": "Ada"}}, {"profile": {"email": "ben@example.com"}}]
    columns = {"profile.email": "email", "profile.first": "first_name"}
    roster = read_roster(rows, None, {}, columns=columns, now=datetime(2026, 11, 28, tzinfo=timezone.utc))
    assert [row.get("first_name") for row in roster] == ["Ada", None]
