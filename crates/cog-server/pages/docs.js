// Shows the OpenAPI document of this server.

const make = (name, content = [], attributes = {}) => {
  const element = document.createElement(name);
  element.append(...[content].flat());
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  return element;
};

// A text, with what stands between backticks as code.
const prose = (text) => text.split("`").map((part, place) => (place % 2 ? make("code", part) : part));

const table = (heads, rows) =>
  make("table", [
    make("thead", make("tr", heads.map((head) => make("th", head, { scope: "col" })))),
    make("tbody", rows.map((row) => make("tr", row.map((cell) => make("td", cell))))),
  ]);

const json = (value) => make("pre", JSON.stringify(value, null, 2), { tabindex: "0" });

// A schema in a word, with a link where it has a name.
function named(schema) {
  const name = schema.$ref?.split("/").pop();
  return name ? make("a", name, { href: `#${name}` }) : make("code", String(schema.type ?? "any"));
}

const contents = (content = {}) =>
  Object.entries(content).flatMap(([type, { schema }]) => [make("code", type), " ", named(schema), make("br")]);

function operation(path, method, said) {
  const parts = [make("h3", make("code", `${method.toUpperCase()} ${path}`)), make("p", prose(said.summary))];
  if (said.description) parts.push(make("p", prose(said.description)));
  if (said.parameters) {
    const rows = said.parameters.map(({ name, in: place, required, description = "" }) => [
      make("code", name), `${place}${required ? "" : ", optional"}`, make("span", prose(description)),
    ]);
    parts.push(table(["Parameter", "Where", "What"], rows));
  }
  if (said.requestBody) parts.push(make("p", ["Body: ", ...contents(said.requestBody.content)]));
  const rows = Object.entries(said.responses).map(([status, { description, content }]) => [
    make("code", status), make("span", prose(description)), make("span", contents(content)),
  ]);
  parts.push(make("details", [make("summary", "Answers"), table(["Status", "When", "Body"], rows)]));
  return make("article", parts);
}

// What is wanted most stands first.
const place = (tag) => ["run", "modules", "sessions", "about", "older callers"].indexOf(tag);

function reference({ info, paths, components }) {
  const groups = new Map();
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, said] of Object.entries(methods)) {
      const tag = said.tags[0];
      groups.set(tag, [...(groups.get(tag) ?? []), operation(path, method, said)]);
    }
  }
  document.getElementById("description").append(...prose(info.description));
  const sections = [...groups].sort(([one], [other]) => place(one) - place(other)).map(([tag, operations]) => make("section", [make("h2", tag), ...operations]));
  const schemas = Object.entries(components.schemas).map(([name, schema]) =>
    make("article", [make("h3", make("code", name), { id: name }), make("p", prose(schema.description ?? "")), json(schema)]));
  document.getElementById("reference").replaceChildren(...sections, make("section", [make("h2", "schemas"), ...schemas]));
}

fetch("/openapi.json")
  .then((response) => response.json())
  .then(reference)
  .catch((error) => document.getElementById("reference").append(make("p", error.message, { class: "fault" })));
