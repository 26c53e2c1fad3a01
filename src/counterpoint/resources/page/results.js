// Results and one document: words coloured by what they added to the score, and the share of every part.

import { at, coloured, make, named } from "./dom.js";

const SNIPPET = 320; // characters shown of a document

export function result(hit) {
  const marks = placed(hit);
  const title = hit.title ? marked(hit.title, marks.title) : [firstLine(hit.text) || hit.id];
  const open = make("button", { type: "button", dir: "auto" }, ...title);
  open.addEventListener("click", () => openDocument(hit));
  const about = [hit.id, ...Object.values(hit.metadata)].join(" · ");
  const [from, to] = snippet(hit.text, marks.text);
  const text = make("p", { className: "text", dir: "auto" });
  if (from) text.append("… ");
  text.append(...marked(hit.text.slice(from, to), marks.text, from));
  if (to < hit.text.length) text.append(" …");
  return make("li", {}, make("h2", {}, open), make("div", { className: "id", textContent: about }), text, ...shares(hit));
}

function openDocument(hit) {
  const marks = placed(hit);
  at("document-title").replaceChildren(...(hit.title ? marked(hit.title, marks.title) : [hit.id]));
  at("document-shares").replaceChildren(...shares(hit));
  at("document-text").replaceChildren(...marked(hit.text, marks.text));
  at("document-metadata").replaceChildren(
    ...Object.entries({ id: hit.id, ...hit.metadata }).flatMap(([name, value]) => [make("dt", { textContent: name }), make("dd", { textContent: String(value) })]),
  );
  at("similar").value = `${hit.title} ${hit.text}`.trim().slice(0, 400);
  at("document").showModal();
  at("document").scrollTop = 0;
}

// What each word of the document added: the sum over the leaves of the explanation that are placed on it.
function placed(hit) {
  const sums = new Map();
  const walk = (node) => {
    if (node.children) return node.children.forEach(walk);
    const place = node.document;
    if (!place || node.score <= 0) return;
    const key = `${place.field}:${place.start}:${place.end}`;
    sums.set(key, { ...place, score: (sums.get(key)?.score ?? 0) + node.score });
  };
  if (hit.explanation) walk(hit.explanation);
  const all = [...sums.values()].sort((a, b) => b.score - a.score);
  const kept = { title: [], text: [] };
  for (const mark of all) {
    const list = kept[mark.field];
    if (list && !list.some((other) => other.start < mark.end && mark.start < other.end)) list.push({ ...mark, share: mark.score / all[0].score });
  }
  for (const list of Object.values(kept)) list.sort((a, b) => a.start - b.start);
  return { title: units(hit.title, kept.title), text: units(hit.text, kept.text) };
}

// Places count characters as Python does; a string of JavaScript counts UTF-16 units.
function units(text, places) {
  if (!/[\ud800-\udfff]/.test(text)) return places;
  const starts = [0];
  for (const character of text) starts.push(starts[starts.length - 1] + character.length);
  return places.map((place) => ({ ...place, start: starts[place.start] ?? text.length, end: starts[place.end] ?? text.length }));
}

function marked(piece, marks, from = 0) {
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

// The part of a text whose words added most.
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
  const legend = make("ul", { className: "legend" }, make("li", { textContent: `score ${hit.score.toFixed(4)}` }));
  for (const [name, value] of parts) {
    const piece = make("span", { className: coloured(name) });
    piece.style.width = `${(100 * value) / total}%`;
    bar.append(piece);
    const share = hit.score > 0 ? ` ${Math.round((100 * value) / total)} %` : ""; // of 0 or less, shares mean nothing
    legend.append(make("li", {}, make("i", { className: coloured(name) }), `${named(name)}${share}`));
  }
  return [bar, legend];
}

const firstLine = (text) => text.split("\n").find((line) => line.trim())?.slice(0, 80) ?? "";
