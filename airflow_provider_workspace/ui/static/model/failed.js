// The section of tasks that failed and have not succeeded since.

/** @import { Answers, Failures, Labels, Section, Task } from "./types.js" */

import { problemOf } from "./answers.js";
import { MUST_SUCCEED, SWEEP_OPERATOR } from "./operators.js";
import { counted, groupBy, withTimes } from "./text.js";
import { organizationOf } from "./waits.js";

// Arguments that say whom or what a task is for.
const PURPOSE = ["workspace_conn_id", "organization_id", "user_email"];
// The class of an error of this package, which says nothing more.
const CLASS = /^(\[\S+\] )?Workspace\w*Error: /;
/** @type {Failures} */
const NO_FAILURES = { rows: [], successes: [], total: 0 };
// Tasks of which the page asks Airflow whether they have succeeded since.
const MAX_ASKED = 20;
// The name of a problem, with or without the address of its section, at the begin of a message.
const PROBLEM = /^\[(?:\S*#)?([a-z0-9-]+)\] /;

/**
 * Return what to ask Airflow: for each task that failed, its successes since the first failure that counts.
 *
 * @param {Task[]} failures
 */
export function laterSuccesses(failures) {
  return [...askedTasks(failures).values()].map((tasks) => {
    const first = Math.min(...tasks.map(endOf));
    const [{ dag_id, task_id }] = tasks;
    const since = new Date(first).toISOString();
    return { dag_ids: [dag_id], task_ids: [task_id], state: ["success"], end_date_gte: since };
  });
}

/**
 * Return the failures of the tasks that failed last, the latest for each purpose.
 *
 * @param {Task[]} failures
 */
function askedTasks(failures) {
  const byTask = groupBy(latestOf(failures), taskKey);
  return new Map([...byTask].slice(0, MAX_ASKED));
}

/**
 * Return the failures that no success has settled: the latest for each purpose, and how often it failed.
 *
 * @param {Failures | undefined} failures
 * @returns {{task: Task, times: number}[]} the latest first
 */
export function stillFailed({ rows, successes } = NO_FAILURES) {
  const asked = askedTasks(rows);
  const open = rows.filter((task) => asked.has(taskKey(task)) && !isSettled(task, successes));
  const times = groupBy(open, purposeOf);
  return latestOf(open).map((task) => ({ task, times: times.get(purposeOf(task))?.length ?? 1 }));
}

/**
 * Return whether a task has succeeded since it failed.
 *
 * @param {Task} failure
 * @param {Task[]} successes
 */
export function isSettled(failure, successes) {
  return successes.some((success) => taskKey(success) === taskKey(failure) && settles(success, failure));
}

/**
 * @param {Answers} answers
 * @param {Labels} labels
 * @returns {Section<any>}
 */
export function failedView({ failed }, labels) {
  const failures = failed.value ?? NO_FAILURES;
  const rows = stillFailed(failures).map(({ task, times }) => failedRow(task, times, labels));
  const byKind = groupBy(rows, ({ kind }) => kind);
  const counts = [...byKind].map(([kind, alike]) => counted(alike.length, kind));
  const isCut = failures.total > failures.rows.length || groupBy(failures.rows, taskKey).size > MAX_ASKED;
  return {
    problem: problemOf("task instances", failed),
    rows,
    notes: isCut ? ["Older ones are not listed."] : [],
    headline: counts.length ? [`failed: ${counts.join(", ")}`] : [],
    urgent: rows.length > 0,
  };
}

/**
 * @param {Task} task
 * @param {number} times that it failed for the same purpose
 * @param {Labels} labels
 */
function failedRow(task, times, labels) {
  const { kind, cure } = MUST_SUCCEED[task.operator ?? ""] ?? { kind: "task", cure: "" };
  const fields = task.rendered_fields ?? {};
  const problem = PROBLEM.exec(task.reason ?? "");
  return {
    key: task.id,
    task,
    kind,
    cure,
    cause: withTimes(task.reason ?? "").replace(CLASS, "$1"),
    problem: problem ? problem[1] : "",
    who: fields.user_email ? String(fields.user_email) : "",
    organization: task.operator === SWEEP_OPERATOR ? "" : organizationOf(fields, labels),
    times,
    urgent: true,
  };
}

/**
 * Return the latest failure for each purpose, the latest first.
 *
 * @param {Task[]} failures
 */
function latestOf(failures) {
  const sorted = [...failures].sort((a, b) => endOf(b) - endOf(a));
  return [...groupBy(sorted, purposeOf).values()].map(([latest]) => latest);
}

/** @param {Task} task */
function endOf({ end_date: ended, start_date: started }) {
  return Date.parse(ended ?? started ?? "") || 0;
}

/** @param {Task} task */
function taskKey({ dag_id, task_id }) {
  return JSON.stringify([dag_id, task_id]);
}

/**
 * Return what a task is for: a grant for one person is another than that for the next one.
 *
 * @param {Task} task
 */
function purposeOf({ dag_id, task_id, map_index, rendered_fields: fields = {} }) {
  return JSON.stringify([dag_id, task_id, map_index, ...PURPOSE.map((name) => fields[name])]);
}

/**
 * Return whether a success came after a failure, and is for the same. A task that failed before its arguments
 * were known may have been for any organization, but not for a person who got something.
 *
 * @param {Task} success
 * @param {Task} failure
 */
function settles(success, failure) {
  if (endOf(success) <= endOf(failure) || success.map_index !== failure.map_index) return false;
  const { rendered_fields: got = {} } = success;
  const { rendered_fields: wanted = {} } = failure;
  if (got.user_email !== wanted.user_email) return false;
  return !Object.keys(wanted).length || PURPOSE.every((name) => got[name] === wanted[name]);
}
