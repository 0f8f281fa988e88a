// The tab "Trust": logged runs to label, how far the confidence can be trusted, and what the log says about the module.

import { json, post, workbenchPath } from "./api.js";
import { card } from "./answer.js";
import { Plot } from "./charts.js";
import { button, fill, h, section } from "./dom.js";
import { format } from "./path.js";
import { state } from "./state.js";
import { dateTime, number, percent, t } from "./texts.js";

/** The most runs of the queue. */
const RUNS = 200;
/** Labels the run that is shown; a key calls it. @type {(label: string) => void} */
export let label = () => {};

/** Shows the tab. @param {HTMLElement} element */
export async function showTrust(element) {
  const { name } = state.module;
  const queue = h("section", { "aria-label": t("queue") });
  const charts = h("section", { "aria-label": t("calibrationOf") });
  const insights = h("section", { "aria-label": t("insights") });
  fill(element, h("h3", {}, t("queue")), queue, h("h3", {}, t("calibrationOf")), charts, h("h3", {}, t("insights")), insights);
  label = () => {};
  await Promise.all([
    load(queue, showQueue(queue, name)),
    load(charts, json(workbenchPath(name, "/trust")).then(({ calibration }) => fill(charts, plots(calibration)))),
    load(insights, json(workbenchPath(name, "/insights")).then((found) => fill(insights, proposals(found)))),
  ]);
}

/** Shows an error where the part would be. */
const load = (element, part) => part.catch((error) => fill(element, h("p.hint", {}, error.message)));

async function showQueue(element, name) {
  const { runs } = await json(`/v1/workbench/runs?module=${encodeURIComponent(name)}&limit=${RUNS}`);
  const waiting = runs.filter((run) => !run.label);
  let shown = 0;
  const error = h("p.error", { role: "alert" });

  const give = async (kind, data, note) => {
    const run = waiting[shown];
    if (!run) return;
    error.textContent = "";
    try {
      await post(`/v1/workbench/runs/${encodeURIComponent(run.id)}/label`, { label: kind, ...(data !== undefined && { data }), ...(note && { note }) });
      run.label = kind;
      waiting.splice(shown, 1);
      shown = Math.min(shown, Math.max(0, waiting.length - 1));
      draw();
    } catch (problem) {
      error.textContent = problem.message;
    }
  };

  /** Shows a run. A long list has no contents, so they are fetched. */
  async function draw() {
    let run = waiting[shown];
    if (run && run.envelope === undefined && !run.isWhole) {
      Object.assign(run, await json(`/v1/workbench/runs/${encodeURIComponent(run.id)}`).catch(() => ({})), { isWhole: true });
      run = waiting[shown];
    }
    if (!run) return fill(element, h("p.hint", {}, runs.length === 0 ? t("noLogs") : t("allLabelled", { n: number(runs.length) })));
    const note = h("input", { id: "note", autocomplete: "off" });
    const data = h("textarea.code", { id: "corrected", rows: 6, spellcheck: "false", value: JSON.stringify(run.envelope?.data ?? run.envelope?.partial_data ?? {}, null, 2) });
    const correct = () => {
      try {
        return give("corrected", JSON.parse(data.value), note.value);
      } catch (problem) {
        error.textContent = `${t("invalidJson")}: ${problem.message}`;
        return undefined;
      }
    };
    label = (kind) => (kind === "corrected" ? correct() : give(kind, undefined, note.value));
    return fill(element,
      h("div.toolbar", {}, h("span", {}, t("count", { n: number(shown + 1), all: number(waiting.length) })),
        button("‹", () => { shown = Math.max(0, shown - 1); draw(); }, { "aria-label": t("previous") }),
        button("›", () => { shown = Math.min(waiting.length - 1, shown + 1); draw(); }, { "aria-label": t("next") }),
        h("time.hint", {}, dateTime(run.time))),
      h("div.input", {},
        h("div", {}, h("h4", {}, t("input")), h("pre", { tabIndex: 0 }, run.input === undefined ? "–" : clipped(format(run.input)))),
        h("div", {}, h("h4", {}, t("answer")),
          run.envelope === undefined ? h("p.hint", {}, t("notLogged")) : [card(run.envelope), h("pre", { tabIndex: 0 }, clipped(format(run.envelope.data ?? run.envelope.error ?? null)))])),
      h("label", { htmlFor: "note" }, t("note")), note,
      h("div.toolbar", {},
        button(t("label.right"), () => label("right"), { class: "primary", "aria-keyshortcuts": "y" }),
        button(t("label.wrong"), () => label("wrong"), { "aria-keyshortcuts": "n" })),
      section(t("label.corrected"), { open: false }, h("label", { htmlFor: "corrected" }, t("rightData")), data, button(t("label.corrected"), correct)),
      error);
  }
  await draw();
}

const clipped = (text) => (text.length > 20_000 ? `${text.slice(0, 20_000)}…` : text);

/** @param {any} stored a calibration with the report of `cog calibrate`, or `null` */
function plots(stored) {
  const calibration = stored && { ...stored.report, ...stored };
  if (!calibration) return h("p.hint", {}, t("noCalibration"), " ", h("code", {}, "cog calibrate"));
  const bins = calibration.reliability ?? [];
  const curve = calibration.risk_coverage ?? [];
  const most = Math.max(1, ...bins.map((bin) => bin.cases));
  const reliability = new Plot(t("statedConfidence"), t("rightAnswers")).line("perfect", [[0, 0], [1, 1]]);
  for (const { stated, accuracy, cases, interval } of bins) {
    if (interval) reliability.line("interval", [[stated, interval[0]], [stated, interval[1]]]);
    reliability.point("dot", [stated, accuracy], 3 + 4 * Math.sqrt(cases / most), `${percent(accuracy)}, ${number(cases)}`);
  }
  const { gate } = calibration;
  const lowest = Math.min(1, ...curve.map((point) => point.accuracy), gate?.target ?? 1);
  const coverage = new Plot(t("acceptedAnswers"), t("rightOfAccepted"), [0.9, 0.75, 0.5].find((start) => start < lowest) ?? 0);
  if (gate?.target) coverage.line("target", [[0, gate.target], [1, gate.target]]);
  coverage.line("curve", curve.map((point) => [point.accepted, point.accuracy]));
  for (const { threshold, accepted, accuracy } of curve) coverage.point("dot", [accepted, accuracy], 2.5, `${number(threshold)}: ${percent(accepted)}, ${percent(accuracy)}`);
  return [
    h("dl.facts", {}, [
      [t("model"), [calibration.provider, calibration.model].filter(Boolean).join("/")],
      [t("cases"), calibration.cases === undefined ? undefined : number(typeof calibration.cases === "object" ? calibration.cases.cases : calibration.cases)],
      [t("accuracy"), calibration.accuracy === undefined ? undefined : percent(calibration.accuracy)],
      [t("threshold"), gate ? (gate.threshold === null ? t("noThreshold", { n: number(gate.needed) }) : number(gate.threshold)) : undefined],
      [t("state"), calibration.stale ? `${t("stale")}: ${calibration.stale}` : undefined],
    ].filter(([, value]) => value).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
    h("div.plots", {}, bins.length > 0 && reliability.figure(t("reliability"), t("reliabilityHelp")), curve.length > 0 && coverage.figure(t("riskCoverage"), t("riskCoverageHelp"))),
  ];
}

function proposals({ proposals: found = [], runs = 0 }) {
  if (found.length === 0) return h("p.hint", {}, t("noInsights", { n: number(runs) }));
  return h("ol", {}, found.map(({ kind, path, value, count, cases, share, reasons = [] }) => h("li", {},
    h("span.badge", {}, t(`insight.${kind}`, {}, kind)), " ", h("code", {}, path ?? ""), " ", value === undefined ? null : h("code", {}, format(value)),
    " ", t("insightCount", { n: number(count), all: number(cases), share: percent(share) }),
    reasons.length > 0 && h("ul", {}, reasons.map((reason) => h("li.hint", {}, String(reason)))))));
}
