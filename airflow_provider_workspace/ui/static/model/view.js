// What the page shows, as a pure function of what Airflow answered and the time. Each section stands alone.

/** @import { Answers, Section } from "./types.js" */

import { CANNOT_BE_SHOWN, NO_ANSWER } from "./answers.js";
import { approvalsView } from "./approvals.js";
import { campaignsView } from "./campaigns.js";
import { failedView } from "./failed.js";
import { grantsView } from "./grants.js";
import { NO_HEALTH, healthView } from "./health.js";
import { groupBy } from "./text.js";
import { readLabels } from "./variables.js";
import { waitsView } from "./waits.js";
import { windowsView } from "./windows.js";

// What the headline calls the content of the sections.
/** @type {Record<string, string>} */
const CONTENT = {
  windows: "paused exports",
  failed: "failed tasks",
  questions: "approvals",
  grants: "temporary access",
  invites: "campaigns",
  waits: "waits",
};
// Sections whose headline says that something is wrong, or will be.
const FIRST = ["windows", "failed", "grants"];

/**
 * @param {Answers} answers
 * @param {number} now in milliseconds since 1970
 */
export function view(answers, now) {
  const { labels, notes } = readLabels(answers.variables);
  const health = healthAlone(answers, now);
  const sections = {
    windows: alone(() => windowsView(answers, labels, health.causes, now)),
    failed: alone(() => failedView(answers, labels)),
    questions: alone(() => approvalsView(answers, labels)),
    grants: alone(() => grantsView(answers, labels, health, now)),
    invites: alone(() => campaignsView(answers, labels, health.causes, now)),
    waits: alone(() => waitsView(answers, labels)),
  };
  sections.windows.notes.push(...notes);
  return { summary: summaryOf(answers, sections), health, ...sections };
}

/**
 * Build a section; if that fails, return one that says so.
 *
 * @param {() => Section<any>} build
 * @returns {Section<any>}
 */
function alone(build) {
  try {
    return build();
  } catch (error) {
    const problem = { brief: CANNOT_BE_SHOWN, text: cannotBeShown(error) };
    return { problem, rows: [], notes: [], headline: [], urgent: false };
  }
}

/**
 * @param {Answers} answers
 * @param {number} now
 */
function healthAlone(answers, now) {
  try {
    return healthView(answers, now);
  } catch (error) {
    const text = `${CANNOT_BE_SHOWN}: the health of Airflow (${error})`;
    return { ...NO_HEALTH, parts: [{ text, bad: true }] };
  }
}

/** @param {unknown} error */
export function cannotBeShown(error) {
  return `This section cannot be shown: ${error}. The other sections do not depend on it.`;
}

/**
 * Return the first line of the page, each part of which may lead to a section.
 *
 * @param {Answers} answers
 * @param {Record<string, Section<any>>} sections
 */
function summaryOf(answers, sections) {
  // The session is over for all of them at once.
  const login = Object.values(answers).some((answer) => answer.reason?.status === 401);
  const names = Object.keys(sections);
  const problems = names.filter((name) => sections[name].problem?.brief);
  const parts = [
    ...FIRST.flatMap((name) => headlineOf(name, sections[name])),
    ...problemParts(problems, sections),
  ];
  if (login) parts.unshift({ text: "Log in again: the session is over", section: "", bad: true });
  if (!parts.length) parts.push({ text: "No window holds an export, as far as your role sees", section: "", bad: false });
  const others = names.filter((name) => !FIRST.includes(name));
  parts.push(...others.flatMap((name) => headlineOf(name, sections[name])));
  const isUnknown = problems.some((name) => isAlarm(sections[name].problem?.brief ?? ""));
  const isUrgent = Object.values(sections).some((section) => section.urgent);
  const text = parts.map((part) => part.text).join(" · ");
  return { parts, text, bad: login || isUrgent || isUnknown, login };
}

/**
 * @param {string} name
 * @param {Section<any>} section
 */
function headlineOf(name, { headline, urgent }) {
  return headline.map((text) => ({ text, section: name, bad: urgent }));
}

/**
 * Return what is not known, those with the same reason in one part.
 *
 * @param {string[]} names of sections with a problem
 * @param {Record<string, Section<any>>} sections
 */
function problemParts(names, sections) {
  const byReason = groupBy(names, (name) => sections[name].problem?.brief ?? "");
  return [...byReason].map(([brief, alike]) => {
    const content = alike.map((name) => CONTENT[name]).join(", ");
    return { text: `${brief}: ${content}`, section: alike[0], bad: isAlarm(brief) };
  });
}

/** @param {string} brief */
function isAlarm(brief) {
  return brief === NO_ANSWER || brief === CANNOT_BE_SHOWN;
}
