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
    return { key: task.id, task, what: subject, organization: organizationIn(subject, labels) };
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
 * Return the name of the organization whose id is in a question.
 *
 * @param {string} subject
 * @param {Labels} labels
 */
function organizationIn(subject, labels) {
  const id = Object.keys(labels).find((known) => subject.includes(known));
  return id === undefined ? "" : labels[id];
}
