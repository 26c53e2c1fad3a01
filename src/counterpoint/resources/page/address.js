// The options of a search, which the address of the page keeps.

import { at, make, named } from "./dom.js";

const DEFAULTS = { workflow: "hybrid", k: "10" };
const FIELDS = { q: "query", index: "index", workflow: "workflow", where: "where", k: "k" };

const sliders = () => [...at("sliders").querySelectorAll("input")];
const isTouched = () => !at("default-weights").hidden;

// What is asked for; `weights` is empty unless somebody moved a slider.
export function asked() {
  const found = Object.fromEntries(Object.entries(FIELDS).map(([name, id]) => [name, at(id).value]));
  return { ...found, weights: isTouched() ? sliders().map((one) => `${one.name}=${one.value}`).join(" ") : "" };
}

export function body(given) {
  const found = { query: given.q, k: Math.min(Math.max(Math.trunc(Number(given.k)) || 10, 1), 100), workflow: given.workflow, explain: true };
  if (given.where.trim()) found.where = given.where;
  if (given.weights && given.workflow === "hybrid") found.weights = given.weights;
  return found;
}

export function remember() {
  const kept = Object.entries(asked()).filter(([name, value]) => value && value !== DEFAULTS[name]);
  const search = new URLSearchParams(kept).toString();
  history.replaceState(null, "", (search ? `?${search}` : location.pathname) + location.hash);
}

export function recall(indexes, changed) {
  const given = new URLSearchParams(location.search);
  if (indexes.some((one) => one.name === given.get("index"))) at("index").value = given.get("index");
  for (const [name, id] of Object.entries(FIELDS)) if (name !== "index") at(id).value = given.get(name) ?? DEFAULTS[name] ?? "";
  offer(indexes, changed);
  for (const pair of given.get("weights")?.split(" ") ?? []) {
    const [name, value] = pair.split("=");
    const slider = sliders().find((one) => one.name === name);
    if (slider) weigh(slider, value);
  }
  at("options").open = ["weights", "where", "workflow", "k"].some((name) => given.has(name));
}

// Offer the workflows and weights of the chosen index.
export function offer(indexes, changed) {
  const index = indexes.find((one) => one.name === at("index").value);
  if (!index) return;
  const sets = Object.values(index.sets);
  const can = { hybrid: true, lexical: index.lexical, dense: sets.some((set) => set.pooled), words: sets.some((set) => !set.pooled) };
  for (const option of at("workflow").options) option.hidden = option.disabled = !can[option.value];
  if (!can[at("workflow").value]) at("workflow").value = DEFAULTS.workflow;
  const parts = Object.entries(index.weights);
  at("weights").hidden = parts.length < 2;
  at("default-weights").hidden = true;
  at("sliders").replaceChildren(...parts.map(([name, value]) => {
    const slider = make("input", { type: "range", name, min: "0.01", max: "1", step: "0.01" });
    slider.addEventListener("input", () => { weigh(slider, slider.value); changed(); });
    return make("label", {}, make("span", {}, named(name), make("output")), slider);
  }));
  for (const slider of sliders()) weigh(slider, index.weights[slider.name], false);
}

function weigh(slider, value, touched = true) {
  slider.value = value;
  slider.parentElement.querySelector("output").textContent = Number(slider.value).toFixed(2);
  if (touched) at("default-weights").hidden = false;
}
