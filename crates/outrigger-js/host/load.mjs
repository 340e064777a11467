// From modules to hooks objects, by the rules of OpenCode (plugin-host-facts 3.3), tolerant where it breaks.

import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { enter } from "./blame.mjs";
import { argumentSchema } from "./zod.mjs";
import { errorText, plain } from "./value.mjs";
import { notify } from "./wire.mjs";

const { Bun } = globalThis;
const MAX_TOOL = 1024 * 1024;
// What Node refuses and Bun does not: TypeScript, folders and files named without their extension, and Bun's own modules.
const NEEDS_BUN = new Set([
  "ERR_UNKNOWN_FILE_EXTENSION",
  "ERR_UNSUPPORTED_DIR_IMPORT",
  "ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING",
  "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX",
]);
// The last is a native module that was never built, since install scripts are off; such plugins use Bun's own SQLite.
const BUN_ONLY =
  /Cannot find (?:package|module) 'bun'|Received protocol 'bun:'|\bBun is not defined|__require is not a function|needs Bun|Could not locate the bindings file/;
const THE_WAY_OUT = "this plugin needs Bun: run `outrigger plugin setup`";
const EXTENSIONS = ["ts", "tsx", "js", "mjs", "cjs", "mts", "cts", "jsx", "json"];

function isRecord(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

// The functions of a module that make hooks, each with the export it came from.
export function servers(module, entry) {
  const problems = [];
  const found = [];
  const first = module.default;
  if (isRecord(first) && ("id" in first || "server" in first || "tui" in first)) {
    if (typeof first.server !== "function") problems.push("the default export has no `server` function");
    else if ("tui" in first && first.tui !== undefined) problems.push("the default export has both `server` and `tui`");
    else if (entry.from_path && typeof first.id !== "string") problems.push("a plugin from a path must export an `id`");
    else found.push({ name: "default", start: (...args) => first.server(...args) });
    return { found, problems };
  }
  const functions = new Set(Object.values(module).filter((value) => typeof value === "function"));
  // What `import` makes of a CommonJS module: its exports once more, as one object.
  const wrapper = (value) => isRecord(value) && Object.values(value).some((part) => functions.has(part));
  const seen = new Set();
  for (const [name, value] of Object.entries(module)) {
    if (seen.has(value)) continue;
    seen.add(value);
    if (typeof value === "function") found.push({ name, start: (...args) => value(...args) });
    else if (isRecord(value) && typeof value.server === "function") {
      found.push({ name, start: (...args) => value.server(...args) });
    } else if (!wrapper(value)) {
      problems.push(`export \`${name}\` is not a function; it was skipped`);
    }
  }
  if (found.length === 0 && problems.length === 0) problems.push("the module exports nothing");
  return { found, problems };
}

function isTool(value) {
  return isRecord(value) && "args" in value && "description" in value && "execute" in value;
}

// The tools of a tool file as one hooks object: the default export under the file's name, others under `FILE_EXPORT`.
async function toolFile(module, entry, init, problems) {
  const tools = {};
  for (const [name, value] of Object.entries(module)) {
    if (name === "module.exports") continue;
    if (isTool(value)) tools[name === "default" ? entry.tools : `${entry.tools}_${name}`] = value;
    else problems.push({ stage: "note", message: `export \`${name}\` is not a tool (it lacks \`description\`, \`args\` or \`execute\`)` });
  }
  const described = await describeTools(tools, entry, init.modules, problems);
  if (described.length > 0) {
    return [{ hooks: { tool: tools }, report: { export: "tool", hooks: [], tools: described, extras: [] } }];
  }
  if (problems.every((problem) => problem.stage === "note")) {
    const message = "the file exports no tool: an object with `description`, `args` and `execute`";
    problems.splice(0, problems.length, { stage: "export", message });
  }
  return [];
}

function importFailure(error, init) {
  const text = errorText(error);
  const shared = text.match(/Cannot find (?:package|module) '((?:@opencode-ai\/(?:plugin|sdk)|zod)[^']*)'/);
  if (shared && !init.modules) return `${text}; run \`outrigger plugin setup\` to install ${shared[1]} for all plugins`;
  return needsBun(error, text) ? `${text}; ${THE_WAY_OUT}` : text;
}

function needsBun(error, text) {
  if (Bun) return false;
  return NEEDS_BUN.has(error?.code) || BUN_ONLY.test(text) || lacksExtension(error, text);
}

// Something like `./src/plugin` was imported, which is a file with an extension or a folder with an index file.
function lacksExtension(error, text) {
  if (error?.code !== "ERR_MODULE_NOT_FOUND") return false;
  const named = text.match(/Cannot find module '([^']+)'/)?.[1] ?? "";
  const path = named.startsWith("file:") ? fileURLToPath(named) : named;
  return path.startsWith("/") && EXTENSIONS.some((extension) => existsSync(`${path}.${extension}`) || existsSync(`${path}/index.${extension}`));
}

// Names of the hook functions, a class's methods too. Reading a value may run a getter of the plugin.
function hookNames(hooks) {
  const names = new Set();
  for (let level = hooks; level && level !== Object.prototype; level = Object.getPrototypeOf(level)) {
    for (const name of Object.getOwnPropertyNames(level)) {
      if (name !== "constructor" && typeof hooks[name] === "function") names.add(name);
    }
  }
  return [...names];
}

async function describeTools(tools, entry, modules, problems) {
  const out = [];
  for (const [name, tool] of Object.entries(tools)) {
    try {
      if (typeof tool?.execute !== "function") throw new Error("it has no `execute` function");
      const { schema, problem } = await argumentSchema(tool.args ?? {}, entry.entry, modules);
      if (problem) problems.push({ stage: "tool", message: `tool \`${name}\`: ${problem}` });
      const description = typeof tool.description === "string" ? tool.description : "";
      const declares = isRecord(tool.outrigger) ? { declares: plain(tool.outrigger) } : {};
      const described = { name, description, schema: plain(schema), ...declares };
      // Every request to a model would carry it, and all plugins of a process answer in one frame.
      const size = JSON.stringify(described).length;
      if (size > MAX_TOOL) throw new Error(`its description and schema have ${size} characters, more than ${MAX_TOOL}`);
      out.push(described);
    } catch (error) {
      problems.push({ stage: "tool", message: `tool \`${name}\` was skipped: ${errorText(error)}` });
    }
  }
  return out;
}

// What the host needs to know of `auth` and `provider` objects.
async function describeExtras(hooks, entry, problems) {
  const { describeAuth } = await import("./auth.mjs");
  const problem = (message) => problems.push({ stage: "hooks", message });
  let auth;
  try {
    auth = isRecord(hooks.auth) ? describeAuth(hooks.auth) : undefined;
    if (hooks.auth && !auth) problem("its `auth` names no provider; it was left out");
  } catch (error) {
    problem(`its \`auth\` was left out: ${errorText(error)}`);
  }
  const { id, models } = hooks.provider ?? {};
  const provider = typeof id === "string" && typeof models === "function" ? id : undefined;
  return { auth, provider, streams: describeStreams(hooks.provider) };
}

// A provider with a protocol of its own.
function describeStreams({ id, name, env, stream } = {}) {
  if (typeof id !== "string" || typeof stream !== "function") return undefined;
  const names = Array.isArray(env) ? env.filter((name) => typeof name === "string") : undefined;
  return { id, name: typeof name === "string" ? name : undefined, env: names };
}

async function start(entry, { found }, input, init, problems) {
  const instances = [];
  const others = [];
  for (const { name, start } of found) {
    let hooks;
    try {
      hooks = await start(input, entry.options ?? undefined);
    } catch (error) {
      const text = `export \`${name}\`: ${errorText(error)}`;
      const needs = needsBun(error, text);
      problems.push({ stage: "server", message: needs ? `${text}; ${THE_WAY_OUT}` : text, needs_bun: needs });
      continue;
    }
    // Exported helpers are called like plugins and answer anything; one that gives its input back has no hooks.
    if (hooks === input) continue;
    if (!isRecord(hooks)) {
      const got = Array.isArray(hooks) ? "an array" : hooks === null ? "null" : typeof hooks;
      others.push(`export \`${name}\` answered with ${got}, not with hooks; it was dropped`);
      continue;
    }
    try {
      const tools = isRecord(hooks.tool) ? await describeTools(hooks.tool, entry, init.modules, problems) : [];
      const extras = ["auth", "provider"].filter((key) => isRecord(hooks[key]));
      const brings = extras.length > 0 ? await describeExtras(hooks, entry, problems) : {};
      instances.push({ hooks, report: { export: name, hooks: hookNames(hooks), tools, extras, ...brings } });
    } catch (error) {
      problems.push({ stage: "hooks", message: `export \`${name}\`: ${errorText(error)}` });
    }
  }
  // A helper that is exported beside the plugin is nothing wrong; where there is no plugin, it is what is wrong.
  const stage = instances.length > 0 ? "note" : "hooks";
  problems.push(...others.map((message) => ({ stage, message })));
  return instances;
}

// Imports all modules at once, then calls their functions one after another in load order, as OpenCode does.
export async function load(init, inputOf, call) {
  const imports = init.plugins.map(async (entry) => {
    const began = performance.now();
    notify("plugin.stage", { plugin: entry.id, stage: "importing" });
    enter(entry.id, "import", call);
    try {
      return { module: await import(entry.entry), ms: performance.now() - began };
    } catch (error) {
      return { error, ms: performance.now() - began };
    }
  });
  const loaded = [];
  for (const [index, entry] of init.plugins.entries()) {
    const { module, error, ms } = await imports[index];
    const began = performance.now();
    const problems = [];
    let instances = [];
    if (error !== undefined) {
      const message = importFailure(error, init);
      problems.push({ stage: "import", message, needs_bun: needsBun(error, message) });
    }
    else if (typeof entry.tools === "string") {
      instances = await toolFile(module, entry, init, problems);
    } else {
      const candidates = servers(module, entry);
      problems.push(...candidates.problems.map((message) => ({ stage: "export", message })));
      notify("plugin.stage", { plugin: entry.id, stage: "starting" });
      enter(entry.id, "server", call);
      instances = await start(entry, candidates, inputOf(entry), init, problems);
    }
    const stage = instances.length > 0 ? "ready" : "failed";
    notify("plugin.stage", { plugin: entry.id, stage });
    loaded.push({ id: entry.id, instances, problems, ms: ms + performance.now() - began });
  }
  return loaded;
}
