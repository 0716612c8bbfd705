"""Rows of a roster: which are valid, and the messages for the others."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_workspace.api.comparison import address_key
from airflow_provider_workspace.errors import WorkspaceInputError
from airflow_provider_workspace.procedures.roster import Entry, address_problem, check_address, check_roster


@pytest.mark.parametrize(
    "address",
    [
        "ivo@example.com",
        "ivo.sample+tag@example.co.uk",
        "o'neil%x@example.com",
        "a@b.de",
        "ivo@exämple.com",
        "ivo@例え.テスト",
        "ivo@उदाहरण.परीक्षा",
        "jürgen@example.com",
        "i_v-o@xn--exmple-cua.com",
        f"{'x' * 64}@example.com",
        f"ivo@{'x' * 63}.com",
    ],
)
def test_valid_addresses_are_accepted(address: str) -> None:
    assert address_problem(address) is None


@pytest.mark.parametrize(
    ("address", "problem"),
    [
        ("ivo", "the address needs exactly one @"),
        ("ivo@@example.com", "the address needs exactly one @"),
        ("ivo@example.com,mara@example.com", "the address needs exactly one @"),
        ("@example.com", "the part before the @ must have 1 to 64 characters"),
        (f"{'x' * 65}@example.com", "the part before the @ must have 1 to 64 characters"),
        (f"ivo@{'x.' * 130}com", "the address is longer than 254 characters"),
        (".ivo@example.com", "the part before the @ is invalid"),
        ("ivo.@example.com", "the part before the @ is invalid"),
        ("i..vo@example.com", "the part before the @ is invalid"),
        ("<ivo>@example.com", "the part before the @ is invalid"),
        ('"ivo"@example.com', "the part before the @ is invalid"),
        ("ivo@example", "'example' is not a domain"),
        ("ivo@", "'' is not a domain"),
        ("ivo@.com", "'.com' is not a domain"),
        ("ivo@example..com", "'example..com' is not a domain"),
        ("ivo@-example.com", "'-example.com' is not a domain"),
        ("ivo@example-.com", "'example-.com' is not a domain"),
        ("ivo@exam_ple.com", "'exam_ple.com' is not a domain"),
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
        ("ivo\ud800@example.com", "the address contains an invisible character (U+D800)"),
    ],
)
def test_invalid_addresses_are_refused(address: str, problem: str) -> None:
    assert address_problem(address) == problem


@given(st.text())
def test_any_text_is_an_address_or_is_refused(address: str) -> None:
    if address_problem(address) is None:
        assert address.count("@") == 1
        assert not any(char.isspace() for char in address)
        assert address_problem(address.upper()) in (None, f"'{address.upper().split('@')[1]}' is not a domain")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Ivo@Example.COM", "ivo@example.com", True),
        (" ivo@example.com\n", "ivo@example.com", True),
        ("ju\u0308rgen@example.com", "jürgen@example.com", True),
        ("Ivo@BÜCHER.example.com", "ivo@xn--bcher-kva.example.com", True),
        ("ivo@faß.example", "IVO@XN--FA-HIA.example.", True),
        ("ivo@faß.example", "ivo@FAẞ.example", True),
        ("ivo@faß.example", "ivo@fass.example", False),
        ("ivo@βόλος.example", "ivo@βόλοσ.example", False),
        ("ivo@bücher..example.com", "ivo@bücher..example.com", True),
        ("bücher@example.com", "xn--bcher-kva@example.com", False),
        ("ivo@example.com", "ivo@example.org", False),
        ("ivo+a@example.com", "ivo@example.com", False),
    ],
)
def test_equal_spellings_of_an_address(one: str, other: str, same: bool) -> None:  # noqa: FBT001
    assert (address_key(one) == address_key(other)) is same


def test_valid_rows_become_invites() -> None:
    roster = check_roster(
        [
            " Ivo.Sample@EXAMPLE.com ",
            {"email": "mara@example.com", "level": " 8 ", "send_email": "false", "first_name": "  Mara "},
            {
                "target_email": "noa@example.com",
                "first_name": "",
                "message": None,
                "private_project_access": [{"id": 5}],
            },
        ]
    )
    assert (roster.invalid, roster.duplicates) == ([], [])
    assert [(row.number, row.key) for row in roster.rows] == [
        (1, "ivo.sample@example.com"),
        (2, "mara@example.com"),
        (3, "noa@example.com"),
    ]
    assert [row.invite.model_dump(exclude_unset=True) for row in roster.rows] == [
        {"target_email": "Ivo.Sample@example.com"},
        {"target_email": "mara@example.com", "level": 8, "send_email": False, "first_name": "Mara"},
        {"target_email": "noa@example.com", "private_project_access": [{"id": 5}]},
    ]


@pytest.mark.parametrize(
    ("row", "email", "reason"),
    [
        ("", "", "field 'target_email' is required"),
        ("   ", "", "field 'target_email' is required"),
        ({"email": ""}, "", "field 'target_email' is required"),
        (None, "", "field 'target_email' is required"),
        (["ivo@example.com"], "", "field 'target_email' is required"),
        (7, "", "field 'target_email' is required"),
        ({"email": 7}, "", "field 'target_email': Input should be a valid string"),
        ("ivo@example", "ivo@example", "'example' is not a domain"),
        (
            {"email": "ivo@example.com", "levle": 1},
            "ivo@example.com",
            "unknown field 'levle' (did you mean 'level'?)",
        ),
        (
            {"\ufefftarget_email": "ivo@example.com", "email": "ivo@example.com"},
            "ivo@example.com",
            "unknown field '\\ufefftarget_email' (did you mean 'target_email'?)",
        ),
        (
            {"email": "ivo@example.com", "level": "boss"},
            "ivo@example.com",
            "field 'level': expected a whole number, or member (1) or admin (8) or owner (15)",
        ),
        (
            {"email": "ivo@example.com", "first_name": float("nan")},
            "ivo@example.com",
            "field 'first_name': Input should be a valid string",
        ),
        (
            {"email": "ivo@example.com", "private_project_access": "all"},
            "ivo@example.com",
            "field 'private_project_access': Input should be a valid list",
        ),
        (
            {"email": "ivo@example.com", None: ["beyond", "the header"]},
            "ivo@example.com",
            "field 'None': Keys should be strings",
        ),
    ],
)
def test_invalid_rows_are_reported(row: Any, email: str, reason: str) -> None:
    roster = check_roster(["first@example.com", row])
    assert roster.invalid == [Entry(2, email, "invalid", reason)]
    assert [item.number for item in roster.rows] == [1]


def test_duplicate_addresses_name_the_earlier_row() -> None:
    roster = check_roster(["ivo@example.com", "mara@example.com", "IVO@example.com", {"email": "mara@Example.Com"}])
    assert [row.number for row in roster.rows] == [1, 2]
    assert [entry.to_dict() for entry in roster.duplicates] == [
        {
            "row": 3,
            "email": "IVO@example.com",
            "status": "duplicate",
            "reason": "same address as row 1",
            "invite_id": None,
        },
        {
            "row": 4,
            "email": "mara@example.com",
            "status": "duplicate",
            "reason": "same address as row 2",
            "invite_id": None,
        },
    ]


def test_a_single_address_is_checked() -> None:
    assert check_address("emails", " Ivo@Example.COM ") == "Ivo@example.com"
    with pytest.raises(WorkspaceInputError) as error:
        check_address("emails", "ivo")
    assert str(error.value) == (
        "Correct emails: 'ivo' is not an e-mail address: the address needs exactly one @. Nothing was sent."
    )


@pytest.mark.parametrize("rows", ["ada@example.com", b"ada", {"email": "ada@example.com"}, 5, None])
def test_values_that_are_not_rows_are_refused(rows: Any) -> None:
    with pytest.raises(WorkspaceInputError, match="invites must be rows or addresses"):
        check_roster(rows)


@pytest.mark.parametrize("address", [None, 5, ["ada@example.com"]])
def test_an_address_must_be_a_string(address: Any) -> None:
    with pytest.raises(WorkspaceInputError, match="emails: an e-mail address must be a string"):
        check_address("emails", address)


def test_a_strict_check_keeps_no_row_of_an_invalid_roster() -> None:
    wrong = ["a@example.com", "nobody", {"email": "b@example.com"}, {"level": 1}]
    assert [entry.row for entry in check_roster(wrong, strict=True).invalid] == [2, 4]
    assert check_roster(wrong, strict=True).rows == []
    assert check_roster(iter(wrong), strict=True).rows == []
    assert len(check_roster(wrong).rows) == 2
    assert len(check_roster(["nobody"] * 5000, strict=True).invalid) == 1000
    assert len(check_roster(["a@example.com"], strict=True).rows) == 1
