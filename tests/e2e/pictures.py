"""What the pictures of the documentation show, to tell which of them are older than that."""

from __future__ import annotations

import ast
import hashlib
import json
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
IMAGES = ROOT / "docs" / "images"
# Written with each picture: its digest.
DIGESTS = IMAGES / "digests.json"
PACKAGE, DAGS, EXAMPLES = "airflow_provider_workspace", "tests/e2e", "example_dags"
PLAN = (f"{PACKAGE}/operators/approval.py", f"{PACKAGE}/procedures/plan.py", f"{PACKAGE}/procedures/plan_markdown.py")
ORGANIZATION = (
    *PLAN,
    f"{PACKAGE}/operators/organization.py",
    f"{DAGS}/approval_dags/*orga*",
    f"{DAGS}/approval_dags/north*",
)
PAGE = (f"{PACKAGE}/ui/static/**/*", f"{DAGS}/page_dags/*.py")
# Name of a picture: files with what it shows.
PICTURES = {
    "approval": (
        *PLAN,
        f"{PACKAGE}/operators/members.py",
        f"{PACKAGE}/access/members/plan.py",
        f"{DAGS}/approval_dags/approval.py",
    ),
    "bulk_invites_log": (f"{PACKAGE}/procedures/invites_report.py", f"{DAGS}/browser_dags/*.py"),
    "connection_form": (f"{PACKAGE}/get_provider_info.py",),
    "connection_tested": (f"{PACKAGE}/hooks/connection_test.py",),
    "extra_link": (f"{PACKAGE}/links.py",),
    "graph": (f"{EXAMPLES}/onboard_organization.py", f"{PACKAGE}/task_groups.py"),
    "organization_approval": ORGANIZATION,
    "organization_plan": ORGANIZATION,
    "sandbox_after": (f"{PACKAGE}/sandbox/page.*", f"{EXAMPLES}/data/northwind.*"),
    "status_page": PAGE,
    "status_page_dark": PAGE,
}


def digest(name: str) -> str:
    """Return the SHA-256 digest of what a picture shows."""
    files = [sorted(ROOT.glob(pattern)) for pattern in PICTURES[name]]
    assert all(files), f"{name}: each of {PICTURES[name]} must find files"
    return hashlib.sha256(b"".join(shown(file) for found in files for file in found if file.is_file())).hexdigest()


def shown(file: Path) -> bytes:
    """Return the content of a file; of Python its texts, for other changes do not age a picture."""
    if file.suffix != ".py":
        return file.read_bytes()
    nodes = list(ast.walk(ast.parse(file.read_text(encoding="utf-8"))))
    docstrings = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    texts = {
        node.value
        for node in nodes
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings
    }
    return json.dumps(sorted(texts)).encode()


def record(name: str) -> None:
    """Note that a picture was taken now."""
    digests = json.loads(DIGESTS.read_text(encoding="utf-8")) if DIGESTS.exists() else {}
    digests[name] = digest(name)
    DIGESTS.write_text(json.dumps(digests, indent=2, sort_keys=True) + "\n", encoding="utf-8")
