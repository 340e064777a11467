// `outrigger` of the plugin input: what a plugin declares in its manifest and reaches from its code. Types are in
// outrigger.d.ts.

import { AsyncLocalStorage } from "node:async_hooks";
import { plain } from "./value.mjs";
import { request } from "./wire.mjs";

// The chain whose handler runs, once a plugin has asked for `outrigger`: following it costs something at every await.
let chains;

// Runs a handler so that what it calls is known to come from this chain.
export function within(chain, run) {
  return chains === undefined || chain === undefined ? run() : chains.run(chain, run);
}

async function call(point, input = {}, output = {}) {
  const asked = { point: String(point), input: plain(input), output: plain(output), chain: chains.getStore() };
  return (await request("point.call", asked)).output;
}

async function emit(event, properties = {}) {
  await request("event.emit", { event: String(event), properties: plain(properties) });
}

let made;
export function outrigger() {
  chains ??= new AsyncLocalStorage();
  made ??= Object.freeze({ call, emit });
  return made;
}
