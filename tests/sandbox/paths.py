"""Paths of the API with ids of the seed."""

from airflow_provider_workspace.sandbox.seed import SEED

ORGANIZATION = f"/api/organizations/{SEED.organization_id}/"
OTHER_ORGANIZATION = f"/api/organizations/{SEED.other_organization_id}/"
DASHBOARDS = f"/api/environments/{SEED.project_id}/dashboards/"
DASHBOARD = f"{DASHBOARDS}{SEED.dashboard_id}/"
COLLABORATORS = DASHBOARD + "collaborators/"
EXPORTS = ORGANIZATION + "batch_exports/"
EXPORT = f"{EXPORTS}{SEED.batch_export_ids[0]}/"
DOMAINS = ORGANIZATION + "domains/"
INVITES = ORGANIZATION + "invites/"
BULK = INVITES + "bulk/"
MEMBERS = ORGANIZATION + "members/"
MEMBER = f"{MEMBERS}{SEED.member_uuid}/"
PROJECTS = ORGANIZATION + "projects/"
