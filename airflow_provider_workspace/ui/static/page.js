// The page: polls Airflow while it is visible, and renders the result. Names and texts are never read as markup.

import * as api from "./api.js";
import * as model from "./model.js";
import htm from "./vendor/htm-3.1.1.js";
import { h, render } from "./vendor/preact-11.2.0.js";

// Milliseconds from one poll to the next, for one of the run of a sweep, and until an answer is so old that it is red.
const [POLL, FOLLOW, MINUTE] = [15000, 3000, 60000];
// Rows of a section, and how many each "Show more" adds: the page stays responsive.
const [SHOWN, MORE] = [50, 200];
// Maximum tasks per kind, campaigns that have ended, those of them that are shown, tasks of the sweep, logs, and Dags.
const MAX = { tasks: 200, ended: 100, recent: 20, sweeps: 10, logs: 50, dags: 20 };
const GUIDE = "still-paused.html";
const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const TONES = { success: "good", failed: "bad", running: "warn", deferred: "warn" };
// Where the reasons of failed tasks are kept when the page is left.
const REASONS = "workspace reasons";
// The answers that each section shows. It waits for the first one only.
const NEEDS = {
  health: ["health", "sweeps"], windows: ["variables", "tasks", "runs", "dags"], questions: ["questions"],
  grants: ["variables"], invites: ["campaigns"], waits: ["waits"],
};
const $ = (id) => document.getElementById(id);
const html = htm.bind(h);
const progresses = new Map();
const reasons = new Map(model.parsed(sessionStorage.getItem(REASONS)) ?? []);
const asking = new Set();
const nothing = { reason: { status: model.ASKING } };
const data = Object.fromEntries(Object.values(NEEDS).flat().map((name) => [name, nothing]));
const state = { shown: {}, docs: "", said: () => "", bad: false, sweeping: false, timer: null };

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

const STATES = [model.ASKS, ...model.GOES_ON];
const unique = (values) => [...new Set(values)];
const windows = () => [...model.readWindows(data.variables).windows.values()].map(([lease]) => lease);
const dagsOf = (leases) => unique(leases.map((lease) => lease.dag_id));

// Read the closing tasks and the last tasks of windows, and those of their tasks that go on or have failed.
async function askTasks(leases) {
  const tasks = new Map();
  for (let start = 0; start < leases.length; start += 100) {
    const some = leases.slice(start, start + 100);
    const where = { dag_ids: dagsOf(some), dag_run_ids: unique(some.map((lease) => lease.run_id)) };
    const task_ids = unique(some.flatMap(({ close_task_id, work_task_ids = [] }) => [close_task_id, ...work_task_ids]));
    const others = api.byState([...STATES, "failed"], (state) => api.tasksOf({ ...where, state }, MAX.tasks));
    const found = await Promise.all([api.tasksOf({ ...where, task_ids }), others]);
    for (const task of found.flat()) tasks.set(task.id, task);
  }
  return [...tasks.values()];
}

// Read the campaigns under way, then the latest of those that have ended: one that ends meanwhile is in both lists.
async function askCampaigns() {
  const going = await api.byState(STATES, (state) => api.tasksBy(model.CAMPAIGNS, { state }, MAX.tasks));
  const ended = await api.tasksBy(model.CAMPAIGNS, { state: model.ENDED }, MAX.ended);
  const invites = (task) => task.operator !== model.ORGANIZATION || task.rendered_fields?.part === "members";
  const [running, over] = [going, ended].map(({ rows }) => rows.filter(invites));
  const recent = over.slice(0, MAX.recent);
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
    const { value, reason } = await answerOf(api.progressOf(task));
    progresses.set(key, reason ? null : model.parsed(value.value));
  }
  return { task, progress: progresses.get(key) };
}

// Return an answer, or the reason for its absence if it is hidden or gone.
const answerOf = (promise) => promise.then((value) => ({ value }), (reason) => {
  if (![403, 404].includes(reason.status)) throw reason;
  return { reason };
});

async function askDags() {
  const ids = unique([model.sweepDagOf(data.sweeps), ...dagsOf(windows())]).slice(0, MAX.dags);
  const read = async (id) => [id, await answerOf(api.call("GET", api.path("dags", id)))];
  return Object.fromEntries(await Promise.all(ids.map(read)));
}

async function askAll() {
  const leases = ask("variables", () => api.variables(model.VARIABLES));
  const sweeps = ask("sweeps", () => api.tasksBy([model.SWEEP_OPERATOR], {}, MAX.sweeps));
  const askRuns = (ids) => (ids.length ? api.runsOf(ids, MAX.tasks) : []);
  await Promise.all([
    leases.then(() => ask("tasks", () => askTasks(windows()))),
    leases.then(() => ask("runs", () => askRuns(dagsOf(windows())))),
    Promise.all([leases, sweeps]).then(() => ask("dags", askDags)),
    ask("health", () => api.call("GET", "monitor/health")),
    ask("campaigns", askCampaigns),
    ask("waits", () => api.tasksBy(model.SENSORS, { state: model.GOES_ON }, MAX.tasks)),
    ask("questions", () => api.byState([model.ASKS, "deferred"], (state) => api.questions(state, MAX.tasks))),
  ]);
}

const reasonKey = (task) => [task.id, model.failedTry(task)].join();

function failedTasks() {
  const [sweeps, campaigns] = [data.sweeps, data.campaigns].map(({ value }) => value?.rows ?? []);
  const tasks = [...sweeps.slice(0, 1), ...campaigns.map(({ task }) => task), ...(data.tasks.value ?? [])];
  return tasks.filter(model.failedTry).slice(0, MAX.logs);
}

// Return why a task failed. What its log said is remembered; what cannot be read now is asked again with the next poll.
async function askReason(task) {
  try {
    const lines = await api.logOf(task, model.failedTry(task));
    const why = lines ? model.reasonIn(lines.map(model.parsed)) : "its log is too long to look through here";
    reasons.set(reasonKey(task), why);
    sessionStorage.setItem(REASONS, JSON.stringify([...reasons].slice(-MAX.logs)));
    return why;
  } catch ({ status }) {
    return status === 403 ? "not visible to your role" : "its log cannot be read";
  }
}

// Read the logs of failed tasks, three at a time, while the page shows the rest.
async function askReasons() {
  if (asking.has("reasons")) return;
  asking.add("reasons");
  const left = failedTasks().filter((task) => !reasons.has(reasonKey(task))).values();
  const readSome = async () => {
    for (const task of left) {
      task.reason = await askReason(task);
      soon();
    }
  };
  await Promise.all([readSome(), readSome(), readSome()]);
  asking.delete("reasons");
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
  const left = at - Date.now();
  const text = left > 0 ? `in ${model.duration(left)}` : `${passed}${model.duration(left)} ago`;
  return html`<time datetime=${new Date(at).toISOString()} title=${LOCAL.format(at)}>${text}</time>`;
}

const timeOf = (text, none = "unknown") => (text ? time(Date.parse(text)) : none);

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
  const { status, message } = oldest.reason ?? {};
  const why = status === 401 ? "the session is over" : `Airflow did not answer: ${message}`;
  const age = Date.now() - oldest.at;
  return { text: `as of ${model.duration(age)} ago: ${oldest.reason ? why : "asking Airflow"}`, bad: age > MINUTE };
}

const aged = (age) => age && html`<p class=${age.bad ? "age error" : "age"}>${age.text}</p>`;

function show(id, { problem, rows, notes }, contentOf, before = "") {
  const [{ reason, value }] = NEEDS[id].map((need) => data[need]);
  if (!value && reason?.status === model.ASKING) return;
  const filter = textOf($("filter").value);
  // What a person sees of the row, and what the headline calls it.
  const kept = problem ? [] : rows.filter((row) => !filter || textOf([row.kind, contentOf(row)]).includes(filter));
  const visible = kept.slice(0, state.shown[id] ?? SHOWN);
  // Where something is cut or cannot be read, an empty list does not say that there is nothing.
  const none = rows.length ? "No row matches the filter." : notes.length ? "None can be listed." : $(id).dataset.empty;
  const showMore = () => {
    state.shown[id] = visible.length + MORE;
    draw();
  };
  const more = `Show more: ${visible.length} of ${kept.length}`;
  const body = html`
    ${!problem && before} ${aged(ageOf(NEEDS[id]))}
    ${!kept.length && html`<p class=${problem ? "none error" : "none"}>${problem?.text ?? none}</p>`}
    <ul class="rows" hidden=${!kept.length}>
      ${visible.map((row) => html`<li key=${row.key} class=${row.urgent ? "urgent" : ""}>${contentOf(row)}</li>`)}
    </ul>
    ${visible.length < kept.length && html`<button type="button" class="more" onclick=${showMore}>${more}</button>`}
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
async function runSweep(dag_id) {
  if (state.sweeping) return;
  state.sweeping = true;
  say(() => `Starting ${dag_id} …`);
  try {
    await followRun(dag_id);
  } catch ({ status, message }) {
    const forbidden = "Your role may not do this in this Airflow. Nothing was done.";
    say(() => (status === 403 ? forbidden : `That did not work: ${message}`), true);
  }
  state.sweeping = false;
  draw();
}

async function followRun(dag_id) {
  const about = link({ dag_id }, dag_id);
  const [other] = await api.runsOf([dag_id], 1, ["queued", "running"]);
  let run = other ?? (await api.call("POST", api.path("dags", dag_id, "dagRuns"), { logical_date: null }));
  const { dag_run_id, queued_at } = run;
  while (["queued", "running"].includes(run.state)) {
    const how = `${other ? "Already" : "Started, now"} ${run.state}`;
    say(() => [about, `: ${how}, asked for `, timeOf(queued_at), "."]);
    await new Promise((done) => setTimeout(done, FOLLOW));
    run = await api.call("GET", api.path("dags", dag_id, "dagRuns", dag_run_id)).catch((error) => {
      if ([403, 404].includes(error.status)) throw new Error(`its run cannot be followed: ${error.message}`);
      return run;
    });
  }
  await refresh();
  const left = ({ windows }) => windows.counts.join(" · ") || "no window holds an export";
  if (run.state === "success") return say((view) => [about, ` has run. Now: ${left(view)}.`]);
  const [task] = await api.tasksOf({ dag_ids: [dag_id], dag_run_ids: [dag_run_id], state: ["failed"] }, 1);
  const why = task ? await askReason(task) : "Airflow began none of its tasks";
  say((view) => [about, ` failed: ${why} Now: ${left(view)}.`], true);
}

const exportRow = ({ batch_export_id, name, shown: [state, tone], leave_paused, refused, seen }) => html`
  <li>
    ${badge(state, tone)} ${name && html`<b>${name}</b>`} <code>${batch_export_id}</code>
    ${seen && small("seen in the service: ", model.shorten(seen))}
    ${leave_paused === true && small("stays paused after the window, as its author wants")}
    ${refused && small(model.shorten(refused))}
  </li>`;

function windowRow(row) {
  const { dag_id, run_id: dag_run_id, map_index, since, until, organization, owners, exports, work, verdict } = row;
  const index = map_index >= 0 && ` [${map_index}]`;
  const failure = (task) => html`<small class="bad">${link(task, task.task_id)} ${task.said}</small>`;
  const question = (task) => html`
    <p>${answerLink(task, `Answer ${task.task_id}`)}: it waits for a person, asked ${timeOf(task.asked_at)}.</p>`;
  return html`
    <div class="line">
      ${work && badge(...work)}
      <b>${link({ dag_id }, dag_id)} / ${link({ dag_id, dag_run_id }, dag_run_id)}${index}</b>
      ${owners.length > 0 && html`<span>ask ${owners.join(", ")}</span>`} ${small("organization ", organization)}
      <small class="end">since ${time(since)}, until at the latest: ${time(until, "passed ")}</small>
    </div>
    <ul class="exports">${exports.map(exportRow)}</ul>
    ${verdict && small("The last sweep said: ", model.shorten(verdict, 300))} ${row.asking.map(question)}
    ${small(row.lines.join(" · "), row.close && [" (", link(row.close, "clear it to resume the exports"), ")"])}
    ${row.failed.map(failure)}`;
}

// What can be done about windows: the sweep, and where to read on.
function windowsBox({ rows, urgent }, health) {
  if (!rows.length && !urgent) return "";
  const guide = state.docs && new URL(GUIDE, `${state.docs.replace(/\/$/, "")}/`).href;
  const label = urgent ? "Resume them now" : "Run the sweep now";
  return sweepBox(label, urgent, health, guide && anchor(guide, "An export is still paused"));
}

// What can be done about grants that should have ended: the sweep, whose log says what it could not end.
const grantsBox = ({ late }, health) => late > 0 && sweepBox("End them now", true, health, "");

// Start the sweep, or say what stands in the way of that.
function sweepBox(label, urgent, { obstacle, unpause, sweepDag, sweeping }, more) {
  const byHand = html`
    <span>${unpause ? link({ dag_id: unpause }, obstacle) : obstacle} Where Airflow is installed, run${" "}
    <code>${model.COMMAND} sweep</code>.</span>`;
  // A button that asks before it acts; the sandboxed frame cannot open dialogs.
  const button = html`
    <details class="action">
      <summary role="button">${label}</summary>
      Run the Dag ${sweepDag}, which resumes what abandoned windows left paused, and ends access that is over?${" "}
      <button type="button" onclick=${() => runSweep(sweepDag)}>Yes</button>
    </details>`;
  const runs = (state.sweeping || sweeping) && html`<button type="button" disabled>A sweep runs</button>`;
  return html`
    <div class="help ${urgent ? "alarm" : ""}">
      ${obstacle ? byHand : runs || button} ${more}
    </div>`;
}

function grantRow({ note, user_email: who, level, then, since, until, urgent, organization, ...grant }) {
  if (note) return html`<p class="error">${note}</p>`;
  const by = [["asked for", grant.requested_by], ["approved", grant.approved_by]].filter(([, person]) => person);
  return html`
    <div class="line">
      <b>${who}</b> level ${level}, then ${then ?? "removed"} ${small("organization ", organization)}
      <small class="end ${urgent && "bad"}">${urgent ? "should have ended" : "ends"} ${time(until)}</small>
    </div>
    ${small([grant.reason, ...by.map((one) => one.join(" by "))].filter(Boolean).join(" · "))}
    ${small("since ", time(since), ", by ", link({ dag_id: grant.dag_id, dag_run_id: grant.run_id }, grant.dag_id))}`;
}

const healthPart = ({ text, bad, last, failure, unpause }) => html`
  <span class=${bad ? "error" : ""}>${text}</span>
  ${unpause && html`<small class="bad">${link({ dag_id: unpause }, `${unpause} is paused: unpause it`)}</small>`}
  ${last && html`
    <small class=${failure && "bad"}>${taskLink(last)} ${model.shorten(failure || `${last.state}`, 300)}</small>`}`;

function campaignRow({ task, organization, progress, waits, again, asks }) {
  const { rows = 0, needs_person: people = [], why } = progress ?? {};
  const parts = progress ? model.campaignParts(progress) : [];
  const bar = ([, tone, number]) => html`<span class=${tone} style=${{ flexGrow: number / Math.max(rows, 1) }}></span>`;
  const count = ([name, tone, number], at) => html`${at ? ", " : ""}<span class=${tone}>${number} ${name}</span>`;
  const person = (one) =>
    html`<li><b>row ${one.row}</b> ${one.email || "no address"}: ${one.status}. ${one.reason}</li>`;
  return html`
    <div class="line">
      ${badge(again || asks ? "waits" : (task.state ?? "not begun"), TONES[task.state] ?? "plain")} ${taskLink(task)}
      ${progress && small("organization ", organization)}
      <small class="end">${timeOf(task.start_date, "not begun")}</small>
    </div>
    ${progress
      ? html`<div class="bar">${parts.map(bar)}</div><p class="counts">${rows} rows: ${parts.map(count)}</p>`
      : small("It has not said how far it is, or your role may not see it.")}
    ${task.reason && html`<p class="error">Failed: ${task.reason}</p>`} ${waits && html`<p>${waits}</p>`}
    ${asks && html`<p>${answerLink(task, "Answer it")}: it waits for a person.</p>`} ${again && html`
      <p class=${again.late && "error"}>${again.text} ${again.at && time(again.at)}${why && `: ${why}`}.</p>`}
    ${people.length > 0 && html`
      <details><summary>Rows to look at: ${people.length}</summary><ul>${people.map(person)}</ul></details>`}`;
}

function taskRow({ what, which, organization, task }) {
  const { asked_at: asked, start_date: start, state } = task;
  return html`
    <div class="line">
      ${asked ? badge("waits for a person", "warn") : badge(state, "plain")}
      <b>${asked ? answerLink(task, what) : what}</b> ${which} ${taskLink(task)} ${small(organization)}
      <small class="end">${asked ? ["asked ", timeOf(asked)] : timeOf(start, "not begun")}</small>
    </div>`;
}

function draw() {
  clearTimeout(state.timer);
  state.timer = null;
  for (const task of failedTasks()) task.reason = reasons.get(reasonKey(task)) ?? task.reason;
  const view = model.view(data, Date.now());
  const { summary, health, windows } = view;
  const age = ageOf(Object.keys(data));
  const login = summary.login && html` ${anchor(api.loginPath(), "Log in")}`;
  render(html`${summary.text}${login}${age?.bad && ` · ${age.text}`}`, $("summary"));
  $("summary").classList.toggle("error", summary.bad || Boolean(age?.bad));
  render([...health.parts.map(healthPart), aged(ageOf(NEEDS.health))], $("health"));
  const times = Object.values(data).map(({ at, reason }) => at ?? (reason === nothing.reason ? NaN : Infinity));
  const oldest = Math.min(...times);
  if (Number.isFinite(oldest)) $("updated").textContent = `Updated ${new Date(oldest).toLocaleTimeString()}`;
  show("windows", windows, windowRow, windowsBox(windows, health));
  show("questions", view.questions, taskRow);
  show("grants", view.grants, grantRow, grantsBox(view.grants, health));
  show("invites", view.campaigns, campaignRow);
  show("waits", view.waits, taskRow);
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

// Follow the theme of Airflow, around this frame; at the address of the page itself, the one that Airflow remembers.
const airflow = window.parent.document.documentElement;
if (window.parent === window) airflow.classList.toggle("dark", localStorage.getItem("theme") === "dark");
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
setInterval(refresh, POLL);
api.documentation().then((docs) => Object.assign(state, { docs }), () => {}).then(soon);
refresh().then(() => section?.scrollIntoView());
