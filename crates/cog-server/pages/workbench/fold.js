// Adds up the chunks of a stream.

import { keysOf, setAt, valueAt } from "./path.js";

/** The answer so far. Applying every chunk in order gives the data of the last one. */
export class Fold {
  constructor() {
    /** @type {any} */ this.data = undefined;
    /** The number of the last delta or snapshot. */
    this.seq = 0;
    /** How often everything was taken back. */
    this.resets = 0;
  }

  /**
   * Applies a delta or snapshot, and returns its field; `data` for all of it. One that was applied before changes nothing.
   * @param {{seq: number, type: string, field?: string, delta?: string, data?: any}} chunk
   */
  apply({ seq, type, field = "data", delta, data }) {
    if (seq <= this.seq) return undefined;
    this.seq = seq;
    const keys = keysOf(field);
    if (keys[0] !== "data") return undefined;
    const inner = keys.slice(1);
    if (type === "delta") this.data = setAt(this.data, inner, (valueAt(this.data, inner) ?? "") + delta);
    else {
      if (inner.length === 0 && this.data !== undefined && isEmpty(data)) this.resets += 1;
      this.data = setAt(this.data, inner, data);
    }
    return field;
  }
}

const isEmpty = (value) => value !== null && typeof value === "object" && Object.keys(value).length === 0;

/** The envelope that the last chunk of a stream contains. */
export function envelopeOf(chunk) {
  if (chunk.ok === false) {
    const { streaming, session_id, ...rest } = chunk;
    return rest;
  }
  const { final, usage, ...rest } = chunk;
  return { ok: true, ...rest, meta: usage ? { ...rest.meta, usage } : rest.meta };
}
