// Health of the index: disk usage, truncated texts, the geometry of its vectors, and the overlap of its parts.

import { ask, at, coloured, count, make, named, tell } from "./dom.js";
import { bars, curve, histogram } from "./plots.js";

const percent = (share) => `${(100 * share).toFixed(share && share < 0.1 ? 1 : 0)}\u00a0%`;
const whole = (number) => Math.round(number).toLocaleString("en");
const paragraph = (text) => make("p", { textContent: text });
const card = (title, ...children) => make("section", { className: "card" }, make("h2", { textContent: title }), ...children);

function size(bytes) {
  for (const unit of ["bytes", "kB", "MB", "GB"]) {
    if (bytes < 1000) return `${unit === "bytes" ? bytes : bytes.toPrecision(3)} ${unit}`;
    bytes /= 1000;
  }
  return `${bytes.toPrecision(3)} TB`;
}

export async function showHealth(name, signal) {
  const address = `v1/indexes/${encodeURIComponent(name)}`;
  tell("");
  try {
    const info = await ask(address, null, signal);
    at("health").replaceChildren(summary(info), disk(info));
    tell("Measuring vectors and parts; this takes a few seconds the first time …");
    const found = await ask(`${address}/health`, null, signal);
    at("health").append(truncated(found), ...Object.entries(found.sets).map(([set, one]) => vectors(set, one, found)), parts(found.parts));
    tell("");
  } catch (error) {
    if (error.name !== "AbortError") tell(error.message, true);
  }
}

function summary(info) {
  const facts = [
    ["documents", whole(info.documents)],
    ...(info.passages === info.documents ? [] : [["passages", whole(info.passages)]]),
    ["on disk", size(info.bytes)],
    ["per document", size(Math.round(info.bytes_per_document))],
  ];
  const list = make("dl", { className: "facts" }, ...facts.map(([name, value]) => make("div", {}, make("dt", { textContent: name }), make("dd", { textContent: value }))));
  const written = new Date(info.created).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
  return card(info.name, list, make("p", { className: "soft", textContent: `commit ${info.commit}, written ${written}` }));
}

function disk(info) {
  const rows = Object.entries(info.bytes_by_purpose).filter(([, bytes]) => bytes).sort((a, b) => b[1] - a[1]);
  const colour = (purpose) => coloured(purpose.split(": ").at(-1));
  return card("Disk usage", bars("Bytes by purpose", rows.map(([name, bytes]) => [name, bytes, `${size(bytes)}, ${percent(bytes / info.bytes)}`, colour(name)]), info.bytes));
}

function truncated(found) {
  const title = "Truncated texts";
  if (!found.truncated) return card(title, paragraph("Not counted: the index has no vectors, or is of an earlier version."));
  const { passages, model_reads: most } = found.truncated;
  const row = ["truncated", passages, `${whole(passages)} of ${whole(found.passages)}, ${percent(passages / Math.max(found.passages, 1))}`, "words"];
  const shown = bars(`Texts longer than the ${whole(most)} word-pieces that the model reads`, [row], Math.max(found.passages, passages, 1));
  return card(title, shown, ...(passages ? [paragraph("The rest of these texts is in no vector. Cut long texts into passages when you build the index.")] : []));
}

function vectors(name, set, found) {
  const stored = set.static ? "in the model's table" : set.codec;
  const told = `${count(set.vectors, "vector")} of ${set.components} components, ${stored}, ${set.bytes_per_vector.toFixed(1)} bytes each; ${set.vectors_per_document.toFixed(1)} per document on average.`;
  const unit = found.passages === found.documents ? "document" : "passage";
  const lengths = set.lengths ? [histogram(`Vectors per ${unit}: how many ${unit}s have so many (median ${whole(set.lengths.median)})`, set.lengths.edges, set.lengths.passages, coloured(name))] : [];
  return card(`Vector set ${name}`, paragraph(told), make("div", { className: "columns" }, ...isotropy(name, set), ...lengths));
}

function isotropy(name, set) {
  const found = set.isotropy;
  if (!found) return [paragraph("Too few vectors to measure isotropy.")];
  const kind = coloured(name);
  const rows = [["mean cosine", found.cosine], ["I(W)", found.partition], ["IsoScore", found.iso_score]];
  const shown = rows.filter(([, value]) => value !== null).map(([title, value]) => [title, value, value.toFixed(2), kind]);
  const most = found.directions[found.variance.findIndex((share) => share >= 0.9)] ?? found.directions.at(-1);
  return [
    make("div", {},
      bars(`Isotropy of ${count(found.vectors, "vector")} drawn at random`, shown, 1),
      paragraph("Mean cosine: 0 if the vectors prefer no direction, 1 if all point the same way. I(W) and IsoScore: 1 if all directions are used equally."),
      paragraph(`${found.outliers ? count(found.outliers, "component is an outlier", "components are outliers") : "No component is an outlier"}: more than 3 standard deviations larger than the average component.`),
    ),
    curve(`Variance in the first principal directions: ${percent(0.9)} in ${whole(most)} of ${set.components}; effective rank ${whole(found.rank)}`, found.directions, found.variance, kind),
  ];
}

function parts(found) {
  const title = "Parts of the score";
  if (!found) return card(title, paragraph("This index has one part, so there is nothing to compare."));
  const { documents, known_items: items } = found;
  const among = (names) => names.map(named).join(" + ");
  const regions = documents.regions.map(({ in: names, size: many }) => [among(names), many, percent(many / documents.union), names.length > 1 ? "several" : coloured(names[0])]);
  const names = Object.keys(items.sizes);
  const alone = Object.fromEntries(items.regions.filter((one) => one.in.length === 1).map((one) => [one.in[0], one.size]));
  const finds = [...names.map((name) => [named(name), items.sizes[name], `${items.sizes[name]}, of which ${alone[name] ?? 0} by it alone`, coloured(name)]), ["hybrid", found.hybrid_finds, String(found.hybrid_finds), "several"]];
  return card(
    title,
    paragraph(`The queries are the titles of ${count(found.queries, "document")} drawn at random, or the first words of those without a title.`),
    bars(`Overlap of the first ${found.k} documents: which parts have them`, regions, documents.union),
    bars(`Known items: how many of the ${found.queries} documents are among the first ${found.k} for their own title`, finds, found.queries),
    complementarity(names, items.pairs),
    paragraph("These queries share words with their documents, so BM25 finds more of them than of people's questions. With judged queries, use counterpoint overlap and counterpoint evaluate."),
  );
}

// RoC of the row against the column: the share of what the row finds that the column does not.
function complementarity(names, pairs) {
  const cell = (a, b) => {
    const roc = pairs.find((pair) => pair.first === a && pair.second === b)?.roc;
    return make("td", { className: "number", textContent: roc === undefined || roc === null ? "–" : percent(roc) });
  };
  const head = make("tr", {}, make("td"), ...names.map((name) => make("th", { scope: "col", className: "number", textContent: named(name) })));
  const rows = names.map((a) => make("tr", {}, make("th", { scope: "row", textContent: named(a) }), ...names.map((b) => cell(a, b))));
  const caption = "Complementarity: of the known items that the row finds, the share that the column does not find";
  return make("table", {}, make("caption", { textContent: caption }), make("thead", {}, head), make("tbody", {}, ...rows));
}
