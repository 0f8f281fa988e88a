// The tab "Write": manifest, prompt and schema, with diagnostics as one types.

import { ApiError, post, put, workbenchPath } from "./api.js";
import { button, debounced, dialog, fill, h } from "./dom.js";
import { lineTable } from "./diff.js";
import { reloadFiles } from "./modules.js";
import { emit, state } from "./state.js";
import { t } from "./texts.js";

const KINDS = ["manifest", "prompt", "schema"];

/** What was typed and not saved, by module. @type {Map<string, Map<string, {text: string, hash: string}>>} */
const drafts = new Map();

/** Whether a module has text that is not saved. */
export const hasDrafts = () => [...drafts.values()].some((of) => of.size > 0);

/** Shows the tab. @param {HTMLElement} element */
export function showWrite(element) {
  const { name } = state.module;
  const files = state.files?.files ?? {};
  const mayEdit = state.workbench.edit && state.files?.editable !== false;
  const own = drafts.get(name) ?? drafts.set(name, new Map()).get(name);
  const editors = KINDS.filter((kind) => typeof files[kind]?.text === "string").map((kind) => editor(kind, files[kind], own, mayEdit, () => check()));
  const problems = h("ul.diagnostics", { "aria-label": t("diagnostics") });

  const check = debounced(async () => {
    const texts = Object.fromEntries(editors.filter((one) => one.text() !== one.saved().text).map((one) => [one.kind, one.text()]));
    try {
      const { diagnostics } = await post(workbenchPath(name, "/check"), { files: texts });
      show(diagnostics ?? []);
    } catch (error) {
      fill(problems, h("li.error", {}, error.message));
    }
  }, 300);

  function show(found) {
    for (const one of editors) one.mark(found.filter((problem) => belongs(problem, one)));
    fill(problems, found.length === 0 && h("li.good", {}, t("noProblems")), found.slice(0, 100).map((problem) => {
      const target = editors.find((one) => belongs(problem, one));
      const where = [problem.file ?? target?.kind, problem.line].filter((part) => part !== undefined).join(":") || problem.path;
      return h("li", { class: problem.severity === "warning" ? "warning" : "error" },
        target && problem.line ? button(String(where), () => target.go(problem.line, problem.column), { class: "link" }) : where && h("code", {}, String(where)),
        " ", h("code", {}, problem.code ?? ""), " ", problem.message, problem.suggestion ? ` ${problem.suggestion}` : "");
    }));
  }

  fill(element, !mayEdit && h("p.hint", {}, t("readOnly"), " ", h("code", {}, "cog serve --workbench --edit")),
    editors.length === 0 && h("p.hint", {}, t("noFiles")),
    KINDS.filter((kind) => files[kind]?.error).map((kind) => h("p.error", {}, h("code", {}, files[kind].path ?? kind), " ", files[kind].error)),
    h("div", { role: "status" }, problems), h("div.editors", {}, editors.map((one) => one.element)));
  check();
}

/** Whether a problem is in this file. */
const belongs = ({ file }, one) => file === one.kind || (typeof file === "string" && one.path.endsWith(file));

function editor(kind, file, own, mayEdit, changed) {
  const { name } = state.module;
  let saved = file;
  const numbers = h("pre.numbers", { "aria-hidden": "true" });
  const area = h("textarea.code", { id: `file-${kind}`, spellcheck: "false", readOnly: !mayEdit, wrap: "off", value: own.get(kind)?.text ?? file.text, rows: Math.min(24, Math.max(6, file.text.split("\n").length + 1)) });
  const status = h("span", { role: "status" });
  const save = button(t("save"), () => confirmSave(), { disabled: true, class: "primary" });
  const revert = button(t("revert"), () => {
    area.value = saved.text;
    typed();
  }, { disabled: true });
  let marked = new Map();

  function number() {
    const lines = area.value.split("\n").length;
    fill(numbers, Array.from({ length: Math.min(lines, 20_000) }, (_, at) => {
      const kind = marked.get(at + 1);
      return kind ? h("span", { class: kind }, `${at + 1}\n`) : `${at + 1}\n`;
    }));
    numbers.scrollTop = area.scrollTop;
  }

  function typed() {
    const isChanged = area.value !== saved.text;
    if (isChanged) own.set(kind, { text: area.value, hash: saved.hash });
    else own.delete(kind);
    save.disabled = revert.disabled = !isChanged || !mayEdit;
    status.textContent = isChanged ? t("unsaved") : "";
    status.className = "hint";
    number();
    changed();
  }

  function confirmSave() {
    dialog(`${t("save")}: ${file.path ?? kind}`, [lineTable(saved.text, area.value)], (close) => [
      button(t("save"), () => { close(); store(); }, { class: "primary" }), button(t("cancel"), close)]);
  }

  async function store() {
    const text = area.value;
    // The hash on which the typing began: a change on disk after it is not overwritten.
    const hash = own.get(kind)?.hash ?? saved.hash;
    try {
      const done = await put(workbenchPath(name, `/files/${kind}`), { text, hash });
      saved = { ...saved, text, hash: done.hash };
      typed();
      status.textContent = t("saved");
      status.className = "good";
      await reloadFiles();
      emit("saved");
    } catch (error) {
      status.textContent = error instanceof ApiError && error.status === 409 ? t("conflict") : error.message;
      status.className = "error";
      if (error.status === 409) await offerReload();
    }
  }

  /** Shows what is on disk now, to take it or to go on typing. */
  async function offerReload() {
    await reloadFiles();
    const now = state.files?.files?.[kind];
    if (!now || state.module?.name !== name) return;
    dialog(t("conflict"), [h("p", {}, t("conflictHelp")), lineTable(now.text, area.value)], (close) => [
      button(t("takeDisk"), () => { saved = now; area.value = now.text; typed(); close(); }),
      button(t("keepMine"), () => { saved = now; own.set(kind, { text: area.value, hash: now.hash }); typed(); close(); }),
      button(t("cancel"), close)]);
  }

  area.addEventListener("input", typed);
  area.addEventListener("scroll", () => (numbers.scrollTop = area.scrollTop));
  area.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      if (!save.disabled) confirmSave();
    }
  });
  if (area.value !== file.text) save.disabled = revert.disabled = !mayEdit;
  number();
  return {
    kind, path: file.path ?? kind, text: () => area.value, saved: () => saved,
    mark: (found) => { marked = new Map(found.filter((one) => one.line).map((one) => [one.line, one.severity === "warning" ? "warning" : "error"])); number(); },
    go: (line, column = 1) => {
      const before = area.value.split("\n").slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
      area.focus();
      area.setSelectionRange(before + column - 1, before + column - 1);
    },
    element: h("section.editor", {}, h("h3", {}, h("label", { htmlFor: `file-${kind}` }, t(`file.${kind}`)), " ", h("code.hint", {}, file.path ?? "")),
      h("div.lines", {}, numbers, area), h("div.toolbar", {}, mayEdit && [save, revert], status)),
  };
}
