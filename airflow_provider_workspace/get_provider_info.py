"""The provider metadata for Airflow; every Airflow process reads it, so it imports nothing."""

from __future__ import annotations

from typing import Any

PACKAGE = "airflow_provider_workspace"
RESOURCES = ("batch_exports", "dashboards", "domains", "invites", "members", "projects")


def get_provider_info() -> dict[str, Any]:
    """Return the metadata according to Airflow's ``provider.yaml.schema.json``."""
    return {
        "package-name": "airflow-provider-workspace",
        "name": "Workspace",
        "description": "Dashboards, batch exports, domains, invites, members and projects of analytics workspaces.",
        "integrations": [
            {"integration-name": "Workspace", "external-doc-url": "https://example.com/workspace", "tags": ["service"]}
        ],
        "hooks": [{"integration-name": "Workspace", "python-modules": [f"{PACKAGE}.hooks.workspace"]}],
        "operators": [
            {
                "integration-name": "Workspace",
                "python-modules": [
                    f"{PACKAGE}.operators.{resource}"
                    for resource in (*RESOURCES, "organization", "windows", "window_closing")
                ],
            }
        ],
        "sensors": [{"integration-name": "Workspace", "python-modules": [f"{PACKAGE}.sensors.workspace"]}],
        "triggers": [
            {
                "integration-name": "Workspace",
                "python-modules": [f"{PACKAGE}.triggers.{name}" for name in ("deadline", "workspace")],
            }
        ],
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
                "conn-fields": CONNECTION_FIELDS,
            }
        ],
    }


# The extra, as the connection form shows it. It follows from the fields of client/settings.py.
# Start of what dev/make_connection.py writes
CONNECTION_FIELDS: dict[str, dict[str, Any]] = {
    "organization_id": {
        "label": "Organization",
        "description": "Organization id for tasks that do not set one. Required to test the connection.",
        "schema": {"type": ["string", "null"]},
    },
    "project_id": {
        "label": "Project",
        "description": "Project id for tasks that do not set one.",
        "schema": {"type": ["string", "null"]},
    },
    "connect_timeout": {
        "label": "Connect timeout",
        "description": "Connect timeout in seconds. From 0.01 to 600.",
        "schema": {"type": ["number", "null"], "default": 10, "minimum": 0.01, "maximum": 600},
    },
    "read_timeout": {
        "label": "Read timeout",
        "description": "Read timeout in seconds: the longest wait for the next part of a response. From 0.01 to 3600.",
        "schema": {"type": ["number", "null"], "default": 60, "minimum": 0.01, "maximum": 3600},
    },
    "total_timeout": {
        "label": "Total timeout",
        "description": (
            "Longest time of one attempt in seconds, from connecting to the last byte of the response. Default: 10 "
            "times the read timeout. From 0.01 to 36000."
        ),
        "schema": {"type": ["number", "null"], "minimum": 0.01, "maximum": 36000},
    },
    "max_response_bytes": {
        "label": "Maximum response size",
        "description": (
            "Largest response in bytes, before and after decompression; a larger one is an error. From 1000 to "
            "10000000000."
        ),
        "schema": {"type": ["integer", "null"], "default": 64000000, "minimum": 1000, "maximum": 10000000000},
    },
    "consistency_time": {
        "label": "Consistency time",
        "description": (
            "How long after a request the service may still apply it and its lists may still miss it, in seconds. A "
            "create whose response was lost is looked up until then before it is sent again. Default: 2 times the read "
            "timeout. From 0 to 86400."
        ),
        "schema": {"type": ["number", "null"], "minimum": 0, "maximum": 86400},
    },
    "trust_counts": {
        "label": "Trust counts",
        "description": (
            "Fail where a list has fewer rows than it counts. Set to false for a service that counts wrong, or that "
            "counts members that the key may not see."
        ),
        "schema": {"type": ["boolean", "null"], "default": True},
    },
    "max_attempts": {
        "label": "Maximum attempts",
        "description": (
            "Attempts per request, including the first. Only requests that are safe to repeat are retried. From 1 to "
            "20."
        ),
        "schema": {"type": ["integer", "null"], "default": 5, "minimum": 1, "maximum": 20},
    },
    "max_retry_wait": {
        "label": "Maximum retry wait",
        "description": (
            "Longest wait between two attempts in seconds; if Retry-After is longer, the task fails instead of "
            "waiting. From 0 to 3600."
        ),
        "schema": {"type": ["number", "null"], "default": 60, "minimum": 0, "maximum": 3600},
    },
    "page_size": {
        "label": "Page size",
        "description": "Rows requested per page of a list. From 1 to 10000.",
        "schema": {"type": ["integer", "null"], "default": 100, "minimum": 1, "maximum": 10000},
    },
    "max_concurrency": {
        "label": "Maximum concurrency",
        "description": "Concurrent requests per task. Used by bulk invites. From 1 to 100.",
        "schema": {"type": ["integer", "null"], "default": 4, "minimum": 1, "maximum": 100},
    },
    "invites_per_hour": {
        "label": "Invites per hour",
        "description": (
            "Most invites of an organization within an hour. Default: learned from the first refusal. From 1 to "
            "1000000."
        ),
        "schema": {"type": ["integer", "null"], "minimum": 1, "maximum": 1000000},
    },
    "invites_per_day": {
        "label": "Invites per day",
        "description": (
            "Most invites of an organization within 24 hours. Default: learned from the first refusal. From 1 to "
            "10000000."
        ),
        "schema": {"type": ["integer", "null"], "minimum": 1, "maximum": 10000000},
    },
    "bulk_invite_limit": {
        "label": "Bulk invite limit",
        "description": "Maximum invites per bulk request. From 1 to 10000.",
        "schema": {"type": ["integer", "null"], "default": 20, "minimum": 1, "maximum": 10000},
    },
    "bulk_invite_body": {
        "label": "Bulk invite body",
        "description": (
            "Body of a bulk request: an array of invites, or one object. With an object, each request carries one "
            "invite."
        ),
        "schema": {
            "type": ["string", "null"],
            "default": "array",
            "enum": ["array", "object"],
            "values_display": {"array": "array of invites", "object": "one object"},
        },
    },
    "verify": {
        "label": "Verify TLS certificates",
        "description": "true, false, or the path of a CA file or directory.",
        "schema": {"type": ["string", "null"], "default": "true"},
    },
    "proxy": {
        "label": "Proxy",
        "description": "Proxy URL, such as http://proxy.example.com:3128. Default: proxy of the environment.",
        "schema": {"type": ["string", "null"]},
    },
    "web_url": {
        "label": "Web URL",
        "description": "URL of the workspace in a browser. Links of tasks lead there.",
        "schema": {"type": ["string", "null"]},
    },
    "allow_http": {
        "label": "Allow plain http://",
        "description": "Allow sending the API key unencrypted over http:// to hosts other than localhost.",
        "schema": {"type": ["boolean", "null"], "default": False},
    },
}
# End of what dev/make_connection.py writes
