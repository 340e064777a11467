// A server with resources, templates, prompts and instructions, over standard input and output; no tools with `bare`.
import readline from 'node:readline'

const bare = process.argv.includes('bare')
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
const lists = {
  'resources/list': (cursor) => cursor
    ? { resources: [{ name: 'b', uri: 'note://b', mimeType: 'text/plain' }] }
    : { resources: [{ name: 'a', uri: 'note://a', description: 'first' }, { nameless: true }], nextCursor: 'more' },
  'resources/templates/list': () => ({ resourceTemplates: [{ name: 'any', uriTemplate: 'note://{id}' }] }),
  'prompts/list': () => ({ prompts: [{ name: 'greet me', description: 'greets', arguments: [{ name: 'who', required: true }] }] }),
  'tools/list': () => ({ tools: [{ name: 'say', inputSchema: { type: 'object' } }] }),
}

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line)
  if (id === undefined) return
  if (method === 'initialize') return send({ id, result: { protocolVersion: params.protocolVersion, capabilities: { resources: {}, prompts: {}, ...(bare ? {} : { tools: {} }) }, serverInfo: { name: 'rich' }, instructions: '  Ask for notes.\nThen read them. ' } })
  if (lists[method]) return send({ id, result: lists[method](params.cursor) })
  if (method === 'resources/read') {
    if (params.uri === 'note://none') return send({ id, error: { code: -32002, message: 'no such note' } })
    return send({ id, result: { contents: [{ uri: params.uri, mimeType: 'text/plain', text: `text of ${params.uri}` }] } })
  }
  if (method === 'prompts/get') return send({ id, result: { messages: [{ role: 'user', content: { type: 'text', text: `Say hello to ${params.arguments.who}.` } }] } })
  send({ id, result: { content: [{ type: 'text', text: 'said' }] } })
})
