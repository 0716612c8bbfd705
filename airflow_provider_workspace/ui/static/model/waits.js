// The section of sensors that wait.

/** @import { Answers, Labels, Section, Task } from "./types.js" */

import { cutOf, problemOf } from "./answers.js";
import { shorten } from "./text.js";

// Arguments that say what a sensor waits for.
const WHICH = ["domain_id", "emails", "project_id", "product"];

/**
 * @param {Answers} answers
 * @param {Labels} labels
 * @returns {Section<any>} by organization
 */
export function waitsView({ waits }, labels) {
  const rows = (waits.value?.rows ?? []).map((task) => waitRow(task, labels));
  // Airflow lists the latest first.
  rows.reverse().sort((a, b) => a.organization.localeCompare(b.organization));
  const cut = cutOf(waits);
  return {
    problem: problemOf("task instances", waits),
    rows,
    notes: cut ? [`The first ${cut}.`] : [],
    headline: rows.length ? [`tasks waiting: ${rows.length}`] : [],
    urgent: false,
  };
}

/**
 * @param {Task} task
 * @param {Labels} labels
 */
function waitRow(task, labels) {
  const fields = task.rendered_fields ?? {};
  const given = WHICH.filter((name) => fields[name]);
  return {
    key: task.id,
    task,
    what: nameOf(task.operator ?? ""),
    which: given.map((name) => shorten(fields[name])).join(", "),
    organization: organizationOf(fields, labels),
  };
}

/**
 * @param {Record<string, any>} fields rendered arguments of a task
 * @param {Labels} labels
 */
export function organizationOf({ organization_id: id, workspace_conn_id: connection = "?" }, labels) {
  if (!id || id === "None") return `organization of connection ${connection}`;
  return String(labels[id] ?? id);
}

/** @param {string} operator such as WorkspaceDomainVerifiedSensor */
function nameOf(operator) {
  return operator.replace(/^Workspace|Sensor$/g, "").replace(/\B(?=[A-Z])/g, " ");
}
