// The rows of tasks that wait: for a person, or as sensors.

import { answerLink, badge, html, small, taskLink, timeOf } from "./elements.js";

/** @param {any} row */
export function approvalRow({ what, task }) {
  return html`
    <div class="line">
      <b>${answerLink(task, what)}</b> ${taskLink(task)}
      <small class="end">asked ${timeOf(task.asked_at)}</small>
    </div>`;
}

/** @param {any} row */
export function waitRow({ what, which, organization, task }) {
  return html`
    <div class="line">
      ${badge(task.state, "plain")} <b>${what}</b> ${which} ${taskLink(task)} ${small(organization)}
      <small class="end">${timeOf(task.start_date, "not begun")}</small>
    </div>`;
}
