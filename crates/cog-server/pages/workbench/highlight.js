// Where an answer is found in its input: grounding and citations, marked in the text.

import { h } from "./dom.js";
import { isContainer, keysOf, member, valueAt } from "./path.js";
import { t } from "./texts.js";

/** The most characters of a source that are shown around the marks. */
const LONG = 20_000;

/**
 * The sources of an answer with their marks; `undefined` if it names none.
 * @param {any} envelope @param {any} input
 */
export function sources(envelope, input) {
  const data = envelope.data ?? envelope.partial_data;
  const grounding = envelope.meta?.evidence?.grounding;
  const citations = isContainer(data?.citation_map) ? Object.entries(data.citation_map) : [];
  if (!grounding && citations.length === 0) return undefined;
  const marks = new Map();
  const add = (source, mark) => marks.set(source, [...(marks.get(source) ?? []), mark]);
  for (const { path, source, page, offset, length } of grounding?.found ?? []) {
    if (page === undefined) add(source, { start: offset, end: offset + length, label: path });
  }
  const strings = stringsOf(input);
  const unseen = citations.filter(([id, citation]) => !mark(id, citation, strings, add));
  return h("div", {},
    [...marks].map(([source, found]) => figure(source, textOf(input, source), found)),
    pages(grounding),
    missing(grounding),
    unseen.length > 0 && h("ul.citations", {}, unseen.map(([id, citation]) => h("li", {}, describe(id, citation)))));
}

function figure(source, text, marks) {
  if (typeof text !== "string") return h("p", {}, h("code", {}, source), ": ", marks.map((one) => one.label).join(", "));
  return h("figure.source", {}, h("figcaption", {}, source), h("blockquote", { tabIndex: 0, dir: "auto" }, marked(text, marks)));
}

/** A text with its marks. Places count characters, which are not the units of a string. */
export function marked(text, marks) {
  const characters = Array.from(text.length > LONG * 10 ? text.slice(0, LONG * 10) : text);
  const parts = [];
  let at = 0;
  for (const { start, end, label } of [...marks].sort((one, other) => one.start - other.start)) {
    if (start < at || end > characters.length) continue;
    parts.push(shortened(characters.slice(at, start).join("")));
    parts.push(h("mark", { title: label }, characters.slice(start, end).join(""), h("sup", {}, label)));
    at = end;
  }
  parts.push(shortened(characters.slice(at).join("")));
  return parts;
}

const shortened = (text) => (text.length > LONG ? `${text.slice(0, LONG / 2)} … ${text.slice(-LONG / 2)}` : text);

/** The string of the input that a path names: `input.text`. */
const textOf = (input, source) => (source.startsWith("input") ? valueAt(input, keysOf(source).slice(1)) : undefined);

function stringsOf(value, path = "input", found = []) {
  if (typeof value === "string") found.push([path, value]);
  else if (isContainer(value) && found.length < 500) {
    const entries = Array.isArray(value) ? value.map((one, at) => [at, one]) : Object.entries(value);
    for (const [key, inner] of entries) stringsOf(inner, member(path, key), found);
  }
  return found;
}

/** Marks the snippet of a citation where the input has it. */
function mark(id, citation, strings, add) {
  const snippet = citation?.location?.text_snippet;
  if (typeof snippet !== "string" || snippet.trim() === "") return false;
  const words = snippet.trim().split(/\s+/).slice(0, 200).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const pattern = new RegExp(words.join("\\s+"), "iu");
  for (const [path, text] of strings) {
    const found = pattern.exec(text);
    if (!found) continue;
    const start = Array.from(text.slice(0, found.index)).length;
    add(path, { start, end: start + Array.from(found[0]).length, label: id });
    return true;
  }
  return false;
}

function describe(id, citation) {
  if (!isContainer(citation)) return h("code", {}, id);
  const { source_name, source_id, url, location } = citation;
  const page = location?.page_number;
  return [h("code", {}, id), " ", String(source_name ?? source_id ?? url ?? ""), page ? `, ${t("page", { n: page })}` : "",
    typeof location?.text_snippet === "string" ? h("q", {}, location.text_snippet) : null];
}

const pages = (grounding) => {
  const found = (grounding?.found ?? []).filter((one) => one.page !== undefined);
  return found.length > 0 && h("ul", {}, found.map((one) => h("li", {}, h("code", {}, one.path), ` ${one.source}, ${t("page", { n: one.page })}`)));
};

const missing = (grounding) => {
  const paths = (grounding?.missing ?? []).map((one) => (isContainer(one) ? one.path : one));
  return paths.length > 0 && h("p.warning", {}, `${t("notInInput")}: `, paths.map((path) => [h("code", {}, String(path)), " "]));
};
