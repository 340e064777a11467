// Hooks, events and tools of loaded plugins.

import { fileOver, fromFile, tell } from "./file.mjs";
import { Conversation, keep } from "./mirror.mjs";
import { Unserialisable, diff, errorText, plain } from "./value.mjs";
import { enter, left, reenter } from "./blame.mjs";
import { within } from "./custom_points.mjs";
import { issues } from "./zod.mjs";
import { notify, request } from "./wire.mjs";

// plugin id -> hooks objects, in load order both.
const plugins = new Map();
let started = false;
const early = [];
// Answers of event hooks that have not come, and how long the end waits for them, in milliseconds.
const unfinished = new Set();
const EVENTS_GRACE = 500;
// How long `dispose` of one plugin holds up those of the others, in milliseconds.
const DISPOSE_GRACE = 300;
// The largest details of a refusal, as JSON.
const DETAILS = 16 * 1024;
const { isArray } = Array;
const clock = performance.now.bind(performance);
const { setTimeout: later, clearTimeout: cancelLater } = globalThis;
const { entries, isExtensible, keys } = Object;

export function adopt(loaded) {
  for (const { id, instances } of loaded) {
    plugins.set(
      id,
      instances.map((instance) => instance.hooks),
    );
  }
  started = true;
  for (const [batch, size] of early.splice(0)) eventBatch(batch, size);
}

export { fileOver as answersOver };

export function log(level, message, plugin) {
  notify("log", { level, message, plugin });
}

export function find({ plugin, instance }) {
  const hooks = plugins.get(plugin)?.[instance];
  if (!hooks) throw new Error(`plugin ${plugin} has no instance ${instance} in this process`);
  return hooks;
}

// The items of a call, with what each was before the handler that runs.
class Items {
  constructor(items) {
    this.items = items;
  }

  begin() {
    this.before = [];
  }

  snapshot(item) {
    this.before.push(plain(item.output));
  }

  diff(item, out) {
    diff(this.before.at(-1), item.output, [], out);
  }

  thaw(item) {
    item.output = plain(item.output);
  }

  undo() {
    this.before.forEach((output, index) => (this.items[index].output = output));
  }
}

// One handler over all items. `output` is changed in place, as in OpenCode; when the handler fails, what it did is
// undone, so that the next one sees the state from before.
async function runHandler(hook, handler, subject, call, origin) {
  const changes = [];
  let order;
  subject.begin();
  try {
    const hooks = find(handler);
    let entered = enter(handler.plugin, hook, call);
    for (const item of subject.items) {
      subject.snapshot(item);
      entered = reenter(handler.plugin, hook, call, entered);
      const run = hooks[hook];
      if (typeof run === "function") {
        const begin = () => (hook === "config" ? run.call(hooks, item.output) : run.call(hooks, item.input, item.output));
        const answer = origin === undefined ? begin() : within(origin, begin);
        const said = typeof answer?.then === "function" ? await answer : answer;
        if (isAnswer(said, "block")) throw new Blocked(said);
        if (isAnswer(said, "patch")) assign(item.output, said.patch);
      }
      const out = [];
      try {
        order = subject.diff(item, out);
      } catch (error) {
        if (error instanceof Unserialisable) throw error;
        throw new Unserialisable(`answer cannot be serialised: ${errorText(error)}`);
      }
      changes.push(out);
      // Frozen for the handlers behind it, too, if it stayed.
      if (!isExtensible(item.output)) subject.thaw(item);
    }
    return { items: changes.some((out) => out.length > 0) ? changes : undefined, order };
  } catch (error) {
    subject.undo();
    const block = refusal(error);
    return block ? { block } : { error: errorText(error) };
  }
}

// What a handler returned is an answer of that kind (C2). OpenCode takes no notice of what hooks return.
function isAnswer(said, action) {
  return typeof said === "object" && said !== null && said.action === action;
}

// A refusal that was returned.
class Blocked extends Error {
  name = "HookBlock";

  constructor({ code, message, details }) {
    super(typeof message === "string" ? message : "refused");
    this.code = code;
    this.details = details;
  }
}

// A patch names what is different of the output: its keys take the place of the output's, and what is null goes.
function assign(output, patch) {
  if (typeof patch !== "object" || patch === null || isArray(patch)) throw new Error("the `patch` of an answer is not an object");
  for (const [key, value] of entries(patch)) {
    if (value === null) delete output[key];
    else output[key] = value;
  }
}

// An error called `HookBlock` is not a failure but an answer: a refusal, with a code and details of its own. Whether it counts
// is the host's to say.
function refusal(error) {
  try {
    if (error?.name !== "HookBlock") return undefined;
    const code = typeof error.code === "string" ? error.code : "";
    return { code, message: errorText(error), details: details(error) };
  } catch {
    return undefined;
  }
}

function details(error) {
  try {
    const details = error.details === undefined ? undefined : plain(error.details);
    return JSON.stringify(details)?.length > DETAILS ? undefined : details;
  } catch {
    return undefined;
  }
}

// Whether a handler changed what the host will take back: then the ones after it must not see it. The same rules as the
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

export function hookRun(run, call, cancelled) {
  return runAll(run, new Items(run.items), call, cancelled);
}

export function hookInvokeFile(run, call, cancelled) {
  const items = fromFile(run, "items");
  const [{ input, output }] = items;
  const alone = items.length === 1 && isArray(output?.messages) && keys(output).length === 1;
  const subject = alone ? new Conversation(input, output, false) : new Items(items);
  return runAll(run, subject, call, cancelled);
}

// What is kept is taken at once, in frame order: later calls count in it.
export function hookMirror(run, call, cancelled) {
  const messages = keep(run, run.file === undefined ? run.pieces : fromFile(run, "pieces"));
  return runAll(run, new Conversation(run.input, messages, true), call, cancelled);
}

function from(chain) {
  return chain === undefined ? undefined : { chain };
}

async function runAll({ hook, handlers, open = [], chain }, subject, call, cancelled) {
  const origin = from(chain);
  for (let index = 0; index < handlers.length; index++) {
    if (cancelled()) return undefined;
    const handler = handlers[index];
    const began = clock();
    const result = await runHandler(hook, handler, subject, call, origin);
    const report = { call, handler: index, ms: clock() - began, error: result.error, block: result.block };
    try {
      const sent = tell(report, result, index + 1 === handlers.length);
      if (sent) await sent;
    } catch (error) {
      // Larger than a frame: the host never sees it, so the next handler must not either.
      subject.undo();
      notify("hook.result", { ...report, block: undefined, error: `answer cannot be serialised: ${errorText(error)}` });
      continue;
    }
    // Nobody behind a refusal is called, unless the host does not take it: then it asks anew.
    if (result.block) return {};
    if (result.items && index + 1 < handlers.length && tooFar(open, result.items, subject.items)) return {};
  }
  return {};
}

// Nobody waits for what failed: the host writes it down and notifies those that listen for failures.
function lost({ plugin, hook, session, began }, message) {
  notify("plugin.failed", { plugin, hook, message, session, ms: clock() - began });
}

// Calls that nobody waits for and that went well, by plugin, hook and session: reported together, and when so many have come.
const ran = new Map();
const MAX_RAN = 256;
const RAN_PAUSE = 1000;
let ranCount = 0;
let ranTimer;

function went({ plugin, hook, session, began, bytes = 0 }) {
  const ms = Math.round((clock() - began) * 1000) / 1000;
  const key = `${plugin} ${hook} ${session}`;
  const calls = ran.get(key) ?? { plugin, hook, session, ms: [], bytes: 0 };
  ran.set(key, calls);
  calls.ms.push(ms);
  calls.bytes = Math.max(calls.bytes, bytes);
  if (++ranCount >= MAX_RAN) return tellRan();
  ranTimer ??= later(tellRan, RAN_PAUSE);
  ranTimer.unref?.();
}

function tellRan() {
  cancelLater(ranTimer);
  ranTimer = undefined;
  ranCount = 0;
  if (ran.size === 0) return;
  const calls = [...ran.values()];
  ran.clear();
  notify("plugin.ran", { calls });
}

// Called in frame order and never awaited, so the order of events against later requests is kept.
// Nothing waits for an event hook, but what it has begun is not cut off at the end either.
function follow(answer, ended, failed) {
  const running = Promise.resolve(answer);
  unfinished.add(running);
  running.then(ended, failed).finally(() => unfinished.delete(running));
}

export function eventBatch(batch, size) {
  if (!started) return void early.push([batch, size]);
  const bytes = Math.round(size / batch.events.length);
  let entered;
  for (const [index, event] of batch.events.entries()) {
    const depth = batch.depths?.[index] ?? 0;
    const origin = depth > 0 ? { depth } : undefined;
    for (const [plugin, instances] of plugins) {
      for (const hooks of instances) {
        const { sessionID } = event.properties ?? {};
        const call = { plugin, hook: "event", session: typeof sessionID === "string" ? sessionID : undefined, began: clock(), bytes };
        const failed = (error) => lost(call, `${errorText(error)} (on ${event.type})`);
        try {
          if (typeof hooks.event !== "function") continue;
          if (entered !== plugin) enter(plugin, "event");
          entered = plugin;
          const answer = within(origin, () => hooks.event({ event }));
          if (typeof answer?.then === "function") follow(answer, () => went(call), failed);
          else went(call);
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
    const context = toolContext(params, call, signal, () => over);
    const answer = await within(from(params.chain), () => tool.execute(params.args, context));
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
  // In their order, but one that does not end does not take the time of those after it.
  const late = [];
  for (const [plugin, instances] of plugins) {
    for (const hooks of instances) {
      const disposing = { plugin, hook: "dispose", began: clock() };
      const failed = (error) => lost(disposing, errorText(error));
      try {
        if (typeof hooks.dispose !== "function") continue;
        enter(plugin, "dispose", call);
        const ended = Promise.resolve(hooks.dispose()).then(() => went(disposing), failed);
        const grace = new Promise((resolve) => setTimeout(resolve, DISPOSE_GRACE, true));
        if (await Promise.race([ended, grace])) {
          log("warn", `plugin ${plugin}: its dispose goes on for more than ${DISPOSE_GRACE} ms`, plugin);
          late.push(ended);
        }
      } catch (error) {
        failed(error);
      }
    }
  }
  await Promise.all(late);
  tellRan();
}
