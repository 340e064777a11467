// Says whose code is about to run, so that the host knows whom to blame when it does not come back.

import { dirname } from "node:path";
import { fileURLToPath } from "node:url";
import { owns } from "./output.mjs";
import { notify, notifyNow } from "./wire.mjs";

const later = globalThis.setImmediate;
const { exit, abort } = process;
// Calls whose code was entered and has not ended; events have no call.
const open = new Set();
let armed = false;
let turn = 0;

// A turn of the event loop: whatever was entered before it has let go of the thread.
function turned() {
  armed = false;
  turn++;
  if (open.size > 0) notify("plugin.yield", {});
}

// Answers the turn in which it was entered.
export function enter(plugin, what, call) {
  notifyNow("plugin.enter", { plugin, what, call });
  owns(plugin);
  open.add(call);
  if (!armed) {
    armed = true;
    later(turned);
  }
  return turn;
}

// As `enter`, where the code was entered in that turn already: said again only when it has let go since.
export function reenter(plugin, what, call, entered) {
  return entered === turn ? entered : enter(plugin, what, call);
}

// The call has ended. Twice is fine.
export function left(call) {
  open.delete(call);
}

// plugin id -> its module's path
const modules = new Map();

// Whose code a stack is of, by its outermost frame that lies in a plugin's file, or in a folder that belongs to one plugin
// alone.
export function ownerOf(stack) {
  const lines = String(stack).split("\n").reverse();
  for (const line of lines) {
    for (const [plugin, path] of modules) if (line.includes(path)) return plugin;
    const near = [...modules].filter(([, path]) => line.includes(`${dirname(path)}/`));
    if (near.length === 1) return near[0][0];
  }
  return undefined;
}

// A plugin that ends the process from a timer has entered nothing; its name is on the stack.
export function watchExits(entries) {
  for (const { id, entry } of entries) {
    try {
      modules.set(id, fileURLToPath(entry));
    } catch {
      // An entry that is not a file has no line in a stack.
    }
  }
  for (const [name, end] of [["exit", exit], ["abort", abort]]) {
    process[name] = (...args) => {
      try {
        const plugin = ownerOf(new Error().stack);
        if (plugin !== undefined) notifyNow("plugin.enter", { plugin, what: `process.${name}` });
      } catch {
        // It ends all the same.
      }
      return end.apply(process, args);
    };
  }
}
