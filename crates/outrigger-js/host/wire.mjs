// The channel: frames of a 4-byte big-endian length and JSON-RPC 2.0 over the socket at descriptor 3.

import { writeSync } from "node:fs";
import { wellFormed } from "./value.mjs";

// Plugins share this realm and some replace globals, so what the channel lives on is taken before any is loaded.
const { parse, stringify } = JSON;
const later = globalThis.setTimeout;
const exit = process.exit.bind(process);
const { Bun } = globalThis;

const FD = 3;
const MAX_FRAME = 64 * 1024 * 1024;
const SMALL_BUFFER = 1024 * 1024;
const HEADER = 4;

let socket;
const queue = [];
let armed = false;
let draining;
// Whether the last frame waits for the next one, to leave with it.
let held = false;

// Bytes that the kernel took now.
function push(bytes) {
  if (Bun) {
    const taken = socket.write(bytes);
    if (taken < 0) exit(0);
    return taken;
  }
  try {
    return writeSync(FD, bytes);
  } catch (error) {
    if (error.code === "EAGAIN") return 0;
    return exit(0);
  }
}

function flush() {
  held = false;
  while (queue.length > 0) {
    const taken = push(queue[0]);
    if (taken < queue[0].length) {
      queue[0] = queue[0].subarray(taken);
      arm();
      return;
    }
    queue.shift();
  }
  draining?.();
}

// Bun calls `drain`. Node's stream would hold on to a frame it took in part, which must be free to go out at once when
// a plugin is about to be entered, so there the rest is tried again by the clock.
function arm() {
  if (Bun || armed) return;
  armed = true;
  later(() => {
    armed = false;
    flush();
  }, 1);
}

export function send(message, hold = false) {
  let text = stringify(message);
  // JSON.stringify writes a lone surrogate, and nothing else, as an escape that starts like this.
  if (text.includes("\\ud")) text = stringify(wellFormed(parse(text)));
  const size = Buffer.byteLength(text);
  if (size > MAX_FRAME) throw new RangeError(`a frame of ${size} bytes is over the limit of ${MAX_FRAME}`);
  const frame = Buffer.allocUnsafe(HEADER + size);
  frame.writeUInt32BE(size, 0);
  frame.write(text, HEADER);
  if (held) {
    held = false;
    queue.push(Buffer.concat([queue.pop(), frame]));
  } else {
    queue.push(frame);
    if (queue.length > 1) return;
    // A large one gains nothing.
    held = hold && frame.length < SMALL_BUFFER;
    if (held) return;
  }
  if (queue.length === 1) flush();
}

const pause = new Int32Array(new SharedArrayBuffer(4));

// Sends and does not return before the host can read it: the code that runs next may never give control back.
export function sendNow(message) {
  send(message);
  for (let tries = 0; queue.length > 0 && tries < 2000; tries++) {
    flush();
    if (queue.length > 0) Atomics.wait(pause, 0, 0, 1);
  }
}

// Resolves when everything sent has left.
export function flushed() {
  flush();
  return new Promise((resolve) => {
    if (queue.length === 0) return resolve();
    draining = () => {
      draining = undefined;
      resolve();
    };
  });
}

let nextId = 1;
const waiting = new Map();
// Requests that the host has, and those that wait their turn: it refuses more than 1024, streams among them.
const MAX_IN_FLIGHT = 700;
let inFlight = 0;
const queued = [];

// With `hold` it leaves with the next frame, which the caller is about to send: one wakes the host less often than two.
export function notify(method, params, hold) {
  send({ jsonrpc: "2.0", method, params }, hold);
}

export function notifyNow(method, params) {
  sendNow({ jsonrpc: "2.0", method, params });
}

// `numbered` gets the request's number.
export function request(method, params, signal, numbered) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason);
    const id = nextId++;
    numbered?.(id);
    const call = { id, method, params, resolve, reject, begun: false, done: () => signal?.removeEventListener("abort", abort) };
    const abort = () => {
      if (!waiting.delete(id)) return;
      if (call.begun) {
        notify("$/cancel", { id });
        ended();
      }
      reject(signal.reason);
    };
    waiting.set(id, call);
    signal?.addEventListener("abort", abort, { once: true });
    // An answer that goes by file does not wait behind what other plugins have asked for.
    if (inFlight < MAX_IN_FLIGHT || method === "file.open") begin(call);
    else queued.push(call);
  });
}

function begin(call) {
  call.begun = true;
  inFlight++;
  try {
    send({ jsonrpc: "2.0", id: call.id, method: call.method, params: call.params });
  } catch (error) {
    waiting.delete(call.id);
    call.done();
    call.reject(error);
    ended();
  }
}

function ended() {
  inFlight--;
  while (inFlight < MAX_IN_FLIGHT && queued.length > 0) {
    const call = queued.shift();
    // Aborted meanwhile.
    if (waiting.has(call.id)) begin(call);
  }
}

function failure({ message, data }) {
  const error = new Error(message);
  if (data?.code !== undefined) error.code = data.code;
  if (data?.refusal !== undefined) error.refusal = data.refusal;
  return error;
}

function settle(message) {
  const call = waiting.get(message.id);
  if (!call) return;
  waiting.delete(message.id);
  call.done();
  ended();
  if (message.error) call.reject(failure(message.error));
  else call.resolve(message.result);
}

let buffer = Buffer.allocUnsafe(SMALL_BUFFER);
let start = 0;
let end = 0;

function makeRoom(wanted) {
  if (start + wanted <= buffer.length) return;
  const target = wanted > buffer.length ? Buffer.allocUnsafe(wanted) : buffer;
  buffer.copy(target, 0, start, end);
  buffer = target;
  end -= start;
  start = 0;
}

// Takes any piece of the stream. A frame that is larger than the buffer makes it grow once, to that frame's size.
function feed(chunk, receive) {
  makeRoom(end - start + chunk.length);
  buffer.set(chunk, end);
  end += chunk.length;
  while (end - start >= HEADER) {
    const size = buffer.readUInt32BE(start);
    if (size > MAX_FRAME) return exit(70);
    if (end - start < HEADER + size) {
      makeRoom(HEADER + size);
      return;
    }
    const text = buffer.toString("utf8", start + HEADER, start + HEADER + size);
    start += HEADER + size;
    const message = parse(text);
    if (message.method === undefined) settle(message);
    else receive(message, size);
  }
  if (start === end) {
    start = end = 0;
    if (buffer.length > 4 * SMALL_BUFFER) buffer = Buffer.allocUnsafe(SMALL_BUFFER);
  }
}

// Opens the channel; `receive` gets every request and notification of the host. The host's end closing ends the process.
export async function open(receive) {
  const data = (chunk) => feed(chunk, receive);
  if (Bun) {
    socket = await Bun.connect({
      fd: FD,
      socket: { data: (_, chunk) => data(chunk), drain: flush, close: () => exit(0), error: () => exit(0) },
    });
    return;
  }
  const net = await import("node:net");
  socket = new net.Socket({ fd: FD });
  socket.on("data", data);
  socket.on("close", () => exit(0));
  socket.on("error", () => exit(0));
}
