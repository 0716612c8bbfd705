"""The page at ``/``: one HTML text without outside resources, which asks for the workspace again every second."""

from __future__ import annotations

import base64
import hashlib

STYLE = """
:root {
  color-scheme: light dark;
  --ground: #f4f5f7; --card: #ffffff; --line: #e3e6eb; --text: #1c2430; --soft: #66718a; --accent: #3b5bdb;
  --good: #1f7a4d; --good-ground: #e2f4ea; --warn: #97610a; --warn-ground: #fdf0d5;
  --bad: #a83232; --bad-ground: #fbe6e6; --plain-ground: #eceff4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #12161d; --card: #1a202a; --line: #2a323f; --text: #e6eaf1; --soft: #93a0b8; --accent: #8ea6ff;
    --good: #7fd8a8; --good-ground: #173a2a; --warn: #f0c274; --warn-ground: #40301a;
    --bad: #f2a0a0; --bad-ground: #44211f; --plain-ground: #262e3b;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--text);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
header {
  display: flex; flex-wrap: wrap; align-items: center; gap: 6px 14px; padding: 14px 24px;
  background: var(--card); border-bottom: 1px solid var(--line);
}
h1 { margin: 0; font-size: 18px; font-weight: 650; letter-spacing: -.01em; }
select {
  font: inherit; color: inherit; background: var(--ground); border: 1px solid var(--line); border-radius: 7px;
  padding: 3px 8px;
}
header .end { margin-left: auto; }
main { display: grid; grid-template-columns: repeat(3, minmax(0, 1fr)); gap: 16px; padding: 16px 24px 32px; }
main > div { display: flex; flex-direction: column; gap: 16px; min-width: 0; }
@media (max-width: 1080px) { main { grid-template-columns: minmax(0, 1fr); } }
section { background: var(--card); border: 1px solid var(--line); border-radius: 11px; overflow: hidden; }
h2 { display: flex; align-items: baseline; gap: 8px; margin: 0; padding: 12px 16px 8px; font-size: 14px; }
h2 .soft { font-weight: 400; }
ul { list-style: none; margin: 0; padding: 0; }
li { display: flex; gap: 10px; align-items: center; padding: 8px 16px; border-top: 1px solid var(--line); }
li > .grow { flex: 1; min-width: 0; }
li.wrap { flex-wrap: wrap; row-gap: 2px; }
li > .all { flex-basis: 100%; }
li.inner { padding-left: 34px; }
.one { overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.soft { color: var(--soft); font-size: 12.5px; }
.none { padding: 4px 16px 14px; color: var(--soft); }
code { font: 12px/1.4 ui-monospace, "SF Mono", Menlo, "DejaVu Sans Mono", monospace; word-break: break-all; }
.badge {
  flex: none; padding: 1px 9px; border-radius: 99px; font-size: 12px; font-weight: 550; white-space: nowrap;
  background: var(--plain-ground); color: var(--soft);
}
.good { background: var(--good-ground); color: var(--good); }
.warn { background: var(--warn-ground); color: var(--warn); }
.bad { background: var(--bad-ground); color: var(--bad); }
.gone { text-decoration: line-through; color: var(--soft); }
time { flex: none; align-self: flex-start; color: var(--soft); font-size: 12.5px; font-variant-numeric: tabular-nums; }
"""

SCRIPT = """
"use strict";
const LEVELS = {1: "member", 8: "admin", 15: "owner"};
const signs = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;"};
const esc = value => String(value ?? "").replace(/[&<>"']/g, sign => signs[sign]);
const badge = (text, kind = "") => `<span class="badge ${kind}">${esc(text)}</span>`;
const day = text => text ? esc(text).slice(0, 10) : "never";
const level = number => LEVELS[number] ?? `level ${esc(number)}`;
const shown = (list, total) => list.length < total ? `latest ${list.length} of ${total}` : `${total}`;

function row(title, note, marks, kind = "") {
  const second = note ? `<div class="soft one">${note}</div>` : "";
  return `<li class="${kind}"><div class="grow"><div class="one">${title}</div>${second}</div>${marks}</li>`;
}

function section(title, note, rows, nothing) {
  const body = rows.length ? `<ul>${rows.join("")}</ul>` : `<div class="none">${nothing}</div>`;
  return `<section><h2>${title} <span class="soft">${note}</span></h2>${body}</section>`;
}

function projects(list) {
  const rows = list.results.flatMap(project => [
    row(`<b>${esc(project.name)}</b>`, `project ${esc(project.id)} &middot; ${esc(project.timezone)}`,
      project.ingested_event ? badge("receiving events", "good") : badge("no events yet")),
    ...project.dashboards.map(dashboard => row(
      `<span class="${dashboard.deleted ? "gone" : ""}">${esc(dashboard.name || "(no name)")}</span>`,
      `dashboard ${esc(dashboard.id)}` +
        (dashboard.collaborators.length ? ` &middot; with ${dashboard.collaborators.map(esc).join(", ")}` : ""),
      dashboard.deleted ? badge("deleted", "bad") : dashboard.pinned ? badge("pinned") : "", "inner")),
  ]);
  return section("Projects", shown(list.results, list.count), rows, "No projects.");
}

function domains(list) {
  const rows = list.results.map(domain => domain.is_verified
    ? row(esc(domain.domain), `since ${day(domain.verified_at)}`, badge("\\u2713 verified", "good"))
    : `<li class="wrap"><div class="grow">${esc(domain.domain)}</div>${badge("not verified", "warn")}` +
      `<div class="all soft">TXT <code>_workspace-challenge.${esc(domain.domain)}</code><br>` +
      `<code>${esc(domain.verification_challenge)}</code></div></li>`);
  return section("Domains", shown(list.results, list.count), rows, "No domains.");
}

function batchExports(list) {
  const paused = list.results.filter(item => item.paused).length;
  const rows = list.results.map(item => row(esc(item.name),
    esc(item.model) + (item.paused ? ` &middot; paused at ${esc(item.last_paused_at.slice(11, 19))} UTC` : ""),
    item.paused ? badge("paused", "warn") : badge("running", "good")));
  return section("Batch exports", paused ? `${paused} of ${list.count} paused` : list.count, rows, "No batch exports.");
}

function invites(list) {
  const rows = list.results.map(invite => row(esc(invite.target_email),
    `${level(invite.level)} &middot; invited ${day(invite.created_at)}` +
      (invite.emailing_attempt_made ? "" : " &middot; no e-mail sent"),
    invite.is_expired ? badge("expired", "bad") : badge("pending")));
  const note = `${list.pending} pending, ${list.expired} expired` +
    (list.results.length < list.count ? ` &middot; latest ${list.results.length}` : "");
  return section("Invites", note, rows, "Nobody is invited.");
}

function members(list) {
  const rows = list.results.map(member => row(
    `${esc(member.name)} <span class="soft">&middot; seen ${day(member.last_login)}</span>`, esc(member.email),
    (member.is_2fa_enabled ? "" : badge("no 2FA", "warn")) + badge(level(member.level))));
  return section("Members", shown(list.results, list.count), rows, "No members.");
}

function effects(list) {
  const rows = list.results.map(effect => {
    const about = effect.detail.name ?? effect.detail.email;
    const kinds = {delete: "bad", remove: "bad", create: "good", add: "good", verify: "good", pause: "warn"};
    const kind = kinds[effect.operation.split("_")[0]];
    const number = about != null && /^[0-9]+$/.test(effect.target) ? ` &middot; number ${esc(effect.target)}` : "";
    const verb = effect.operation.replace("dashboard_collaborator", "collaborator").replaceAll("_", " ");
    return row(`${badge(verb, kind)} <b>${esc(about ?? effect.target)}</b>`,
      `by key &ldquo;${esc(effect.key_name)}&rdquo;` + number,
      `<time>${esc(effect.at.slice(11, 19))}</time>`);
  });
  return section("What was changed", shown(list.results, list.count), rows, "Nothing yet. Every write shows up here.");
}

function put(id, html) {
  // Only what differs is replaced, so that nothing flickers and a selection stays.
  const place = document.getElementById(id);
  if (place.shown !== html) {
    place.shown = html;
    place.innerHTML = html;
  }
}

const picker = document.getElementById("organization");

async function refresh() {
  try {
    const chosen = picker.value || location.hash.slice(1);
    const query = chosen ? `?organization_id=${encodeURIComponent(chosen)}` : "";
    let response = await fetch(`/_sandbox/workspace${query}`);
    if (response.status === 404) response = await fetch("/_sandbox/workspace");
    const workspace = await response.json();
    put("organization", workspace.organizations.map(item => `<option value="${esc(item.id)}" ` +
      `${item.id === workspace.organization.id ? "selected" : ""}>${esc(item.name)}</option>`).join(""));
    put("profile", esc(workspace.profile));
    put("id", `<code>${esc(workspace.organization.id)}</code>`);
    put("clock", `${esc(workspace.now.slice(0, 10))} ${esc(workspace.now.slice(11, 19))} UTC &middot; ` +
      `${workspace.request_total} requests`);
    put("left", projects(workspace.projects) + domains(workspace.domains) + batchExports(workspace.batch_exports));
    put("middle", invites(workspace.invites) + members(workspace.members));
    put("right", effects(workspace.effects));
  } catch {
    put("clock", "The sandbox does not answer.");
  }
}

picker.addEventListener("change", () => {
  location.hash = picker.value;
  refresh();
});
refresh();
setInterval(refresh, 1000);
"""

PAGE = f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Workspace sandbox</title>
<link rel="icon" href="data:,">
<style>{STYLE}</style>
</head>
<body>
<header>
  <h1>Workspace sandbox</h1>
  <span class="badge" id="profile"></span>
  <select id="organization" aria-label="Organization"></select>
  <span class="soft" id="id"></span>
  <span class="soft end" id="clock"></span>
</header>
<main><div id="left"></div><div id="middle"></div><div id="right"></div></main>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


HEADERS = {
    "Content-Security-Policy": f"default-src 'none'; style-src {_hash(STYLE)}; script-src {_hash(SCRIPT)}; "
    "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
"""What keeps other scripts out of the page, and the page out of the frames of others."""
