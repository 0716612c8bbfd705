// Runs the sweep from the page, and follows its run.

/** @import { Health } from "../model/health.js" */

import * as api from "../api.js";
import { COMMAND } from "../model/variables.js";
import { askAll, askReason } from "./asking.js";
import { html, link, timeOf } from "./elements.js";
import { draw, say, state } from "./state.js";

// Milliseconds between two polls of the run.
const FOLLOW = 3000;
const GOES_ON = ["queued", "running"];

/**
 * Return a button that starts the sweep, or what stands in the way of that.
 *
 * @param {string} label
 * @param {boolean} urgent
 * @param {Health} health
 * @param {any} more
 */
export function sweepBox(label, urgent, health, more = "") {
  return html`<div class="help ${urgent ? "alarm" : ""}">${sweepControl(label, health)} ${more}</div>`;
}

/**
 * @param {string} label
 * @param {Health} health
 */
function sweepControl(label, { obstacle, unpause, sweepDag, sweeping }) {
  if (obstacle) {
    return html`
      <span>${unpause ? link({ dag_id: unpause }, obstacle) : obstacle} Where Airflow is installed, run${" "}
      <code>${COMMAND} sweep</code>.</span>`;
  }
  if (state.sweeping || sweeping) return html`<button type="button" disabled>A sweep runs</button>`;
  // A button that asks before it acts; the sandboxed frame cannot open dialogs.
  return html`
    <details class="action" onkeydown=${closeOnEscape}>
      <summary role="button">${label}</summary>
      Run the Dag ${sweepDag}, which resumes what abandoned windows left paused, and ends access that is
      over?${" "}
      <button type="button" onclick=${() => runSweep(sweepDag)}>Yes</button>
    </details>`;
}

/** @param {any} event */
function closeOnEscape({ key, currentTarget: details }) {
  if (key !== "Escape") return;
  details.open = false;
  details.querySelector("summary").focus();
}

/**
 * Start the sweep, unless one goes on, and follow its run to the end.
 *
 * @param {string} dagId
 */
async function runSweep(dagId) {
  if (state.sweeping) return;
  state.sweeping = true;
  say(() => `Starting ${dagId} …`);
  try {
    await followRun(dagId);
  } catch (error) {
    const { status, message } = /** @type {api.ApiError} */ (error);
    const forbidden = "Your role may not do this in this Airflow. Nothing was done.";
    say(() => (status === 403 ? forbidden : `That did not work: ${message}`), true);
  }
  state.sweeping = false;
  draw();
}

/** @param {string} dagId */
async function followRun(dagId) {
  const about = link({ dag_id: dagId }, dagId);
  const [other] = await api.runsOf([dagId], 1, GOES_ON);
  let run = other ?? (await api.call("POST", api.path("dags", dagId, "dagRuns"), { logical_date: null }));
  const { dag_run_id, queued_at } = run;
  while (GOES_ON.includes(run.state)) {
    const how = `${other ? "Already" : "Started, now"} ${run.state}`;
    say(() => [about, `: ${how}, asked for `, timeOf(queued_at), "."]);
    await new Promise((done) => setTimeout(done, FOLLOW));
    run = await readRun(dagId, dag_run_id, run);
  }
  await askAll();
  if (run.state === "success") return say((view) => [about, ` has run. Now: ${leftIn(view)}.`]);
  const [task] = await api.tasksOf({ dag_ids: [dagId], dag_run_ids: [dag_run_id], state: ["failed"] }, 1);
  const why = task ? await askReason(task) : "Airflow began none of its tasks";
  say((view) => [about, ` failed: ${why} Now: ${leftIn(view)}.`], true);
}

/**
 * Return a run as it is now; as it was if Airflow does not answer.
 *
 * @param {string} dagId
 * @param {string} runId
 * @param {any} run
 */
async function readRun(dagId, runId, run) {
  try {
    return await api.call("GET", api.path("dags", dagId, "dagRuns", runId));
  } catch (error) {
    const { status, message } = /** @type {api.ApiError} */ (error);
    if (status === 403 || status === 404) throw new Error(`its run cannot be followed: ${message}`);
    return run;
  }
}

/** @param {{windows: {headline: string[]}}} view */
function leftIn({ windows }) {
  return windows.headline.join(" · ") || "no window holds an export";
}
