"use strict";
// Texts of a model enter the page as text nodes, and as formulas that were drawn when it was made.
const STEP = 50;
const NAMES = { right: "right", some: "some right", wrong: "wrong", none: "no verdict" };
const page = JSON.parse(document.getElementById("data").textContent);
const { models, problems, formulas } = page;
const formula = new RegExp(page.formula, "g");
const form = document.getElementById("filters");
const list = document.getElementById("list");
const more = document.getElementById("more");
const fields = ["verdict", "truncated", "differ", "asked", "level", "subject", "text", "unfold", "source"];
const samplesOf = (problem) => problem.sides.flat();
const compared = (test) => (problem) => problem.sides.every((side) => side.length) && test(...problem.sides.map(share));
const is = {
  all: () => true,
  truncated: (problem) => samplesOf(problem).some((s) => s.truncated),
  differ: (problem) => samplesOf(problem).some((s) => (s.verdict === "right") !== (s.paper === "right")),
  ...(models.length === 1
    ? Object.fromEntries(Object.keys(NAMES).map((name) => [name, (problem) => state(problem.sides[0]) === name]))
    : {
        better: compared((before, after) => after > before),
        worse: compared((before, after) => after < before),
        right: compared((before, after) => before === 1 && after === 1),
        same: compared((before, after) => before === after && before > 0 && before < 1),
        wrong: compared((before, after) => before === 0 && after === 0),
      }),
};
let found = [];

const count = (side) => side.filter((s) => s.verdict === "right").length;
function share(side) {
  return count(side) / side.length;
}

function state(side) {
  const right = count(side);
  if (right) return right === side.length ? "right" : "some";
  return side.every((s) => s.verdict === "none") ? "none" : "wrong";
}

function element(name, className, text) {
  const made = document.createElement(name);
  made.className = className;
  made.append(...(typeof text === "string" ? [text] : text));
  return made;
}

function drawn(text) {
  if (form.elements.source.checked) return [text];
  return text.split(formula).filter(Boolean).map((part) => {
    if (!Object.hasOwn(formulas, part)) return part;
    const made = new DOMParser().parseFromString(formulas[part], "application/xml").documentElement;
    return made.localName === "math" ? document.importNode(made, true) : part;
  });
}

function searchable({ id, prompt, answer, sides }) {
  const texts = sides.flat().flatMap((s) => [s.output, s.extracted ?? ""]);
  return [id, prompt, answer, ...texts].join("\n").toLowerCase();
}

function verdict(side) {
  if (!side.length) return element("span", "verdict none", "not asked");
  const name = state(side);
  const text = side.length === 1 ? NAMES[name] : `${count(side)} of ${side.length} right`;
  return element("span", `verdict ${name}`, text);
}

function answers(side) {
  const counts = new Map();
  for (const { extracted } of side) counts.set(extracted, 1 + (counts.get(extracted) ?? 0));
  const several = (times) => (times > 1 ? ` (${times})` : "");
  const most = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 3);
  return most.map(([answer, times]) => `${answer ?? "no answer"}${several(times)}`).join(", ");
}

function answered(sample, alone) {
  const tokens = sample.tokens ? `${sample.tokens} tokens` : "";
  const words = [alone ? "" : `sample ${sample.sample}`, tokens, sample.truncated ? "truncated" : ""];
  const judged = [
    element("span", sample.verdict, NAMES[sample.verdict]),
    `: ${sample.extracted ?? "no answer"}; ${sample.reason} (answer from: ${sample.rule})`,
  ];
  if (!form.elements.differ.parentElement.hidden) {
    judged.push(`; by the paper's rules ${NAMES[sample.paper]}`);
  }
  const made = element("div", "answered", [
    element("p", "facts", words.filter(Boolean).join(", ")),
    element("div", "text", drawn(sample.output || "(no text is kept)")),
    element("p", "judged", judged),
  ]);
  return made;
}

function unfold(card, problem) {
  const { prompt, answer, promptTokens, sides } = problem;
  const asked = element("div", "asked", [
    element("h2", "", promptTokens ? `Prompt, ${promptTokens} tokens` : "Prompt"),
    element("div", "text", drawn(prompt)),
    element("h2", "", "Reference"),
    element("div", "text", drawn(answer)),
  ]);
  const columns = sides.map((side, place) =>
    element("section", "side", [
      element("h2", "", models[place]),
      ...side.map((sample) => answered(sample, side.length === 1)),
    ]),
  );
  card.append(asked, element("div", "sides", columns));
}

const nameOf = (problem) => `${problem.asked}/${problem.id}`;

function card(problem) {
  const made = element("details", "sample", []);
  made.id = nameOf(problem);
  const { sides, answer, level, subject } = problem;
  const about = [problem.id, subject, level === null ? null : `level ${level}`];
  made.append(
    element("summary", "", [
      element("span", "verdicts", sides.flatMap((side, i) => (i ? [" → ", verdict(side)] : [verdict(side)]))),
      element("span", "answers", `${sides.map(answers).join(" → ")} (reference ${answer})`),
      element("span", "id", about.filter(Boolean).join(", ")),
      ...(is.truncated(problem) ? [element("span", "flag", "truncated")] : []),
    ]),
  );
  made.firstChild.addEventListener("click", () => {
    if (made.childElementCount === 1) unfold(made, problem);
  });
  made.addEventListener("toggle", () => {
    if (!form.elements.unfold.checked) remember();
  });
  made.open = form.elements.unfold.checked;
  if (made.open) unfold(made, problem);
  return made;
}

function showMore() {
  const from = list.childElementCount;
  list.append(...found.slice(from, from + STEP).map(card));
  more.hidden = list.childElementCount >= found.length;
}

function filter() {
  const { verdict, truncated, differ, text, asked, level, subject } = form.elements;
  const wanted = text.value.trim().toLowerCase();
  found = problems.filter(
    (p) =>
      is[verdict.value](p) &&
      (!truncated.checked || is.truncated(p)) &&
      (!differ.checked || is.differ(p)) &&
      (!asked.value || p.asked === asked.value) &&
      (!level.value || String(p.level) === level.value) &&
      (!subject.value || p.subject === subject.value) &&
      (!wanted || (p.searchable ??= searchable(p)).includes(wanted)),
  );
  document.getElementById("count").textContent = `${found.length} of ${problems.length} problems`;
  list.replaceChildren();
  showMore();
}

function reveal(name) {
  const place = found.findIndex((problem) => name === nameOf(problem) || name === problem.id);
  if (place < 0) return;
  while (list.childElementCount <= place) showMore();
  const made = list.children[place];
  const summary = made.firstChild;
  if (!made.open) summary.click();
  summary.focus();
  made.scrollIntoView({ block: "start" });
}

// The part of the address after # is the first problem that is open, and the filters.
function remember() {
  const said = new URLSearchParams();
  const first = list.querySelector("details[open]");
  if (first && !form.elements.unfold.checked) said.set("open", first.id);
  for (const name of fields) {
    const field = form.elements[name];
    const value = field.type === "checkbox" ? (field.checked ? "1" : "") : field.value;
    if (value && value !== "all") said.set(name, value);
  }
  history.replaceState(null, "", `#${said}`);
}

function recall() {
  const text = location.hash.slice(1);
  const said = new URLSearchParams(text.includes("=") ? text : { open: decodeURIComponent(text) });
  for (const name of fields) {
    const field = form.elements[name];
    if (field.type === "checkbox") field.checked = said.has(name);
    else field.value = said.get(name) ?? (name === "verdict" ? "all" : "");
  }
  if (!form.elements.verdict.value) form.elements.verdict.value = "all";
  filter();
  if (said.get("open")) reveal(said.get("open"));
}

function step(by) {
  const cards = [...list.children];
  const at = cards.indexOf(document.activeElement?.closest?.("details.sample"));
  const to = Math.max(0, at + by);
  if (to >= cards.length && !more.hidden) showMore();
  const next = list.children[Math.min(to, list.childElementCount - 1)];
  next?.firstChild.focus();
  next?.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  j: () => step(1),
  k: () => step(-1),
  o: () => document.activeElement?.closest?.(".sample > summary")?.click(),
  "/": () => form.elements.text.focus(),
  "?": () => document.getElementById("keys").toggleAttribute("open"),
};

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input[type=search], select");
  if (event.key === "Escape" && typing) event.target.blur();
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !Object.hasOwn(KEYS, event.key)) return;
  event.preventDefault();
  KEYS[event.key]();
});
for (const place of document.querySelectorAll("[data-count]")) {
  place.textContent = problems.filter(is[place.dataset.count]).length;
}
form.addEventListener("input", () => {
  filter();
  remember();
});
form.addEventListener("submit", (event) => event.preventDefault());
more.addEventListener("click", showMore);
addEventListener("hashchange", recall);
recall();
