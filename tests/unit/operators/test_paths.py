"""Paths of rosters, reports and organization files: one rule for all."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import ObjectStoragePath

from airflow_provider_workspace.operators.invites import WorkspaceCreateInvitesOperator
from airflow_provider_workspace.operators.members import WorkspaceSyncMembersOperator
from airflow_provider_workspace.operators.organization import (
    WorkspaceApplyOrganizationOperator,
    WorkspacePlanOrganizationOperator,
)
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.audit import effects
from tests.classes import OPERATORS
from tests.task_instance import TaskInstance

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer

pytestmark = pytest.mark.usefixtures("no_waits")
# Each argument with a path, with the other arguments of its operator.
READ: list[tuple[Any, str, dict[str, Any]]] = [
    (WorkspaceCreateInvitesOperator, "path", {}),
    (WorkspaceSyncMembersOperator, "path", {"protected": [], "max_removals": 9, "dry_run": True}),
    (WorkspaceSyncMembersOperator, "leavers_path", {"protected": [], "dry_run": True}),
    (WorkspacePlanOrganizationOperator, "file", {}),
    (WorkspaceApplyOrganizationOperator, "file", {"part": "members"}),
]
WRITTEN: list[tuple[Any, str, dict[str, Any]]] = [
    (WorkspaceCreateInvitesOperator, "report_path", {"invites": ["ada@example.com"]}),
    (WorkspaceSyncMembersOperator, "report_path", {"leavers": ["joe@example.com"], "protected": []}),
]


def execute(cls: Any, folder: Path, **arguments: Any) -> Any:
    """Run a task of a Dag whose file is in a folder."""
    return cls(task_id="task", **arguments).execute({"dag": SimpleNamespace(folder=str(folder))})


@pytest.mark.parametrize(("cls", "name", "arguments"), READ)
@pytest.mark.parametrize("form", ["{}", "./{}", "{folder}/{}", "file://{folder}/{}", Path, ObjectStoragePath])
def test_a_relative_path_begins_at_the_dag_file(
    cls: Any, name: str, arguments: dict[str, Any], form: Any, sandbox: SandboxServer, tmp_path: Path
) -> None:
    file = tmp_path / ("northwind.yaml" if name == "file" else "roster.csv")
    (tmp_path / "roster.csv").write_text("email\nada@example.com\n")
    (tmp_path / "northwind.yaml").write_text("members: {roster: roster.csv}")
    path = (
        form.format(file.name, folder=tmp_path)
        if isinstance(form, str)
        else Path(file.name)
        if form is Path
        else form(f"file://{file}")
    )
    execute(cls, tmp_path, **{name: path}, **arguments)
    assert set(effects(sandbox)) <= {"create_invite"}


@pytest.mark.parametrize("above", [{}, {"organizations": {"south": {}}}])
def test_a_roster_in_a_mapping_begins_at_the_dag_file(above: Any, sandbox: SandboxServer, tmp_path: Path) -> None:
    (tmp_path / "roster.csv").write_text("email\nada@example.com\n")
    (above.get("organizations", {}).get("south", above))["members"] = {"roster": "roster.csv"}
    execute(WorkspaceApplyOrganizationOperator, tmp_path, file=above, part="members")
    assert effects(sandbox) == ["create_invite"]


@pytest.mark.parametrize(("cls", "name", "arguments"), READ)
def test_the_error_names_the_whole_path(cls: Any, name: str, arguments: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(AirflowFailException, match=f"There is no file '{tmp_path}/data/none.csv' on this worker"):
        execute(cls, tmp_path, **{name: "data/none.csv"}, **arguments)


@pytest.mark.parametrize(("cls", "name", "arguments"), WRITTEN)
@pytest.mark.parametrize("form", ["{}", "{folder}/{}"])
def test_a_report_lies_beside_the_dag_file(
    cls: Any, name: str, arguments: dict[str, Any], form: str, tmp_path: Path
) -> None:
    path = form.format("report.csv", folder=tmp_path)
    assert execute(cls, tmp_path, **{name: path}, **arguments)["report_path"] == f"{tmp_path}/report.csv"
    assert (tmp_path / "report.csv").read_text().count("\n") >= 1
    with pytest.raises(AirflowFailException, match=f"The report '{tmp_path}/none/report.csv' cannot be written: No"):
        execute(cls, tmp_path, **{name: "none/report.csv"}, **arguments)


@pytest.mark.parametrize(("cls", "name", "arguments"), WRITTEN)
def test_a_report_is_not_written_into_a_checkout(
    cls: Any, name: str, arguments: dict[str, Any], sandbox: SandboxServer, tmp_path: Path
) -> None:
    """A versioned bundle has one on each worker, and Airflow deletes it."""
    bundle = SimpleNamespace(supports_versioning=True, path=tmp_path / "versions" / "1")
    context: Any = {"dag": SimpleNamespace(folder=str(bundle.path / "dags")), "ti": TaskInstance()}
    context["ti"].bundle_instance = bundle
    for path in ("report.csv", f"{bundle.path}/report.csv"):
        with pytest.raises(
            AirflowFailException, match=r"report_path is in a checkout .* Set it to the URL of an object store"
        ):
            cls(task_id="task", **{name: path}, **arguments).execute(context)
    assert sandbox.requests() == []
    assert cls(task_id="task", **{name: f"{tmp_path}/report.csv"}, **arguments).execute(context)["report_path"]


def test_every_path_follows_the_rule() -> None:
    names = {name for cls in OPERATORS for name in cls.template_fields}
    tried = {name for _, name, _ in (*READ, *WRITTEN)}
    assert {name for name in names if name.split("_")[-1] in ("file", "path")} == tried
