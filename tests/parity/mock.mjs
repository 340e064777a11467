// The scripted model: an OpenAI-compatible chat.completions server on loopback.
// usage: node mock.mjs PORT SCRIPT LOG   (port 0: any free one; the line "mock on PORT" says it listens)
// SCRIPT is {"title"?: TURN, "summary"?: TURN, "turns": [TURN..]}, TURN is {text?, reasoning?, tools?: [{name, args, id?}], usage?: [IN, OUT], delay?: MS}
// or {status, error}. A request without tools is the title request, or one for a summary of the conversation; the others get
// one turn each, the last turn over and over.
import fs from 'node:fs'
import http from 'node:http'

const [port, scriptFile, log] = process.argv.slice(2)
let asked = 0
// How the two programs request a summary, with their own prompt and with a plugin's.
const SUMMARY = ['<conversation>', 'The conversation so far:', 'The following is the conversation history:']

function chunks(turn, model) {
  const id = 'chatcmpl-' + asked
  const frames = []
  const frame = (body) => frames.push('data: ' + JSON.stringify({ id, object: 'chat.completion.chunk', created: 1, model, ...body }) + '\n\n')
  const delta = (content, finish) => frame({ choices: [{ index: 0, delta: content, finish_reason: finish ?? null }] })
  delta({ role: 'assistant', content: '' })
  if (turn.reasoning) delta({ reasoning_content: turn.reasoning })
  if (turn.text) for (const piece of turn.text.match(/.{1,8}/gs)) delta({ content: piece })
  for (const [index, tool] of (turn.tools ?? []).entries()) {
    delta({ tool_calls: [{ index, id: tool.id ?? `call_${asked}_${index}`, type: 'function', function: { name: tool.name, arguments: '' } }] })
    delta({ tool_calls: [{ index, function: { arguments: JSON.stringify(tool.args) } }] })
  }
  delta({}, turn.tools?.length ? 'tool_calls' : 'stop')
  const [sent, got] = turn.usage ?? [100, 10]
  frame({ choices: [], usage: { prompt_tokens: sent, completion_tokens: got, total_tokens: sent + got } })
  frames.push('data: [DONE]\n\n')
  return frames
}

function answer(request, response, text) {
  const body = text ? JSON.parse(text) : {}
  const script = JSON.parse(fs.readFileSync(scriptFile, 'utf8'))
  const noTools = !(body.tools && body.tools.length)
  const isSummary = noTools && SUMMARY.some((words) => text.includes(words))
  const isTitle = noTools && !isSummary
  if (log) fs.appendFileSync(log, JSON.stringify({ url: request.url, headers: request.headers, body, isTitle }) + '\n')
  if (!request.url.includes('chat/completions')) {
    response.writeHead(404)
    return response.end('{}')
  }
  const turn = isTitle ? (script.title ?? { text: 'A title' }) : isSummary ? (script.summary ?? { text: 'A summary' }) : script.turns[Math.min(asked++, script.turns.length - 1)]
  if (turn.status) {
    response.writeHead(turn.status, { 'content-type': 'application/json' })
    return response.end(JSON.stringify({ error: { message: turn.error } }))
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const frames = chunks(turn, body.model)
  // A slow model: everything but the end is sent at once.
  const end = turn.delay ? frames.splice(-3) : []
  for (const frame of frames) response.write(frame)
  setTimeout(() => response.end(end.join('')), turn.delay ?? 0)
}

const server = http.createServer((request, response) => {
  const parts = []
  request.on('data', (part) => parts.push(part))
  request.on('end', () => answer(request, response, Buffer.concat(parts).toString('utf8')))
})
server.listen(Number(port), '127.0.0.1', () => console.log('mock on', server.address().port))
