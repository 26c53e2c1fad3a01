// The search page. Documents are only ever put into the page as text, never as HTML.

const at = (id) => document.getElementById(id);
const PARTS = ["lexical", "mean", "words", "feedback"];
const NAMES = { lexical: "BM25", mean: "vector", words: "words", feedback: "feedback" };
const SNIPPET = 320; // characters shown of a document
const WAIT = 40; // milliseconds after a key before the search is sent

let indexes = [];
let running = null; // aborts the search that is under way
let timer = 0;
let opened = null; // the hit in the dialog

function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

async function ask(path, body, signal) {
  const headers = {};
  const key = sessionStorage.getItem("key");
  if (key) headers.authorization = `Bearer ${key}`;
  if (body) headers["content-type"] = "application/json";
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body) });
  if (answer.status === 401) {
    at("key-dialog").showModal();
    throw new Error("this server needs a key");
  }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.detail ?? `the server answered ${answer.status}`);
  return found;
}

// -- the address of a view -----------------------------------------------------------------------------

function view() {
  const weights = {};
  for (const slider of at("weights").querySelectorAll("input")) weights[slider.name] = Number(slider.value);
  const touched = at("weights").dataset.touched === "yes";
  return {
    q: at("query").value, index: at("index").value, workflow: at("workflow").value, where: at("where").value,
    k: at("k").value, weights: touched ? Object.entries(weights).map(([n, w]) => `${n}=${w}`).join(" ") : "",
  };
}

function remember() {
  const kept = Object.entries(view()).filter(([name, value]) => value && !(name === "workflow" && value === "hybrid") && !(name === "k" && value === "10"));
  const search = new URLSearchParams(kept).toString();
  history.replaceState(null, "", search ? `?${search}${location.hash}` : location.pathname + location.hash);
}

function recall() {
  const given = new URLSearchParams(location.search);
  at("query").value = given.get("q") ?? "";
  if (indexes.some((one) => one.name === given.get("index"))) at("index").value = given.get("index");
  showWeights();
  at("workflow").value = given.get("workflow") ?? "hybrid";
  at("where").value = given.get("where") ?? "";
  at("k").value = given.get("k") ?? "10";
  const weights = given.get("weights");
  if (weights) {
    at("weights").dataset.touched = "yes";
    for (const pair of weights.split(" ")) {
      const [name, value] = pair.split("=");
      const slider = at("weights").querySelector(`input[name="${CSS.escape(name)}"]`);
      if (slider) slider.value = value;
    }
  }
  if (weights || given.get("where") || given.get("workflow")) at("options").open = true;
}

function showWeights() {
  const index = indexes.find((one) => one.name === at("index").value);
  const parts = index ? [...(index.lexical ? ["lexical"] : []), ...Object.keys(index.sets)] : [];
  at("weights").replaceChildren(make("legend", { textContent: "Weights" }));
  delete at("weights").dataset.touched;
  at("weights").hidden = parts.length < 2;
  for (const name of parts) {
    const slider = make("input", { type: "range", name, min: "0.05", max: "1", step: "0.05", value: "0.5" });
    slider.addEventListener("input", () => { at("weights").dataset.touched = "yes"; soon(); });
    at("weights").append(make("label", {}, NAMES[name] ?? name, slider));
  }
}

// -- searching -----------------------------------------------------------------------------------------

function soon() {
  clearTimeout(timer);
  timer = setTimeout(search, WAIT);
}

async function search() {
  remember();
  running?.abort();
  const asked = view();
  if (!asked.q.trim() || !asked.index) {
    at("results").replaceChildren();
    tell("");
    return;
  }
  running = new AbortController();
  const body = { query: asked.q, k: Math.min(Math.max(Number(asked.k) || 10, 1), 100), workflow: asked.workflow, explain: true };
  if (asked.where.trim()) body.where = asked.where;
  if (asked.weights && asked.workflow === "hybrid") body.weights = Object.fromEntries(asked.weights.split(" ").map((pair) => [pair.split("=")[0], Number(pair.split("=")[1])]));
  try {
    const found = await ask(`v1/indexes/${encodeURIComponent(asked.index)}/search`, body, running.signal);
    show(found);
    const count = found.hits.length;
    tell(count ? `${count} ${count === 1 ? "result" : "results"}, ${found.milliseconds.toFixed(0)} ms` : "No document matches.");
  } catch (error) {
    if (error.name !== "AbortError") tell(error.message, true);
  }
}

function tell(text, fault = false) {
  at("status").textContent = text;
  at("status").classList.toggle("fault", fault);
}

function show(found) {
  at("results").replaceChildren(...found.hits.map((hit) => result(hit)));
}

function result(hit) {
  const marks = placed(hit);
  const title = hit.title || firstLine(hit.text) || hit.id;
  const open = make("button", { type: "button" }, ...(hit.title ? marked(hit.title, marks.title, 0) : [title]));
  open.addEventListener("click", () => openDocument(hit));
  const item = make("li", {}, make("h3", {}, open));
  item.append(make("div", { className: "id", textContent: hit.id }));
  const [from, to] = snippet(hit.text, marks.text);
  const text = make("p", { className: "text" });
  if (from) text.append("… ");
  text.append(...marked(hit.text.slice(from, to), marks.text, from));
  if (to < hit.text.length) text.append(" …");
  item.append(text, ...shares(hit));
  return item;
}

// What each word of the document added: the sum over the leaves of the explanation that are placed on it.
function marksOf(hit) {
  const sums = new Map();
  const walk = (node) => {
    if (node.children) return node.children.forEach(walk);
    const place = node.document;
    if (!place || node.score <= 0) return;
    const key = `${place.field}:${place.start}:${place.end}`;
    const before = sums.get(key) ?? { ...place, score: 0 };
    sums.set(key, { ...before, score: before.score + node.score });
  };
  if (hit.explanation) walk(hit.explanation);
  const all = [...sums.values()].sort((a, b) => b.score - a.score);
  const best = all[0]?.score || 1;
  const kept = { title: [], text: [] };
  for (const mark of all) {
    const list = kept[mark.field];
    if (list && !list.some((other) => other.start < mark.end && mark.start < other.end)) list.push({ ...mark, share: mark.score / best });
  }
  for (const list of Object.values(kept)) list.sort((a, b) => a.start - b.start);
  return kept;
}

function placed(hit) {
  const marks = marksOf(hit);
  return { title: units(hit.title, marks.title), text: units(hit.text, marks.text) };
}

// Places count characters as Python does; a string of JavaScript counts UTF-16 units.
function units(text, places) {
  if (!/[\ud800-\udfff]/.test(text)) return places;
  const starts = [0];
  for (const character of text) starts.push(starts[starts.length - 1] + character.length);
  return places.map((place) => ({ ...place, start: starts[place.start] ?? text.length, end: starts[place.end] ?? text.length }));
}

function marked(piece, marks, from) {
  const found = [];
  let done = 0;
  for (const mark of marks) {
    const [start, end] = [mark.start - from, mark.end - from];
    if (start < done || end > piece.length) continue;
    const word = make("mark", { textContent: piece.slice(start, end), title: `+${mark.score.toFixed(4)}` });
    word.style.setProperty("--strength", (0.15 + 0.7 * mark.share).toFixed(2));
    found.push(piece.slice(done, start), word);
    done = end;
  }
  return [...found, piece.slice(done)];
}

function snippet(text, marks) {
  if (text.length <= SNIPPET) return [0, text.length];
  let [best, from] = [-1, 0];
  for (const mark of marks) {
    const start = Math.max(0, mark.start - 60);
    const sum = marks.filter((one) => one.start >= start && one.end <= start + SNIPPET).reduce((total, one) => total + one.score, 0);
    if (sum > best) [best, from] = [sum, start];
  }
  const space = text.indexOf(" ", from);
  if (from && space > 0 && space - from < 40) from = space + 1;
  return [from, Math.min(text.length, from + SNIPPET)];
}

function shares(hit) {
  const parts = Object.entries(hit.parts).filter(([, value]) => value > 0);
  const total = parts.reduce((sum, [, value]) => sum + value, 0) || 1;
  const bar = make("div", { className: "shares" });
  bar.setAttribute("aria-hidden", "true");
  const legend = make("ul", { className: "legend" });
  legend.append(make("li", { textContent: `score ${hit.score.toFixed(4)}` }));
  for (const [name, value] of parts) {
    const kind = PARTS.includes(name) ? name : "other";
    const piece = make("span", { className: kind });
    piece.style.width = `${(100 * value) / total}%`;
    bar.append(piece);
    legend.append(make("li", {}, make("i", { className: kind }), `${NAMES[name] ?? name} ${Math.round((100 * value) / total)} %`));
  }
  return [bar, legend];
}

const firstLine = (text) => text.split("\n").find((line) => line.trim())?.slice(0, 80) ?? "";

// -- one document --------------------------------------------------------------------------------------

async function openDocument(hit) {
  opened = hit;
  const marks = placed(hit);
  at("document-title").replaceChildren(...(hit.title ? marked(hit.title, marks.title, 0) : [hit.id]));
  at("document-text").replaceChildren(...marked(hit.text, marks.text, 0));
  at("document-metadata").replaceChildren(
    ...Object.entries({ id: hit.id, ...hit.metadata }).flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: String(value) })]),
  );
  at("document").showModal();
}

function similar() {
  at("document").close();
  at("query").value = `${opened.title} ${opened.text}`.trim().slice(0, 400);
  search();
}

// -- health --------------------------------------------------------------------------------------------

async function health() {
  const shown = location.hash === "#health";
  at("health").hidden = !shown;
  at("results").hidden = shown;
  if (!shown || !at("index").value) return;
  try {
    const info = await ask(`v1/indexes/${encodeURIComponent(at("index").value)}`);
    const rows = [["documents", info.documents], ["passages", info.passages], ["commit", info.commit], ["created", info.created], ["bytes", info.bytes], ["bytes per document", Math.round(info.bytes_per_document)]];
    for (const [name, set] of Object.entries(info.sets)) rows.push([`set ${name}`, `${set.components} components, ${set.pooled ? "one vector" : "several vectors"} per text`]);
    at("health").replaceChildren(make("h2", { textContent: info.name }), table(rows), make("h2", { textContent: "Bytes by purpose" }), table(Object.entries(info.bytes_by_purpose).sort((a, b) => b[1] - a[1])));
    tell("");
  } catch (error) {
    tell(error.message, true);
  }
}

function table(rows) {
  return make("table", {}, make("tbody", {}, ...rows.map(([name, value]) => {
    const number = typeof value === "number";
    return make("tr", {}, make("th", { scope: "row", textContent: name }), make("td", { className: number ? "number" : "", textContent: number ? value.toLocaleString("en") : String(value) }));
  })));
}

// -- keys of the keyboard ------------------------------------------------------------------------------

function move(step) {
  const all = [...at("results").querySelectorAll("h3 button")];
  const next = all.indexOf(document.activeElement) + step;
  if (next < 0) at("query").focus();
  else all[Math.min(next, all.length - 1)]?.focus();
}

document.addEventListener("keydown", (event) => {
  const typing = event.target.matches("input, select");
  if (event.key === "/" && !typing) {
    event.preventDefault();
    at("query").focus();
    at("query").select();
  } else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && (!typing || event.target === at("query")) && !document.querySelector("dialog[open]")) {
    event.preventDefault();
    move(event.key === "ArrowDown" ? 1 : -1);
  } else if (event.key === "Escape" && event.target === at("query")) {
    at("query").value = "";
    search();
  }
});

for (const id of ["query", "where", "k"]) at(id).addEventListener("input", soon);
at("workflow").addEventListener("change", search);
at("index").addEventListener("change", () => { showWeights(); search(); health(); });
at("form").addEventListener("submit", (event) => { event.preventDefault(); search(); });
at("similar").addEventListener("click", similar);
at("key-form").addEventListener("submit", () => { sessionStorage.setItem("key", at("key").value); start(); });
addEventListener("hashchange", health);

async function start() {
  try {
    indexes = (await ask("v1/indexes")).indexes;
    at("index").replaceChildren(...indexes.map((one) => make("option", { value: one.name, textContent: `${one.name} (${one.documents.toLocaleString("en")})` })));
    at("index").hidden = indexes.length < 2;
    recall();
    await health();
    await search();
  } catch (error) {
    tell(error.message, true);
  }
}

start();
