// What the page shows, as pure functions of what Airflow answered and the time.
//
// An answer is {value}, or {problem: {status, message}} if there is none. What is not in a list may be hidden from the
// role of the person, so absence is "not known". What a window is, only the sweep decides: the page shows its verdict.

// Prefix of all Variables that the page reads, of leases, and of the dashboards of organization files.
export const VARIABLES = "workspace_";
const LEASES = "workspace_lease.";
const DASHBOARD_PREFIX = "workspace_dashboard_";
const SWEEP = "workspace_window_sweep";
// As written by state/leases.py.
const REQUIRED = [
  "dag_id", "run_id", "close_task_id", "service", "workspace_conn_id", "organization_id", "batch_export_id"
];
const STATES = ["opening", "paused", "closing"];
// What the headline says of windows, in its order; the first two are verdicts of the sweep that need a person.
const KINDS = {
  abandoned: "abandoned (last sweep)",
  overdue: "overdue (last sweep)",
  late: "past the latest end",
  unreadable: "unreadable",
  held: "held by windows",
  resumed: "just resumed",
};
// States of a task that has ended, and of one that has not.
const OVER = ["success", "failed", "skipped", "removed", "upstream_failed"];
export const GOES_ON = ["running", "deferred", "queued", "scheduled", "restarting", "up_for_retry", "up_for_reschedule"];
// Operators that invite: one that does nothing else, and others, which may have nobody to invite.
export const INVITES = "WorkspaceCreateInvitesOperator";
export const ORGANIZATION = "WorkspaceApplyOrganizationOperator";
export const CAMPAIGNS = [INVITES, "WorkspaceSyncMembersOperator", ORGANIZATION];
export const SWEEP_OPERATOR = "WorkspaceResumeAbandonedExportsOperator";
export const DASHBOARD_OPERATOR = "WorkspaceCreateDashboardOperator";
export const SENSORS = {
  WorkspaceDomainVerifiedSensor: "Domain verified",
  WorkspaceInvitesSettledSensor: "Invites settled",
  WorkspaceMembersJoinedSensor: "Members joined",
  WorkspaceProjectReceivingEventsSensor: "Project receives events",
  WorkspaceProjectOnboardedSensor: "Project onboarded",
};
// Tones of the counts of a campaign in the order of its bar, and the counts that each of them adds up.
const PARTS = [
  ["invited", "good", ["invited"]],
  ["would be invited", "good", ["planned"]],
  ["there already", "plain", ["already_invited", "member", "duplicate"]],
  ["to look at", "bad", ["invalid", "failed", "unknown"]],
  ["not sent", "warn", ["not_sent"]],
  ["left", "rest", ["left"]],
];
// Fields of a sensor that tell what it waits for.
const NAMES = ["domain_id", "emails", "project_id", "product"];
export const RECENT_CAMPAIGNS = 20;
const NONE = { rows: [], total: 0 };
const FORBIDDEN = "Not visible to your role";
const HIDDEN = "not visible to your role, or deleted";

// Return everything that the page shows.
export function view(data, now) {
  const windows = windowsView(data, now);
  const campaigns = campaignsView(data);
  const waits = waitsView(data);
  const dashboards = dashboardsView(data);
  return { summary: summary(windows, campaigns, waits, dashboards), windows, campaigns, waits, dashboards };
}

function summary(windows, campaigns, waits, dashboards) {
  const sections = Object.entries({ "paused exports": windows, campaigns, waits, dashboards });
  const problems = sections.filter(([, { problem }]) => problem);
  const unknown = new Map();
  for (const [name, { problem }] of problems) unknown.set(problem.brief, [...(unknown.get(problem.brief) ?? []), name]);
  const parts = [...windows.counts, ...[...unknown].map(([brief, names]) => `${brief}: ${names.join(", ")}`)];
  const counted = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;
  if (campaigns.running) parts.push(`${counted(campaigns.running, "campaign")} running`);
  if (waits.total) parts.push(counted(waits.total, "wait"));
  return {
    text: parts.join(" · ") || "No window holds an export and nobody waits, as far as your role sees",
    bad: windows.urgent || problems.some(([, { problem }]) => problem.brief !== FORBIDDEN),
  };
}

// Return the problem of an answer, in words: brief for the headline, long for the section.
function problemOf(what, { problem }) {
  if (!problem) return null;
  if (problem.status === 401) return { brief: "Log in again", text: "Log in to Airflow again: the session is over." };
  const refused = problem.status === 403;
  const brief = refused ? FORBIDDEN : "Airflow did not answer";
  const cure = `it may not read ${what} in this Airflow. An Airflow administrator can grant it.`;
  return { brief, text: `${brief}: ${refused ? cure : `${problem.message}. Trying again.`}` };
}

// Parse leases; invalid ones are listed separately.
export function readLeases(variables) {
  const leases = [];
  const unreadable = [];
  for (const { key, value } of variables.value ?? []) {
    if (!key.startsWith(LEASES)) continue;
    const given = parsed(value);
    const lease = { ...given, key, since: Date.parse(given?.since), until: Date.parse(given?.until) };
    if (!Number.isInteger(lease.map_index)) lease.map_index = -1;
    const missing = REQUIRED.filter((name) => typeof lease[name] !== "string" || !lease[name]);
    if (!STATES.includes(lease.state)) missing.push("state");
    missing.push(...["since", "until"].filter((name) => Number.isNaN(lease[name])));
    const what = given ? missing.join(", ") : "its JSON";
    if (!missing.length) leases.push(lease);
    else unreadable.push(`The Variable ${key} holds no lease (${what} is unusable): mend or delete it.`);
  }
  return { leases, unreadable };
}

// Return the window of a lease as the Variable of the sweep names it.
export const windowOf = (lease) => lease.key.slice(LEASES.length).split(".")[0];

// Parse the Variable of the sweep: its time and its verdicts by window. Earlier releases wrote the time alone.
function readSweep(variables) {
  const text = variables.value?.find(({ key }) => key === SWEEP)?.value;
  const given = parsed(text) ?? { at: text };
  return { at: Date.parse(given.at) || null, verdicts: given.windows ?? {} };
}

// Return the state of an export according to its lease, and its tone.
function exportState(lease) {
  if (lease.resumed_at) return ["Resumed", "good"];
  if (!lease.paused_at && !lease.late_pause_until) return [lease.refused ? "Pause refused" : "Not paused yet", "plain"];
  if (lease.state === "closing") return ["Resume begun, not confirmed", "warn"];
  return [lease.paused_at ? "Paused" : "Pausing, no answer yet", "warn"];
}

// Return what was seen of the run of a lease: lines of text, failed tasks, and whether its closing task has ended.
function seen(lease, run, tasks, problem, reasons) {
  const close = tasks.find((task) => task.task_id === lease.close_task_id && task.map_index === lease.map_index);
  const running = tasks.filter((task) => task !== close && GOES_ON.includes(task.state));
  const failed = tasks.filter((task) => task.state === "failed");
  const lines = run ? [`run ${run.state}`] : [];
  if (problem) lines.push(`${problem.brief}: the states of its tasks`);
  else if (!run && !close) lines.push(`its run and tasks: ${HIDDEN}`);
  else lines.push(close ? `${close.task_id} ${close.state ?? "not begun"}` : `${lease.close_task_id}: ${HIDDEN}`);
  return {
    lines: [...lines, ...new Set(running.map(({ task_id, state }) => `${task_id} ${state}`))],
    failed: failed.map((task) => ({ task: slim(task), reason: reasons[reasonKey(task)] })),
    ended: OVER.includes(close?.state),
  };
}

function windowsView({ variables, tasks, runs, sweeps, reasons }, now) {
  const { leases, unreadable } = readLeases(variables);
  const { at, verdicts } = readSweep(variables);
  const hidden = problemOf("task instances", tasks);
  const runKey = ({ dag_id, run_id, dag_run_id }) => JSON.stringify([dag_id, run_id ?? dag_run_id]);
  const runOf = new Map((runs.value ?? []).map((run) => [runKey(run), run]));
  const tasksOf = new Map();
  for (const task of tasks.value ?? []) tasksOf.set(runKey(task), [...(tasksOf.get(runKey(task)) ?? []), task]);
  const first = new Map();
  for (const { batch_export_id: id, since } of leases) first.set(id, Math.min(first.get(id) ?? since, since));
  const rows = leases.map((lease) => {
    const { state: said, why = "" } = verdicts[windowOf(lease)] ?? {};
    const late = now >= lease.until && !lease.resumed_at ? "late" : null;
    const urgent = ["abandoned", "overdue"].includes(said) ? said : late;
    const [state, tone] = exportState(lease);
    const verdict = said ? { state: said, why, at } : null;
    const kind = urgent ?? (lease.resumed_at ? "resumed" : "held");
    const its = seen(lease, runOf.get(runKey(lease)), tasksOf.get(runKey(lease)) ?? [], hidden, reasons);
    return { key: lease.key, lease, state, tone, verdict, kind, urgent: Boolean(urgent), ...its };
  });
  const kinds = [...rows.map(({ kind }) => kind), ...unreadable.map(() => "unreadable")];
  const counted = Object.keys(KINDS).map((kind) => [kinds.filter((one) => one === kind).length, KINDS[kind]]);
  return {
    problem: problemOf("Variables", variables),
    rows: sorted(rows, ({ urgent, lease: { batch_export_id: id, since } }) => [!urgent, first.get(id), id, since]),
    total: rows.length,
    urgent: unreadable.length > 0 || rows.some(({ urgent }) => urgent),
    counts: counted.filter(([number]) => number).map(([number, words]) => `${number} ${words}`),
    notes: unreadable,
    sweep: { at, task: sweeps.value?.rows[0] ?? null },
  };
}

function sorted(rows, keyOf) {
  return [...rows].sort((left, right) => {
    const [a, b] = [keyOf(left), keyOf(right)];
    const at = a.findIndex((value, index) => value !== b[index]);
    return at < 0 ? 0 : a[at] < b[at] ? -1 : 1;
  });
}

function campaignsView({ campaigns, reasons }) {
  const { rows, total } = campaigns.value ?? NONE;
  return {
    problem: problemOf("task instances", campaigns),
    rows: rows.map(({ task, ...its }) => ({ ...its, key: task.id, task: slim(task), reason: reasons[reasonKey(task)] })),
    running: rows.filter(({ task }) => GOES_ON.includes(task.state)).length,
    notes: total > rows.length ? [`The running ones and the last ${RECENT_CAMPAIGNS}, of ${total}.`] : [],
  };
}

// Return the counts of a campaign in the order of its bar: name, tone, number.
export function campaignParts({ counts = {}, left = 0 }) {
  const of = (names) => names.reduce((sum, name) => sum + ({ ...counts, left }[name] ?? 0), 0);
  return PARTS.map(([name, tone, names]) => [name, tone, of(names)]).filter(([, , number]) => number > 0);
}

function waitsView({ waits }) {
  const { rows: tasks, total } = waits.value ?? NONE;
  const rows = tasks.map((task) => {
    const fields = task.rendered_fields ?? {};
    const known = fields.organization_id && fields.organization_id !== "None";
    return {
      key: task.id,
      task: slim(task),
      organization: known ? fields.organization_id : `organization of connection ${fields.workspace_conn_id ?? "?"}`,
      what: SENSORS[task.operator] ?? task.operator,
      which: NAMES.filter((name) => fields[name]).map((name) => shorten(fields[name])).join(", "),
    };
  });
  return {
    problem: problemOf("task instances", waits),
    rows: sorted(rows, ({ organization, task }) => [organization, task.start_date ?? "~", task.id]),
    total,
    notes: total > rows.length ? [`The first ${rows.length} of ${total}.`] : [],
  };
}

// Return the keys of dashboards that tasks remember, with the last task of each.
export function dashboardKeys(creates) {
  const latest = new Map();
  for (const task of creates.value?.rows ?? []) {
    const key = task.rendered_fields?.variable_key;
    if (key && key !== "None" && !latest.has(key)) latest.set(key, task);
  }
  return latest;
}

function dashboardsView({ variables, creates, others }) {
  const latest = dashboardKeys(creates);
  const values = new Map([...(variables.value ?? []), ...others].map(({ key, value }) => [key, value]));
  const keys = new Set([...latest.keys(), ...[...values.keys()].filter((key) => key.startsWith(DASHBOARD_PREFIX))]);
  const hidden = problemOf("task instances", creates);
  const unseen = `dashboards of tasks whose variable_key does not begin with ${DASHBOARD_PREFIX}.`;
  return {
    problem: problemOf("Variables", variables),
    rows: [...keys].map((key) => ({ key, task: slim(latest.get(key)), held: parsed(values.get(key)) })),
    total: keys.size,
    notes: hidden ? [`${hidden.brief}: ${unseen}`] : [],
  };
}

// Return the fields of a task that a row shows; the filter reads no others.
function slim(task) {
  if (!task) return null;
  const { id, dag_id, dag_run_id, task_id, map_index, state, start_date } = task;
  return { id, dag_id, dag_run_id, task_id, map_index, state, start_date };
}

// Parse JSON; what is no text was parsed before, such as XComs by some releases of Airflow.
export function parsed(value) {
  try {
    return typeof value === "string" ? JSON.parse(value) : (value ?? null);
  } catch {
    return null;
  }
}

export const reasonKey = ({ id, try_number }) => `${id} ${try_number}`;

// Return why a task failed: the last exception in its log, else the last error.
export function reasonIn(log) {
  const lines = Array.isArray(log?.content) ? log.content : [];
  const events = lines.filter((event) => event?.error_detail?.length || event?.level === "error");
  const event = events.findLast((one) => one.error_detail?.length) ?? events.at(-1);
  const { exc_value, exc_type } = event?.error_detail?.[0] ?? {};
  return shorten(exc_value ? `${exc_value} (${exc_type})` : (exc_type ?? event?.event ?? "the log names no reason"), 600);
}

// Return the text of a fragment; one that is no percent-encoding stands for itself.
export function fragment(hash) {
  try {
    return decodeURIComponent(hash.slice(1));
  } catch {
    return hash.slice(1);
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
