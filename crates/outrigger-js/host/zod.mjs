// JSON Schema and validation of a tool's arguments. Plugins bring zod schemas of any v4, often bundled.

import { existsSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const { Bun } = globalThis;

export function isZod(value) {
  return typeof value === "object" && value !== null && "_zod" in value;
}

function isSchema(value) {
  return typeof value === "boolean" || (typeof value === "object" && value !== null && !Array.isArray(value));
}

// The module that `import` would load. Node's resolver for `require` finds the CommonJS twin, a second copy of it all.
function locate(name, place) {
  if (Bun) return Bun.resolveSync(name, dirname(place));
  const file = createRequire(place).resolve(name);
  const twin = file.replace(/\.cjs$/, ".js");
  return existsSync(twin) ? twin : file;
}

// Every copy of zod v4 within reach. The host's goes first: it is the version that OpenCode converts with, and it
// reads the schemas of later ones, while a later one fails on schemas that a plugin has adapted to OpenCode's
// (zod 4.6.7 on those of oh-my-opencode 4.19.4).
async function* copies(entry, modules) {
  const places = [fileURLToPath(entry)];
  if (modules) places.unshift(join(modules, "package.json"));
  for (const place of places) {
    for (const name of ["zod", "zod/v4", "@opencode-ai/plugin"]) {
      try {
        const module = await import(pathToFileURL(locate(name, place)).href);
        const z = name === "@opencode-ai/plugin" ? module.tool?.schema : (module.z ?? module.default ?? module);
        if (typeof z?.toJSONSchema === "function" && typeof z.object === "function") yield z;
      } catch {
        // Not there, or not a v4: the next one may be.
      }
    }
  }
}

// What a schema says of itself. It is asked, not looked up: each copy of zod keeps its own registry.
function metadata(schema) {
  const { id, ...meta } = (typeof schema.meta === "function" && schema.meta()) || {};
  if (typeof schema.description === "string") meta.description = schema.description;
  return meta;
}

// A registry of `z` with the metadata of every schema below `root`, whichever copy of zod made it.
function registryOf(z, root) {
  const registry = z.registry();
  const seen = new Set();
  const visit = (value) => {
    if (typeof value !== "object" || value === null || seen.has(value)) return;
    seen.add(value);
    if (!isZod(value)) return Object.values(value).forEach(visit);
    const meta = metadata(value);
    if (Object.keys(meta).length > 0) registry.add(value, meta);
    visit(value._zod.def);
  };
  visit(root);
  return registry;
}

const DIALECT = "https://json-schema.org/draft/2020-12/schema";

// As OpenCode: zod when every argument is zod, else a map of JSON Schemas with every key required.
export async function argumentSchema(args, entry, modules) {
  const entries = Object.entries(args);
  if (!entries.every(([, value]) => isZod(value))) {
    const properties = Object.fromEntries(entries.filter(([, value]) => isSchema(value)));
    return { schema: { type: "object", properties, required: Object.keys(properties) } };
  }
  if (entries.length === 0) return { schema: { $schema: DIALECT, type: "object", properties: {} } };
  let reason = "no copy of zod is in reach: run `outrigger plugin setup`";
  for await (const z of copies(entry, modules)) {
    try {
      const object = z.object(args);
      return { schema: z.toJSONSchema(object, { io: "input", metadata: registryOf(z, object) }) };
    } catch (error) {
      reason = error?.message ?? String(error);
    }
  }
  const required = entries.filter(([, value]) => value._zod.optin === undefined).map(([key]) => key);
  const properties = Object.fromEntries(entries.map(([key, value]) => [key, sketch(value)]));
  const schema = { $schema: DIALECT, type: "object", properties, ...(required.length > 0 && { required }) };
  return { schema, problem: `its argument schema is a sketch (${reason})` };
}

// Enough of zod's own conversion for a model to call the tool; validation is by the schema itself all the same.
function sketch(schema) {
  return { ...sketchType(schema._zod.def, schema._zod.bag ?? {}), ...metadata(schema) };
}

function sketchType(def, bag) {
  switch (def.type) {
    case "string":
      return drop({ type: "string", minLength: bag.minimum, maxLength: bag.maximum });
    case "number":
      return drop({ type: /int/.test(bag.format ?? "") ? "integer" : "number", minimum: bag.minimum, maximum: bag.maximum });
    case "boolean":
    case "null":
      return { type: def.type };
    case "enum":
      return { type: "string", enum: Object.values(def.entries) };
    case "literal":
      return { enum: [...def.values] };
    case "array":
      return { type: "array", items: sketch(def.element) };
    case "record":
      return { type: "object", additionalProperties: sketch(def.valueType) };
    case "union":
      return { anyOf: def.options.map(sketch) };
    case "intersection":
      return { allOf: [sketch(def.left), sketch(def.right)] };
    case "object": {
      const entries = Object.entries(def.shape);
      const required = entries.filter(([, value]) => value._zod.optin === undefined).map(([key]) => key);
      const properties = Object.fromEntries(entries.map(([key, value]) => [key, sketch(value)]));
      return { type: "object", properties, ...(required.length > 0 && { required }) };
    }
    case "nullable":
      return { anyOf: [sketch(def.innerType), { type: "null" }] };
    case "pipe":
      return sketch(def.in);
    default:
      return def.innerType ? sketch(def.innerType) : {};
  }
}

function drop(object) {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => Number.isFinite(value) || typeof value === "string"));
}

// The issues of the arguments, one text each; OpenCode only validates, it applies no defaults or transforms.
export async function issues(definition, args) {
  const schemas = Object.entries(definition);
  if (schemas.length === 0 || !schemas.every(([, value]) => isZod(value))) return [];
  if (typeof args !== "object" || args === null || Array.isArray(args)) return ["expected an object"];
  const found = [];
  for (const [key, schema] of schemas) {
    const result = await check(schema, args[key]);
    for (const issue of result.error?.issues ?? []) {
      found.push(`${[key, ...issue.path].join(".")}: ${issue.message}`);
    }
  }
  return found;
}

function check(schema, value) {
  try {
    return schema.safeParse(value);
  } catch (error) {
    // Thrown for a schema with asynchronous checks.
    if (typeof schema.safeParseAsync === "function") return schema.safeParseAsync(value);
    throw error;
  }
}
