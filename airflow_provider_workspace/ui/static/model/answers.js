// Answers of Airflow, and what the page says where there is none.
//
// What is not in a list may be hidden from the role of the person, so absence is "not known".

/** @import { Answer, Listed, Problem } from "./types.js" */

// The status of a reason before the first answer.
export const ASKING = "asking";
export const NO_ANSWER = "Airflow did not answer";
export const CANNOT_BE_SHOWN = "Cannot be shown";
export const HIDDEN = "not visible to your role, or deleted";
const STILL_ASKING = "Asking Airflow …";
const FORBIDDEN = "Not visible to your role";

/**
 * Return why there is no answer; null if there is one.
 *
 * @param {string} what the role may not read, if it is forbidden
 * @param {Answer<any>} answer
 * @returns {Problem | null}
 */
export function problemOf(what, { reason, value }) {
  if (!reason || value) return null;
  if (reason.status === ASKING) return { brief: STILL_ASKING, text: STILL_ASKING };
  // The session is over, which the headline says once.
  if (reason.status === 401) return { brief: "", text: "" };
  if (reason.status === 403) {
    const text = `${FORBIDDEN}: it may not read ${what}. An Airflow administrator can grant it.`;
    return { brief: FORBIDDEN, text };
  }
  return { brief: NO_ANSWER, text: `${NO_ANSWER}: ${reason.message}. Trying again.` };
}

/**
 * Return what stands in place of something that is not known.
 *
 * @param {Problem} problem
 * @param {string} what is not known
 */
export function mention({ brief }, what) {
  return brief ? `${brief}: ${what}` : "";
}

/** @param {Problem | null} problem */
export function isStillAsked(problem) {
  return problem?.brief === STILL_ASKING;
}

/**
 * Return how much of a list was read, if not all of it.
 *
 * @param {Answer<Listed<any>>} answer
 */
export function cutOf({ value }) {
  if (!value) return "";
  const { rows, total } = value;
  return total > rows.length ? `${rows.length} of ${total}` : "";
}
