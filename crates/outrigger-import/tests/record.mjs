// An imitation of the model APIs of Claude Code (Messages) and Codex (Responses) on loopback: reads calc.txt, changes it, runs a
// command, and reports the end. usage: node model.mjs   (prints "mock on PORT")
import http from 'node:http'

let n = 0
const STEPS = [
  { thought: 'I look at the file first.', text: 'Let me look at calc.txt.', claude: ['Read', (p) => ({ file_path: `${p}/calc.txt` })], codex: 'cat calc.txt' },
  { claude: ['Edit', (p) => ({ file_path: `${p}/calc.txt`, old_string: 'one', new_string: 'two' })], patch: '*** Begin Patch\n*** Update File: calc.txt\n@@\n-one\n+two\n*** End Patch' },
  { claude: ['Bash', () => ({ command: 'grep two calc.txt', description: 'check' })], codex: 'grep two calc.txt' },
  { text: 'All **done**: `calc.txt` says two.' },
]
const project = process.env.PROJECT

function sse(response, events) {
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  for (const event of events) response.write(`event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`)
  response.end()
}

function messages(body, response) {
  const results = body.messages.filter((m) => m.role === 'user' && Array.isArray(m.content) && m.content.some((b) => b.type === 'tool_result')).length
  const hasTools = (body.tools ?? []).length > 3
  const step = hasTools ? STEPS[Math.min(results, 3)] : { text: '{"title": "Change one to two"}' }
  const blocks = []
  if (step.thought && body.thinking) blocks.push({ type: 'thinking', thinking: step.thought, signature: 'c2lnbmF0dXJl' })
  if (step.text) blocks.push({ type: 'text', text: step.text })
  if (step.claude) blocks.push({ type: 'tool_use', id: `toolu_${++n}`, name: step.claude[0], input: step.claude[1](project) })
  const usage = { input_tokens: 120, output_tokens: 30, cache_creation_input_tokens: 0, cache_read_input_tokens: 10 }
  const stop = step.claude ? 'tool_use' : 'end_turn'
  const message = { id: `msg_${++n}`, type: 'message', role: 'assistant', model: body.model, content: [], stop_reason: null, stop_sequence: null, usage }
  if (!body.stream) {
    response.writeHead(200, { 'content-type': 'application/json' })
    return response.end(JSON.stringify({ ...message, content: blocks, stop_reason: stop }))
  }
  const events = [{ type: 'message_start', message }]
  blocks.forEach((block, index) => {
    const delta = { text: [{ type: 'text_delta', text: block.text }], thinking: [{ type: 'thinking_delta', thinking: block.thinking }, { type: 'signature_delta', signature: block.signature }], tool_use: [{ type: 'input_json_delta', partial_json: JSON.stringify(block.input ?? {}) }] }[block.type]
    const start = { text: { type: 'text', text: '' }, thinking: { type: 'thinking', thinking: '', signature: '' }, tool_use: { ...block, input: {} } }[block.type]
    events.push({ type: 'content_block_start', index, content_block: start })
    for (const one of delta) events.push({ type: 'content_block_delta', index, delta: one })
    events.push({ type: 'content_block_stop', index })
  })
  events.push({ type: 'message_delta', delta: { stop_reason: stop, stop_sequence: null }, usage })
  events.push({ type: 'message_stop' })
  sse(response, events)
}

function responses(body, response) {
  const outputs = body.input.filter((it) => /_output$/.test(it.type ?? '')).length
  const step = STEPS[Math.min(outputs, 3)]
  const names = (body.tools ?? []).map((t) => t.name ?? t.type)
  if (process.env.SHOW_TOOLS) console.error(JSON.stringify(body.tools))
  const items = []
  if (step.thought) items.push({ type: 'reasoning', id: `rs_${++n}`, summary: [{ type: 'summary_text', text: step.thought }], content: null, encrypted_content: 'ZW5jcnlwdGVk' })
  if (step.text) items.push({ type: 'message', id: `msg_${++n}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: step.text, annotations: [] }] })
  if (step.codex) {
    const name = names.includes('exec_command') ? 'exec_command' : names.includes('shell_command') ? 'shell_command' : 'shell'
    const args = name === 'exec_command' ? { cmd: step.codex } : name === 'shell_command' ? { command: step.codex } : { command: ['bash', '-lc', step.codex] }
    items.push({ type: 'function_call', id: `fc_${++n}`, call_id: `call_${n}`, name, arguments: JSON.stringify(args), status: 'completed' })
  }
  if (step.patch) {
    if (names.includes('apply_patch')) items.push({ type: 'custom_tool_call', id: `ct_${++n}`, call_id: `call_${n}`, name: 'apply_patch', input: step.patch, status: 'completed' })
    else items.push({ type: 'function_call', id: `fc_${++n}`, call_id: `call_${n}`, name: names.includes('exec_command') ? 'exec_command' : 'shell_command', arguments: JSON.stringify(names.includes('exec_command') ? { cmd: `apply_patch <<'EOF'\n${step.patch}\nEOF` } : { command: `apply_patch <<'EOF'\n${step.patch}\nEOF` }), status: 'completed' })
  }
  const id = `resp_${++n}`
  const events = [{ type: 'response.created', response: { id, status: 'in_progress' } }]
  items.forEach((item, output_index) => {
    events.push({ type: 'response.output_item.added', output_index, item })
    if (item.type === 'message') events.push({ type: 'response.output_text.delta', output_index, item_id: item.id, content_index: 0, delta: item.content[0].text })
    if (item.type === 'reasoning') events.push({ type: 'response.reasoning_summary_text.delta', output_index, item_id: item.id, summary_index: 0, delta: item.summary[0].text })
    events.push({ type: 'response.output_item.done', output_index, item })
  })
  events.push({ type: 'response.completed', response: { id, status: 'completed', output: items, usage: { input_tokens: 120, input_tokens_details: { cached_tokens: 10 }, output_tokens: 30, output_tokens_details: { reasoning_tokens: 5 }, total_tokens: 150 } } })
  sse(response, events)
}

const server = http.createServer((request, response) => {
  const parts = []
  request.on('data', (part) => parts.push(part))
  request.on('end', () => {
    const text = Buffer.concat(parts).toString()
    if (process.env.LOG) console.error(request.method, request.url, text.length)
    const path = request.url.split('?')[0]
    if (path.endsWith('/messages')) return messages(JSON.parse(text), response)
    if (path.endsWith('/responses')) return responses(JSON.parse(text), response)
    response.writeHead(path.endsWith('count_tokens') ? 200 : 404, { 'content-type': 'application/json' })
    response.end(path.endsWith('count_tokens') ? '{"input_tokens":10}' : '{}')
  })
})
server.listen(0, '127.0.0.1', () => console.log('mock on', server.address().port))
