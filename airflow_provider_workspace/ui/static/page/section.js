// What all sections have in common: their rows, filtered and a part at a time, and how old they are.

/** @import { Answer, Answers, Section } from "../model/types.js" */

import { ASKING } from "../model/answers.js";
import { duration } from "../model/text.js";
import { cannotBeShown } from "../model/view.js";
import { render } from "../vendor/preact-11.2.0.js";
import { answers } from "./asking.js";
import { element, html, textOf } from "./elements.js";
import { draw, state } from "./state.js";

// Milliseconds until an answer is so old that it is red.
const MINUTE = 60000;
// Rows of a section, and how many each "Show more" adds: the page stays responsive, and on a phone, what has failed and
// what is stuck are both near its top.
const SHOWN = matchMedia("(max-width: 720px)").matches ? 3 : 50;
const MORE = 200;
// The answers that each section shows. It waits for the first one only.
/** @type {Record<string, (keyof Answers)[]>} */
export const NEEDS = {
  health: ["health", "sweeps"],
  windows: ["variables", "tasks", "runs", "dags"],
  failed: ["failed"],
  questions: ["questions"],
  grants: ["variables"],
  invites: ["campaigns"],
  waits: ["waits"],
};

/**
 * Show a section; if that fails, say so in its place.
 *
 * @param {string} id
 * @param {Section<any>} section
 * @param {(row: any) => any} contentOf what a row shows
 * @param {() => any} boxOf what stands before the rows
 */
export function showSection(id, section, contentOf, boxOf = () => "") {
  const [need] = NEEDS[id];
  const { reason, value } = answers[need];
  if (!value && reason?.status === ASKING) return;
  const body = element(id).querySelector(".body");
  try {
    render(bodyOf(id, section, contentOf, boxOf), body);
  } catch (error) {
    render(html`<p class="none error">${cannotBeShown(error)}</p>`, body);
  }
  element(id).querySelector(".count").textContent = section.problem ? "" : section.rows.length;
}

/**
 * @param {string} id
 * @param {Section<any>} section
 * @param {(row: any) => any} contentOf
 * @param {() => any} boxOf
 */
function bodyOf(id, { problem, rows, notes }, contentOf, boxOf) {
  if (problem) return html`${agedLine(ageOf(NEEDS[id]))}<p class="none error">${problem.text}</p>`;
  const kept = filtered(rows, contentOf);
  const visible = kept.slice(0, state.shown[id] ?? SHOWN);
  const showMore = () => {
    state.shown[id] = visible.length + MORE;
    draw();
  };
  const more = `Show more: ${visible.length} of ${kept.length}`;
  return html`
    ${boxOf()} ${agedLine(ageOf(NEEDS[id]))}
    ${!kept.length && html`<p class="none">${emptyText(id, rows, notes)}</p>`}
    <ul class="rows" hidden=${!kept.length}>
      ${visible.map((row) => item(row, contentOf(row)))}
    </ul>
    ${visible.length < kept.length && html`
      <button type="button" class="more" onclick=${showMore}>${more}</button>`}
    ${notes.length > 0 && html`<ul class="notes">${notes.map((note) => html`<li>${note}</li>`)}</ul>`}`;
}

/**
 * @param {any} row
 * @param {any} content
 */
function item({ key, urgent }, content) {
  return html`<li key=${key} class=${urgent ? "urgent" : ""}>${content}</li>`;
}

/**
 * Return the rows in which a person sees the text of the filter; the headline's word for a row counts as
 * well.
 *
 * @param {any[]} rows
 * @param {(row: any) => any} contentOf
 */
function filtered(rows, contentOf) {
  const filter = textOf(element("filter").value);
  if (!filter) return rows;
  return rows.filter((row) => textOf([row.kind, contentOf(row)]).includes(filter));
}

/**
 * Where something is cut or cannot be read, an empty list does not say that there is nothing.
 *
 * @param {string} id
 * @param {any[]} rows
 * @param {string[]} notes
 */
function emptyText(id, rows, notes) {
  if (rows.length) return "No row matches the filter.";
  return notes.length ? "None can be listed." : element(id).dataset.empty;
}

/** @typedef {{text: string, bad: boolean} | null} Age */

/**
 * Return how old the oldest answer of some is, if the next one failed or is late, and whether that is bad.
 *
 * @param {(keyof Answers)[]} names
 * @returns {Age}
 */
export function ageOf(names) {
  /** @type {Answer<any>[]} */
  const all = names.map((name) => answers[name]);
  const old = all.filter(({ value, at = 0, reason }) => value && (reason || Date.now() - at > MINUTE));
  const [oldest] = old.sort((a, b) => (a.at ?? 0) - (b.at ?? 0));
  if (!oldest) return null;
  const age = Date.now() - (oldest.at ?? 0);
  return { text: `as of ${duration(age)} ago: ${whyOld(oldest)}`, bad: age > MINUTE };
}

/** @param {Answer<any>} answer */
function whyOld({ reason }) {
  if (!reason) return "asking Airflow";
  return reason.status === 401 ? "the session is over" : `Airflow did not answer: ${reason.message}`;
}

/** @param {Age} age */
export function agedLine(age) {
  return age && html`<p class=${age.bad ? "age error" : "age"}>${age.text}</p>`;
}
