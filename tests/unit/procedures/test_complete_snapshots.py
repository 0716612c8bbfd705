"""Tests for snapshots of lists that are known to be short."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from airflow_provider_workspace.errors import WorkspaceIncompleteListError
from airflow_provider_workspace.hooks.workspace import WorkspaceHook
from airflow_provider_workspace.procedures.snapshot import take_snapshot
from airflow_provider_workspace.sandbox.seed import SEED
from tests.audit import say

if TYPE_CHECKING:
    from airflow_provider_workspace.sandbox.server import SandboxServer
    from tests.conftest import Connect


@pytest.mark.usefixtures("no_waits")
def test_a_list_that_is_short_fails_only_if_it_must_be_complete(sandbox: SandboxServer, connect: Connect) -> None:
    connect()
    say(sandbox, "list_domains", count=1)
    with WorkspaceHook() as hook:
        assert take_snapshot(hook.client, "domains", SEED.organization_id).incomplete
        with pytest.raises(WorkspaceIncompleteListError):
            take_snapshot(hook.client, "domains", SEED.organization_id, complete=True)
