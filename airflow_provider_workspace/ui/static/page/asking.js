// What the page asks Airflow, and the last answers.

/** @import { Answer, Answers, Task } from "../model/types.js" */
/** @import { Lease } from "../model/variables.js" */

import * as api from "../api.js";
import { ASKING } from "../model/answers.js";
import { isSettled, laterSuccesses, stillFailed } from "../model/failed.js";
import { sweepDagOf } from "../model/health.js";
import {
  CAMPAIGNS, INVITES, MUST_SUCCEED, ORGANIZATION, SENSORS, SWEEP_OPERATOR,
} from "../model/operators.js";
import { ASKS, ENDED, GOES_ON, failedTry, reasonIn } from "../model/tasks.js";
import { parsed } from "../model/text.js";
import { VARIABLES, readWindows } from "../model/variables.js";
import { drawSoon } from "./state.js";

// Maximum rows of a list, and of lists with their own maximum.
const MAX_TASKS = 200;
const MAX_ENDED = 100;
const MAX_FAILED = 100;
const MAX_SWEEPS = 10;
// Maximum campaigns that have ended and are shown.
const MAX_RECENT = 20;
const MAX_DAGS = 20;
const MAX_LOGS = 50;
// Leases of one request.
const LEASES_AT_ONCE = 100;
const LOGS_AT_ONCE = 3;
// Where the reasons of failed tasks are kept when the page is left.
const REASONS = "workspace reasons";
const STATES = [ASKS, ...GOES_ON];

const NOTHING = { reason: { status: ASKING } };
/** @type {Answers} */
export const answers = {
  health: NOTHING,
  variables: NOTHING,
  sweeps: NOTHING,
  dags: NOTHING,
  tasks: NOTHING,
  runs: NOTHING,
  failed: NOTHING,
  questions: NOTHING,
  campaigns: NOTHING,
  waits: NOTHING,
};

/** @type {Set<string>} */
const asking = new Set();
/** @type {Map<string, any>} */
const progresses = new Map();
// Failures after which the task has succeeded.
/** @type {Set<string>} */
const settled = new Set();
/** @type {Map<string, string>} */
const reasons = new Map(parsed(sessionStorage.getItem(REASONS)) ?? []);

/** Ask everything, and return when all is answered. */
export async function askAll() {
  const variables = ask("variables", () => api.variables(VARIABLES));
  const sweeps = ask("sweeps", () => api.tasksBy([SWEEP_OPERATOR], {}, MAX_SWEEPS));
  await Promise.all([
    variables.then(() => ask("tasks", () => askTasks(openWindows()))),
    variables.then(() => ask("runs", () => askRuns(dagsOf(openWindows())))),
    Promise.all([variables, sweeps]).then(() => ask("dags", askDags)),
    ask("health", () => api.call("GET", "monitor/health")),
    ask("failed", askFailed),
    ask("campaigns", askCampaigns),
    ask("waits", () => api.tasksBy(SENSORS, { state: GOES_ON }, MAX_TASKS)),
    ask("questions", () => api.byState([ASKS, "deferred"], (state) => api.questions(state, MAX_TASKS))),
  ]);
}

/**
 * Ask one thing. An answer replaces the last one; a failure stands beside it, unless the role may not see it
 * any more.
 *
 * @template {keyof Answers} Name
 * @param {Name} name
 * @param {() => Promise<NonNullable<Answers[Name]["value"]>>} read
 */
async function ask(name, read) {
  if (asking.has(name)) return;
  asking.add(name);
  try {
    answers[name] = /** @type {Answers[Name]} */ ({ value: await read(), at: Date.now() });
  } catch (error) {
    const { status, message } = /** @type {api.ApiError} */ (error);
    const { value, at } = status === 403 ? /** @type {Answers[Name]} */ ({}) : answers[name];
    answers[name] = /** @type {Answers[Name]} */ ({ value, at, reason: { status, message } });
  }
  asking.delete(name);
  drawSoon();
}

/**
 * @template Value
 * @param {Value[]} values
 */
function unique(values) {
  return [...new Set(values)];
}

/** Return a lease of each window. */
function openWindows() {
  return [...readWindows(answers.variables).windows.values()].map(([lease]) => lease);
}

/** @param {Lease[]} leases */
function dagsOf(leases) {
  return unique(leases.map((lease) => lease.dag_id));
}

/**
 * Read the closing tasks of windows, the tasks of their work, and those of their runs that go on or have failed.
 *
 * @param {Lease[]} leases
 */
async function askTasks(leases) {
  /** @type {Map<string, Task>} */
  const tasks = new Map();
  for (let start = 0; start < leases.length; start += LEASES_AT_ONCE) {
    const some = leases.slice(start, start + LEASES_AT_ONCE);
    const where = { dag_ids: dagsOf(some), dag_run_ids: unique(some.map((lease) => lease.run_id)) };
    const named = some.flatMap(({ close_task_id, work_task_ids = [] }) => [close_task_id, ...work_task_ids]);
    const found = await Promise.all([
      api.tasksOf({ ...where, task_ids: unique(named) }),
      api.byState([...STATES, "failed"], (state) => api.tasksOf({ ...where, state }, MAX_TASKS)),
    ]);
    for (const task of found.flat()) tasks.set(task.id, task);
  }
  return [...tasks.values()];
}

/** @param {string[]} dagIds */
async function askRuns(dagIds) {
  return dagIds.length ? api.runsOf(dagIds, MAX_TASKS) : [];
}

async function askDags() {
  const ids = unique([sweepDagOf(answers.sweeps), ...dagsOf(openWindows())]).slice(0, MAX_DAGS);
  const found = ids.map(async (id) => [id, await answerOf(api.call("GET", api.path("dags", id)))]);
  return Object.fromEntries(await Promise.all(found));
}

/** Read the tasks that failed, and what has succeeded since; of settled failures, this is not asked again. */
async function askFailed() {
  const { rows, total } = await api.tasksBy(Object.keys(MUST_SUCCEED), { state: "failed" }, MAX_FAILED);
  const open = rows.filter((task) => !settled.has(failureKey(task)));
  const found = await Promise.all(laterSuccesses(open).map((fields) => api.tasksOf(fields, MAX_TASKS)));
  const successes = found.flat();
  for (const task of open) {
    if (isSettled(task, successes)) settled.add(failureKey(task));
  }
  return { rows: open, total: open.length + total - rows.length, successes };
}

/** @param {Task} task */
function failureKey({ id, try_number, end_date }) {
  return [id, try_number, end_date].join();
}

/** Read the campaigns under way, then the latest that have ended: one that ends now is in both. */
async function askCampaigns() {
  const going = await api.byState(STATES, (state) => api.tasksBy(CAMPAIGNS, { state }, MAX_TASKS));
  const ended = await api.tasksBy(CAMPAIGNS, { state: ENDED }, MAX_ENDED);
  const endedHere = ended.rows.filter(mayInvite);
  const recent = endedHere.slice(0, MAX_RECENT);
  const tasks = new Map([...going.rows.filter(mayInvite), ...recent].map((task) => [task.id, task]));
  const campaigns = await Promise.all([...tasks.values()].map(askProgress));
  const isCut = [going, ended].some(({ rows, total }) => rows.length < total);
  return {
    rows: campaigns.filter(({ task, progress }) => progress || task.operator === INVITES),
    cut: isCut || recent.length < endedHere.length,
  };
}

/** @param {Task} task */
function mayInvite({ operator, rendered_fields: fields }) {
  // Without a part, an organization file is applied as a whole.
  const part = fields?.part ?? "None";
  return operator !== ORGANIZATION || ["members", "None"].includes(part);
}

/** @param {Task} task */
async function askProgress(task) {
  const key = [task.id, task.state, task.try_number, task.end_date, task.trigger?.id].join();
  // A waiting or finished campaign does not write.
  if (task.state === "running" || !progresses.has(key)) {
    const { value, reason } = await answerOf(api.progressOf(task));
    progresses.set(key, reason ? null : parsed(value.value));
  }
  return { task, progress: progresses.get(key) };
}

/**
 * Return an answer, or the reason for its absence if it is hidden or gone.
 *
 * @param {Promise<any>} promise
 * @returns {Promise<Answer<any>>}
 */
async function answerOf(promise) {
  try {
    return { value: await promise };
  } catch (error) {
    const reason = /** @type {api.ApiError} */ (error);
    if (![403, 404].includes(reason.status ?? 0)) throw error;
    return { reason };
  }
}

/** Return the tasks whose last try may have failed, what matters most first. */
function failedTasks() {
  const tasks = [
    ...(answers.sweeps.value?.rows ?? []).slice(0, 1),
    ...(answers.tasks.value ?? []),
    ...stillFailed(answers.failed.value).map(({ task }) => task),
    ...(answers.campaigns.value?.rows ?? []).map(({ task }) => task),
  ];
  return tasks.filter(failedTry);
}

/** @param {Task} task */
function reasonKey(task) {
  return [task.id, failedTry(task)].join();
}

/** Give failed tasks the reasons that are known. */
export function recallReasons() {
  for (const task of failedTasks()) task.reason = reasons.get(reasonKey(task)) ?? task.reason;
}

/**
 * Return why a task failed. What its log said is remembered; what cannot be read now is asked with the next
 * poll.
 *
 * @param {Task} task
 */
export async function askReason(task) {
  try {
    const lines = await api.logOf(task, failedTry(task));
    const reason = lines ? reasonIn(lines.map(parsed)) : "its log is too long to look through here";
    reasons.set(reasonKey(task), reason);
    sessionStorage.setItem(REASONS, JSON.stringify([...reasons].slice(-MAX_LOGS)));
    return reason;
  } catch (error) {
    const { status } = /** @type {api.ApiError} */ (error);
    return status === 403 ? "its log is not visible to your role" : "its log cannot be read";
  }
}

/** Read the logs of failed tasks, some at a time, while the page shows the rest. */
export async function askReasons() {
  if (asking.has("reasons")) return;
  asking.add("reasons");
  try {
    await readReasons();
  } finally {
    asking.delete("reasons");
  }
}

async function readReasons() {
  const tasks = new Map(failedTasks().map((task) => [reasonKey(task), task]));
  const left = [...tasks].slice(0, MAX_LOGS).filter(([key]) => !reasons.has(key)).values();
  const readSome = async () => {
    for (const [, task] of left) {
      task.reason = await askReason(task);
      drawSoon();
    }
  };
  await Promise.all(Array.from({ length: LOGS_AT_ONCE }, readSome));
}
