// Plots of two shares as SVG, made element by element.

import { h, svg } from "./dom.js";
import { number } from "./texts.js";

const SIDE = 260;
const MARGIN = 44;
const GAP = 12;
const STEPS = 5;

/** A plot whose axes are shares: across from 0 to 1, up from the lowest to 1. */
export class Plot {
  constructor(across, up, lowest = 0) {
    this.lowest = lowest;
    const total = MARGIN + SIDE + GAP;
    this.svg = svg("svg", { viewBox: `0 0 ${total} ${total}`, role: "img" });
    for (let step = 0; step <= STEPS; step += 1) {
      const share = step / STEPS;
      const height = lowest + (1 - lowest) * share;
      const [x, y] = this.place(share, height);
      this.svg.append(
        svg("path", { class: "grid", d: `M${x} ${GAP}V${GAP + SIDE}M${MARGIN} ${y}H${MARGIN + SIDE}` }),
        svg("text", { x, y: GAP + SIDE + 15, "text-anchor": "middle" }, number(share)),
        svg("text", { x: MARGIN - 6, y: y + 4, "text-anchor": "end" }, number(height)));
    }
    const middle = MARGIN + SIDE / 2;
    this.svg.append(
      svg("text", { x: middle, y: GAP + SIDE + 34, "text-anchor": "middle" }, across),
      svg("text", { transform: `translate(11 ${GAP + SIDE / 2}) rotate(-90)`, "text-anchor": "middle" }, up));
  }

  place(across, up) {
    const height = Math.min(1, Math.max(0, (up - this.lowest) / (1 - this.lowest)));
    return [MARGIN + across * SIDE, GAP + (1 - height) * SIDE];
  }

  line(kind, points) {
    const d = points.map(([across, up], at) => `${at === 0 ? "M" : "L"}${this.place(across, up).join(" ")}`).join("");
    this.svg.append(svg("path", { class: kind, d }));
    return this;
  }

  point(kind, [across, up], radius, label) {
    const [cx, cy] = this.place(across, up);
    this.svg.append(svg("circle", { class: kind, cx, cy, r: radius }, svg("title", {}, label)));
    return this;
  }

  figure(title, caption) {
    this.svg.setAttribute("aria-label", title);
    return h("figure.plot", {}, h("h3", {}, title), this.svg, h("figcaption", {}, caption));
  }
}
