// Has the runtime ask which code is run, and run what was compared (integrity.mjs): a source is read once, and those bytes are what the
// runtime gets.

import Module from "node:module";
import { readFileSync } from "node:fs";
import { dirname, extname } from "node:path";
import { fileURLToPath } from "node:url";
import { admit, adoptState, admitSources, admittedText, asksFor, compare, compares, freeFolders, isLookedAt, state } from "./integrity.mjs";
import { isCommonJs, namespaceOf, run } from "./commonjs.mjs";

const { Bun } = globalThis;
const LOADERS = { ts: "ts", mts: "ts", cts: "ts", tsx: "tsx", jsx: "jsx" };
// Code by its extension. Of a file without one Bun asks nobody.
const SOURCE = "\\.(?:[cm]?[jt]s|[jt]sx|node)";
const IMPORT = /\b(?:from|import|require)\s*\(?\s*["'`]([^"'`\n]+)["'`]/g;
const BUILT_IN = /^(?:node|bun):|^bun$/;

// Sources that are changed as they are read, each with what makes its text.
const rewrites = new Map();
// What Bun was asked to report.
const asked = new Set();
let hooked = false;

// `sources` of the host; `folders` that it has for all plugins; `entries`, files that plugins begin with. `rewrite` gives what the
// sources in `changed` are to say.
export function checkSources(sources, { folders = [], entries = [], changed = [], rewrite = admittedText } = {}) {
  admitSources(sources, folders, entries);
  for (const path of changed) rewrites.set(path, rewrite);
  if (Bun) askInBun();
  else if (compares()) askInNode();
}

function askInNode() {
  if (!Module.registerHooks) {
    // Before 22.15 hooks live in another thread, which has its own copy of this module, and `require` asks none.
    Module.register(import.meta.url, { data: state() });
    if (!hooked) askOfRequire();
  } else if (!hooked) {
    Module.registerHooks({
      resolve: (name, context, next) => resolved(name, context, next(name, context)),
      load: (url, context, next) => loaded(url, next(url, context)),
    });
  }
  hooked = true;
}

function pathOf(url) {
  return url?.startsWith("file:") ? fileURLToPath(url.split(/[?#]/)[0]) : undefined;
}

function resolved(name, { parentURL }, found) {
  const [importer, path] = [pathOf(parentURL), pathOf(found.url)];
  if (importer !== undefined && path !== undefined) asksFor(name, importer, path);
  return found;
}

function loaded(url, module) {
  const path = pathOf(url);
  if (path === undefined) return module;
  admit(path);
  if (isLookedAt(path)) compare(path, module.source ?? readFileSync(path));
  return module;
}

// What Node is about to run of a CommonJS module.
function askOfRequire() {
  const [find, compile, native] = [Module._resolveFilename, Module.prototype._compile, Module._extensions[".node"]];
  Module._resolveFilename = function (name, parent, ...rest) {
    const path = find.call(this, name, parent, ...rest);
    // What `import` leads to was asked about in that other thread.
    if (path.startsWith("/")) asksFor(name, parent?.filename ?? "", path);
    return path;
  };
  Module.prototype._compile = function (text, path, ...rest) {
    admit(path);
    if (isLookedAt(path) && admittedText(path) !== text) compare(path, "");
    return compile.call(this, text, path, ...rest);
  };
  Module._extensions[".node"] = function (module, path, ...rest) {
    admit(path);
    if (isLookedAt(path)) compare(path, readFileSync(path));
    return native.call(this, module, path, ...rest);
  };
}

// Of that other thread.
export function initialize(other) {
  adoptState(other);
}

export async function resolve(name, context, next) {
  return resolved(name, context, await next(name, context));
}

export async function load(url, context, next) {
  return loaded(url, await next(url, context));
}

// Bun asks by a pattern, and then for all that fits. Where a name leads it asks only of paths, so the names that a module asks for are read
// from its text. What they lead to stays: Bun reads a `package.json` or `tsconfig.json` once.
function askInBun() {
  const escape = (path) => path.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const filter = compares()
    ? `^(?!${freeFolders().map(escape).join("|")})/.*${SOURCE}(?:\\?.*)?$`
    : `^(?:${[...rewrites.keys()].map(escape).join("|")})$`;
  if (asked.has(filter) || (!compares() && rewrites.size === 0)) return;
  asked.add(filter);
  Bun.plugin({
    name: "outrigger-sources",
    setup(build) {
      if (compares()) {
        build.onResolve({ filter: /^(?:\.{0,2}\/|file:)/ }, ({ path, importer }) => {
          asksFor(path, importer);
          return undefined;
        });
      }
      build.onLoad({ filter: new RegExp(filter) }, ({ path }) => moduleOf(path.split("?")[0]));
    },
  });
}

function moduleOf(path) {
  if (extname(path) === ".node") return nativeOf(path);
  const loader = loaderOf(path);
  const contents = textOf(path);
  const isModule = !isCommonJs(path, contents, loader);
  if (compares() && (isModule || !isLookedAt(path))) asksForAll(path, contents);
  if (isModule) return { contents, loader };
  const module = run(path, commonJs, undefined, contents);
  return { loader: "object", exports: namespaceOf(module.exports) };
}

function nativeOf(path) {
  admit(path);
  compare(path, readFileSync(path));
  const module = { exports: {} };
  process.dlopen(module, path);
  return { loader: "object", exports: namespaceOf(module.exports) };
}

// The text of a CommonJS module that is run here.
function commonJs(path) {
  if (!isLookedAt(path) && !rewrites.has(path)) return undefined;
  const text = textOf(path);
  return isCommonJs(path, text, loaderOf(path)) ? text : undefined;
}

function textOf(path) {
  return (rewrites.get(path) ?? admittedText)(path);
}

function asksForAll(importer, text) {
  const isChosen = !isLookedAt(importer);
  for (const [, name] of text.matchAll(IMPORT)) {
    // One with an extension is asked about as it is loaded.
    if (BUILT_IN.test(name) || (!isChosen && name.startsWith(".") && extname(name) !== "")) continue;
    const found = resolvedByBun(name, dirname(importer));
    if (found === undefined) continue;
    if (isChosen) asksFor(name, importer, found);
    if (extname(found) === "") admit(found);
  }
}

function resolvedByBun(name, folder) {
  try {
    const found = Bun.resolveSync(name, folder);
    return found.startsWith("/") ? found : undefined;
  } catch {
    // Nothing is there, which the import says better.
    return undefined;
  }
}

function loaderOf(path) {
  return LOADERS[extname(path).slice(1)] ?? "js";
}
