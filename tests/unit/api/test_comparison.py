"""Responses compared with what was asked."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import idna
import pytest
from hypothesis import given
from hypothesis import strategies as st

import airflow_provider_workspace.api.operations as ops
from airflow_provider_workspace.api.comparison import describe_differences, differences, domain_key, normal_text
from airflow_provider_workspace.api.models import Dashboard
from airflow_provider_workspace.api.response import decode
from tests.endpoints import AddProject

if TYPE_CHECKING:
    from airflow_provider_workspace.api.operation import Operation

ID = "0190c0de-0000-4000-8000-0000000000e1"
EXPORT: dict[str, Any] = {"organization_id": "o", "batch_export_id": ID}


def test_texts_differ_in_case_but_not_in_blanks_or_unicode_form() -> None:
    for text in ("Cafe\u0301 Mu\u0308ller", "  Café\tMüller ", "Café  \u00a0Müller\n"):
        assert normal_text(text) == "Café Müller"
    assert normal_text("Sales") != normal_text("sales")


def is_domain(text: str) -> bool:
    """Return whether a text is a domain of IDNA 2008, in its one spelling in Unicode."""
    try:
        return idna.decode(idna.encode(text)) == text
    except idna.IDNAError:
        return False


labels = st.text("abßs\u03c3ςüé\u0300אب東京-1\u200c", min_size=1, max_size=6)
unicode_domains = labels.map(lambda label: f"{label}.example").filter(is_domain)


@given(unicode_domains, unicode_domains)
def test_both_spellings_of_a_domain_are_equal_and_different_domains_are_not(one: str, other: str) -> None:
    ascii_spelling = idna.encode(one).decode()
    assert domain_key(one) == domain_key(ascii_spelling) == domain_key(f"{ascii_spelling.upper()}.")
    assert (domain_key(one) == domain_key(other)) is (one == other)


@given(st.text())
def test_what_is_no_domain_is_compared_as_text(text: str) -> None:
    assert domain_key(text) == domain_key(domain_key(text))


def project(**fields: Any) -> ops.CreateProject:
    return ops.CreateProject(organization_id="o", **fields)


def update(**fields: Any) -> ops.UpdateDashboard:
    """Return an update of a dashboard with these fields."""
    return ops.UpdateDashboard(project_id="1", dashboard_id=7, **fields)


@pytest.mark.parametrize(
    ("op", "got"),
    [
        (update(name="Cafe\u0301  Sales "), {"name": "Café Sales"}),
        (update(tags=["Weekly", "sales"]), {"tags": ["sales", "weekly"]}),
        (update(description=None), {"description": ""}),
        (update(description=""), {"description": None}),
        (update(tags=[]), {"tags": None}),
        (update(deleted=False), {"deleted": None}),
        (update(use_template="t", delete_insights=True), {"use_template": "", "delete_insights": False}),
        (update(name="Sales"), {}),
        (ops.UpdateDomain(organization_id="o", domain_id=ID, domain="Example.COM."), {"domain": "example.com"}),
        (ops.CreateInvite(organization_id="o", target_email="ada@faß.de"), {"target_email": "Ada@xn--fa-hia.de"}),
        (ops.CreateInvite(organization_id="o", target_email="Ada@Example.com"), {"target_email": "ada@example.com"}),
        (project(session_recording_sample_rate="0.50"), {"session_recording_sample_rate": 0.5}),
        (project(modifiers={"a": "1"}), {"modifiers": {"a": 1, "b": 2}}),
        (project(slack_incoming_webhook="https://h/s"), {"slack_incoming_webhook": "***"}),
        (ops.VerifyDomain(organization_id="o", domain_id=ID, domain="a.example.com"), {"domain": "b.example.com"}),
        (ops.PauseBatchExport(organization_id="o", batch_export_id=ID, name="Night"), {"paused": True, "name": "Day"}),
        (ops.GetDashboard(project_id="1", dashboard_id=7), {"name": "Sales"}),
    ],
    ids=str,
)
def test_equivalent_values_are_no_difference(op: Operation[Any], got: dict[str, Any]) -> None:
    """Other spellings, and fields that a response may leave out, are no differences."""
    assert differences(op, parse(op, {"id": 7} | got)) == []


@pytest.mark.parametrize(
    ("op", "got", "told"),
    [
        (ops.UpdateMember(organization_id="o", user_uuid=ID, level=8), {"level": 1}, "level is 1 and not 8"),
        (ops.UpdateMember(organization_id="o", user_uuid=ID, level=8), {"level": None}, "level is null and not 8"),
        (update(deleted=True), {"deleted": False}, "deleted is false and not true"),
        (
            AddProject(organization_id="o", name="Sales", timezone="UTC"),  # type: ignore[call-arg]
            {"name": "Sale", "timezone": "CET"},
            'name is "Sale" and not "Sales", timezone is "CET" and not "UTC"',
        ),
        (update(tags=["a"]), {"tags": ["a", "b"]}, 'tags is ["a", "b"] and not ["a"]'),
        (update(tags=["a"]), {"tags": None}, 'tags is null and not ["a"]'),
        (update(tags=[{"a": 1}]), {"tags": [{"a": 2}]}, 'tags is [{"a": 2}] and not [{"a": 1}]'),
        (update(name="Sales"), {"name": "sales"}, 'name is "sales" and not "Sales"'),
        (update(name="x" * 70, pinned=True), {"name": "", "pinned": False},
         f'name is "" and not "{"x" * 59}…, pinned is false and not true'),
        (project(modifiers={"a": 1, "token": "s3cret"}), {"modifiers": {"a": 2, "token": "s3cret"}},
         'modifiers is {"a": 2} and not {"a": 1}'),
        (ops.PauseBatchExport(**EXPORT), {"paused": False}, "paused is false and not true"),
        (ops.UnpauseBatchExport(**EXPORT), {"paused": True}, "paused is true and not false"),
    ],
    ids=str,
)  # fmt: skip
def test_differences_name_the_field_and_both_values(op: Operation[Any], got: dict[str, Any], told: str) -> None:
    """The message contains no secret."""
    assert describe_differences(differences(op, parse(op, {"id": 7} | got))) == told


def test_null_in_a_response_without_a_record_is_no_difference() -> None:
    """A service may return only nulls for an update."""
    assert differences(update(name="Sales"), Dashboard(name=None)) == []
    assert differences(update(name="Sales"), Dashboard(name="Other")) != []


def parse(op: Operation[Any], record: dict[str, Any]) -> Any:
    """Parse a response as the clients do."""
    if isinstance(op, ops.UpdateMember | ops.UpdateDomain | ops.CreateInvite | ops.VerifyDomain):
        record = record | {"id": ID}
    return decode(op.endpoint.result, json.dumps(record).encode())


@pytest.mark.parametrize(
    ("answer", "fields"),
    [
        ({"error": "the scheduler is down"}, ["error"]),
        ({"errors": [{"detail": "no"}], "success": False}, ["errors", "success"]),
        ({"ok": False}, ["ok"]),
        ({"ok": "False"}, ["ok"]),
        ({"Status": "FAILED"}, ["Status"]),
        ({"detail": "Not allowed"}, ["detail"]),
        ({"detail": "", "id": None}, []),
        ({"error": None, "errors": [], "success": True, "ok": 0, "status": "ok", "detail": "Unpaused."}, []),
        ({"id": ID, "status": "failed", "error": "last run"}, []),
    ],
)
def test_a_2xx_body_that_reports_a_failure_is_a_refusal(answer: dict[str, Any], fields: list[str]) -> None:
    unpause = ops.UnpauseBatchExport(organization_id="o", batch_export_id=ID)
    found = differences(unpause, decode(unpause.endpoint.result, json.dumps(answer).encode()))
    assert [row["field"] for row in found] == fields
    create = ops.CreateProject(organization_id="o", name="Sales")
    assert differences(create, decode(create.endpoint.result, json.dumps(answer).encode())) == []
