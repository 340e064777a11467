// Imitations of the services that published plugins use, behind a proxy on loopback: a program that has it as
// `HTTPS_PROXY` and trusts `ca.pem` finds them under their real names, and nothing else. Arguments: this folder,
// and a file that every request is written to, one per line. The proxy's port is printed.

import { appendFileSync, readFileSync } from "node:fs";
import net from "node:net";
import { join } from "node:path";

const [folder, log] = process.argv.slice(2);
const read = (name) => readFileSync(join(folder, name), "utf8");
const json = (value) => Response.json(value);
const events = (list) =>
  new Response(list.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""), { headers: { "content-type": "text/event-stream" } });

// A token in OpenAI's form, which contains the account.
const claims = { "https://api.openai.com/auth": { chatgpt_account_id: "acc-1" } };
const jwt = ["e30", Buffer.from(JSON.stringify(claims)).toString("base64url"), "sig"].join(".");

const usage = { input_tokens: 10, output_tokens: 5 };
function codex(body) {
  const item = (type, item) => ({ type: `response.output_item.${type}`, output_index: 0, item });
  const answered = body.input.some((part) => part.type === "function_call_output");
  const message = { type: "message", id: "msg_1", role: "assistant", content: [] };
  const call = { type: "function_call", id: "fc_1", call_id: "c1", name: "read", arguments: JSON.stringify({ filePath: "hello.txt" }) };
  const thought = { type: "reasoning", id: "rs_1", encrypted_content: "enc-1", summary: [] };
  const parts = answered
    ? [item("added", message), { type: "response.output_text.delta", item_id: "msg_1", delta: "Codex says hello." }, item("done", message)]
    : [item("added", thought), item("done", thought), item("added", { ...call, arguments: "" }), item("done", call)];
  return events([...parts, { type: "response.completed", response: { usage } }]);
}

const asked = (body) =>
  JSON.stringify(body.request.contents).includes("search the web")
    ? { name: "google_search", args: { query: "harbours" } }
    : { name: "read", args: { filePath: "hello.txt" } };

function gemini(body) {
  const answered = JSON.stringify(body.request.contents).includes("functionResponse");
  const parts = answered
    ? [{ text: "Gemini says hello." }]
    : [{ functionCall: asked(body), thoughtSignature: "sig-1" }];
  const response = { candidates: [{ content: { role: "model", parts }, finishReason: "STOP" }], usageMetadata: { promptTokenCount: 10, candidatesTokenCount: 5 } };
  return events([{ response }]);
}

const routes = {
  "auth.openai.com/oauth/token": () => json({ access_token: jwt, refresh_token: "refresh-1", expires_in: 3600, id_token: jwt }),
  "chatgpt.com/backend-api/codex/responses": codex,
  "api.github.com/repos/openai/codex/releases/latest": () => json({ tag_name: "rust-v1" }),
  "oauth2.googleapis.com/token": () => json({ access_token: "google-access-1", refresh_token: "google-refresh-1", expires_in: 3600 }),
  "www.googleapis.com/oauth2/v1/userinfo": () => json({ email: "someone@example.invalid" }),
  "cloudcode-pa.googleapis.com/v1internal:loadCodeAssist": () => json({ cloudaicompanionProject: "project-1", currentTier: { id: "free-tier" } }),
  "cloudcode-pa.googleapis.com/v1internal:streamGenerateContent": gemini,
  "daily-cloudcode-pa.sandbox.googleapis.com/v1internal:streamGenerateContent": gemini,
  "daily-cloudcode-pa.sandbox.googleapis.com/v1internal:generateContent": () =>
    json({ response: { candidates: [{ content: { parts: [{ text: "Genoa has a harbour." }] } }] } }),
  "api.supermemory.ai/v3/settings": () => json({}),
  "api.supermemory.ai/v4/profile": () => json({ profile: { static: ["Ties bowlines."], dynamic: [] } }),
  "api.supermemory.ai/v4/search": () => json({ results: [{ id: "m1", memory: "The keel is red.", similarity: 0.9 }], total: 1, timing: 1 }),
  "api.supermemory.ai/v3/documents": () => json({ id: "doc-1", status: "queued" }),
};

const tls = Bun.serve({
  port: 0,
  hostname: "127.0.0.1",
  tls: { cert: read("leaf.pem"), key: read("leaf.key.pem") },
  async fetch(request) {
    const url = new URL(request.url);
    const name = `${request.headers.get("host")}${url.pathname}`;
    const text = await request.text();
    let body = text;
    try {
      body = JSON.parse(text);
    } catch {
      // A form, or nothing.
    }
    appendFileSync(log, `${JSON.stringify({ name, headers: Object.fromEntries(request.headers), body })}\n`);
    if (name.startsWith("raw.githubusercontent.com/")) return new Response("Instructions of Codex.");
    return routes[name]?.(body) ?? new Response("not imitated", { status: 404 });
  },
});

const proxy = net.createServer((client) => {
  client.once("data", (head) => {
    if (!head.toString().startsWith("CONNECT ")) return client.end("HTTP/1.1 405 Method Not Allowed\r\n\r\n");
    const service = net.connect(tls.port, "127.0.0.1", () => {
      client.write("HTTP/1.1 200 Connection Established\r\n\r\n");
      client.pipe(service);
      service.pipe(client);
    });
    service.on("error", () => client.destroy());
    client.on("error", () => service.destroy());
  });
  client.on("error", () => {});
});
proxy.listen(0, "127.0.0.1", () => console.log(proxy.address().port));
// The end of the test closes this pipe.
process.stdin.on("end", () => process.exit(0)).resume();
