// What of Airflow runs, how old the last sweep is, and why none can be started from the page.

/** @import { Answer, Answers, Dag, Listed, Task } from "./types.js" */

import { isStillAsked, mention, problemOf } from "./answers.js";
import { failureOf, goesOn, hasEnded } from "./tasks.js";
import { duration } from "./text.js";
import { GRANTS, LEASES, readSweep, variablesOf } from "./variables.js";

const JOBS = ["scheduler", "triggerer", "dag_processor"];
// How old the last sweep may be if its schedule is not known.
const HOUR = 3600000;
// The Dag of the example.
const SWEEP_DAG = "workspace_sweep";

/** @typedef {{text: string, bad: boolean}} Part of the line */
/** @typedef {Part & {last?: Task, failure: string, unpause: string}} SweepPart */

/**
 * @typedef {object} Health
 * @property {(Part | SweepPart)[]} parts the last one is about the sweep
 * @property {string[]} causes what is down, and keeps tasks from going on
 * @property {string} obstacle why no sweep can be started from the page; empty if one can
 * @property {string} unpause the Dag that must be unpaused first; empty if none must
 * @property {string} sweepDag
 * @property {string} grantsDag the Dag that ends grants; empty if none is known
 * @property {number} grantsTriedAt when the last run that ends grants began, if it failed; else NaN
 * @property {boolean} sweeping whether a sweep goes on
 */

/** @type {Health} */
export const NO_HEALTH = {
  parts: [],
  causes: [],
  obstacle: "",
  unpause: "",
  sweepDag: SWEEP_DAG,
  grantsDag: "",
  grantsTriedAt: NaN,
  sweeping: false,
};

/**
 * Return the Dag that sweeps: the one that did, or that of the example.
 *
 * @param {Answer<Listed<Task>>} sweeps
 */
export function sweepDagOf({ value }) {
  return value?.rows[0]?.dag_id ?? SWEEP_DAG;
}

/**
 * @param {Answers} answers
 * @param {number} now
 * @returns {Health}
 */
export function healthView(answers, now) {
  const { health, sweeps, dags } = answers;
  const problem = problemOf("the health of Airflow", health);
  const jobs = problem ? [] : JOBS.map((name) => jobPart(name, health.value?.[name], now));
  const isDown = Boolean(jobs[0]?.bad);
  const sweepDag = sweepDagOf(sweeps);
  const dag = dags.value?.[sweepDag] ?? {};
  const isPaused = Boolean(dag.value?.is_paused && !dag.value.is_stale);
  const unpause = isPaused && !isDown ? sweepDag : "";
  const shown = problem ? [{ text: mention(problem, "health"), bad: !isStillAsked(problem) }] : jobs;
  return {
    parts: [...shown, { ...sweepPart(answers, now), unpause }],
    causes: jobs.slice(0, 2).filter((job) => job.bad).map((job) => job.text),
    obstacle: isDown ? "The scheduler is down, so no Dag runs." : obstacleOf(sweepDag, dag, sweeps),
    unpause,
    sweepDag,
    grantsDag: grantsDagOf(sweepDag, dag, sweeps),
    grantsTriedAt: Date.parse(failedEnd(sweeps)?.start_date ?? ""),
    sweeping: (sweeps.value?.rows ?? []).some(goesOn),
  };
}

/**
 * @param {string} name
 * @param {Record<string, string> | undefined} job
 * @param {number} now
 * @returns {Part}
 */
function jobPart(name, job, now) {
  const title = name.replace("_", " ");
  if (job?.status === "healthy") return { text: `${title} runs`, bad: false };
  const heartbeat = job?.[`latest_${name}_heartbeat`];
  const age = heartbeat ? `, last seen ${duration(now - Date.parse(heartbeat))} ago` : "";
  return { text: `${title} down${age}`, bad: true };
}

/**
 * Return how old the last sweep is. That there was none is no alarm as long as there is nothing to end.
 *
 * @param {Answers} answers
 * @param {number} now
 */
function sweepPart({ variables, sweeps }, now) {
  const tasks = sweeps.value?.rows ?? [];
  const [last] = tasks;
  const failure = last ? failureOf(last) : "";
  const noted = readSweep(variables).at;
  // A sweep may have failed before it swept.
  const succeeded = tasks.find((task) => task.state === "success");
  const at = noted || Date.parse(succeeded?.end_date ?? "");
  if (at) {
    const period = periodOf(tasks);
    const often = period ? `, every ${duration(period)}` : "";
    const text = `last ${noted ? "" : "successful "}sweep ${duration(now - at)} ago${often}`;
    return { text, bad: now - at > (period ? 2 * period : HOUR), last, failure };
  }
  const hidden = problemOf("task instances", sweeps) ?? problemOf("Variables", variables);
  if (hidden) return { text: mention(hidden, "the last sweep"), bad: false, last, failure };
  if (!last) {
    const isNeeded = [LEASES, GRANTS].some((prefix) => variablesOf(variables, prefix).length > 0);
    return { text: "no sweep has run", bad: isNeeded, last, failure };
  }
  if (!tasks.some(hasEnded)) return { text: "the first sweep has not ended", bad: false, last, failure };
  return { text: "no sweep has succeeded", bad: true, last, failure };
}

/**
 * Return the time between two scheduled sweeps; 0 if it is not known.
 *
 * @param {Task[]} tasks
 */
function periodOf(tasks) {
  const scheduled = tasks.filter((task) => task.dag_run_id.startsWith("scheduled__"));
  const starts = scheduled.map((task) => Date.parse(task.run_after ?? ""));
  const distances = starts.slice(1).map((start, index) => Math.abs(starts[index] - start));
  const shortest = Math.min(...distances.filter((distance) => distance > 0));
  return shortest < Infinity ? shortest : 0;
}

/**
 * Return why no sweep can be started from the page; empty if one can.
 *
 * @param {string} sweepDag
 * @param {Answer<Dag>} dag
 * @param {Answer<Listed<Task>>} sweeps
 */
function obstacleOf(sweepDag, { value: dag, reason }, sweeps) {
  const hasRun = Boolean(sweeps.value?.rows.length);
  if (dag?.is_stale) return `The file of Dag ${sweepDag} is gone: add it again.`;
  if (dag?.is_paused) return `Dag ${sweepDag} is paused: unpause it.`;
  if (dag) return "";
  if (reason && reason.status !== 404) return hasRun ? "" : problemOf("Dags", { reason })?.text ?? "";
  if (reason || !hasRun) return `No sweep can be started from here: add the Dag ${sweepDag}.`;
  return "";
}

/**
 * Return the Dag that ends grants; empty if none is known. A sweep may be for windows only.
 *
 * @param {string} sweepDag
 * @param {Answer<Dag>} dag
 * @param {Answer<Listed<Task>>} sweeps
 */
function grantsDagOf(sweepDag, { value: dag, reason }, sweeps) {
  if (dag?.is_stale || reason?.status === 404) return "";
  const tasks = sweeps.value?.rows ?? [];
  if (!tasks.length) return dag ? sweepDag : "";
  return tasks.find(endsGrants)?.dag_id ?? "";
}

/**
 * Return the last task that ended grants, if it failed.
 *
 * @param {Answer<Listed<Task>>} sweeps
 */
function failedEnd({ value }) {
  const last = (value?.rows ?? []).filter(hasEnded).find(endsGrants);
  return last?.state === "failed" ? last : undefined;
}

/** @param {Task} task */
function endsGrants({ rendered_fields: fields }) {
  return !fields?.kinds || JSON.stringify(fields.kinds).includes("grants");
}
