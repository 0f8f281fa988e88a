// What the page shows, and the link to it: `#module=…&tab=…&case=…`.

/**
 * @typedef {Object} Workbench what `GET /v1/workbench` answers
 * @property {boolean} edit
 * @property {boolean} logs
 * @property {{name: string, model?: string, configured: boolean}[]} providers
 *
 * @typedef {Object} Run a run of this tab
 * @property {string} module
 * @property {string} input the JSON text that was sent
 * @property {any} envelope
 * @property {number} time
 * @property {string} [session]
 */

/** How many runs of this tab are kept. */
const RUNS = 50;

export const state = {
  /** @type {any[]} the entries of `GET /v1/modules` */ modules: [],
  /** @type {any} what `GET /v1/modules/{name}` answers */ module: null,
  /** @type {Workbench|null} */ workbench: null,
  /** @type {any} what `GET /v1/workbench/modules/{name}` answers */ files: null,
  /** @type {Run[]} newest first */ runs: [],
  /** @type {Object<string, any>} provider, model, effort, evidence */ options: {},
  /** @type {Map<string, {passed: number, failed: number}>} the last test results by module */ results: new Map(),
};

const listeners = new Map();

/** Calls `action` whenever `name` is emitted. */
export const on = (name, action) => listeners.set(name, [...(listeners.get(name) ?? []), action]);
/** Tells that something changed: `modules`, `module`, `files`, `runs`, `input`, `route`, `language`, `results`. */
export const emit = (name, value) => (listeners.get(name) ?? []).forEach((action) => action(value));

/** Keeps a run of this tab. */
export function remember(run) {
  state.runs.unshift(run);
  state.runs.length = Math.min(state.runs.length, RUNS);
  emit("runs");
}

/** The link of the address bar. */
export const route = {
  /** @returns {Object<string, string>} */
  get: () => Object.fromEntries(new URLSearchParams(location.hash.slice(1))),
  /** Changes members of the link; `undefined` removes one. */
  set(changes) {
    const all = new URLSearchParams(location.hash.slice(1));
    for (const [key, value] of Object.entries(changes)) value === undefined ? all.delete(key) : all.set(key, value);
    const hash = `#${all}`;
    if (hash === (location.hash || "#")) return;
    history.pushState(null, "", `${location.pathname}${hash}`);
    emit("route");
  },
  /** Moves a token from the link to this tab, and takes it out of the address bar and the history. */
  takeToken() {
    const all = new URLSearchParams(location.hash.slice(1));
    const found = all.get("token");
    const query = new URLSearchParams(location.search).get("module");
    if (query && !all.has("module")) all.set("module", query);
    all.delete("token");
    if (found !== null || query !== null) history.replaceState(null, "", `${location.pathname}#${all}`);
    return found;
  },
};
