// The misbehaving plugin: does one fault where it is told to. Options: {fault, where}; `where` is a hook, "tool" or "load".
import { closeSync, openSync, writeSync } from "node:fs"
import { spawn } from "node:child_process"

const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
const CHANNEL = 3
const raw = (text, length = Buffer.byteLength(text)) => {
  const body = Buffer.from(text)
  const head = Buffer.alloc(4)
  head.writeUInt32BE(length)
  writeSync(CHANNEL, Buffer.concat([head, body]))
}
const flood = (fd) => {
  const line = Buffer.from("x".repeat(1023) + "\n")
  const block = Buffer.concat(Array(1024).fill(line))
  for (let n = 0; n < 100; n++) {
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
  return value
}
let calls = 0

// What a fault gets: the place where it happens ({input, output} of a hook, the arguments of a tool), and the client.
const faults = {
  none: () => {},
  // hangs
  never: () => new Promise(() => {}),
  spin: () => { for (;;) {} },
  second: () => { if (++calls === 2) return new Promise(() => {}) },
  spin_in_timer: () => { setTimeout(() => { for (;;) {} }, 5); return sleep(50) },
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
  large: ({ output }) => leave(output, "y".repeat(16 << 20)),
  deep: ({ output }) => { let deep = {}; for (let n = 0; n < 5000; n++) deep = { deep }; output.extra = deep; return deep },
  requests: async ({ client }) => { await Promise.all(Array.from({ length: 2000 }, () => client("/session").catch(() => {}))) },
  // lies
  protocol_lines: () => { for (const fd of [1, 2]) writeSync(fd, '{"jsonrpc":"2.0","id":1,"result":{}}\nContent-Length: 12\r\n\r\n{}\n') },
  answers_another: () => raw('{"jsonrpc":"2.0","id":987654,"result":{}}'),
  answers_early: () => { for (let id = 1; id < 40; id++) raw(JSON.stringify({ jsonrpc: "2.0", id, result: {} })) },
  results_twice: () => { for (let id = 1; id < 12; id++) raw(JSON.stringify({ jsonrpc: "2.0", method: "hook.result", params: { call: id, handler: 7, ms: 0 } })) },
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
  hello_again: () => raw('{"jsonrpc":"2.0","method":"hello","params":{"protocol":"9.0","features":[],"runtime":"x","version":"0"}}'),
  // values
  cycle: ({ output }) => { output.options = cycle(); output.system?.push(cycle()); return cycle() },
  bigint: ({ output }) => { output.options = { big: 1n }; output.system?.push(1n); return 1n },
  nan: ({ output }) => { output.options = { nan: NaN }; output.system?.push(NaN); return NaN },
  surrogate: ({ output }) => leave(output, "\ud800"),
  deletes: ({ output }) => { for (const key of Object.keys(output)) delete output[key] },
  types: ({ output }) => { for (const key of Object.keys(output)) output[key] = 5; return 5 },
  nulls: ({ output }) => { for (const key of Object.keys(output)) output[key] = null; return null },
  input: ({ input }) => { for (const key of Object.keys(input ?? {})) delete input[key] },
  later: ({ output }) => { setInterval(() => { for (const key of Object.keys(output)) output[key] = "changed later" }, 1) },
  freezes: ({ output }) => { Object.freeze(output) },
  getter: ({ output }) => { Object.defineProperty(output, "trap", { enumerable: true, get() { throw new Error("trap") } }) },
}

export default async ({ serverUrl }, { fault, where }) => {
  const client = (path) => fetch(new URL(path, serverUrl))
  const at = (place) => (input, output) =>
    place === where ? faults[fault]({ input, output: output ?? {}, client }) : undefined
  await at("load")({}, {})
  return {
    "experimental.chat.system.transform": at("experimental.chat.system.transform"),
    "chat.params": at("chat.params"),
    "tool.execute.before": at("tool.execute.before"),
    tool: { act: { description: "acts", args: {}, execute: async (args) => {
      const answer = await at("tool")(args, {})
      return answer === undefined ? "done" : answer
    } } },
    dispose: () => (fault === "never" ? new Promise(() => {}) : undefined),
  }
}
