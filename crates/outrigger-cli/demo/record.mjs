// Records the demo's two cassettes again: real turns of the built program against a scripted model (turns.json). usage:
// node record.mjs [path of outrigger]
import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const repository = resolve(here, "../../..");
const program = resolve(process.argv[2] ?? join(repository, "target/debug/outrigger"));
const turns = JSON.parse(readFileSync(join(here, "turns.json"), "utf8"));

function mock(script) {
  const server = spawn(process.execPath, [join(repository, "tests/parity/mock.mjs"), "0", script], { stdio: ["ignore", "pipe", "inherit"] });
  return new Promise((done) => server.stdout.once("data", (line) => done({ server, port: Number(String(line).match(/\d+/)[0]) })));
}

function layOut(project) {
  mkdirSync(join(project, ".git/objects"), { recursive: true });
  for (const file of ["stats.js", "test.js", "package.json"]) cpSync(join(here, file), join(project, file));
  mkdirSync(join(project, ".opencode/plugin"), { recursive: true });
  cpSync(join(here, "plugin.js"), join(project, ".opencode/plugin/demo.js"));
}

// The demo's provider, with an address to ask and a file to record into.
function configuration(port, record) {
  const document = JSON.parse(readFileSync(join(here, "opencode.json"), "utf8"));
  const provider = document.provider.replay;
  provider.npm = "@ai-sdk/openai-compatible";
  provider.options = { baseURL: `http://127.0.0.1:${port}/v1`, apiKey: "none", record };
  return JSON.stringify(document);
}

async function record(name) {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "outrigger-record-")));
  const project = join(root, "project");
  layOut(project);
  const script = join(root, "script.json");
  writeFileSync(script, JSON.stringify({ title: turns.title, turns: turns[name] }).replaceAll("{DIR}", project));
  const { server, port } = await mock(script);
  const file = join(root, "answers.jsonl");
  writeFileSync(join(project, "opencode.json"), configuration(port, file));
  // At most the runtime, so that nothing can be installed. The prompt comes from standard input: there it stays as it is.
  mkdirSync(join(root, "bin"));
  if (name === "with-plugin") symlinkSync(process.execPath, join(root, "bin/node"));
  const env = { PATH: join(root, "bin"), HOME: root, SHELL: "/bin/sh" };
  const input = readFileSync(join(here, "prompt.txt"));
  const run = spawnSync(program, ["run", "--dir", project], { env, input, stdio: ["pipe", "inherit", "inherit"] });
  server.kill();
  if (run.status !== 0 || !existsSync(file)) throw new Error(`the turn ${name} failed; see ${root}`);
  cpSync(file, join(here, `${name}.jsonl`));
  rmSync(root, { recursive: true });
}

for (const name of ["with-plugin", "without-plugin"]) await record(name);
