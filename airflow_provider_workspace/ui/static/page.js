// The page: polls Airflow while it is visible, and renders the result.

/** @import { Answer, Answers } from "./model/types.js" */

import { documentation, loginPath } from "./api.js";
import { ASKING } from "./model/answers.js";
import { view } from "./model/view.js";
import { answers, askAll, askReasons, recallReasons } from "./page/asking.js";
import { campaignRow } from "./page/campaigns.js";
import { anchor, docsLink, element, html } from "./page/elements.js";
import { failedRow } from "./page/failed.js";
import { grantRow, grantsBox } from "./page/grants.js";
import { healthPart } from "./page/health.js";
import { NEEDS, ageOf, agedLine, showSection } from "./page/section.js";
import { draw, drawSoon, drawWith, state } from "./page/state.js";
import { approvalRow, waitRow } from "./page/waiting.js";
import { windowRow, windowsBox } from "./page/windows.js";
import { render } from "./vendor/preact-11.2.0.js";

// Milliseconds from one poll to the next.
const POLL = 15000;

function drawPage() {
  attempt(recallReasons);
  const shown = view(answers, Date.now());
  const { health, windows, grants } = shown;
  showSection("windows", windows, windowRow, () => windowsBox(windows, health));
  showSection("failed", shown.failed, failedRow);
  showSection("questions", shown.questions, approvalRow);
  showSection("grants", grants, grantRow, () => grantsBox(grants, health));
  showSection("invites", shown.invites, campaignRow);
  showSection("waits", shown.waits, waitRow);
  attempt(() => showSummary(shown.summary));
  attempt(() => render([...health.parts.map(healthPart), agedLine(ageOf(NEEDS.health))], element("health")));
  attempt(showUpdated);
  attempt(() => showSaid(shown));
  attempt(showDocs);
}

/**
 * Do one thing; if that fails, the others are done all the same.
 *
 * @param {() => void} step
 */
function attempt(step) {
  try {
    step();
  } catch (error) {
    console.error(error);
  }
}

/** @param {ReturnType<typeof view>["summary"]} summary */
function showSummary({ parts, bad, login }) {
  const names = /** @type {(keyof Answers)[]} */ (Object.keys(answers));
  const age = ageOf(names);
  const links = parts.map(({ text, section, bad: isBad }, index) => {
    const part = section ? html`<a href="#${section}">${text}</a>` : text;
    return html`${index ? " · " : ""}<span class=${isBad ? "error" : ""}>${part}</span>`;
  });
  const logIn = login && html` ${anchor(loginPath(), "Log in")}`;
  render(html`${links}${logIn}${age?.bad && ` · ${age.text}`}`, element("summary"));
  element("summary").classList.toggle("error", bad || Boolean(age?.bad));
}

/** Show when the oldest answer came, once all have come. */
function showUpdated() {
  /** @type {Answer<any>[]} */
  const all = Object.values(answers);
  if (all.some(({ at, reason }) => !at && reason?.status === ASKING)) return;
  const times = all.map(({ at }) => at ?? Infinity);
  const oldest = Math.min(...times);
  if (oldest < Infinity) element("updated").textContent = `Updated ${new Date(oldest).toLocaleTimeString()}`;
}

/** @param {ReturnType<typeof view>} shown */
function showSaid(shown) {
  render(state.said(shown), element("said"));
  element("said").hidden = !element("said").textContent;
  element("said").classList.toggle("error", state.bad);
}

function showDocs() {
  const about = state.docs && html`<p>${docsLink("guides/status-page.html", "About this page")}</p>`;
  render(about, element("docs"));
}

async function refresh() {
  // A hidden page does not poll.
  if (document.visibilityState !== "visible") return;
  drawSoon();
  await askAll();
  draw();
  askReasons();
}

/** Follow the theme of Airflow, around this frame; at the own address of the page, the one it remembers. */
function followTheme() {
  const airflow = window.parent.document.documentElement;
  if (window.parent === window) airflow.classList.toggle("dark", localStorage.getItem("theme") === "dark");
  const follow = () => document.documentElement.classList.toggle("dark", airflow.classList.contains("dark"));
  new MutationObserver(follow).observe(airflow, { attributeFilter: ["class"] });
  follow();
}

/** Return the section that the fragment of a link names; none if it is a text to filter by. */
function readFragment() {
  // Read as a query, a "%" that encodes nothing is one.
  const fragment = window.parent.location.hash.slice(1).replaceAll("+", "%2B");
  const wanted = new URLSearchParams(`wanted=${fragment}`).get("wanted") ?? "";
  const section = element(wanted);
  if (section?.tagName === "SECTION") return section;
  element("filter").value = wanted;
  return null;
}

async function readDocumentation() {
  // A role may not be allowed to ask.
  state.docs = (await documentation().catch(() => "")) ?? "";
  drawSoon();
}

followTheme();
const section = readFragment();
drawWith(drawPage);
document.documentElement.classList.add("started");
element("filter").addEventListener("input", draw);
element("search").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
element("refresh").addEventListener("click", refresh);
document.addEventListener("visibilitychange", refresh);
setInterval(refresh, POLL);
readDocumentation();
refresh().then(() => section?.scrollIntoView());
