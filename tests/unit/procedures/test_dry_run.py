"""What a dry run returns if nothing is to be written."""

from __future__ import annotations

from airflow_provider_workspace.procedures.dry_run import plan_of


def test_a_record_that_exists_is_skipped_with_its_id_if_it_has_one() -> None:
    skipped = {"dry_run": True, "action": "skip", "why": "it exists already"}
    assert plan_of({"id": 3}, return_secrets=False) == {**skipped, "found": {"id": 3}, "id": 3}
    assert plan_of({"name": "x"}, return_secrets=False) == {**skipped, "found": {"name": "x"}}
