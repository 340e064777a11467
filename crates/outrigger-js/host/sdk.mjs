// The SDK client and the host's own origin, both answered over the channel (`sdk.request`), so no TCP port is open.

import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { notify, request } from "./wire.mjs";

const realFetch = globalThis.fetch;
const BODILESS = new Set([101, 204, 205, 304]);
const MISSING = "@opencode-ai/sdk is not installed, so `client` cannot be used: run `outrigger plugin setup`";

// How far the host may be ahead of the reader of a stream, in bytes.
const WINDOW = 256 * 1024;
const streams = new Map();
const encoder = new TextEncoder();

// A body that comes in `sdk.chunk`. What is not read is not granted again, so that the host keeps it, within its limits.
function receive(id, signal) {
  const pieces = [];
  let wake;
  let over;
  const grant = (bytes) => notify("sdk.credit", { request: id, bytes });
  const end = (error) => {
    over = { error };
    streams.delete(id);
    signal.removeEventListener("abort", abort);
    wake?.();
  };
  const abort = () => {
    if (over) return;
    pieces.length = 0;
    notify("$/cancel", { id });
    end(signal.reason);
  };
  streams.set(id, ({ data, end: last, error }) => {
    if (data !== undefined) pieces.push(encoder.encode(data));
    if (last) end(error === undefined ? undefined : new Error(error));
    wake?.();
  });
  signal.addEventListener("abort", abort, { once: true });
  if (signal.aborted) abort();
  let begun = false;
  return new ReadableStream(
    {
      async pull(controller) {
        // One that nobody reads costs nothing.
        if (!begun && !over) grant(WINDOW);
        begun = true;
        while (pieces.length === 0 && !over) await new Promise((resolve) => (wake = resolve));
        const piece = pieces.shift();
        if (piece) {
          controller.enqueue(piece);
          if (!over) grant(piece.length);
        } else if (over.error) controller.error(over.error);
        else controller.close();
      },
      cancel() {
        if (over) return;
        notify("$/cancel", { id });
        end();
      },
    },
    { highWaterMark: 0 },
  );
}

// A piece of a streamed answer has come.
export function chunk(params) {
  streams.get(params.request)?.(params);
}

// Answers a request to the host's origin; `plugin` is whose client asks, where that is known.
export async function hostFetch(input, init, plugin) {
  const call = new Request(input, init);
  const url = new URL(call.url);
  const body = call.method === "GET" || call.method === "HEAD" ? "" : await call.text();
  let id;
  const answer = await request(
    "sdk.request",
    { plugin, method: call.method, path: url.pathname + url.search, headers: [...call.headers], body: body || undefined },
    call.signal,
    (number) => (id = number),
  );
  if (answer.stream) return new Response(receive(id, call.signal), { status: answer.status, headers: answer.headers });
  const empty = BODILESS.has(answer.status) || call.method === "HEAD";
  return new Response(empty ? null : answer.body, { status: answer.status, headers: answer.headers });
}

// Plugins and the SDK's own newer clients call `fetch` on serverUrl: that origin is ours, the rest of the world is not.
export function wrapFetch(serverUrl) {
  const { origin } = serverUrl;
  const ours = (input) => {
    const text = typeof input === "string" ? input : input instanceof URL ? input.href : input?.url;
    return typeof text === "string" && text.startsWith(origin) && new URL(text).origin === origin;
  };
  const wrapped = (input, init) => (ours(input) ? hostFetch(input, init) : realFetch(input, init));
  globalThis.fetch = Object.assign(wrapped, realFetch);
}

// Node before 22.12 cannot `require` a module, and a getter cannot wait, so there the SDK is loaded ahead.
export async function preloadSdk(sdk) {
  if (!sdk || globalThis.Bun || process.features.require_module) return undefined;
  return import(pathToFileURL(sdk).href).catch(() => undefined);
}

// Most plugins take `client` out of their input whether they use it or not, so that alone must not throw.
function standIn(reason) {
  const quiet = { then: undefined, toJSON: () => ({}) };
  return new Proxy(quiet, {
    get(target, key) {
      if (typeof key === "symbol" || key in target) return target[key];
      throw new Error(reason);
    },
    ownKeys: () => [],
  });
}

// Makes a plugin's real client when it is first touched; a plugin that needs none runs without the SDK.
export function clientMaker(init, serverUrl, preloaded) {
  const clients = new Map();
  const make = (plugin) => {
    if (!init.sdk) return standIn(MISSING);
    try {
      const sdk = preloaded ?? createRequire(init.sdk)(init.sdk);
      const baseUrl = serverUrl.href.replace(/\/$/, "");
      const fetch = (input, options) => hostFetch(input, options, plugin);
      return sdk.createOpencodeClient({ baseUrl, directory: init.directory, fetch });
    } catch (error) {
      return standIn(`${MISSING} (${error?.message ?? error})`);
    }
  };
  return (plugin) => {
    if (!clients.has(plugin)) clients.set(plugin, make(plugin));
    return clients.get(plugin);
  };
}
