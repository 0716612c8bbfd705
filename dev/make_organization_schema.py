"""
Generate organization.schema.json, the JSON schema of organization files for editors.

It is derived from organization/file.py. --check fails if it is not current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import airflow_provider_workspace
from airflow_provider_workspace.api.secrets import is_secret
from airflow_provider_workspace.organization.file import Organization

TARGET = Path(airflow_provider_workspace.__file__).with_name("organization.schema.json")


def json_schema() -> dict[str, Any]:
    """Return the schema."""
    schema = Organization.model_json_schema()
    definitions: dict[str, Any] = schema.pop("$defs")
    for entry in definitions.values():
        for key in [key for key in entry.get("properties", ()) if is_secret(key)]:
            del entry["properties"][key]
    for name in ("Person", "ProtectedPerson", "Collaborator"):
        definitions[name] = {"anyOf": [{"type": "string", "format": "email"}, definitions[name]]}
    definitions["Organization"] = schema
    one: dict[str, Any] = {"$ref": "#/$defs/Organization"}
    several = {
        "type": "object",
        "properties": {"organizations": {"type": "object", "additionalProperties": one}},
        "required": ["organizations"],
        "additionalProperties": False,
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Organization file of airflow-provider-workspace",
        "anyOf": [one, several],
        "$defs": definitions,
    }


def main() -> None:
    """Write the schema, or check it."""
    text = json.dumps(json_schema(), indent=2) + "\n"
    if "--check" not in sys.argv:
        TARGET.write_text(text)
    elif TARGET.read_text() != text:
        sys.exit("Run python dev/make_organization_schema.py: organization.schema.json is not current.")


if __name__ == "__main__":
    main()
