// CommonJS modules of a text that the host compared with its hash. Bun's `onLoad` takes ES modules only, so these are run as
// the runtime runs them: a function around the text, one module object a path, and a `require` that comes back here.

import Module, { createRequire } from "node:module";
import { dirname, extname } from "node:path";
import { admit, asksFor } from "./integrity.mjs";

const { Bun } = globalThis;
// A text without any of these runs as an ES module just as well. `export {}` is nothing that a scan reports.
const WORDS = /\b(?:module|exports|require|__dirname|__filename)\b/;
const EMPTY_EXPORT = /^\s*export\s*\{\s*\}/m;
const TYPED = { ".ts": "ts", ".cts": "ts", ".tsx": "tsx", ".jsx": "jsx" };
// Of `require.resolve` and what else is there of Bun's own.
const OF_REQUIRE = ["resolve", "cache", "extensions", "main"];

const modules = new Map();

export function isCommonJs(path, text, loader) {
  const extension = extname(path);
  if (extension === ".mjs" || extension === ".mts" || !WORDS.test(text) || EMPTY_EXPORT.test(text)) return false;
  const { exports, imports } = new Bun.Transpiler({ loader }).scan(text);
  return exports.length === 0 && !imports.some(({ kind }) => kind === "import-statement");
}

// What an `import` of such a module gives.
export function namespaceOf(exports) {
  const isObject = exports !== null && (typeof exports === "object" || typeof exports === "function");
  // As in Bun, a class's own constructor is not an export.
  const { constructor, ...named } = isObject ? exports : {};
  const base = isObject && exports.__esModule && "default" in exports ? exports.default : exports;
  // The last is what a `require` of Bun's own takes.
  return { ...named, default: base, "module.exports": exports };
}

// Runs a module, once. `textOf` gives the text of a path that is one of ours and CommonJS, or nothing.
export function run(path, textOf, parent, text) {
  const known = modules.get(path);
  // A plugin may take it from the cache to have it run anew.
  if (known && Module._cache[path] === known) return known;
  text ??= textOf(path);
  if (text === undefined) return undefined;
  // Bun's own `require` has made it already, and looks there for what it exports.
  const module = Module._cache[path] ?? new Module(path, parent);
  module.filename = path;
  module.paths = Module._nodeModulePaths(dirname(path));
  module.require = requireOf(module, textOf);
  modules.set(path, module);
  Module._cache[path] = module;
  try {
    const call = compile(path, text);
    call.call(module.exports, module.exports, module.require, module, path, dirname(path));
  } catch (error) {
    modules.delete(path);
    delete Module._cache[path];
    throw error;
  }
  module.loaded = true;
  return module;
}

function requireOf(module, textOf) {
  const runtime = createRequire(module.filename);
  const require = (name) => {
    const path = runtime.resolve(name);
    if (path.startsWith("/")) {
      asksFor(name, module.filename, path);
      admit(path);
    }
    return (run(path, textOf, module) ?? { exports: runtime(name) }).exports;
  };
  for (const key of OF_REQUIRE) require[key] = runtime[key];
  return require;
}

// In a module of its own, so that `import()` in it starts from its path.
function compile(path, text) {
  const loader = TYPED[extname(path)];
  const code = loader ? new Bun.Transpiler({ loader }).transformSync(text) : text.replace(/^#!.*/, "");
  const outer = new Module(path);
  outer.filename = path;
  outer._compile(`module.exports = function (exports, require, module, __filename, __dirname) {${code}\n}`, path);
  return outer.exports;
}
