// The plugin of `outrigger demo`, as one would write it for OpenCode: no package, no build.
import { readFile, readdir } from "node:fs/promises";
import { join } from "node:path";

async function facts(directory, detail) {
  const { name, scripts, dependencies = {} } = JSON.parse(await readFile(join(directory, "package.json"), "utf8"));
  const lines = [`project: ${name}`, `tests: npm test (runs \`${scripts.test}\`)`];
  if (detail === "full") {
    const files = (await readdir(directory)).filter((file) => file.endsWith(".js"));
    lines.push(`sources: ${files.sort().join(", ")}`, `packages needed: ${Object.keys(dependencies).length}`);
  }
  return lines.join("\n");
}

export const DemoPlugin = async ({ directory }) => ({
  // Rewrites a tool's arguments: npm may not be here, but the program that runs this plugin is.
  "tool.execute.before": async ({ tool }, output) => {
    if (tool === "bash") output.args.command = output.args.command.replace(/^npm test\b/, '"$JS" test.js');
  },
  // Gives the shell a variable.
  "shell.env": async (_, output) => {
    output.env.JS = process.execPath;
  },
  // Adds a tool.
  tool: {
    project_facts: {
      description: "What this project is, how it is tested and which files it has.",
      args: { detail: { type: "string", enum: ["short", "full"], description: "How much to tell" } },
      execute: ({ detail }) => facts(directory, detail),
    },
  },
});
