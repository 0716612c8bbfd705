"""
Generate organization.schema.json, the JSON schema of organization files for editors.

It is derived from procedures/organization_file.py. --check fails if it is not current.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import airflow_provider_workspace
from airflow_provider_workspace.procedures.organization_file import json_schema

TARGET = Path(airflow_provider_workspace.__file__).with_name("organization.schema.json")


def main() -> None:
    """Write the schema, or check it."""
    text = json.dumps(json_schema(), indent=2) + "\n"
    if "--check" not in sys.argv:
        TARGET.write_text(text)
    elif TARGET.read_text() != text:
        sys.exit("Run python dev/make_organization_schema.py: organization.schema.json is not current.")


if __name__ == "__main__":
    main()
