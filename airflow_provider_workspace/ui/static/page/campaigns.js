// The rows of invite campaigns.

import { campaignParts } from "../model/campaigns.js";
import { answerLink, badge, html, small, taskLink, time, timeOf } from "./elements.js";

/** @type {Record<string, string>} */
const TONES = { success: "good", failed: "bad", running: "warn", deferred: "warn" };

/** @param {any} row */
export function campaignRow({ task, organization, progress, waits, again, asks, people }) {
  const isWaiting = Boolean(again || asks);
  const state = task.state ?? "not begun";
  return html`
    <div class="line">
      ${badge(isWaiting ? "waits" : state, TONES[state] ?? "plain")} ${taskLink(task)}
      ${progress && small("organization ", organization)}
      <small class="end">${timeOf(task.start_date, "not begun")}</small>
    </div>
    ${progress ? progressBar(progress) : small("It has not said how far it is, or your role may not see it.")}
    ${task.reason && html`<p class="error">Failed: ${task.reason}</p>`} ${waits && html`<p>${waits}</p>`}
    ${asks && html`<p>${answerLink(task, "Answer it")}: it waits for a person.</p>`}
    ${again && continuation(again, progress?.why)} ${people && peopleList(people)}`;
}

/** @param {Record<string, any>} progress */
function progressBar(progress) {
  const { rows = 0 } = progress;
  if (!rows) return small("It invites nobody.");
  const parts = campaignParts(progress);
  const bars = parts.map(([, tone, number]) => {
    return html`<span class=${tone} style=${{ flexGrow: number / Math.max(rows, 1) }}></span>`;
  });
  const counts = parts.map(([name, tone, number], index) => {
    return html`${index ? ", " : ""}<span class=${tone}>${number} ${name}</span>`;
  });
  return html`<div class="bar">${bars}</div><p class="counts">${rows} rows: ${counts}</p>`;
}

/**
 * @param {{text: string, at?: number, late: boolean}} again
 * @param {string} [why]
 */
function continuation({ text, at, late }, why) {
  return html`<p class=${late ? "error" : ""}>${text} ${at && time(at)}${why && `: ${why}`}.</p>`;
}

/** @param {{title: string, rows: any[]}} people */
function peopleList({ title, rows }) {
  const items = rows.map(({ row, email, status, reason }) => {
    return html`<li>${row && html`<b>row ${row}</b>`} ${email || "no address"}: ${status}. ${reason}</li>`;
  });
  return html`<details><summary>${title}</summary><ul>${items}</ul></details>`;
}
