// Shows the OpenAPI document of this server.

const make = (name, content = [], attributes = {}) => {
  const element = document.createElement(name);
  element.append(...[content].flat());
  Object.entries(attributes).forEach(([key, value]) => element.setAttribute(key, value));
  return element;
};

// Formats text between backticks as code.
const prose = (text) => text.split("`").map((part, place) => (place % 2 ? make("code", part) : part));

const table = (heads, rows) =>
  make("table", [
    make("thead", make("tr", heads.map((head) => make("th", head, { scope: "col" })))),
    make("tbody", rows.map((row) => make("tr", row.map((cell) => make("td", cell))))),
  ]);

const json = (value) => make("pre", JSON.stringify(value, null, 2), { tabindex: "0" });

// The name of a schema as a link, or its type.
function named(schema) {
  const name = schema.$ref?.split("/").pop();
  return name ? make("a", name, { href: `#${name}` }) : make("code", String(schema.type ?? "any"));
}

const contents = (content = {}) =>
  Object.entries(content).flatMap(([type, { schema }]) => [make("code", type), " ", named(schema), make("br")]);

function operation(path, method, described) {
  const parts = [make("h3", make("code", `${method.toUpperCase()} ${path}`)), make("p", prose(described.summary))];
  if (described.description) parts.push(make("p", prose(described.description)));
  if (described.parameters) {
    const rows = described.parameters.map(({ name, in: place, required, description = "" }) => [
      make("code", name), `${place}${required ? "" : ", optional"}`, make("span", prose(description)),
    ]);
    parts.push(table(["Parameter", "In", "Description"], rows));
  }
  if (described.requestBody) parts.push(make("p", ["Body: ", ...contents(described.requestBody.content)]));
  const rows = Object.entries(described.responses).map(([status, { description, content }]) => [
    make("code", status), make("span", prose(description)), make("span", contents(content)),
  ]);
  parts.push(make("details", [make("summary", "Responses"), table(["Status", "Description", "Body"], rows)]));
  return make("article", parts);
}

// The order of the groups.
const order = (tag) => ["run", "modules", "sessions", "media", "about", "older clients"].indexOf(tag);

function reference({ info, paths, components }) {
  const groups = new Map();
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, described] of Object.entries(methods)) {
      const tag = described.tags[0];
      groups.set(tag, [...(groups.get(tag) ?? []), operation(path, method, described)]);
    }
  }
  document.getElementById("description").append(...prose(info.description));
  const sections = [...groups].sort(([one], [other]) => order(one) - order(other)).map(([tag, operations]) => make("section", [make("h2", tag), ...operations]));
  const schemas = Object.entries(components.schemas).map(([name, schema]) =>
    make("article", [make("h3", make("code", name), { id: name }), make("p", prose(schema.description ?? "")), json(schema)]));
  document.getElementById("reference").replaceChildren(...sections, make("section", [make("h2", "schemas"), ...schemas]));
}

fetch("/openapi.json")
  .then((response) => response.json())
  .then(reference)
  .catch((error) => document.getElementById("reference").append(make("p", error.message, { class: "error" })));
