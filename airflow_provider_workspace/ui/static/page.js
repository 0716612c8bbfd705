// The page: polls Airflow while it is visible, and renders the result. Names and texts are never read as markup.

import * as api from "./api.js";
import * as model from "./model.js";
import htm from "./vendor/htm-3.1.1.js";
import { h, render } from "./vendor/preact-11.2.0.js";

const SECONDS = 15;
// How old an answer may be before it is red, and how often the run of a sweep is asked for, in milliseconds.
const MINUTE = 60000;
const FOLLOW = 3000;
// Rows of a section, and how many each "Show more" adds: the page stays responsive.
const SHOWN = 50;
const MORE = 200;
// Maximum tasks to read per kind, campaigns that have ended, runs of the sweep, logs of failed tasks in sum and at
// once, and Dags of windows.
const MAX_TASKS = 200;
const MAX_ENDED = 100;
const MAX_SWEEPS = 10;
const MAX_LOGS = 50;
const LOGS_AT_ONCE = 3;
const MAX_DAGS = 20;
const GUIDE = "still-paused.html";
const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const TONES = { success: "good", failed: "bad", running: "warn", deferred: "warn" };
// Where the reasons of failed tasks are kept when the page is left.
const REASONS = "workspace reasons";
// The answers that each section shows. It waits for the first one only.
const NEEDS = {
  health: ["health", "sweeps"], windows: ["variables", "tasks", "runs", "dags"], questions: ["questions"],
  campaigns: ["campaigns"], waits: ["waits"],
};
const $ = (id) => document.getElementById(id);
const html = htm.bind(h);
const progresses = new Map();
const reasons = new Map(model.parsed(sessionStorage.getItem(REASONS)) ?? []);
const asking = new Set();
const nothing = { reason: { status: model.ASKING } };
const data = Object.fromEntries(Object.values(NEEDS).flat().map((name) => [name, nothing]));
const state = { shown: {}, docs: "", said: () => "", bad: false, sweeping: false, reading: false, timer: null };

// Ask one thing. An answer replaces the last one; a failure stands beside it, unless the role may not see it any more.
async function ask(name, read) {
  if (asking.has(name)) return;
  asking.add(name);
  try {
    data[name] = { value: await read(), at: Date.now() };
  } catch ({ status, message }) {
    const { value, at } = status === 403 ? {} : data[name];
    data[name] = { value, at, reason: { status, message } };
  }
  asking.delete(name);
  soon();
}

const unique = (rows, name) => [...new Set(rows.map((row) => row[name]))];
const STATES = [model.ASKS, ...model.GOES_ON];

// Read the closing tasks and the last tasks of windows, and those of their tasks that go on or have failed.
async function askTasks(windows) {
  const tasks = new Map();
  for (let start = 0; start < windows.length; start += 100) {
    const some = windows.slice(start, start + 100);
    const where = { dag_ids: unique(some, "dag_id"), dag_run_ids: unique(some, "run_id") };
    const task_ids = some.flatMap(({ close_task_id, work_task_ids = [] }) => [close_task_id, ...work_task_ids]);
    const last = api.tasksOf({ ...where, task_ids: [...new Set(task_ids)] });
    const others = api.byState([...STATES, "failed"], (state) => api.tasksOf({ ...where, state }, MAX_TASKS));
    for (const task of (await Promise.all([last, others])).flat()) tasks.set(task.id, task);
  }
  return [...tasks.values()];
}

// Read the campaigns under way, then the latest of those that have ended: one that ends meanwhile is in both lists.
async function askCampaigns() {
  const going = await api.byState(STATES, (state) => api.tasksBy(model.CAMPAIGNS, { state }, MAX_TASKS));
  const ended = await api.tasksBy(model.CAMPAIGNS, { state: model.ENDED }, MAX_ENDED);
  const invites = (task) => task.operator !== model.ORGANIZATION || task.rendered_fields?.part === "members";
  const [running, over] = [going, ended].map(({ rows }) => rows.filter(invites));
  const recent = over.slice(0, model.RECENT_CAMPAIGNS);
  const tasks = new Map([...running, ...recent].map((task) => [task.id, task]));
  const rows = await Promise.all([...tasks.values()].map(askProgress));
  const shown = ({ task, progress }) => progress || task.operator === model.INVITES;
  const cut = recent.length < over.length || [going, ended].some(({ rows, total }) => rows.length < total);
  return { rows: rows.filter(shown), cut };
}

async function askProgress(task) {
  const key = [task.id, task.state, task.try_number, task.end_date, task.trigger?.id].join();
  // A waiting or finished campaign does not write.
  if (task.state === "running" || !progresses.has(key)) {
    const { value, reason } = await answerOf(api.ofTask(task, "xcomEntries", "progress"));
    progresses.set(key, reason ? null : model.parsed(value.value));
  }
  return { task, progress: progresses.get(key) };
}

// Return an answer, or the reason for its absence if it is hidden or gone.
const answerOf = (promise) => promise.then((value) => ({ value }), (reason) => {
  if (![403, 404].includes(reason.status)) throw reason;
  return { reason };
});

async function askDags(ids) {
  const read = async (id) => [id, await answerOf(api.call("GET", api.path("dags", id)))];
  return Object.fromEntries(await Promise.all(ids.map(read)));
}

async function askAll() {
  const windows = () => [...model.readWindows(data.variables).windows.values()].map(([lease]) => lease);
  const dagIds = () => unique(windows(), "dag_id");
  const leases = ask("variables", () => api.variables(model.VARIABLES));
  const sweeps = ask("sweeps", () => api.tasksBy([model.SWEEP_OPERATOR], {}, MAX_SWEEPS));
  const dags = () => [...new Set([model.sweepDagOf(data.sweeps), ...dagIds()])].slice(0, MAX_DAGS);
  await Promise.all([
    leases.then(() => ask("tasks", () => askTasks(windows()))),
    leases.then(() => ask("runs", () => (dagIds().length ? api.runsOf(dagIds(), MAX_TASKS) : []))),
    Promise.all([leases, sweeps]).then(() => ask("dags", () => askDags(dags()))),
    ask("health", () => api.call("GET", "monitor/health")),
    ask("campaigns", askCampaigns),
    ask("waits", () => api.tasksBy(model.SENSORS, { state: model.GOES_ON }, MAX_TASKS)),
    ask("questions", () => api.byState([model.ASKS, "deferred"], (state) => api.questions(state, MAX_TASKS))),
  ]);
}

const reasonKey = (task) => [task.id, model.failedTry(task)].join();

function failedTasks() {
  const campaigns = (data.campaigns.value?.rows ?? []).map(({ task }) => task);
  const sweep = data.sweeps.value?.rows.slice(0, 1) ?? [];
  return [...sweep, ...campaigns, ...(data.tasks.value ?? [])].filter(model.failedTry).slice(0, MAX_LOGS);
}

// Return why a task failed. What its log said is remembered; what cannot be read now is asked again with the next poll.
async function askReason(task) {
  try {
    const content = (await api.logOf(task, model.failedTry(task)))?.map(model.parsed);
    const why = content ? model.reasonIn({ value: { content } }) : "its log is too long to look through here";
    reasons.set(reasonKey(task), why);
    sessionStorage.setItem(REASONS, JSON.stringify([...reasons].slice(-MAX_LOGS)));
    return why;
  } catch (reason) {
    return model.reasonIn({ reason });
  }
}

// Read the logs of failed tasks, a few at a time, while the page shows the rest.
async function askReasons() {
  if (state.reading) return;
  state.reading = true;
  const left = failedTasks().filter((task) => !reasons.has(reasonKey(task)));
  const readSome = async () => {
    for (let task = left.shift(); task; task = left.shift()) {
      task.reason = await askReason(task);
      soon();
    }
  };
  await Promise.all(Array.from({ length: LOGS_AT_ONCE }, readSome));
  state.reading = false;
}

const small = (...children) => html`<small>${children}</small>`;
const badge = (text, tone) => html`<span class="badge ${tone}">${text}</span>`;
const anchor = (href, text) => html`<a href=${href} onclick=${follow}>${text}</a>`;
const link = (where, text) => anchor(api.uiPath(where), text);
const taskLink = (task) => link(task, `${task.dag_id} / ${task.task_id}`);
const answerLink = (task, text) => anchor(`${api.uiPath(task)}/required_actions`, text);

// The frame of a plugin may not navigate the window: a link of the window itself may.
function follow(event) {
  if (window.parent === window || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const outside = window.parent.document.createElement("a");
  outside.href = event.currentTarget.href;
  outside.click();
}

function time(at, passed = "") {
  if (!at) return "unknown";
  const left = at - Date.now();
  const text = left > 0 ? `in ${model.duration(left)}` : `${passed}${model.duration(left)} ago`;
  return html`<time datetime=${new Date(at).toISOString()} title=${LOCAL.format(at)}>${text}</time>`;
}

const since = ({ start_date }) => (start_date ? time(Date.parse(start_date)) : "not begun");

// Return the text of what is to be rendered, without spaces: their places on the page are not in it.
function textOf(node) {
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (["string", "number"].includes(typeof node)) return String(node).replace(/\s+/g, "").toLowerCase();
  return node?.props ? textOf(node.props.children ?? "") : "";
}

// Return how old the oldest answer of some is, if the next one failed or is late, and whether that is bad.
function ageOf(names) {
  const isOld = ({ value, at, reason }) => value && (reason || Date.now() - at > MINUTE);
  const [oldest] = names.map((name) => data[name]).filter(isOld).sort((a, b) => a.at - b.at);
  if (!oldest) return null;
  const { at, reason } = oldest;
  const why = reason?.status === 401 ? "the session is over" : `Airflow did not answer: ${reason?.message}`;
  const [age, bad] = [model.duration(Date.now() - at), Date.now() - at > MINUTE];
  return { text: `as of ${age} ago: ${reason ? why : "asking Airflow"}`, bad };
}

const aged = (age) => age && html`<p class=${age.bad ? "age error" : "age"}>${age.text}</p>`;

function show(id, name, { problem, rows, notes }, contentOf, before = "") {
  const [{ reason, value }] = NEEDS[name].map((need) => data[need]);
  if (!value && reason?.status === model.ASKING) return;
  const filter = textOf($("filter").value);
  // What a person sees of the row, and what the headline calls it.
  const matches = (row) => !filter || textOf([row.kind ?? "", " ", contentOf(row)]).includes(filter);
  const kept = problem ? [] : rows.filter(matches);
  const visible = kept.slice(0, state.shown[id] ?? SHOWN);
  // Where something is cut or cannot be read, an empty list does not say that there is nothing.
  const none = rows.length ? "No row matches the filter." : notes.length ? "None can be listed." : $(id).dataset.empty;
  const showMore = () => {
    state.shown[id] = visible.length + MORE;
    draw();
  };
  const body = html`
    ${!problem && before}
    ${aged(ageOf(NEEDS[name]))}
    ${!kept.length && html`<p class=${problem ? "none error" : "none"}>${problem?.text ?? none}</p>`}
    <ul class="rows" hidden=${!kept.length}>
      ${visible.map((row) => html`<li key=${row.key} class=${row.urgent ? "urgent" : ""}>${contentOf(row)}</li>`)}
    </ul>
    ${visible.length < kept.length && html`
      <button type="button" class="more" onclick=${showMore}>Show more: ${visible.length} of ${kept.length}</button>`}
    ${!problem && notes.length > 0 && html`<ul class="notes">${notes.map((note) => html`<li>${note}</li>`)}</ul>`}`;
  $(id).querySelector(".count").textContent = problem ? "" : rows.length;
  render(body, $(id).querySelector(".body"));
}

// Show what a function makes of what the page shows, until something else is to be said.
function say(said, bad = false) {
  Object.assign(state, { said, bad });
  draw();
}

// Start the sweep, unless one goes on, and follow its run to the end.
async function runSweep(dagId) {
  if (state.sweeping) return;
  state.sweeping = true;
  say(() => `Starting ${dagId} …`);
  try {
    const runs = api.path("dags", dagId, "dagRuns");
    const [other] = await api.runsOf([dagId], 1, ["queued", "running"]);
    const started = other ?? (await api.call("POST", runs, { logical_date: null }));
    await followRun(started, other ? "Already" : "Started, now");
  } catch ({ status, message }) {
    const forbidden = "Your role may not do this in this Airflow. Nothing was done.";
    say(() => (status === 403 ? forbidden : `That did not work: ${message}`), true);
  }
  state.sweeping = false;
  draw();
}

async function followRun(run, how) {
  const [{ dag_id }, where] = [run, api.path("dags", run.dag_id, "dagRuns", run.dag_run_id)];
  const about = link(run, dag_id);
  while (["queued", "running"].includes(run.state)) {
    const [now, asked] = [run.state, Date.parse(run.queued_at)];
    say(() => [about, `: ${how} ${now}, asked for `, time(asked), "."]);
    await new Promise((done) => setTimeout(done, FOLLOW));
    const { value, reason } = await answerOf(api.call("GET", where)).catch((error) => ({ value: run, error }));
    if (reason) throw new Error(`its run cannot be followed: ${reason.message}`);
    run = value;
  }
  await refresh();
  if (run.state === "success") {
    const left = ({ windows }) => windows.counts.join(" · ") || "no window holds an export";
    return say((view) => [about, ` has run. Now: ${left(view)}.`]);
  }
  const tasks = { dag_ids: [dag_id], dag_run_ids: [run.dag_run_id], state: ["failed"] };
  say(() => [about, " failed."], true);
  const [task] = await api.tasksOf(tasks, 1);
  const why = task ? await askReason(task) : "Airflow began none of its tasks";
  say(() => [about, ` failed: ${why}`], true);
}

const exportRow = ({ batch_export_id, name, shown: [state, tone], leave_paused, refused, seen }) => html`
  <li>
    ${badge(state, tone)} ${name && html`<b>${name}</b>`} <code>${batch_export_id}</code>
    ${seen && small("seen in the service: ", model.shorten(seen))}
    ${leave_paused === true && small("stays paused after the window, as its author wants")}
    ${refused && small(model.shorten(refused))}
  </li>`;

function windowRow(row) {
  const { dag_id, run_id: dag_run_id, since, until, organization, owners, exports, work, verdict } = row;
  const index = row.map_index >= 0 && ` [${row.map_index}]`;
  const failure = (task) =>
    html`<small class="bad">${link(task, task.task_id)} ${task.said}</small>`;
  const question = (task) => html`
    <p>${answerLink(task, `Answer ${task.task_id}`)}: it waits for a person, asked ${time(Date.parse(task.asked_at))}.</p>`;
  return html`
    <div class="line">
      ${work && badge(...work)}
      <b>${link({ dag_id }, dag_id)} / ${link({ dag_id, dag_run_id }, dag_run_id)}${index}</b>
      ${owners.length > 0 && html`<span>ask ${owners.join(", ")}</span>`} ${small("organization ", organization)}
      <small class="end">since ${time(since)}, until at the latest: ${time(until, "passed ")}</small>
    </div>
    <ul class="exports">${exports.map(exportRow)}</ul>
    ${verdict && small("The last sweep said: ", model.shorten(verdict, 300))}
    ${row.asking.map(question)}
    ${small(row.lines.join(" · "), row.close && [" (", link(row.close, "clear it to resume the exports"), ")"])}
    ${row.failed.map(failure)}`;
}

// What can be done: start the sweep, or what stands in the way of that; and where to read on.
function helpBox({ rows, urgent }, { obstacle, unpause, sweepDag, sweeping }) {
  if (!rows.length && !urgent) return "";
  // A button that asks before it acts; the sandboxed frame cannot open dialogs.
  const button = state.sweeping || sweeping ? html`<button type="button" disabled>A sweep runs</button>` : html`
    <details class="action">
      <summary role="button">${urgent ? "Resume them now" : "Run the sweep now"}</summary>
      Run the Dag ${sweepDag}, which resumes what abandoned windows left paused?${" "}
      <button type="button" onclick=${() => runSweep(sweepDag)}>Yes</button>
    </details>`;
  const cause = unpause ? link({ dag_id: unpause }, obstacle) : obstacle;
  const byHand = html`
    <span>${cause} Where Airflow is installed, run <code>${model.COMMAND} windows --resume</code>.</span>`;
  const guide = state.docs && new URL(GUIDE, `${state.docs.replace(/\/$/, "")}/`).href;
  return html`
    <div class="help ${urgent ? "alarm" : ""}">
      ${obstacle ? byHand : button} ${guide && anchor(guide, "An export is still paused")}
    </div>`;
}

const healthPart = ({ text, bad, last, failure, unpause }) => html`
  <span class=${bad ? "error" : ""}>${text}</span>
  ${unpause && html`<small class="bad">${link({ dag_id: unpause }, `${unpause} is paused: unpause it`)}</small>`}
  ${last && html`<small class=${failure ? "bad" : ""}>${taskLink(last)} ${model.shorten(failure || `${last.state}`, 300)}</small>`}`;

function campaignRow({ task, organization, progress, waits: heldUp, again, asks }) {
  const { rows = 0, needs_person: people = [], why } = progress ?? {};
  const parts = progress ? model.campaignParts(progress) : [];
  const bar = ([, tone, number]) => html`<span class=${tone} style=${{ flexGrow: number / Math.max(rows, 1) }}></span>`;
  const count = ([name, tone, number], at) => html`${at ? ", " : ""}<span class=${tone}>${number} ${name}</span>`;
  const person = ({ row, email, status, reason: why }) =>
    html`<li><b>row ${row}</b> ${email || "no address"}: ${status}. ${why}</li>`;
  return html`
    <div class="line">
      ${badge(again || asks ? "waits" : (task.state ?? "not begun"), TONES[task.state] ?? "plain")} ${taskLink(task)}
      ${progress && small("organization ", organization)}
      <small class="end">${since(task)}</small>
    </div>
    ${progress
      ? html`<div class="bar">${parts.map(bar)}</div><p class="counts">${rows} rows: ${parts.map(count)}</p>`
      : small("It has not said how far it is, or your role may not see it.")}
    ${task.reason && html`<p class="error">Failed: ${task.reason}</p>`} ${heldUp && html`<p>${heldUp}</p>`}
    ${asks && html`<p>${answerLink(task, "Answer it")}: it waits for a person.</p>`}
    ${again && html`
      <p class=${again.late ? "error" : ""}>${again.text} ${again.at && time(again.at)}${why && `: ${why}`}.</p>`}
    ${people.length > 0 && html`
      <details><summary>Rows to look at: ${people.length}</summary><ul>${people.map(person)}</ul></details>`}`;
}

const questionRow = ({ what, organization, task }) => html`
  <div class="line">
    ${badge("waits for a person", "warn")} <b>${answerLink(task, what)}</b> ${taskLink(task)} ${small(organization)}
    <small class="end">asked ${time(Date.parse(task.asked_at))}</small>
  </div>`;

const waitRow = ({ organization, what, which, task }) => html`
  <div class="line">
    ${badge(task.state, "plain")} <b>${what}</b> ${which} ${taskLink(task)} ${small(organization)}
    <small class="end">${since(task)}</small>
  </div>`;

function draw() {
  clearTimeout(state.timer);
  state.timer = null;
  for (const task of failedTasks()) task.reason = reasons.get(reasonKey(task)) ?? task.reason;
  const view = model.view(data, Date.now());
  const { summary, health, windows, questions, campaigns, waits } = view;
  const age = ageOf(Object.keys(data));
  const login = summary.login && html` ${anchor(api.loginPath(), "Log in")}`;
  render(html`${summary.text}${login}${age?.bad && ` · ${age.text}`}`, $("summary"));
  $("summary").classList.toggle("error", summary.bad || Boolean(age?.bad));
  render([...health.parts.map(healthPart), aged(ageOf(NEEDS.health))], $("health"));
  const times = Object.values(data).map(({ at, reason }) => at ?? (reason.status === model.ASKING ? NaN : Infinity));
  const oldest = Math.min(...times);
  if (Number.isFinite(oldest)) $("updated").textContent = `Updated ${new Date(oldest).toLocaleTimeString()}`;
  show("windows", "windows", windows, windowRow, helpBox(windows, health));
  show("questions", "questions", questions, questionRow);
  show("invites", "campaigns", campaigns, campaignRow);
  show("waits", "waits", waits, waitRow);
  render(state.said(view), $("said"));
  $("said").hidden = !$("said").textContent;
  $("said").classList.toggle("error", state.bad);
}

// Draw several answers that arrive together only once.
function soon() {
  state.timer ??= setTimeout(draw, 50);
}

async function refresh() {
  // A hidden page does not poll.
  if (document.visibilityState !== "visible") return;
  soon();
  await askAll();
  draw();
  askReasons();
}

// Follow the theme of Airflow, around this frame.
const airflow = window.parent.document.documentElement;
const followTheme = () => document.documentElement.classList.toggle("dark", airflow.classList.contains("dark"));
new MutationObserver(followTheme).observe(airflow, { attributeFilter: ["class"] });
followTheme();
// The fragment of a link is a section, or a text to filter by. Read as a query, a "%" that encodes nothing is one.
const fragment = window.parent.location.hash.slice(1).replaceAll("+", "%2B");
const wanted = new URLSearchParams(`wanted=${fragment}`).get("wanted");
const section = $(wanted)?.tagName === "SECTION" ? $(wanted) : null;
if (!section) $("filter").value = wanted;
$("filter").addEventListener("input", draw);
$("search").addEventListener("submit", (event) => event.preventDefault());
$("refresh").addEventListener("click", refresh);
document.addEventListener("visibilitychange", refresh);
setInterval(refresh, SECONDS * 1000);
api.documentation().then((docs) => Object.assign(state, { docs }), () => {}).then(soon);
refresh().then(() => section?.scrollIntoView());
