// Large payloads by file. The host makes every file and names it; a token in it says that it is the one that was meant.

import { closeSync, constants, openSync, readFileSync, writeFileSync } from "node:fs";
import { wellFormed } from "./value.mjs";
import { notify, request } from "./wire.mjs";

const { parse, stringify } = JSON;
const { O_NOFOLLOW, O_RDONLY, O_TRUNC, O_WRONLY } = constants;
const MAX_FRAME = 64 * 1024 * 1024;

// Over how many bytes an answer goes by file.
let over = Infinity;

export function fileOver(bytes) {
  if (bytes !== undefined) over = bytes;
}

// What a file of the host holds under `key`.
export function fromFile({ file, token }, key) {
  const fd = openSync(file, O_RDONLY | O_NOFOLLOW);
  try {
    const bytes = readFileSync(fd);
    // The JSON is one line; long texts follow it as they are.
    const line = bytes.indexOf(10);
    const end = line < 0 ? bytes.length : line;
    const content = parse(bytes.toString("utf8", 0, end));
    if (content.token !== token) throw new Error("the file of the payload is another one");
    for (const [path, from, to, ascii] of content.texts ?? []) {
      const last = path.length - 1;
      let place = content[key];
      for (let i = 0; i < last; i++) place = place[path[i]];
      place[path[last]] = bytes.toString(ascii ? "latin1" : "utf8", end + 1 + from, end + 1 + to);
    }
    return content[key];
  } finally {
    closeSync(fd);
  }
}

// Tells what a handler changed, by file when it is much: then it answers a promise. Fails when it is more than may be sent.
// `last`: the call's answer follows at once.
export function tell(report, { items, order }, last) {
  if (!items && !order) return notify("hook.result", report, last);
  if (over === Infinity) return notify("hook.result", { ...report, items, order });
  let text = stringify({ items: items ?? [], order });
  if (text.length <= over) return notify("hook.result", { ...report, items, order });
  return tellByFile(report, text);
}

async function tellByFile(report, text) {
  if (text.includes("\\ud")) text = stringify(wellFormed(parse(text)));
  const bytes = Buffer.byteLength(text);
  if (bytes > MAX_FRAME) throw new RangeError(`an answer of ${bytes} bytes is over the limit of ${MAX_FRAME}`);
  const { file, token } = await request("file.open", { call: report.call, handler: report.handler, bytes });
  const fd = openSync(file, O_WRONLY | O_TRUNC | O_NOFOLLOW);
  try {
    writeFileSync(fd, `{"token":${stringify(token)},${text.slice(1)}`);
  } finally {
    closeSync(fd);
  }
  notify("hook.result", { ...report, file: token });
}
