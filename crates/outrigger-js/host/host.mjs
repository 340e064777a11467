// The host script of a plugin process. Runs under Bun 1.x and Node 20 or later; `docs/plugin-protocol.md` describes the
// conversation. No dependency and little code, so that a process is ready about when its runtime is.

import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { left, ownerOf, watchExits } from "./blame.mjs";
import { markOutput, owner } from "./output.mjs";
import { outrigger } from "./custom_points.mjs";
import { errorText } from "./value.mjs";
import { flushed, notify, open, send } from "./wire.mjs";

const { Bun } = globalThis;
const exit = process.exit.bind(process);
const calls = new Map();
let auth;
let sdk;

// A plugin's stray promise must not take its neighbours down.
process.on("uncaughtException", (error) => report("uncaught exception", error));
process.on("unhandledRejection", (error) => report("unhandled rejection", error));

function report(what, error) {
  try {
    const stack = error instanceof Error && error.stack ? `\n${error.stack}` : "";
    const plugin = ownerOf(error?.stack) ?? owner();
    notify("log", { level: "warn", plugin, message: `${what}: ${errorText(error)}${stack}` });
  } catch {
    // Nothing left to tell it to.
  }
}

// There are no workspaces here, which a plugin that brings some learns, and its user with it.
function noWorkspaces() {
  const message = "`experimental_workspace.register` does nothing here: there are no workspaces";
  notify("log", { level: "warn", plugin: owner(), message });
}

function pluginInput(init, serverUrl, client) {
  const shell = () => {
    throw new Error("`$` needs Bun: run `outrigger plugin setup`");
  };
  const input = {
    get client() {
      return client();
    },
    project: init.project,
    worktree: init.worktree,
    directory: init.directory,
    experimental_workspace: { register: noWorkspaces },
    serverUrl,
    $: Bun ? Bun.$ : shell,
  };
  // Not enumerable: listing the keys finds those of OpenCode.
  return Object.defineProperty(input, "outrigger", { get: outrigger });
}

// What a plugin gets that another one hosts: no client unless it may use some of it, no shell, no address.
function narrowInput({ directory, worktree }, { facade }, client) {
  const input = { id: facade.id, host: facade.host, directory, worktree };
  if (facade.client) Object.defineProperty(input, "client", { get: client, enumerable: true });
  return Object.freeze(input);
}

async function initialize(init, call) {
  const [{ load }, { adopt }, { fallBackTo }, ours] = await Promise.all([
    import("./load.mjs"),
    import("./run.mjs"),
    import("./resolve.mjs"),
    import("./sdk.mjs"),
  ]);
  sdk = ours;
  await ways(init);
  run.answersOver(init.fileOver);
  watchExits(init.plugins);
  markOutput(init.plugins);
  process.chdir(init.directory);
  process.env.PWD = init.directory;
  const serverUrl = new URL(init.serverUrl);
  sdk.wrapFetch(serverUrl);
  fallBackTo(
    init.modules,
    init.plugins.map((plugin) => plugin.entry),
    init.sources,
  );
  const client = sdk.clientMaker(init, serverUrl, await sdk.preloadSdk(init.sdk));
  const inputOf = (entry) => {
    const own = () => client(entry.id);
    return entry.facade ? narrowInput(init, entry, own) : pluginInput(init, serverUrl, own);
  };
  const loaded = await load(init, inputOf, call);
  adopt(loaded);
  return {
    plugins: loaded.map(({ instances, ...rest }) => ({ ...rest, instances: instances.map((instance) => instance.report) })),
  };
}

// What a plugin that is one file of its own may import without a socket being in it.
const QUIET = /^(node:)?(fs|fs\/promises|path|os|url|util|crypto|buffer|events|process|timers|timers\/promises|child_process|assert|string_decoder|module|perf_hooks|async_hooks)$|^bun$|^@opencode-ai\/plugin$/;
const IMPORT = /(?:\bfrom|\bimport|\brequire)\s*\(?\s*["'`]([^"'`]+)["'`]/g;

function opensSockets({ entry, fromPath }) {
  if (!fromPath || !Bun) return true;
  try {
    const text = readFileSync(fileURLToPath(entry), "utf8");
    return [...text.matchAll(IMPORT)].some(([, name]) => !QUIET.test(name)) || /WebSocket|Worker/.test(text);
  } catch {
    return true;
  }
}

// `fetch` of Bun knows the proxy from the environment. Everything else is led there here; under Bun the modules that are
// needed for it cost as much as all else of a start, so where nobody asks for sockets they come a moment later.
async function ways({ proxy, plugins }) {
  if (proxy === undefined) return;
  const lead = () => import("./net.mjs").then(({ route }) => route(proxy));
  if (plugins.some(opensSockets)) await lead();
  else setTimeout(() => lead().catch((error) => report("the way to the proxy", error)), 500).unref?.();
}

async function serve({ method, params }, id, cancel) {
  switch (method) {
    case "initialize":
      return initialize(params, id);
    case "hook.run":
      return run.hookRun(params, id, () => cancel.cancelled);
    case "hook.invoke.file":
      return run.hookInvokeFile(params, id, () => cancel.cancelled);
    case "hook.mirror":
      return run.hookMirror(params, id, () => cancel.cancelled);
    case "tool.run":
      return run.toolRun(params, id, cancel.signal);
    case "ping":
      return {};
    case "shutdown":
      await run.dispose(id);
      return {};
    case "auth.load":
    case "auth.prompt":
    case "auth.authorize":
    case "auth.callback":
    case "auth.fetch":
    case "provider.models":
    case "provider.stream":
      auth ??= await import("./auth.mjs");
      return auth.serve(method, params, id, cancel);
    default:
      throw Object.assign(new Error(`this process knows no method ${method}`), { rpc: -32601 });
  }
}

// A signal costs as much as all else of a small call, so it is made when somebody asks for it.
class Cancel {
  cancelled = false;
  made;

  get signal() {
    this.made ??= new AbortController();
    if (this.cancelled) this.made.abort();
    return this.made.signal;
  }

  abort() {
    this.cancelled = true;
    this.made?.abort();
  }
}

function receive(message, size) {
  if (message.id === undefined) {
    if (message.method === "event.batch") run.eventBatch(message.params, size);
    else if (message.method === "sdk.chunk") sdk?.chunk(message.params);
    else if (message.method === "auth.credit") auth?.credit(message.params);
    else if (message.method === "$/cancel") {
      calls.get(message.params?.id)?.abort();
      auth?.cancel(message.params?.id);
    }
    return;
  }
  const { id } = message;
  const cancel = new Cancel();
  calls.set(id, cancel);
  const done = () => ended(message);
  serve(message, id, cancel)
    .then(
      (result) => send({ jsonrpc: "2.0", id, result: result ?? {} }),
      (error) => fail(id, error, cancel),
    )
    .catch((error) => fail(id, error, cancel))
    .then(done, done);
}

async function ended({ id, method }) {
  calls.delete(id);
  left(id);
  if (method !== "shutdown") return;
  await flushed();
  exit(0);
}

function fail(id, error, cancel) {
  const code = cancel.cancelled ? -32800 : (error?.rpc ?? -32000);
  send({ jsonrpc: "2.0", id, error: { code, message: errorText(error) } });
}

const run = await import("./run.mjs");
await open(receive);
notify("hello", {
  protocol: "1.0",
  features: ["sdk.request", "sdk.stream", "tool.ask", "plugin.leave", "hook.file", "hook.mirror", "own.points"],
  runtime: Bun ? "bun" : "node",
  version: Bun ? Bun.version : process.versions.node,
});
