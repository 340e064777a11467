// The model of the soak: streams a turn with two tool calls and then one with a text. node model.mjs; prints its port on a
// line.
import { createServer } from "node:http"

const CALLS = [
  { index: 0, function: { name: "read", arguments: JSON.stringify({ filePath: "hello.txt" }) } },
  { index: 1, function: { name: "act", arguments: "{}" } },
]

function answer(request) {
  const offered = new Set((request.tools ?? []).map((tool) => tool.function.name))
  const last = request.messages.at(-1)
  const calls = last?.role === "user" ? CALLS.filter((call) => offered.has(call.function.name)) : []
  const now = Date.now()
  const delta = calls.length
    ? { tool_calls: calls.map((call) => ({ ...call, id: `call_${now}_${call.index}_${Math.random().toString(36).slice(2)}`, type: "function" })) }
    : { content: "All done." }
  return [delta, calls.length ? "tool_calls" : "stop"]
}

const server = createServer((request, response) => {
  const pieces = []
  request.on("data", (piece) => pieces.push(piece))
  request.on("end", () => {
    const [delta, reason] = answer(JSON.parse(Buffer.concat(pieces)))
    const chunk = (choice, more = {}) =>
      response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 0, model: "m1", choices: [choice], ...more })}\n\n`)
    response.writeHead(200, { "content-type": "text/event-stream" })
    chunk({ index: 0, delta: { role: "assistant", ...delta } })
    chunk({ index: 0, delta: {}, finish_reason: reason }, { usage: { prompt_tokens: 10, completion_tokens: 5, total_tokens: 15 } })
    response.end("data: [DONE]\n\n")
  })
  request.on("error", () => response.destroy())
})
server.listen(0, "127.0.0.1", () => console.log(`model on ${server.address().port}`))
