// What a turn in a test needs of the world: a model that follows a plan, and a site whose counter shows what was done how often.
import { createServer } from 'node:http'

const INTERRUPTED = 'interrupted, outcome unknown'

/** The page of the site: each click is one request, and what is shown is what the server has counted. */
const PAGE = `<!doctype html><title>Counter</title><h1>Count: <span id="count">COUNT</span></h1>
<button onclick="fetch('/click',{method:'POST'}).then((it)=>it.text()).then((it)=>{document.getElementById('count').textContent=it})">Add</button>`

export class World {
  clicks = 0
  requests = 0
  /** What the model does, step by step; null: nothing more. */
  plan = []
  /** Requests to the model are held back. */
  held = false
  /** In place of a plan: who decides call by call (`hand.mjs`). */
  hand = null
  /** Pages of the site by their path. */
  pages = {}
  /** Where paths of the site lead. */
  redirects = {}

  async start() {
    this.server = createServer((request, response) => void this.#answer(request, response))
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve))
    this.url = `http://127.0.0.1:${this.server.address().port}`
  }

  close() {
    this.server.closeAllConnections()
    return new Promise((resolve) => this.server.close(resolve))
  }

  async #answer(request, response) {
    response.setHeader('access-control-allow-origin', '*')
    response.setHeader('access-control-allow-headers', '*')
    if (request.method === 'OPTIONS') return response.end()
    const path = request.url.split('?')[0]
    if (this.redirects[path]) return response.writeHead(302, { location: this.redirects[path] }).end()
    const page = this.pages[path]
    if (page !== undefined) {
      // As a server of the native suite: what is called a file is handed out as one.
      if (path.startsWith('/file-')) response.setHeader('content-disposition', 'attachment')
      return response.setHeader('content-type', path.startsWith('/file-') ? 'application/octet-stream' : path.endsWith('.js') ? 'text/javascript' : 'text/html; charset=utf-8').end(page)
    }
    if (request.url === '/page') return response.setHeader('content-type', 'text/html').end(PAGE.replace('COUNT', String(this.clicks)))
    if (request.url === '/click') return response.end(String(++this.clicks))
    if (!request.url.endsWith('/chat/completions')) return response.writeHead(404).end()
    let text = ''
    for await (const piece of request) text += piece
    this.requests += 1
    if (this.held) return undefined
    const { messages } = JSON.parse(text)
    const call = this.hand ? await this.hand.next(messages) : next(this.plan, messages)
    return speak(call, messages, response)
  }
}

/** Answers as a model that streams. */
function speak(call, messages, response) {
  response.setHeader('content-type', 'text/event-stream')
  const send = (delta, rest = {}) => response.write(`data: ${JSON.stringify({ choices: [{ delta, ...rest }] })}\n\n`)
  if (call) {
    send({ content: `Step ${call.step}. ` })
    send({ tool_calls: [{ index: 0, id: `call_${messages.length}`, function: { name: call.tool, arguments: '' } }] })
    send({ tool_calls: [{ index: 0, function: { arguments: JSON.stringify(call.input) } }] })
  } else {
    send({ content: 'All of it ' })
    send({ content: 'is done.' })
  }
  send({}, { finish_reason: call ? 'tool_calls' : 'stop' })
  response.end(`data: ${JSON.stringify({ choices: [], usage: { prompt_tokens: 10, completion_tokens: 2 } })}\n\ndata: [DONE]\n\n`)
}

/** What the model does next: what it has done so far stands in the conversation. A call whose outcome nobody knows is looked after
 * before it is made again. */
export function next(plan, messages) {
  let step = 0
  let clicks = 0
  let button = 'e1'
  let look = false
  const names = new Map()
  for (const message of messages) {
    for (const call of message.tool_calls ?? []) names.set(call.id, call.function.name)
    if (message.role !== 'tool') continue
    const planned = plan[step]
    if (!planned) break
    const tool = names.get(message.tool_call_id)
    button = /(e\d+) button "Add"/.exec(message.content)?.[1] ?? button
    if (tool === 'browser_snapshot' && planned.tool !== 'browser_snapshot') {
      look = false
      // A tab that was opened and shows nothing yet is opened again.
      if (planned.tool === 'browser_open' ? counted(message.content) >= 0 : counted(message.content) === clicks + 1) {
        if (planned.tool === 'browser_action') clicks += 1
        step += 1
      }
      continue
    }
    if (message.content.includes(INTERRUPTED)) {
      look = planned.tool.startsWith('browser_')
      continue
    }
    if (planned.tool === 'browser_action') clicks += 1
    step += 1
  }
  const planned = plan[step]
  if (!planned) return null
  if (look) return { step, tool: 'browser_snapshot', input: { full: true } }
  const input = planned.tool === 'browser_action' ? { ...planned.input, ref: button, expect: [{ text: `Count: ${clicks + 1}` }] } : planned.input
  return { step, tool: planned.tool, input }
}

function counted(snapshot) {
  return Number(/Count: ?"?\s*(?:"?)(\d+)/.exec(snapshot.replaceAll(/"\s*\n\s*"/g, ' '))?.[1] ?? -1)
}
