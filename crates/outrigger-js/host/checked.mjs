// Code is run as it was hashed (issue 18): a source that the host looked at is read once, compared with its hash, and those
// bytes are what the runtime gets.

import Module from "node:module";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { isCommonJs, namespaceOf, run } from "./commonjs.mjs";

const { Bun } = globalThis;
const LOADERS = { ts: "ts", mts: "ts", cts: "ts", tsx: "tsx", jsx: "jsx", js: "js", mjs: "js", cjs: "js" };
const SOURCE = "\\.(?:[cm]?[jt]s|[jt]sx)";

// SHA-256 by path, of all plugins of this process.
const hashes = new Map();
let hooked = false;

function check(path, bytes) {
  const expected = hashes.get(path);
  if (expected === undefined || createHash("sha256").update(bytes).digest("hex") === expected) return;
  throw changed(path, "it changed since it was looked at");
}

function changed(path, why) {
  return new Error(`${path} is not what was trusted: ${why}; look at it with \`outrigger plugin review\``);
}

// The text of a source, where it is as it was looked at, without a mark of its byte order.
export function checkedText(path) {
  const bytes = readFileSync(path);
  check(path, bytes);
  return bytes.toString("utf8").replace(/^\uFEFF/, "");
}

// Has the runtime ask for these sources, `{hashes, packages}`, and for those in `rewrites`, of which `rewrite` gives what
// they are to say.
export function checkSources(sources, rewrites = new Map(), rewrite = checkedText) {
  for (const [path, hash] of Object.entries(sources?.hashes ?? {})) hashes.set(path, hash);
  if (Bun) {
    const paths = new Set([...Object.keys(sources?.hashes ?? {}), ...rewrites.keys()]);
    const textOf = (path) => (rewrites.has(path) ? rewrite(path) : checkedText(path));
    if (paths.size > 0) checkInBun(paths, sources?.packages ?? [], textOf);
    return;
  }
  if (hashes.size > 0) checkInNode();
}

function checkInNode() {
  if (!Module.registerHooks) {
    // Before 22.15 hooks live in another thread, which has its own copy of this module, and `require` asks none.
    Module.register(import.meta.url, { data: hashes });
    if (!hooked) checkRequired();
    hooked = true;
  } else if (!hooked) {
    hooked = true;
    Module.registerHooks({ load: (url, context, next) => checkLoaded(url, next(url, context)) });
  }
}

function checkLoaded(url, loaded) {
  const path = url.startsWith("file:") ? fileURLToPath(url.split(/[?#]/)[0]) : undefined;
  if (hashes.has(path)) check(path, loaded.source ?? readFileSync(path));
  return loaded;
}

// What Node is about to run of a CommonJS module.
function checkRequired() {
  const compile = Module.prototype._compile;
  Module.prototype._compile = function (text, path, ...rest) {
    if (hashes.has(path) && checkedText(path) !== text) throw changed(path, "it changed while it was read");
    return compile.call(this, text, path, ...rest);
  };
}

// Of that other thread.
export function initialize(sources) {
  for (const [path, hash] of sources) hashes.set(path, hash);
}

export async function load(url, context, next) {
  return checkLoaded(url, await next(url, context));
}

// Bun asks by a pattern, and then for all that fits: packages as a whole, and other files one by one.
function checkInBun(known, packages, textOf) {
  const escape = (path) => path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const folders = packages.map((folder) => `${folder}/`);
  const files = [...known].filter((path) => !folders.some((folder) => path.startsWith(folder)));
  const patterns = files.map((path) => `${escape(path)}$`);
  patterns.push(...folders.map((folder) => `${escape(folder)}.*${SOURCE}$`));
  const filter = new RegExp(`^(?:${patterns.join("|")})`);
  const commonJs = (path) => {
    if (!known.has(path)) return undefined;
    const text = textOf(path);
    return isCommonJs(path, text, loaderOf(path)) ? text : undefined;
  };
  Bun.plugin({
    name: "outrigger-sources",
    setup(build) {
      build.onLoad({ filter }, ({ path }) => {
        if (!known.has(path)) throw changed(path, "it was not there when the plugin was looked at");
        const loader = loaderOf(path);
        const contents = textOf(path);
        if (!isCommonJs(path, contents, loader)) return { contents, loader };
        const module = run(path, commonJs, undefined, contents);
        return { loader: "object", exports: namespaceOf(module.exports) };
      });
    },
  });
}

function loaderOf(path) {
  return LOADERS[path.slice(path.lastIndexOf(".") + 1)];
}
