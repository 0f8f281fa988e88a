// Requests to this server, with the token of this tab.

const KEY = "cog.token";

/** An error that the server reports: its code, message and suggestion. */
export class ApiError extends Error {
  /** @param {number} status @param {any} body */
  constructor(status, body) {
    const { code, message, suggestion } = body?.error ?? { message: `HTTP ${status}` };
    super(`${code ? `${code}: ` : ""}${message}${suggestion ? ` (${suggestion})` : ""}`);
    this.status = status;
    this.body = body;
    this.code = code;
  }
}

/** The token of this tab; it is stored until the tab is closed. */
export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/** What is called after a response with the status 401. */
let refused = () => {};
/** @param {() => void} action */
export const onRefused = (action) => (refused = action);

const headers = (more = {}) => (token.get() ? { ...more, Authorization: `Bearer ${token.get()}` } : more);

/**
 * Sends a request and returns the response, whatever its status is.
 * @param {string} path
 * @param {RequestInit} [request]
 */
export async function send(path, request = {}) {
  const response = await fetch(path, { ...request, headers: headers(request.headers) });
  if (response.status === 401) refused();
  return response;
}

/** Returns the JSON of a response. @throws {ApiError} */
export async function json(path, request) {
  const response = await send(path, request);
  const body = await response.json().catch(() => undefined);
  if (!response.ok) throw new ApiError(response.status, body);
  return body;
}

/** A request with a JSON body. */
export const withBody = (method, body, more = {}) => ({
  ...more,
  method,
  headers: { "Content-Type": "application/json", ...more.headers },
  body: typeof body === "string" ? body : JSON.stringify(body),
});

export const post = (path, body, more) => json(path, withBody("POST", body, more));
export const put = (path, body) => json(path, withBody("PUT", body));

/** The path of a module. */
export const modulePath = (name, rest = "") => `/v1/modules/${encodeURIComponent(name)}${rest}`;
export const workbenchPath = (name, rest = "") => `/v1/workbench/modules/${encodeURIComponent(name)}${rest}`;

/**
 * The values of a response in NDJSON, as they arrive. Blank lines are keep-alives.
 * @param {Response} response
 */
export async function* lines(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = [];
  try {
    for (let read = await reader.read(); !read.done; read = await reader.read()) {
      // A line can be long: its parts are joined once it is complete.
      const parts = read.value.split("\n");
      if (parts.length > 1) {
        yield* parsed([rest.join("") + parts[0]]);
        yield* parsed(parts.slice(1, -1));
        rest = [];
      }
      rest.push(parts.at(-1));
    }
    yield* parsed([rest.join("")]);
  } finally {
    reader.cancel().catch(() => {});
  }
}

function* parsed(texts) {
  for (const text of texts) if (text.trim()) yield JSON.parse(text);
}

/**
 * The values of a streamed answer to a POST request.
 * @throws {ApiError}
 */
export async function* stream(path, body, signal) {
  const request = withBody("POST", body, { headers: { Accept: "application/x-ndjson" }, signal });
  const response = await send(path, request);
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => undefined));
  yield* lines(response);
}

/** Uploads a file; returns what refers to it in an input, and what the server found. */
export async function upload(file) {
  const created = await post("/v1/media/upload-url", {});
  const done = await json(created.upload_url, { method: created.method, headers: created.headers, body: file });
  return { source: { type: "upload_ref", upload_id: done.upload_id }, done };
}

const MEDIA = /\/v1\/media\/med_[0-9a-f]+$/;

/** The path of a media file of this server, or `undefined`. Nothing is loaded from other hosts. */
export const mediaPathOf = (url) => (URL.canParse(url, location.href) ? new URL(url, location.href).pathname.match(MEDIA)?.[0] : undefined);

/** The bytes of a media file of this server. An element cannot send the token. */
export async function mediaAt(path) {
  const response = await send(path);
  if (!response.ok) throw new ApiError(response.status, await response.json().catch(() => undefined));
  return response.blob();
}
