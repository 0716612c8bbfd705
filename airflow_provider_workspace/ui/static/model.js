// What the page shows, as pure functions of what Airflow answered and the time.
//
// An answer is {value}, or {reason: {status, message}} if there is none. What is not in a list may be hidden from the
// role of the person, so absence is "not known". What a window is, windows/state.py decides, and the page shows what the
// last sweep noted of it. One thing it says by itself, because the sweep may be what is missing: "past the latest end".

// Prefix of all Variables that the page reads.
export const VARIABLES = "workspace_";
const LEASES = "workspace_lease.";
const SWEEP = "workspace_window_sweep";
// Names of exports and organizations by id, as a JSON object; written by people.
const LABELS = "workspace_labels";
// How old the last sweep may be if its schedule is not known, in milliseconds.
const HOUR = 3600000;
// What runs a command on every release of Airflow.
export const COMMAND = "python -m airflow_provider_workspace";
// As written by windows/leases.py.
const TEXTS = [
  "dag_id", "run_id", "close_task_id", "service", "workspace_conn_id", "organization_id", "batch_export_id", "state"
];
// States of a task that has not ended.
export const GOES_ON = [
  "running", "deferred", "queued", "scheduled", "restarting", "up_for_retry", "up_for_reschedule"
];
export const goesOn = (task) => GOES_ON.includes(task.state);
const hasEnded = (task) => Boolean(task?.state && !goesOn(task));
// Why a campaign does not run.
const HELD_UP = {
  queued: "Waits for a worker.", scheduled: "Waits for a slot of its pool.", up_for_retry: "Airflow tries it again."
};
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
  const values = Object.fromEntries((data.variables.value ?? []).map(({ key, value }) => [key, value]));
  const labels = parsed(values[LABELS]) ?? {};
  const { at, windows: verdicts = {} } = parsed(values[SWEEP]) ?? {};
  const health = healthView(data, Date.parse(at), now);
  const windows = windowsView(data, verdicts, labels, now);
  const [campaigns, waits] = [campaignsView(data, labels), waitsView(data, labels)];
  const problems = Object.entries({ "paused exports": windows, campaigns, waits }).filter(([, its]) => its.problem);
  const parts = [...windows.counts, ...problems.map(([name, { problem }]) => `${problem.brief}: ${name}`)];
  if (!parts.length) parts.push("No window holds an export, as far as your role sees");
  if (campaigns.running) parts.push(`campaigns running: ${campaigns.running}`);
  if (waits.rows.length) parts.push(`tasks waiting: ${waits.rows.length}`);
  const bad = windows.urgent || problems.some(([, { problem }]) => problem.brief !== FORBIDDEN);
  return { summary: { text: parts.join(" · "), bad }, health, windows, campaigns, waits };
}

// Return what runs and what does not, the age of the last sweep, and why none can be started from the page.
function healthView({ health, variables, sweeps, dags }, noted, now) {
  const problem = problemOf("the health of Airflow", health);
  const jobs = ["scheduler", "triggerer", "dag_processor"].map((name) => {
    const { status, [`latest_${name}_heartbeat`]: beat } = health.value?.[name] ?? {};
    const [bad, age] = [status !== "healthy", beat ? `, last seen ${duration(now - Date.parse(beat))} ago` : ""];
    return { text: `${name.replace("_", " ")} ${bad ? `down${age}` : "runs"}`, bad };
  });
  const tasks = sweeps.value?.rows ?? [];
  const [last] = tasks;
  const at = noted || Date.parse(tasks.find(hasEnded)?.end_date);
  const scheduled = tasks.filter((task) => task.dag_run_id.startsWith("scheduled__"));
  const starts = scheduled.map((task) => Date.parse(task.run_after));
  const period = Math.min(...starts.slice(1).map((start, index) => Math.abs(starts[index] - start) || Infinity));
  const often = Number.isFinite(period) ? `, every ${duration(period)}` : "";
  const late = now - at > (often ? 2 * period : HOUR);
  const hidden = problemOf("task instances", sweeps) ?? problemOf("Variables", variables);
  const never = last ? "the first sweep has not ended" : "no sweep has run";
  const text = at ? `last sweep ${duration(now - at)} ago${often}` : hidden ? `${hidden.brief}: the last sweep` : never;
  const down = !problem && jobs[0].bad && "The scheduler is down, so no Dag runs.";
  const none = !last && "No sweep can be started from here: add the Dag resume_abandoned_exports.";
  const paused = dags.value?.[last?.dag_id]?.value?.is_paused && `Dag ${last.dag_id} is paused: unpause it.`;
  return {
    parts: [
      ...(problem ? [{ text: `${problem.brief}: health`, bad: true }] : jobs),
      { text, bad: at ? late : !last && !hidden, last: last && slim(last) },
    ],
    obstacle: down || none || paused || "",
  };
}

// Return why there is no answer, in words: brief for the headline, long for the section.
function problemOf(what, { reason }) {
  if (!reason) return null;
  const brief = { 401: "Log in again", 403: FORBIDDEN }[reason.status] ?? "Airflow did not answer";
  const cures = { 401: "the session is over.", 403: `it may not read ${what}. An Airflow administrator can grant it.` };
  return { brief, text: `${brief}: ${cures[reason.status] ?? `${reason.message}. Trying again.`}` };
}

// Return the windows with their leases, and by window what to do about the Variables that are no leases.
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
    // The window as the Variable of the sweep names it.
    const [id, exportId = "EXPORT_ID"] = key.slice(LEASES.length).split(".");
    const cure = `run ${COMMAND} resume ${exportId} first, then delete it`;
    const text = `If no closing task of its window is left to repair the Variable ${key}, ${cure}: ${what} is unusable.`;
    // A lease that nobody resumes, or that was paused later, was not resumed: as windows/leases.py reads it.
    const paused = Date.parse(lease.paused_at ?? 0);
    if (lease.state !== "closing" || !lease.closer || Date.parse(lease.resumed_at) < paused) delete lease.resumed_at;
    if (wrong.length) unreadable.push({ id, text });
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

function windowsView({ variables, tasks, runs, dags }, verdicts, labels, now) {
  const { windows, unreadable } = readWindows(variables);
  const problem = problemOf("task instances", tasks);
  const runKey = ({ dag_id, run_id, dag_run_id = run_id }) => JSON.stringify([dag_id, dag_run_id]);
  const tasksOf = Map.groupBy(tasks.value ?? [], runKey);
  const runOf = new Map((runs.value ?? []).map((run) => [runKey(run), run]));
  const rows = [...windows].map(([key, leases]) => {
    const [{ dag_id, organization_id }] = leases;
    const [run, its] = [runOf.get(runKey(leases[0])), tasksOf.get(runKey(leases[0])) ?? []];
    return {
      ...seenOf(leases[0], dags.value?.[dag_id] ?? {}, run, its, problem),
      ...heldBy(leases, verdicts[key]?.state, now),
      ...{ key, verdict: verdicts[key] ?? null, organization: labels[organization_id] ?? organization_id },
      exports: leases.map((lease) => ({ ...lease, name: labels[lease.batch_export_id], shown: exportState(lease) })),
    };
  });
  rows.sort((a, b) => b.urgent - a.urgent || a.since - b.since);
  const counts = [...Map.groupBy(rows, ({ kind }) => kind)].map(([kind, its]) => {
    const ids = new Set(its.flatMap((row) => row.exports.map((lease) => lease.batch_export_id)));
    return `${ids.size} ${ids.size === 1 ? "export" : "exports"} ${kind}, for ${duration(now - its[0].since)}`;
  });
  if (unreadable.length) counts.unshift(`unreadable leases: ${unreadable.length}`);
  // A lease that cannot be read counts as abandoned, until a sweep says what its window is.
  const stuck = unreadable.some(({ id }) => isStuck(verdicts[id]?.state ?? "abandoned"));
  const urgent = stuck || rows.some((row) => row.urgent);
  const notes = unreadable.map(({ text }) => text);
  return { problem: problemOf("Variables", variables), rows, urgent, counts, notes };
}

const isStuck = (said) => ["abandoned", "overdue"].includes(said);

// Return since when and until when a window holds its exports, and what the headline says of it.
function heldBy(leases, said, now) {
  const [since, until] = ["since", "until"].map((name) => Math.min(...leases.map((lease) => lease[name])));
  const stuck = isStuck(said) && `stuck: ${said} (last sweep)`;
  const resumed = leases.every((lease) => lease.resumed_at) && "just resumed";
  const late = now >= until && !resumed && "stuck: past the latest end";
  const untouched = leases.every((lease) => !lease.paused_at && !lease.late_pause_until) && "about to be paused";
  return { since, until, urgent: Boolean(stuck || late), kind: stuck || late || resumed || untouched || "paused" };
}

// Return what Airflow shows of the Dag of a window, its run, its tasks that go on or have failed, and its closing task.
function seenOf({ dag_id, run_id, close_task_id, map_index, owner, work_task_ids: ids }, dag, run, tasks, problem) {
  const close = tasks.find((task) => task.task_id === close_task_id && task.map_index === map_index);
  const last = tasks.filter((task) => ids?.includes(task.task_id) && (map_index < 0 || task.map_index === map_index));
  const over = ["success", "failed"].includes(run?.state) || (last.length && last.every(hasEnded));
  const lines = dag.reason?.status === 404 ? ["its Dag is deleted"] : [];
  if (dag.value?.is_paused) lines.push("its Dag is paused");
  if (dag.value?.is_stale) lines.push("the file of its Dag is gone");
  if (run) lines.push(`run ${run.state}`);
  for (const task of tasks) if (task !== close && goesOn(task)) lines.push(`${task.task_id} ${task.state}`);
  if (problem) lines.push(`${problem.brief}: the states of its tasks`);
  else if (!run && !close) lines.push(`its run and tasks: ${HIDDEN}`);
  else lines.push(close ? `${close_task_id} ${close.state ?? "not begun"}` : `${close_task_id}: ${HIDDEN}`);
  return {
    ...{ dag_id, run_id, map_index, lines: [...new Set(lines)] },
    owners: [...new Set([owner, ...(dag.value?.owners ?? [])])].filter((name) => name && name !== "airflow"),
    work: over ? ["Work over", "warn"] : last.length ? ["Work not over", "plain"] : null,
    close: hasEnded(close) ? slim(close) : null,
    failed: tasks.filter((task) => task.state === "failed").map(slim),
  };
}

function campaignsView({ campaigns }, labels) {
  const { rows = [], cut } = campaigns.value ?? {};
  return {
    problem: problemOf("task instances", campaigns),
    rows: rows.map(({ task, progress, ...its }) => ({
      ...{ key: task.id, task: slim(task), progress, ...its },
      organization: labels[progress?.organization_id] ?? progress?.organization_id,
      waits: HELD_UP[task.state] ?? "",
    })),
    running: rows.filter(({ task }) => goesOn(task)).length,
    notes: cut ? ["Older ones are not listed."] : [],
  };
}

// Return the counts of a campaign in the order of its bar: name, tone, number.
export function campaignParts({ counts = {}, left = 0 }) {
  const parts = Object.entries({ ...counts, left }).filter(([, number]) => number > 0);
  return parts.map(([name, number]) => [name.replaceAll("_", " "), TONES[name] ?? "plain", number]);
}

function waitsView({ waits }, labels) {
  const { rows: tasks = [], total = 0 } = waits.value ?? {};
  const rows = tasks.map((task) => {
    const { organization_id: id, workspace_conn_id = "?", ...fields } = task.rendered_fields ?? {};
    return {
      key: task.id,
      task: slim(task),
      organization: id && id !== "None" ? String(labels[id] ?? id) : `organization of connection ${workspace_conn_id}`,
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
  const { exc_value: value, exc_type: type } = event?.error_detail?.[0] ?? {};
  return shorten(value ? `${value} (${type})` : (type ?? event?.event ?? "the log names no reason"), 600);
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
