// Logins, loaders and requests of plugins that bring authentication or models. Imported when one of them is first asked.

import { enter as entered } from "./blame.mjs";
import { find } from "./run.mjs";
import { errorText, plain } from "./value.mjs";
import { notify, request } from "./wire.mjs";

// Bytes of one chunk before base64.
const CHUNK = 256 * 1024;
const fetchers = new Map();
const flows = new Map();
const streams = new Map();
let next = 1;

function enter({ plugin }, what, call) {
  entered(plugin, what, call);
}

function methodOf({ handler, method }) {
  const found = find(handler).auth?.methods?.[method];
  if (!found) throw new Error(`plugin ${handler.plugin} has no login method ${method}`);
  return found;
}

// What `GET /provider/auth` says of it: functions stay here.
export function describeAuth(auth) {
  if (typeof auth?.provider !== "string") return undefined;
  const prompt = ({ type, key, message, placeholder, options, when }) =>
    type === "select" ? { type, key, message, options, when } : { type: "text", key, message, placeholder: placeholder || undefined, when };
  const methods = (Array.isArray(auth.methods) ? auth.methods : []).map(({ type, label, prompts }) => ({
    type: type === "oauth" ? "oauth" : "api",
    label: String(label),
    prompts: Array.isArray(prompts) ? prompts.map(prompt) : undefined,
  }));
  return plain({ provider: auth.provider, loader: typeof auth.loader === "function", methods });
}

async function load({ handler, provider }, call) {
  const { auth } = find(handler);
  if (typeof auth?.loader !== "function") return {};
  enter(handler, "auth.loader", call);
  const getAuth = async () => (await request("auth.get", { plugin: handler.plugin, provider: auth.provider })) ?? undefined;
  const { fetch, ...options } = (await auth.loader(getAuth, provider)) ?? {};
  if (typeof fetch !== "function") return { options: plain(options) };
  const handle = next++;
  fetchers.set(handle, { plugin: handler.plugin, fetch });
  return { options: plain(options), fetch: handle };
}

async function prompt(params, call) {
  const { handler, prompt: at, answers, value } = params;
  const asked = methodOf(params).prompts?.[at];
  if (!asked) throw new Error(`plugin ${handler.plugin} has no such question`);
  enter(handler, "auth.prompt", call);
  if (value === undefined) return { asked: typeof asked.condition !== "function" || Boolean(asked.condition(answers)) };
  const problem = typeof asked.validate === "function" ? asked.validate(value) : undefined;
  return { asked: true, problem: problem ? String(problem) : undefined };
}

async function authorize(params, call) {
  const method = methodOf(params);
  if (typeof method.authorize !== "function") return {};
  enter(params.handler, "auth.authorize", call);
  const answer = await method.authorize(params.answers);
  if (method.type !== "oauth") return { result: plain(answer) };
  if (typeof answer?.callback !== "function") throw new Error("its login answered with no callback");
  const flow = next++;
  flows.set(flow, { handler: params.handler, callback: answer.callback.bind(answer), code: answer.method === "code" });
  const text = (value) => (value === undefined || value === null ? "" : String(value));
  return { flow, url: text(answer.url), instructions: text(answer.instructions), method: answer.method === "code" ? "code" : "auto" };
}

async function callback({ flow, code }, call) {
  const open = flows.get(flow);
  if (!open) throw new Error("this login is over, or was begun before its process was started again");
  enter(open.handler, "auth.callback", call);
  // A code that was mistyped can be typed again; the plugin says whether it is still good.
  return { result: plain((await (open.code ? open.callback(code) : open.callback())) ?? { type: "failed" }) };
}

async function models({ handler, provider, auth }, call) {
  const hook = find(handler).provider;
  if (typeof hook?.models !== "function") return {};
  enter(handler, "provider.models", call);
  return { models: plain(await hook.models(provider, { auth })) };
}

// The answer is the head. The body follows in `auth.chunk`, as fast as the host takes it.
async function send({ handle, method, url, headers, body }, call, controller) {
  const fetcher = fetchers.get(handle);
  if (!fetcher) throw Object.assign(new Error("this fetch belongs to an earlier process"), { rpc: -32002 });
  enter(fetcher, "auth.fetch", call);
  const response = await fetcher.fetch(url, { method, headers: Object.fromEntries(headers), body, signal: controller.signal });
  if (typeof response?.status !== "number") throw new Error("its fetch answered with no Response");
  return stream(call, response, controller);
}

// Answers with the head of a response; its body follows.
function stream(call, response, controller) {
  const stream = { credit: 0, wake: undefined, controller };
  streams.set(call, stream);
  pump(call, stream, response).finally(() => streams.delete(call));
  return { status: response.status, headers: [...response.headers] };
}

async function pump(call, stream, response) {
  const reader = response.body?.getReader();
  const { signal } = stream.controller;
  signal.addEventListener("abort", () => stream.wake?.(), { once: true });
  const ready = async () => {
    while (stream.credit <= 0 && !signal.aborted) await new Promise((resolve) => (stream.wake = resolve));
  };
  try {
    // Not before the host has the head.
    await ready();
    while (reader && !signal.aborted) {
      const { done, value } = await reader.read();
      if (done) break;
      for (let at = 0; at < value.length && !signal.aborted; at += CHUNK) {
        const piece = value.subarray(at, at + CHUNK);
        notify("auth.chunk", { call, data: Buffer.from(piece.buffer, piece.byteOffset, piece.length).toString("base64") });
        stream.credit -= piece.length;
        await ready();
      }
    }
    if (!signal.aborted) return notify("auth.chunk", { call, end: true });
  } catch (error) {
    if (!signal.aborted) notify("auth.chunk", { call, end: true, error: errorText(error) });
  }
  reader?.cancel().catch(() => {});
}

export function credit({ call, bytes }) {
  const stream = streams.get(call);
  if (!stream) return;
  stream.credit += bytes;
  stream.wake?.();
}

export function cancel(call) {
  streams.get(call)?.controller.abort();
}

export async function serve(method, params, call, controller) {
  switch (method) {
    case "auth.load":
      return load(params, call);
    case "auth.prompt":
      return prompt(params, call);
    case "auth.authorize":
      return authorize(params, call);
    case "auth.callback":
      return callback(params, call);
    case "auth.fetch":
      return send(params, call, controller);
    case "provider.models":
      return models(params, call);
    case "provider.stream": {
      const { answer } = await import("./provider.mjs");
      return stream(call, await answer(params, call, controller.signal), controller);
    }
  }
}
