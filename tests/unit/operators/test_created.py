"""The XComs ``created`` and ``not_applied`` of operators that create."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_workspace.operators.dashboards import (
    WorkspaceAddDashboardCollaboratorOperator,
    WorkspaceCreateDashboardOperator,
)
from airflow_provider_workspace.operators.domains import WorkspaceCreateDomainOperator
from airflow_provider_workspace.operators.invites import WorkspaceCreateInviteOperator
from airflow_provider_workspace.operators.organization import WorkspacePlanOrganizationOperator
from airflow_provider_workspace.operators.projects import WorkspaceCreateProjectOperator, WorkspaceGetProjectOperator
from airflow_provider_workspace.sandbox.seed import SEED
from airflow_provider_workspace.version_compat import AirflowFailException
from tests.task_instance import TaskInstance
from tests.variables import Variables, install

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect

pytestmark = pytest.mark.filterwarnings("ignore:.*execute cannot be called outside of the Task Runner")


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> Variables:
    """Airflow Variables in memory."""
    return install(monkeypatch)


@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        (WorkspaceCreateProjectOperator, {"name": "Northwind"}),
        (WorkspaceCreateDomainOperator, {"domain": "northwind.example.com"}),
        (WorkspaceCreateInviteOperator, {"target_email": "ada@example.com"}),
        (WorkspaceCreateDashboardOperator, {"name": "Sales", "variable_key": "sales"}),
        (WorkspaceAddDashboardCollaboratorOperator, {"dashboard_id": 1, "user_uuid": SEED.member_uuid}),
    ],
)
def test_xcom_created_is_true_only_for_the_first_create(
    connect: Connect, operator: type[Any], arguments: dict[str, Any]
) -> None:
    connect()
    pushed = []
    for _ in range(2):
        ti = TaskInstance()
        result = operator(task_id="task", **arguments).execute({"ti": ti})
        pushed.append(ti.xcoms)
        assert ti.xcoms["id"] == result["id"]
    assert [xcoms["created"] for xcoms in pushed] == [True, False]


def test_other_operators_push_no_xcom_created(connect: Connect) -> None:
    connect()
    ti = TaskInstance()
    WorkspaceGetProjectOperator(task_id="task", project_id=1).execute({"ti": ti})
    assert ti.xcoms == {"id": 1}


def test_xcom_not_applied_lists_fields_with_other_values(
    sandbox: SandboxServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    """The create succeeds, and so does reusing a record that differs."""
    connect()

    def not_applied(**arguments: Any) -> Any:
        ti = TaskInstance()
        WorkspaceAddDashboardCollaboratorOperator(
            task_id="add", dashboard_id=1, user_uuid=SEED.member_uuid, **arguments
        ).execute({"ti": ti})  # type: ignore[typeddict-item]
        return ti.xcoms.get("not_applied")

    sandbox.inject("said_otherwise", "add_dashboard_collaborator", how="other_answer")
    row = not_applied(level=37)[-1]
    assert (row["field"], row["asked"], row["got"] != 37) == ("level", 37, True)
    assert "AddDashboardCollaborator was applied with differences: " in caplog.text
    assert not_applied(level="37") is None
    assert not_applied() is None
    assert not_applied(level=21) == [{"field": "level", "asked": 21, "got": 37}]


def test_a_service_that_cuts_names_gets_one_project_in_all_runs(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    name = "Northwind-" * 10
    sandbox.inject("said_otherwise", "create_project", how="normalized", times=None)
    for _ in range(3):
        with pytest.raises(AirflowFailException, match=r"^WorkspaceNotAppliedError: Set name='Northwind-"):
            WorkspaceCreateProjectOperator(task_id="t", name=name, do_xcom_push=False).execute({})
    with pytest.raises(AirflowFailException, match=r"Set name='North.* the first 60 characters of this one \(100\)"):
        WorkspacePlanOrganizationOperator(task_id="p", file={"projects": [{"name": name}]}).execute({})
    assert len(sandbox.audit("create_project")) == 1
    WorkspaceCreateProjectOperator(task_id="t", name=f"Other {name}"[:60], do_xcom_push=False).execute({})
    assert len(sandbox.audit("create_project")) == 2


def test_a_name_that_begins_like_another_is_created(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    for name in ("Northwind", "Northwind Europe", "N" * 80, "N" * 61, f"{'N' * 61} 2"):
        WorkspaceCreateProjectOperator(task_id="t", name=name, do_xcom_push=False).execute({})
    assert len(sandbox.audit("create_project")) == 5
