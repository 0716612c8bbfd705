// Requests to Airflow's public REST API with the session of the person.

/** @import { Listed, Question, Run, Task, Variable } from "./model/types.js" */

// The page is at <base>/workspace-ui/.
const BASE = new URL("..", document.baseURI);
const TASKS = "dags/~/dagRuns/~/taskInstances";
// Maximum rows of a page: Airflow silently cuts larger ones.
const PAGE = 100;
// Milliseconds of one request.
const LIMIT = 30000;
// Characters of a log.
const MAX_LOG = 1000000;
// What the errors of a browser mean here.
/** @type {Record<string, string>} */
const MEANINGS = {
  TimeoutError: `no answer within ${LIMIT / 1000} s`,
  TypeError: "no connection",
  SyntaxError: "its answer is no JSON",
};

/** An error with the status of the answer, if there was one, and a message for people. */
export class ApiError extends Error {
  /**
   * @param {string} message
   * @param {number} [status]
   */
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

/** @param {string[]} parts */
export function path(...parts) {
  return parts.map(encodeURIComponent).join("/");
}

// Airflow 3.1.0 keeps the session in localStorage. Empty before a 401: later releases prefer the header to
// the cookie.
/** @type {Record<string, string>} */
let authorization = {};

/**
 * Send a request, and return what `read` makes of the answer.
 *
 * @param {string} method
 * @param {string} where below api/v2
 * @param {(answer: Response) => Promise<any>} read
 * @param {unknown} [body]
 * @returns {Promise<any>}
 * @throws {ApiError}
 */
async function send(method, where, read, body, accept = "application/json") {
  let status;
  try {
    const sent = authorization.Authorization;
    let answer = await request(method, where, body, accept);
    if (answer.status === 401 && useStoredToken(sent)) answer = await request(method, where, body, accept);
    status = answer.status;
    const isPage = answer.headers.get("Content-Type")?.includes("html");
    if (isPage) throw new Error("a proxy answered in place of it");
    if (answer.ok) return await read(answer);
    throw new Error(await detailOf(answer));
  } catch (error) {
    const { name, message } = /** @type {Error} */ (error);
    throw new ApiError(MEANINGS[name] ?? message, status);
  }
}

/**
 * @param {string} method
 * @param {string} where
 * @param {unknown} body
 * @param {string} accept
 */
function request(method, where, body, accept) {
  return fetch(new URL(`api/v2/${where}`, BASE), {
    method,
    headers: { "Content-Type": "application/json", Accept: accept, ...authorization },
    body: body === undefined ? undefined : JSON.stringify(body),
    signal: AbortSignal.timeout(LIMIT),
  });
}

/**
 * Send the token that Airflow has stored from now on; return whether that may help. Other requests that were
 * under way may have begun to do so.
 *
 * @param {string | undefined} sent what was sent
 */
function useStoredToken(sent) {
  const token = localStorage.getItem("token")?.replace(/^"|"$/g, "");
  if (!token) return false;
  authorization = { Authorization: `Bearer ${token}` };
  return sent !== authorization.Authorization;
}

/** @param {Response} answer that is an error */
async function detailOf(answer) {
  const content = await answer.json().catch(() => null);
  return typeof content?.detail === "string" ? content.detail : `status ${answer.status}`;
}

/**
 * @param {string} method
 * @param {string} where
 * @param {unknown} [body]
 */
export function call(method, where, body) {
  return send(method, where, (answer) => answer.json(), body);
}

/**
 * Read a list page by page.
 *
 * @param {(offset: number, limit: number) => Promise<any>} readPage
 * @param {string} name of the rows in a page
 * @param {number} most rows
 * @returns {Promise<Listed<any>>}
 */
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

/**
 * @param {string} where
 * @param {Record<string, any>} fields of the query; a list stands for several values
 * @param {string} name
 * @param {number} [most]
 */
function get(where, fields, name, most) {
  const query = new URLSearchParams();
  for (const [key, values] of Object.entries(fields)) {
    for (const value of [values].flat()) query.append(key, value);
  }
  const readPage = (/** @type {number} */ offset, /** @type {number} */ limit) => {
    return call("GET", `${where}?${query}&offset=${offset}&limit=${limit}`);
  };
  return list(readPage, name, most);
}

/**
 * @param {string} where
 * @param {Record<string, any>} fields
 * @param {string} name
 * @param {number} [most]
 */
async function post(where, fields, name, most) {
  const { rows } = await list((offset, limit) => {
    return call("POST", `${where}/list`, { ...fields, page_offset: offset, page_limit: limit });
  }, name, most);
  return rows;
}

/**
 * Read the task instances of all combinations of Dags, runs and task ids or states.
 *
 * @param {Record<string, any>} fields
 * @param {number} [most]
 * @returns {Promise<Task[]>}
 */
export function tasksOf(fields, most) {
  return post(TASKS, fields, "task_instances", most);
}

/**
 * Read the latest runs of Dags, in all states or some; the list cannot be asked for runs by their ids.
 *
 * @param {string[]} dag_ids
 * @param {number} most
 * @param {string[]} [states]
 * @returns {Promise<Run[]>}
 */
export function runsOf(dag_ids, most, states) {
  return post("dags/~/dagRuns", { dag_ids, states, order_by: "-id" }, "dag_runs", most);
}

/**
 * @param {string} prefix
 * @returns {Promise<Variable[]>}
 */
export async function variables(prefix) {
  const fields = { variable_key_pattern: `${prefix}%`, order_by: "key" };
  const { rows } = await get("variables", fields, "variables");
  // In a pattern, "_" matches any character.
  return rows.filter(({ key }) => key.startsWith(prefix));
}

/**
 * Return the address of the documentation, if Airflow tells it (3.3 and later) and the package has one.
 *
 * @returns {Promise<string | undefined>}
 */
export async function documentation() {
  const { rows } = await get("providers", {}, "providers");
  return rows.find((provider) => provider.package_name === "airflow-provider-workspace")?.documentation_url;
}

/**
 * Read the tasks of some operators, latest start first.
 *
 * @param {string[]} operator
 * @param {Record<string, any>} filters
 * @param {number} [most]
 * @returns {Promise<Listed<Task>>}
 */
export async function tasksBy(operator, filters, most) {
  const found = await get(TASKS, { operator, order_by: "-start_date", ...filters }, "task_instances", most);
  const rows = found.rows.filter((row) => operator.includes(row.operator));
  await addRenderedFields(rows);
  return { rows, total: found.total };
}

/**
 * Before 3.3, Airflow leaves the rendered fields out of one list, but not out of the other one.
 *
 * @param {Task[]} rows
 */
async function addRenderedFields(rows) {
  const without = rows.filter((row) => row.start_date && !Object.keys(row.rendered_fields ?? {}).length);
  if (!without.length) return;
  const byId = new Map(without.map((row) => [row.id, row]));
  const all = (/** @type {keyof Task} */ name) => [...new Set(without.map((row) => row[name]))];
  const where = { dag_ids: all("dag_id"), dag_run_ids: all("dag_run_id"), task_ids: all("task_id") };
  for (const { id, rendered_fields } of await tasksOf(where)) {
    Object.assign(byId.get(id) ?? {}, { rendered_fields });
  }
}

// Whether Airflow has refused the first of some states, which it does not know before 3.3.
let isFirstRefused = false;

/**
 * Read by states.
 *
 * @template Value
 * @param {string[]} states
 * @param {(states: string[]) => Promise<Value>} read
 * @returns {Promise<Value>}
 */
export async function byState(states, read) {
  if (isFirstRefused) return read(states.slice(1));
  try {
    return await read(states);
  } catch (error) {
    if (/** @type {ApiError} */ (error).status !== 422) throw error;
    isFirstRefused = true;
    return read(states.slice(1));
  }
}

/**
 * Read what tasks in some states ask of people, the latest first.
 *
 * @param {string[]} state
 * @param {number} most
 * @returns {Promise<Listed<Question>>}
 */
export function questions(state, most) {
  const fields = { response_received: false, order_by: "-created_at", state };
  return get("dags/~/dagRuns/~/hitlDetails", fields, "hitl_details", most);
}

/**
 * @param {Task} task
 * @param {(string | number)[]} parts
 */
function ofTask({ dag_id, dag_run_id, task_id, map_index }, ...parts) {
  const below = path("dags", dag_id, "dagRuns", dag_run_id, "taskInstances", task_id, ...parts.map(String));
  return `${below}?map_index=${map_index}`;
}

/** @param {Task} task */
export function progressOf(task) {
  return call("GET", ofTask(task, "xcomEntries", "progress"));
}

/**
 * Read the lines of the log of a try. Logs are read from their begin: of a long one the end is out of reach,
 * so null.
 *
 * @param {Task} task
 * @param {number} tried
 * @returns {Promise<string[] | null>}
 */
export function logOf(task, tried) {
  return send("GET", ofTask(task, "logs", tried), readLines, undefined, "application/x-ndjson");
}

/** @param {Response} answer */
async function readLines(answer) {
  if (!answer.body) return [];
  let text = "";
  // Leaving the loop ends the transfer.
  for await (const part of /** @type {any} */ (answer.body.pipeThrough(new TextDecoderStream()))) {
    text += part;
    if (text.length > MAX_LOG) return null;
  }
  return text.split("\n");
}

/**
 * Return the address of a Dag, a run or a task in the Airflow UI.
 *
 * @param {{dag_id: string, dag_run_id?: string, task_id?: string, map_index?: number}} where
 */
export function uiPath({ dag_id, dag_run_id, task_id, map_index = -1 }) {
  const parts = ["dags", dag_id];
  if (dag_run_id !== undefined) parts.push("runs", dag_run_id);
  if (task_id !== undefined) parts.push("tasks", task_id);
  if (task_id !== undefined && map_index >= 0) parts.push("mapped", String(map_index));
  return new URL(path(...parts), BASE).href;
}

/** Return where to log in, from where Airflow leads back to the page in the window. */
export function loginPath() {
  const query = new URLSearchParams({ next: window.parent.location.href });
  return new URL(`api/v2/auth/login?${query}`, BASE).href;
}
