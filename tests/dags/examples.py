"""The example Dags and the changes that they make."""

from __future__ import annotations

from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "example_dags"
ONBOARDED = {
    "create_project": 1,
    "create_domain": 1,
    "verify_domain": 1,
    "update_domain": 1,
    "create_invite": 150,
    "create_dashboard": 3,
    "add_dashboard_collaborator": 3,
}
EFFECTS: dict[str, dict[str, int]] = {
    "onboard_organization": ONBOARDED,
    "check_organization": {},
    "maintenance_window": {"pause_batch_export": 2, "unpause_batch_export": 2},
    "event_driven_onboarding": {},
    "access_audit": {},
    "onboard_organizations": {"create_project": 2, "create_invite": 3},
    "fixed_window": {"pause_batch_export": 2, "unpause_batch_export": 2},
    "overlapping_windows": {"pause_batch_export": 1, "unpause_batch_export": 1},
    "windows_of_organizations": {"pause_batch_export": 2, "unpause_batch_export": 2},
    "complete_export": {"pause_batch_export": 1, "unpause_batch_export": 1},
    "own_endpoint": {"pause_batch_export": 3, "unpause_batch_export": 3},
    "workspace_sweep": {},
    "offboard_members": {"delete_member": 1},
    "sync_members": {"delete_member": 1, "update_member": 1, "create_invite": 1},
    "grant_access": {"update_member": 1},
    "quarterly_access_review": {},
    "check_contract": {},
    "people_from_warehouse": {"delete_member": 1, "update_member": 1, "create_invite": 1, "delete_invite": 1},
}


def folder_of(home: Path, dag_id: str) -> Path:
    """Return a folder with one example, because Airflow parses the whole folder twice in each run."""
    folder = home / dag_id
    if not folder.exists():
        folder.mkdir()
        for name in (f"{dag_id}.py", "data"):
            (folder / name).symlink_to(EXAMPLES / name)
    return folder
