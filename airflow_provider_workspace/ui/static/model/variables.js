// The Variables of this package: leases, grants, the record of the last sweep, and names that people have
// written.

/** @import { Answer, Labels, Variable } from "./types.js" */

import { isMapping, mappingOf, parsed } from "./text.js";

export const VARIABLES = "workspace_";
export const LEASES = "workspace_lease.";
export const GRANTS = "workspace_grant.";
const SWEEP = "workspace_window_sweep";
// Names of exports and organizations by id, as a JSON object; written by people.
const LABELS = "workspace_labels";
// What runs a command on every release of Airflow.
export const COMMAND = "python -m airflow_provider_workspace";
// As written by notes/leases.py.
const LEASE_TEXTS = [
  "dag_id", "run_id", "close_task_id", "service", "workspace_conn_id", "organization_id", "batch_export_id",
  "state",
];

/**
 * @typedef {object} Lease
 * @property {string} key of its Variable
 * @property {string} dag_id
 * @property {string} run_id
 * @property {string} close_task_id
 * @property {number} map_index
 * @property {string} organization_id
 * @property {string} batch_export_id
 * @property {string} state
 * @property {number} since
 * @property {number} until
 * @property {string} [owner]
 * @property {string} [paused_at]
 * @property {string} [resumed_at]
 * @property {string} [late_pause_until]
 * @property {string} [refused]
 * @property {string[]} [work_task_ids]
 */

/** @typedef {{state?: string, why?: string, text?: string, since?: string}} Verdict of a sweep on a window */

/**
 * @param {Answer<Variable[]>} variables
 * @param {string} prefix
 */
export function variablesOf({ value }, prefix) {
  return (value ?? []).filter(({ key }) => key.startsWith(prefix));
}

/**
 * @param {Answer<Variable[]>} variables
 * @param {string} key
 */
function valueOf({ value }, key) {
  return (value ?? []).find((variable) => variable.key === key)?.value;
}

/**
 * Return names by id, and what is wrong with the Variable that has them.
 *
 * @param {Answer<Variable[]>} variables
 * @returns {{labels: Labels, notes: string[]}}
 */
export function readLabels(variables) {
  const text = valueOf(variables, LABELS);
  const value = parsed(text);
  if (isMapping(value)) return { labels: value, notes: [] };
  const note = `Names of organizations and exports are missing: the Variable ${LABELS} is no JSON object. Correct it.`;
  return { labels: {}, notes: text === undefined ? [] : [note] };
}

/**
 * Return when the last sweep was, and what it said of each window. Times are NaN if they are not known.
 *
 * @param {Answer<Variable[]>} variables
 * @returns {{at: number, verdicts: Record<string, Verdict>}}
 */
export function readSweep(variables) {
  const record = mappingOf(parsed(valueOf(variables, SWEEP)));
  const verdicts = Object.entries(mappingOf(record.windows)).filter(([, verdict]) => isMapping(verdict));
  return { at: Date.parse(record.at), verdicts: Object.fromEntries(verdicts) };
}

/**
 * Return the windows with their leases, and by window what to do about the Variables that are no leases.
 *
 * @param {Answer<Variable[]>} variables
 * @returns {{windows: Map<string, Lease[]>, unreadable: {id: string, text: string}[]}}
 */
export function readWindows(variables) {
  const windows = new Map();
  const unreadable = [];
  for (const variable of variablesOf(variables, LEASES)) {
    // The window as the Variable of the sweep names it.
    const [id, exportId] = variable.key.slice(LEASES.length).split(".");
    const { lease, what } = readLease(variable);
    if (lease) {
      windows.set(id, [...(windows.get(id) ?? []), lease]);
      continue;
    }
    unreadable.push({ id, text: unreadableLease(variable.key, exportId, what) });
  }
  return { windows, unreadable };
}

/**
 * Return what LeaseRegistry.describe_unreadable says.
 *
 * @param {string} key
 * @param {string | undefined} exportId of the batch export, if the key names it
 * @param {string} what is wrong with the lease
 */
function unreadableLease(key, exportId, what) {
  const lease = exportId ? `The lease of batch export ${exportId}` : "A lease whose Variable names no export";
  const first = exportId ? `run ${COMMAND} resume ${exportId}` : "look in the workspace whether an export is paused";
  const unless = "If no closing task of its window is left to repair it";
  return `${lease} cannot be read: ${what}. ${unless}, ${first} first, then delete the Variable ${key}.`;
}

/**
 * @param {Variable} variable
 * @returns {{lease: Lease | null, what: string}} the lease, or what is wrong with it
 */
function readLease({ key, value }) {
  const fields = parsed(value);
  const since = Date.parse(fields?.since);
  const until = Date.parse(fields?.until);
  const lease = { map_index: -1, ...fields, key, since, until };
  const wrong = LEASE_TEXTS.filter((name) => typeof lease[name] !== "string" || !lease[name]);
  if (Number.isNaN(since)) wrong.push("since");
  if (Number.isNaN(until)) wrong.push("until");
  if (wrong.length) return { lease: null, what: `${fields ? wrong.join(", ") : "its JSON"} is unusable` };
  if (!isResumed(lease)) delete lease.resumed_at;
  return { lease, what: "" };
}

/**
 * Return whether the resume counts, as windows/leases.py reads it: not without a closer, nor before a later
 * pause.
 *
 * @param {Record<string, any>} lease
 */
function isResumed({ state, closer, paused_at: pausedAt = 0, resumed_at: resumedAt }) {
  if (state !== "closing" || !closer) return false;
  return !(Date.parse(resumedAt) < Date.parse(pausedAt));
}
