"""What Airflow is told of this provider. Imports nothing, for every Airflow process reads it."""

from __future__ import annotations

from typing import Any

PACKAGE = "airflow_provider_workspace"
RESOURCES = ("batch_exports", "dashboards", "domains", "invites", "members", "projects")


def get_provider_info() -> dict[str, Any]:
    """Return the metadata, after the schema ``provider.yaml.schema.json`` of Airflow."""
    return {
        "package-name": "airflow-provider-workspace",
        "name": "Workspace",
        "description": "Dashboards, batch exports, domains, invites, members and projects of analytics workspaces.",
        "integrations": [
            {
                "integration-name": "Workspace",
                "external-doc-url": "https://example.com/workspace",
                "tags": ["service"],
            }
        ],
        "hooks": [{"integration-name": "Workspace", "python-modules": [f"{PACKAGE}.hooks.workspace"]}],
        "operators": [
            {
                "integration-name": "Workspace",
                "python-modules": [f"{PACKAGE}.operators.{resource}" for resource in (*RESOURCES, "windows")],
            }
        ],
        "sensors": [
            {
                "integration-name": "Workspace",
                "python-modules": [
                    f"{PACKAGE}.sensors.{resource}" for resource in ("domains", "invites", "members", "projects")
                ],
            }
        ],
        "triggers": [
            {
                "integration-name": "Workspace",
                "python-modules": [f"{PACKAGE}.triggers.{module}" for module in ("arrivals", "waiting", "windows")],
            }
        ],
        "extra-links": [f"{PACKAGE}.links.WorkspaceLink"],
        "connection-types": [
            {
                "connection-type": "workspace",
                "hook-class-name": f"{PACKAGE}.hooks.workspace.WorkspaceHook",
                "hook-name": "Workspace",
                "ui-field-behaviour": {
                    "hidden-fields": ["login", "schema", "port"],
                    "relabeling": {"host": "Base URL", "password": "Personal API key"},
                    "placeholders": {"host": "https://workspace.example.com"},
                },
                "conn-fields": CONNECTION_FIELDS,
            }
        ],
    }


# The extra, as the connection form shows it; client/settings.py checks it. A test holds names and bounds equal.
CONNECTION_FIELDS: dict[str, dict[str, Any]] = {
    "organization_id": {
        "label": "Organization",
        "description": "Organization that is meant where a task names none.",
        "schema": {"type": ["string", "null"]},
    },
    "project_id": {
        "label": "Project",
        "description": "Project that is meant where a task names none.",
        "schema": {"type": ["string", "null"]},
    },
    "connect_timeout": {
        "label": "Connect timeout",
        "description": "Seconds until a connection must stand.",
        "schema": {"type": ["number", "null"], "default": 10, "minimum": 0.01, "maximum": 600},
    },
    "read_timeout": {
        "label": "Read timeout",
        "description": "Seconds of silence after which an answer is given up.",
        "schema": {"type": ["number", "null"], "default": 60, "minimum": 0.01, "maximum": 3600},
    },
    "max_attempts": {
        "label": "Attempts",
        "description": "How often a request is sent at most, where sending it again is safe.",
        "schema": {"type": ["integer", "null"], "default": 5, "minimum": 1, "maximum": 20},
    },
    "max_retry_wait": {
        "label": "Longest wait",
        "description": "Longest wait between two attempts in seconds; a service that asks for more gets an error.",
        "schema": {"type": ["number", "null"], "default": 60, "minimum": 0, "maximum": 3600},
    },
    "page_size": {
        "label": "Page size",
        "description": "Rows asked for per page of a list.",
        "schema": {"type": ["integer", "null"], "default": 100, "minimum": 1, "maximum": 10_000},
    },
    "bulk_invite_limit": {
        "label": "Invites per request",
        "description": "How many invites one bulk request carries at most.",
        "schema": {"type": ["integer", "null"], "default": 20, "minimum": 1, "maximum": 10_000},
    },
    "bulk_invite_body": {
        "label": "Body of bulk invites",
        "description": "What the service reads: an array of invites, or one object per request.",
        "schema": {"type": ["string", "null"], "default": "array", "enum": ["array", "object"]},
    },
    "verify": {
        "label": "Check TLS certificates",
        "description": "true, false, or the path of a file with the certificate authorities to trust.",
        "schema": {"type": ["string", "null"], "default": "true"},
    },
    "proxy": {
        "label": "Proxy",
        "description": "URL of a proxy; where there is none, that of the environment is used.",
        "schema": {"type": ["string", "null"]},
    },
    "web_url": {
        "label": "Web address",
        "description": "Where people open the workspace in a browser; tasks link to what they made there.",
        "schema": {"type": ["string", "null"]},
    },
    "allow_http": {
        "label": "Allow plain http://",
        "description": "Send the API key unencrypted to a host that is not this machine.",
        "schema": {"type": ["boolean", "null"], "default": False},
    },
}
