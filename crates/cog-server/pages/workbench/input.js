// The tab "Input": a form and its JSON, each following the other, examples, options, and the buttons that run and stop.

import { json, post, workbenchPath } from "./api.js";
import { button, debounced, fill, h, section } from "./dom.js";
import { editor } from "./form.js";
import { keysOf } from "./path.js";
import { resolve, sample, typeOf } from "./schema.js";
import { emit, on, route, state } from "./state.js";
import { dateTime, t } from "./texts.js";

const EFFORTS = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
const EVIDENCE = ["grounding", "agreement=3", "judge", "logprob"];
/** A longer input is edited as JSON only. */
const LONG = 200_000;

/** The input that was typed last, by module. */
const drafts = new Map();

/** The input as JSON text, or `undefined` after showing why it is not valid. */
export let inputText = () => undefined;
/** Lists the examples again. */
let drawExamples = () => {};

/**
 * Shows the tab.
 * @param {HTMLElement} element @param {{run: () => void, stop: () => void}} actions
 */
export function showInput(element, actions) {
  const { module } = state;
  const schema = module.input ?? {};
  const raw = h("textarea.code", { id: "input", rows: 12, spellcheck: "false", "aria-describedby": "input-error", oninput: typed });
  const error = h("p.error", { id: "input-error", role: "alert" });
  const form = h("form", { id: "form", autocomplete: "off", onsubmit: (event) => event.preventDefault() });
  const diagnostics = h("ul.diagnostics", { id: "diagnostics", "aria-label": t("diagnostics") });

  const check = debounced(async () => {
    if (!state.workbench || state.module !== module) return;
    try {
      const { diagnostics: found } = await post(workbenchPath(module.name, "/check"), `{"input":${raw.value}}`);
      show(found ?? []);
    } catch {
      show([]);
    }
  }, 250);

  function show(found) {
    for (const place of form.querySelectorAll(".violation")) place.textContent = "";
    const rest = found.filter((one) => {
      const keys = keysOf(String(one.path ?? ""));
      const path = JSON.stringify(keys[0] === "input" ? keys.slice(1) : keys);
      const place = one.path && [...form.querySelectorAll(".violation")].find((field) => field.dataset.path === path);
      if (place) place.textContent = one.message;
      return !place;
    });
    fill(diagnostics, rest.slice(0, 50).map((one) => h("li", { class: one.severity === "warning" ? "warning" : "error" }, one.path && [h("code", {}, one.path), " "], one.message, one.suggestion ? ` ${one.suggestion}` : "")));
  }

  function parse() {
    error.textContent = "";
    raw.removeAttribute("aria-invalid");
    try {
      return { value: JSON.parse(raw.value) };
    } catch (problem) {
      error.textContent = `${t("invalidJson")}: ${problem.message}`;
      raw.setAttribute("aria-invalid", "true");
      return undefined;
    }
  }

  function typed() {
    drafts.set(module.name, raw.value);
    const parsed = parse();
    if (!parsed) return show([]);
    drawForm(parsed.value);
    check();
    return undefined;
  }

  function drawForm(value) {
    if (raw.value.length > LONG) return fill(form, h("p.hint", {}, t("longInput")));
    return fill(form, editor({ schema, root: schema, value, path: [], label: t("input"), required: true, change: changed }));
  }

  function changed(value) {
    raw.value = JSON.stringify(value ?? null, null, 2);
    drafts.set(module.name, raw.value);
    parse();
    check();
  }

  function use(text) {
    raw.value = text;
    typed();
  }

  inputText = () => {
    if (parse()) return raw.value;
    raw.focus();
    return undefined;
  };

  fill(element,
    h("div.toolbar", {},
      button(t("run"), actions.run, { id: "start", class: "primary", "aria-keyshortcuts": "r Control+Enter" }),
      button(t("stop"), actions.stop, { id: "stop", disabled: true, "aria-keyshortcuts": "s" }),
      examples(use)),
    options(),
    h("div.input", {},
      h("div", {}, h("h3", {}, t("form")), form),
      h("div", {}, h("h3", {}, h("label", { htmlFor: "input" }, "JSON")), raw, error, diagnostics,
        section(t("inputSchema"), { open: false }, h("pre", { id: "schema", tabIndex: 0 }, JSON.stringify(schema, null, 2))))));
  const wanted = route.get().case;
  const given = state.files?.cases?.find((one) => one.name === wanted)?.input;
  if (given !== undefined) return use(JSON.stringify(given, null, 2));
  if (drafts.has(module.name)) return use(drafts.get(module.name));
  // Nobody has typed anything yet, so nothing is reported.
  raw.value = JSON.stringify(typeOf(resolve(schema, schema)) ? sample(schema, schema) : {}, null, 2);
  return drawForm(parse().value);
}

/** The golden inputs, the runs of this tab, and the logged ones, to pick from. */
function examples(use) {
  const select = h("select", { id: "examples", "aria-label": t("examples") });
  const found = [];
  const group = (label, all) => all.length > 0 && h("optgroup", { label }, all.map(({ name, input }) => {
    found.push(input);
    return h("option", { value: String(found.length - 1) }, name);
  }));
  const { name } = state.module;
  let logged = [];
  const draw = () => {
    found.length = 0;
    const cases = (state.files?.cases ?? []).filter((one) => one.input !== undefined);
    const own = state.runs.filter((run) => run.module === name);
    fill(select, h("option", { value: "" }, t("examples")),
      group(t("goldenTests"), cases.map((one) => ({ name: one.name, input: JSON.stringify(one.input, null, 2) }))),
      group(t("sessionRuns"), own.map((run) => ({ name: dateTime(run.time), input: run.input }))),
      group(t("loggedRuns"), logged.map((run) => ({ name: dateTime(run.time), input: JSON.stringify(run.input, null, 2) }))));
    select.hidden = found.length === 0;
  };
  select.addEventListener("change", () => {
    if (select.value !== "") use(found[Number(select.value)]);
    select.value = "";
  });
  draw();
  drawExamples = draw;
  if (state.workbench?.logs) {
    json(`/v1/workbench/runs?module=${encodeURIComponent(name)}&limit=20`).then(({ runs }) => {
      logged = runs.filter((run) => run.input !== undefined);
      draw();
    }, () => {});
  }
  return select;
}

/** Provider, model, effort and evidence of the next run. */
export function options() {
  const { options: chosen } = state;
  const change = (key) => (event) => {
    if (event.target.value) chosen[key] = event.target.value;
    else delete chosen[key];
    emit("options");
  };
  const field = (key, label, control) => h("div.field", {}, h("label", { htmlFor: `option-${key}` }, label), control);
  const text = (key, label, list) => field(key, label, h("input", { id: `option-${key}`, value: chosen[key] ?? "", placeholder: t("default"), onchange: change(key), list: list && `list-${key}`, autocomplete: "off" }));
  const select = (key, label, values) => field(key, label, h("select", { id: `option-${key}`, onchange: change(key) },
    h("option", { value: "" }, t("default")), values.map((one) => h("option", { value: one, selected: chosen[key] === one }, one))));
  const providers = state.workbench?.providers;
  const named = providers?.filter((one) => one.configured) ?? [];
  return section(t("options"), { open: false, id: "options" }, h("div.grid", {},
    providers ? select("provider", t("provider"), named.map((one) => one.name)) : text("provider", t("provider")),
    text("model", t("model"), true), h("datalist", { id: "list-model" }, named.filter((one) => one.model).map((one) => h("option", { value: one.model }))),
    select("effort", t("effort"), EFFORTS),
    select("evidence", t("evidence"), EVIDENCE)));
}

on("runs", () => drawExamples());
on("files", () => drawExamples());
