// Paths of fields, as chunks and violations name them: `data.issues[0].title`, `data["odd key"]`.

const PART = /(?:^|\.)([^.[\]"]+)|\[(\d+)\]|\[("(?:[^"\\]|\\.)*")\]/gy;

/** The keys of a path. @param {string} path @returns {(string|number)[]} */
export function keysOf(path) {
  const keys = [];
  PART.lastIndex = 0;
  for (let found = PART.exec(path); found; found = PART.exec(path)) {
    const [, name, index, quoted] = found;
    keys.push(name ?? (index !== undefined ? Number(index) : JSON.parse(quoted)));
  }
  return keys;
}

/** The path of a member. @param {string} parent @param {string|number} key */
export function member(parent, key) {
  if (typeof key === "number") return `${parent}[${key}]`;
  if (!/^[\p{L}_$][\p{L}\p{N}_$-]*$/u.test(key)) return `${parent}[${JSON.stringify(key)}]`;
  return parent ? `${parent}.${key}` : key;
}

/** The value at these keys, or `undefined`. */
export const valueAt = (value, keys) => keys.reduce((inner, key) => (isContainer(inner) && Object.hasOwn(inner, key) ? inner[key] : undefined), value);

/** Sets the value at these keys, and creates what contains it. Returns the new root. */
export function setAt(root, keys, value) {
  if (keys.length === 0) return value;
  const [key, ...rest] = keys;
  const container = isContainer(root) ? root : typeof key === "number" ? [] : {};
  define(container, key, setAt(Object.hasOwn(container, key) ? container[key] : undefined, rest, value));
  return container;
}

/** Sets an own member, whatever its name is: `__proto__` is a name like others. */
export function define(container, key, value) {
  Object.defineProperty(container, key, { value, writable: true, enumerable: true, configurable: true });
}

/** Whether a value has members. */
export const isContainer = (value) => value !== null && typeof value === "object";

/**
 * The leaves of a value: scalars and empty containers, with their paths, at most `most` of them.
 * @returns {[string, any][]}
 */
export function leaves(value, path = "data", most = 2000, found = []) {
  if (found.length >= most) return found;
  const entries = isContainer(value) ? (Array.isArray(value) ? value.map((one, at) => [at, one]) : Object.entries(value)) : [];
  if (entries.length === 0) found.push([path, value]);
  for (const [key, inner] of entries) leaves(inner, member(path, key), most, found);
  return found;
}

/** Formats JSON, and shortens the bytes of media files. */
export const format = (value) =>
  JSON.stringify(value, function (key, part) {
    const isBytes = this.type === "base64" && key === "data" && typeof part === "string" && part.length > 80;
    return isBytes ? `${part.slice(0, 60)}… (${part.length})` : part;
  }, 2) ?? "";
