// Which code is run: what the host looked at, as it was hashed. What leads to a file (`main` of a `package.json`, `paths` of a
// `tsconfig.json`, a new file that is found first) may have been exchanged since; then it leads to one that was not looked at, and that one
// is not run. A path that a plugin computes is its own choice, as what it reads is.

import { createHash } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { dirname, extname, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const HOST = dirname(fileURLToPath(import.meta.url));
// Without one, `require` takes a file for JavaScript.
const CODE = new Set([".ts", ".mts", ".cts", ".tsx", ".jsx", ".js", ".mjs", ".cjs", ".node", ""]);
// What a tsconfig.json has put into every source with JSX.
const OF_JSX = /\/jsx(?:-dev)?-runtime$/;

// Of all plugins of this process. SHA-256 by path:
const hashes = new Map();
// Folders of packages, of which all code is in `hashes`.
const packages = [];
// Folders whose files are not compared: of plugins from npm, of modules that the host has for all.
const free = [`${HOST}/`];
// Paths that sources name and where something else was found, or nothing.
const unresolved = new Set();
// Files that a plugin named by their paths at run time.
const chosen = new Set();

export function admitSources(sources, folders, entries) {
  for (const [path, hash] of Object.entries(sources?.hashes ?? {})) hashes.set(path, hash);
  packages.push(...(sources?.packages ?? []).map((folder) => `${folder}/`));
  free.push(...[...(sources?.free ?? []), ...folders].map((folder) => `${real(folder) ?? folder}/`));
  for (const path of [...(sources?.unresolved ?? []), ...entries]) if (!hashes.has(path)) unresolved.add(path);
}

// Whether anything is compared.
export function compares() {
  return hashes.size > 0;
}

export function freeFolders() {
  return free;
}

// What `initialize` of another thread needs for the same.
export function state() {
  return { hashes, packages, free, unresolved };
}

export function adoptState(other) {
  for (const [path, hash] of other.hashes) hashes.set(path, hash);
  for (const path of other.unresolved) unresolved.add(path);
  packages.push(...other.packages);
  free.push(...other.free);
}

export function isLookedAt(path) {
  return hashes.has(path);
}

// Throws where a file is code and is not to be run.
export function admit(path) {
  if (!compares() || hashes.has(path) || chosen.has(path) || isFree(path) || !CODE.has(extname(path))) return;
  throw changed(path, "it is none of the files that were looked at");
}

// Throws where a file that was looked at holds something else now.
export function compare(path, bytes) {
  const expected = hashes.get(path);
  if (expected === undefined || createHash("sha256").update(bytes).digest("hex") === expected) return;
  throw changed(path, "it changed since it was looked at");
}

// The text of a source that may be run, without a mark of its byte order.
export function admittedText(path) {
  admit(path);
  const bytes = readFileSync(path);
  compare(path, bytes);
  return bytes.toString("utf8").replace(/^\uFEFF/, "");
}

// A module asks for `name`. A file that it names by its whole path, relative or absolute, it has chosen; so has one that was chosen
// itself whatever it asks for: `found`, where that is known.
export function asksFor(name, importer, found) {
  if (importer.startsWith(`${HOST}/`)) return;
  if (found !== undefined && !hashes.has(importer) && !isFree(importer)) {
    chosen.add(found);
    return;
  }
  // All of a package was looked at.
  if (name.startsWith(".") && packages.some((folder) => importer.startsWith(folder))) return;
  const path = named(name, importer);
  if (path === undefined || unresolved.has(path) || hashes.has(path)) return;
  const place = real(path);
  if (place !== undefined) chosen.add(place);
}

// The path that a specifier is, without looking for extensions or at what leads elsewhere.
function named(name, importer) {
  const plain = name.split(/[?#]/)[0];
  if (OF_JSX.test(name)) return undefined;
  if (plain.startsWith("file:")) return fileURLToPath(plain);
  if (plain.startsWith("/")) return plain;
  return /^\.{1,2}\//.test(plain) ? resolve(dirname(importer), plain) : undefined;
}

function isFree(path) {
  return free.some((folder) => path.startsWith(folder));
}

function real(path) {
  try {
    return realpathSync(path);
  } catch {
    return undefined;
  }
}

function changed(path, why) {
  return new Error(`${path} is not what was trusted: ${why}; look at it with \`outrigger plugin review\``);
}
