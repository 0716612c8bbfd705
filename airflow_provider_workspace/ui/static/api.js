// Requests to Airflow's public REST API with the session of the user.

// The page is at <base>/workspace-ui/.
const BASE = new URL("..", document.baseURI);
// Maximum page size; Airflow silently limits larger ones.
const PAGE = 100;

const path = (...parts) => parts.map(encodeURIComponent).join("/");

// Airflow 3.1.0 keeps the session in localStorage. Null before a 401: later releases prefer the header to the cookie.
let authorization = null;
// At most four requests run at a time: one in each lane.
const lanes = Array.from({ length: 4 }, () => Promise.resolve());
let sent = 0;

export function call(method, where, body) {
  const lane = sent++ % lanes.length;
  const answer = lanes[lane].then(() => send(method, where, body));
  lanes[lane] = answer.catch(() => {});
  return answer;
}

async function send(method, where, body) {
  const headers = { Accept: "application/json" };
  if (body) headers["Content-Type"] = "application/json";
  if (authorization) headers.Authorization = authorization;
  const answer = await fetch(new URL(`api/v2/${where}`, BASE), { method, headers, body: body && JSON.stringify(body) });
  if (answer.ok) return answer.json();
  const token = answer.status === 401 && localStorage.getItem("token")?.replace(/^"|"$/g, "");
  if (token && authorization !== `Bearer ${token}`) {
    authorization = `Bearer ${token}`;
    return send(method, where, body);
  }
  const { detail } = (await answer.json().catch(() => null)) ?? {};
  const message = typeof detail === "string" ? detail : answer.statusText || `status ${answer.status}`;
  throw Object.assign(new Error(message), { status: answer.status });
}

// Read a list page by page, at most `most` rows.
async function list(ask, name, most = Infinity) {
  const rows = [];
  let total = most;
  while (rows.length < Math.min(total, most)) {
    const page = await ask(rows.length, Math.min(PAGE, most - rows.length));
    total = page.total_entries;
    if (!page[name].length) break;
    rows.push(...page[name]);
  }
  return { rows, total };
}

function get(where, fields, name, most) {
  const ask = (offset, limit) => {
    const given = Object.entries({ ...fields, limit, offset });
    const pairs = given.flatMap(([key, values]) => [values].flat().map((value) => [key, value]));
    return call("GET", `${where}?${new URLSearchParams(pairs)}`);
  };
  return list(ask, name, most);
}

async function post(where, fields, name, most) {
  const ask = (page_offset, page_limit) => call("POST", where, { ...fields, page_offset, page_limit });
  return (await list(ask, name, most)).rows;
}

export async function variables(prefix) {
  const { rows } = await get("variables", { variable_key_pattern: `${prefix}%`, order_by: "key" }, "variables");
  // In a pattern, "_" matches any character.
  return rows.filter(({ key }) => key.startsWith(prefix));
}

// Read the tasks of some operators, latest start first.
export async function tasks(operator, filters, most) {
  const fields = { operator, order_by: "-start_date", ...filters };
  const { rows, total } = await get("dags/~/dagRuns/~/taskInstances", fields, "task_instances", most);
  return { rows: await withFields(rows.filter((row) => operator.includes(row.operator))), total };
}

// The rendered fields of each try, once they were asked for.
const rendered = new Map();

// Before 3.3, Airflow leaves the rendered fields out of the list above, but not of the one below.
async function withFields(rows) {
  const tryOf = (row) => `${row.id} ${row.try_number}`;
  const without = rows.filter((row) => row.start_date && !Object.keys(row.rendered_fields ?? {}).length);
  const asked = without.filter((row) => !rendered.has(tryOf(row)));
  if (asked.length) {
    const all = (name) => [...new Set(asked.map((row) => row[name]))];
    for (const row of asked) rendered.set(tryOf(row), {});
    const where = { dag_ids: all("dag_id"), dag_run_ids: all("dag_run_id"), task_ids: all("task_id") };
    for (const row of await taskInstances(where)) rendered.set(tryOf(row), row.rendered_fields);
  }
  return rows.map((row) => ({ ...row, rendered_fields: rendered.get(tryOf(row)) ?? row.rendered_fields }));
}

// Read the task instances of all combinations of Dags, runs and task ids or states.
export function taskInstances(fields, most) {
  return post("dags/~/dagRuns/~/taskInstances/list", fields, "task_instances", most);
}

// Read the latest runs of Dags; the list cannot be asked for runs by their ids.
export function dagRuns(dag_ids, most) {
  return post("dags/~/dagRuns/list", { dag_ids, order_by: "-id" }, "dag_runs", most);
}

// Read what belongs to a task, such as the log of its last try.
export async function ofTask({ dag_id, dag_run_id, task_id, map_index }, ...parts) {
  const where = path("dags", dag_id, "dagRuns", dag_run_id, "taskInstances", task_id, ...parts);
  return call("GET", `${where}?map_index=${map_index}`);
}

export const variable = async (key) => call("GET", `variables/${path(key)}`);
export const dag = (dagId) => call("GET", `dags/${path(dagId)}`);
export const trigger = (dagId) => call("POST", `dags/${path(dagId)}/dagRuns`, { logical_date: null });

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
