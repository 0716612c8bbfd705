// What the person who looks has done on the page, and when it is drawn again.

// Several answers that arrive within these milliseconds are drawn together.
const TOGETHER = 50;

export const state = {
  // Rows to show of a section.
  /** @type {Record<string, number>} */
  shown: {},
  // The address of the documentation; empty if it is not known.
  docs: "",
  // What became of what the person did, from what the page shows; red if `bad`.
  /** @type {(view: any) => any} */
  said: () => "",
  bad: false,
  sweeping: false,
};

/** @type {() => void} */
let drawPage = () => {};
/** @type {ReturnType<typeof setTimeout> | null} */
let timer = null;

/** @param {() => void} draw what draws the page */
export function drawWith(draw) {
  drawPage = draw;
}

export function draw() {
  if (timer !== null) clearTimeout(timer);
  timer = null;
  drawPage();
}

export function drawSoon() {
  timer ??= setTimeout(draw, TOGETHER);
}

/**
 * Show what a function makes of what the page shows, until something else is to be said.
 *
 * @param {(view: any) => any} said
 */
export function say(said, bad = false) {
  Object.assign(state, { said, bad });
  draw();
}
