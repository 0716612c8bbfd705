// What the page shows, as pure functions of what Airflow answered and the time.
//
// An answer is {value}, or {reason: {status, message}} if there is none. What is not in a list may be hidden from the
// role of the person, so absence is "not known". What a window is, only the sweep decides: the page shows its verdict.

// Prefix of all Variables that the page reads.
export const VARIABLES = "workspace_";
const LEASES = "workspace_lease.";
const SWEEP = "workspace_window_sweep";
// As written by state/leases.py.
const TEXTS = [
  "dag_id", "run_id", "close_task_id", "service", "workspace_conn_id", "organization_id", "batch_export_id", "state"
];
// States of a task that has not ended.
export const GOES_ON = ["running", "deferred", "queued", "scheduled", "restarting", "up_for_retry", "up_for_reschedule"];
export const goesOn = (task) => GOES_ON.includes(task.state);
// Operators that invite: one that does nothing else, and others, which may have nobody to invite.
export const INVITES = "WorkspaceCreateInvitesOperator";
export const ORGANIZATION = "WorkspaceApplyOrganizationOperator";
export const CAMPAIGNS = [INVITES, "WorkspaceSyncMembersOperator", ORGANIZATION];
export const SWEEP_OPERATOR = "WorkspaceResumeAbandonedExportsOperator";
export const SENSORS = [
  "WorkspaceDomainVerifiedSensor", "WorkspaceInvitesSettledSensor", "WorkspaceMembersJoinedSensor",
  "WorkspaceProjectReceivingEventsSensor", "WorkspaceProjectOnboardedSensor",
];
// Fields of a sensor that tell what it waits for.
const NAMES = ["domain_id", "emails", "project_id", "product"];
// Tones of the counts of a campaign; of others it is plain.
const TONES = {
  invited: "good", planned: "good", invalid: "bad", failed: "bad", unknown: "bad", not_sent: "warn", left: "rest"
};
export const RECENT_CAMPAIGNS = 20;
const FORBIDDEN = "Not visible to your role";
const HIDDEN = "not visible to your role, or deleted";

// Return everything that the page shows.
export function view(data, now) {
  const windows = windowsView(data, now);
  const [campaigns, waits] = [campaignsView(data), waitsView(data)];
  const problems = Object.entries({ "paused exports": windows, campaigns, waits }).filter(([, its]) => its.problem);
  const parts = [...windows.counts, ...problems.map(([name, { problem }]) => `${problem.brief}: ${name}`)];
  if (campaigns.running) parts.push(`campaigns running: ${campaigns.running}`);
  if (waits.rows.length) parts.push(`tasks waiting: ${waits.rows.length}`);
  const text = parts.join(" · ") || "No window holds an export and nobody waits, as far as your role sees";
  const bad = windows.urgent || problems.some(([, { problem }]) => problem.brief !== FORBIDDEN);
  return { summary: { text, bad }, windows, campaigns, waits };
}

// Return why there is no answer, in words: brief for the headline, long for the section.
function problemOf(what, { reason }) {
  if (!reason) return null;
  const brief = { 401: "Log in again", 403: FORBIDDEN }[reason.status] ?? "Airflow did not answer";
  const cures = { 401: "the session is over.", 403: `it may not read ${what}. An Airflow administrator can grant it.` };
  return { brief, text: `${brief}: ${cures[reason.status] ?? `${reason.message}. Trying again.`}` };
}

// Return the windows with their leases, and what is wrong with the Variables that are no leases.
export function readWindows(variables) {
  const windows = new Map();
  const unreadable = [];
  for (const { key, value } of variables.value ?? []) {
    if (!key.startsWith(LEASES)) continue;
    const given = parsed(value);
    const lease = { map_index: -1, ...given, key, since: Date.parse(given?.since), until: Date.parse(given?.until) };
    const wrong = TEXTS.filter((name) => typeof lease[name] !== "string" || !lease[name]);
    wrong.push(...["since", "until"].filter((name) => Number.isNaN(lease[name])));
    const what = given ? wrong.join(", ") : "its JSON";
    // As the Variable of the sweep names it.
    const id = key.slice(LEASES.length).split(".")[0];
    if (wrong.length) unreadable.push(`The Variable ${key} holds no lease (${what} is unusable): mend or delete it.`);
    else if (windows.has(id)) windows.get(id).push(lease);
    else windows.set(id, [lease]);
  }
  return { windows, unreadable };
}

// Return the state of an export according to its lease, and its tone.
function exportState(lease) {
  if (lease.resumed_at) return ["Resumed", "good"];
  if (!lease.paused_at && !lease.late_pause_until) return [lease.refused ? "Pause refused" : "Not paused yet", "plain"];
  if (lease.state === "closing") return ["Resume begun, not confirmed", "warn"];
  return [lease.paused_at ? "Paused" : "Pausing, no answer yet", "warn"];
}

function windowsView({ variables, tasks, runs, sweeps }, now) {
  const { windows, unreadable } = readWindows(variables);
  // Earlier releases wrote the time alone.
  const swept = variables.value?.find(({ key }) => key === SWEEP)?.value;
  const { at = swept, windows: verdicts = {} } = parsed(swept) ?? {};
  const runKey = ({ dag_id, run_id, dag_run_id = run_id }) => JSON.stringify([dag_id, dag_run_id]);
  const tasksOf = Map.groupBy(tasks.value ?? [], runKey);
  const runOf = new Map((runs.value ?? []).map((run) => [runKey(run), run]));
  const rows = [...windows].map(([key, leases]) => {
    const [first] = leases;
    const its = tasksOf.get(runKey(first)) ?? [];
    const close = its.find((task) => task.task_id === first.close_task_id && task.map_index === first.map_index);
    const [since, until] = ["since", "until"].map((name) => Math.min(...leases.map((lease) => lease[name])));
    const { state, why = "" } = verdicts[key] ?? {};
    const resumed = leases.every((lease) => lease.resumed_at);
    const left = ["abandoned", "overdue"].includes(state);
    const late = now >= until && !resumed;
    return {
      ...{ ...first, key, since, until, close: close?.state && !goesOn(close) ? slim(close) : null },
      exports: leases.map((lease) => ({ ...lease, shown: exportState(lease) })),
      verdict: state ? { state, why } : null,
      kind: left ? `${state} (last sweep)` : late ? "past the latest end" : resumed ? "just resumed" : "held by windows",
      urgent: left || late,
      lines: linesOf(first, runOf.get(runKey(first)), close, its, problemOf("task instances", tasks)),
      failed: its.filter((task) => task.state === "failed").map(slim),
    };
  });
  rows.sort((a, b) => b.urgent - a.urgent || a.since - b.since);
  const counts = [...Map.groupBy(rows, ({ kind }) => kind)].map(([kind, its]) => {
    const ids = its.flatMap((row) => row.exports.map((lease) => lease.batch_export_id));
    return `${new Set(ids).size} ${kind}`;
  });
  if (unreadable.length) counts.unshift(`${unreadable.length} unreadable`);
  return {
    problem: problemOf("Variables", variables),
    rows,
    urgent: unreadable.length > 0 || rows.some(({ urgent }) => urgent),
    counts,
    notes: unreadable,
    sweep: { at: Date.parse(at) || null, task: sweeps.value?.rows[0] ?? null },
  };
}

// Return what is known of the run of a window, its closing task, and its tasks that go on.
function linesOf({ close_task_id }, run, close, tasks, problem) {
  const goOn = tasks.filter((task) => task !== close && goesOn(task)).map((task) => `${task.task_id} ${task.state}`);
  const lines = [...(run ? [`run ${run.state}`] : []), ...new Set(goOn)];
  if (problem) return [...lines, `${problem.brief}: the states of its tasks`];
  if (!run && !close) return [...lines, `its run and tasks: ${HIDDEN}`];
  return [...lines, close ? `${close_task_id} ${close.state ?? "not begun"}` : `${close_task_id}: ${HIDDEN}`];
}

function campaignsView({ campaigns }) {
  const { rows = [], cut } = campaigns.value ?? {};
  return {
    problem: problemOf("task instances", campaigns),
    rows: rows.map(({ task, ...its }) => ({ key: task.id, task: slim(task), ...its })),
    running: rows.filter(({ task }) => goesOn(task)).length,
    notes: cut ? ["Older ones are not listed."] : [],
  };
}

// Return the counts of a campaign in the order of its bar: name, tone, number.
export function campaignParts({ counts = {}, left = 0 }) {
  const parts = Object.entries({ ...counts, left }).filter(([, number]) => number > 0);
  return parts.map(([name, number]) => [name.replaceAll("_", " "), TONES[name] ?? "plain", number]);
}

function waitsView({ waits }) {
  const { rows: tasks = [], total = 0 } = waits.value ?? {};
  const rows = tasks.map((task) => {
    const { organization_id: id, workspace_conn_id = "?", ...fields } = task.rendered_fields ?? {};
    return {
      key: task.id,
      task: slim(task),
      organization: id && id !== "None" ? String(id) : `organization of connection ${workspace_conn_id}`,
      what: task.operator.replace(/^Workspace|Sensor$/g, "").replace(/\B(?=[A-Z])/g, " "),
      which: NAMES.filter((name) => fields[name]).map((name) => shorten(fields[name])).join(", "),
    };
  });
  return {
    problem: problemOf("task instances", waits),
    // Airflow lists the latest first.
    rows: rows.reverse().sort((a, b) => a.organization.localeCompare(b.organization)),
    notes: total > rows.length ? [`The first ${rows.length} of ${total}.`] : [],
  };
}

// Return the fields of a task that a row shows; the filter reads no others.
const slim = ({ id, dag_id, dag_run_id, task_id, map_index, state, start_date, reason }) =>
  ({ id, dag_id, dag_run_id, task_id, map_index, state, start_date, reason });

// Return why a task failed: the last exception in its log, else the last error.
export function reasonIn({ value: log, reason }) {
  if (reason) return reason.status === 403 ? "not visible to your role" : "its log cannot be read";
  const lines = Array.isArray(log?.content) ? log.content : [];
  const events = lines.filter((event) => event?.error_detail?.length || event?.level === "error");
  const event = events.findLast((one) => one.error_detail?.length) ?? events.at(-1);
  const { exc_value, exc_type } = event?.error_detail?.[0] ?? {};
  return shorten(exc_value ? `${exc_value} (${exc_type})` : (exc_type ?? event?.event ?? "the log names no reason"), 600);
}

// Parse JSON; what is no text was parsed before, such as XComs by some releases of Airflow.
export function parsed(value) {
  try {
    return typeof value === "string" ? JSON.parse(value) : (value ?? null);
  } catch {
    return null;
  }
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
