// A form made from a JSON Schema. It edits a value, and says what the new value is.

import { button, h } from "./dom.js";
import { define, format, isContainer } from "./path.js";
import { mediaEditor } from "./media.js";
import { alternatives, fit, isMedia, nameOf, resolve, sample, typeOf } from "./schema.js";
import { t } from "./texts.js";

/** Lists with more elements are edited as JSON. */
const LONG = 100;
/** Deeper values are edited as JSON. */
const DEEP = 8;

let count = 0;

/**
 * The fields for a value.
 * @param {{schema: any, root: any, value: any, path: (string|number)[], label: string, required: boolean, change: (value: any) => void}} field
 *   `change` receives the new value; `undefined` if the member is to be absent
 * @returns {HTMLElement}
 */
export function editor(field) {
  const schema = isMedia(field.schema) ? field.schema : resolve(field.schema, field.root);
  const inner = { ...field, schema };
  if (isMedia(schema)) return framed(inner, mediaEditor(inner.value, inner.change));
  if (field.path.length > DEEP) return jsonEditor(inner);
  if (schema.const !== undefined) return labelled(inner, (id) => h("output", { id }, format(schema.const)));
  if (Array.isArray(schema.enum)) return choice(inner);
  const others = alternatives(schema, field.root);
  if (others.length > 1) return oneOf(inner, others);
  if (others.length === 1) return editor({ ...field, schema: others[0] });
  switch (typeOf(schema)) {
    case "object": return schema.properties ? object(inner) : jsonEditor(inner);
    case "array": return Array.isArray(inner.value) && inner.value.length > LONG ? jsonEditor(inner) : list(inner);
    case "boolean": return checkbox(inner);
    case "integer": case "number": return number(inner);
    case "string": return string(inner);
    default: return jsonEditor(inner);
  }
}

/** Where a violation of this field is shown. */
const place = (path) => h("span.error.violation", { "data-path": JSON.stringify(path), role: "alert" });

function labelled(field, control, props = {}) {
  const id = `f${(count += 1)}`;
  return h("div.field", props,
    h("label", { htmlFor: id }, field.label, field.required ? null : h("span.optional", {}, ` ${t("optional")}`)),
    control(id),
    hint(field.schema, id),
    place(field.path));
}

function framed(field, ...children) {
  return h("fieldset.field", {},
    h("legend", {}, field.label, field.required ? null : h("span.optional", {}, ` ${t("optional")}`)),
    hint(field.schema), ...children, place(field.path));
}

const hint = (schema, id) => (typeof schema.description === "string" ? h("p.hint", { id: id && `${id}-hint` }, schema.description) : null);
const described = (schema, id) => (typeof schema.description === "string" ? `${id}-hint` : undefined);

function string(field) {
  const { schema, value } = field;
  const change = (event) => {
    const text = event.target.value;
    field.change(text === "" && !field.required ? undefined : text);
  };
  const isShort = schema.maxLength <= 80 || ["date", "date-time", "time", "email", "uri", "uuid"].includes(schema.format);
  return labelled(field, (id) => {
    const props = { id, value: typeof value === "string" ? value : "", oninput: change, "aria-describedby": described(schema, id), spellcheck: "false" };
    return isShort ? h("input", { ...props, type: schema.format === "date" ? "date" : "text" }) : h(field.required ? "textarea.grow" : "textarea.grow.short", { ...props, rows: "2" });
  });
}

function number(field) {
  const { schema, value } = field;
  const change = (event) => {
    const text = event.target.value;
    if (text === "") field.change(field.required ? null : undefined);
    else field.change(Number(text));
  };
  const step = typeOf(schema) === "integer" ? 1 : "any";
  return labelled(field, (id) => h("input", {
    id, type: "number", step, min: schema.minimum, max: schema.maximum, oninput: change,
    value: typeof value === "number" ? String(value) : "", "aria-describedby": described(schema, id),
  }));
}

function checkbox(field) {
  const id = `f${(count += 1)}`;
  const box = h("input", { id, type: "checkbox", checked: field.value === true, onchange: (event) => field.change(event.target.checked), "aria-describedby": described(field.schema, id) });
  return h("div.field.inline", {}, box, h("label", { htmlFor: id }, field.label), hint(field.schema, id), place(field.path));
}

function choice(field) {
  const { schema, value } = field;
  const values = schema.enum;
  const current = values.findIndex((one) => JSON.stringify(one) === JSON.stringify(value));
  const change = (event) => field.change(event.target.value === "" ? undefined : values[Number(event.target.value)]);
  const options = values.map((one, at) => h("option", { value: String(at), selected: at === current }, typeof one === "string" ? one : format(one)));
  // A value that the list does not have is shown, so that nothing changes unseen.
  const empty = current < 0 || !field.required ? [h("option", { value: "", selected: current < 0 }, value === undefined ? "–" : format(value))] : [];
  return labelled(field, (id) => h("select", { id, onchange: change, "aria-describedby": described(schema, id) }, empty, options));
}

function oneOf(field, others) {
  const { root, value } = field;
  const scores = others.map((one) => fit(value, one));
  let chosen = value === undefined && !field.required ? -1 : scores.indexOf(Math.max(...scores));
  const body = h("div", {});
  const draw = (current) => {
    const inner = (schema) => editor({ ...field, schema, value: current, label: nameOf(schema, chosen), required: true });
    body.replaceChildren(...(chosen < 0 ? [] : [inner(others[chosen])]));
  };
  const change = (event) => {
    chosen = Number(event.target.value);
    const next = chosen < 0 ? undefined : sample(others[chosen], root);
    draw(next);
    field.change(next);
  };
  const options = others.map((one, at) => h("option", { value: String(at), selected: at === chosen }, nameOf(one, at)));
  const none = field.required ? [] : [h("option", { value: "-1", selected: chosen < 0 }, "–")];
  draw(value);
  return framed(field, h("select", { onchange: change, "aria-label": `${field.label}: ${t("kind")}` }, none, options), body);
}

function object(field) {
  const { schema, root, path } = field;
  let current = isContainer(field.value) && !Array.isArray(field.value) ? { ...field.value } : undefined;
  const required = schema.required ?? [];
  const parts = () => Object.entries(schema.properties).map(([key, part]) => editor({
    schema: part, root, path: [...path, key], label: part?.title ?? key, required: required.includes(key),
    value: Object.hasOwn(current, key) ? current[key] : undefined,
    change: (value) => {
      // In the order of the schema, so that the JSON reads as the form does.
      const next = { ...current };
      if (value === undefined) delete next[key];
      else define(next, key, value);
      current = ordered(next, schema.properties);
      field.change(current);
    },
  }));
  if (path.length === 0) {
    current ??= {};
    return h("div.fields", {}, parts());
  }
  const body = h("div.fields", {});
  const toggle = button("", () => {
    current = current === undefined ? sample(schema, root) : undefined;
    draw();
    field.change(current);
  });
  const draw = () => {
    body.replaceChildren(...(current === undefined ? [] : parts()));
    toggle.textContent = current === undefined ? t("add") : t("remove");
    toggle.setAttribute("aria-label", `${toggle.textContent}: ${field.label}`);
  };
  if (field.required) current ??= {};
  draw();
  return framed(field, field.required ? null : toggle, body);
}

function ordered(value, properties) {
  const keys = Object.keys(properties).filter((key) => Object.hasOwn(value, key));
  const others = Object.keys(value).filter((key) => !Object.hasOwn(properties, key));
  const result = {};
  for (const key of [...keys, ...others]) define(result, key, value[key]);
  return result;
}

function list(field) {
  const { root, path, schema } = field;
  let current = Array.isArray(field.value) ? [...field.value] : [];
  const items = isMedia(schema.items) ? schema.items : isContainer(schema.items) ? schema.items : {};
  const body = h("ol.items", {});
  const tell = () => field.change(current.length === 0 && !field.required ? undefined : [...current]);
  const draw = () => body.replaceChildren(...current.map((value, at) => h("li", {},
    editor({
      schema: items, root, path: [...path, at], label: `${field.label} ${at + 1}`, required: true, value,
      change: (next) => {
        current[at] = next;
        tell();
      },
    }),
    button("×", () => {
      current.splice(at, 1);
      draw();
      tell();
      add.focus();
    }, { "aria-label": `${t("remove")}: ${field.label} ${at + 1}`, class: "quiet" }))));
  const add = button(t("addTo", { name: field.label }), () => {
    current.push(sample(items, root));
    draw();
    tell();
    body.lastElementChild?.querySelector("input, textarea, select")?.focus();
  });
  draw();
  return framed(field, body, add);
}

/** Values without a form: JSON, which is taken once it is valid. */
function jsonEditor(field) {
  const error = h("span.error", { role: "alert" });
  const change = (event) => {
    error.textContent = "";
    const text = event.target.value.trim();
    if (text === "") return field.change(undefined);
    try {
      field.change(JSON.parse(text));
    } catch (problem) {
      error.textContent = `${t("invalidJson")}: ${problem.message}`;
    }
  };
  const value = field.value === undefined ? "" : JSON.stringify(field.value, null, 2);
  return labelled(field, (id) => [h("textarea.grow.code", { id, rows: "2", value, oninput: change, spellcheck: "false" }), error]);
}
