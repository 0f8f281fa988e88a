// The tab "Tests": the golden cases with their results, and the difference to what they expect.

import { ApiError, post, stream, workbenchPath } from "./api.js";
import { at, button, dialog, fill, h } from "./dom.js";
import { fields, table } from "./diff.js";
import { format, isContainer } from "./path.js";
import { options } from "./input.js";
import { reloadFiles } from "./modules.js";
import { emit, on, route, state } from "./state.js";
import { money, number, percent, seconds, t } from "./texts.js";

/** The last result of each case, by module. */
const results = new Map();
/** How a verdict is coloured; one that says nothing about the answer is not. */
const KINDS = { passed: "good", failed: "bad", error: "bad" };
const resultsOf = (name) => results.get(name) ?? results.set(name, new Map()).get(name);
/** @type {AbortController|null} */
let running = null;

export function stopTests() {
  running?.abort();
}

/** Draws what is shown again. */
let redraw = () => {};

/** Shows the tab. @param {HTMLElement} element */
export function showTests(element) {
  const { name } = state.module;
  const status = h("p", { role: "status" });
  const bar = h("progress", { hidden: true, max: 1, value: 0, "aria-label": t("progress") });
  const list = h("ul.cases", {});
  const detail = h("div", { id: "case" });
  const stop = button(t("stop"), stopTests, { disabled: true });
  const start = (cases) => run(name, cases, { status, bar, stop, draw });
  fill(element,
    h("div.toolbar", {}, button(t("runAll"), () => start(), { class: "primary", id: "run-tests" }), stop), options(), h("p.hint", {}, t("testsHelp")), bar, status, list, detail);
  draw();

  function draw() {
    if (state.module?.name !== name || !list.isConnected) return;
    const cases = state.files?.cases ?? [];
    const chosen = route.get().case;
    const focused = list.contains(document.activeElement) ? document.activeElement.id : "";
    fill(list, cases.length === 0 && h("li.hint", {}, t("noCases")), cases.map((one) => row(one, resultsOf(name).get(one.name), one.name === chosen, start)));
    if (focused) at(focused)?.focus();
    const shown = cases.find((one) => one.name === chosen);
    fill(detail, shown && details(shown, resultsOf(name).get(shown.name)));
  }
  redraw = draw;
}

function row(one, result, isChosen, start) {
  const verdict = result?.verdict ?? (result?.passed ? "passed" : "failed");
  const kind = result === undefined ? "" : KINDS[verdict] ?? "";
  const words = result === undefined ? t("notRun") : t(`verdict.${verdict}`, {}, verdict);
  return h("li", {},
    h(`span.badge${kind && `.${kind}`}`, {}, words),
    h("a", { id: `case-${one.name}`, href: `#module=${encodeURIComponent(state.module.name)}&tab=tests&case=${encodeURIComponent(one.name)}`, "aria-current": isChosen ? "true" : undefined,
      onclick: (event) => { event.preventDefault(); route.set({ case: one.name }); } }, one.name),
    h("span.hint", {}, result && [seconds(result.seconds), costOf(result)].filter(Boolean).join(" · ")),
    button(t("run"), () => start([one.name]), { id: `run-${one.name}`, class: "quiet", "aria-label": `${t("run")}: ${one.name}` }));
}

const costOf = ({ cost }) => (typeof cost === "number" ? money(cost, "USD") : cost?.amount === undefined ? "" : money(cost.amount, cost.currency));

function details(one, result) {
  const expected = one.expected;
  const got = result?.envelope?.data ?? result?.envelope?.partial_data;
  // Rules about an answer have no data to compare with.
  const wanted = expected?.data;
  const isCompared = got !== undefined && isContainer(wanted);
  const failures = result?.failures ?? [];
  return [
    h("h3", {}, one.name),
    failures.length > 0 && h("ul.error", {}, failures.map((failure) => h("li", {}, typeof failure === "string" ? failure : [h("code", {}, failure.path ?? ""), " ", failure.message ?? format(failure)]))),
    isCompared && table([t("expected"), t("got")], fields([wanted, got])),
    !isCompared && [h("h4", {}, t("expected")), h("pre", { tabIndex: 0 }, format(expected ?? null))],
    !isCompared && got !== undefined && [h("h4", {}, t("got")), h("pre", { tabIndex: 0 }, format(got))],
    h("h4", {}, t("input")), h("pre", { tabIndex: 0 }, format(one.input ?? null)),
  ];
}

async function run(name, cases, { status, bar, stop, draw }) {
  if (running) return;
  running = new AbortController();
  const all = cases?.length ?? state.files?.cases?.length ?? 0;
  stop.disabled = false;
  bar.hidden = false;
  bar.max = all || 1;
  bar.value = 0;
  status.className = "";
  status.textContent = t("running");
  const { provider, model } = state.options;
  let done = 0;
  try {
    for await (const line of stream(workbenchPath(name, "/tests"), { cases, provider, model }, running.signal)) {
      if (line.case) {
        resultsOf(name).set(line.case.name, line.case);
        done += 1;
        bar.value = done;
        status.textContent = t("count", { n: number(done), all: number(all) });
        draw();
      } else if (line.summary) summarize(line.summary, status);
      else if (line.error) throw new ApiError(500, line);
    }
  } catch (error) {
    status.textContent = error.name === "AbortError" ? t("stopped") : error.message;
    status.className = error.name === "AbortError" ? "" : "error";
  }
  running = null;
  stop.disabled = true;
  bar.hidden = true;
  const values = [...resultsOf(name).values()];
  const failed = values.filter((one) => KINDS[one.verdict ?? "failed"] === "bad" && !one.passed).length;
  state.results.set(name, { passed: values.filter((one) => one.passed).length, failed });
  emit("results");
}

function summarize({ passed, failed, errors = 0, interval }, status) {
  if (passed + failed + errors === 0) {
    status.textContent = t("noAnswers");
    status.className = "";
    return;
  }
  const share = Array.isArray(interval) ? ` (${percent(interval[0])} – ${percent(interval[1])})` : "";
  status.textContent = `${t("summary", { passed: number(passed), failed: number(failed), errors: number(errors) })}${share}`;
  status.className = failed + errors > 0 ? "error" : "good";
}

/** Asks for a name, and saves a run as a golden case. @param {{module: string, input: string, envelope: any}} run */
export function saveAsTest(run) {
  const name = h("input", { id: "test-name", pattern: "[a-z0-9\\-]{1,60}", required: true, autocomplete: "off", value: "" });
  const error = h("p.error", { role: "alert" });
  const save = async (close) => {
    error.textContent = "";
    if (!name.reportValidity()) return;
    try {
      const body = `{"name":${JSON.stringify(name.value)},"input":${run.input},"envelope":${JSON.stringify(run.envelope)}}`;
      await post(workbenchPath(run.module, "/cases"), body);
      await reloadFiles();
      close();
      if (state.module?.name === run.module) route.set({ tab: "tests", case: name.value });
    } catch (problem) {
      error.textContent = problem.message;
    }
  };
  dialog(t("saveTest"), [h("p", {}, t("saveTestHelp")), h("label", { htmlFor: "test-name" }, t("name")), name, error],
    (close) => [button(t("save"), () => save(close), { class: "primary" }), button(t("cancel"), close)]);
  name.focus();
}

on("route", () => redraw());
on("files", () => redraw());
