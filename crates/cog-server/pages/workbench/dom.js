// Creates elements. Every string becomes a text node or an attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Members of an element that are set as properties, because their attributes mean something else. */
const PROPERTIES = new Set(["value", "checked", "disabled", "hidden", "open", "selected", "multiple", "required", "readOnly", "htmlFor", "className", "tabIndex", "scrollTop"]);

/**
 * Creates an element: `h("button.primary", { onclick }, "Run")`.
 * @param {string} tag a name, optionally with classes
 * @param {Object<string, any>} [props] listeners (`onclick`), properties, or attributes; `undefined` and `null` are left out
 * @param {...(Node|string|number|null|undefined|false|Array)} children
 * @returns {any} the element
 */
export function h(tag, props = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length > 0) element.className = classes.join(" ");
  set(element, props);
  append(element, children);
  return element;
}

/**
 * Creates an element of SVG.
 * @param {string} name
 * @param {Object<string, string|number>} [attributes]
 * @param {...(Node|string)} children
 */
export function svg(name, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  element.append(...children);
  return element;
}

/** Sets listeners, properties and attributes. */
export function set(element, props) {
  for (const [key, value] of Object.entries(props)) {
    if (value === undefined || value === null) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (PROPERTIES.has(key)) element[key] = value;
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  return element;
}

/** Appends children; lists are flattened, and what is absent is left out. */
export function append(element, children) {
  for (const child of [children].flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) element.append(typeof child === "number" ? String(child) : child);
  }
  return element;
}

/** Replaces all children. */
export function fill(element, ...children) {
  element.replaceChildren();
  return append(element, children);
}

/** The element with this id. @returns {any} */
export const at = (id) => document.getElementById(id);

/** A button. */
export const button = (label, onclick, props = {}) => h("button", { type: "button", onclick, ...props }, label);

/** A part that opens and closes. */
export function section(title, props, ...children) {
  return h("details.section", { open: true, ...props }, h("summary", {}, title), ...children);
}

/**
 * A dialog that is shown until it is closed, and then removed. The focus returns to where it was.
 * @param {string} title
 * @param {Array} children
 * @param {(close: () => void) => Array} actions
 */
export function dialog(title, children, actions) {
  const element = h("dialog", { "aria-label": title });
  const close = () => element.close();
  append(element, [h("h2", {}, title), children, h("p.actions", {}, actions(close))]);
  element.addEventListener("close", () => element.remove());
  document.body.append(element);
  element.showModal();
  return element;
}

/** Calls a function once after `wait` milliseconds without another call. */
export function debounced(action, wait) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...values), wait);
  };
}

/** Calls a function at most once a frame. */
export function framed(action) {
  let pending = 0;
  return () => {
    pending ||= requestAnimationFrame(() => {
      pending = 0;
      action();
    });
  };
}
