// Elements of the page. Names and texts are never read as markup.

/** @import { Task } from "../model/types.js" */

import { uiPath } from "../api.js";
import { duration } from "../model/text.js";
import htm from "../vendor/htm-3.1.1.js";
import { h } from "../vendor/preact-11.2.0.js";
import { state } from "./state.js";

const LOCAL = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** @type {(strings: TemplateStringsArray, ...values: any[]) => any} */
export const html = htm.bind(h);

/**
 * @param {string} id
 * @returns {any} the element
 */
export function element(id) {
  return document.getElementById(id);
}

/** @param {any[]} children */
export function small(...children) {
  return html`<small>${children}</small>`;
}

/**
 * @param {string} text
 * @param {string} tone
 */
export function badge(text, tone) {
  return html`<span class="badge ${tone}">${text}</span>`;
}

/**
 * @param {string} href
 * @param {any} text
 */
export function anchor(href, text) {
  return html`<a href=${href} onclick=${follow}>${text}</a>`;
}

/**
 * Return a link to a Dag, a run or a task in the Airflow UI.
 *
 * @param {Parameters<typeof uiPath>[0]} where
 * @param {any} text
 */
export function link(where, text) {
  return anchor(uiPath(where), text);
}

/** @param {Task} task */
export function taskLink(task) {
  return link(task, `${task.dag_id} / ${task.task_id}`);
}

/**
 * Return a link to where a person answers a task.
 *
 * @param {Task} task
 * @param {string} text
 */
export function answerLink(task, text) {
  return anchor(`${uiPath(task)}/required_actions`, text);
}

/**
 * Return a link to the documentation; the text alone if its address is not known.
 *
 * @param {string} page such as errors.html
 * @param {string} text
 */
export function docsLink(page, text) {
  if (!state.docs) return text;
  return anchor(new URL(page, `${state.docs.replace(/\/$/, "")}/`).href, text);
}

/**
 * Let the window follow a link: the frame of a plugin may not navigate it, but a link of the window itself
 * may.
 *
 * @param {any} event
 */
function follow(event) {
  if (window.parent === window || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  const outside = window.parent.document.createElement("a");
  outside.href = event.currentTarget.href;
  outside.click();
}

/**
 * @param {number} at in milliseconds since 1970
 * @param {string} passed what stands before a time that has passed
 */
export function time(at, passed = "") {
  const left = at - Date.now();
  const text = left > 0 ? `in ${duration(left)}` : `${passed}${duration(left)} ago`;
  return html`<time datetime=${new Date(at).toISOString()} title=${LOCAL.format(at)}>${text}</time>`;
}

/**
 * @param {string | null | undefined} text a time of Airflow
 * @param {string} none what stands in place of no time
 */
export function timeOf(text, none = "unknown") {
  return text ? time(Date.parse(text)) : none;
}

/**
 * Return the text of what is to be rendered, without spaces: their places on the page are not in it.
 *
 * @param {any} node
 * @returns {string}
 */
export function textOf(node) {
  if (Array.isArray(node)) return node.map(textOf).join("");
  if (["string", "number"].includes(typeof node)) return String(node).replace(/\s+/g, "").toLowerCase();
  return node?.props ? textOf(node.props.children ?? "") : "";
}
