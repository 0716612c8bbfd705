"""Rosters through the operators that read them: which rows are valid, what is sent, and what the report says."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import writes

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

pytestmark = [
    pytest.mark.parametrize("sandbox", ["strict"], indirect=True),
    pytest.mark.usefixtures("no_waits"),
]
# Has duplicates (character for character, in other letter case, in blanks), invalid addresses and levels, a line break
# in a message, a first name that is not ASCII, and a person who is a member.
ROSTER = Path(__file__).resolve().parents[3] / "tests" / "data" / "roster.csv"
VALID = [
    "ivo@example.com",
    "ivo.sample+tag@example.co.uk",
    "o'neil%x@example.com",
    "a@b.de",
    "ivo@exämple.com",
    "ivo@例え.テスト",
    "ivo@उदाहरण.परीक्षा",
    "jürgen@example.com",
    "i_v-o@xn--exmple-cua.org",
    f"{'x' * 64}@example.com",
    f"ivo@{'x' * 63}.com",
]
LOCAL = "the part before the @ is invalid"
LENGTH = "the part before the @ must have 1 to 64 characters"
LEVEL_EXPECTED = "field 'level': expected a whole number from 0, or member (1) or admin (8) or owner (15)"
REQUIRED = "field 'target_email' is required"
INVALID: list[tuple[Any, str]] = [
    ("ivo", "the address needs exactly one @"),
    ("ivo@@example.com", "the address needs exactly one @"),
    *((both, "the cell holds 2 addresses: write each into a row of its own")
     for both in ("ivo@example.com,mara@example.com", "ivo@example.com; mara@example.com", f"{'x' * 250}@a.de m@b.de")),
    *((f"{mark}ivo@example.com", "the address begins with an apostrophe, as a spreadsheet marks a text: delete it")
     for mark in "'\u2018\u2019`\u00b4"),
    ("ivo_example.com#EXT#@tenant.onmicrosoft.com",
     "it is the sign-in name of a guest (#EXT#), not a mailbox: take the column with the mailbox"),
    ({"email": b"ivo@example.com"}, "field 'target_email': expected text, not bytes: decode the column"),
    ({"First name": "Ivo"}, "field 'target_email' is required (First name 'Ivo')"),
    ("@example.com", LENGTH),
    (f"{'x' * 65}@example.com", LENGTH),
    (f"ivo@{'x.' * 130}com", "the address is longer than 254 characters"),
    *((f"{part}@example.com", LOCAL) for part in (".ivo", "ivo.", "i..vo", "<ivo>", '"ivo"')),
    *((f"ivo@{domain}", f"{domain!r} is not a domain")
     for domain in ("example", "", ".com", "example..com", "-example.com", "example-.com", "exam_ple.com")),
    ("ivo@example.com\uff0c", "'example.com\uff0c' is not a domain"),
    ("ivo@127.0.0.1", "'127.0.0.1' is not a domain"),
    (f"ivo@{'x' * 64}.com", f"'{'x' * 64}.com' is not a domain"),
    ("i vo@example.com", "the address contains a blank"),
    ("ivo@example.com\u2003x", "the address contains a blank"),
    ("\ufeffivo@example.com", "the address contains an invisible character (U+FEFF)"),
    ("ivo\u200b@example.com", "the address contains an invisible character (U+200B)"),
    ("ivo@example.com\x00", "the address contains an invisible character (U+0000)"),
    ("ivo\n@example.com", "the address contains an invisible character (U+000A)"),
    ("ivo\ue000@example.com", "the address contains an invisible character (U+E000)"),
    ("ivo\ud800@example.com", "field 'target_email': "),
    *((empty, REQUIRED) for empty in ("", None, "\u00a0\u200b" )),
    *((number, "field 'target_email': ") for number in (7, {"email": 7})),
    ({"email": "ended@example.com", "until": "2020-12-31"}, "access ended 2020-12-31 (UTC)"),
    ({"email": "ivo@example.com", "level": "boss"},
     f"{LEVEL_EXPECTED} (found 'boss'; levels=… says what such texts stand for)"),
    ({"email": " ", "first_name": "Ivo"}, "field 'target_email' is required (first_name 'Ivo')"),
    ({"email": "ivo@example.com", "first_name": 7}, "field 'first_name': "),
    ({"email": "ivo@example.com", "private_project_access": "all"}, "field 'private_project_access': "),
    *(({"email": "ivo@example.com", name: cell},
     f"field {name!r}: a value is not JSON serializable (NaN, infinity or half an emoji)")
     for name, cell in (("first_name", "Ann \ud83d"), ("message", "\ud83d"),
      ("private_project_access", [{"id": float("inf")}]))),
]  # fmt: skip


def test_each_row_is_valid_or_its_reason_is_in_the_report() -> None:
    report = WorkspaceHook().create_invites([*VALID, *(row for row, _ in INVALID)], on_invalid="skip")
    valid, invalid = report.entries[: len(VALID)], report.entries[len(VALID) :]
    assert [(entry.status, entry.reason) for entry in valid] == [("invited", "")] * len(VALID)
    for entry, (_, reason) in zip(invalid, INVALID, strict=True):
        assert entry.status == "invalid"
        # After "field …: " a library says what is wrong with the shape.
        assert entry.reason.startswith(reason) if reason.endswith(": ") else entry.reason == reason


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Ivo@Example.COM", "ivo@example.com", True),
        (" ivo@example.com\n", "ivo@example.com", True),
        ("ju\u0308rgen@example.com", "jürgen@example.com", True),
        ("Ivo@BÜCHER.example.com", "ivo@xn--bcher-kva.example.com", True),
        ("ivo@faß.example", "IVO@XN--FA-HIA.example", True),
        ("ivo@faß.example", "ivo@FAẞ.example", True),
        ("ivo@faß.example", "ivo@fass.example", False),
        ("ivo@βόλος.example", "ivo@βόλοσ.example", False),
        ("bücher@example.com", "xn--bcher-kva@example.com", False),
        ("ivo@example.com", "ivo@example.org", False),
        ("ivo+a@example.com", "ivo@example.com", False),
    ],
)
def test_spellings_of_one_address_are_one_invite(one: str, other: str, *, same: bool) -> None:
    first, second = WorkspaceHook().create_invites([one, {"email": other}]).entries
    assert first.status == "invited"
    assert (second.status, second.reason) == (("duplicate", "same address as row 1") if same else ("invited", ""))


def test_cells_become_the_fields_of_an_invite(sandbox: SandboxServer) -> None:
    WorkspaceHook().create_invites(
        [
            " Ivo.Sample@EXAMPLE.com ",
            {
                "email": "mara@example.com",
                "level": " 8 ",
                "send_email": "false",
                "first_name": "  Mara ",
                "Until": "9998-12-31",
                "then": "member",
            },
            {"target_email": "n@example.com", "first_name": "", "message": None, "private_project_access": [{"id": 5}]},
        ]
    )
    (sent,) = writes(sandbox)
    assert sent["body"] == [
        {"target_email": "Ivo.Sample@example.com"},
        {"target_email": "mara@example.com", "level": 8, "send_email": False, "first_name": "Mara"},
        {"target_email": "n@example.com", "private_project_access": [{"id": 5}]},
    ]


def test_a_blank_cell_is_empty_and_the_default_wins(sandbox: SandboxServer, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("E-mail,Level,Send email\na@example.com, ,\u00a0\u200b\n")
    defaults = {"send_email": False, "level": "admin", "message": " "}
    path = str(tmp_path / "a.csv")
    WorkspaceCreateInvitesOperator(task_id="invite", path=path, defaults=defaults).execute({})
    (sent,) = writes(sandbox)
    assert sent["body"] == [{"target_email": "a@example.com", "level": 8, "send_email": False}]


MINA: list[Any] = [
    {"email": "Mina@example.com", "level": 8, "message": "https://user:pass@example.com"},
    "ivo@example.com",
    {"email": "mina@example.com", "level": 1, "send_email": False},
    {"E-Mail": " mina@EXAMPLE.com", "LEVEL": "admin", "message": "https://user:pass@example.com"},
]


def test_rows_that_say_different_things_about_a_person_are_all_invalid(sandbox: SandboxServer) -> None:
    create = partial(WorkspaceCreateInvitesOperator, task_id="invite", invites=MINA)
    says = r"Invalid rows: 3\. .*: row 1 \(Mina@example.com\): conflicts with row 3 \(same address\): level 8 here, 1"
    with pytest.raises(AirflowFailException, match=rf"{says}.*and 1 more: row 4 .*; row 3 .*: conflicts with row 1 "):
        create().execute({})
    assert sandbox.requests() == []
    report = create(on_invalid="skip").execute({})
    assert [row["status"] for row in report["addresses"]] == ["invalid", "invited", "invalid", "invalid"]
    assert "user:***@" in report["addresses"][2]["reason"]
    equal = create(invites=[MINA[0], *MINA[3:]]).execute({})
    assert [row["status"] for row in equal["addresses"]] == ["invited", "duplicate"]
    with pytest.raises(WorkspaceInputError, match=r"row 3 \(mina@example.com\): conflicts with row 1"):
        WorkspaceHook().create_invites(MINA)


@pytest.mark.parametrize("rows", ["ada@example.com", b"ada", {"email": "ada@example.com"}, 5, None])
def test_a_value_that_is_no_list_of_rows_is_refused(rows: Any) -> None:
    with pytest.raises(
        WorkspaceInputError,
        match=r"invites (must be a list of rows or addr|is a text that is not)|Give either invites=…",
    ):
        WorkspaceHook().create_invites(rows)


def test_the_roster_of_the_examples_invites_everybody_once(sandbox: SandboxServer) -> None:
    operator = WorkspaceCreateInvitesOperator(task_id="invite", path=str(ROSTER), on_invalid="skip")
    report = json.loads(json.dumps(operator.execute({})))
    counts = {status: count for status, count in report["counts"].items() if count}
    assert counts == {"rows": 250, "invited": 228, "member": 1, "duplicate": 11, "invalid": 10}
    assert len(report["addresses"]) == 250
    again = operator.execute({})["counts"]
    assert (again["invited"], again["already_invited"]) == (0, 228)
    assert len(sandbox.effects("create_invite")) == 228


def test_an_invalid_row_of_a_file_fails_before_sending(sandbox: SandboxServer, tmp_path: Path) -> None:
    says = r"Invalid rows: 10\. Correct them, or leave them out .*: row 32 \(elo\.barksted@example\.com\.\):"
    with pytest.raises(AirflowFailException, match=says):
        WorkspaceCreateInvitesOperator(task_id="invite", path=str(ROSTER)).execute({})
    (tmp_path / "a.csv").write_text("email,level\na@example.com,1,surplus\n")
    with pytest.raises(AirflowFailException, match=r"row 2 .*cells beyond the last column"):
        WorkspaceCreateInvitesOperator(task_id="invite", path=str(tmp_path / "a.csv")).execute({})
    (tmp_path / "a.jsonl").write_text('"a@example.com"\n{"email": "ann@example.com", "first_name": "Ann \\ud83d"}')
    with pytest.raises(
        AirflowFailException, match=r"row 2 \(ann@example.com\): field 'first_name': a value is not JSON"
    ):
        WorkspaceCreateInvitesOperator(task_id="invite", path=str(tmp_path / "a.jsonl")).execute({})
    assert sandbox.requests() == []


@pytest.mark.parametrize(
    ("name", "text", "numbers"),
    [
        ("a.csv", "email,level,first_name\n,,\na@example.com,1,Ada\n \t,,\n\nb@example.com,1,\n,,,,\n", [3, 6]),
        ("a.jsonl", '\n"a@example.com"\n\n  \n"b@example.com"\n\n', [2, 5]),
    ],
)
def test_blank_rows_are_skipped_and_counted_and_rows_have_the_numbers_of_the_file(
    tmp_path: Path, name: str, text: str, numbers: list[int]
) -> None:
    (tmp_path / name).write_text(text)
    path = str(tmp_path / name)
    report = WorkspaceCreateInvitesOperator(task_id="invite", path=path, defaults={"send_email": False}).execute({})
    assert [(row["row"], row["status"]) for row in report["addresses"]] == [(number, "invited") for number in numbers]
    counts = {key: count for key, count in report["counts"].items() if count}
    assert counts == {"rows": 2, "invited": 2, "blank": 4}
