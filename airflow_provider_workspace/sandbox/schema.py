"""The tables of the sandbox's database."""

from __future__ import annotations

SCHEMA_VERSION = 1

# A table holds the columns that queries need, and beside them the record as it is answered.
SCHEMA = """
CREATE TABLE clock (offset_seconds REAL NOT NULL);
CREATE TABLE organizations (id TEXT PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE keys (
    key TEXT PRIMARY KEY, name TEXT NOT NULL, scopes TEXT NOT NULL, organizations TEXT NOT NULL,
    user_uuid TEXT NOT NULL, revoked INTEGER NOT NULL DEFAULT 0);
CREATE TABLE users (id INTEGER PRIMARY KEY, uuid TEXT NOT NULL UNIQUE, email TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX users_email ON users (email);
CREATE TABLE members (
    seq INTEGER PRIMARY KEY, organization_id TEXT NOT NULL, user_uuid TEXT NOT NULL, email TEXT NOT NULL,
    record TEXT NOT NULL, UNIQUE (organization_id, user_uuid));
CREATE INDEX members_page ON members (organization_id, seq);
CREATE INDEX members_email ON members (organization_id, email);
CREATE TABLE invites (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, organization_id TEXT NOT NULL, email TEXT NOT NULL,
    expires_at TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX invites_page ON invites (organization_id, seq);
CREATE INDEX invites_email ON invites (organization_id, email);
CREATE INDEX invites_expiry ON invites (organization_id, expires_at);
CREATE TABLE domains (
    seq INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, organization_id TEXT NOT NULL, domain TEXT NOT NULL,
    record TEXT NOT NULL);
CREATE INDEX domains_page ON domains (organization_id, seq);
CREATE INDEX domains_name ON domains (domain);
CREATE TABLE projects (
    id INTEGER PRIMARY KEY AUTOINCREMENT, organization_id TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX projects_page ON projects (organization_id, id);
CREATE TABLE dashboards (
    id INTEGER PRIMARY KEY AUTOINCREMENT, project_id INTEGER NOT NULL, deleted INTEGER NOT NULL,
    record TEXT NOT NULL, sharing TEXT NOT NULL);
CREATE INDEX dashboards_project ON dashboards (project_id, id);
CREATE TABLE collaborators (
    seq INTEGER PRIMARY KEY, dashboard_id INTEGER NOT NULL, user_uuid TEXT NOT NULL, record TEXT NOT NULL,
    UNIQUE (dashboard_id, user_uuid));
CREATE TABLE batch_exports (
    id TEXT PRIMARY KEY, organization_id TEXT NOT NULL, name TEXT NOT NULL, model TEXT NOT NULL,
    paused INTEGER NOT NULL DEFAULT 0, last_paused_at TEXT);
CREATE INDEX batch_exports_organization ON batch_exports (organization_id, id);
CREATE TABLE dns (name TEXT NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name, value));
CREATE TABLE effects (
    id INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, operation TEXT NOT NULL, organization_id TEXT NOT NULL,
    target TEXT NOT NULL, key_name TEXT NOT NULL, detail TEXT NOT NULL);
CREATE INDEX effects_operation ON effects (operation, id);
CREATE INDEX effects_organization ON effects (organization_id, id);
CREATE INDEX effects_target ON effects (target, id);
"""
