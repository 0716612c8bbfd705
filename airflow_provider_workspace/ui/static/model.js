// What the page shows, as pure functions of what Airflow answered and the time.
//
// An answer is {value}, or {reason: {status, message}} if there is none; both if the value is old. What is not in a
// list may be hidden from the role of the person, so absence is "not known". What a window is, the last sweep says; as
// the sweep may be what is missing, a window is stuck too if it is past its latest end, or its closing task failed.

export const VARIABLES = "workspace_";
const LEASES = "workspace_lease.";
const GRANTS = "workspace_grant.";
const SWEEP = "workspace_window_sweep";
// Names of exports and organizations by id, as a JSON object; written by people.
const LABELS = "workspace_labels";
// How old the last sweep may be if its schedule is not known, and how much later than announced a campaign may go on.
const [HOUR, GRACE] = [3600000, 120000];
// How early a grant is listed.
const DAY = 24 * HOUR;
// What runs a command on every release of Airflow.
export const COMMAND = "python -m airflow_provider_workspace";
// As written by windows/leases.py.
const TEXTS = ["dag_id", "run_id", "close_task_id", "service", "workspace_conn_id", "organization_id",
  "batch_export_id", "state"];
// As written by state/grants.py.
const OF_GRANT = ["user_email", "dag_id", "run_id", "task_id", "service", "workspace_conn_id", "organization_id",
  "reason"];
// States of a task that has not ended, as every release knows them.
export const GOES_ON = ["running", "deferred", "queued", "scheduled", "restarting", "up_for_retry",
  "up_for_reschedule"];
export const ENDED = ["success", "failed", "skipped", "upstream_failed"];
// The state of a task that waits for a person. Airflow before 3.3 defers it, and refuses a filter by this state.
export const ASKS = "awaiting_input";
export const goesOn = (task) => task.state === ASKS || GOES_ON.includes(task.state);
const asks = ({ state, trigger }) => state === ASKS || (state === "deferred" && /HITL/.test(trigger?.classpath));
const hasEnded = (task) => Boolean(task?.state && !goesOn(task));
const hasFailed = (task) => ["failed", "up_for_retry"].includes(task?.state);
// Return the last try of a task that may have failed, whose log tells why; 0 if there is none.
export const failedTry = (task) => (hasFailed(task) ? task.try_number : goesOn(task) ? task.try_number - 1 : 0);
// Why a campaign does not run.
const HELD_UP = { queued: "Waits for a worker.", scheduled: "Waits for a slot of its pool." };
// Operators that invite: one that does nothing else, and others, which may have nobody to invite.
export const INVITES = "WorkspaceCreateInvitesOperator";
export const ORGANIZATION = "WorkspaceApplyOrganizationOperator";
export const CAMPAIGNS = [INVITES, "WorkspaceSyncMembersOperator", ORGANIZATION];
export const SWEEP_OPERATOR = "WorkspaceSweepOperator";
export const SENSORS = ["WorkspaceDomainVerifiedSensor", "WorkspaceInvitesSettledSensor",
  "WorkspaceMembersJoinedSensor", "WorkspaceProjectReceivingEventsSensor", "WorkspaceProjectOnboardedSensor"];
// Tones of the counts of a campaign; of others it is plain.
const TONES = {
  invited: "good", planned: "good", invalid: "bad", failed: "bad", unknown: "bad", not_sent: "warn", left: "rest"
};
// The status of a reason before the first answer.
export const ASKING = "asking";
const STILL_ASKING = "Asking Airflow …";
const FORBIDDEN = "Not visible to your role";
const NO_ANSWER = "Airflow did not answer";
const NO_REASON = "the log names no reason";
const HIDDEN = "not visible to your role, or deleted";

export function view(data, now) {
  const values = Object.fromEntries((data.variables.value ?? []).map(({ key, value }) => [key, value]));
  const given = parsed(values[LABELS]);
  const labels = given instanceof Object && !Array.isArray(given) ? given : {};
  const { at, windows: verdicts = {} } = parsed(values[SWEEP]) ?? {};
  const health = healthView(data, Date.parse(at), now);
  const windows = windowsView(data, verdicts, labels, health.causes, now);
  if (LABELS in values && labels !== given) windows.notes.push(`Correct the Variable ${LABELS}: it is no JSON object.`);
  const campaigns = campaignsView(data, labels, health.causes, now);
  const [questions, waits] = [questionsView(data, labels), waitsView(data, labels)];
  const grants = grantsView(data, labels, now);
  const sections = Object.entries({ "paused exports and grants": windows, approvals: questions, campaigns, waits });
  const problems = sections.filter(([, { problem }]) => problem?.brief);
  // The session is over for all of them at once.
  const login = Object.values(data).some((answer) => answer?.reason?.status === 401);
  const parts = problems.map(([name, { problem }]) => `${problem.brief}: ${name}`);
  parts.unshift(...windows.counts, ...grants.counts);
  if (login) parts.unshift("Log in again: the session is over");
  if (!parts.length) parts.push("No window holds an export, as far as your role sees");
  if (questions.rows.length) parts.push(`waiting for a person: ${questions.rows.length}`);
  if (campaigns.running) parts.push(`campaigns running: ${campaigns.running}`);
  if (waits.rows.length) parts.push(`tasks waiting: ${waits.rows.length}`);
  const urgent = windows.urgent || grants.urgent;
  const bad = login || urgent || problems.some(([, { problem }]) => problem.brief === NO_ANSWER);
  return { summary: { text: parts.join(" · "), bad, login }, health, windows, grants, questions, campaigns, waits };
}

// Return the Dag that sweeps: the one that did, or that of the example.
export const sweepDagOf = ({ value }) => value?.rows[0]?.dag_id ?? "workspace_sweep";

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
  // A sweep may have failed before it swept.
  const at = noted || Date.parse(tasks.find((task) => task.state === "success")?.end_date);
  const scheduled = tasks.filter((task) => task.dag_run_id.startsWith("scheduled__"));
  const starts = scheduled.map((task) => Date.parse(task.run_after));
  const period = Math.min(...starts.slice(1).map((start, index) => Math.abs(starts[index] - start) || Infinity));
  const often = period < Infinity ? `, every ${duration(period)}` : "";
  const hidden = problemOf("task instances", sweeps) ?? problemOf("Variables", variables);
  const first = last && !tasks.some(hasEnded) && "the first sweep has not ended";
  const never = first || (last ? "no sweep has succeeded" : "no sweep has run");
  const seen = `last ${noted ? "" : "successful "}sweep ${duration(now - at)} ago${often}`;
  const bad = at ? now - at > (often ? 2 * period : HOUR) : !hidden && !first;
  const sweepDag = sweepDagOf(sweeps);
  const { value: dag, reason } = dags.value?.[sweepDag] ?? {};
  const down = !problem && jobs[0].bad;
  const unpause = !down && dag?.is_paused && !dag.is_stale ? sweepDag : null;
  let obstacle = "";
  if (down) obstacle = "The scheduler is down, so no Dag runs.";
  else if (unpause) obstacle = `Dag ${sweepDag} is paused: unpause it.`;
  else if (dag?.is_stale) obstacle = `The file of Dag ${sweepDag} is gone: add it again.`;
  else if (reason && reason.status !== 404) obstacle = last ? "" : problemOf("Dags", { reason }).text;
  else if (!dag && (reason || !last)) obstacle = `No sweep can be started from here: add the Dag ${sweepDag}.`;
  const text = at ? seen : hidden ? about(hidden, "the last sweep") : never;
  const shown = problem ? [{ text: about(problem, "health"), bad: problem.brief !== STILL_ASKING }] : jobs;
  return {
    parts: [...shown, { text, bad, last, failure: last ? failureOf(last) : "", unpause }],
    causes: problem ? [] : jobs.slice(0, 2).filter((job) => job.bad).map((job) => job.text),
    ...{ obstacle, unpause, sweepDag, sweeping: tasks.some(goesOn) },
  };
}

const about = ({ brief }, what) => (brief ? `${brief}: ${what}` : "");

// Return why there is no answer, in words: brief for the headline, long for the section; none if the session is over,
// which the headline says once.
function problemOf(what, { reason, value }) {
  if (!reason || value) return null;
  if (reason.status === ASKING) return { brief: STILL_ASKING, text: STILL_ASKING };
  if (reason.status === 401) return { brief: "", text: "" };
  if (reason.status !== 403) return { brief: NO_ANSWER, text: `${NO_ANSWER}: ${reason.message}. Trying again.` };
  return { brief: FORBIDDEN, text: `${FORBIDDEN}: it may not read ${what}. An Airflow administrator can grant it.` };
}

// Return the windows with their leases, and by window what to do about the Variables that are no leases.
export function readWindows(variables) {
  const windows = new Map();
  const unreadable = [];
  for (const { key, value } of (variables.value ?? []).filter((variable) => variable.key.startsWith(LEASES))) {
    const given = parsed(value);
    const lease = { map_index: -1, ...given, key, since: Date.parse(given?.since), until: Date.parse(given?.until) };
    const wrong = TEXTS.filter((name) => typeof lease[name] !== "string" || !lease[name]);
    wrong.push(...["since", "until"].filter((name) => Number.isNaN(lease[name])));
    // The window as the Variable of the sweep names it.
    const [id, exportId = "EXPORT_ID"] = key.slice(LEASES.length).split(".");
    const cure = `run ${COMMAND} resume ${exportId} first, then delete it`;
    const what = `${given ? wrong.join(", ") : "its JSON"} is unusable`;
    const text = `If no closing task of its window is left to repair the Variable ${key}, ${cure}: ${what}.`;
    // A lease that nobody resumes, or that was paused later, was not resumed: as windows/leases.py reads it.
    const paused = Date.parse(lease.paused_at ?? 0);
    if (lease.state !== "closing" || !lease.closer || Date.parse(lease.resumed_at) < paused) delete lease.resumed_at;
    if (wrong.length) unreadable.push({ id, text });
    else windows.set(id, [...(windows.get(id) ?? []), lease]);
  }
  return { windows, unreadable };
}

function exportState(lease) {
  if (lease.resumed_at) return ["Resumed", "good"];
  if (!lease.paused_at && !lease.late_pause_until) return [lease.refused ? "Pause refused" : "Not paused yet", "plain"];
  if (lease.state === "closing") return ["Resume begun, not confirmed", "warn"];
  return [lease.paused_at ? "Paused" : "Pausing, no answer yet", "warn"];
}

function windowsView({ variables, tasks, runs, dags, questions }, verdicts, labels, causes, now) {
  const { windows, unreadable } = readWindows(variables);
  const problem = problemOf("task instances", tasks);
  const runKey = ({ dag_id, run_id, dag_run_id = run_id }) => JSON.stringify([dag_id, dag_run_id]);
  // A question knows when it was asked.
  const known = new Map([...(tasks.value ?? []), ...askedIn(questions)].map((task) => [task.id, task]));
  const tasksOf = Map.groupBy(known.values(), runKey);
  const runOf = new Map((runs.value ?? []).map((run) => [runKey(run), run]));
  const rows = [...windows].map(([key, leases]) => {
    const [{ dag_id, organization_id }] = leases;
    const [run, its] = [runOf.get(runKey(leases[0])), tasksOf.get(runKey(leases[0])) ?? []];
    const { lines, closing, ...seen } = seenOf(leases[0], dags.value?.[dag_id] ?? {}, run, its, problem);
    const held = heldBy(leases, verdicts[key] ?? {}, closing, now);
    return {
      ...{ ...seen, ...held, key, verdict: wordsOf(verdicts[key]) },
      lines: now >= held.until ? [...causes, ...lines] : lines,
      organization: labels[organization_id] ?? organization_id,
      exports: leases.map((lease) => ({ ...lease, name: labels[lease.batch_export_id], shown: exportState(lease) })),
    };
  });
  rows.sort((a, b) => b.urgent - a.urgent || a.since - b.since);
  const counts = [...Map.groupBy(rows, ({ kind }) => kind)].map(([kind, its]) => {
    const { size } = new Set(its.flatMap((row) => row.exports.map((lease) => lease.batch_export_id)));
    const from = Math.min(...its.map((row) => row.from));
    return `${size} ${size === 1 ? "export" : "exports"} ${kind}, for ${duration(now - from)}`;
  });
  if (unreadable.length) counts.unshift(`unreadable leases: ${unreadable.length}`);
  const urgent = unreadable.some(({ id }) => isStuck(verdicts[id]?.state)) || rows.some((row) => row.urgent);
  const notes = unreadable.map(({ text }) => text);
  return { problem: problemOf("Variables", variables), rows, urgent, counts, notes };
}

const isStuck = (said) => ["abandoned", "overdue"].includes(said);

// Return the words of the sweep; earlier releases noted state and reason only.
const wordsOf = (verdict) => (verdict ? verdict.text || [verdict.state, verdict.why].filter(Boolean).join(": ") : null);

// Return since when and until when a window holds its exports, and what the headline says of it, and since when.
function heldBy(leases, { state: said, since: noted }, close, now) {
  const [since, until] = ["since", "until"].map((name) => Math.min(...leases.map((lease) => lease[name])));
  const resumed = leases.every((lease) => lease.resumed_at);
  const untouched = leases.every((lease) => !lease.paused_at && !lease.late_pause_until);
  const calm = (kind, from) => ({ since, until, urgent: false, kind, from });
  const stuck = (kind, from) => ({ since, until, urgent: true, kind: `stuck: ${kind}`, from: from || since });
  if (isStuck(said)) return stuck(`${said} (last sweep)`, said === "overdue" ? until : Date.parse(noted));
  if (resumed) return calm("just resumed", Math.max(...leases.map((lease) => Date.parse(lease.resumed_at))));
  if (now >= until) return stuck("past the latest end", until);
  if (hasFailed(close)) return stuck("its closing task failed", Date.parse(close.end_date));
  return calm(untouched ? "about to be paused" : "paused", since);
}

// Return what Airflow shows of the Dag of a window, its run, its tasks that go on or have failed, and its closing task.
function seenOf({ dag_id, run_id, close_task_id, map_index, owner, work_task_ids: ids }, dag, run, tasks, problem) {
  const close = tasks.find((task) => task.task_id === close_task_id && task.map_index === map_index);
  const asking = tasks.filter((task) => asks(task) && (map_index < 0 || [map_index, -1].includes(task.map_index)));
  const last = tasks.filter((task) => ids?.includes(task.task_id) && (map_index < 0 || task.map_index === map_index));
  const over = ["success", "failed"].includes(run?.state) || (last.length && last.every(hasEnded));
  const running = tasks.filter((task) => task !== close && goesOn(task) && !asking.includes(task));
  const lines = [
    dag.reason?.status === 404 && "its Dag is deleted",
    dag.value?.is_paused && "its Dag is paused",
    dag.value?.is_stale && "the file of its Dag is gone",
    run && `run ${run.state}`,
    ...running.map((task) => `${task.task_id} ${task.state}`),
  ];
  if (problem) lines.push(about(problem, "the states of its tasks"));
  else if (!run && !close) lines.push(`its run and tasks: ${HIDDEN}`);
  else lines.push(close ? `${close_task_id} ${close.state ?? "not begun"}` : `${close_task_id}: ${HIDDEN}`);
  let work = last.length ? ["Work not over", "plain"] : null;
  if (asking.length) work = ["Somebody must answer", "warn"];
  return {
    ...{ dag_id, run_id, map_index, asking, closing: close, close: hasEnded(close) ? close : null },
    lines: [...new Set(lines)].filter(Boolean),
    owners: [...new Set([owner, ...(dag.value?.owners ?? [])])].filter((name) => name && name !== "airflow"),
    work: over ? ["Work over", "warn"] : work,
    failed: tasks.filter(failureOf).map((task) => ({ ...task, said: failureOf(task) })),
  };
}

// Return what is said of the last try that failed; the try before a running one may have succeeded, and been cleared.
function failureOf({ state, reason }) {
  const what = { failed: "failed", up_for_retry: "failed, and is tried again" }[state];
  if (what) return reason ? `${what}: ${reason}` : what;
  return reason && reason !== NO_REASON ? `failed before: ${reason}` : "";
}

// Return the tasks that wait for a person, with what they ask and since when.
function askedIn({ value }) {
  const known = ({ task_instance, subject, created_at }) => ({ ...task_instance, subject, asked_at: created_at });
  return (value?.rows ?? []).map(known).filter(asks);
}

// Return how much of a list was read, if not all of it.
const cutOf = ({ value: { rows = [], total = 0 } = {} }) => (total > rows.length ? [`${rows.length} of ${total}`] : []);

// Return the grants that end within a day or should have ended, and the Variables that are no grants.
function grantsView({ variables }, labels, now) {
  const all = (variables.value ?? []).filter(({ key }) => key.startsWith(GRANTS)).map(({ key, value }) => {
    const given = parsed(value);
    const times = Object.fromEntries(["since", "until"].map((name) => [name, Date.parse(given?.[name])]));
    const wrong = OF_GRANT.filter((name) => typeof given?.[name] !== "string" || !given[name]);
    wrong.push(...Object.keys(times).filter((name) => Number.isNaN(times[name])));
    if (!Number.isInteger(given?.level)) wrong.push("level");
    const what = `${given ? wrong.join(", ") : "its JSON"} is unusable`;
    const note = `Correct the Variable ${key}, or end that access by hand and delete it: ${what}.`;
    if (wrong.length) return { key, note, until: 0, urgent: true };
    const organization = labels[given.organization_id] ?? given.organization_id;
    return { ...given, ...times, key, organization, urgent: times.until <= now, note: "" };
  });
  const rows = all.filter(({ until }) => until <= now + DAY).sort((a, b) => a.until - b.until);
  const [wrong, late] = [({ note }) => note, ({ note, urgent }) => urgent && !note].map((of) => rows.filter(of).length);
  const counts = [late && `grants that should have ended: ${late}`, wrong && `unreadable grants: ${wrong}`];
  const problem = problemOf("Variables", variables);
  return { problem, rows, counts: counts.filter(Boolean), urgent: Boolean(late || wrong), late, notes: [] };
}

// Return the tasks of this package that wait for a person, the oldest first.
function questionsView({ questions }, labels) {
  const ours = askedIn(questions).filter((task) => task.operator?.startsWith("Workspace")).reverse();
  // The question names service and organization.
  const named = (subject) => labels[Object.keys(labels).find((id) => subject.includes(id))] ?? "";
  const shown = ours.map((task) => ({ key: task.id, task, what: task.subject, organization: named(task.subject) }));
  const notes = cutOf(questions).map((cut) => `The latest ${cut} questions of all Dags were searched.`);
  return { problem: problemOf("required actions", questions), rows: shown, notes };
}

function campaignsView({ campaigns }, labels, causes, now) {
  const { rows = [], cut } = campaigns.value ?? {};
  return {
    problem: problemOf("task instances", campaigns),
    rows: rows.map(({ task, progress }) => ({
      ...{ key: task.id, task, progress, asks: asks(task), waits: HELD_UP[task.state] ?? "" },
      organization: labels[progress?.organization_id] ?? progress?.organization_id,
      again: task.state === "deferred" && !asks(task) ? goesOnAt(Date.parse(progress?.again_at), causes, now) : null,
    })),
    running: rows.filter(({ task }) => goesOn(task)).length,
    notes: cut ? ["Older ones are not listed."] : [],
  };
}

// Return when a waiting campaign goes on, or should have, and what may hinder it.
function goesOnAt(at, causes, now) {
  if (!at) return null;
  const late = now - at >= GRACE;
  if (late) return { text: ["Should have gone on", ...causes.map((cause) => `(${cause})`)].join(" "), at, late };
  return at > now ? { text: "Goes on", at, late } : { text: "Goes on now", late };
}

// Return the counts of a campaign in the order of its bar: name, tone, number.
export function campaignParts({ counts = {}, left = 0 }) {
  const parts = Object.entries({ ...counts, left }).filter(([, number]) => number > 0);
  return parts.map(([name, number]) => [name.replaceAll("_", " "), TONES[name] ?? "plain", number]);
}

function waitsView({ waits }, labels) {
  const rows = (waits.value?.rows ?? []).map((task) => {
    const { organization_id: id, workspace_conn_id = "?", ...fields } = task.rendered_fields ?? {};
    const named = ["domain_id", "emails", "project_id", "product"].filter((name) => fields[name]);
    return {
      ...{ key: task.id, task, which: named.map((name) => shorten(fields[name])).join(", ") },
      organization: id && id !== "None" ? String(labels[id] ?? id) : `organization of connection ${workspace_conn_id}`,
      what: task.operator.replace(/^Workspace|Sensor$/g, "").replace(/\B(?=[A-Z])/g, " "),
    };
  });
  // Airflow lists the latest first.
  rows.reverse().sort((a, b) => a.organization.localeCompare(b.organization));
  const notes = cutOf(waits).map((cut) => `The first ${cut}.`);
  return { problem: problemOf("task instances", waits), rows, notes };
}

// Return why a task failed: the last exception in the lines of its log, else the last error.
export function reasonIn(lines) {
  const isError = (line) => line?.level === "error";
  const event = lines.findLast((line) => line?.error_detail?.length) ?? lines.findLast(isError);
  const { exc_value: value, exc_type: type } = event?.error_detail?.[0] ?? {};
  return shorten(value ? `${value} (${type})` : (type ?? event?.event ?? NO_REASON), 600);
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
