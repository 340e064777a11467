// `@opencode-ai/plugin`, `@opencode-ai/sdk` and zod for plugins that have no copy of their own, from one folder of the
// host. A plugin's own copy always wins: this is asked only after the runtime's resolution has failed.

import Module, { createRequire } from "node:module";
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { admittedText } from "./integrity.mjs";
import { checkSources } from "./integrity_loader.mjs";

const { Bun } = globalThis;
const SHARED = /^(?:@opencode-ai\/(?:plugin|sdk)|zod)(?:\/|$)/;
const IMPORT = /(\bfrom\s*|\bimport\s*\(?\s*)(["'])((?:@opencode-ai\/(?:plugin|sdk)|zod)(?:\/[\w./-]*)?)\2/g;
// A bundled plugin brings what it needs; reading megabytes to find that out would cost more than the import.
const MAX_SOURCE = 2 * 1024 * 1024;
const LOADERS = { ts: "ts", mts: "ts", cts: "ts", tsx: "tsx", jsx: "jsx", js: "js", mjs: "js" };

// `checked`: sources by path, which are run as they were hashed.
export function fallBackTo(modules, entries, checked) {
  const files = entries.filter((entry) => entry.startsWith("file:")).map((entry) => fileURLToPath(entry));
  const known = { entries: files, folders: modules ? [modules] : [] };
  if (Bun && modules) {
    patchRequire((name) => Bun.resolveSync(name, modules));
    checkSources(checked, { ...known, changed: needy(entries).keys(), rewrite: (path) => rewritten(path, modules) });
    return;
  }
  checkSources(checked, known);
  if (!modules) return;
  const anchor = join(modules, "package.json");
  if (Module.registerHooks) {
    Module.registerHooks({
      resolve(name, context, next) {
        try {
          return next(name, context);
        } catch (error) {
          if (!SHARED.test(name)) throw error;
          return next(name, { ...context, parentURL: pathToFileURL(anchor).href });
        }
      },
    });
    return;
  }
  patchRequire(createRequire(anchor).resolve);
  // Hooks of Node before 22.15 live in another thread that every module then passes through, slow for a large bundle.
  if (!entries.some(mayNeed)) return;
  const hook = `export async function initialize(data) { globalThis.anchor = data }
    export async function resolve(name, context, next) {
      try { return await next(name, context) } catch (error) {
        if (!${SHARED}.test(name)) throw error;
        return next(name, { ...context, parentURL: globalThis.anchor });
      }
    }`;
  Module.register(`data:text/javascript,${encodeURIComponent(hook)}`, {
    data: pathToFileURL(anchor).href,
  });
}

// Whether a plugin has no copy of its own of one of the packages. An installed one must also name it.
function mayNeed(entry) {
  const file = fileURLToPath(entry);
  const missing = ["@opencode-ai/plugin", "zod"].filter((name) => !hasPackage(name, file));
  if (missing.length === 0) return false;
  if (!file.includes("/node_modules/")) return true;
  try {
    const text = readFileSync(file, "utf8");
    return text.length <= MAX_SOURCE && missing.some((name) => text.includes(`"${name}`) || text.includes(`'${name}`));
  } catch {
    return false;
  }
}

function hasPackage(name, file) {
  for (let folder = dirname(file); ; folder = dirname(folder)) {
    if (existsSync(join(folder, "node_modules", name))) return true;
    if (folder === dirname(folder)) return false;
  }
}

function patchRequire(resolve) {
  const original = Module._resolveFilename;
  Module._resolveFilename = function (name, ...rest) {
    try {
      return original.call(this, name, ...rest);
    } catch (error) {
      if (typeof name !== "string" || !SHARED.test(name)) throw error;
      return resolve(name);
    }
  };
}

function resolves(name, folder) {
  try {
    Bun.resolveSync(name, folder);
    return true;
  } catch {
    return false;
  }
}

// Bun asks its plugins about no bare name (a specifier without a dot or a colon never reaches `onResolve`), and reads
// NODE_PATH only for `require`. What works is to name the file in the source as it is loaded; so this walks the
// plugin's own files and finds those that import one of the packages and cannot resolve it.
function needy(entries) {
  const found = new Map();
  const seen = new Set();
  const visit = (file) => {
    if (seen.has(file) || file.includes("/node_modules/")) return;
    seen.add(file);
    const loader = LOADERS[file.slice(file.lastIndexOf(".") + 1)];
    if (!loader) return;
    let text;
    try {
      text = readFileSync(file, "utf8");
      if (text.length > MAX_SOURCE) return;
      for (const { path } of new Bun.Transpiler({ loader }).scanImports(text)) {
        if (SHARED.test(path)) {
          if (!found.has(file) && !resolves(path, dirname(file))) found.set(file, loader);
        } else if (path.startsWith(".")) {
          visit(Bun.resolveSync(path, dirname(file)));
        }
      }
    } catch {
      // What cannot be read or parsed fails at import, with a better message than one from here.
    }
  };
  for (const entry of entries) {
    try {
      visit(Bun.resolveSync(fileURLToPath(entry), "/"));
    } catch {
      // As above.
    }
  }
  return found;
}

function rewritten(file, modules) {
  return admittedText(file).replace(IMPORT, (whole, before, quote, name) => {
    if (resolves(name, dirname(file)) || !resolves(name, modules)) return whole;
    return before + quote + Bun.resolveSync(name, modules) + quote;
  });
}
