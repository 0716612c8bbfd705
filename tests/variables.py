"""Airflow Variables in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import airflow.sdk

if TYPE_CHECKING:
    import pytest


class Variables:
    """Airflow Variables in memory; before Airflow 3.3 without ``keys``."""

    def __init__(self) -> None:
        self.values: dict[str, str] = {}

    def get(self, key: str, default: Any = None) -> Any:
        return self.values.get(key, default)

    def set(self, key: str, value: str, description: str | None = None) -> None:
        assert isinstance(value, str)
        assert description != ""
        self.values[key] = value

    def delete(self, key: str) -> None:
        self.values.pop(key, None)


def install(monkeypatch: pytest.MonkeyPatch, *, release: str = "3.3") -> Variables:
    """Replace Airflow's Variables."""
    variables: Any = Variables()
    if release >= "3.3":
        variables.keys = lambda prefix: [key for key in list(variables.values) if key.startswith(prefix)]
    monkeypatch.setattr(airflow.sdk, "Variable", variables)
    installed: Variables = variables
    return installed
