// The list of modules at the left.

import { json, modulePath, workbenchPath } from "./api.js";
import { at, fill, h } from "./dom.js";
import { emit, on, route, state } from "./state.js";
import { number, t } from "./texts.js";

/** Which load is the last one: a slower one before it is left out. */
let turn = 0;

/** Loads the list. */
export async function loadModules() {
  const { modules } = await json("/v1/modules");
  state.modules = modules;
  emit("modules");
}

/** Draws what is shown again. */
let redraw = () => {};

/** Shows the list, and follows what is typed into the search. */
export function showModules() {
  const search = h("input", { id: "search", type: "search", placeholder: t("search"), "aria-label": t("search"), oninput: filter, autocomplete: "off" });
  const list = h("ul", { id: "modules", "aria-label": t("modules") });
  const count = h("p.hint", { role: "status" });
  fill(at("sidebar"), search, count, list);
  /** @type {{element: HTMLElement, text: string}[]} */
  let entries = [];
  draw();

  function draw() {
    entries = state.modules.map((one) => ({ element: entry(one), text: `${one.name} ${one.responsibility ?? ""} ${one.tier ?? ""}`.toLowerCase() }));
    list.replaceChildren(...entries.map((one) => one.element));
    filter();
    mark();
  }

  function filter() {
    const wanted = search.value.trim().toLowerCase();
    let found = 0;
    for (const { element, text } of entries) {
      element.hidden = !text.includes(wanted);
      if (!element.hidden) found += 1;
    }
    count.textContent = entries.length === 0 ? t("noModules") : t("count", { n: number(found), all: number(entries.length) });
  }
  redraw = draw;
}

function entry(module) {
  const result = state.results.get(module.name);
  const facts = [module.tier, module.format, module.error].filter(Boolean).join(" · ");
  return h("li", {}, h("a", { href: `#module=${encodeURIComponent(module.name)}`, "data-module": module.name, onclick: choose },
    h("span.name", {}, module.name),
    result && h(`span.badge.${result.failed > 0 ? "bad" : "good"}`, {}, `${number(result.passed)}/${number(result.passed + result.failed)}`),
    h(module.error ? "span.facts.error" : "span.facts", {}, facts)));
}

function choose(event) {
  if (event.metaKey || event.ctrlKey) return;
  event.preventDefault();
  route.set({ module: event.currentTarget.dataset.module, case: undefined, run: undefined });
}

/** Marks the module that is shown. */
function mark() {
  const { module } = route.get();
  for (const link of at("modules")?.querySelectorAll("a") ?? []) {
    const isShown = link.dataset.module === module;
    if (isShown) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Goes to the next module of the list, or to the one before. */
export function step(by) {
  const links = [...at("modules").querySelectorAll("li:not([hidden]) a")];
  const shown = links.findIndex((link) => link.getAttribute("aria-current"));
  const next = links[Math.min(Math.max(shown + by, 0), links.length - 1)];
  if (!next) return;
  next.click();
  next.scrollIntoView({ block: "nearest" });
}

/** Loads the module of the link. */
export async function loadModule() {
  const { module: name } = route.get();
  const mine = (turn += 1);
  mark();
  if (!name) {
    state.module = state.files = null;
    return emit("module");
  }
  const [module, files] = await Promise.all([
    json(modulePath(name)).catch((problem) => ({ name, problem })),
    state.workbench ? json(workbenchPath(name)).catch(() => null) : null,
  ]);
  // The files of a module that does not load can still be corrected.
  if (module.problem && !files) throw module.problem;
  if (mine !== turn) return;
  state.module = module;
  state.files = files;
  emit("module");
}

/** Loads the files of the module again, after one was written. */
export async function reloadFiles() {
  const name = state.module?.name;
  if (!name || !state.workbench) return;
  const files = await json(workbenchPath(name));
  if (state.module?.name === name) state.files = files;
  emit("files");
}

/** Loads the module again, after its files were written. */
export async function reloadModule() {
  const { name } = state.module;
  const [module] = await Promise.all([json(modulePath(name)).catch((problem) => ({ name, problem })), loadModules()]);
  if (state.module?.name === name) state.module = module;
}

on("modules", () => redraw());
on("results", () => redraw());
on("route", mark);
