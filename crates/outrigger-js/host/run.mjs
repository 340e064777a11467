// Hooks, events and tools of loaded plugins.

import { Unserialisable, diff, errorText, plain } from "./value.mjs";
import { enter, left, reenter } from "./enter.mjs";
import { issues } from "./zod.mjs";
import { notify, request } from "./wire.mjs";

// plugin id -> hooks objects, in load order both.
const plugins = new Map();
let started = false;
const early = [];
// Answers of event hooks that have not come, and how long the end waits for them, in milliseconds.
const unfinished = new Set();
const EVENTS_GRACE = 500;
const { isArray } = Array;
const clock = performance.now.bind(performance);
const { isExtensible } = Object;

export function adopt(loaded) {
  for (const { id, instances } of loaded) {
    plugins.set(
      id,
      instances.map((instance) => instance.hooks),
    );
  }
  started = true;
  for (const batch of early.splice(0)) eventBatch(batch);
}

export function log(level, message) {
  notify("log", { level, message });
}

export function find({ plugin, instance }) {
  const hooks = plugins.get(plugin)?.[instance];
  if (!hooks) throw new Error(`plugin ${plugin} has no instance ${instance} in this process`);
  return hooks;
}

// One handler over all items. `output` is changed in place, as in the reference; when the handler fails, what it did is
// undone, so that the next one sees the state from before.
async function runHandler(hook, handler, items, call) {
  const before = [];
  const changes = [];
  try {
    const hooks = find(handler);
    let entered = enter(handler.plugin, hook, call);
    for (const item of items) {
      before.push(plain(item.output));
      entered = reenter(handler.plugin, hook, call, entered);
      const run = hooks[hook];
      if (typeof run === "function") {
        const answer = hook === "config" ? run.call(hooks, item.output) : run.call(hooks, item.input, item.output);
        if (typeof answer?.then === "function") await answer;
      }
      const out = [];
      try {
        diff(before.at(-1), item.output, [], out);
      } catch (error) {
        if (error instanceof Unserialisable) throw error;
        throw new Unserialisable(`answer cannot be serialised: ${errorText(error)}`);
      }
      changes.push(out);
      // Frozen for the handlers behind it, too, if it stayed.
      if (!isExtensible(item.output)) item.output = plain(item.output);
    }
    return { items: changes.some((out) => out.length > 0) ? changes : undefined, before };
  } catch (error) {
    restore(items, before);
    return { error: errorText(error), before };
  }
}

function restore(items, before) {
  before.forEach((output, index) => (items[index].output = output));
}

// Whether a handler changed what the host will take back: then the ones behind it must not see it. The same rules as the
// host's, which decides; a wrong answer here costs a round trip, or a neighbour sees what is taken back later.
function tooFar(open, changes, items) {
  const any = open.some(({ key }) => key === "*");
  return changes.some((list, index) =>
    list.some(({ path: [key] }) => {
      if (typeof key !== "string") return true;
      const field = open.find((field) => field.key === key);
      if (!field) return !any;
      const value = items[index].output[key];
      if (value === undefined || value === null) return field.required;
      return field.kind !== "any" && kind(value) !== field.kind;
    }),
  );
}

function kind(value) {
  return isArray(value) ? "array" : typeof value;
}

export async function hookRun({ hook, handlers, open = [], items }, call, cancelled) {
  for (let index = 0; index < handlers.length; index++) {
    if (cancelled()) return undefined;
    const handler = handlers[index];
    const began = clock();
    const result = await runHandler(hook, handler, items, call);
    const report = { call, handler: index, ms: clock() - began };
    try {
      notify("hook.result", { ...report, items: result.items, error: result.error });
    } catch (error) {
      // Larger than a frame: the host never sees it, so the next handler must not either.
      restore(items, result.before);
      notify("hook.result", { ...report, error: `answer cannot be serialised: ${errorText(error)}` });
      continue;
    }
    if (result.items && index + 1 < handlers.length && tooFar(open, result.items, items)) return {};
  }
  return {};
}

// Called in frame order and never awaited, so the order of events against later requests is kept.
// Nothing waits for an event hook, but what it has begun is not cut off at the end either.
function follow(answer, failed) {
  const running = Promise.resolve(answer);
  unfinished.add(running);
  running.catch(failed).finally(() => unfinished.delete(running));
}

export function eventBatch(batch) {
  if (!started) return void early.push(batch);
  let entered;
  for (const event of batch.events) {
    for (const [plugin, instances] of plugins) {
      for (const hooks of instances) {
        const failed = (error) => log("warn", `plugin ${plugin}: event hook failed on ${event.type}: ${errorText(error)}`);
        try {
          if (typeof hooks.event !== "function") continue;
          if (entered !== plugin) enter(plugin, "event");
          entered = plugin;
          const answer = hooks.event({ event });
          if (typeof answer?.then === "function") follow(answer, failed);
        } catch (error) {
          failed(error);
        }
      }
    }
  }
  left(undefined);
  notify("plugin.leave", {});
}

function toolContext(params, call, signal, ended) {
  const { sessionID, messageID, callID, extra = {}, agent, messages = [], directory, worktree } = params.context;
  return {
    sessionID,
    abort: signal,
    messageID,
    callID,
    extra,
    agent,
    messages,
    metadata(report = {}) {
      if (!ended()) notify("tool.metadata", { call, title: report.title, metadata: plain(report.metadata) });
    },
    async ask(question = {}) {
      if (ended()) throw new Error("this tool call has ended");
      const { permission, patterns = [], always = [], metadata } = plain(question);
      await request("tool.ask", { call, permission: String(permission), patterns, always, metadata });
    },
    directory,
    worktree,
  };
}

function toolOutput(name, answer) {
  if (typeof answer === "string") return { title: "", output: answer, metadata: {} };
  if (typeof answer !== "object" || answer === null || !("output" in answer)) {
    throw new Error(`tool ${name} answered with neither a string nor an object with \`output\``);
  }
  const { title, output, metadata, attachments } = plain(answer);
  return {
    title: typeof title === "string" ? title : "",
    output: typeof output === "string" ? output : (JSON.stringify(output) ?? ""),
    metadata: metadata ?? {},
    attachments: Array.isArray(attachments) ? attachments : undefined,
  };
}

export async function toolRun(params, call, signal) {
  const tool = find(params.handler).tool?.[params.tool];
  if (typeof tool?.execute !== "function") throw new Error(`plugin ${params.handler.plugin} has no tool ${params.tool}`);
  const what = `tool:${params.tool}`;
  const entered = enter(params.handler.plugin, what, call);
  const wrong = await issues(tool.args ?? {}, params.args);
  if (wrong.length > 0) {
    throw new Error(
      `The ${params.tool} tool was called with invalid arguments: ${wrong.join("; ")}.\n` +
        "Please rewrite the input so it satisfies the expected schema.",
    );
  }
  let over = false;
  try {
    reenter(params.handler.plugin, what, call, entered);
    const answer = await tool.execute(params.args, toolContext(params, call, signal, () => over));
    return toolOutput(params.tool, answer);
  } finally {
    over = true;
  }
}

export async function dispose(call) {
  if (unfinished.size > 0) {
    const late = new Promise((resolve) => setTimeout(resolve, EVENTS_GRACE));
    await Promise.race([Promise.allSettled(unfinished), late]);
  }
  for (const [plugin, instances] of plugins) {
    for (const hooks of instances) {
      try {
        if (typeof hooks.dispose !== "function") continue;
        enter(plugin, "dispose", call);
        await hooks.dispose();
      } catch (error) {
        log("debug", `plugin ${plugin}: dispose failed: ${errorText(error)}`);
      }
    }
  }
}
