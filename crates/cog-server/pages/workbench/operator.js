// A quiet page for the operator: what `/metrics` counts, with the rate since the page was opened.

import { send } from "./api.js";
import { button, dialog, fill, h } from "./dom.js";
import { number, seconds, t } from "./texts.js";

const EVERY = 2000;
const LINE = /^([a-zA-Z_:][\w:]*)(\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?\s+(\S+)/;

/** The samples of a text in OpenMetrics. @returns {Map<string, number>} */
export function samples(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    const match = line.startsWith("#") ? null : LINE.exec(line);
    if (match && !/_(bucket|created)$/.test(match[1])) found.set(match[1] + (match[2] ?? ""), Number(match[3]));
  }
  return found;
}

/** Opens the page. */
export function showOperator() {
  const status = h("p", { role: "status" });
  const body = h("tbody", {});
  const table = h("div.scroll", { tabIndex: 0, role: "region", "aria-label": t("metrics") }, h("table", {},
    h("thead", {}, h("tr", {}, [t("metric"), t("value"), t("rate")].map((head, place) => h(place > 0 ? "th.figure" : "th", { scope: "col" }, head)))), body));
  const element = dialog(t("operator"), [h("p.hint", {}, t("operatorHelp")), status, table], (close) => [button(t("close"), close)]);
  element.classList.add("wide");
  let before;
  const read = async () => {
    try {
      const response = await send("/metrics");
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      const now = { at: performance.now(), values: samples(await response.text()) };
      fill(body, [...now.values].map(([name, value]) => h("tr", {}, h("th", { scope: "row" }, h("code", {}, name)), h("td.figure", {}, number(value)), h("td.figure", {}, rate(name, value, before, now)))));
      status.textContent = "";
      before ??= now;
    } catch (error) {
      status.textContent = error.message;
      status.className = "error";
    }
  };
  const timer = setInterval(read, EVERY);
  element.addEventListener("close", () => clearInterval(timer));
  read();
}

/** The increase of a counter a second. */
function rate(name, value, before, now) {
  const first = before?.values.get(name);
  if (first === undefined || !/_(total|count|sum)(\{|$)/.test(name) || now.at === before.at) return "–";
  return t("perSecond", { n: number((value - first) / ((now.at - before.at) / 1000)), span: seconds((now.at - before.at) / 1000) });
}
