// The section of maintenance windows that hold batch exports.
//
// What a window is, the last sweep says; as the sweep may be what is missing, a window is stuck too if it is
// past its latest end, or its closing task failed and no task of its work goes on.

/** @import { Answer, Answers, Dag, Labels, Problem, Run, Section, Task } from "./types.js" */
/** @import { Lease, Verdict } from "./variables.js" */

import { HIDDEN, mention, problemOf } from "./answers.js";
import { asks, askedIn, failureOf, goesOn, hasEnded, hasFailed } from "./tasks.js";
import { counted, duration, groupBy, withTimes } from "./text.js";
import { readSweep, readWindows } from "./variables.js";

// Why a window is stuck of which nothing else is known.
const PAST_THE_END = "Past its latest end, and no sweep has said why.";

/** @typedef {[text: string, tone: string]} Badge */
/** @typedef {{urgent: boolean, kind: string, from: number}} Standing what the headline says, since when */
/** @typedef {{task: Task | null, said: string}} Failure */

/**
 * What is known of a window besides its leases.
 *
 * @typedef {object} Surroundings
 * @property {Answer<Dag>} dag
 * @property {Run} [run]
 * @property {Task[]} tasks
 * @property {Problem | null} problem why its tasks are not known
 * @property {Verdict} [verdict]
 */

/**
 * @param {Answers} answers
 * @param {Labels} labels
 * @param {string[]} causes what of Airflow is down
 * @param {number} now
 * @returns {Section<any>}
 */
export function windowsView({ variables, tasks, runs, dags, questions }, labels, causes, now) {
  const { windows, unreadable } = readWindows(variables);
  const { verdicts } = readSweep(variables);
  const problem = problemOf("task instances", tasks);
  // A question knows when it was asked.
  const known = new Map([...(tasks.value ?? []), ...askedIn(questions)].map((task) => [task.id, task]));
  const tasksByRun = groupBy(known.values(), ({ dag_id, dag_run_id }) => runKey(dag_id, dag_run_id));
  const runsByKey = new Map((runs.value ?? []).map((run) => [runKey(run.dag_id, run.dag_run_id), run]));
  const rows = [...windows].map(([key, leases]) => {
    const [{ dag_id, run_id }] = leases;
    const around = {
      dag: dags.value?.[dag_id] ?? {},
      run: runsByKey.get(runKey(dag_id, run_id)),
      tasks: tasksByRun.get(runKey(dag_id, run_id)) ?? [],
      problem,
      verdict: verdicts[key],
    };
    return windowRow(key, leases, around, labels, causes, now);
  });
  rows.sort((a, b) => Number(b.urgent) - Number(a.urgent) || a.since - b.since);
  const headline = countsOf(rows, now);
  if (unreadable.length) headline.unshift(`unreadable leases: ${unreadable.length}`);
  const isUnreadableStuck = unreadable.some(({ id }) => isStuck(verdicts[id]));
  return {
    problem: problemOf("Variables", variables),
    rows,
    notes: unreadable.map(({ text }) => text),
    headline,
    urgent: isUnreadableStuck || rows.some((row) => row.urgent),
  };
}

/**
 * @param {string} dagId
 * @param {string} runId
 */
function runKey(dagId, runId) {
  return JSON.stringify([dagId, runId]);
}

/**
 * @param {string} key
 * @param {Lease[]} leases
 * @param {Surroundings} around
 * @param {Labels} labels
 * @param {string[]} causes
 * @param {number} now
 */
function windowRow(key, leases, around, labels, causes, now) {
  const [lease] = leases;
  const { dag, verdict } = around;
  const tasks = tasksOf(lease, around.tasks);
  const since = Math.min(...leases.map((one) => one.since));
  const until = Math.min(...leases.map((one) => one.until));
  const standing = standingOf(leases, verdict, tasks, now);
  const lines = linesOf(lease, around, tasks);
  const owners = [lease.owner, ...(dag.value?.owners ?? [])].filter((name) => name && name !== "airflow");
  const cause = standing.urgent ? causeOf(standing, verdict, tasks.closing) : null;
  const failed = tasks.all.filter((task) => failureOf(task) && task !== cause?.task);
  return {
    key,
    dag_id: lease.dag_id,
    run_id: lease.run_id,
    map_index: lease.map_index,
    since,
    until,
    ...standing,
    cause,
    verdict: wordsOf(verdict),
    owners: [...new Set(owners)],
    organization: labels[lease.organization_id] ?? lease.organization_id,
    exports: leases.map((one) => exportOf(one, labels)),
    work: workOf(lease, around.run, tasks),
    lines: now >= until ? [...causes, ...lines] : lines,
    asking: tasks.asking,
    close: hasEnded(tasks.closing) ? tasks.closing : null,
    failed: failed.map((task) => ({ ...task, said: failureOf(task) })),
  };
}

/**
 * Return the tasks of the run of a window: its closing task, those that ask people, those of its work, and
 * those that go on.
 *
 * @param {Lease} lease
 * @param {Task[]} all
 */
function tasksOf({ close_task_id, map_index, work_task_ids: ids = [] }, all) {
  const isOfWindow = (/** @type {Task} */ task) => map_index < 0 || task.map_index === map_index;
  const closing = all.find((task) => task.task_id === close_task_id && task.map_index === map_index);
  const asking = all.filter((task) => asks(task) && (isOfWindow(task) || task.map_index === -1));
  const work = all.filter((task) => ids.includes(task.task_id) && isOfWindow(task));
  const running = all.filter((task) => task !== closing && goesOn(task) && !asking.includes(task));
  return { all, closing, asking, work, running };
}

/**
 * Return whether a window holds its exports, is stuck, or has resumed them.
 *
 * @param {Lease[]} leases
 * @param {Verdict | undefined} verdict
 * @param {ReturnType<typeof tasksOf>} tasks
 * @param {number} now
 * @returns {Standing}
 */
function standingOf(leases, verdict, { closing, work }, now) {
  const since = Math.min(...leases.map((lease) => lease.since));
  const until = Math.min(...leases.map((lease) => lease.until));
  if (isStuck(verdict)) {
    const from = verdict?.state === "overdue" ? until : Date.parse(verdict?.since ?? "");
    return { urgent: true, kind: `stuck: ${verdict?.state} (last sweep)`, from: from || since };
  }
  if (leases.every((lease) => lease.resumed_at)) {
    const resumed = Math.max(...leases.map((lease) => Date.parse(lease.resumed_at ?? "")));
    return { urgent: false, kind: "just resumed", from: resumed };
  }
  if (now >= until) return { urgent: true, kind: "stuck: past the latest end", from: until };
  if (hasFailed(closing) && work.every(hasEnded)) {
    const from = Date.parse(closing?.end_date ?? "");
    return { urgent: true, kind: "stuck: its closing task failed", from: from || since };
  }
  const isUntouched = leases.every((lease) => !lease.paused_at && !lease.late_pause_until);
  return { urgent: false, kind: isUntouched ? "about to be paused" : "paused", from: since };
}

/** @param {Verdict} [verdict] */
function isStuck(verdict) {
  return ["abandoned", "overdue"].includes(verdict?.state ?? "");
}

/** @param {Verdict} [verdict] */
function wordsOf(verdict) {
  return verdict?.text ? withTimes(verdict.text) : null;
}

/**
 * Return why a stuck window is stuck: what its closing task failed with, else what the sweep said, else the
 * clock.
 *
 * @param {Standing} standing
 * @param {Verdict | undefined} verdict
 * @param {Task | undefined} closing
 * @returns {Failure}
 */
function causeOf(standing, verdict, closing) {
  const failure = closing ? failureOf(closing) : "";
  if (closing && failure) return { task: closing, said: failure };
  if (isStuck(verdict)) return { task: null, said: `The last sweep said: ${wordsOf(verdict)}` };
  return { task: null, said: PAST_THE_END };
}

/**
 * @param {Lease} lease
 * @param {Labels} labels
 */
function exportOf(lease, labels) {
  return { ...lease, name: labels[lease.batch_export_id], shown: exportState(lease) };
}

/**
 * @param {Lease} lease
 * @returns {Badge}
 */
function exportState(lease) {
  if (lease.resumed_at) return ["Resumed", "good"];
  if (!lease.paused_at && !lease.late_pause_until) {
    return [lease.refused ? "Pause refused" : "Not paused yet", "plain"];
  }
  if (lease.state === "closing") return ["Resume begun, not confirmed", "warn"];
  return [lease.paused_at ? "Paused" : "Pausing, no answer yet", "warn"];
}

/**
 * Return whether the work of a window is over, as far as its tasks are known.
 *
 * @param {Lease} lease
 * @param {Run | undefined} run
 * @param {ReturnType<typeof tasksOf>} tasks
 * @returns {Badge | null}
 */
function workOf(lease, run, { work, asking }) {
  const isRunOver = ["success", "failed"].includes(run?.state ?? "");
  if (isRunOver || (work.length && work.every(hasEnded))) return ["Work over", "warn"];
  if (asking.length) return ["Somebody must answer", "warn"];
  return work.length ? ["Work not over", "plain"] : null;
}

/**
 * Return what Airflow shows of the Dag of a window, its run, its tasks that go on, and its closing task.
 *
 * @param {Lease} lease
 * @param {Surroundings} around
 * @param {ReturnType<typeof tasksOf>} tasks
 */
function linesOf({ close_task_id }, { dag, run, problem }, { closing, running }) {
  const lines = [];
  if (dag.reason?.status === 404) lines.push("its Dag is deleted");
  if (dag.value?.is_paused) lines.push("its Dag is paused");
  if (dag.value?.is_stale) lines.push("the file of its Dag is gone");
  if (run) lines.push(`run ${run.state}`);
  for (const task of running) lines.push(`${task.task_id} ${task.state}`);
  if (problem) lines.push(mention(problem, "the states of its tasks"));
  else if (closing) lines.push(`${close_task_id} ${closing.state ?? "not begun"}`);
  else if (run) lines.push(`${close_task_id}: ${HIDDEN}`);
  else lines.push(`its run and tasks: ${HIDDEN}`);
  return [...new Set(lines)].filter(Boolean);
}

/**
 * Return how many exports are in each state, for the headline.
 *
 * @param {ReturnType<typeof windowRow>[]} rows
 * @param {number} now
 */
function countsOf(rows, now) {
  return [...groupBy(rows, ({ kind }) => kind)].map(([kind, alike]) => {
    const exports = new Set(alike.flatMap((row) => row.exports.map((lease) => lease.batch_export_id)));
    const from = Math.min(...alike.map((row) => row.from));
    return `${counted(exports.size, "export")} ${kind}, for ${duration(now - from)}`;
  });
}
