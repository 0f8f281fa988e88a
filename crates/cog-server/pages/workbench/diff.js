// Differences: between two values by field, and between two texts by line.

import { h } from "./dom.js";
import { format, leaves } from "./path.js";
import { t } from "./texts.js";

/** The most fields that are compared. */
const FIELDS = 500;

const same = (one, other) => JSON.stringify(one) === JSON.stringify(other);

/**
 * The fields of several values: a path, and each value's member there.
 * @param {any[]} values
 * @returns {{path: string, values: any[], differs: boolean}[]}
 */
export function fields(values, root = "data") {
  const maps = values.map((value) => new Map(value === undefined ? [] : leaves(value, root, FIELDS)));
  const paths = [...new Set(maps.flatMap((map) => [...map.keys()]))];
  return paths.map((path) => {
    const found = maps.map((map) => map.get(path));
    return { path, values: found, differs: found.some((one) => !same(one, found[0])) };
  });
}

/** A value in a cell. */
export const cell = (value) => (value === undefined ? h("span.hint", {}, t("absent")) : typeof value === "string" ? short(value) : format(value));
const short = (text) => (text.length > 2000 ? `${text.slice(0, 2000)}…` : text);

/**
 * A table of fields.
 * @param {string[]} heads the names of the values
 * @param {{path: string, values: any[], differs: boolean}[]} rows
 * @param {{onlyDifferences?: boolean, label?: string}} [options]
 */
export function table(heads, rows, { onlyDifferences = false, label = t("differences") } = {}) {
  const shown = onlyDifferences ? rows.filter((row) => row.differs) : rows;
  if (shown.length === 0) return h("p.hint", {}, t("noDifferences"));
  return h("div.scroll", { tabIndex: 0, role: "region", "aria-label": label }, h("table.compare", {},
    h("thead", {}, h("tr", {}, [t("field"), ...heads].map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, shown.map(({ path, values, differs }) => h(differs ? "tr.differs" : "tr", {},
      h("th", { scope: "row" }, h("code", {}, path), differs ? h("span.sr", {}, ` (${t("differs")})`) : null), values.map((value) => h("td", {}, cell(value))))))));
}

/** Longer texts are compared only where their beginnings and ends differ. */
const LINES = 1500;

/**
 * The lines of two texts: `["=" | "-" | "+", line]`.
 * @param {string} before @param {string} after
 * @returns {[string, string][]}
 */
export function lineDiff(before, after) {
  const [one, other] = [before.split("\n"), after.split("\n")];
  let start = 0;
  while (start < one.length && start < other.length && one[start] === other[start]) start += 1;
  let end = 0;
  while (end < one.length - start && end < other.length - start && one[one.length - 1 - end] === other[other.length - 1 - end]) end += 1;
  const keep = (lines) => lines.map((line) => ["=", line]);
  const middle = changed(one.slice(start, one.length - end), other.slice(start, other.length - end));
  return [...keep(one.slice(0, start)), ...middle, ...keep(one.slice(one.length - end))];
}

/** The longest common lines stay. */
function changed(one, other) {
  if (one.length > LINES || other.length > LINES) return [...one.map((line) => ["-", line]), ...other.map((line) => ["+", line])];
  const width = other.length + 1;
  const longest = new Uint16Array((one.length + 1) * width);
  for (let a = one.length - 1; a >= 0; a -= 1) {
    for (let b = other.length - 1; b >= 0; b -= 1) {
      longest[a * width + b] = one[a] === other[b] ? longest[(a + 1) * width + b + 1] + 1 : Math.max(longest[(a + 1) * width + b], longest[a * width + b + 1]);
    }
  }
  const result = [];
  let [a, b] = [0, 0];
  while (a < one.length || b < other.length) {
    if (a < one.length && b < other.length && one[a] === other[b]) {
      result.push(["=", one[a]]);
      a += 1;
      b += 1;
    } else if (a < one.length && (b === other.length || longest[(a + 1) * width + b] >= longest[a * width + b + 1])) result.push(["-", one[a++]]);
    else result.push(["+", other[b++]]);
  }
  return result;
}

/** The changed lines with three around them. */
export function lineTable(before, after) {
  const all = lineDiff(before, after);
  const near = all.map((_, at) => all.slice(Math.max(0, at - 3), at + 4).some(([kind]) => kind !== "="));
  const rows = all.map(([kind, line], at) => near[at] && h(kind === "=" ? "span.same" : kind === "+" ? "ins" : "del", {}, `${kind === "=" ? " " : kind} ${line}\n`));
  return h("pre.diff", { tabIndex: 0, "aria-label": t("differences") }, rows.some(Boolean) ? rows : t("noDifferences"));
}
