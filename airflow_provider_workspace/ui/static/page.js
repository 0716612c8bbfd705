// The page: polls Airflow while it is visible, and renders the result. Names and texts are never read as markup.

import * as api from "./api.js";
import * as model from "./model.js";
import htm from "./vendor/htm-3.1.1.js";
import { Component, h, isValidElement, render } from "./vendor/preact-11.2.0.js";

const SECONDS = 15;
const MAX_SECONDS = 120;
// Rows of a list before "Show all", and rows that are added per frame after it.
const SHOWN = 50;
// Maximum tasks to read per kind, and logs of failed tasks to read in one refresh.
const MAX_TASKS = 200;
const MAX_LOGS = 20;
const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });
const WINDOWS = ["Batch export", "State", "Since", "Until at the latest", "Window, and whom to ask"];
const WAITS = ["Organization", "Waits for", "Since", "Task"];
const DASHBOARDS = ["Dashboard", "Project", "Variable", "Last task"];
const TONES = { success: "good", failed: "bad", running: "warn", deferred: "warn" };

// What is neither text nor an element, such as a part of an XCom that somebody edited, is shown as JSON.
const shownAs = (child) => {
  if (Array.isArray(child)) return child.map(shownAs);
  return child && typeof child === "object" && !isValidElement(child) ? JSON.stringify(child) : child;
};
const html = htm.bind((tag, props, ...children) => h(tag, props, ...children.map(shownAs)));
const $ = (id) => document.getElementById(id);
const state = { filter: "", shown: {}, known: new Map(), reasons: {}, last: null, at: 0, failures: 0 };

// --- Asking ------------------------------------------------------------------------------------------------------

// Return a result or the reason for its absence, so that an error affects one section only.
const attempt = (promise) =>
  promise.then(
    (value) => ({ value }),
    ({ status = null, message }) => ({ problem: { status, message } }),
  );

// Read what will not change any more only once.
async function once(key, read) {
  if (!state.known.has(key)) state.known.set(key, await attempt(read()));
  return state.known.get(key);
}

const unique = (rows, keyOf) => [...new Map(rows.map((row) => [keyOf(row), row])).values()];

// Read the runs of windows, their closing tasks, and those of their tasks that go on or have failed.
async function askRuns(variables) {
  const windows = unique(model.readLeases(variables).leases, model.windowOf);
  const tasks = [];
  const runs = [];
  for (let start = 0; start < windows.length; start += 100) {
    const all = (name) => [...new Set(windows.slice(start, start + 100).map((lease) => lease[name]))];
    const where = { dag_ids: all("dag_id"), dag_run_ids: all("run_id") };
    tasks.push(api.taskInstances({ ...where, task_ids: all("close_task_id") }));
    tasks.push(api.taskInstances({ ...where, state: [...model.GOES_ON, "failed"] }, MAX_TASKS));
    runs.push(api.dagRuns(where.dag_ids, MAX_TASKS));
  }
  const joined = [tasks, runs].map((lists) => attempt(Promise.all(lists).then((rows) => rows.flat())));
  const [found, { value, problem }] = await Promise.all([joined[1], joined[0]]);
  return { runs: found, tasks: { problem, value: value && unique(value, (task) => task.id) } };
}

async function askCampaigns() {
  const found = await api.tasks(model.CAMPAIGNS, {}, MAX_TASKS);
  const invites = (task) => task.operator !== model.ORGANIZATION || task.rendered_fields?.part === "members";
  const rows = found.rows.filter(invites);
  const goesOn = (task) => model.GOES_ON.includes(task.state);
  const recent = rows.filter((task) => !goesOn(task)).slice(0, model.RECENT_CAMPAIGNS);
  const read = async (task) => {
    const progress = () => api.ofTask(task, "xcomEntries", "progress");
    // A waiting or finished campaign does not write.
    const version = ["progress", task.id, task.state, task.try_number, task.end_date, task.trigger?.id].join();
    const { value, problem } = await (task.state === "running" ? attempt(progress()) : once(version, progress));
    return { task, progress: model.parsed(value?.value), hidden: problem?.status === 403 };
  };
  const campaigns = await Promise.all([...rows.filter(goesOn), ...recent].map(read));
  const shown = ({ task, progress }) => progress || task.operator === model.INVITES;
  return { rows: campaigns.filter(shown), total: rows.length };
}

// Read the Variables of dashboards whose keys do not begin like the others.
async function askOthers(creates) {
  const read = async ([key, task]) => {
    const version = ["dashboard", key, task.id, task.state, task.end_date].join();
    const { value } = await once(version, () => api.variable(key));
    return { key, value: value?.value };
  };
  return Promise.all([...model.dashboardKeys(creates)].filter(([key]) => !key.startsWith(model.VARIABLES)).map(read));
}

// Read why tasks failed, once for each try.
async function askReasons(tasks) {
  const failed = tasks.filter((task) => task.state === "failed" && !(model.reasonKey(task) in state.reasons));
  const read = async (task) => {
    const { value, problem } = await attempt(api.ofTask(task, "logs", task.try_number));
    const hidden = problem?.status === 403 ? "not visible to your role" : "its log cannot be read";
    state.reasons[model.reasonKey(task)] = problem ? hidden : model.reasonIn(value);
  };
  await Promise.all(failed.slice(0, MAX_LOGS).map(read));
  return state.reasons;
}

async function ask() {
  const waiting = api.tasks(Object.keys(model.SENSORS), { state: model.GOES_ON }, MAX_TASKS);
  const sweep = api.tasks([model.SWEEP_OPERATOR], {}, 1);
  const creating = api.tasks([model.DASHBOARD_OPERATOR], {}, MAX_TASKS);
  const asked = [api.variables(model.VARIABLES), sweep, askCampaigns(), waiting, creating];
  const [variables, sweeps, campaigns, waits, creates] = await Promise.all(asked.map(attempt));
  const [runs, others] = await Promise.all([askRuns(variables), variables.problem ? [] : askOthers(creates)]);
  const invites = (campaigns.value?.rows ?? []).map(({ task }) => task);
  const reasons = await askReasons([...invites, ...(runs.tasks.value ?? [])]);
  state.last = { variables, sweeps, campaigns, waits, creates, ...runs, others, reasons };
  state.at = Date.now();
  const failed = Object.values(state.last).some(({ problem }) => problem && ![401, 403].includes(problem.status));
  state.failures = failed ? state.failures + 1 : 0;
}

// --- Showing -----------------------------------------------------------------------------------------------------

const small = (...children) => html`<small>${children}</small>`;
const badge = (text, tone) => html`<span class="badge ${tone}">${text}</span>`;
const link = (where, text) => html`<a href=${api.uiPath(where)} onclick=${follow}>${text}</a>`;
const taskLink = (task) => link(task, `${task.dag_id} / ${task.task_id}`);

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

// A row of cells in the order of its columns, or an item; rendered anew if it has changed, and once a minute.
class Row extends Component {
  shouldComponentUpdate({ signature }) {
    return signature !== this.props.signature;
  }

  render({ row, cells, columns }) {
    const cell = (content, at) => html`<div role="cell" data-name=${columns[at]}><div>${content}</div></div>`;
    const kind = columns ? "row" : "item";
    let shown;
    try {
      shown = cells(row);
    } catch (error) {
      // A row with unexpected values, such as an XCom that somebody edited, does not hide the others.
      shown = [`This row cannot be shown: ${error.message}`];
    }
    return html`
      <div class=${row.urgent ? `${kind} urgent` : kind} role=${columns ? "row" : "listitem"}>
        ${columns ? shown.map(cell) : shown}
      </div>`;
  }
}

function show(id, { problem, rows, notes, total }, cells, columns, { count = total, before } = {}) {
  const kept = problem ? [] : rows.filter((row) => JSON.stringify(row).toLowerCase().includes(state.filter));
  const visible = kept.slice(0, state.shown[id] ?? SHOWN);
  const more = visible.length < kept.length;
  const empty = rows.length ? "No row matches the filter." : $(id).dataset.empty;
  const minute = Math.floor(Date.now() / 60000);
  const item = (row) => html`
    <${Row} key=${row.key} signature=${JSON.stringify([minute, row])} row=${row} cells=${cells} columns=${columns} />`;
  const body = html`
    ${!problem && before}
    ${!kept.length && html`<p class=${problem ? "none error" : "none"}>${problem ? problem.text : empty}</p>`}
    <div class="rows" role=${columns ? "table" : "list"} aria-labelledby="${id}-title" hidden=${!kept.length}>
      ${columns && html`
        <div class="row head" role="row">
          ${columns.map((name) => html`<span role="columnheader">${name}</span>`)}
        </div>`}
      ${visible.map(item)}
    </div>
    ${more && html`<button type="button" class="more" onclick=${() => grow(id)}>Show all ${kept.length}</button>`}
    ${!problem && notes.length > 0 && html`<ul class="notes">${notes.map((note) => html`<li>${note}</li>`)}</ul>`}`;
  $(id).querySelector(".count").textContent = problem ? "" : count;
  render(body, $(id).querySelector(".body"));
  return more;
}

// Show all rows of a section, some per frame, so that the page stays responsive.
function grow(id) {
  state.shown[id] = (state.shown[id] ?? SHOWN) + SHOWN;
  if (draw()[id]) requestAnimationFrame(() => grow(id));
}

// A button that asks before it acts; the sandboxed frame cannot open dialogs.
class Confirm extends Component {
  componentDidUpdate(_, { asking }) {
    if (asking !== this.state.asking) this.box.querySelector("button").focus();
  }

  async act() {
    this.setState({ busy: true });
    try {
      say(await this.props.action());
      soon(2);
    } catch ({ status, message }) {
      const forbidden = "Your role may not do this in this Airflow. Nothing was done.";
      say(status === 403 ? forbidden : `That did not work: ${message}`, true);
    }
    this.setState({ asking: false, busy: false });
  }

  render({ text, question }, { asking, busy }) {
    const yes = () => this.act();
    const no = () => this.setState({ asking: false });
    const button = (words, onclick, tone = "act") =>
      html`<button key=${words} type="button" class=${tone} disabled=${busy} onclick=${onclick}>${words}</button>`;
    return html`
      <span class="action" ref=${(box) => (this.box = box)} onkeydown=${(event) => event.key === "Escape" && no()}>
        ${asking
          ? [html`<span role="alert">${question}</span>`, button("Yes", yes, "act sure"), button("No", no)]
          : button(text, () => this.setState({ asking: true }))}
      </span>`;
  }
}

async function runSweep(dagId) {
  const { is_paused } = await api.dag(dagId);
  if (is_paused) throw new Error(`Dag ${dagId} is paused: unpause it first`);
  await api.trigger(dagId);
  return `Started ${dagId}: it resumes what abandoned windows left paused. This page shows it in a moment.`;
}

async function clearClose({ dag_id, run_id, close_task_id, map_index }) {
  await api.clear(dag_id, run_id, close_task_id, map_index);
  return `Cleared ${close_task_id} of ${dag_id}: Airflow runs it again, and it resumes the exports.`;
}

function windowCells({ lease, state, tone, verdict, lines, failed, ended }) {
  const { dag_id, run_id, map_index, close_task_id, owner, refused } = lease;
  const index = map_index < 0 ? "" : ` [${map_index}]`;
  const question = `Clear ${close_task_id} of this run, which resumes its exports?`;
  const why = verdict?.why && `, ${model.shorten(verdict.why)}`;
  return [
    html`<code>${lease.batch_export_id}</code>${small("organization ", lease.organization_id)}`,
    [
      badge(state, tone),
      verdict && small("sweep: ", verdict.state, why, ", ", verdict.at ? time(verdict.at) : "time unknown"),
      lines.map((line) => small(line)),
      failed.map(
        ({ task, reason }) =>
          html`<small class="bad">${link(task, `${task.task_id} failed`)}${reason && `: ${reason}`}</small>`,
      ),
      lease.leave_paused === true && small("stays paused after the window, as its author wants"),
      refused && small(model.shorten(refused)),
    ],
    time(lease.since),
    time(lease.until, "passed "),
    html`
      ${link({ dag_id }, dag_id)} / ${link({ dag_id, dag_run_id: run_id }, run_id)}${index}
      ${owner && owner !== "airflow" && small("owner ", owner)}
      ${ended && html`
        <${Confirm} text="Clear the closing task" question=${question} action=${() => clearClose(lease)} />`}`,
  ];
}

function sweepBox({ rows, urgent, counts, sweep: { at, task } }) {
  const { dag_id, dag_run_id } = task ?? {};
  const where = task && [": ", link({ dag_id, dag_run_id }, dag_id), ` (${task.state ?? "no state"})`];
  const question = `Run the sweep, Dag ${dag_id}, which resumes what abandoned windows left paused?`;
  return html`
    <div class="sweep ${urgent ? "alarm" : ""}">
      ${urgent && html`<strong>${counts.join(", ")}.</strong>`}
      ${task && rows.length > 0 && html`
        <${Confirm} text="Run the sweep now" question=${question} action=${() => runSweep(dag_id)} />`}
      ${at || task
        ? small("Last sweep ", at ? time(at) : "not finished yet", where)
        : html`
          <small>
            No sweep ran in this Airflow: add the Dag resume_abandoned_exports, or run${" "}
            <code>airflow workspace windows --resume</code>.
          </small>`}
    </div>`;
}

function campaign({ task, progress, hidden, reason }) {
  const parts = progress ? model.campaignParts(progress) : [];
  const rows = progress?.rows ?? 0;
  const people = progress?.needs_person ?? [];
  const waits = task.state === "deferred" && progress?.again_at;
  const said = `${rows} rows: ${parts.map(([name, , number]) => `${number} ${name}`).join(", ") || "none"}`;
  const count = ([name, tone, number], at) => [at ? ", " : "", html`<span class=${tone}>${number} ${name}</span>`];
  const bar = (tone, flexGrow) => html`<span class=${tone} style=${{ flexGrow }}></span>`;
  const person = ({ row, email, status, reason: why }) =>
    html`<li><b>row ${row}</b> ${email || "no address"}: ${status}. ${why}</li>`;
  return html`
    <div class="line">
      ${badge(waits ? "waits" : (task.state ?? "not begun"), TONES[task.state] ?? "plain")} ${taskLink(task)}
      ${progress && small("organization ", progress.organization_id)}
      <small class="end">${task.start_date && time(Date.parse(task.start_date))}</small>
    </div>
    ${progress
      ? html`<div class="bar" role="img" aria-label=${said}>
          ${parts.map(([, tone, number]) => bar(tone, number / Math.max(rows, 1)))}
        </div>`
      : small(hidden ? "Its progress is not visible to your role." : "It has not said how far it is.")}
    ${reason && html`<p class="error">Failed: ${reason}</p>`}
    ${progress && html`<p class="counts">${rows} rows: ${parts.map(count)}</p>`}
    ${waits && html`<p>Goes on ${time(Date.parse(progress.again_at))}${progress.why && `: ${progress.why}`}.</p>`}
    ${people.length > 0 && html`
      <details>
        <summary>Rows to look at: ${parts.find(([name]) => name === "to look at")?.[2] ?? people.length}</summary>
        <ul>${people.map(person)}</ul>
      </details>`}`;
}

const waitCells = ({ organization, what, which, task }) => [
  html`<code>${organization}</code>`,
  [what, which && small(which)],
  task.start_date ? time(Date.parse(task.start_date)) : "not begun",
  [taskLink(task), small(task.state)],
];

function dashboardCells({ key, task, held }) {
  const unknown = badge(task?.state === "running" ? "being created" : "not known whether it exists", "warn");
  return [
    [held?.name ?? "no name", held?.dashboard_id ? small("id ", held.dashboard_id) : unknown],
    [held?.project_id ?? "not known", held?.organization_id && small("organization ", held.organization_id)],
    html`<code>${key}</code>`,
    task ? taskLink(task) : "of an organization file",
  ];
}

// Show all sections; return which of them have more rows.
function draw() {
  if (!state.last) return {};
  const { summary, windows, campaigns, waits, dashboards } = model.view(state.last, Date.now());
  const running = campaigns.running ? `${campaigns.running} running` : "";
  put("summary", summary.text, summary.bad);
  put("updated", `Updated ${new Date(state.at).toLocaleTimeString()}`);
  return {
    windows: show("windows", windows, windowCells, WINDOWS, { before: sweepBox(windows) }),
    invites: show("invites", campaigns, campaign, null, { count: running }),
    waits: show("waits", waits, waitCells, WAITS),
    dashboards: show("dashboards", dashboards, dashboardCells, DASHBOARDS),
  };
}

function put(id, text, bad = false) {
  $(id).textContent = text;
  $(id).hidden = false;
  $(id).classList.toggle("error", bad);
}

const say = (text, bad) => put("said", text, bad);

// --- When --------------------------------------------------------------------------------------------------------

let timer = null;
let asking = false;

function soon(seconds) {
  clearTimeout(timer);
  timer = setTimeout(refresh, seconds * 1000);
}

async function refresh() {
  // A hidden page does not poll.
  if (document.visibilityState !== "visible" || asking) return;
  asking = true;
  document.body.setAttribute("aria-busy", "true");
  try {
    await ask();
    draw();
  } catch (error) {
    state.failures += 1;
    say(`This page could not show what Airflow answered: ${error.message}`, true);
  }
  asking = false;
  document.body.removeAttribute("aria-busy");
  soon(Math.min(SECONDS * 2 ** state.failures, MAX_SECONDS));
}

// Follow the theme of Airflow, or of the system if the page stands alone.
function followTheme() {
  const outside = window.frameElement?.ownerDocument.documentElement;
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    document.documentElement.classList.toggle("dark", outside ? outside.classList.contains("dark") : prefers.matches);
  };
  if (outside) new MutationObserver(apply).observe(outside, { attributeFilter: ["class"] });
  else prefers.addEventListener("change", apply);
  apply();
}

function filter() {
  state.filter = $("filter").value.trim().toLowerCase();
  draw();
}

followTheme();
// The fragment of a link is a section, or a text to filter by.
const wanted = model.fragment(window.parent.location.hash);
const section = $(wanted)?.tagName === "SECTION" ? $(wanted) : null;
if (!section) $("filter").value = wanted;
filter();
$("filter").addEventListener("input", filter);
$("search").addEventListener("submit", (event) => event.preventDefault());
$("refresh").addEventListener("click", refresh);
document.addEventListener("visibilitychange", () => soon(Math.max(0, SECONDS - (Date.now() - state.at) / 1000)));
refresh().then(() => section?.scrollIntoView());
