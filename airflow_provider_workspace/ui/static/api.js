// Requests to Airflow's public REST API with the session of the person.

// The page is at <base>/workspace-ui/.
const BASE = new URL("..", document.baseURI);
const TASKS = "dags/~/dagRuns/~/taskInstances";
// Maximum rows of a page, for Airflow silently cuts larger ones; milliseconds of one request; characters of a log.
const PAGE = 100;
const LIMIT = 30000;
const MAX_LOG = 1000000;
// What the errors of a browser mean here.
const MEANINGS = {
  TimeoutError: `no answer within ${LIMIT / 1000} s`, TypeError: "no connection", SyntaxError: "its answer is no JSON"
};

export const path = (...parts) => parts.map(encodeURIComponent).join("/");

// Airflow 3.1.0 keeps the session in localStorage. Empty before a 401: later releases prefer the header to the cookie.
let authorization = {};

// Send a request, and return what `read` makes of the answer. Errors have the status and a message for people.
async function send(method, where, read, body, accept = "application/json") {
  const headers = { "Content-Type": "application/json", Accept: accept, ...authorization };
  const sent = { method, headers, body: body && JSON.stringify(body), signal: AbortSignal.timeout(LIMIT) };
  let status;
  try {
    const answer = await fetch(new URL(`api/v2/${where}`, BASE), sent);
    status = answer.status;
    const token = status === 401 && localStorage.getItem("token")?.replace(/^"|"$/g, "");
    if (token && headers.Authorization !== `Bearer ${token}`) {
      authorization = { Authorization: `Bearer ${token}` };
      return send(method, where, read, body, accept);
    }
    if (answer.headers.get("Content-Type")?.includes("html")) throw new Error("a proxy answered in place of it");
    if (answer.ok) return await read(answer);
    const { detail } = (await answer.json().catch(() => null)) ?? {};
    throw new Error(typeof detail === "string" ? detail : `status ${status}`);
  } catch (error) {
    throw Object.assign(new Error(MEANINGS[error.name] ?? error.message), { status: error.status ?? status });
  }
}

export const call = (method, where, body) => send(method, where, (answer) => answer.json(), body);

// Read a list page by page, at most `most` rows.
async function list(readPage, name, most = Infinity) {
  const rows = [];
  let total = Infinity;
  while (rows.length < Math.min(total, most)) {
    const page = await readPage(rows.length, Math.min(PAGE, most));
    if (!Array.isArray(page?.[name])) throw new Error(`its answer has no ${name}`);
    rows.push(...page[name]);
    total = page[name].length ? page.total_entries : rows.length;
  }
  return { rows, total };
}

function get(where, fields, name, most) {
  const pairs = Object.entries(fields).flatMap(([key, values]) => [values].flat().map((value) => [key, value]));
  const query = new URLSearchParams(pairs);
  return list((offset, limit) => call("GET", `${where}?${query}&offset=${offset}&limit=${limit}`), name, most);
}

async function post(where, fields, name, most) {
  const readPage = (page_offset, page_limit) => call("POST", `${where}/list`, { ...fields, page_offset, page_limit });
  return (await list(readPage, name, most)).rows;
}

// Read the task instances of all combinations of Dags, runs and task ids or states.
export const tasksOf = (fields, most) => post(TASKS, fields, "task_instances", most);

// Read the latest runs of Dags, in all states or some; the list cannot be asked for runs by their ids.
export const runsOf = (dag_ids, most, states) =>
  post("dags/~/dagRuns", { dag_ids, states, order_by: "-id" }, "dag_runs", most);

export async function variables(prefix) {
  const { rows } = await get("variables", { variable_key_pattern: `${prefix}%`, order_by: "key" }, "variables");
  // In a pattern, "_" matches any character.
  return rows.filter(({ key }) => key.startsWith(prefix));
}

// Return the address of the documentation, if Airflow tells it (3.3 and later) and the package has one.
export async function documentation() {
  const { rows } = await get("providers", {}, "providers");
  return rows.find((provider) => provider.package_name === "airflow-provider-workspace")?.documentation_url;
}

// Read the tasks of some operators, latest start first.
export async function tasksBy(operator, filters, most) {
  const found = await get(TASKS, { operator, order_by: "-start_date", ...filters }, "task_instances", most);
  const rows = found.rows.filter((row) => operator.includes(row.operator));
  // Before 3.3, Airflow leaves the rendered fields out of this list, but not of the other one.
  const without = rows.filter((row) => row.start_date && !Object.keys(row.rendered_fields ?? {}).length);
  const all = (name) => [...new Set(without.map((row) => row[name]))];
  const where = { dag_ids: all("dag_id"), dag_run_ids: all("dag_run_id"), task_ids: all("task_id") };
  for (const { id, rendered_fields } of without.length ? await tasksOf(where) : []) {
    Object.assign(without.find((row) => row.id === id) ?? {}, { rendered_fields });
  }
  return { rows, total: found.total };
}

// Read by state. Airflow before 3.3 does not know the first one, and refuses it.
let refused = false;
export async function byState(states, read) {
  if (refused) return read(states.slice(1));
  return read(states).catch((error) => {
    if (error.status !== 422) throw error;
    refused = true;
    return read(states.slice(1));
  });
}

// Read what tasks in some states ask of people, the latest first.
export function questions(state, most) {
  const fields = { response_received: false, order_by: "-created_at", state };
  return get("dags/~/dagRuns/~/hitlDetails", fields, "hitl_details", most);
}

const ofTask = ({ dag_id, dag_run_id, task_id, map_index }, ...parts) =>
  `${path("dags", dag_id, "dagRuns", dag_run_id, "taskInstances", task_id, ...parts)}?map_index=${map_index}`;

export const progressOf = (task) => call("GET", ofTask(task, "xcomEntries", "progress"));

// Read the lines of the log of a try. Logs are read from their begin: of a long one the end is out of reach, so null.
export const logOf = (task, tried) =>
  send("GET", ofTask(task, "logs", tried), readLines, undefined, "application/x-ndjson");

async function readLines(answer) {
  let text = "";
  // Leaving the loop ends the transfer.
  for await (const part of answer.body.pipeThrough(new TextDecoderStream())) {
    text += part;
    if (text.length > MAX_LOG) return null;
  }
  return text.split("\n");
}

// Return the address of a Dag, a run or a task in the Airflow UI.
export function uiPath({ dag_id, dag_run_id, task_id, map_index }) {
  const parts = { dags: dag_id, runs: dag_run_id, tasks: task_id, mapped: map_index < 0 ? undefined : map_index };
  return new URL(path(...Object.entries(parts).filter(([, id]) => id !== undefined).flat()), BASE).href;
}

// Return where to log in, from where Airflow leads back to the page in the window.
export const loginPath = () =>
  new URL(`api/v2/auth/login?${new URLSearchParams({ next: window.parent.location.href })}`, BASE).href;
