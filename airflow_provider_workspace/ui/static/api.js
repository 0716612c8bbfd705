// Requests to Airflow's public REST API with the session of the user.

// The page is at <base>/workspace-ui/.
export const BASE = new URL("..", document.baseURI);
// Maximum page size; Airflow silently limits larger ones.
const PAGE = 100;
// Maximum parallel calls.
const MAX_CALLS = 4;

export class ApiError extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

// Airflow 3.1.0 keeps the session here. Null before a 401: later releases prefer the header to the cookie.
let authorization = null;
let running = 0;
const queue = [];

async function turn() {
  if (running >= MAX_CALLS) await new Promise((resolve) => queue.push(resolve));
  else running += 1;
}

function done() {
  const next = queue.shift();
  if (next) next();
  else running -= 1;
}

export async function call(method, path, body) {
  const headers = { Accept: "application/json" };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const ask = () =>
    fetch(new URL(`api/v2/${path}`, BASE), {
      method,
      headers: authorization ? { ...headers, Authorization: authorization } : headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      credentials: "same-origin",
    });
  await turn();
  try {
    let answer = await ask();
    const token = answer.status === 401 ? localStorage.getItem("token") : null;
    if (token) {
      authorization = `Bearer ${token.replace(/^"|"$/g, "")}`;
      answer = await ask();
    }
    const text = await answer.text();
    let value = null;
    try {
      value = text ? JSON.parse(text) : null;
    } catch {
      if (answer.ok) throw new ApiError(answer.status, "the answer is no JSON");
    }
    if (!answer.ok) {
      const detail = value && typeof value.detail === "string" ? value.detail : answer.statusText;
      throw new ApiError(answer.status, detail || `status ${answer.status}`);
    }
    return value;
  } finally {
    done();
  }
}

// Read a list page by page, at most `most` rows.
export async function list(ask, name, most = Infinity) {
  const first = await ask(0, Math.min(PAGE, most));
  const rows = [...first[name]];
  const total = Math.min(first.total_entries, most);
  const offsets = [];
  for (let offset = rows.length; rows.length > 0 && offset < total; offset += PAGE) offsets.push(offset);
  for (const page of await Promise.all(offsets.map((offset) => ask(offset, PAGE)))) rows.push(...page[name]);
  return { rows: rows.slice(0, most), total: first.total_entries };
}

function query(fields) {
  const pairs = Object.entries(fields).flatMap(([name, value]) => [value].flat().map((one) => [name, one]));
  return new URLSearchParams(pairs).toString();
}

const path = (...parts) => parts.map(encodeURIComponent).join("/");

export function variables(prefix) {
  // In a pattern, "_" matches any character, so the result is filtered.
  return list(
    (offset, limit) => call("GET", `variables?${query({ variable_key_pattern: `${prefix}%`, order_by: "key", limit, offset })}`),
    "variables",
  ).then(({ rows }) => rows.filter((row) => row.key.startsWith(prefix)));
}

export function variable(key) {
  return call("GET", `variables/${path(key)}`);
}

// Read the tasks of some operators, latest start first.
export async function tasks(operators, filters, most) {
  const { rows, total } = await list(
    (offset, limit) =>
      call("GET", `dags/~/dagRuns/~/taskInstances?${query({ operator: operators, order_by: "-start_date", ...filters, limit, offset })}`),
    "task_instances",
    most,
  );
  return { rows: await withFields(rows.filter((row) => operators.includes(row.operator))), total };
}

// The rendered fields of each try, once they were asked for.
const renderedFields = new Map();

// Before 3.3, Airflow leaves the rendered fields out of the list above, but not of the one below.
async function withFields(rows) {
  const tryOf = (row) => `${row.id} ${row.try_number}`;
  const unknown = rows.filter(
    (row) => row.start_date && Object.keys(row.rendered_fields ?? {}).length === 0 && !renderedFields.has(tryOf(row)),
  );
  if (unknown.length) {
    const all = (name) => [...new Set(unknown.map((row) => row[name]))];
    for (const row of unknown) renderedFields.set(tryOf(row), {});
    for (const row of await taskInstances({ dag_ids: all("dag_id"), dag_run_ids: all("dag_run_id"), task_ids: all("task_id") }))
      renderedFields.set(tryOf(row), row.rendered_fields);
  }
  return rows.map((row) => ({ ...row, rendered_fields: renderedFields.get(tryOf(row)) ?? row.rendered_fields }));
}

const post = (where, name, body, most) =>
  list((page_offset, page_limit) => call("POST", where, { ...body, page_offset, page_limit }), name, most).then(({ rows }) => rows);

// Read the task instances of all combinations of Dags, runs and task ids or states.
export function taskInstances(body, most) {
  return post("dags/~/dagRuns/~/taskInstances/list", "task_instances", body, most);
}

// Read the latest runs of Dags; the list cannot be asked for runs by their ids.
export function dagRuns(dagIds, most) {
  return post("dags/~/dagRuns/list", "dag_runs", { dag_ids: dagIds, order_by: "-id" }, most);
}

const taskPath = (task) => ["dags", task.dag_id, "dagRuns", task.dag_run_id, "taskInstances", task.task_id];

// Read the log of the last try of a task.
export function log(task) {
  return call("GET", `${path(...taskPath(task), "logs", task.try_number)}?map_index=${task.map_index}`);
}

export async function xcom(task, key) {
  const { value } = await call("GET", `${path(...taskPath(task), "xcomEntries", key)}?map_index=${task.map_index}`);
  return typeof value === "string" ? JSON.parse(value) : value;
}

export function dag(dagId) {
  return call("GET", `dags/${path(dagId)}`);
}

export function trigger(dagId) {
  return call("POST", `dags/${path(dagId)}/dagRuns`, { logical_date: null });
}

export function clear(dagId, runId, taskId, mapIndex) {
  return call("POST", `dags/${path(dagId)}/clearTaskInstances`, {
    dry_run: false,
    dag_run_id: runId,
    task_ids: [mapIndex < 0 ? taskId : [taskId, mapIndex]],
    only_failed: false,
    reset_dag_runs: true,
  });
}

export function uiPath({ dag_id, dag_run_id, task_id, map_index = -1 }) {
  const parts = ["dags", dag_id];
  if (dag_run_id) parts.push("runs", dag_run_id);
  if (task_id) parts.push("tasks", task_id);
  if (map_index >= 0) parts.push("mapped", String(map_index));
  return new URL(path(...parts), BASE).href;
}
