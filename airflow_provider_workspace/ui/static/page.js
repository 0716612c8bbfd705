// The page: polls Airflow while it is visible, and renders the result. Names and texts are never read as markup.

import * as api from "./api.js";
import * as model from "./model.js";
import htm from "./vendor/htm-3.1.1.js";
import { h, render } from "./vendor/preact-11.2.0.js";

const SECONDS = 15;
// Rows of a section, and how many each "Show more" adds: the page stays responsive.
const SHOWN = 50;
const MORE = 200;
// Maximum tasks to read per kind, runs of the sweep, logs of failed tasks, and Dags of windows.
const MAX_TASKS = 200;
const MAX_SWEEPS = 10;
const MAX_LOGS = 50;
const MAX_DAGS = 20;
const GUIDE = "guides/maintenance-windows.html#an-export-is-still-paused";
const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const TONES = { success: "good", failed: "bad", running: "warn", deferred: "warn" };
const $ = (id) => document.getElementById(id);
const html = htm.bind(h);
const known = new Map();
const state = { shown: {}, last: null, at: 0, asking: false };

// Return results, or the reasons for their absence, so that an error affects one section only.
async function settled(promises) {
  const answers = await Promise.allSettled(Object.values(promises));
  return Object.fromEntries(Object.keys(promises).map((name, at) => [name, answers[at]]));
}

// Read what will not change any more only once.
async function once(key, read) {
  if (!known.has(key)) known.set(key, (await Promise.allSettled([read()]))[0]);
  return known.get(key);
}

const unique = (rows, name) => [...new Set(rows.map((row) => row[name]))];

// Read the closing tasks and the last tasks of windows, and those of their tasks that go on or have failed.
async function askTasks(windows) {
  const tasks = new Map();
  for (let start = 0; start < windows.length; start += 100) {
    const some = windows.slice(start, start + 100);
    const where = { dag_ids: unique(some, "dag_id"), dag_run_ids: unique(some, "run_id") };
    const task_ids = some.flatMap(({ close_task_id, work_task_ids = [] }) => [close_task_id, ...work_task_ids]);
    const last = api.tasksOf({ ...where, task_ids: [...new Set(task_ids)] });
    const others = api.tasksOf({ ...where, state: [...model.GOES_ON, "failed"] }, MAX_TASKS);
    for (const task of (await Promise.all([last, others])).flat()) tasks.set(task.id, task);
  }
  return [...tasks.values()];
}

async function askCampaigns() {
  const found = await api.tasksBy(model.CAMPAIGNS, {}, MAX_TASKS);
  const invites = (task) => task.operator !== model.ORGANIZATION || task.rendered_fields?.part === "members";
  const { true: running = [], false: ended = [] } = Object.groupBy(found.rows.filter(invites), model.goesOn);
  const recent = ended.slice(0, model.RECENT_CAMPAIGNS);
  const rows = await Promise.all([...running, ...recent].map(askProgress));
  const shown = ({ task, progress }) => progress || task.operator === model.INVITES;
  return { rows: rows.filter(shown), cut: recent.length < ended.length || found.rows.length < found.total };
}

async function askProgress(task) {
  const key = ["progress", task.id, task.state, task.try_number, task.end_date, task.trigger?.id].join();
  // A waiting or finished campaign does not write.
  if (task.state === "running") known.delete(key);
  const { value } = await once(key, () => api.ofTask(task, "xcomEntries", "progress"));
  return { task, progress: model.parsed(value?.value) };
}

async function askReason(task) {
  const key = ["log", task.id, model.failedTry(task)].join();
  task.reason = model.reasonIn(await once(key, () => api.ofTask(task, "logs", model.failedTry(task))));
}

async function ask() {
  const found = await settled({
    variables: api.variables(model.VARIABLES),
    health: api.call("GET", "monitor/health"),
    sweeps: api.tasksBy([model.SWEEP_OPERATOR], {}, MAX_SWEEPS),
    campaigns: askCampaigns(),
    waits: api.tasksBy(model.SENSORS, { state: model.GOES_ON }, MAX_TASKS),
    questions: api.questions([model.ASKS, "deferred"], MAX_TASKS),
  });
  const windows = [...model.readWindows(found.variables).windows.values()].map(([lease]) => lease);
  const dagIds = unique(windows, "dag_id");
  const dags = [...new Set([model.sweepDagOf(found.sweeps), ...dagIds])].slice(0, MAX_DAGS);
  const more = {
    tasks: askTasks(windows),
    runs: dagIds.length ? api.runsOf(dagIds, MAX_TASKS) : [],
    dags: settled(Object.fromEntries(dags.map((id) => [id, api.call("GET", api.path("dags", id))]))),
  };
  Object.assign(found, await settled(more), { docs: (await once("docs", api.documentation)).value });
  const sweep = found.sweeps.value?.rows.slice(0, 1) ?? [];
  const campaigns = (found.campaigns.value?.rows ?? []).map(({ task }) => task);
  const failed = [...sweep, ...campaigns, ...(found.tasks.value ?? [])].filter(model.failedTry);
  await Promise.all(failed.slice(0, MAX_LOGS).map(askReason));
  Object.assign(state, { last: found, at: Date.now() });
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

function show(id, { problem, rows, notes }, contentOf, before = "") {
  const filter = $("filter").value.trim().toLowerCase();
  const matches = (row) => !filter || JSON.stringify(row).toLowerCase().includes(filter);
  const kept = problem ? [] : rows.filter(matches);
  const visible = kept.slice(0, state.shown[id] ?? SHOWN);
  const empty = problem?.text ?? (rows.length ? "No row matches the filter." : $(id).dataset.empty);
  const showMore = () => {
    state.shown[id] = visible.length + MORE;
    draw();
  };
  const body = html`
    ${!problem && before}
    ${!kept.length && html`<p class=${problem ? "none error" : "none"}>${empty}</p>`}
    <ul class="rows" hidden=${!kept.length}>
      ${visible.map((row) => html`<li key=${row.key} class=${row.urgent ? "urgent" : ""}>${contentOf(row)}</li>`)}
    </ul>
    ${visible.length < kept.length && html`
      <button type="button" class="more" onclick=${showMore}>Show more: ${visible.length} of ${kept.length}</button>`}
    ${!problem && notes.length > 0 && html`<ul class="notes">${notes.map((note) => html`<li>${note}</li>`)}</ul>`}`;
  $(id).querySelector(".count").textContent = problem ? "" : rows.length;
  render(body, $(id).querySelector(".body"));
}

async function runSweep({ target }, dagId) {
  target.disabled = true;
  try {
    await api.call("POST", api.path("dags", dagId, "dagRuns"), { logical_date: null });
    put("said", `Started ${dagId}: it resumes what abandoned windows left paused. This page shows it in a moment.`);
    setTimeout(refresh, 2000);
  } catch ({ status, message }) {
    const forbidden = "Your role may not do this in this Airflow. Nothing was done.";
    put("said", status === 403 ? forbidden : `That did not work: ${message}`, true);
  }
  target.disabled = target.parentElement.open = false;
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
function helpBox({ rows, urgent }, { obstacle, unpause, sweepDag }) {
  if (!rows.length && !urgent) return "";
  // A button that asks before it acts; the sandboxed frame cannot open dialogs.
  const button = html`
    <details class="action">
      <summary role="button">${urgent ? "Resume them now" : "Run the sweep now"}</summary>
      Run the Dag ${sweepDag}, which resumes what abandoned windows left paused?${" "}
      <button type="button" onclick=${(event) => runSweep(event, sweepDag)}>Yes</button>
    </details>`;
  const cause = unpause ? link({ dag_id: unpause }, obstacle) : obstacle;
  const byHand = html`
    <span>${cause} Where Airflow is installed, run <code>${model.COMMAND} windows --resume</code>.</span>`;
  const guide = state.last.docs && new URL(GUIDE, `${state.last.docs.replace(/\/$/, "")}/`).href;
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
  if (!state.last) return;
  const { summary, health, windows, questions, campaigns, waits } = model.view(state.last, Date.now());
  put("summary", summary.text, summary.bad);
  render(health.parts.map(healthPart), $("health"));
  put("updated", `Updated ${new Date(state.at).toLocaleTimeString()}`);
  show("windows", windows, windowRow, helpBox(windows, health));
  show("questions", questions, questionRow);
  show("invites", campaigns, campaignRow);
  show("waits", waits, waitRow);
}

function put(id, text, bad = false) {
  $(id).textContent = text;
  $(id).hidden = false;
  $(id).classList.toggle("error", bad);
}

async function refresh() {
  // A hidden page does not poll.
  if (document.visibilityState !== "visible" || state.asking) return;
  state.asking = true;
  const failed = ({ message }) => put("said", `This page could not show what Airflow answered: ${message}`, true);
  await ask().then(draw).catch(failed);
  state.asking = false;
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
refresh().then(() => section?.scrollIntoView());
