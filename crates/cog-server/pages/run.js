// Runs a module and shows its answer field by field.

const at = (id) => document.getElementById(id);
const fields = new Map();
const blobs = [];
let running = null;
let schema = {};

const headers = (more = {}) => {
  const token = at("token").value.trim();
  return token ? { ...more, Authorization: `Bearer ${token}` } : more;
};

const fault = (envelope) => {
  const { code, message, suggestion } = envelope.error;
  return `${code}: ${message}${suggestion ? ` (${suggestion})` : ""}`;
};

async function get(path) {
  const response = await fetch(path, { headers: headers() });
  const answer = await response.json();
  if (response.status === 401) at("access").open = true;
  if (!response.ok) throw new Error(fault(answer));
  return answer;
}

function say(text, isFault = false) {
  at("state").textContent = text;
  at("state").className = isFault ? "fault" : "";
}

async function listModules() {
  try {
    const { modules } = await get("/v1/modules");
    const options = modules.filter((module) => !module.error).map((module) => new Option(module.name, module.name));
    at("module").replaceChildren(...options);
    at("module").disabled = at("start").disabled = options.length === 0;
    if (options.length > 0) await showModule();
    else say("There is no module to run.", true);
  } catch (error) {
    at("module").replaceChildren(new Option("none"));
    say(error.message, true);
  }
}

async function showModule() {
  try {
    const module = await get(`/v1/modules/${encodeURIComponent(at("module").value)}`);
    if (module.name !== at("module").value) return;
    at("about").textContent = `${module.responsibility} (${module.tier ?? module.format}, ${module.response_mode})`;
    schema = module.input ?? {};
    at("schema").textContent = JSON.stringify(schema, null, 2);
    at("input").value = JSON.stringify(sample(schema), null, 2);
    at("file").disabled = mediaPlace() === undefined;
  } catch (error) {
    say(error.message, true);
  }
}

// Something of the schema's shape to begin with: what is required, empty.
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

// The member of the input that is a medium, or a list of them.
function mediaPlace() {
  const isMedium = (part) => JSON.stringify(part ?? null).includes("MediaInput");
  const found = Object.entries(schema.properties ?? {}).find(([, part]) => isMedium(part));
  return found && { key: found[0], isList: found[1].type === "array" };
}

// Uploads the chosen file, and has the input refer to it.
async function upload() {
  const [file] = at("file").files;
  const value = file && input();
  if (value === undefined) return;
  at("start").disabled = true;
  say(`Uploading ${file.name}…`);
  try {
    const json = headers({ "Content-Type": "application/json" });
    const place = await send("/v1/media/upload-url", { method: "POST", headers: json, body: "{}" });
    const done = await send(place.upload_url, { method: place.method, headers: headers(place.headers), body: file });
    const source = { type: "upload_ref", upload_id: done.upload_id };
    const { key, isList } = mediaPlace();
    at("input").value = JSON.stringify({ ...value, [key]: isList ? [...(value[key] ?? []), source] : source }, null, 2);
    say(`Uploaded ${file.name}: ${done.media_type}, ${done.size_bytes} bytes.`);
  } catch (error) {
    say(error.message, true);
  }
  at("file").value = "";
  at("start").disabled = false;
}

async function send(path, request) {
  const response = await fetch(path, request);
  const answer = await response.json();
  if (!response.ok) throw new Error(fault(answer));
  return answer;
}

// The input, or nothing and a word why.
function input() {
  at("input-fault").textContent = "";
  at("input").removeAttribute("aria-invalid");
  try {
    return JSON.parse(at("input").value);
  } catch (error) {
    at("input-fault").textContent = `This is not JSON: ${error.message}`;
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
  say("Asking…");
  try {
    await ask(value, running.signal);
  } catch (error) {
    const isStopped = error.name === "AbortError";
    say(isStopped ? "Stopped." : `The connection broke: ${error.message}`, !isStopped);
  }
  running = null;
  at("start").disabled = false;
  at("stop").disabled = true;
}

async function ask(value, signal) {
  const response = await fetch(`/v1/modules/${encodeURIComponent(at("module").value)}/execute`, {
    method: "POST",
    headers: headers({ "Content-Type": "application/json", Accept: "application/x-ndjson" }),
    body: JSON.stringify({ input: value, _options: { response_mode: "streaming" } }),
    signal,
  });
  if (response.status === 401) at("access").open = true;
  if (response.headers.get("Content-Type").startsWith("application/json")) return end(await response.json());
  let rest = "";
  for await (const piece of pieces(response.body.pipeThrough(new TextDecoderStream()))) {
    const lines = (rest + piece).split("\n");
    rest = lines.pop();
    lines.filter(Boolean).forEach((line) => take(JSON.parse(line)));
  }
}

async function* pieces(stream) {
  const reader = stream.getReader();
  for (let read = await reader.read(); !read.done; read = await reader.read()) yield read.value;
}

function take(chunk) {
  if (chunk.final || chunk.ok === false) return end(chunk);
  if (chunk.meta) return say(chunk.meta.explain);
  if (chunk.progress) return say(chunk.progress.violation?.message ?? chunk.progress.message ?? chunk.progress.stage);
  const { type, field = "data", delta, data } = chunk.chunk;
  if (type === "delta") field_of(field).textContent += delta;
  else if (field === "data") whole(data);
  else if (field !== "meta") field_of(field).textContent = shown(data);
}

// All of the data: what stood there before is gone.
function whole(data) {
  clear();
  for (const [key, value] of Object.entries(data)) fill(field_of(`data.${key}`), value);
}

function fill(place, value) {
  place.textContent = shown(value);
  for (const medium of mediaOf(value)) showMedium(place, medium);
}

// The media that a value holds, at any depth.
function mediaOf(value) {
  if (value === null || typeof value !== "object") return [];
  const isMedium = typeof value.media_type === "string" && (value.type === "url" || value.type === "base64");
  return isMedium ? [value] : Object.values(value).flatMap(mediaOf);
}

// Shows a medium of this server, or one in the answer; what is elsewhere is not asked for.
async function showMedium(place, { type, media_type, url, data }) {
  const [, tag] = [["image/", "img"], ["audio/", "audio"], ["video/", "video"]].find(([kind]) => media_type.startsWith(kind)) ?? [];
  const path = type === "url" && URL.canParse(url, location) && new URL(url, location).pathname.match(/\/v1\/media\/med_[0-9a-f]+$/)?.[0];
  if (!tag || (type === "url" && !path)) return;
  const element = document.createElement(tag);
  if (tag === "img") element.alt = "Made by the module";
  else element.controls = true;
  place.append(element);
  try {
    element.src = path ? await blobAt(path) : `data:${media_type};base64,${data}`;
  } catch (error) {
    element.replaceWith(`The medium cannot be shown: ${error.message}`);
  }
}

// An element asks without the token, and so the bytes are fetched for it.
async function blobAt(path) {
  const response = await fetch(path, { headers: headers() });
  if (!response.ok) throw new Error(fault(await response.json()));
  blobs.push(URL.createObjectURL(await response.blob()));
  return blobs.at(-1);
}

function end(answer) {
  at("whole").hidden = false;
  at("end").textContent = written(answer);
  if (answer.ok === false) return say(fault(answer), true);
  whole(answer.data);
  const { confidence, risk, explain, model } = answer.meta;
  const warnings = (answer._warnings ?? []).map((warning) => ` ${warning.code}: ${warning.message}`).join("");
  const danger = typeof risk === "string" ? risk : risk.custom;
  say(`${explain} Confidence ${confidence}, risk ${danger}${model ? `, by ${model}` : ""}.${warnings}`);
}

const shown = (value) => (typeof value === "string" ? value : written(value));

// JSON, in which the bytes of a medium are cut short.
const written = (value) => JSON.stringify(value, function (key, part) {
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
  at("whole").hidden = true;
}

at("run").addEventListener("submit", run);
at("stop").addEventListener("click", () => running?.abort());
at("module").addEventListener("change", showModule);
at("file").addEventListener("change", upload);
at("token").addEventListener("change", listModules);
listModules();
