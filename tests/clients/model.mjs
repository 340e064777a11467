// A scripted model for several conversations at once: an OpenAI-compatible chat.completions server on loopback.
// usage: node model.mjs RULES [LOG]   (it says "mock on PORT" once it listens on a free port)
// RULES is {"title"?: TURN, "rules": [{"match": TEXT, "turns": [TURN..]}]}, TURN is
// {text?, reasoning?, tools?: [{name, args}], delay?: milliseconds before each piece, status?, error?}.
// The last message of the user chooses the rule (the one whose TEXT comes first in it), the messages of the assistant behind it
// choose the turn; so answers do not depend on who asks first. A request without tools is the title request.
import fs from 'node:fs'
import http from 'node:http'

const [rulesFile, log] = process.argv.slice(2)
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))
let asked = 0

const textOf = (content) => (typeof content === 'string' ? content : (content ?? []).map((part) => part.text ?? '').join('\n'))

function choose(body) {
  const script = JSON.parse(fs.readFileSync(rulesFile, 'utf8'))
  if (!body.tools?.length) return script.title ?? { text: 'A title' }
  const messages = body.messages
  const last = messages.findLastIndex((message) => message.role === 'user')
  const said = textOf(messages[last]?.content)
  // Programs add words of their own behind those of the user.
  const found = script.rules.map((rule) => [said.indexOf(rule.match), rule]).filter(([at]) => at >= 0)
  const rule = found.sort(([a], [b]) => a - b)[0]?.[1]
  const step = messages.slice(last + 1).filter((message) => message.role === 'assistant').length
  return rule ? rule.turns[Math.min(step, rule.turns.length - 1)] : { text: 'All done.' }
}

async function answer(request, response, text) {
  if (!request.url.includes('chat/completions')) {
    response.writeHead(404)
    return response.end('{}')
  }
  const body = JSON.parse(text)
  const turn = choose(body)
  const number = ++asked
  if (log) fs.appendFileSync(log, JSON.stringify({ body }) + '\n')
  if (turn.status) {
    response.writeHead(turn.status, { 'content-type': 'application/json' })
    return response.end(JSON.stringify({ error: { message: turn.error } }))
  }
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  const frame = async (rest, wait) => {
    if (wait) await sleep(wait)
    response.write('data: ' + JSON.stringify({ id: 'chatcmpl-' + number, object: 'chat.completion.chunk', created: 1, model: body.model, ...rest }) + '\n\n')
  }
  const delta = (content, finish, wait) => frame({ choices: [{ index: 0, delta: content, finish_reason: finish ?? null }] }, wait)
  await delta({ role: 'assistant', content: '' })
  if (turn.reasoning) await delta({ reasoning_content: turn.reasoning })
  for (const piece of turn.text?.match(/.{1,8}/gs) ?? []) {
    if (response.destroyed) return
    await delta({ content: piece }, null, turn.delay)
  }
  for (const [index, tool] of (turn.tools ?? []).entries()) {
    await delta({ tool_calls: [{ index, id: `call_${number}_${index}`, type: 'function', function: { name: tool.name, arguments: '' } }] })
    await delta({ tool_calls: [{ index, function: { arguments: JSON.stringify(tool.args) } }] })
  }
  await delta({}, turn.tools?.length ? 'tool_calls' : 'stop')
  await frame({ choices: [], usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 } })
  response.end('data: [DONE]\n\n')
}

const server = http.createServer((request, response) => {
  const parts = []
  response.on('error', () => {})
  request.on('data', (part) => parts.push(part))
  request.on('end', () => answer(request, response, Buffer.concat(parts).toString('utf8')).catch((error) => {
    console.error(error)
    response.destroy()
  }))
})
server.listen(0, '127.0.0.1', () => console.log('mock on', server.address().port))
