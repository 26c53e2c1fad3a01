// The search page: searches while you type, the view that the address names, and the keys of the keyboard.

import { asked, body, offer, recall, remember } from "./address.js";
import { ask, at, count, make, tell } from "./dom.js";
import { showHealth } from "./health.js";
import { result } from "./results.js";

const SETTLED = 200; // milliseconds after a search before the address names it; browsers limit such changes

let indexes = [];
let timer = 0;
let waits = null; // aborts the health request that is under way
let searching = false;
let again = false; // something changed while a search was under way

// One search at a time: whatever changes meanwhile is searched for next, so a slow index is not flooded.
async function search() {
  if (location.hash === "#health") history.replaceState(null, "", location.pathname + location.search);
  show();
  again = searching;
  if (searching) return;
  searching = true;
  do {
    again = false;
    await answer(asked());
  } while (again);
  searching = false;
  clearTimeout(timer);
  timer = setTimeout(remember, SETTLED);
}

async function answer(given) {
  at("weights").disabled = given.workflow !== "hybrid";
  if (!given.q.trim() || !given.index) {
    const index = indexes.find((one) => one.name === given.index);
    at("results").replaceChildren();
    tell(index ? `Type to search ${count(index.documents, "document")}.` : "");
    return;
  }
  at("results").setAttribute("aria-busy", "true");
  try {
    const found = await ask(`v1/indexes/${encodeURIComponent(given.index)}/search`, body(given));
    if (at("results").hidden) return;
    at("results").replaceChildren(...found.hits.map(result));
    const none = given.where.trim() ? "No document matches. Try it without the condition." : "No document matches.";
    tell(found.hits.length ? `${count(found.hits.length, "result")}, ${found.milliseconds.toFixed(0)} ms` : none);
  } catch (error) {
    at("results").replaceChildren();
    tell(error.message, true);
  }
  at("results").removeAttribute("aria-busy");
}

// -- views -----------------------------------------------------------------------------------------------

function show() {
  const health = location.hash === "#health";
  waits?.abort();
  at("health").hidden = !health;
  at("results").hidden = health;
  at(health ? "health-link" : "search-link").setAttribute("aria-current", "page");
  at(health ? "search-link" : "health-link").removeAttribute("aria-current");
  return health;
}

function view() {
  if (!show()) return search();
  remember();
  waits = new AbortController();
  if (at("index").value) showHealth(at("index").value, waits.signal);
}

async function start() {
  try {
    indexes = (await ask("v1/indexes")).indexes;
    at("index").replaceChildren(...indexes.map((one) => make("option", { value: one.name, textContent: `${one.name} (${one.documents.toLocaleString("en")})` })));
    at("index").hidden = indexes.length < 2;
    recall(indexes, search);
    view();
  } catch (error) {
    tell(error.message, true);
  }
}

// -- keys of the keyboard --------------------------------------------------------------------------------

function move(step) {
  const all = [...at("results").querySelectorAll("h2 button")];
  const next = all.indexOf(document.activeElement) + step;
  if (next < 0) at("query").focus();
  else all[Math.min(next, all.length - 1)]?.focus();
}

document.addEventListener("keydown", (event) => {
  if (document.querySelector("dialog[open]")) return;
  const typing = event.target.matches("input, select");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    at("query").focus();
    at("query").select();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (!typing || event.target === at("query")) && !at("results").hidden) {
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape" && event.target === at("query")) {
    at("query").value = "";
    search();
  }
});

for (const id of ["query", "where", "k"]) at(id).addEventListener("input", search);
at("workflow").addEventListener("change", search);
at("default-weights").addEventListener("click", () => { offer(indexes, search); search(); });
at("index").addEventListener("change", () => { offer(indexes, search); view(); });
at("form").addEventListener("submit", (event) => { event.preventDefault(); search(); });
at("similar").addEventListener("click", () => { at("document").close(); at("query").value = at("similar").value; search(); });
at("key-form").addEventListener("submit", () => { sessionStorage.setItem("key", at("key").value); start(); });
addEventListener("hashchange", view);

start();
