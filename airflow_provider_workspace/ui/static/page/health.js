// The line about Airflow and the sweep.

/** @import { Part, SweepPart } from "../model/health.js" */

import { shorten } from "../model/text.js";
import { html, link, taskLink } from "./elements.js";

// Characters of the reason of a failed sweep.
const MAX_REASON = 300;

/** @param {Part | SweepPart} part */
export function healthPart(part) {
  const { text, bad } = part;
  const { last = undefined, failure = "", unpause = "" } = "failure" in part ? part : {};
  const said = failure || (last?.state ?? "not begun");
  return html`
    <span class=${bad ? "error" : ""}>${text}</span>
    ${unpause && html`<small class=${bad ? "bad" : ""}>${pausedLink(unpause)}</small>`}
    ${last && html`
      <small class=${failure ? "bad" : ""}>${taskLink(last)} ${shorten(said, MAX_REASON)}</small>`}`;
}

/** @param {string} dagId */
function pausedLink(dagId) {
  return link({ dag_id: dagId }, `${dagId} is paused: unpause it`);
}
