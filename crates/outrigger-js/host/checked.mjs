// Code is run as it was hashed (issue 18): a source that the host looked at is read once, compared with its hash, and those
// bytes are what the runtime gets. Under Bun that does not hold for
// CommonJS; what changed there while it was loaded the host finds when it looks again.

import Module from "node:module";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

const { Bun } = globalThis;
// Searching a bundle of megabytes for its exports would cost more than the import.
const MAX_SOURCE = 2 * 1024 * 1024;
const LOADERS = { ts: "ts", mts: "ts", tsx: "tsx", jsx: "jsx", js: "js", mjs: "js" };

// SHA-256 by path, of all plugins of this process.
const hashes = new Map();
let hooked = false;

function check(path, bytes) {
  const expected = hashes.get(path);
  if (expected === undefined || createHash("sha256").update(bytes).digest("hex") === expected) return;
  throw new Error(`${path} is not what was trusted: it changed since it was looked at; look at it with \`outrigger plugin review\``);
}

// The text of a source, where it is as it was looked at.
export function checkedText(path) {
  const bytes = readFileSync(path);
  check(path, bytes);
  return bytes.toString("utf8");
}

// Has the runtime ask for these sources, and for those in `rewrites`, of which `rewrite` gives what they are to say.
export function checkSources(sources, rewrites = new Map(), rewrite = checkedText) {
  for (const [path, hash] of Object.entries(sources ?? {})) hashes.set(path, hash);
  if (Bun) {
    const loaders = new Map(rewrites);
    for (const path of Object.keys(sources ?? {})) {
      const loader = loaders.has(path) ? undefined : moduleLoader(path);
      if (loader) loaders.set(path, loader);
    }
    if (loaders.size > 0) loadBy(loaders, (path) => (rewrites.has(path) ? rewrite(path) : checkedText(path)));
    return;
  }
  if (hashes.size > 0) checkInNode();
}

function checkInNode() {
  if (!Module.registerHooks) {
    // Before 22.15 hooks live in another thread, which has its own copy of this module.
    Module.register(import.meta.url, { data: hashes });
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

// Of that other thread.
export function initialize(sources) {
  for (const [path, hash] of sources) hashes.set(path, hash);
}

export async function load(url, context, next) {
  return checkLoaded(url, await next(url, context));
}

// How Bun reads an ES module; of other files it takes no text from anybody else.
function moduleLoader(path) {
  const extension = path.slice(path.lastIndexOf(".") + 1);
  const loader = LOADERS[extension];
  if (!loader) return undefined;
  try {
    const text = checkedText(path);
    if (extension.startsWith("m")) return loader;
    if (text.length > MAX_SOURCE) return undefined;
    const { exports, imports } = new Bun.Transpiler({ loader }).scan(text);
    return exports.length > 0 || imports.some(({ kind }) => kind === "import-statement") ? loader : undefined;
  } catch {
    // What cannot be read or parsed, or changed already, fails at import with a better message than one from here.
    return loader;
  }
}

function loadBy(loaders, textOf) {
  const escape = (path) => path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const filter = new RegExp(`^(?:${[...loaders.keys()].map(escape).join("|")})$`);
  Bun.plugin({
    name: "outrigger-sources",
    setup(build) {
      build.onLoad({ filter }, ({ path }) => ({ contents: textOf(path), loader: loaders.get(path) }));
    },
  });
}
