// The rows of maintenance windows.

/** @import { Section, Task } from "../model/types.js" */
/** @import { Health } from "../model/health.js" */

import { shorten } from "../model/text.js";
import { answerLink, badge, docsLink, html, link, small, time, timeOf } from "./elements.js";
import { state } from "./state.js";
import { sweepBox } from "./sweep.js";

const GUIDE = "still-paused.html";
// Characters of what the sweep said.
const MAX_VERDICT = 300;

/**
 * Return what can be done about windows: the sweep, and where to read on.
 *
 * @param {Section<any>} section
 * @param {Health} health
 */
export function windowsBox({ rows, urgent }, health) {
  if (!rows.length && !urgent) return "";
  const guide = state.docs && docsLink(GUIDE, "An export is still paused");
  return sweepBox(urgent ? "Resume them now" : "Run the sweep now", urgent, health, guide);
}

/** @param {any} row */
export function windowRow(row) {
  const { dag_id, run_id: dag_run_id, map_index, owners, work, verdict, cause } = row;
  const index = map_index >= 0 && ` [${map_index}]`;
  const lastSaid = verdict && !cause?.said.includes(verdict) && shorten(verdict, MAX_VERDICT);
  return html`
    ${cause && html`<p class="cause">${cause.task && link(cause.task, cause.task.task_id)} ${cause.said}</p>`}
    <div class="line">
      ${work && badge(work[0], work[1])}
      <b>${link({ dag_id }, dag_id)} / ${link({ dag_id, dag_run_id }, dag_run_id)}${index}</b>
      ${owners.length > 0 && html`<span>ask ${owners.join(", ")}</span>`}
      ${" "}${small("organization ", row.organization)}
      <small class="end">since ${time(row.since)}, until at the latest: ${time(row.until, "passed ")}</small>
    </div>
    <ul class="exports">${row.exports.map(exportRow)}</ul>
    ${lastSaid && small("The last sweep said: ", lastSaid)} ${row.asking.map(question)}
    ${small(row.lines.join(" · "), row.close && closingLink(row.close))}
    ${row.failed.map(failure)}`;
}

/** @param {Task} task that has ended */
function closingLink(task) {
  return [" (", link(task, "clear it to resume the exports"), ")"];
}

/** @param {any} lease */
function exportRow({ batch_export_id, name, shown: [text, tone], leave_paused, refused, seen }) {
  return html`
    <li>
      <span>${badge(text, tone)}</span>
      <span>
        ${name && html`<b>${name}</b>`} <code>${batch_export_id}</code>
        ${seen && small("seen in the service: ", shorten(seen))}
        ${leave_paused === true && small("stays paused after the window, as its author wants")}
        ${refused && small(shorten(refused))}
      </span>
    </li>`;
}

/** @param {Task} task */
function question(task) {
  const answer = answerLink(task, `Answer ${task.task_id}`);
  return html`<p>${answer}: it waits for a person, asked ${timeOf(task.asked_at)}.</p>`;
}

/** @param {Task & {said: string}} task */
function failure(task) {
  return html`<small class="bad">${link(task, task.task_id)} ${task.said}</small>`;
}
