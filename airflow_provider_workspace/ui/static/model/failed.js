// The section of tasks that failed and have not succeeded since.

/** @import { Answers, Failures, Labels, Section, Task } from "./types.js" */

import { problemOf } from "./answers.js";
import { MUST_SUCCEED, SWEEP_OPERATOR } from "./operators.js";
import { counted, groupBy, withTimes } from "./text.js";
import { organizationOf } from "./waits.js";

// Arguments that say whom or what a task is for.
const PURPOSE = ["workspace_conn_id", "organization_id", "organization", "user_email"];
// What people call the operators of task groups of this package in which one failure follows another.
const IN_GROUPS = ["access review", "organization file"];
// The class of an error of this package, which says nothing more.
const CLASS = /^(\[\S+\] )?Workspace\w*Error: /;
/** @type {Failures} */
const NO_FAILURES = { rows: [], successes: [], total: 0 };
// Tasks of which the page asks Airflow whether they have succeeded since.
const MAX_ASKED = 20;
// The name of a problem, with or without the address of its section, at the begin of a message.
const PROBLEM = /^\[(?:\S*#)?([a-z0-9-]+)\] /;
// Problems of a connection, whatever a task asks with it.
const OF_CONNECTIONS = ["api-key-refused", "connection-invalid", "not-reached", "tls-failed"];

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
 * Return a row for each cause, with all runs that failed for it.
 *
 * @param {Answers} answers
 * @param {Labels} labels
 * @returns {Section<any>}
 */
export function failedView({ failed }, labels) {
  const failures = failed.value ?? NO_FAILURES;
  const open = stillFailed(failures).map(({ task, times }) => failureOf(task, times, labels));
  const runs = [...groupBy(open, runKey).values()].map(runOf);
  const rows = [...groupBy(runs, causeKey).values()].map(rowOf);
  const byKind = groupBy(runs, ({ kind }) => kind);
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
 * What is known of a failed task.
 *
 * @typedef {object} Failure
 * @property {Task} task
 * @property {string} kind what people call its operator
 * @property {string} cause its message, which says what to do, too
 * @property {string} problem the section that says more; empty if the message names none
 * @property {string} connection
 * @property {string} who
 * @property {string} organization
 * @property {number} times that it failed for the same purpose
 */

/**
 * @param {Task} task
 * @param {number} times
 * @param {Labels} labels
 * @returns {Failure}
 */
function failureOf(task, times, labels) {
  const fields = task.rendered_fields ?? {};
  const problem = PROBLEM.exec(task.reason ?? "");
  return {
    task,
    kind: MUST_SUCCEED[task.operator ?? ""] ?? "task",
    cause: withTimes(task.reason ?? "").replace(CLASS, "$1"),
    problem: problem ? problem[1] : "",
    connection: String(fields.workspace_conn_id ?? ""),
    who: fields.user_email ? String(fields.user_email) : "",
    organization: task.operator === SWEEP_OPERATOR ? "" : organizationOf(fields, labels),
    times,
  };
}

/**
 * Return what tasks of one run of a task group have in common: one fails, and those that depend on it fail, too. In an
 * author's own group, tasks for other organizations have nothing to do with each other.
 *
 * @param {Failure} failure
 */
function runKey({ kind, task }) {
  const end = task.task_id.lastIndexOf(".");
  if (end < 0 || !IN_GROUPS.includes(kind)) return task.id;
  return JSON.stringify([task.dag_run_id, kind, purposeOf({ ...task, task_id: task.task_id.slice(0, end) })]);
}

/**
 * Return the failure with which a run of a group began, and those that came with it.
 *
 * @param {Failure[]} failures the latest first
 */
function runOf(failures) {
  const [first, ...others] = [...failures].reverse();
  return { ...first, others };
}

/**
 * Return what failures of one cause have in common: the same words, or the same connection that does not work.
 *
 * @param {Failure} failure
 */
function causeKey({ task, cause, problem, connection }) {
  if (OF_CONNECTIONS.includes(problem)) return JSON.stringify([problem, connection]);
  return problem ? cause : task.id;
}

/** @param {ReturnType<typeof runOf>[]} runs of one cause, the latest first */
function rowOf([latest, ...earlier]) {
  const together = [...latest.others, ...earlier.flatMap((run) => [run, ...run.others])];
  const others = together.map((failure) => {
    return { ...failure, cause: causeKey(failure) === causeKey(latest) ? "" : failure.cause };
  });
  return { ...latest, key: latest.task.id, others, urgent: true };
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
