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
                "python-modules": [
                    f"{PACKAGE}.operators.{resource}" for resource in (*RESOURCES, "windows", "window_closing")
                ],
            }
        ],
        "sensors": [
            {
                "integration-name": "Workspace",
                "python-modules": [f"{PACKAGE}.sensors.workspace"],
            }
        ],
        "triggers": [
            {
                "integration-name": "Workspace",
                "python-modules": [f"{PACKAGE}.triggers.{name}" for name in ("deadline", "workspace")],
            }
        ],
        "cli": [f"{PACKAGE}.cli.definition.get_workspace_commands"],
        "extra-links": [f"{PACKAGE}.links.WorkspaceLink"],
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
                "conn-fields": CONNECTION_FIELDS,
            }
        ],
    }


# The extra, as the connection form shows it; client/settings.py checks it. A test holds names and bounds equal.
CONNECTION_FIELDS: dict[str, dict[str, Any]] = {
    "organization_id": {
        "label": "Organization",
        "description": "Id of the organization that is meant where a task names none. Testing the connection needs it.",
        "schema": {"type": ["string", "null"]},
    },
    "project_id": {
        "label": "Project",
        "description": "Number of the project that is meant where a task names none.",
        "schema": {"type": ["string", "null"]},
    },
    "connect_timeout": {
        "label": "Connect timeout (seconds)",
        "description": "How long it may take until the service is reached. From 0.01 to 600.",
        "schema": {"type": ["number", "null"], "default": 10, "minimum": 0.01, "maximum": 600},
    },
    "read_timeout": {
        "label": "Read timeout (seconds)",
        "description": "Silence of the service after which an answer is given up. From 0.01 to 3600.",
        "schema": {"type": ["number", "null"], "default": 60, "minimum": 0.01, "maximum": 3600},
    },
    "max_attempts": {
        "label": "Attempts",
        "description": "How often a request is sent at most, where sending it again is safe. From 1 to 20.",
        "schema": {"type": ["integer", "null"], "default": 5, "minimum": 1, "maximum": 20},
    },
    "max_retry_wait": {
        "label": "Longest wait (seconds)",
        "description": "Longest wait between two attempts; asked for more, the request fails. From 0 to 3600.",
        "schema": {"type": ["number", "null"], "default": 60, "minimum": 0, "maximum": 3600},
    },
    "page_size": {
        "label": "Page size",
        "description": "Rows asked for per page of a list. From 1 to 10000.",
        "schema": {"type": ["integer", "null"], "default": 100, "minimum": 1, "maximum": 10_000},
    },
    "max_concurrency": {
        "label": "Requests at once",
        "description": "How many requests one task has under way at once; bulk invites make use of it. From 1 to 100.",
        "schema": {"type": ["integer", "null"], "default": 4, "minimum": 1, "maximum": 100},
    },
    "bulk_invite_limit": {
        "label": "Invites per request",
        "description": "How many invites one bulk request carries at most. From 1 to 10000.",
        "schema": {"type": ["integer", "null"], "default": 20, "minimum": 1, "maximum": 10_000},
    },
    "bulk_invite_body": {
        "label": "Body of bulk invites",
        "description": "What the service reads. With one object, each request carries one invite.",
        "schema": {
            "type": ["string", "null"],
            "default": "array",
            "enum": ["array", "object"],
            "values_display": {"array": "array of invites", "object": "one object"},
        },
    },
    "verify": {
        "label": "Check TLS certificates",
        "description": "true, false, or the path of a file or folder with the certificate authorities to trust.",
        "schema": {"type": ["string", "null"], "default": "true"},
    },
    "proxy": {
        "label": "Proxy",
        "description": "Such as http://proxy.example.com:3128. If empty, the environment counts.",
        "schema": {"type": ["string", "null"]},
    },
    "web_url": {
        "label": "Web address",
        "description": "Where people open the workspace in a browser. Tasks link there to what they made.",
        "schema": {"type": ["string", "null"]},
    },
    "allow_http": {
        "label": "Allow plain http://",
        "description": "Send the API key unencrypted to another machine. Off: only to this one.",
        "schema": {"type": ["boolean", "null"], "default": False},
    },
}
