// `outrigger` of the plugin input: what a plugin declares in its manifest and reaches from its code. Types are in
// outrigger.d.ts.

import { AsyncLocalStorage } from "node:async_hooks";
import { plain } from "./value.mjs";
import { request } from "./wire.mjs";

// Async context of the running handler, for the `chain` and `depth` of its calls. It exists once a plugin has used
// `outrigger`, since following it costs something at every await. `chain` is that of a handler or tool, `depth` the number of
// events that led to this one.
let origins;

// Runs a handler in its context.
export function within(origin, run) {
  return origins === undefined || origin === undefined ? run() : origins.run(origin, run);
}

async function call(point, input = {}, output = {}) {
  const asked = { point: String(point), input: plain(input), output: plain(output), ...origins.getStore() };
  return (await request("point.call", asked)).output;
}

async function emit(event, properties = {}) {
  await request("event.emit", { event: String(event), properties: plain(properties), ...origins.getStore() });
}

let made;
export function outrigger() {
  origins ??= new AsyncLocalStorage();
  made ??= Object.freeze({ call, emit });
  return made;
}
