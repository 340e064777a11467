// Whose a line of output is, where several plugins share the process (A9): what a plugin prints is marked with its name, as far
// as what runs can be followed back to it. What it writes to the descriptors itself, and what its children print, is not.

import { AsyncLocalStorage } from "node:async_hooks";
import { writeSync } from "node:fs";
import { format } from "node:util";

const { Bun } = globalThis;
const STDOUT = 1;
const STDERR = 2;
// Before the name of a plugin, and behind it, at the beginning of a line.
const BEGIN = "\x1e";
const END = "\x1f";
let owners;
// By descriptor: whose the last piece was, and whether it left a line open.
const last = new Map();

// The plugin whose code runs, where that is known.
export function owner() {
  return owners?.getStore();
}

// What runs from here on, and what it begins, is the code of this plugin.
export function owns(plugin) {
  owners?.enterWith(plugin);
}

function marked(fd, text) {
  const plugin = owner();
  const before = last.get(fd) ?? { open: false };
  if (plugin === undefined && before.plugin === undefined) return text;
  const changes = plugin !== before.plugin;
  const mark = plugin === undefined ? "" : BEGIN + plugin + END;
  const lines = text.split("\n");
  const begins = (line, index) => line !== "" && (index > 0 || changes || !before.open);
  const out = lines.map((line, index) => (begins(line, index) ? mark + line : line)).join("\n");
  last.set(fd, { plugin, open: text === "" ? before.open : !text.endsWith("\n") });
  return changes && before.open ? `\n${out}` : out;
}

function markStream(stream, fd) {
  const write = stream.write.bind(stream);
  stream.write = (chunk, ...rest) => {
    const text = typeof chunk === "string" ? chunk : Buffer.from(chunk).toString();
    return write(marked(fd, text), ...rest);
  };
}

// Bun's console does not write to the streams.
function markConsole(names, fd) {
  for (const name of names) {
    const print = console[name].bind(console);
    console[name] = (...args) => {
      if (owner() === undefined) return print(...args);
      writeSync(fd, marked(fd, `${format(...args)}\n`));
    };
  }
}

// From here on, for these plugins.
export function markOutput(plugins) {
  if (plugins.length < 2 || owners) return;
  owners = new AsyncLocalStorage();
  markStream(process.stdout, STDOUT);
  markStream(process.stderr, STDERR);
  if (!Bun) return;
  markConsole(["log", "info", "debug"], STDOUT);
  markConsole(["warn", "error", "trace"], STDERR);
}
