// On narrow screens site.css shows each row of a wide table as a block: each cell then needs the name of its column.
// Short words of code are marked, which site.css keeps whole.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.docutils")) {
    const names = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, column) => (cell.dataset.column = names[column] ?? ""));
    }
    for (const word of table.querySelectorAll("code .pre")) word.classList.toggle("whole", word.textContent.length < 16);
  }
});
