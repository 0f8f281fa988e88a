// One run: its stream, what it says on the way, and its end. A lost connection is taken up after the last chunk that arrived.

import { ApiError, json, lines, modulePath, send, withBody } from "./api.js";
import { envelopeOf, Fold } from "./fold.js";

/** How often a lost connection is taken up again, and how long to wait before each time. */
const WAITS = [500, 1000, 2000, 4000, 8000, 15_000];

/**
 * @typedef {Object} Watcher
 * @property {(meta: any) => void} [meta] the first chunk
 * @property {(field: string) => void} [field] a field changed
 * @property {(progress: any) => void} [progress]
 * @property {(reset: number) => void} [reset] everything was taken back for so many times
 * @property {(lost: {attempt: number, message: string}|null) => void} [connection] the connection was lost; `null`: it is back
 */

export class Run {
  /** @param {string} module @param {Watcher} watcher */
  constructor(module, watcher = {}) {
    this.module = module;
    this.watcher = watcher;
    this.fold = new Fold();
    this.control = new AbortController();
    /** @type {string|undefined} */ this.session = undefined;
    this.isStopped = false;
    this.started = performance.now();
  }

  /**
   * Runs the module with a body of JSON text, and returns the envelope.
   * @param {string} body
   */
  async execute(body) {
    const request = withBody("POST", body, { headers: { Accept: "application/x-ndjson" }, signal: this.control.signal });
    let response = await send(modulePath(this.module, "/execute"), request);
    this.session = response.headers.get("X-Session-Id") ?? undefined;
    if (isEnvelope(response)) return response.json();
    for (let attempt = 0; ; attempt += 1) {
      const before = this.fold.seq;
      try {
        if (attempt > 0) this.watcher.connection?.(null);
        const end = await this.read(response);
        if (end) return end;
        throw new Error("the stream has no end");
      } catch (error) {
        if (this.fold.seq > before) attempt = 0;
        response = await this.again(error, attempt);
        if (isEnvelope(response)) return response.json();
      }
    }
  }

  /** Reads chunks up to the last one, and returns its envelope. */
  async read(response) {
    for await (const chunk of lines(response)) {
      const end = this.take(chunk);
      if (end) return end;
    }
    return undefined;
  }

  take(chunk) {
    if (chunk.final || chunk.ok === false) return envelopeOf(chunk);
    if (chunk.session_id) {
      this.session = chunk.session_id;
      this.watcher.meta?.(chunk);
    } else if (chunk.progress) this.watcher.progress?.(chunk.progress);
    else if (chunk.chunk) {
      const resets = this.fold.resets;
      const field = this.fold.apply(chunk.chunk);
      if (this.fold.resets > resets) this.watcher.reset?.(this.fold.resets);
      if (field) this.watcher.field?.(field);
    }
    return undefined;
  }

  /** Connects again, after some time. @throws what ended the connection, once it has been tried often enough */
  async again(error, attempt) {
    for (let tries = attempt; ; tries += 1) {
      if (error.name === "AbortError" || !this.session || tries >= WAITS.length) throw error;
      this.watcher.connection?.({ attempt: tries + 1, message: error.message });
      await waited(WAITS[tries], this.control.signal);
      try {
        const headers = { Accept: "application/x-ndjson", "Last-Event-ID": `${this.session}:${this.fold.seq}` };
        return await send(`/v1/sessions/${this.session}/events`, { headers, signal: this.control.signal });
      } catch (again) {
        error = again;
      }
    }
  }

  /** Stops the run. Its stream ends with what it has; a run without a session is left. */
  async stop() {
    this.isStopped = true;
    if (!this.session) return this.control.abort();
    try {
      await json(`/v1/sessions/${this.session}`, { method: "DELETE" });
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 410) this.control.abort();
    }
  }
}

const isEnvelope = (response) => (response.headers.get("Content-Type") ?? "").startsWith("application/json");

function waited(time, signal) {
  return new Promise((done, failed) => {
    const timer = setTimeout(done, time);
    signal.addEventListener("abort", () => {
      clearTimeout(timer);
      failed(new DOMException("stopped", "AbortError"));
    }, { once: true });
  });
}

/**
 * The body of an execute request. The input stays the text that a person wrote: numbers keep their digits.
 * @param {string} input @param {Object<string, any>} options
 */
export const bodyOf = (input, options) => `{"input":${input},"_options":${JSON.stringify(options)}}`;

/** Runs a module without a stream, and returns its envelope. */
export async function runOnce(module, input, options, signal) {
  const request = withBody("POST", bodyOf(input, { ...options, response_mode: "sync" }), { headers: { Accept: "application/json" }, signal });
  const response = await send(modulePath(module, "/execute"), request);
  const body = await response.json().catch(() => undefined);
  if (!body) throw new ApiError(response.status, body);
  return body;
}
