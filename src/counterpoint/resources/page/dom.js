// Elements of the page, and requests to the server. Texts are only ever put in as text, never as HTML.

export const NAMES = { lexical: "BM25", mean: "vector", words: "words", feedback: "feedback" };

export const at = (id) => document.getElementById(id);
export const named = (part) => NAMES[part] ?? part;
export const coloured = (part) => (part in NAMES ? part : "other"); // class of a part's colour
export const count = (number, one, several = `${one}s`) => `${number.toLocaleString("en")} ${number === 1 ? one : several}`;

export function make(tag, properties = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

export function tell(text, fault = false) {
  at("status").textContent = text;
  at("status").classList.toggle("fault", fault);
}

export async function ask(path, body, signal) {
  const headers = {};
  const key = sessionStorage.getItem("key");
  if (key) headers.authorization = `Bearer ${key}`;
  if (body) headers["content-type"] = "application/json";
  const answer = await fetch(path, { method: body ? "POST" : "GET", headers, signal, body: body && JSON.stringify(body) });
  if (answer.status === 401) {
    if (!at("key-dialog").open) at("key-dialog").showModal();
    throw new Error("This server needs a key.");
  }
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.detail ?? `the server answered ${answer.status}`);
  return found;
}
