// The keyboard, and the dialog that lists its keys.

import { button, dialog, h } from "./dom.js";
import { t } from "./texts.js";

const KEY = "cog.shortcuts";
const isOn = () => localStorage.getItem(KEY) !== "off";

/** @type {[string[], string][]} */
const KEYS = [
  [["?"], "help"], [["r"], "run"], [["Ctrl", "Enter"], "confirm"], [["s"], "stop"], [["j", "k"], "next"], [["/"], "search"],
  [["i"], "editInput"], [["1", "…", "5"], "tabs"], [["y", "n", "c"], "label"],
];

/** Shows the keys. */
export function showHelp() {
  const box = h("input", { id: "shortcuts", type: "checkbox", checked: isOn(), onchange: (event) => localStorage.setItem(KEY, event.target.checked ? "on" : "off") });
  dialog(t("help"), [
    h("dl.facts", {}, KEYS.map(([keys, name]) => [h("dt", {}, keys.map((key) => [h("kbd", {}, key), " "])), h("dd", {}, t(`key.${name}`))])),
    h("p.inline", {}, box, h("label", { htmlFor: "shortcuts" }, t("shortcuts"))),
  ], (close) => [button(t("close"), close, { class: "primary" })]);
}

/**
 * Calls the action of each key. Keys without a modifier act only where nothing is typed.
 * @param {Object<string, () => void>} actions
 */
export function listen(actions) {
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      return actions.run();
    }
    if (event.ctrlKey || event.metaKey || event.altKey || !isOn()) return;
    if (event.target instanceof Element && event.target.closest("input:not([type=checkbox]), textarea, select")) return;
    const action = Object.hasOwn(actions, event.key) ? actions[event.key] : undefined;
    if (!action) return;
    event.preventDefault();
    action();
  });
}
