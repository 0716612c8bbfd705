// The section of invite campaigns: what invites people, how far it is, and when it goes on.

/** @import { Answers, Campaign, Labels, Section } from "./types.js" */

import { problemOf } from "./answers.js";
import { asks, goesOn } from "./tasks.js";

// How much later than announced a campaign may go on, in milliseconds.
const GRACE = 120000;
// Why a campaign does not run.
/** @type {Record<string, string>} */
const HELD_UP = { queued: "Waits for a worker.", scheduled: "Waits for a slot of its pool." };
// Tones of the counts of a campaign; of others it is plain.
/** @type {Record<string, string>} */
const TONES = {
  invited: "good",
  planned: "good",
  invalid: "bad",
  failed: "bad",
  unknown: "bad",
  not_sent: "warn",
  left: "rest",
};

/**
 * @param {Answers} answers
 * @param {Labels} labels
 * @param {string[]} causes what of Airflow is down
 * @param {number} now
 * @returns {Section<any>}
 */
export function campaignsView({ campaigns }, labels, causes, now) {
  const { rows = [], cut = false } = campaigns.value ?? {};
  const running = rows.filter(({ task }) => goesOn(task)).length;
  return {
    problem: problemOf("task instances", campaigns),
    rows: rows.map((campaign) => campaignRow(campaign, labels, causes, now)),
    notes: cut ? ["Older ones are not listed."] : [],
    headline: running ? [`campaigns running: ${running}`] : [],
    urgent: false,
  };
}

/**
 * @param {Campaign} campaign
 * @param {Labels} labels
 * @param {string[]} causes
 * @param {number} now
 */
function campaignRow({ task, progress }, labels, causes, now) {
  const isDeferred = task.state === "deferred" && !asks(task);
  const organizationId = progress?.organization_id;
  return {
    key: task.id,
    task,
    progress,
    asks: asks(task),
    waits: HELD_UP[task.state ?? ""] ?? "",
    organization: labels[organizationId] ?? organizationId,
    again: isDeferred ? goesOnAt(Date.parse(progress?.again_at), causes, now) : null,
    people: progress ? peopleOf(progress) : null,
  };
}

/**
 * Return when a waiting campaign goes on, or should have, and what may hinder it.
 *
 * @param {number} at
 * @param {string[]} causes
 * @param {number} now
 */
function goesOnAt(at, causes, now) {
  if (!at) return null;
  if (now - at >= GRACE) {
    const hindrances = causes.map((cause) => `(${cause})`);
    return { text: ["Should have gone on", ...hindrances].join(" "), at, late: true };
  }
  return at > now ? { text: "Goes on", at, late: false } : { text: "Goes on now", late: false };
}

/**
 * Return the rows that need a person, of which a task names the first ones only; null if there are none.
 *
 * @param {Record<string, any>} progress
 */
function peopleOf({ needs_person: rows = [], needs_person_rows: total = rows.length }) {
  if (!rows.length) return null;
  const number = total > rows.length ? `${rows.length} of ${total}` : `${rows.length}`;
  return { title: `Rows to look at: ${number}`, rows, isCut: total > rows.length };
}

/**
 * Return the counts of a campaign in the order of its bar: name, tone, number.
 *
 * @param {Record<string, any>} progress
 * @returns {[string, string, number][]}
 */
export function campaignParts({ counts = {}, left = 0 }) {
  const positive = Object.entries({ ...counts, left }).filter(([, number]) => number > 0);
  return positive.map(([name, number]) => [name.replaceAll("_", " "), TONES[name] ?? "plain", number]);
}
