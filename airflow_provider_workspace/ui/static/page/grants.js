// The rows of temporary access.

/** @import { Health } from "../model/health.js" */

import { html, link, small, time } from "./elements.js";
import { sweepBox } from "./sweep.js";

/**
 * Return what can be done about grants that should have ended: the sweep, whose log says what it could not
 * end.
 *
 * @param {any} section
 * @param {Health} health
 */
export function grantsBox({ late }, health) {
  return late > 0 && sweepBox("End them now", true, health);
}

/** @param {any} row */
export function grantRow({ note, user_email, access, since, until, urgent, organization, ...grant }) {
  if (note) return html`<p class="error">${note}</p>`;
  const { dag_id, run_id: dag_run_id, task_id, map_index, end } = grant;
  const task = link({ dag_id, dag_run_id, task_id, map_index }, `${dag_id} / ${task_id}`);
  return html`
    <div class="line">
      <b>${user_email}</b> ${access} ${small("organization ", organization)}
      <small class="end ${urgent && "bad"}">${urgent ? "should have ended" : "ends"} ${time(until)}</small>
    </div>
    ${small([grant.reason, ...grant.people].join(" · "))}
    ${small("since ", time(since), ", by ", task)}
    ${end && html`<small class="bad">${endText(end)}</small>`}`;
}

/** @param {{dag: string, text: string}} end */
function endText({ dag, text }) {
  return dag ? ["The next run of ", link({ dag_id: dag }, dag), " is to end it. ", text] : text;
}
