// A server behind the older HTTP transport (an event stream and an address for messages); prints its port.
import http from 'node:http'

const [mode] = process.argv.slice(2)
let stream
const event = (name, data) => stream.write(`event: ${name}\ndata: ${data}\n\n`)

http.createServer((request, response) => {
  const url = new URL(request.url, 'http://x')
  if (request.method === 'GET' && url.pathname === '/mcp') {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    stream = response
    return event('endpoint', mode === 'elsewhere' ? 'http://127.0.0.1:1/messages' : '/messages?session=1')
  }
  if (url.pathname !== '/messages') { response.writeHead(404); return response.end() }
  let body = ''
  request.on('data', (chunk) => { body += chunk })
  request.on('end', () => {
    const { id, method, params } = JSON.parse(body)
    response.writeHead(202)
    response.end()
    if (id === undefined) return
    const text = (value) => ({ content: [{ type: 'text', text: value }] })
    if (method === 'initialize') return event('message', JSON.stringify({ jsonrpc: '2.0', id, result: { protocolVersion: '2024-11-05', capabilities: { tools: {} }, serverInfo: { name: 'older' } } }))
    if (method === 'tools/list') return event('message', JSON.stringify({ jsonrpc: '2.0', id, result: { tools: ['say', 'hang', 'leave'].map((name) => ({ name, inputSchema: { type: 'object' } })) } }))
    if (params.name === 'hang') return
    if (params.name === 'leave') return stream.end()
    event('message', JSON.stringify({ jsonrpc: '2.0', id, result: text(`said ${params.arguments.text} to ${request.headers['x-key']}`) }))
  })
}).listen(0, '127.0.0.1', function () { console.log(this.address().port) })
