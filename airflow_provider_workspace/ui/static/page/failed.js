// The rows of tasks that failed.

import { counted } from "../model/text.js";
import { badge, docsLink, html, link, small, taskLink, timeOf } from "./elements.js";
import { state } from "./state.js";

/** @param {any} row */
export function failedRow({ others, ...failure }) {
  const { task, kind, cause, problem } = failure;
  const about = problem && state.docs && [" · ", docsLink(`errors.html#${problem}`, `About ${problem}`)];
  return html`
    <p class="cause">${cause || "Its log tells why."}</p>
    <div class="line">${badge(kind, "bad")} ${failedTask(failure)}</div>
    ${small(link(task, "Open its log"), about)} ${others.length > 0 && otherTasks(others)}`;
}

/** @param {any} failure */
function failedTask({ task, who, organization, times }) {
  const { dag_id, dag_run_id, end_date } = task;
  return html`
    <b>${taskLink(task)}</b> ${link({ dag_id, dag_run_id }, dag_run_id)}
    ${who && html`<span>for ${who}</span>`} ${small(organization)} ${times > 1 && small(counted(times, "time"))}
    <small class="end">failed ${timeOf(end_date)}</small>`;
}

/** @param {any[]} others that failed with it, or for the same cause */
function otherTasks(others) {
  const items = others.map((failure) => {
    const own = failure.cause && small(failure.cause);
    return html`<li><div class="line">${failedTask(failure)}</div>${own}</li>`;
  });
  const title = `Failed with it: ${counted(others.length, "task")}`;
  return html`<details><summary>${title}</summary><ul>${items}</ul></details>`;
}
