"""Access levels by number or name."""

from __future__ import annotations

import math
from typing import Any

import pytest

from airflow_provider_workspace.api.operations import (
    AddDashboardCollaborator,
    CreateInvite,
    UpdateDashboard,
    UpdateMember,
)
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.roster import check_roster


def level_of(value: Any) -> Any:
    return UpdateMember(organization_id="o", user_uuid="u", level=value).payload()["level"]


@pytest.mark.parametrize(
    ("value", "level"),
    [
        (8, 8),
        ("8", 8),
        (" 8 ", 8),
        ("8.0", 8),
        (8.0, 8),
        (-1, -1),
        ("+3", 3),
        (37, 37),
        ("member", 1),
        (" Admin", 8),
        ("OWNER", 15),
    ],
)
def test_levels_may_be_integers_or_names(value: Any, level: int) -> None:
    assert level_of(value) == level
    invite = CreateInvite(organization_id="o", target_email="ada@example.com", level=value)
    assert invite.payload()["level"] == level
    (row,) = check_roster([{"email": "ada@example.com", "level": value}]).rows
    assert (row.level, row.invite.model_dump()["level"]) == (level, level)


@pytest.mark.parametrize("value", [True, False, 8.5, math.nan, math.inf, 10**200, "8.5", "boss", "", None, [8]])
def test_invalid_levels_are_refused(value: Any) -> None:
    with pytest.raises(WorkspaceInputError) as error:
        level_of(value)
    assert str(error.value) == (
        "UpdateMember: field 'level': expected a whole number, or member (1) or admin (8) or owner (15). "
        "Nothing was sent."
    )


def test_the_level_of_a_row_is_optional() -> None:
    (row,) = check_roster(["ada@example.com"]).rows
    assert row.level is None
    assert CreateInvite(organization_id="o", target_email="a@example.com", level=None).payload()["level"] is None
    (wrong,) = check_roster([{"email": "ada@example.com", "level": True}]).invalid
    assert wrong.reason.startswith("field 'level': expected a whole number")


def test_levels_of_dashboards_have_no_names() -> None:
    """Their levels are of another kind: 37 is "can edit"."""
    add = AddDashboardCollaborator(project_id="1", dashboard_id=1, user_uuid="u", level="37")
    assert add.payload()["level"] == 37
    assert UpdateDashboard(project_id="1", dashboard_id=1, restriction_level=None).payload() == {
        "restriction_level": None
    }
    for value in (True, "admin", 0.5):
        with pytest.raises(WorkspaceInputError, match=r"field 'restriction_level': expected a whole number\. "):
            UpdateDashboard(project_id="1", dashboard_id=1, restriction_level=value)
