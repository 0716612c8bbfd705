// The page: polls Airflow while it is visible, and renders the result.

import * as api from "./api.js";
import * as model from "./model.js";

const SECONDS = 15;
const MAX_SECONDS = 120;
// Rows of a list before "show all", and rows that are rendered per frame after it.
const SHOWN = 50;
// Maximum logs of failed tasks that are read in one refresh.
const MAX_LOGS = 20;
// Maximum tasks to read per kind.
const MAX_TASKS = 200;
const RECENT_CAMPAIGNS = 20;

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

const $ = (id) => document.getElementById(id);
const state = { filter: "", shown: new Map(), progress: new Map(), dashboards: new Map(), reasons: new Map(), last: null, failures: 0 };

// --- Elements: names and texts are never read as markup ---------------------------------------------------------

function h(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

const badge = (text, tone) => h("span", { class: `badge ${tone}` }, text);

// A link to a page of Airflow. The frame of a plugin may not navigate the window: a link of the window itself may.
function link(where, text, label) {
  const follow = (event) => {
    if (window.parent === window || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const outside = window.parent.document.createElement("a");
    outside.href = event.currentTarget.href;
    window.parent.document.body.append(outside);
    outside.click();
    outside.remove();
  };
  return h("a", { href: api.uiPath(where), onclick: follow, "aria-label": label }, text);
}

function time(milliseconds, kind = "ago") {
  const node = h("time", { datetime: new Date(milliseconds).toISOString(), title: LOCAL.format(milliseconds), "data-kind": kind });
  node.textContent = words(node, Date.now());
  return node;
}

function words(node, now) {
  const left = Date.parse(node.dateTime) - now;
  if (node.dataset.kind === "until" && left <= 0) return `passed ${model.duration(left)} ago`;
  return left > 0 ? `in ${model.duration(left)}` : `${model.duration(left)} ago`;
}

function tick() {
  const now = Date.now();
  for (const node of document.querySelectorAll("time")) {
    const text = words(node, now);
    if (node.textContent !== text) node.textContent = text;
  }
}

// Render rows, and replace only those that have changed, to keep the focus.
function update(parent, rows, keyOf, render) {
  const before = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let at = parent.firstElementChild;
  for (const row of rows) {
    const key = keyOf(row);
    const signature = JSON.stringify(row);
    let node = before.get(key);
    before.delete(key);
    if (!node || node.signature !== signature) {
      const fresh = tryToRender(render, row);
      fresh.dataset.key = key;
      fresh.signature = signature;
      if (node) {
        if (node === at) at = fresh;
        node.replaceWith(fresh);
      }
      node = fresh;
    }
    if (node === at) at = at.nextElementSibling;
    else parent.insertBefore(node, at);
  }
  for (const node of before.values()) node.remove();
}

// A row with unexpected values, such as an XCom that somebody edited, does not hide the others.
function tryToRender(render, row) {
  try {
    return render(row);
  } catch (error) {
    return h("div", { class: "row", role: "row" }, cell("", `This row cannot be shown: ${error.message}`));
  }
}

// Return a named element in the body of a section; create it on first use.
function part(section, name, make) {
  const body = $(section).querySelector(".body");
  let node = body.querySelector(`:scope > [data-part="${name}"]`);
  if (!node) {
    node = make();
    node.dataset.part = name;
    body.append(node);
  }
  return node;
}

function show(section, { title, rows, keyOf, render, columns, empty, problem, notes = [], total = rows.length }) {
  const error = problem?.text;
  const body = $(section).querySelector(".body");
  body.querySelector(":scope > .none:not([data-part])")?.remove();
  $(section).querySelector(".count").textContent = error ? "" : String(title ?? total);
  const kept = error ? [] : rows.filter((row) => model.matches(row, state.filter));
  const visible = kept.slice(0, state.shown.get(section) ?? SHOWN);
  const none = part(section, "none", () => h("p", { class: "none" }));
  none.hidden = kept.length > 0;
  none.textContent = error || (rows.length ? "No row matches the filter." : empty);
  none.classList.toggle("error", Boolean(error));
  const table = part(section, "table", () => {
    const parts = { table: h("div", { class: "rows", role: columns ? "table" : "list", "aria-labelledby": `${section}-title` }) };
    if (columns) {
      const heads = columns.map((name) => h("span", { role: "columnheader" }, name));
      parts.table.append(h("div", { class: "row head", role: "row", "data-key": "" }, heads));
    }
    return parts.table;
  });
  table.hidden = kept.length === 0;
  const list = columns ? [null, ...visible] : visible;
  if (columns) table.firstElementChild.signature = "null";
  update(table, list, (row) => (row === null ? "" : keyOf(row)), render);
  const more = part(section, "more", () =>
    h("button", { type: "button", class: "more", onclick: () => grow(section) }),
  );
  more.hidden = visible.length >= kept.length;
  more.textContent = `Show all ${kept.length}`;
  const said = part(section, "notes", () => h("ul", { class: "notes" }));
  update(said, error ? [] : notes, (note) => note, (note) => h("li", {}, note));
  said.hidden = !said.children.length;
}

// Render all rows, some per frame, so that the page stays responsive.
function grow(section) {
  state.shown.set(section, (state.shown.get(section) ?? SHOWN) + SHOWN);
  draw();
  if (!part(section, "more").hidden) requestAnimationFrame(() => grow(section));
}

const cell = (name, ...children) => h("div", { role: "cell", "data-name": name }, h("div", {}, ...children));

// --- Asking ------------------------------------------------------------------------------------------------------

// Return a result or the reason for its absence, so that an error affects one section only.
async function attempt(promise) {
  try {
    return { value: await promise };
  } catch (error) {
    return { problem: { status: error.status ?? null, message: error.message } };
  }
}

// Read the runs of windows, their closing tasks, and those of their tasks that go on or have failed.
async function askRuns(variables) {
  const { leases } = model.readLeases((variables.value ?? []).filter(({ key }) => key.startsWith(model.LEASES)));
  const windows = [...new Map(leases.map((lease) => [model.windowOf(lease), lease])).values()];
  const asked = { tasks: [], runs: [] };
  for (let start = 0; start < windows.length; start += 100) {
    const of = (name) => [...new Set(windows.slice(start, start + 100).map((lease) => lease[name]))];
    const where = { dag_ids: of("dag_id"), dag_run_ids: of("run_id") };
    asked.tasks.push(api.taskInstances({ ...where, task_ids: of("close_task_id") }));
    asked.tasks.push(api.taskInstances({ ...where, state: [...model.GOES_ON, "failed"] }, MAX_TASKS));
    asked.runs.push(api.dagRuns(of("dag_id"), MAX_TASKS));
  }
  const [tasks, runs] = await Promise.all([attempt(Promise.all(asked.tasks)), attempt(Promise.all(asked.runs))]);
  const joined = ({ value, problem }, keyOf) => ({ problem, value: value && [...new Map(value.flat().map((row) => [keyOf(row), row])).values()] });
  return { tasks: joined(tasks, (task) => task.id), runs: joined(runs, (run) => `${run.dag_id} ${run.dag_run_id}`) };
}

async function askSweeps() {
  return (await api.tasks(model.SWEEPS, {}, 1)).rows;
}

async function askCampaigns() {
  const found = await api.tasks(model.CAMPAIGNS, {}, MAX_TASKS);
  const rows = found.rows.filter((task) => task.operator !== model.ORGANIZATION || task.rendered_fields?.part === "members");
  const open = rows.filter((task) => model.GOES_ON.includes(task.state));
  const recent = rows.filter((task) => !model.GOES_ON.includes(task.state)).slice(0, RECENT_CAMPAIGNS);
  const read = async (task) => {
    // A waiting or finished campaign does not write.
    const version = task.state === "running" ? null : [task.state, task.try_number, task.end_date, task.trigger?.id].join();
    const known = state.progress.get(task.id);
    if (known && version !== null && known.version === version) return { task, ...known };
    const { value = null, problem } = await attempt(api.xcom(task, "progress"));
    const told = { version, progress: value, hidden: problem?.status === 403 };
    state.progress.set(task.id, told);
    return { task, ...told };
  };
  const campaigns = await Promise.all([...open, ...recent].map(read));
  return { rows: campaigns.filter(({ task, progress }) => progress || task.operator === model.INVITES), total: rows.length };
}

function askWaits() {
  return api.tasks(Object.keys(model.SENSORS), { state: model.GOES_ON }, MAX_TASKS);
}

async function askCreates() {
  return (await api.tasks(model.DASHBOARDS, {}, MAX_TASKS)).rows;
}

// Read the Variables of dashboards whose keys do not begin like the others.
function askOthers(creates) {
  const read = async ([key, task]) => {
    const version = [task.id, task.state, task.end_date].join();
    if (state.dashboards.get(key)?.version !== version) {
      const { value } = await attempt(api.variable(key));
      state.dashboards.set(key, { version, key, value: value?.value });
    }
    return state.dashboards.get(key);
  };
  return Promise.all([...model.dashboardKeys(creates)].filter(([key]) => !key.startsWith(model.VARIABLES)).map(read));
}

// Read why tasks failed, once for each try.
async function askReasons(tasks) {
  const failed = tasks.filter((task) => task.state === "failed" && !state.reasons.has(model.reasonKey(task)));
  const read = async (task) => {
    const { value, problem } = await attempt(api.log(task));
    const hidden = problem?.status === 403 ? "not visible to your role" : "its log cannot be read";
    state.reasons.set(model.reasonKey(task), problem ? hidden : model.reasonIn(value));
  };
  await Promise.all(failed.slice(0, MAX_LOGS).map(read));
  return Object.fromEntries(state.reasons);
}

async function ask() {
  const [variables, sweeps, campaigns, waits, creates] = await Promise.all(
    [api.variables(model.VARIABLES), askSweeps(), askCampaigns(), askWaits(), askCreates()].map(attempt),
  );
  const [runs, others] = await Promise.all([askRuns(variables), variables.problem ? [] : askOthers(creates)]);
  const reasons = await askReasons([...(campaigns.value?.rows ?? []).map(({ task }) => task), ...(runs.tasks.value ?? [])]);
  state.last = { variables, sweeps, campaigns, waits, creates, ...runs, others, reasons };
  state.at = Date.now();
  const failed = Object.values(state.last).some(({ problem }) => problem && problem.status !== 401 && problem.status !== 403);
  state.failures = failed ? state.failures + 1 : 0;
}

// --- Showing -----------------------------------------------------------------------------------------------------

function ownerOf(owner) {
  return owner && owner !== "airflow" ? owner : "";
}

function windowLink(lease) {
  const where = { dag_id: lease.dag_id, dag_run_id: lease.run_id };
  return [link({ dag_id: lease.dag_id }, lease.dag_id), " / ", link(where, lease.run_id), lease.map_index < 0 ? "" : ` [${lease.map_index}]`];
}

function windowRow(row) {
  const { lease, verdict } = row;
  const owner = ownerOf(lease.owner);
  return h(
    "div",
    { class: `row ${row.urgent ? "urgent" : ""}`, role: "row" },
    cell(
      "Batch export",
      h("code", {}, lease.batch_export_id),
      h("small", {}, `organization ${lease.organization_id}`),
    ),
    cell(
      "State",
      badge(row.state, row.tone),
      verdict
        ? h("small", {}, `sweep: ${verdict.state}${verdict.why ? `, ${model.shorten(verdict.why)}` : ""}, `, verdict.at ? time(verdict.at) : "time unknown")
        : "",
      row.lines.map((line) => h("small", {}, line)),
      row.failed.map(({ task, reason }) => h("small", { class: "bad" }, link(task, `${task.task_id} failed`), reason ? `: ${reason}` : "")),
      lease.leave_paused === true ? h("small", {}, "stays paused after the window, as its author wants") : "",
      lease.refused ? h("small", {}, model.shorten(lease.refused)) : "",
    ),
    cell("Since", time(lease.since)),
    cell("Until at the latest", time(lease.until, "until")),
    cell(
      "Window, and whom to ask",
      ...windowLink(lease),
      owner ? h("small", {}, `owner ${owner}`) : "",
      row.ended ? resumeButton(row) : "",
    ),
  );
}

function resumeButton({ lease }) {
  return twoSteps("Clear the closing task", `Clear ${lease.close_task_id} of this run, which resumes its exports?`, async () => {
    await api.clear(lease.dag_id, lease.run_id, lease.close_task_id, lease.map_index);
    return `Cleared ${lease.close_task_id} of ${lease.dag_id}: Airflow runs it again, and it resumes the exports.`;
  });
}

async function runSweep(dagId) {
  const { is_paused } = await api.dag(dagId);
  if (is_paused) throw new Error(`Dag ${dagId} is paused: unpause it first`);
  await api.trigger(dagId);
  return `Started ${dagId}: it resumes what abandoned windows left paused. This page shows it in a moment.`;
}

// A button with a confirmation step; the sandboxed frame cannot open dialogs.
function twoSteps(text, question, action) {
  const box = h("span", { class: "action" });
  const first = h("button", { type: "button", class: "act", onclick: () => open(true) }, text);
  const yes = h("button", { type: "button", class: "act sure", onclick: go }, "Yes");
  const no = h("button", { type: "button", class: "act", onclick: () => open(false) }, "No");
  function open(asking) {
    box.replaceChildren(...(asking ? [h("span", { role: "alert" }, question), yes, no] : [first]));
    (asking ? yes : first).focus();
  }
  async function go() {
    yes.disabled = no.disabled = true;
    try {
      say(await action());
      open(false);
      soon(2);
    } catch (error) {
      say(error.status === 403 ? "Your role may not do this in this Airflow. Nothing was done." : `That did not work: ${error.message}`, true);
      open(false);
    } finally {
      yes.disabled = no.disabled = false;
    }
  }
  box.append(first);
  box.addEventListener("keydown", (event) => event.key === "Escape" && box.contains(yes) && open(false));
  return box;
}

function say(text, isError = false) {
  $("said").hidden = false;
  $("said").classList.toggle("error", isError);
  $("said").textContent = text;
}

function drawWindows({ problem, rows, urgent, counts, notes, sweep }) {
  show("windows", {
    rows: rows.map((row) => ({ ...row, failed: row.failed.map(({ task, reason }) => ({ task: slim(task), reason })) })),
    problem,
    notes,
    columns: ["Batch export", "State", "Since", "Until at the latest", "Window, and whom to ask"],
    keyOf: (row) => row.lease.key,
    render: windowRow,
    empty: "No maintenance window holds a batch export. While one is open, its exports are listed here: who paused them, since when, and until when at the latest.",
  });
  const body = $("windows").querySelector(".body");
  const { at, task } = sweep;
  const signature = JSON.stringify([counts, urgent, at, task && [task.dag_id, task.dag_run_id, task.state]]);
  let box = body.querySelector(":scope > .sweep");
  if (!box || box.signature !== signature) {
    const fresh = h("div", { class: `sweep ${urgent ? "alarm" : ""}`, hidden: Boolean(problem) });
    if (urgent) fresh.append(h("strong", {}, `${counts.join(", ")}.`), " ");
    if (task && rows.length) fresh.append(twoSteps("Run the sweep now", `Run the sweep, Dag ${task.dag_id}, which resumes what abandoned windows left paused?`, () => runSweep(task.dag_id)));
    const where = task ? [": ", link({ dag_id: task.dag_id, dag_run_id: task.dag_run_id }, task.dag_id), ` (${task.state ?? "no state"})`] : [];
    if (at || task) fresh.append(h("small", {}, "Last sweep ", at ? time(at) : "not finished yet", ...where));
    else fresh.append(h("small", {}, "No sweep ran in this Airflow: add the Dag resume_abandoned_exports, or run ", h("code", {}, "airflow workspace windows --resume"), "."));
    fresh.signature = signature;
    if (box) box.replaceWith(fresh);
    else body.prepend(fresh);
  }
}

function campaignRow({ task, progress, hidden, reason }) {
  const parts = progress ? model.campaignParts(progress) : [];
  const waits = task.state === "deferred" && progress?.again_at;
  const people = progress?.needs_person ?? [];
  const rows = progress?.rows ?? 0;
  return h(
    "div",
    { class: "item", role: "listitem" },
    h(
      "div",
      { class: "line" },
      badge(waits ? "waits" : (task.state ?? "not begun"), { success: "good", failed: "bad", running: "warn", deferred: "warn" }[task.state] ?? "plain"),
      link({ dag_id: task.dag_id, dag_run_id: task.dag_run_id, task_id: task.task_id, map_index: task.map_index }, `${task.dag_id} / ${task.task_id}`),
      h("small", {}, progress ? `organization ${progress.organization_id}` : ""),
      h("small", { class: "end" }, task.start_date ? time(Date.parse(task.start_date)) : ""),
    ),
    progress
      ? h(
          "div",
          { class: "bar", role: "img", "aria-label": `${rows} rows: ${parts.map(([name, , number]) => `${number} ${name}`).join(", ") || "none"}` },
          parts.map(([, tone, number]) => bar(tone, number / Math.max(rows, 1))),
        )
      : h("small", {}, hidden ? "Its progress is not visible to your role." : "It has not said how far it is."),
    reason ? h("p", { class: "error" }, `Failed: ${reason}`) : "",
    progress ? h("p", { class: "counts" }, `${rows} rows: `, parts.flatMap(([name, tone, number], index) => [index ? ", " : "", h("span", { class: tone }, `${number} ${name}`)])) : "",
    waits ? h("p", {}, "Goes on ", time(Date.parse(progress.again_at)), progress.why ? `: ${progress.why}.` : ".") : "",
    people.length
      ? h(
          "details",
          {},
          h("summary", {}, `Rows to look at: ${(parts.find(([name]) => name === "to look at") ?? [0, 0, people.length])[2]}`),
          h("ul", {}, people.map((row) => h("li", {}, h("b", {}, `row ${row.row}`), ` ${row.email || "no address"}: ${row.status}. ${row.reason}`))),
        )
      : "",
  );
}

function bar(tone, share) {
  const node = h("span", { class: tone });
  node.style.flexGrow = share;
  return node;
}

function drawCampaigns({ problem, rows, total, running }) {
  show("invites", {
    rows: rows.map(({ task, progress, hidden, reason }) => ({ task: slim(task), progress, hidden, reason })),
    problem,
    title: running ? `${running} running` : "",
    keyOf: ({ task }) => task.id,
    render: campaignRow,
    empty: "No bulk invite ran yet, as far as your role sees. A running one shows here how far it is, when it goes on and why, and which rows need a person.",
    notes: total > rows.length ? [`The running ones and the last ${RECENT_CAMPAIGNS}, of ${total}.`] : [],
  });
}

// Return the fields of a task that a row shows; changes of others need no update.
function slim({ id, dag_id, dag_run_id, task_id, map_index, state: its, start_date }) {
  return { id, dag_id, dag_run_id, task_id, map_index, state: its, start_date };
}

function drawWaits({ problem, rows, total }) {
  show("waits", {
    rows: rows.map((row) => ({ ...row, task: slim(row.task) })),
    problem,
    total,
    columns: ["Organization", "Waits for", "Since", "Task"],
    keyOf: (row) => row.task.id,
    render: (row) =>
      h(
        "div",
        { class: "row", role: "row" },
        cell("Organization", h("code", {}, row.organization)),
        cell("Waits for", row.what, row.which ? h("small", {}, row.which) : ""),
        cell("Since", row.task.start_date ? time(Date.parse(row.task.start_date)) : "not begun"),
        cell("Task", link(row.task, `${row.task.dag_id} / ${row.task.task_id}`), h("small", {}, row.task.state ?? "")),
      ),
    empty: "No sensor waits, as far as your role sees. A task that waits for a domain, an invite, a member or a project is listed here with its organization.",
    notes: total > rows.length ? [`The first ${rows.length} of ${total}.`] : [],
  });
}

function drawDashboards({ problem, rows, notes }) {
  show("dashboards", {
    rows: rows.map(({ key, task, held }) => ({ key, task: task && slim(task), held })),
    problem,
    notes,
    columns: ["Dashboard", "Project", "Variable", "Last task"],
    keyOf: (row) => row.key,
    render: ({ key, task, held }) =>
      h(
        "div",
        { class: "row", role: "row" },
        cell(
          "Dashboard",
          held?.name ?? "no name",
          held?.dashboard_id ? h("small", {}, `id ${held.dashboard_id}`) : badge(task?.state === "running" ? "being created" : "not known whether it exists", "warn"),
        ),
        cell("Project", String(held?.project_id ?? "not known"), held?.organization_id ? h("small", {}, `organization ${held.organization_id}`) : ""),
        cell("Variable", h("code", {}, key)),
        cell("Last task", task ? link({ ...task }, `${task.dag_id} / ${task.task_id}`) : "of an organization file"),
      ),
    empty: "No dashboard is remembered. One that a task creates with variable_key, or from an organization file, is listed here, for the service cannot list them.",
  });
}

function draw() {
  if (!state.last) return;
  const { summary, windows, campaigns, waits, dashboards } = model.view(state.last, Date.now());
  drawWindows(windows);
  drawCampaigns(campaigns);
  drawWaits(waits);
  drawDashboards(dashboards);
  $("summary").textContent = summary.text;
  $("summary").classList.toggle("bad", summary.bad);
  $("updated").textContent = `Updated ${new Date(state.at).toLocaleTimeString()}`;
  tick();
}

// --- When --------------------------------------------------------------------------------------------------------

let timer = null;
let asking = false;

function soon(seconds) {
  clearTimeout(timer);
  timer = setTimeout(refresh, seconds * 1000);
}

async function refresh() {
  clearTimeout(timer);
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
  } finally {
    asking = false;
    document.body.removeAttribute("aria-busy");
    soon(Math.min(SECONDS * 2 ** state.failures, MAX_SECONDS));
  }
}

function followTheme() {
  let root = null;
  try {
    root = window.parent === window ? null : window.parent.document.documentElement;
  } catch {
    // The parent has another origin.
  }
  const prefers = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    document.documentElement.classList.toggle("dark", root ? root.classList.contains("dark") : prefers.matches);
  };
  if (root) new MutationObserver(apply).observe(root, { attributes: true, attributeFilter: ["class"] });
  else prefers.addEventListener("change", apply);
  apply();
  return root;
}

function begin() {
  const root = followTheme();
  // The fragment of a link is a section, or a text to filter by.
  const wanted = model.fragment((root ? window.parent : window).location.hash);
  const section = $(wanted)?.tagName === "SECTION" ? $(wanted) : null;
  if (wanted && !section) {
    $("filter").value = wanted;
    state.filter = wanted.toLowerCase();
  }
  $("filter").addEventListener("input", () => {
    state.filter = $("filter").value.trim().toLowerCase();
    draw();
  });
  $("search").addEventListener("submit", (event) => event.preventDefault());
  $("refresh").addEventListener("click", refresh);
  document.addEventListener("visibilitychange", () => {
    if (document.visibilityState === "visible" && Date.now() - (state.at ?? 0) > SECONDS * 1000) refresh();
    else if (document.visibilityState === "visible") soon(SECONDS);
  });
  refresh().then(() => section?.scrollIntoView());
}

begin();
