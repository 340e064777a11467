// Values as JSON sees them: copies that share nothing with a plugin's objects, and what changed between two states.
// Written by hand because structuredClone is over ten times dearer and refuses functions, which plugins leave in outputs.

const own = Object.prototype.hasOwnProperty;
const { keys, defineProperty } = Object;
const { isArray } = Array;

// serde_json on the other side refuses anything nested deeper than 128; the envelope takes some of it.
// The same limit is what finds a cycle, without the price of remembering every ancestor.
const MAX_DEPTH = 100;

export class Unserialisable extends Error {}

function put(object, key, value) {
  if (key === "__proto__") defineProperty(object, key, { value, enumerable: true, writable: true, configurable: true });
  else object[key] = value;
}

export function absent(value) {
  const type = typeof value;
  return type === "undefined" || type === "function" || type === "symbol";
}

function tooDeep() {
  return new Unserialisable(`answer cannot be serialised: cyclic, or nested deeper than ${MAX_DEPTH} levels`);
}

function unboxed(value) {
  if (typeof value.toJSON === "function") return value.toJSON();
  if (value instanceof String || value instanceof Number || value instanceof Boolean) return value.valueOf();
  return value;
}

// What JSON.parse(JSON.stringify(value)) would give; undefined where JSON has nothing.
export function plain(value, depth = 0) {
  switch (typeof value) {
    case "string":
    case "boolean":
      return value;
    case "number":
      return Number.isFinite(value) ? value : null;
    case "object":
      break;
    case "bigint":
      throw new Unserialisable("answer cannot be serialised: JSON has no BigInt");
    default:
      return undefined;
  }
  if (value === null) return null;
  if (depth >= MAX_DEPTH) throw tooDeep();
  if (isArray(value)) {
    const copy = new Array(value.length);
    for (let i = 0; i < value.length; i++) {
      const item = plain(value[i], depth + 1);
      copy[i] = item === undefined ? null : item;
    }
    return copy;
  }
  const bare = unboxed(value);
  if (bare !== value) return plain(bare, depth + 1);
  const copy = {};
  for (const key of keys(value)) {
    const item = plain(value[key], depth + 1);
    if (item !== undefined) put(copy, key, item);
  }
  return copy;
}

// Adds to `out` what turns `before` (made by `plain`) into `after`, as {path, value?}; no value means deleted.
// An array of another length is sent whole: a list of moves would seldom be shorter and never clearer.
export function diff(before, after, path, out) {
  if (before === after) return;
  if (path.length >= MAX_DEPTH) throw tooDeep();
  if (typeof after === "object" && after !== null) {
    if (!isArray(after)) after = unboxed(after);
    if (typeof after === "object" && after !== null && typeof before === "object" && before !== null) {
      if (isArray(after)) {
        if (isArray(before) && before.length === after.length) return diffItems(before, after, path, out);
      } else if (!isArray(before)) return diffKeys(before, after, path, out);
    }
  }
  const value = plain(after, path.length);
  if (value === before) return;
  out.push(value === undefined ? { path: path.slice() } : { path: path.slice(), value });
}

function diffItems(before, after, path, out) {
  for (let i = 0; i < after.length; i++) {
    path.push(i);
    diff(before[i], absent(after[i]) ? null : after[i], path, out);
    path.pop();
  }
}

function diffKeys(before, after, path, out) {
  for (const key of keys(after)) {
    const value = after[key];
    if (absent(value)) continue;
    path.push(key);
    diff(own.call(before, key) ? before[key] : undefined, value, path, out);
    path.pop();
  }
  for (const key of keys(before)) {
    if (!own.call(after, key) || absent(after[key])) out.push({ path: [...path, key] });
  }
}

// Replaces lone surrogates, in keys too. serde_json refuses them, and any plugin that cuts text at a length makes them.
export function wellFormed(value) {
  if (typeof value === "string") return value.isWellFormed() ? value : value.toWellFormed();
  if (typeof value !== "object" || value === null) return value;
  if (isArray(value)) return value.map(wellFormed);
  const copy = {};
  for (const key of keys(value)) put(copy, wellFormed(key), wellFormed(value[key]));
  return copy;
}

// Never empty. An AggregateError (Bun's for a module that does not build) says little without its parts.
export function errorText(error) {
  try {
    if (!(error instanceof Error) && typeof error?.message !== "string") return String(error) || "unknown error";
    let text = error.message || error.name || "unknown error";
    if (isArray(error.errors) && error.errors.length > 0) {
      text += ": " + error.errors.map((part) => part?.message ?? String(part)).join("; ");
    }
    return text;
  } catch {
    return "an error that cannot be read";
  }
}
