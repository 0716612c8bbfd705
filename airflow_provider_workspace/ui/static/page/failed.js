// The rows of tasks that failed.

import { counted } from "../model/text.js";
import { badge, docsLink, html, link, small, taskLink, timeOf } from "./elements.js";
import { state } from "./state.js";

/** @param {any} row */
export function failedRow({ task, kind, cure, cause, problem, who, organization, times }) {
  const { dag_id, dag_run_id, end_date } = task;
  const howOften = times > 1 && small(counted(times, "time"));
  const about = problem && state.docs && [" · ", docsLink(`errors.html#${problem}`, `About ${problem}`)];
  return html`
    <p class="cause">${cause || "Its log tells why."}</p>
    <div class="line">
      ${badge(kind, "bad")} <b>${taskLink(task)}</b> ${link({ dag_id, dag_run_id }, dag_run_id)}
      ${who && html`<span>for ${who}</span>`} ${small(organization)} ${howOften}
      <small class="end">failed ${timeOf(end_date)}</small>
    </div>
    ${small(cure, " ", link(task, "Open its log"), about)}`;
}
