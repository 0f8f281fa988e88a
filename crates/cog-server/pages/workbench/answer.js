// The answer: what a run says while it goes on, and its envelope as a card.

import { post, workbenchPath } from "./api.js";
import { at, button, fill, framed, h, section } from "./dom.js";
import { sources } from "./highlight.js";
import { format, isContainer, keysOf } from "./path.js";
import { state } from "./state.js";
import { dateTime, money, number, percent, seconds, t } from "./texts.js";
import { Tree } from "./tree.js";

/** The most lines of what happened. */
const EVENTS = 500;

/** The answer of one run, in the panel at the right. */
export class Answer {
  /** @param {HTMLElement} element @param {{save?: (run: any) => void, decide?: (halted: any, decision: any) => void}} actions */
  constructor(element, actions = {}) {
    this.element = element;
    this.actions = actions;
    this.status = h("p", { id: "state", role: "status" }, t("noRun"));
    this.earlier = h("select", { id: "earlier", "aria-label": t("sessionRuns"), hidden: true, onchange: () => this.show(state.runs[Number(this.earlier.value)]) });
    this.body = h("div", {});
    fill(element, this.earlier, this.status, this.body);
    this.clear();
  }

  clear() {
    this.tree = new Tree((path) => this.violations.get(path), false);
    this.violations = new Map();
    this.events = [];
    this.log = h("ol.events", {});
    this.dirty = new Set();
    /** The parts of a composition with their states, by path. */
    this.parts = new Map();
    this.body.replaceChildren();
    this.listRuns();
  }

  /** Lists the runs of this tab, to show one again. @param {any} [shown] */
  listRuns(shown) {
    const own = state.runs.map((run, place) => ({ run, place })).filter(({ run }) => run.module === state.module?.name);
    this.earlier.hidden = own.length < 2;
    fill(this.earlier, own.map(({ run, place }) => h("option", { value: String(place), selected: run === shown },
      `${dateTime(run.time)} · ${run.envelope.ok === false ? run.envelope.error.code : number(run.envelope.meta?.confidence)}`)));
  }

  say(text, kind = "") {
    this.status.textContent = text;
    this.status.className = kind;
  }

  /** Prepares for a run that begins now; returns what watches it. */
  begin(run) {
    this.clear();
    this.run = run;
    this.say(t("running"));
    const draw = framed(() => this.draw());
    this.bar = h("progress", { max: 100, "aria-label": t("progress") });
    this.partList = h("ol.parts", {});
    fill(this.body, this.bar, this.partList, this.tree.element, section(t("events"), { open: false }, this.log));
    return {
      meta: (chunk) => {
        if (chunk.resumed) this.note(t("resumed"));
        for (const one of chunk._warnings ?? []) this.note(`${one.code}: ${one.message}`, "warning");
      },
      field: (field) => {
        this.dirty.add(field);
        draw();
      },
      progress: (told) => this.progressed(told),
      reset: (n) => {
        this.violations.clear();
        this.note(t("reset", { n }), "warning");
        this.say(t("reset", { n }));
      },
      connection: (lost) => {
        const text = lost ? t("lost", { n: lost.attempt, why: lost.message }) : t("connected");
        this.note(text, lost ? "warning" : "");
        this.say(text, lost ? "warning" : "");
      },
    };
  }

  /** Shows the fields that have changed since the last frame. */
  draw() {
    const value = this.run?.fold.data;
    if (this.run === undefined || value === undefined) return;
    if (this.dirty.has("data") || !isContainer(value)) this.tree.show(value);
    else for (const field of this.dirty) this.tree.update(value, field, keysOf(field));
    this.dirty.clear();
  }

  progressed({ percent: share, stage, message, tool, violation, part }) {
    if (typeof share === "number" && this.bar) this.bar.value = share;
    if (violation) {
      this.violations.set(violation.path, "violated");
      this.dirty.add("data");
      this.note(`${violation.path}: ${violation.message}`, "error");
      return;
    }
    if (part?.status) this.showPart(part);
    const text = [part?.path, tool, message ?? part?.status ?? (tool ? t("calling") : t(`stage.${stage}`, {}, stage))].filter(Boolean).join(": ");
    if (part?.delta !== undefined || text === this.last) return;
    this.last = text;
    this.note(text);
    this.say(text);
  }

  /** Shows the new state of a part. */
  showPart({ path, status }) {
    const badge = this.parts.get(path) ?? h("span.badge", {});
    badge.textContent = String(status);
    if (this.parts.has(path) || this.parts.size >= EVENTS) return;
    this.parts.set(path, badge);
    this.partList.append(h("li", {}, h("code", {}, path), " ", badge));
  }

  /** Adds a line to what happened. */
  note(text, kind = "") {
    if (this.log.childElementCount >= EVENTS) this.log.firstElementChild.remove();
    this.log.append(h("li", { class: kind || undefined }, h("time", {}, seconds((performance.now() - (this.run?.started ?? performance.now())) / 1000)), " ", text));
  }

  /**
   * Shows the envelope of a run.
   * @param {{module: string, input: string, envelope: any}} run
   */
  show(run) {
    const { envelope } = run;
    this.listRuns(run);
    const meta = envelope.meta ?? {};
    const data = envelope.ok === false ? envelope.partial_data : envelope.data;
    this.violations = violationsOf(envelope);
    this.run = undefined;
    this.tree = new Tree((path) => this.violations.get(path), true);
    const summary = envelope.ok === false ? `${envelope.error.code}: ${envelope.error.message}` : t("answered", { confidence: number(meta.confidence), risk: riskOf(meta.risk) });
    this.say(summary, envelope.ok === false ? "error" : "");
    if (data !== undefined) this.tree.show(data);
    fill(this.body,
      card(envelope),
      envelope.ok === false && failure(envelope.error),
      envelope.error?.details?.halted && this.halted(envelope.error.details.halted),
      warnings(envelope._warnings),
      data !== undefined && section(envelope.ok === false ? t("partial") : t("data"), { id: "fields" }, this.tree.element),
      this.sources(run),
      repairs(meta.repairs ?? envelope.error?.details?.repairs),
      evidence(meta.evidence),
      parts(meta.parts),
      costs(meta),
      this.log.childElementCount > 0 && section(t("events"), { open: false }, this.log),
      this.messages(run),
      raw(envelope),
      this.actions.save && envelope.ok !== false && h("p.actions", {}, button(t("saveTest"), () => this.actions.save(run))));
  }

  sources(run) {
    let input;
    try {
      input = JSON.parse(run.input);
    } catch {
      return null;
    }
    const found = sources(run.envelope, input);
    return found ? section(t("sources"), {}, found) : null;
  }

  /** What waits for a person, who confirms or denies it. */
  halted(halted) {
    const answer = h("input", { id: "confirm", autocomplete: "off", size: 6 });
    const decide = (decision) => this.actions.decide?.(halted, decision);
    return h("section.halted", { "aria-label": t("halted") },
      h("h3", {}, t("halted")), h("p", {}, t("haltedCall"), " ", h("code", {}, halted.tool)),
      h("pre", { tabIndex: 0 }, format(halted.arguments)),
      h("form.inline", { onsubmit: (event) => { event.preventDefault(); decide({ confirm: answer.value }); } },
        h("label", { htmlFor: "confirm" }, t("typeYes")), answer,
        h("button", { type: "submit" }, t("confirm")), button(t("deny"), () => decide({ deny: true }))));
  }

  /** The messages as the model receives them; asked for when they are opened. */
  messages(run) {
    if (!state.workbench) return null;
    const body = h("div", {});
    const element = section(t("messages"), { open: false }, body);
    element.addEventListener("toggle", async () => {
      if (!element.open || body.hasChildNodes()) return;
      try {
        const { provider, model } = state.options;
        const shown = await post(workbenchPath(run.module, "/render"), `{"input":${run.input}${provider ? `,"provider":${JSON.stringify(provider)}` : ""}${model ? `,"model":${JSON.stringify(model)}` : ""}}`);
        fill(body, rendered(shown));
      } catch (error) {
        fill(body, h("p.error", {}, error.message));
      }
    });
    return element;
  }
}

function rendered({ messages = [], schema, lost = [] }) {
  return [
    messages.map((message) => [h("h3", {}, String(message.role ?? "")), h("pre", { tabIndex: 0 }, textOf(message.content ?? message))]),
    lost.length > 0 && [h("h3", {}, t("lostParts")), h("ul", {}, lost.map((one) => h("li", {}, typeof one === "string" ? one : format(one))))],
    isContainer(schema) && [h("h3", {}, t("schemaSent")), h("pre", { tabIndex: 0 }, format(schema))],
  ];
}

const textOf = (content) => (typeof content === "string" ? content : format(content));

export const riskOf = (risk) => (typeof risk === "string" ? t(`risk.${risk}`, {}, risk) : (risk?.custom ?? "–"));

/**
 * Whether it succeeded, the risk, and the confidence with what is known of it.
 * @param {{ok: boolean, meta?: any}} envelope
 */
export function card({ ok, meta = {} }) {
  const { confidence, risk, explain, model, confidence_source: source, calibration, gate } = meta;
  const level = typeof risk === "string" ? risk : "custom";
  return h("div.card", {},
    h("p.badges", {},
      h(`span.badge.${ok === false ? "bad" : "good"}`, {}, ok === false ? t("failed") : t("succeeded")),
      risk !== undefined && h(`span.badge.risk-${["none", "low", "medium", "high"].includes(level) ? level : "custom"}`, {}, `${t("risk")}: ${riskOf(risk)}`),
      gate && h(`span.badge.${gate.passed ? "good" : "bad"}`, {}, gate.passed ? t("gatePassed", { share: percent(gate.accuracy) }) : t("gateFailed", { share: percent(gate.accuracy) })),
      model && h("span.badge", {}, String(model))),
    typeof confidence === "number" && ok !== false && h("p.confidence", {},
      h("meter", { min: 0, max: 1, value: confidence, "aria-label": t("confidence") }),
      ` ${t("confidence")} `, h("strong", {}, number(confidence)), " ",
      h("span.hint", {}, t(`source.${source ?? "stated"}`, {}, source),
        calibration && [", ", t("calibration", { cases: number(calibration.cases), share: percent(calibration.accuracy), low: percent(calibration.interval?.[0]), high: percent(calibration.interval?.[1]) })],
        calibration?.stale && h("strong.warning", {}, ` ${t("stale")}`))),
    explain && h("p.explain", { dir: "auto" }, String(explain)),
    isContainer(risk) && risk.reason && h("p", {}, String(risk.reason)));
}

function failure(error) {
  const violations = Array.isArray(error.details?.violations) ? error.details.violations : [];
  if (!error.suggestion && violations.length === 0) return null;
  return h("section.failure", { "aria-label": t("failed") },
    error.suggestion && h("p", {}, String(error.suggestion)),
    violations.length > 0 && h("ul", {}, violations.slice(0, 200).map((one) => h("li", {}, h("code", {}, String(one.path ?? one.field ?? "")), " ", String(one.message ?? one.rule ?? format(one))))));
}

function violationsOf({ error }) {
  const found = Array.isArray(error?.details?.violations) ? error.details.violations : [];
  return new Map(found.map((one) => [String(one.path ?? one.field), "violated"]));
}

const warnings = (found = []) => found.length > 0 && h("ul.warnings", { "aria-label": t("warnings") }, found.map((one) => h("li.warning", {}, h("code", {}, one.code), " ", one.message)));

const repairs = (found) => Array.isArray(found) && found.length > 0 && section(t("repairs", { n: found.length }), {},
  h("div.scroll", { tabIndex: 0, role: "region", "aria-label": t("repairs", { n: found.length }) }, h("table", {},
    h("thead", {}, h("tr", {}, [t("field"), t("rule"), t("before"), t("after")].map((head) => h("th", { scope: "col" }, head)))),
    h("tbody", {}, found.map(({ rule, path, before, after }) => h("tr", {}, [h("code", {}, path || "–"), rule, before === undefined ? "–" : format(before), after === undefined ? "–" : format(after)].map((one) => h("td", {}, one))))))));

const evidence = (found) => isContainer(found) && section(t("evidence"), { open: false },
  h("dl.facts", {}, Object.entries(found).map(([name, one]) => [h("dt", {}, name), h("dd", {}, isContainer(one) ? (one.value === undefined ? format(one) : number(one.value)) : String(one))])));

const parts = (found) => Array.isArray(found) && section(t("parts"), {},
  h("ol.parts", {}, found.map((part) => h("li", {}, h("code", {}, String(part.path)), " ", String(part.module ?? ""), " ", h("span.badge", {}, String(part.status ?? ""))))));

function costs(meta) {
  const usage = meta.usage ?? {};
  const cost = meta.cost ?? usage.cost;
  const rows = [
    [t("time"), meta.processing_time_ms === undefined ? undefined : seconds(meta.processing_time_ms / 1000)],
    [t("price"), isContainer(cost) ? money(cost.amount, cost.currency) : undefined],
    [t("attempts"), meta.attempts],
    [t("tokensIn"), usage.input_tokens], [t("tokensOut"), usage.output_tokens], [t("cached"), usage.cached_input_tokens], [t("reasoning"), usage.reasoning_tokens],
    [t("fallbacks"), Array.isArray(meta.fallbacks) && meta.fallbacks.length > 0 ? meta.fallbacks.map((one) => (isContainer(one) ? [one.provider, one.code ?? one.reason].filter(Boolean).join(": ") : one)).join(", ") : undefined],
    [t("cache"), meta.cache?.hit ? t("fromCache") : undefined], [t("trace"), meta.trace_id],
  ].filter(([, value]) => value !== undefined);
  return rows.length > 0 && section(t("costs"), {}, h("dl.facts", {}, rows.map(([name, value]) => [h("dt", {}, name), h("dd", {}, typeof value === "number" ? number(value) : String(value))])));
}

/** The envelope as JSON, written when it is opened. */
function raw(envelope) {
  const text = h("pre", { id: "end", tabIndex: 0 });
  const copy = button(t("copy"), async () => {
    await navigator.clipboard.writeText(JSON.stringify(envelope, null, 2));
    copy.textContent = t("copied");
  });
  const element = section("JSON", { id: "raw", open: false }, copy, text);
  element.addEventListener("toggle", () => {
    if (!element.open || text.hasChildNodes()) return;
    const all = format(envelope);
    text.textContent = all.length > 200_000 ? `${all.slice(0, 200_000)}…` : all;
  });
  return element;
}

/** The panel of the answer. */
export const panel = () => at("answer");
