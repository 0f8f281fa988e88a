// The tab "Compare": one input on two to four models, side by side.

import { button, fill, h } from "./dom.js";
import { fields, table } from "./diff.js";
import { riskOf } from "./answer.js";
import { runOnce } from "./run.js";
import { state } from "./state.js";
import { money, number, seconds, t } from "./texts.js";

const MOST = 4;
/** @type {{provider: string, model: string}[]} */
let columns = [];
let running = null;

/** Shows the tab. @param {HTMLElement} element @param {() => (string|undefined)} input the JSON text of the input */
export function showCompare(element, input) {
  const providers = state.workbench.providers.filter((one) => one.configured);
  if (columns.length === 0) columns = [0, 1].map((at) => ({ provider: (providers[at] ?? providers[0])?.name ?? "", model: "" }));
  const choices = h("ol.models", {});
  const status = h("p", { role: "status" });
  const result = h("div", { id: "comparison" });
  const only = h("input", { id: "only", type: "checkbox", onchange: () => draw() });
  /** @type {{column: {provider: string, model: string}, envelope?: any, problem?: string}[]} */
  let answers = [];
  const draw = () => answers.length > 0 && fill(result, comparison(answers, only.checked));

  function drawChoices() {
    fill(choices, columns.map((column, at) => h("li", {},
      h("select", { "aria-label": `${t("provider")} ${at + 1}`, onchange: (event) => (column.provider = event.target.value) },
        h("option", { value: "" }, t("default")), providers.map((one) => h("option", { value: one.name, selected: one.name === column.provider }, one.name))),
      h("input", { "aria-label": `${t("model")} ${at + 1}`, placeholder: providers.find((one) => one.name === column.provider)?.model ?? t("default"), value: column.model, oninput: (event) => (column.model = event.target.value), autocomplete: "off" }),
      columns.length > 2 && button("×", () => { columns.splice(at, 1); drawChoices(); }, { class: "quiet", "aria-label": `${t("remove")} ${at + 1}` }))));
    add.disabled = columns.length >= MOST;
  }

  async function start() {
    const text = input();
    if (text === undefined) return void (status.textContent = t("invalidJson"));
    stop();
    running = new AbortController();
    status.textContent = t("running");
    answers = columns.map((column) => ({ column: { ...column } }));
    draw();
    const { signal } = running;
    const { effort } = state.options;
    await Promise.all(answers.map(async (answer) => {
      const { provider, model } = answer.column;
      const options = { ...(provider && { provider }), ...(model && { model }), ...(effort && { effort }) };
      try {
        answer.envelope = await runOnce(state.module.name, text, options, signal);
      } catch (error) {
        answer.problem = error.name === "AbortError" ? t("stopped") : error.message;
      }
      draw();
    }));
    status.textContent = "";
  }
  const stop = () => running?.abort();
  const add = button(t("add"), () => {
    columns.push({ provider: providers[0]?.name ?? "", model: "" });
    drawChoices();
  });
  fill(element, h("p.hint", {}, t("compareHelp")), choices, add,
    h("div.toolbar", {}, button(t("compare"), start, { class: "primary", id: "start-compare" }), button(t("stop"), stop),
      h("span.inline", {}, only, h("label", { htmlFor: "only" }, t("onlyDifferences")))),
    status, result);
  drawChoices();
}

function comparison(answers, onlyDifferences) {
  const heads = answers.map(({ column, envelope }, at) => (envelope?.meta?.model ?? [column.provider, column.model].filter(Boolean).join("/")) || String(at + 1));
  const facts = (name, value) => ({ path: name, values: answers.map((answer) => (answer.problem ?? (answer.envelope ? value(answer.envelope) : "…"))), differs: false });
  const rows = [
    facts(t("result"), (one) => (one.ok === false ? `${one.error.code}: ${one.error.message}` : t("succeeded"))),
    facts(t("confidence"), (one) => number(one.meta?.confidence)),
    facts(t("risk"), (one) => riskOf(one.meta?.risk)),
    facts(t("price"), ({ meta }) => { const cost = meta?.usage?.cost ?? meta?.cost; return cost ? money(cost.amount, cost.currency) : "–"; }),
    facts(t("time"), ({ meta }) => (meta?.processing_time_ms === undefined ? "–" : seconds(meta.processing_time_ms / 1000))),
  ];
  const data = answers.some((one) => one.envelope) ? fields(answers.map((one) => one.envelope?.data ?? one.envelope?.partial_data)) : [];
  return [table(heads.map(String), rows, { label: t("result") }), data.length > 0 && h("h3", {}, t("data")), data.length > 0 && table(heads.map(String), data, { onlyDifferences })];
}
