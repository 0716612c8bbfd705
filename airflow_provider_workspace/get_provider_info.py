"""The provider metadata for Airflow; every Airflow process reads it, so it imports nothing but the standard library."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

PACKAGE = "airflow_provider_workspace"
OTHER_MODULES = (
    "access",
    "access_review",
    "organization",
    "windows",
    "window_closing",
    "sweep",
    "send",
    "contract",
    "catch_up",
)
RESOURCES = ("batch_exports", "dashboards", "domains", "invites", "members", "projects")


def get_provider_info() -> dict[str, Any]:
    """Return the metadata according to Airflow's ``provider.yaml.schema.json``."""
    operator_modules = [f"{PACKAGE}.operators.{name}" for name in (*RESOURCES, *OTHER_MODULES)]
    trigger_modules = [f"{PACKAGE}.triggers.{name}" for name in ("deadline", "workspace")]
    # The extra; dev/make_connection.py writes it from the fields of client/settings.py.
    form = Path(__file__).with_name("connection_form.json")
    fields_of_extra = json.loads(form.read_text(encoding="utf-8"))
    return {
        "package-name": "airflow-provider-workspace",
        "name": "Workspace",
        "description": "Dashboards, batch exports, domains, invites, members and projects of analytics workspaces.",
        "integrations": [
            {"integration-name": "Workspace", "external-doc-url": "https://example.com/workspace", "tags": ["service"]}
        ],
        "hooks": [{"integration-name": "Workspace", "python-modules": [f"{PACKAGE}.hooks.workspace"]}],
        "operators": [{"integration-name": "Workspace", "python-modules": operator_modules}],
        "sensors": [{"integration-name": "Workspace", "python-modules": [f"{PACKAGE}.sensors.workspace"]}],
        "triggers": [{"integration-name": "Workspace", "python-modules": trigger_modules}],
        "cli": [f"{PACKAGE}.cli.definition.get_workspace_commands"],
        "extra-links": [f"{PACKAGE}.links.WorkspaceLink"],
        "config": {
            "workspace": {
                "description": "Settings of the provider for the workspace administration service.",
                "options": {
                    "status_page": {
                        "description": "Whether the Airflow UI shows the status page, under Browse.",
                        "version_added": "0.1.0",
                        "type": "boolean",
                        "example": None,
                        "default": "True",
                    }
                },
            }
        },
        "connection-types": [
            {
                "connection-type": "workspace",
                "hook-class-name": f"{PACKAGE}.hooks.workspace.WorkspaceHook",
                "hook-name": "Workspace",
                "ui-field-behaviour": {
                    # The port stays: Airflow 3.3.1 and 3.3.2 refuse to test a connection that has none.
                    "hidden-fields": ["login", "schema"],
                    "relabeling": {"host": "Base URL", "password": "Personal API key"},
                    "placeholders": {
                        "host": "https://workspace.example.com",
                        "port": "443, where the base URL names none",
                        "password": "the key whose scopes the tasks need",
                    },
                },
                "conn-fields": fields_of_extra,
            }
        ],
    }
