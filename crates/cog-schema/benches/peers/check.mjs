// The same answers through JSON.parse and compiled Ajv, compared with the rates that `cargo bench` left.
//
// Run by `cargo xtask bench`, or by hand after `cargo bench -p cog-schema`, with NODE_PATH to where ajv is.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { performance } from "node:perf_hooks";

const Ajv = createRequire(import.meta.url)("ajv").default;
const read = (path) => readFileSync(new URL(path, import.meta.url), "utf8");
// How many times as fast as this peer ours must be.
const LEAST = { envelope: 1.8 };

/** Checks a second, the best of many rounds. */
function rate(validate, text) {
  let best = 0;
  for (let round = 0; round < 100; round++) {
    const start = performance.now();
    let count = 0;
    while (performance.now() - start < 10) {
      for (let i = 0; i < 16; i++) {
        if (!validate(JSON.parse(text))) throw new Error("the answer should fit");
      }
      count += 16;
    }
    best = Math.max(best, (count * 1000) / (performance.now() - start));
  }
  return best;
}

const validate = new Ajv({ strict: false }).compile(JSON.parse(read("../data/envelope.schema.json")));
const ours = JSON.parse(read("../../../../target/bench/cog-schema.json"));
for (const name of ["answer", "envelope"]) {
  const theirs = rate(validate, read(`../data/${name}.json`));
  const ratio = ours[name] / theirs;
  const least = LEAST[name];
  const verdict = least === undefined ? "" : ` (at least ${least}: ${ratio >= least ? "kept" : "NOT KEPT"})`;
  if (least !== undefined && ratio < least) process.exitCode = 1;
  console.log(`${name}: JSON.parse with Ajv ${theirs.toFixed(0)}/s, ours ${ratio.toFixed(2)} times that${verdict}`);
}
