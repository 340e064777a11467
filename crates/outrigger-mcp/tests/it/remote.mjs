// A server behind streamable HTTP for tests; prints its port.
import http from 'node:http'

const [mode] = process.argv.slice(2)
let session = 0
const seen = []
let pending = null
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] })

function answer(message, request) {
  const { id, method, params } = message
  if (method === 'initialize') return { id, result: { protocolVersion: '2025-03-26', capabilities: { tools: {} }, serverInfo: { name: 'remote' } } }
  if (method === 'tools/list') return { id, result: { tools: [{ name: 'say', inputSchema: { type: 'object' } }, { name: 'seen', inputSchema: { type: 'object' } }, { name: 'forget', inputSchema: { type: 'object' } }, { name: 'hang', inputSchema: { type: 'object' } }, { name: 'ask', inputSchema: { type: 'object' } }] } }
  if (params?.name === 'ask') return { id: 'q1', method: params.arguments.method ?? 'elicitation/create', params: { message: 'Who?', requestedSchema: { type: 'object', properties: { name: { type: 'string', default: 'John' } } }, messages: [{ role: 'user', content: { type: 'text', text: 'hi' } }] } }
  if (params?.name === 'seen') return { id, result: text(JSON.stringify(seen)) }
  if (params?.name === 'forget') { session++; return { id, result: text('forgotten') } }
  return { id, result: text(`said ${params?.arguments?.text} to ${request.headers['x-key']}`) }
}

http.createServer((request, response) => {
  let body = ''
  request.on('data', (chunk) => { body += chunk })
  request.on('end', () => {
    if (request.method === 'DELETE') { response.writeHead(200); return response.end() }
    if (request.method === 'GET') {
      const last = request.headers['last-event-id']
      if (mode !== 'resume' && mode !== 'own') { response.writeHead(405); return response.end() }
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      if (mode === 'own') return response.write('data: {"jsonrpc":"2.0","id":"r1","method":"roots/list"}\n\ndata: {"jsonrpc":"2.0","id":"r2","method":"elicitation/create","params":{"requestedSchema":{"properties":{}}}}\n\n')
      if (last === undefined) return
      seen.push(['resumed', last, Date.now() - pending.closed >= 200])
      return response.end(`id: e2\ndata: ${JSON.stringify({ jsonrpc: '2.0', id: pending.id, result: text('resumed') })}\n\n`)
    }
    const message = JSON.parse(body)
    if (message.method === undefined) {
      seen.push(message)
      response.writeHead(202)
      response.end()
      if (message.id === 'q1') pending.end(`data: ${JSON.stringify({ jsonrpc: '2.0', id: pending.call, result: text(JSON.stringify(message.result ?? message.error)) })}\n\n`)
      return
    }
    seen.push([message.method, request.headers['mcp-session-id'] ?? null, request.headers['mcp-protocol-version'] ?? null])
    if (mode === 'auth') { response.writeHead(401); return response.end() }
    if (mode === 'broken') { response.writeHead(500); return response.end('out of order') }
    if (mode === 'elsewhere') { response.writeHead(307, { location: 'http://127.0.0.1:1/' }); return response.end() }
    if (message.method === 'initialize') response.setHeader('Mcp-Session-Id', `s${session}`)
    else if (request.headers['mcp-session-id'] !== `s${session}`) { response.writeHead(404); return response.end() }
    if (message.id === undefined) { response.writeHead(202); return response.end() }
    if (message.params?.name === 'hang') return
    if (message.params?.name === 'say' && mode === 'resume') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      pending = { id: message.id, closed: Date.now() }
      return response.end('id: e1\nretry: 200\ndata: \n\n')
    }
    const out = { jsonrpc: '2.0', ...answer(message, request) }
    if (message.params?.name === 'ask') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${JSON.stringify(out)}\n\n`)
      response.call = message.id
      pending = response
      return
    }
    if (mode === 'events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`: hello\n\ndata: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message' })}\n\n`)
      return response.end(`event: message\ndata: ${JSON.stringify(out)}\n\n`)
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(out))
  })
}).listen(0, '127.0.0.1', function () { console.log(this.address().port) })
