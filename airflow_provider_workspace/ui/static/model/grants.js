// The section of temporary access: grants, and the Dag that ends them.

/** @import { Health } from "./health.js" */
/** @import { Answers, Labels, Section, Variable } from "./types.js" */

import { problemOf } from "./answers.js";
import { levelName, parsed } from "./text.js";
import { GRANTS, variablesOf } from "./variables.js";

// As written by access/grants/notes.py.
const GRANT_TEXTS = [
  "user_email", "dag_id", "run_id", "task_id", "service", "workspace_conn_id", "organization_id", "reason",
];
const TRIED = "The last run tried, and failed: its log says why.";

/**
 * @param {Answers} answers
 * @param {Labels} labels
 * @param {Health} health
 * @param {number} now
 * @returns {Section<any> & {late: number}}
 */
export function grantsView({ variables }, labels, health, now) {
  const rows = variablesOf(variables, GRANTS).map((variable) => grantRow(variable, labels, health, now));
  rows.sort((a, b) => a.until - b.until);
  const unreadable = rows.filter(({ note }) => note).length;
  const late = rows.filter(({ urgent, note }) => urgent && !note).length;
  const headline = [];
  if (late) headline.push(`grants that should have ended: ${late}`);
  if (unreadable) headline.push(`unreadable grants: ${unreadable}`);
  const problem = problemOf("Variables", variables);
  return { problem, rows, notes: [], headline, urgent: late + unreadable > 0, late };
}

/**
 * @param {Variable} variable
 * @param {Labels} labels
 * @param {Health} health
 * @param {number} now
 */
function grantRow({ key, value }, labels, health, now) {
  const grant = parsed(value);
  const since = Date.parse(grant?.since);
  const until = Date.parse(grant?.until);
  const wrong = wrongIn(grant, since, until);
  if (wrong.length) {
    const what = `${grant ? wrong.join(", ") : "its JSON"} is unusable`;
    const cause = `The grant in Variable ${key} cannot be read, so nothing ends its access: ${what}.`;
    const note = `${cause} Correct the Variable, or take the access away by hand and delete it.`;
    return { key, note, until: 0, urgent: true };
  }
  const people = [];
  if (grant.requested_by) people.push(`asked for by ${grant.requested_by}`);
  if (grant.approved_by) people.push(`approved by ${grant.approved_by}`);
  const isLate = until <= now;
  return {
    ...grant,
    key,
    since,
    until,
    people,
    note: "",
    urgent: isLate,
    access: `${levelName(grant.level)}, then ${levelName(grant.then)}`,
    organization: labels[grant.organization_id] ?? grant.organization_id,
    end: isLate ? endOf(health, until) : null,
  };
}

/**
 * Return the Dag that ends a grant, and what stands in its way.
 *
 * @param {Health} health
 * @param {number} until when it should have ended
 * @returns {{dag: string, text: string}} the Dag is empty if none is known
 */
function endOf({ grantsDag, grantsTriedAt, sweepDag, obstacle }, until) {
  const tried = grantsTriedAt > until ? TRIED : "";
  if (grantsDag) return { dag: grantsDag, text: obstacle || tried };
  return { dag: "", text: `No Dag ends it. ${obstacle || `Let the Dag ${sweepDag} sweep grants, too.`}` };
}

/**
 * @param {any} grant
 * @param {number} since
 * @param {number} until
 */
function wrongIn(grant, since, until) {
  const wrong = GRANT_TEXTS.filter((name) => typeof grant?.[name] !== "string" || !grant[name]);
  if (Number.isNaN(since)) wrong.push("since");
  if (Number.isNaN(until)) wrong.push("until");
  if (!Number.isInteger(grant?.level)) wrong.push("level");
  return wrong;
}
