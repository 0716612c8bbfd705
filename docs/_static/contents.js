// Below the width at which furo hides its contents, a page of more than three screens lists its sections below its first paragraph.
document.addEventListener("DOMContentLoaded", () => {
  const list = document.querySelector(".toc-tree > ul");
  const lead = document.querySelector("article h1 ~ p");
  if (!list || !lead || document.body.scrollHeight < 3 * window.innerHeight) return;
  const sections = list.querySelector("ul")?.cloneNode(true);
  if (!sections || sections.children.length < 3) return;
  sections.querySelectorAll("ul").forEach((deeper) => deeper.remove());
  const contents = document.createElement("details");
  const summary = document.createElement("summary");
  contents.className = "page-contents";
  contents.open = sections.children.length <= 12;
  summary.textContent = "On this page";
  contents.append(summary, sections);
  lead.after(contents);
});
