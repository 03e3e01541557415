"use strict";
// Hides the claims that the chosen filters leave out, and the papers of which no claim is left.
const form = document.getElementById("filters");
const claims = [...document.querySelectorAll("tr[data-verdict]")];
const names = ["by", "verdict", "family", "mechanism"];

function filter() {
  const wanted = names.filter((name) => form.elements[name].value);
  const fits = (row) => wanted.every((name) => row.dataset[name] === form.elements[name].value);
  for (const row of claims) row.hidden = !fits(row);
  const shown = claims.filter((row) => !row.hidden);
  const papers = new Set(shown.map((row) => row.dataset.paper));
  for (const row of document.querySelectorAll("section tr[id]")) row.hidden = !papers.has(row.id);
  for (const section of document.querySelectorAll("section")) {
    section.hidden = !section.querySelector("tr[id]:not([hidden])");
  }
  document.getElementById("count").textContent = `${shown.length} of ${claims.length} claims`;
}

// The part of the address after # names the filters.
function remember() {
  const chosen = names.map((name) => [name, form.elements[name].value]);
  const said = new URLSearchParams(chosen.filter(([, value]) => value));
  history.replaceState(null, "", `#${said}`);
}

function recall() {
  const said = new URLSearchParams(location.hash.slice(1));
  for (const name of names) form.elements[name].value = said.get(name) ?? "";
  filter();
}

form.addEventListener("input", () => {
  filter();
  remember();
});
form.addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", recall);
form.hidden = false;
recall();
