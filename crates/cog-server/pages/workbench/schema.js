// What a form needs to know of a JSON Schema.

import { isContainer } from "./path.js";

/** References are followed so often in a row. */
const DEPTH = 16;

/**
 * A schema with its `$ref` and `allOf` resolved, one level.
 * @param {any} schema @param {any} root
 */
export function resolve(schema, root, depth = DEPTH) {
  if (!isContainer(schema) || depth === 0) return {};
  let found = schema;
  if (typeof schema.$ref === "string" && !isMedia(schema)) {
    const { $ref, ...rest } = schema;
    found = { ...resolve(pointed(root, $ref), root, depth - 1), ...rest };
  }
  if (!Array.isArray(found.allOf)) return found;
  const { allOf, ...rest } = found;
  return allOf.map((part) => resolve(part, root, depth - 1)).reduce(merged, rest);
}

/** The schema at a reference within the document. */
function pointed(root, ref) {
  if (!ref.startsWith("#")) return {};
  const keys = ref.slice(1).split("/").slice(1).map((key) => decode(key).replaceAll("~1", "/").replaceAll("~0", "~"));
  return keys.reduce((inner, key) => (isContainer(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined), root);
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const merged = (one, other) => ({
  ...other,
  ...one,
  properties: { ...other.properties, ...one.properties },
  required: [...new Set([...(one.required ?? []), ...(other.required ?? [])])],
});

/** The first type that is not `null`. */
export function typeOf(schema) {
  const types = [schema.type].flat().filter(Boolean);
  const named = types.find((type) => type !== "null") ?? types[0];
  if (named) return named;
  if (schema.properties) return "object";
  if (schema.items) return "array";
  return undefined;
}

export const isMedia = (schema) => typeof schema?.$ref === "string" && schema.$ref.endsWith("/MediaInput");

/** The alternatives of a schema, without `null`. */
export function alternatives(schema, root) {
  const all = schema.oneOf ?? schema.anyOf;
  return Array.isArray(all) ? all.map((one) => (isMedia(one) ? one : resolve(one, root))).filter((one) => one.type !== "null") : [];
}

/** How an alternative is called. */
export function nameOf(schema, place) {
  const marker = Object.entries(schema.properties ?? {}).find(([, part]) => isContainer(part) && part.const !== undefined);
  const name = schema.title ?? marker?.[1].const ?? schema.const ?? typeOf(schema) ?? schema.$ref?.split("/").pop();
  return String(name ?? place + 1);
}

/** How well a value fits an alternative: higher is better. */
export function fit(value, schema) {
  if (schema.const !== undefined) return JSON.stringify(schema.const) === JSON.stringify(value) ? 5 : -5;
  if (Array.isArray(schema.enum)) return schema.enum.includes(value) ? 4 : -4;
  const type = typeOf(schema);
  if (type === undefined) return 0;
  if (type !== jsonType(value) && !(type === "number" && jsonType(value) === "integer")) return -3;
  if (type !== "object") return 2;
  const properties = schema.properties ?? {};
  const missing = (schema.required ?? []).filter((key) => !Object.hasOwn(value, key)).length;
  const known = Object.keys(value).filter((key) => Object.hasOwn(properties, key));
  const fixed = known.filter((key) => properties[key]?.const !== undefined).reduce((sum, key) => sum + fit(value[key], properties[key]), 0);
  return 1 + known.length - 2 * missing + fixed;
}

export function jsonType(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "array";
  if (typeof value === "number") return Number.isInteger(value) ? "integer" : "number";
  return typeof value;
}

/** A minimal value for a schema: the required members, empty. */
export function sample(schema, root, depth = 6) {
  if (isMedia(schema)) return null;
  const found = resolve(schema, root);
  if (found.default !== undefined) return found.default;
  if (found.const !== undefined) return found.const;
  if (Array.isArray(found.enum)) return found.enum[0];
  const [first] = alternatives(found, root);
  if (first && depth > 0) return sample(first, root, depth - 1);
  const type = typeOf(found);
  if (type === "object") {
    const required = depth > 0 ? (found.required ?? []) : [];
    return Object.fromEntries(required.map((key) => [key, sample(found.properties?.[key] ?? {}, root, depth - 1)]));
  }
  if (type === "array") return [];
  if (type === "integer" || type === "number") return found.minimum ?? 0;
  return type === "boolean" ? false : "";
}

/**
 * The member of an input that is a media file, or a list of them.
 * @returns {{key: string, isList: boolean}|undefined}
 */
export function mediaField(schema) {
  const found = Object.entries(schema?.properties ?? {}).find(([, part]) => JSON.stringify(part ?? null).includes("MediaInput"));
  return found && { key: found[0], isList: found[1].type === "array" };
}
