"use strict";
// Sorts the rows of a table by the column whose heading is pressed, the largest value first.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, place) => {
    const button = heading.querySelector("button");
    if (!button) return;
    button.disabled = false;
    button.addEventListener("click", () => {
      const falls = heading.getAttribute("aria-sort") !== "descending";
      const value = (row) => row.cells[place].dataset.value ?? row.cells[place].textContent;
      const number = (row) => (value(row) === "" ? -Infinity : Number(value(row)));
      const named = Number.isNaN(number(body.rows[0]));
      const order = (a, b) => (named ? value(b).localeCompare(value(a)) : number(b) - number(a));
      const rows = [...body.rows].sort((a, b) => (falls ? order(a, b) : order(b, a)));
      for (const one of headings) one.removeAttribute("aria-sort");
      heading.setAttribute("aria-sort", falls ? "descending" : "ascending");
      body.append(...rows);
    });
  });
}
