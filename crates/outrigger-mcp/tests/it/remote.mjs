// A server behind streamable HTTP for tests; prints its port.
import http from 'node:http'

const [mode] = process.argv.slice(2)
let session = 0
const seen = []
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] })

function answer(message, request) {
  const { id, method, params } = message
  if (method === 'initialize') return { id, result: { protocolVersion: '2025-03-26', capabilities: { tools: {} }, serverInfo: { name: 'remote' } } }
  if (method === 'tools/list') return { id, result: { tools: [{ name: 'say', inputSchema: { type: 'object' } }, { name: 'seen', inputSchema: { type: 'object' } }, { name: 'forget', inputSchema: { type: 'object' } }, { name: 'hang', inputSchema: { type: 'object' } }] } }
  if (params?.name === 'seen') return { id, result: text(JSON.stringify(seen)) }
  if (params?.name === 'forget') { session++; return { id, result: text('forgotten') } }
  return { id, result: text(`said ${params?.arguments?.text} to ${request.headers['x-key']}`) }
}

http.createServer((request, response) => {
  let body = ''
  request.on('data', (chunk) => { body += chunk })
  request.on('end', () => {
    if (request.method === 'DELETE') { response.writeHead(200); return response.end() }
    const message = JSON.parse(body)
    seen.push([message.method, request.headers['mcp-session-id'] ?? null, request.headers['mcp-protocol-version'] ?? null])
    if (mode === 'auth') { response.writeHead(401); return response.end() }
    if (mode === 'broken') { response.writeHead(500); return response.end('out of order') }
    if (mode === 'elsewhere') { response.writeHead(307, { location: 'http://127.0.0.1:1/' }); return response.end() }
    if (message.method === 'initialize') response.setHeader('Mcp-Session-Id', `s${session}`)
    else if (request.headers['mcp-session-id'] !== `s${session}`) { response.writeHead(404); return response.end() }
    if (message.id === undefined) { response.writeHead(202); return response.end() }
    if (message.params?.name === 'hang') return
    const out = { jsonrpc: '2.0', ...answer(message, request) }
    if (mode === 'events') {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`: hello\n\ndata: ${JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message' })}\n\n`)
      return response.end(`event: message\ndata: ${JSON.stringify(out)}\n\n`)
    }
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(out))
  })
}).listen(0, '127.0.0.1', function () { console.log(this.address().port) })
