"""Tests for two organization files about one organization."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any, NoReturn

from airflow_provider_workspace.organization.contradictions import FileOfOrganization, describe_contradictions
from airflow_provider_workspace.organization.file import load_organizations

NOW = datetime(2026, 11, 26, tzinfo=timezone.utc)
ADA = {"email": "ada@example.com", "level": 8}


def no_file(path: str) -> NoReturn:
    raise AssertionError(path)


def differences(first: list[Any], second: list[Any], *, leavers: bool = False) -> str:
    files: list[FileOfOrganization] = []
    for name, people in (("one.yaml", first), ("two.yaml", second)):
        content = {"members": {"people": people}}
        (wanted,) = load_organizations(content, no_file, str).values()
        files.append(FileOfOrganization(name, wanted, is_leavers=leavers and name == "two.yaml"))
    return describe_contradictions(*files, no_file, NOW)


def test_two_ends_of_one_person_are_named() -> None:
    later, sooner = ({**ADA, "until": until} for until in ("2027-01-31", "2026-12-31"))
    named = differences([later], [sooner])
    assert "person ada@example.com, end: until 2027-01-31, then removed in one.yaml, until 2026-12-31" in named


def test_somebody_who_leaves_later_is_no_contradiction() -> None:
    assert differences([ADA], [{"email": "ada@example.com", "until": "2027-01-31"}], leavers=True) == ""
    assert "leaves in two.yaml" in differences([ADA], ["ada@example.com"], leavers=True)


def test_many_differences_are_cut_with_their_number() -> None:
    people = [f"p{number}@example.com" for number in range(25)]
    named = differences([{"email": one, "level": 1} for one in people], [{"email": one, "level": 8} for one in people])
    assert "describe one organization differently (25)" in named
    assert named.endswith("; and 5 more")
