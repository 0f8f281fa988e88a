// The workbench: modules at the left, one of them in the middle, its answer at the right.

import { json, onRefused, token } from "./api.js";
import { Answer } from "./answer.js";
import { showCompare } from "./compare.js";
import { at, button, fill, h } from "./dom.js";
import { listen, showHelp } from "./help.js";
import { inputText, showInput } from "./input.js";
import { loadModule, loadModules, reloadModule, showModules, step } from "./modules.js";
import { showOperator } from "./operator.js";
import { bodyOf, Run } from "./run.js";
import { emit, on, remember, route, state } from "./state.js";
import { languageOf, switchLanguage, t } from "./texts.js";
import { saveAsTest, showTests, stopTests } from "./tests.js";
import * as trust from "./trust.js";
import { hasDrafts, showWrite } from "./write.js";

/** The tabs; only the first is there without the workbench's routes. */
const TABS = ["input", "tests", "compare", "trust", "write"];
/** @type {Run|null} */
let running = null;
/** @type {Answer} */
let answer;
let shownTab = "input";
/** @type {string|undefined} */
let shownModule;

const tabs = () => {
  if (!state.workbench) return TABS.slice(0, 1);
  return state.module?.problem ? ["write"] : TABS;
};
const currentTab = () => tabs().find((one) => one === route.get().tab) ?? tabs()[0];

/** Draws everything in the language of the page. */
function draw() {
  document.documentElement.lang = languageOf();
  document.body.classList.add("ready");
  fill(at("header"),
    h("h1", {}, h("a", { href: "/", onclick: home }, "cog")),
    button(t("modules"), () => showList(!document.body.classList.contains("show-modules")), { id: "toggle-modules", "aria-controls": "sidebar" }),
    h("nav", { "aria-label": t("operator") }, h("a", { href: "/docs" }, t("apiReference")),
      button(t("operator"), showOperator, { class: "quiet" }),
      button(t("language"), () => { switchLanguage(); draw(); }, { class: "quiet", lang: languageOf() === "en" ? "zh" : "en" }),
      button("?", showHelp, { class: "quiet", "aria-label": t("help"), "aria-keyshortcuts": "?" })));
  showList(document.body.classList.contains("show-modules"));
  at("sidebar").setAttribute("aria-label", t("modules"));
  showModules();
  if (!running) {
    answer = new Answer(at("answer"), { decide, save: state.workbench?.edit ? saveAsTest : undefined });
    const [last] = state.runs;
    if (last && last.module === state.module?.name) answer.show(last);
  }
  at("answer").setAttribute("aria-label", t("answer"));
  drawModule();
}

/** Shows or hides the list of modules, where there is only one column. */
function showList(isShown) {
  document.body.classList.toggle("show-modules", isShown);
  at("toggle-modules").setAttribute("aria-expanded", String(isShown));
}

function home(event) {
  event.preventDefault();
  route.set({ module: undefined, tab: undefined, case: undefined });
}

/** Shows the module of the link, with its tabs. */
function drawModule() {
  const { module } = state;
  document.title = module ? `${module.name} – cog` : "cog";
  if (!module) return fill(at("module"), h("p.hint.empty", {}, t("chooseModule")));
  const facts = [module.tier ?? module.format, module.version, module.response_mode].filter(Boolean);
  fill(at("module"),
    h("h2", {}, module.name, " ", facts.map((one) => h("span.badge", {}, String(one)))),
    h("p.about", { id: "about", dir: "auto" }, String(module.responsibility ?? "")),
    module.excludes?.length > 0 && h("p.about", { dir: "auto" }, `${t("excludes")}: ${module.excludes.join("; ")}`),
    module.problem && h("p.error", {}, module.problem.message),
    state.workbench && h("div.tabs", { role: "tablist", "aria-label": module.name }, tabs().map(tab)),
    h("div", { id: "panel", ...(state.workbench && { role: "tabpanel", "aria-labelledby": `tab-${currentTab()}` }) }));
  drawTab();
}

function tab(name, place) {
  const isChosen = name === currentTab();
  return h("button", {
    type: "button", role: "tab", id: `tab-${name}`, "aria-selected": String(isChosen), "aria-controls": "panel", tabIndex: isChosen ? 0 : -1,
    onclick: () => openTab(name),
    onkeydown: (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      openTab(tabs()[(place + by + tabs().length) % tabs().length]);
      at(`tab-${currentTab()}`)?.focus();
    },
  }, t(`tab.${name}`));
}

function openTab(name) {
  if (!name) return;
  route.set({ tab: name === "input" ? undefined : name, case: undefined });
}

function drawTab() {
  shownTab = currentTab();
  const panel = at("panel");
  if (!panel) return;
  for (const name of tabs()) {
    const one = at(`tab-${name}`);
    if (!one) continue;
    const isChosen = name === shownTab;
    one.setAttribute("aria-selected", String(isChosen));
    one.tabIndex = isChosen ? 0 : -1;
    if (isChosen) panel.setAttribute("aria-labelledby", one.id);
  }
  panel.replaceChildren();
  switch (shownTab) {
    case "tests": return showTests(panel);
    case "compare": return showCompare(panel, drafted);
    case "trust": return trust.showTrust(panel);
    case "write": return showWrite(panel);
    default: return drawInput(panel);
  }
}
function drawInput(panel) {
  showInput(panel, { run: start, stop });
  buttons();
}

/** The input of the first tab, also while another tab is shown. */
function drafted() {
  if (!at("input")) drawInput(h("div", {}));
  return inputText();
}

function buttons() {
  if (!at("start")) return;
  at("start").disabled = running !== null;
  at("stop").disabled = running === null;
}

/** Runs the module with the input that is shown. */
function start() {
  if (currentTab() === "tests") return at("run-tests")?.click();
  if (currentTab() === "compare") return at("start-compare")?.click();
  if (currentTab() !== "input" || !state.module) return undefined;
  const input = inputText();
  return input === undefined ? undefined : execute(input, bodyOf(input, { response_mode: "streaming", ...state.options }));
}

/** Continues a halted run with what a person decided. */
function decide(halted, decision) {
  const [last] = state.runs;
  const { provider, model } = state.options;
  const options = { response_mode: "streaming", provider, model };
  return execute(last?.input ?? "null", JSON.stringify({ _continue: { id: halted.id, ...decision }, _options: options }));
}

async function execute(input, body) {
  if (running) return;
  showList(false);
  const { name } = state.module;
  const run = new Run(name);
  run.watcher = answer.begin(run);
  running = run;
  buttons();
  // In one column, the answer is below the input.
  if (matchMedia("(max-width: 60rem)").matches) at("answer").scrollIntoView();
  try {
    const envelope = await run.execute(body);
    const done = { module: name, input, envelope, time: Date.now(), session: run.session };
    remember(done);
    answer.show(done);
  } catch (error) {
    if (error.name === "AbortError" || run.isStopped) answer.say(t("stopped"));
    else answer.say(error.message, "error");
  }
  running = null;
  buttons();
}

function stop() {
  stopTests();
  return running?.stop();
}

/** Asks for the token, once the server has refused a request without it. */
function askForToken() {
  if (at("token")) return;
  const input = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
  const form = h("form.token", {
    onsubmit: (event) => {
      event.preventDefault();
      token.set(input.value.trim());
      form.remove();
      load();
    },
  }, h("p", {}, t("tokenHelp")), h("label", { htmlFor: "token" }, t("token")), input, h("button.primary", { type: "submit" }, t("enterToken")));
  at("notice").replaceChildren(form);
  input.focus();
}

/** Loads what the page shows. */
async function load() {
  answer.say(t("loading"));
  try {
    // A server without the workbench answers 404, so that its tabs are left out.
    const [workbench] = await Promise.all([json("/v1/workbench").catch(() => null), loadModules()]);
    state.workbench = workbench;
    answer.actions.save = workbench?.edit ? saveAsTest : undefined;
    answer.say(t("noRun"));
    if (!route.get().module && state.modules.length === 1) route.set({ module: state.modules[0].name });
    await show();
  } catch (error) {
    answer.say(error.message, "error");
  }
}

/** Shows the module of the link. */
async function show() {
  shownModule = route.get().module;
  showList(!shownModule);
  try {
    await loadModule();
  } catch (error) {
    state.module = null;
    drawModule();
    answer.say(error.message, "error");
  }
}

on("module", () => {
  if (!running) {
    answer.clear();
    answer.say(t("noRun"));
  }
  drawModule();
});
on("route", () => {
  if (route.get().module !== shownModule) return show();
  if (currentTab() !== shownTab) drawTab();
  return undefined;
});
on("saved", reloadModule);
addEventListener("popstate", () => {
  const found = route.takeToken();
  if (found !== null) token.set(found);
  emit("route");
});
addEventListener("beforeunload", (event) => hasDrafts() && event.preventDefault());
onRefused(askForToken);
const label = (kind) => () => currentTab() === "trust" && trust.label(kind);
listen({
  "?": showHelp, r: start, run: start, s: stop, j: () => step(1), k: () => step(-1),
  "/": () => { showList(true); at("search").focus(); },
  i: () => { openTab("input"); at("input")?.focus(); },
  ...Object.fromEntries(TABS.map((name, place) => [String(place + 1), () => tabs().includes(name) && openTab(name)])),
  y: label("right"), n: label("wrong"), c: label("corrected"),
});
const given = route.takeToken();
if (given !== null) token.set(given);
draw();
load();
