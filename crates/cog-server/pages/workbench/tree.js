// A value as a tree. A container creates its members when it is opened, and a long one opens in ranges, so that an array of
// 100,000 elements costs as much as one of 100.

import { button, h } from "./dom.js";
import { isContainer, member } from "./path.js";
import { mediaElement, mediaOf } from "./media.js";
import { number, t } from "./texts.js";

/** The most members that are listed at once. */
const RANGE = 100;
/** Strings are cut here. */
const SHORT = 1200;
/** How much of a string one click shows. */
const MORE = 50_000;
/** Containers with more members, or deeper, are closed at first. */
const OPEN = 20;
const DEEP = 3;

export class Tree {
  /**
   * @param {(path: string) => (string|undefined)} mark the class of a field, such as `violated`
   * @param {boolean} isComplete whether the value is complete: media are shown only then
   */
  constructor(mark, isComplete) {
    this.isComplete = isComplete;
    this.element = h("div.tree", {});
    this.mark = mark;
    /** Whether a container is open, by path, where a person has decided. */
    this.open = new Map();
    /** The text of a string that is shown, by path. */
    this.strings = new Map();
    this.top = new Map();
  }

  /** Shows a value. What a person opened stays open. */
  show(value, root = "data") {
    this.value = value;
    this.root = root;
    this.strings.clear();
    this.top.clear();
    this.element.replaceChildren(...this.members(value, root, 0));
  }

  /**
   * Shows what changed at a field while an answer arrives: a text grows in its place, and of anything else the member of the
   * root that contains it is drawn again.
   */
  update(value, path, keys) {
    const node = this.strings.get(path);
    const text = keys.slice(1).reduce((inner, key) => inner?.[key], value);
    if (node && typeof text === "string") {
      if (node.length < SHORT) node.data = text.slice(0, SHORT);
      return;
    }
    const [, key] = keys;
    const shown = this.top.get(key);
    if (!shown || value !== this.value || Array.isArray(value)) return this.show(value, this.root);
    const fresh = this.row(key, value[key], member(this.root, key), 0);
    shown.replaceWith(fresh);
    this.top.set(key, fresh);
  }

  members(value, path, depth) {
    if (!isContainer(value)) return [this.row("", value, path, depth)];
    if (Array.isArray(value)) return this.range(value, path, 0, value.length, depth);
    const keys = Object.keys(value);
    const rows = (from, to) => keys.slice(from, to).map((key) => this.row(key, value[key], member(path, key), depth));
    return this.ranges(path, 0, keys.length, rows);
  }

  range(value, path, from, to, depth) {
    const rows = (start, end) => value.slice(start, end).map((one, at) => this.row(start + at, one, member(path, start + at), depth));
    return this.ranges(path, from, to, rows);
  }

  /** Rows, or parts that open to fewer rows. */
  ranges(path, from, to, rows) {
    const count = to - from;
    if (count <= RANGE) return rows(from, to);
    let step = RANGE;
    while (count / step > RANGE) step *= RANGE;
    const parts = [];
    for (let start = from; start < to; start += step) {
      const end = Math.min(start + step, to);
      const name = `${number(start)} … ${number(end - 1)}`;
      parts.push(this.details(`${path}:${start}-${end}`, [h("span.key", {}, name)], start === from && count <= 10 * RANGE, () => this.ranges(path, start, end, rows)));
    }
    return parts;
  }

  row(key, value, path, depth) {
    const name = h("span.key", {}, String(key));
    const kind = this.mark(path);
    const row = isContainer(value) && Object.keys(value).length > 0 ? this.container(name, value, path, depth) : this.leaf(name, value, path);
    row.dataset.path = path;
    if (kind) row.classList.add(kind);
    if (depth === 0) this.top.set(key, row);
    return row;
  }

  container(name, value, path, depth) {
    const count = Array.isArray(value) ? value.length : Object.keys(value).length;
    const size = h("span.hint", {}, Array.isArray(value) ? ` [${number(count)}]` : ` {${number(count)}}`);
    const media = this.isComplete && mediaOf([value]).includes(value) && mediaElement(value);
    const row = this.details(path, [name, size], !media && count <= OPEN && depth < DEEP, () => this.members(value, path, depth + 1));
    return media ? h("div.row", {}, row, media) : row;
  }

  details(path, summary, isOpen, content) {
    const body = h("div.members", {});
    const element = h("details.row", { open: this.open.get(path) ?? isOpen }, h("summary", {}, summary), body);
    let drawn = false;
    const draw = () => {
      if (element.open && !drawn) body.append(...content());
      drawn ||= element.open;
    };
    draw();
    element.addEventListener("toggle", () => {
      this.open.set(path, element.open);
      draw();
    });
    return element;
  }

  leaf(name, value, path) {
    if (typeof value !== "string") {
      const text = isContainer(value) ? (Array.isArray(value) ? "[]" : "{}") : String(value);
      return h("div.row.leaf", {}, name, h(`span.value.${value === null ? "null" : typeof value}`, {}, text));
    }
    const node = document.createTextNode(value.slice(0, SHORT));
    this.strings.set(path, node);
    const shown = h("span.value.string", { dir: "auto" }, node);
    const row = h("div.row.leaf", {}, name, shown);
    if (value.length > SHORT) {
      const more = button(t("showMore", { n: number(value.length - SHORT) }), () => {
        node.data = value.slice(0, node.length + MORE);
        if (node.length >= value.length) more.remove();
        else more.textContent = t("showMore", { n: number(value.length - node.length) });
      }, { class: "quiet" });
      row.append(more);
    }
    return row;
  }
}
