// Plots of the health view. Numbers are in the page as text as well.

import { make } from "./dom.js";

const [WIDTH, HEIGHT, LEFT, BOTTOM] = [340, 130, 44, 20];

// Rows of a name, a bar and a text; a bar of `most` is full. A row is [name, value, text, class of the bar's colour].
export function bars(title, rows, most) {
  const list = rows.map(([name, value, text, kind]) => {
    const bar = make("span", { className: kind });
    bar.style.width = `${(100 * Math.max(value, 0)) / most}%`;
    return make("li", {}, make("span", { textContent: name }), make("span", { className: "number", textContent: text }), make("div", { className: "track" }, bar));
  });
  return make("div", {}, make("h3", { textContent: title }), make("ul", { className: "bars" }, ...list));
}

export function histogram(label, edges, counts, kind) {
  const most = Math.max(...counts);
  const step = (WIDTH - LEFT) / counts.length;
  const rows = counts.map((value, i) => {
    const height = ((HEIGHT - BOTTOM - 8) * value) / most;
    return draw("rect", { x: LEFT + i * step + 0.5, y: HEIGHT - BOTTOM - height, width: Math.max(step - 1, 1), height, class: kind });
  });
  const ticks = [[LEFT, edges[0], "start"], [WIDTH, edges.at(-1), "end"]];
  return plot(label, rows, ticks.map(([x, value, anchor]) => write(x, HEIGHT - 5, Math.round(value).toLocaleString("en"), anchor)), [[most, 1]]);
}

// A curve of shares from 0 to 1.
export function curve(label, xs, shares, kind) {
  const x = (value) => LEFT + ((WIDTH - LEFT - 1) * (value - xs[0])) / Math.max(xs.at(-1) - xs[0], 1);
  const points = xs.map((value, i) => `${x(value).toFixed(1)},${across(shares[i]).toFixed(1)}`).join(" ");
  const ticks = [[xs[0], "start"], [xs.at(-1), "end"]];
  return plot(label, [draw("polyline", { points, class: `line ${kind}` })], ticks.map(([value, anchor]) => write(x(value), HEIGHT - 5, value.toLocaleString("en"), anchor)), [["0 %", 0], ["50 %", 0.5], ["100 %", 1]]);
}

const across = (share) => HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 8) * share;

function plot(label, marks, texts, levels) {
  const lines = levels.flatMap(([text, share]) => [
    draw("line", { x1: LEFT, x2: WIDTH, y1: across(share), y2: across(share), class: "grid" }),
    write(LEFT - 4, across(share) + 4, typeof text === "number" ? text.toLocaleString("en") : text, "end"),
  ]);
  const found = draw("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
  found.append(...lines, ...marks, ...texts);
  return make("figure", {}, make("h3", { textContent: label }), found);
}

function write(x, y, text, anchor) {
  const found = draw("text", { x, y, "text-anchor": anchor });
  found.textContent = text;
  return found;
}

function draw(tag, attributes) {
  const found = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) found.setAttribute(name, value);
  return found;
}
