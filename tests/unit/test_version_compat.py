"""Replacements for what older Airflow releases lack."""

from __future__ import annotations

import asyncio
import runpy
from uuid import uuid4

import pytest
from airflow.sdk._shared.secrets_masker import redact

from airflow_provider_workspace import version_compat


@pytest.mark.parametrize("older", [False, True])
def test_secrets_are_masked_from_the_event_loop(older: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: FBT001
    if older:
        monkeypatch.delattr("airflow.sdk.log.amask_secret", raising=False)
    mask = runpy.run_path(version_compat.__file__)["amask_secret"]
    secret = f"secret-{uuid4()}"
    asyncio.run(mask(secret))
    assert redact(f"the {secret}") == "the ***"
