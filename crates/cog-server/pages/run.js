// Runs a module and shows the fields of its answer as they arrive.

const at = (id) => document.getElementById(id);
const fields = new Map();
const blobs = [];
let running = null;
let schema = {};

const headers = (more = {}) => {
  const token = at("token").value.trim();
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
};

const describe = (envelope) => {
  const { code, message, suggestion } = envelope.error;
  return `${code}: ${message}${suggestion ? ` (${suggestion})` : ""}`;
};

async function get(path) {
  const response = await fetch(path, { headers: headers() });
  const answer = await response.json();
  if (response.status === 401) at("access").open = true;
  if (!response.ok) throw new Error(describe(answer));
  return answer;
}

function show(text, isError = false) {
  at("state").textContent = text;
  at("state").className = isError ? "error" : "";
}

async function listModules() {
  try {
    const { modules } = await get("/v1/modules");
    const options = modules.filter((module) => !module.error).map((module) => new Option(module.name, module.name));
    at("module").replaceChildren(...options);
    at("module").disabled = at("start").disabled = options.length === 0;
    if (options.length > 0) await showModule();
    else show("No modules found.", true);
  } catch (error) {
    at("module").replaceChildren(new Option("none"));
    show(error.message, true);
  }
}

// Shows another module, without the answer or the error of the one before.
function chooseModule() {
  if (!running) {
    clear();
    show("");
  }
  return showModule();
}

async function showModule() {
  try {
    const module = await get(`/v1/modules/${encodeURIComponent(at("module").value)}`);
    if (module.name !== at("module").value) return;
    at("about").textContent = `${module.responsibility} (${module.tier ?? module.format}, ${module.response_mode})`;
    schema = module.input ?? {};
    at("schema").textContent = JSON.stringify(schema, null, 2);
    at("input").value = JSON.stringify(sample(schema), null, 2);
    at("file").disabled = mediaField() === undefined;
  } catch (error) {
    show(error.message, true);
  }
}

// A minimal input for a schema: the required members, empty.
function sample(schema) {
  const type = Array.isArray(schema.type) ? schema.type[0] : schema.type;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum) return schema.enum[0];
  if (type === "object" || schema.properties) {
    const required = schema.required ?? [];
    return Object.fromEntries(required.map((key) => [key, sample(schema.properties?.[key] ?? {})]));
  }
  if (type === "array") return [];
  if (type === "integer" || type === "number") return schema.minimum ?? 0;
  return type === "boolean" ? false : "";
}

// The member of the input that is a media file, or a list of them.
function mediaField() {
  const isMedia = (part) => JSON.stringify(part ?? null).includes("MediaInput");
  const found = Object.entries(schema.properties ?? {}).find(([, part]) => isMedia(part));
  return found && { key: found[0], isList: found[1].type === "array" };
}

// Uploads the selected file and refers to it in the input.
async function upload() {
  const [file] = at("file").files;
  const value = file && input();
  if (value === undefined) return;
  at("start").disabled = true;
  show(`Uploading ${file.name}…`);
  try {
    const json = headers({ "Content-Type": "application/json" });
    const upload = await send("/v1/media/upload-url", { method: "POST", headers: json, body: "{}" });
    const done = await send(upload.upload_url, { method: upload.method, headers: headers(upload.headers), body: file });
    const source = { type: "upload_ref", upload_id: done.upload_id };
    const { key, isList } = mediaField();
    at("input").value = JSON.stringify({ ...value, [key]: isList ? [...(value[key] ?? []), source] : source }, null, 2);
    show(`Uploaded ${file.name}: ${done.media_type}, ${done.size_bytes} bytes.`);
  } catch (error) {
    show(error.message, true);
  }
  at("file").value = "";
  at("start").disabled = false;
}

async function send(path, request) {
  const response = await fetch(path, request);
  const answer = await response.json();
  if (!response.ok) throw new Error(describe(answer));
  return answer;
}

// Returns the input, or shows why it is not valid.
function input() {
  at("input-error").textContent = "";
  at("input").removeAttribute("aria-invalid");
  try {
    return JSON.parse(at("input").value);
  } catch (error) {
    at("input-error").textContent = `Invalid JSON: ${error.message}`;
    at("input").setAttribute("aria-invalid", "true");
    at("input").focus();
    return undefined;
  }
}

async function run(event) {
  event.preventDefault();
  const value = input();
  if (value === undefined || running) return;
  running = new AbortController();
  clear();
  at("start").disabled = true;
  at("stop").disabled = false;
  show("Running…");
  try {
    await execute(value, running.signal);
  } catch (error) {
    const isStopped = error.name === "AbortError";
    show(isStopped ? "Cancelled." : `The connection was interrupted: ${error.message}`, !isStopped);
  }
  running = null;
  at("start").disabled = false;
  at("stop").disabled = true;
}

async function execute(value, signal) {
  const response = await fetch(`/v1/modules/${encodeURIComponent(at("module").value)}/execute`, {
    method: "POST",
    headers: headers({ "Content-Type": "application/json", Accept: "application/x-ndjson" }),
    body: JSON.stringify({ input: value, _options: { response_mode: "streaming" } }),
    signal,
  });
  if (response.status === 401) at("access").open = true;
  if (response.headers.get("Content-Type").startsWith("application/json")) return end(await response.json());
  let rest = "";
  for await (const text of texts(response.body.pipeThrough(new TextDecoderStream()))) {
    const lines = (rest + text).split("\n");
    rest = lines.pop();
    lines.filter(Boolean).forEach((line) => handle(JSON.parse(line)));
  }
}

async function* texts(stream) {
  const reader = stream.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
}

function handle(chunk) {
  if (chunk.final || chunk.ok === false) return end(chunk);
  if (chunk.meta) return show(chunk.meta.explain);
  if (chunk.progress) return show(chunk.progress.violation?.message ?? chunk.progress.message ?? chunk.progress.stage);
  const { type, field = "data", delta, data } = chunk.chunk;
  if (type === "delta") field_of(field).textContent += delta;
  else if (field === "data") showAll(data);
  else if (field !== "meta") field_of(field).textContent = text(data);
}

// Shows all data and removes what was shown before.
function showAll(data) {
  clear();
  for (const [key, value] of Object.entries(data)) fill(field_of(`data.${key}`), value);
}

function fill(parent, value) {
  parent.textContent = text(value);
  for (const media of mediaOf(value)) showMedia(parent, media);
}

// Returns the media files of a value, at any depth.
function mediaOf(value) {
  if (value === null || typeof value !== "object") return [];
  const isMedia = typeof value.media_type === "string" && (value.type === "url" || value.type === "base64");
  return isMedia ? [value] : Object.values(value).flatMap(mediaOf);
}

// Shows a media file of this server or inside the answer. Nothing is loaded from other hosts.
async function showMedia(parent, { type, media_type, url, data }) {
  const [, tag] = [["image/", "img"], ["audio/", "audio"], ["video/", "video"]].find(([kind]) => media_type.startsWith(kind)) ?? [];
  const path = type === "url" && URL.canParse(url, location) && new URL(url, location).pathname.match(/\/v1\/media\/med_[0-9a-f]+$/)?.[0];
  if (!tag || (type === "url" && !path)) return;
  const element = document.createElement(tag);
  if (tag === "img") element.alt = "Generated by the module";
  else element.controls = true;
  parent.append(element);
  try {
    element.src = path ? await blobAt(path) : `data:${media_type};base64,${data}`;
  } catch (error) {
    element.replaceWith(`The file cannot be shown: ${error.message}`);
  }
}

// Fetches the bytes with the token, which an element cannot send.
async function blobAt(path) {
  const response = await fetch(path, { headers: headers() });
  if (!response.ok) throw new Error(describe(await response.json()));
  blobs.push(URL.createObjectURL(await response.blob()));
  return blobs.at(-1);
}

function end(answer) {
  const isError = answer.ok === false;
  if (!isError) showAll(answer.data);
  at("raw").hidden = false;
  at("end").textContent = format(answer);
  if (isError) return show(describe(answer), true);
  const { confidence, risk, explain, model } = answer.meta;
  const warnings = (answer._warnings ?? []).map((warning) => ` ${warning.code}: ${warning.message}`).join("");
  const danger = typeof risk === "string" ? risk : risk.custom;
  show(`${explain} Confidence ${confidence}, risk ${danger}${model ? `, by ${model}` : ""}.${warnings}`);
}

const text = (value) => (typeof value === "string" ? value : format(value));

// Formats JSON and shortens the bytes of media files.
const format = (value) => JSON.stringify(value, function (key, part) {
  const isBytes = this.type === "base64" && key === "data" && part.length > 80;
  return isBytes ? `${part.slice(0, 60)}… (${part.length} characters)` : part;
}, 2);

function field_of(path) {
  if (!fields.has(path)) {
    const [name, value] = [document.createElement("dt"), document.createElement("dd")];
    name.textContent = path;
    at("fields").append(name, value);
    fields.set(path, value);
  }
  return fields.get(path);
}

function clear() {
  fields.clear();
  blobs.splice(0).forEach((blob) => URL.revokeObjectURL(blob));
  at("fields").replaceChildren();
  at("raw").hidden = true;
}

at("run").addEventListener("submit", run);
at("stop").addEventListener("click", () => running?.abort());
at("module").addEventListener("change", chooseModule);
at("file").addEventListener("change", upload);
at("token").addEventListener("change", listModules);
listModules();
