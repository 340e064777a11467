// The process's side of the message mirror. The messages of a session are kept as they came; plugins get a deep copy of
// them for each call, plain objects and arrays, and what they did to it is found by comparing it with what is kept.
// Nobody but this file ever sees what is kept, so nothing that a plugin does or holds on to can change it.

import { absent, diff, plain } from "./value.mjs";

const { keys, getPrototypeOf, prototype } = Object;
const { isArray } = Array;
const { stringify } = JSON;
const Code = Function;

// What was not used for the longest time is dropped first; the host is notified when it counts in it.
const MAX_SESSIONS = 16;
const MAX_BYTES = 128 * 1024 * 1024;
const NEED_WHOLE = -32002;

// session -> {revision, messages, bytes}, the one used last at the end.
const sessions = new Map();

// The list of a call, which is kept from now on.
export function keep({ session, base, revision, bytes }, pieces) {
  const last = sessions.get(session);
  if (base !== undefined && last?.revision !== base) {
    sessions.delete(session);
    throw Object.assign(new Error(`this process does not have revision ${base} of ${session}`), { rpc: NEED_WHOLE });
  }
  const messages = [];
  const shapes = [];
  for (const piece of pieces) {
    if (!isArray(piece)) {
      messages.push(piece.value);
      shapes.push(likely(piece.value));
      continue;
    }
    for (let i = piece[0], end = i + piece[1]; i < end; i++) {
      messages.push(last.messages[i]);
      // To work one out is worth its price only for what comes again.
      shapes.push(last.shapes[i] ?? likely(last.messages[i]) ?? learn(last.messages[i]));
    }
  }
  sessions.delete(session);
  sessions.set(session, { revision, messages, shapes, bytes });
  let total = 0;
  for (const one of sessions.values()) total += one.bytes;
  for (const [name, one] of sessions) {
    if (name === session || (total <= MAX_BYTES && sessions.size <= MAX_SESSIONS)) break;
    total -= one.bytes;
    sessions.delete(name);
  }
  return { messages, shapes };
}

// A copy of what JSON.parse or `plain` made, which needs no care.
function copy(value) {
  if (typeof value !== "object" || value === null) return value;
  if (isArray(value)) {
    const list = new Array(value.length);
    for (let i = 0; i < value.length; i++) list[i] = copy(value[i]);
    return list;
  }
  const object = { ...value };
  for (const key of keys(object)) {
    const item = object[key];
    if (typeof item === "object" && item !== null) object[key] = copy(item);
  }
  return object;
}

// Whether `after` is `before` still. Answers no where it is not sure; `diff` knows better then.
function same(before, after) {
  if (before === after) return true;
  if (typeof before !== "object" || typeof after !== "object" || before === null || after === null) return false;
  if (isArray(before)) {
    if (!isArray(after) || after.length !== before.length) return false;
    for (let i = 0; i < before.length; i++) if (!same(before[i], after[i])) return false;
    return true;
  }
  if (getPrototypeOf(after) !== prototype) return false;
  const names = keys(before);
  const now = keys(after);
  if (names.length !== now.length) return false;
  for (let i = 0; i < names.length; i++) {
    const name = names[i];
    if (now[i] !== name) return false;
    const left = before[name];
    const right = after[name];
    if (left !== right && !same(left, right)) return false;
  }
  return true;
}

// What copies and compares values of one shape: those with the same keys and nested shapes share it. Several times faster
// than the functions above, since the engine knows where each key is.
const shapes = new Map();
const MAX_SHAPES = 1000;
const MAX_ITEMS = 64;
const general = { number: -1, is: () => true, copy, same };

// Those of the messages that were looked at last: most messages have one of a few.
const recent = [];
const MAX_RECENT = 4;

function likely(message) {
  for (const shape of recent) if (shape.is(message)) return shape;
  return undefined;
}

// The shapes of messages that are seen for the first time. Some are worked out, for the others to have them, too.
function shapesOf(messages) {
  let left = 4 * MAX_RECENT;
  return messages.map((message) => {
    const known = likely(message);
    if (known || left === 0) return known;
    left--;
    return learn(message);
  });
}

// Works out the shape of a message, for the next ones to be held against.
function learn(message) {
  const shape = shapeOf(message);
  if (shape && shape !== general && !recent.includes(shape)) {
    recent.unshift(shape);
    recent.length = Math.min(recent.length, MAX_RECENT);
  }
  return shape;
}

function shapeOf(value) {
  if (typeof value !== "object" || value === null) return undefined;
  const list = isArray(value);
  const names = list ? undefined : keys(value);
  const count = list ? value.length : names.length;
  if (count > MAX_ITEMS) return general;
  let name = list ? `[${count}` : `{${names.join("\u0001")}`;
  const nested = new Array(count);
  for (let i = 0; i < count; i++) {
    nested[i] = shapeOf(value[list ? i : names[i]]);
    if (nested[i]) name += `\u0002${i}:${nested[i].number}`;
  }
  const known = shapes.get(name);
  if (known) return known;
  // A quoted __proto__ in a literal is not a key but the prototype.
  if (shapes.size >= MAX_SHAPES || names?.includes("__proto__")) return general;
  const fresh = { number: shapes.size, ...(list ? listShape(nested) : objectShape(names, nested)) };
  shapes.set(name, fresh);
  return fresh;
}

function listShape(nested) {
  const count = nested.length;
  return {
    is(list) {
      if (!isArray(list) || list.length !== count) return false;
      for (let i = 0; i < count; i++) {
        const item = list[i];
        if (nested[i] ? !nested[i].is(item) : typeof item === "object" && item !== null) return false;
      }
      return true;
    },
    copy(list) {
      const fresh = list.slice();
      for (let i = 0; i < count; i++) if (nested[i]) fresh[i] = nested[i].copy(list[i]);
      return fresh;
    },
    same(before, after) {
      if (!isArray(after) || after.length !== count) return false;
      for (let i = 0; i < count; i++) {
        if (before[i] !== after[i] && !nested[i]?.same(before[i], after[i])) return false;
      }
      return true;
    },
  };
}

function objectShape(names, nested) {
  const quoted = names.map((name) => stringify(name));
  const copies = quoted.map((key, i) => (nested[i] ? `${key}:n[${i}].copy(v[${key}])` : `${key}:v[${key}]`));
  const keyed = quoted.map((key, i) => `||k[${i}]!==${key}`).join("");
  const fields = quoted.map((key, i) => {
    const values = `b[${key}]!==a[${key}]`;
    return nested[i] ? `(${values}&&!n[${i}].same(b[${key}],a[${key}]))` : values;
  });
  const kinds = quoted.map((key, i) =>
    nested[i] ? `||!n[${i}].is(v[${key}])` : `||(typeof v[${key}]==="object"&&v[${key}]!==null)`,
  );
  const body = `return {
    is: (v) => {
      if (typeof v !== "object" || v === null || isArray(v)) return false;
      const k = keys(v);
      return !(k.length !== ${names.length}${keyed}${kinds.join("")});
    },
    copy: (v) => ({${copies.join(",")}}),
    same: (b, a) => {
      if (typeof a !== "object" || a === null || getPrototypeOf(a) !== prototype) return false;
      const k = keys(a);
      return !(k.length !== ${names.length}${keyed}${fields.map((field) => `||${field}`).join("")});
    },
  }`;
  const known = { keys, isArray, getPrototypeOf, prototype };
  return new Code("n", ...keys(known), body)(nested, ...Object.values(known));
}

function idOf(message) {
  const id = message?.info?.id;
  return typeof id === "string" ? id : undefined;
}

// One item of a call, `{messages}`, with what it was before the handler that runs. `tellsOrder`: the host takes an order.
export class Conversation {
  constructor(input, { messages, shapes = shapesOf(messages) }, tellsOrder) {
    this.tellsOrder = tellsOrder;
    this.before = { messages, shapes, rest: {} };
    this.items = [{ input, output: undefined }];
    this.renew();
  }

  renew() {
    const { messages, shapes } = this.before;
    this.given = messages.map((message, i) => (shapes[i] ?? general).copy(message));
    this.items[0].output = { ...copy(this.before.rest), messages: this.given.slice() };
    this.after = undefined;
  }

  begin() {
    if (!this.after) return;
    this.before = this.after;
    this.given = this.after.given;
    this.after = undefined;
  }

  snapshot() {}

  undo() {
    this.renew();
  }

  thaw() {
    this.before = this.after;
    this.renew();
  }

  // Adds what changed to `out`; answers the new order of the messages when that is not said by places.
  diff({ output }, out) {
    const { messages: was, shapes: wasShapes, rest } = this.before;
    const { messages, ...others } = output;
    diff(rest, others, [], out);
    const restNow = out.length > 0 ? (plain(others) ?? {}) : rest;
    if (!isArray(messages)) {
      diff(was, messages, ["messages"], out);
      this.after = { messages: [], shapes: [], rest: { ...restNow, messages: plain(messages) }, given: [] };
      return undefined;
    }
    const now = messages.slice();
    const origins = this.origins(now);
    if (origins && !this.tellsOrder) {
      diff(was, messages, ["messages"], out);
      const kept = plain(messages);
      this.after = { messages: kept, shapes: [], rest: restNow, given: now };
      return undefined;
    }
    const kept = new Array(now.length);
    const shapes = new Array(now.length);
    const order = origins && [];
    for (let i = 0; i < now.length; i++) {
      const at = origins ? origins[i] : i;
      const value = absent(now[i]) ? null : now[i];
      if (at === undefined) {
        kept[i] = plain(value, 2) ?? null;
        order.push({ value: kept[i] });
        continue;
      }
      if (order) {
        const last = order.at(-1);
        if (isArray(last) && last[0] + last[1] === at) last[1]++;
        else order.push([at, 1]);
      }
      kept[i] = was[at];
      shapes[i] = wasShapes[at];
      if ((shapes[i] ?? general).same(was[at], value)) continue;
      const count = out.length;
      diff(was[at], value, ["messages", i], out);
      if (out.length === count) continue;
      kept[i] = plain(value, 2) ?? null;
      shapes[i] = undefined;
    }
    this.after = { messages: kept, shapes, rest: restNow, given: now };
    return order;
  }

  // For each message its place before, each place once; undefined when all are where they were.
  origins(now) {
    const { given, before } = this;
    const inPlace = now.length === given.length;
    if (inPlace && now.every((message, i) => message === given[i])) return undefined;
    const places = new Map();
    given.forEach((message, i) => {
      if (typeof message === "object" && message !== null && !places.has(message)) places.set(message, i);
    });
    // Where nothing moved, replaced messages are named by their places, as without a mirror.
    if (inPlace && now.every((message, i) => (places.get(message) ?? i) === i)) return undefined;
    const ids = new Map();
    before.messages.forEach((message, i) => {
      const id = idOf(message);
      if (id !== undefined && !ids.has(id)) ids.set(id, i);
    });
    const taken = new Set();
    const origins = now.map((message) => {
      const at = places.get(message);
      if (at === undefined || taken.has(at)) return undefined;
      taken.add(at);
      return at;
    });
    // A copy of a message is sent as what is different in it.
    return origins.map((at, i) => {
      if (at !== undefined) return at;
      const found = ids.get(idOf(now[i]));
      if (found === undefined || taken.has(found)) return undefined;
      taken.add(found);
      return found;
    });
  }
}

