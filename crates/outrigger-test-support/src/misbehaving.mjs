// The misbehaving plugin: does one fault where it is told to. Options: {fault, where}; `where` is a hook, "tool" or "load".
// While it is loaded, a fault gets the plugin's input as its input and the hooks that it is about to return as its output.
import { appendFileSync, closeSync, existsSync, openSync, readlinkSync, writeFileSync, writeSync } from "node:fs"
import { spawn } from "node:child_process"

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
const CHANNEL = 3
const raw = (text, length = Buffer.byteLength(text)) => {
  const body = Buffer.from(text)
  const head = Buffer.alloc(4)
  head.writeUInt32BE(length)
  writeSync(CHANNEL, Buffer.concat([head, body]))
}
// 10 MiB: two hundred times what is logged of a process in a second.
const flood = (fd) => {
  const line = Buffer.from("x".repeat(1023) + "\n")
  const block = Buffer.concat(Array(1024).fill(line))
  for (let n = 0; n < 10; n++) {
    for (let at = 0; at < block.length; ) {
      try { at += writeSync(fd, block, at) } catch (error) { if (error.code !== "EAGAIN") throw error }
    }
  }
}
const cycle = () => { const a = {}; a.a = a; return a }
// Where each of the hooks may leave something.
const leave = (output, value) => {
  output.system?.push(value)
  if (output.options) output.options.left = value
  if (output.args) output.args.left = value
  if (output.tool) output.tool.act.description = value
  return value
}
const again = (message) => { for (let id = 1; id < 40; id++) raw(JSON.stringify({ jsonrpc: "2.0", ...message(id) })) }
let calls = 0
let stays

// What a fault gets: the place where it happens ({input, output} of a hook, the arguments of a tool), and the client.
const faults = {
  none: () => {},
  // hangs
  never: () => new Promise(() => {}),
  spin: () => { for (;;) {} },
  second: ({ input, output }) => {
    if (++calls === 2) return new Promise(() => {})
    // Loaded once in a process: it is the next one in which it never finishes.
    if (!output.tool) return
    const mark = input.directory + "/loaded"
    if (existsSync(mark)) return new Promise(() => {})
    writeFileSync(mark, "")
    output["experimental.chat.system.transform"] = () => process.exit(4)
  },
  spin_in_timer: () => { setTimeout(() => { for (;;) {} }, 5); return sleep(50) },
  spin_later: () => { setTimeout(() => { for (;;) {} }, 250) },
  dispose_never: () => { stays = () => new Promise(() => {}) },
  dispose_spins: () => { stays = () => { for (;;) {} } },
  // The test reads who takes the signals for itself.
  signals: ({ directory }) => { writeFileSync(directory + "/pid.txt", readlinkSync("/proc/self/ns/pid").replace(/[^0-9]/g, "")); for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => {}); return new Promise(() => setInterval(() => {}, 1000)) },
  // ends
  exit0: () => process.exit(0),
  exit1: () => process.exit(1),
  kill: () => process.kill(process.pid, "SIGKILL"),
  abort: () => process.abort(),
  exit_in_timer: () => { setTimeout(() => process.exit(5), 5); return sleep(200) },
  forks_and_exits: () => { spawn("sleep", ["98762"], { stdio: "ignore", detached: true }); process.exit(0) },
  // throws
  throw_text: () => { throw "a text" },
  throw_error: () => { throw new Error("an error") },
  throw_undefined: () => { throw undefined },
  throw_cycle: () => { throw cycle() },
  reject_late: async () => { await sleep(20); throw new Error("late") },
  unhandled: () => { Promise.reject(new Error("nobody catches it")) },
  throw_in_timer: () => { setTimeout(() => { throw new Error("in a timer") }, 1); return sleep(20) },
  // floods
  stdout: () => flood(1),
  stderr: () => flood(2),
  allocates: () => { const all = []; for (;;) all.push(Buffer.alloc(16 << 20, 1)) },
  allocates_objects: () => { const all = []; for (;;) all.push({ one: [1, 2, 3], more: "x" + all.length }) },
  reads_nothing: () => { for (;;) {} },
  files: () => { try { for (;;) openSync("/dev/null") } catch {} },
  huge: ({ output }) => leave(output, "x".repeat(200 << 20)),
  large: ({ output }) => leave(output, "y".repeat(4 << 20)),
  deep: ({ output }) => { let deep = {}; for (let n = 0; n < 5000; n++) deep = { deep }; output.extra = deep; return leave(output, deep) },
  requests: async ({ client }) => { await Promise.all(Array.from({ length: 2000 }, () => client("/session").catch(() => {}))) },
  // A turn of a session of its own, which comes by here again.
  recursive: async ({ client, directory }) => {
    appendFileSync(directory + "/calls.txt", "call\n")
    const post = async (path, body) => (await client(path, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) })).json()
    const session = await post("/session", {})
    await post("/session/" + session.id + "/message", { parts: [{ type: "text", text: "again" }] })
  },
  // lies
  protocol_lines: () => { for (const fd of [1, 2]) writeSync(fd, '{"jsonrpc":"2.0","id":1,"result":{}}\nContent-Length: 12\r\n\r\n{}\n') },
  answers_another: () => raw('{"jsonrpc":"2.0","id":987654,"result":{}}'),
  answers_early: () => { for (let id = 1; id < 40; id++) raw(JSON.stringify({ jsonrpc: "2.0", id, result: {} })) },
  answers_twice: () => again((id) => ({ method: "hook.result", params: { call: id, handler: 0, ms: 0 } })),
  // The first call was that of loading: while it loads, a hook does it later.
  answers_again: ({ output }) => {
    const send = () => raw('{"jsonrpc":"2.0","id":1,"result":{}}')
    if (!output.tool) return send()
    output["experimental.chat.system.transform"] = send
  },
  answers_for_another: () => again((id) => ({ method: "hook.result", params: { call: id, handler: 7, ms: 0 } })),
  not_json: () => raw("this is no message"),
  not_utf8: () => {
    const text = Buffer.from('{"jsonrpc":"2.0","method":"log","params":{"level":"warn","message":"??"}}')
    text.set([0xc3, 0x28], text.indexOf("??"))
    const head = Buffer.alloc(4)
    head.writeUInt32BE(text.length)
    writeSync(CHANNEL, Buffer.concat([head, text]))
  },
  closes: () => closeSync(CHANNEL),
  too_large: () => raw("{", 0x7fffffff),
  half_a_frame: () => { raw("{", 1000); return new Promise(() => {}) },
  // The test's runtime tells another version the next time that it is started for this plugin.
  wrong_version: ({ directory }) => { writeFileSync(directory + "/lie", ""); process.exit(0) },
  hello_again: () => raw('{"jsonrpc":"2.0","method":"hello","params":{"protocol":"9.0","features":[],"runtime":"x","version":"0"}}'),
  // values
  cycle: ({ output }) => { output.options = cycle(); return leave(output, cycle()) },
  bigint: ({ output }) => { output.options = { big: 1n }; return leave(output, 1n) },
  nan: ({ output }) => { output.options = { nan: NaN }; return leave(output, NaN) },
  surrogate: ({ output }) => leave(output, "\ud800"),
  deletes: ({ output }) => { for (const key of Object.keys(output)) delete output[key] },
  types: ({ output }) => { for (const key of Object.keys(output)) output[key] = 5; return 5 },
  nulls: ({ output }) => { for (const key of Object.keys(output)) output[key] = null; return null },
  input: ({ input }) => { for (const key of Object.keys(input ?? {})) delete input[key] },
  later: ({ output }) => { setInterval(() => { for (const key of Object.keys(output)) output[key] = "changed later" }, 1) },
  freezes: ({ output }) => { Object.freeze(output) },
  getter: ({ output }) => { Object.defineProperty(output, "trap", { enumerable: true, get() { throw new Error("trap") } }) },
}

export default async (input, { fault, where }) => {
  const client = (path, init) => fetch(new URL(path, input.serverUrl), init)
  const { directory } = input
  const at = (place) => (input, output) =>
    place === where ? faults[fault]({ input, output: output ?? {}, client, directory }) : undefined
  const hooks = {
    "experimental.chat.system.transform": at("experimental.chat.system.transform"),
    "chat.params": at("chat.params"),
    "tool.execute.before": at("tool.execute.before"),
    tool: { act: { description: "acts", args: {}, execute: async (args) => {
      const answer = await at("tool")(args, {})
      return answer === undefined ? "done" : answer
    } } },
    dispose: () => (fault === "never" ? new Promise(() => {}) : stays?.()),
  }
  await at("load")(input, hooks)
  return hooks
}
