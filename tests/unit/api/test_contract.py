"""Operations compared with OpenAPI documents: each finding, and documents of any shape."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_workspace.api.contract import STATES, Contract, Report
from airflow_provider_workspace.api.operations import OPERATIONS
from airflow_provider_workspace.errors import WorkspaceInputError
from tests.endpoints import ListBatchExports

ROOT = Path(__file__).resolve().parents[3]
NAMED = {cls.__name__: cls for cls in OPERATIONS}
DOMAINS = "/api/organizations/{organization_id}/domains/"
OTHERS_OF_DOMAIN = "jit_provisioning_enabled, saml_x509_cert"


def compare(text: str, paths: dict[str, str] | None = None) -> Report:
    return Contract(text).compare({**NAMED, "mine.ListBatchExports": ListBatchExports}, paths or {})


def described(schema: Any) -> str:
    """Return a document with the schema of the body that creates a domain."""
    body = {"content": {"application/json": {"schema": schema}}}
    return json.dumps({"openapi": "3.1.0", "paths": {DOMAINS: {"post": {"requestBody": body}}}})


def line_of(report: Report, operation: str) -> str:
    """Return the line of an operation from its closing bracket on."""
    (finding,) = [finding for finding in report.findings if finding.operation == operation]
    line = finding.line()
    assert line.startswith(f"{finding.state}: {operation} ({finding.request})")
    return finding.state + line.partition(")")[2]


SERVICE = (ROOT / "tests" / "data" / "service.yaml").read_text()


@pytest.mark.parametrize(
    ("operation", "line"),
    [
        ("PauseBatchExport", "moved: the document has /api/projects/{id}/batch_exports/{pk}/pause/"),
        (
            "UnpauseBatchExport",
            "moved: the document has /api/environments/{project_id}/batch_exports/{batch_export_id}/unpause/",
        ),
        ("ListDomains", "there"),
        ("CreateDomain", f"fields: its body does not know {OTHERS_OF_DOMAIN}"),
        (
            "GetDomain",
            "deprecated: deprecated until 2027-03-01; the document has /api/v2/organizations/{org}/domains/{id}/",
        ),
        ("UpdateDomain", f"deprecated: deprecated without a date; its body does not know {OTHERS_OF_DOMAIN}"),
        ("DeleteDomain", "deprecated: deprecated until 2027-06-30"),
        ("VerifyDomain", "unreadable: the document does not describe its path"),
        ("ListInvites", "unreadable: the document does not describe it"),
        ("CreateInvite", "unreadable: the document does not describe its body"),
        ("CreateInvites", "there"),
        ("DeleteInvite", "gone: the path has only PUT"),
        ("CreateProject", "there: the document does not describe its body"),
        ("GetProject", "gone: not in the document"),
        ("mine.ListBatchExports", "gone: not in the document"),
    ],
)
def test_each_operation_has_its_finding(operation: str, line: str) -> None:
    assert line_of(compare(SERVICE), operation) == line


def test_the_worst_comes_first_and_the_summary_counts() -> None:
    report = compare(SERVICE)
    states = [finding.state for finding in report.findings]
    assert states == sorted(states, key=STATES.index)
    assert set(states) == set(STATES)
    assert report.summary() == "28 operations: 16 gone, 2 moved, 3 unreadable, 3 deprecated, 1 fields, 3 there."
    assert report.breaks


def test_a_path_of_the_connection_counts() -> None:
    moved = {"PauseBatchExport": "/api/projects/{project_id}/batch_exports/{batch_export_id}/pause"}
    assert line_of(compare(SERVICE, moved), "PauseBatchExport") == "there: the document does not describe its body"


def test_a_path_of_a_prefix_alone_has_not_moved_to_another_kind() -> None:
    report = compare(SERVICE, {"GetProject": "/api/projects/{project_id}/"})
    assert line_of(report, "GetProject") == "gone: not in the document"


def test_a_path_that_is_not_described_may_be_the_successor() -> None:
    document = {"openapi": "3.0.0", "paths": {"/v2" + DOMAINS.removeprefix("/api"): {"get": None}}}
    successor = "/v2/organizations/{organization_id}/domains/"
    assert line_of(compare(json.dumps(document)), "ListDomains") == f"moved: the document has {successor}"


def test_the_document_of_the_example_has_every_operation() -> None:
    text = (ROOT / "example_dags" / "data" / "openapi.yaml").read_text()
    report = Contract(text).compare(NAMED, {})
    assert not report.breaks
    assert report.summary() == "27 operations: 27 there."
    assert report.to_dict()["operations"][0]["unknown_fields"] == ()


@pytest.mark.parametrize(
    ("schema", "state"),
    [
        ({"$ref": "#/nowhere"}, "unreadable"),
        ({"$ref": "other.json#/Domain"}, "unreadable"),
        ({"$ref": 1}, "unreadable"),
        ({"allOf": "odd"}, "unreadable"),
        ({"properties": "odd"}, "unreadable"),
        ({"additionalProperties": {}, "properties": {"a": {}}}, "unreadable"),
        ({"$ref": "#/paths/~1api~1organizations~1%7Borganization_id%7D~1domains~1/post/requestBody"}, "unreadable"),
        ({"properties": {"a": {}}}, "fields"),
    ],
)
def test_a_body_that_is_not_described_is_never_fine(schema: Any, state: str) -> None:
    report = compare(described(schema))
    assert line_of(report, "CreateDomain").startswith(state)


def test_a_reference_that_leads_to_itself_ends() -> None:
    item = {"$ref": "#/paths/~1api~1organizations~1{organization_id}~1domains~1"}
    document = {"openapi": "3.0.0", "paths": {DOMAINS: item}}
    assert line_of(compare(json.dumps(document)), "ListDomains").startswith("unreadable")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "it has no 'openapi' or no 'paths'"),
        ('{"swagger": "2.0", "paths": {}}', "it has no 'openapi' or no 'paths'"),
        ('{"openapi": "3.0.0", "paths": []}', "it has no 'openapi' or no 'paths'"),
        ('{"openapi": "3.0.0", "paths": {}}', "it has none of the 28 operations"),
        ('{"openapi": "3.0.0", "paths": {"/api/pets/": {"get": {}}}}', "it has none of the 28 operations"),
        ("a: [", "in JSON or YAML: "),
        ("a: \x00", "in JSON or YAML: "),
        ("&a [*a]", "in JSON or YAML: "),
        ("? [a]\n: b", "in JSON or YAML: "),
        ("[" * 900, "more than 200 levels of nesting"),
        ("[" * 100_000, "nesting"),  # from PyYAML 6.0.4 on, its parser refuses more than 1,000 by itself
        ("- " * 5_000, "more than 200 levels of nesting"),
    ],
)
def test_what_is_no_contract_is_refused(text: str, message: str) -> None:
    with pytest.raises(WorkspaceInputError, match=r"Pass an OpenAPI 3|Check that the document") as error:
        compare(text)
    assert message in str(error.value)


KEYS = st.sampled_from(
    (
        *("$ref", "allOf", "items", "properties", "schema", "content", "application/json", "requestBody", "post"),
        *("get", "deprecated", "x-sunset", "description", "additionalProperties", "readOnly", DOMAINS, "paths"),
    )
)
LEAVES = st.none() | st.booleans() | st.integers() | st.text() | st.sampled_from(["#/paths", "#/", "#/paths/x", "true"])
ODD = st.recursive(LEAVES, lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=4))


@given(item=ODD, body=ODD, schema=ODD)
def test_no_shape_of_a_document_is_an_exception(item: Any, body: Any, schema: Any) -> None:
    post = {"requestBody": {"content": {"application/json": {"schema": schema}}}}
    domain = {"post": {"requestBody": body}, "patch": body}
    paths = {DOMAINS: {"get": item, **post, "post": post}, DOMAINS + "{id}/": domain, "/": item}
    try:
        report = compare(json.dumps({"openapi": "3.0.0", "paths": paths, "x": item}))
    except WorkspaceInputError:
        return
    assert len(report.findings) == 28
    assert all(finding.line().isprintable() for finding in report.findings)
