// The section of tasks of this package that wait for a person.

/** @import { Answers, Labels, Section } from "./types.js" */

import { cutOf, problemOf } from "./answers.js";
import { askedIn } from "./tasks.js";

/**
 * @param {Answers} answers
 * @param {Labels} labels
 * @returns {Section<any>} the oldest first
 */
export function approvalsView({ questions }, labels) {
  const tasks = askedIn(questions).filter((task) => task.operator?.startsWith("Workspace")).reverse();
  const rows = tasks.map((task) => {
    const subject = task.subject ?? "";
    return { key: task.id, task, what: named(subject, labels) };
  });
  const cut = cutOf(questions);
  return {
    problem: problemOf("required actions", questions),
    rows,
    notes: cut ? [`The latest ${cut} questions of all Dags were searched.`] : [],
    headline: rows.length ? [`waiting for a person: ${rows.length}`] : [],
    urgent: false,
  };
}

/**
 * Return a question with the names of what it has ids of.
 *
 * @param {string} subject
 * @param {Labels} labels
 */
function named(subject, labels) {
  const ids = Object.keys(labels).filter((id) => subject.includes(id) && !subject.includes(labels[id]));
  return ids.reduce((text, id) => text.replaceAll(id, String(labels[id])), subject);
}
