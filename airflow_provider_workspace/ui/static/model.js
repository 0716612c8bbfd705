// Pure functions that interpret the responses of Airflow.

export const LEASES = "workspace_lease.";
export const SWEEP = "workspace_window_sweep";
// As written by state/leases.py.
const REQUIRED = ["dag_id", "run_id", "close_task_id", "service", "workspace_conn_id", "organization_id", "batch_export_id"];
const STATES = ["opening", "paused", "closing"];
// States of a closing task that has ended.
const OVER = ["success", "failed", "skipped", "removed", "upstream_failed"];
// Operators that invite: one that does nothing else, and others, which may have nobody to invite.
export const INVITES = "WorkspaceCreateInvitesOperator";
export const ORGANIZATION = "WorkspaceApplyOrganizationOperator";
export const CAMPAIGNS = [INVITES, "WorkspaceSyncMembersOperator", ORGANIZATION];
export const SWEEPS = ["WorkspaceResumeAbandonedExportsOperator"];
export const DASHBOARDS = ["WorkspaceCreateDashboardOperator"];
// Prefix of the Variables that store the dashboards of organization files.
export const DASHBOARD_PREFIX = "workspace_dashboard_";
export const SENSORS = {
  WorkspaceDomainVerifiedSensor: "Domain verified",
  WorkspaceInvitesSettledSensor: "Invites settled",
  WorkspaceMembersJoinedSensor: "Members joined",
  WorkspaceProjectReceivingEventsSensor: "Project receives events",
  WorkspaceProjectOnboardedSensor: "Project onboarded",
};
// States of a task that has not ended.
export const GOES_ON = ["running", "deferred", "queued", "scheduled", "restarting", "up_for_retry", "up_for_reschedule"];

// Parse leases; invalid ones are listed separately.
export function readLeases(variables) {
  const leases = [];
  const unreadable = [];
  for (const { key, value } of variables) {
    try {
      leases.push(readLease(key, JSON.parse(value)));
    } catch (error) {
      unreadable.push({ key, why: error.message });
    }
  }
  return { leases, unreadable };
}

function readLease(key, given) {
  if (given === null || typeof given !== "object" || Array.isArray(given)) throw new Error("it is no object");
  const missing = REQUIRED.filter((name) => typeof given[name] !== "string" || !given[name]);
  if (!missing.length && !STATES.includes(given.state)) missing.push("state");
  if (missing.length) throw new Error(`it has no usable ${missing.join(", ")}`);
  const lease = { ...given, key, map_index: Number.isInteger(given.map_index) ? given.map_index : -1 };
  for (const name of ["since", "until"]) {
    lease[name] = Date.parse(given[name]);
    if (Number.isNaN(lease[name])) throw new Error(`its ${name} is not a time`);
  }
  return lease;
}

export function windowKey({ dag_id, run_id, dag_run_id, close_task_id, task_id, map_index }) {
  return JSON.stringify([dag_id, run_id ?? dag_run_id, close_task_id ?? task_id, map_index]);
}

// Return why a window can no longer close itself, or is overdue; empty if it can.
// `closing`: the closing tasks by windowKey; null if the user may not read them.
export function whyAbandoned(lease, closing, now) {
  if (now >= lease.until) return "overdue";
  if (closing === null) return "";
  const task = closing.get(windowKey(lease));
  if (task === undefined) return "its run or its closing task is gone";
  return OVER.includes(task.state) ? `its closing task is ${task.state}` : "";
}

// Return the state of an export according to its lease, and its tone.
export function exportState(lease, abandoned) {
  if (lease.resumed_at) return ["Resumed", "good"];
  const paused = Boolean(lease.paused_at);
  if (!paused && !lease.late_pause_until) return [lease.refused ? "Pause refused" : "Not paused yet", "plain"];
  if (abandoned) return [paused ? "Left paused" : "Perhaps left paused", "bad"];
  if (lease.state === "closing") return ["Resuming", "warn"];
  return paused ? ["Paused", "warn"] : ["Pausing, no answer yet", "warn"];
}

// Return the rows of the table of windows: abandoned ones first, then grouped by export.
export function windowRows(leases, closing, now) {
  const first = new Map();
  const rows = leases.map((lease) => {
    const why = whyAbandoned(lease, closing, now);
    const [state, tone] = exportState(lease, why !== "");
    const began = Math.min(first.get(lease.batch_export_id) ?? Infinity, lease.since);
    first.set(lease.batch_export_id, began);
    return { lease, why, state, tone, task: closing && closing.get(windowKey(lease)) };
  });
  const order = (row) => [row.why === "", first.get(row.lease.batch_export_id), row.lease.batch_export_id, row.lease.since];
  return sorted(rows, order);
}

export function sorted(rows, order) {
  const keyed = rows.map((row) => [order(row), row]);
  keyed.sort(([a], [b]) => {
    const at = a.findIndex((value, index) => value !== b[index]);
    return at < 0 ? 0 : a[at] < b[at] ? -1 : 1;
  });
  return keyed.map(([, row]) => row);
}

// Whether clearing the closing task of an abandoned window makes Airflow run it.
export const canClear = (row) => row.why !== "" && row.task && OVER.includes(row.task.state);

// Return the counts of a campaign in the order of its bar: name, tone, number.
export function campaignParts(progress) {
  const { counts = {}, left = 0 } = progress;
  const of = (...names) => names.reduce((sum, name) => sum + (counts[name] ?? 0), 0);
  return [
    ["invited", "good", of("invited")],
    ["would be invited", "good", of("planned")],
    ["there already", "plain", of("already_invited", "member", "duplicate")],
    ["to look at", "bad", of("invalid", "failed", "unknown")],
    ["not sent", "warn", of("not_sent")],
    ["left", "rest", left],
  ].filter(([, , number]) => number > 0);
}

const NAMES = ["domain_id", "emails", "project_id", "product"];

// Return the waiting sensors with their organizations.
export function waitRows(tasks) {
  return tasks.map((task) => {
    const fields = task.rendered_fields ?? {};
    const known = fields.organization_id && fields.organization_id !== "None";
    return {
      task,
      organization: known ? fields.organization_id : `organization of connection ${fields.workspace_conn_id ?? "?"}`,
      what: SENSORS[task.operator] ?? task.operator,
      which: NAMES.filter((name) => fields[name]).map((name) => shorten(fields[name])).join(", "),
    };
  });
}

export function shorten(value, most = 120) {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return text.length > most ? `${text.slice(0, most)} …` : text;
}

export function duration(milliseconds) {
  const minutes = Math.floor(Math.abs(milliseconds) / 60000);
  if (minutes < 1) return "under 1 min";
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} days`;
}

export function matches(row, words) {
  if (!words) return true;
  return JSON.stringify(row).toLowerCase().includes(words);
}
