// Tasks: which have ended, wait or have failed, and why.

/** @import { Answer, Listed, Question, Task } from "./types.js" */

import { isMapping, shorten } from "./text.js";

// States of a task that has not ended, as every release knows them.
export const GOES_ON = [
  "running", "deferred", "queued", "scheduled", "restarting", "up_for_retry", "up_for_reschedule",
];
export const ENDED = ["success", "failed", "skipped", "upstream_failed"];
// The state of a task that waits for a person. Airflow before 3.3 defers it, and refuses a filter by this
// state.
export const ASKS = "awaiting_input";
const NO_REASON = "the log names no reason";
const MAX_REASON = 600;
// The exception that ends a task without another try, and says nothing of the cause.
const FAILS_FOR_GOOD = "AirflowFailException";

/** @param {Task} task */
export function goesOn({ state }) {
  return state === ASKS || GOES_ON.includes(state ?? "");
}

/** @param {Task} task */
export function asks({ state, trigger }) {
  return state === ASKS || (state === "deferred" && /HITL/.test(trigger?.classpath ?? ""));
}

/** @param {Task} [task] */
export function hasEnded(task) {
  return Boolean(task?.state) && !goesOn(/** @type {Task} */ (task));
}

/** @param {Task} [task] */
export function hasFailed(task) {
  return ["failed", "up_for_retry"].includes(task?.state ?? "");
}

/**
 * Return the last try of a task that may have failed, whose log tells why; 0 if there is none.
 *
 * @param {Task} task
 */
export function failedTry(task) {
  if (hasFailed(task)) return task.try_number;
  return goesOn(task) ? task.try_number - 1 : 0;
}

/**
 * Return what is said of the last try that failed; the try before a running one may have succeeded, and been
 * cleared.
 *
 * @param {Task} task
 */
export function failureOf({ state, reason }) {
  const why = reason ? `: ${reason}` : "";
  if (state === "failed") return `failed${why}`;
  if (state === "up_for_retry") return `failed, and is tried again${why}`;
  return reason && reason !== NO_REASON ? `failed before: ${reason}` : "";
}

/**
 * Return why a task failed: the last exception in the lines of its log, else the last error.
 *
 * @param {any[]} lines
 */
export function reasonIn(lines) {
  const events = lines.filter(isMapping).reverse();
  const exception = events.find((line) => line.error_detail?.length);
  const event = exception ?? events.find((line) => line.level === "error");
  if (!event) return NO_REASON;
  const { exc_value: message, exc_type: type } = event.error_detail?.[0] ?? {};
  if (message && type === FAILS_FOR_GOOD) return shorten(message, MAX_REASON);
  if (message) return shorten(`${message} (${type})`, MAX_REASON);
  return shorten(type ?? event.event ?? NO_REASON, MAX_REASON);
}

/**
 * Return the tasks that wait for a person, with what they ask and since when.
 *
 * @param {Answer<Listed<Question>>} questions
 * @returns {Task[]}
 */
export function askedIn({ value }) {
  const tasks = (value?.rows ?? []).map(({ task_instance, subject, created_at }) => {
    return { ...task_instance, subject, asked_at: created_at };
  });
  return tasks.filter(asks);
}
