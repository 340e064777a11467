// A provider whose service has a protocol of its own. Plain JavaScript, no dependencies.

const KINDS = { string: "text", number: "number", integer: "number", boolean: "flag", array: "list", object: "map" };

/** A tool's JSON Schema as the list of parameters that the service wants. */
export function helper({ name, description, parameters }) {
  const { properties = {}, required = [] } = parameters;
  const takes = Object.entries(properties).map(([n, schema]) => ({
    n,
    t: KINDS[schema.type] ?? "any",
    must: required.includes(n),
    about: schema.description ?? "",
  }));
  return { fn: name, about: description, takes };
}

const texts = (content) =>
  content
    .filter((part) => part.type === "text")
    .map((part) => part.text)
    .join("\n");

/** A message as a line of the script. */
function line(message) {
  switch (message.role) {
    case "system":
      return { who: "rules", says: message.content };
    case "tool":
      return { who: "helper", ref: message.call_id, says: message.content, bad: message.is_error };
    case "user":
      return { who: "person", says: texts(message.content) };
    default: {
      const calls = message.content.filter((part) => part.type === "tool_call");
      const asks = calls.map((part) => ({ ref: part.call_id, fn: part.tool, with: part.input }));
      return { who: "machine", says: texts(message.content), asks };
    }
  }
}

/** The request in the service's form. */
function parley({ model, messages, tools, params, tool_choice }) {
  return {
    voice: model.api.id,
    script: messages.map(line),
    helpers: tools.map(helper),
    must_ask: tool_choice === "required",
    cap: params.maxOutputTokens,
    heat: params.temperature,
  };
}

/** An error that says what it stands for. */
function failure(message, about) {
  return Object.assign(new Error(message), about);
}

async function refused(response) {
  const { oops = response.statusText, again_ms: retryAfterMs } = await response.json().catch(() => ({}));
  return failure(oops, { status: response.status, retryAfterMs });
}

/** The answer's lines as they come. */
async function* lines(body) {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const bytes of body) {
    const parts = (rest + decoder.decode(bytes, { stream: true })).split("\n");
    rest = parts.pop();
    for (const part of parts) if (part) yield JSON.parse(part);
  }
}

const ENDS = { done: "stop", asked: "tool-calls", cap: "length" };

/** A line of the answer as a piece; the bill is kept for the end. */
function piece(line, bill) {
  switch (line.k) {
    case "say":
      return { type: "text", text: line.t };
    case "think":
      return { type: "reasoning", text: line.t };
    case "ask":
      return { type: "tool-call", id: line.ref, name: line.fn, input: line.with };
    case "bill":
      Object.assign(bill, { input: line.in, output: line.out, cacheRead: line.reused ?? 0 });
      return undefined;
    case "bye":
      return { type: "finish", reason: ENDS[line.why] ?? "other", usage: bill };
    case "oops":
      throw failure(line.t, { status: line.again ? 503 : 400 });
  }
}

const MODEL = {
  capabilities: { toolcall: true, temperature: true, reasoning: true, input: { text: true }, output: { text: true } },
};

/** @returns {Promise<{ provider: import("../../crates/outrigger-js/host/outrigger").OwnProvider }>} */
export const Acme = async () => ({
  provider: {
    id: "acme",
    name: "Acme Parley",
    env: ["ACME_API_KEY"],

    async models() {
      return {
        "acme-large": {
          ...MODEL,
          name: "Acme Large",
          limit: { context: 200_000, output: 8_000 },
          cost: { input: 3, output: 15, cache: { read: 0.3, write: 0 } },
        },
        "acme-small": {
          ...MODEL,
          name: "Acme Small",
          limit: { context: 32_000, output: 4_000 },
          cost: { input: 0.2, output: 1, cache: { read: 0, write: 0 } },
        },
      };
    },

    async *stream(request, { signal, key }) {
      const base = request.options.baseURL ?? "https://parley.acme.example";
      const response = await fetch(`${base}/v7/parley`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-acme-token": key },
        body: JSON.stringify(parley(request)),
        signal,
      });
      if (!response.ok) throw await refused(response);
      const bill = { input: 0, output: 0 };
      for await (const line of lines(response.body)) {
        const found = piece(line, bill);
        if (found) yield found;
      }
    },
  },
});
