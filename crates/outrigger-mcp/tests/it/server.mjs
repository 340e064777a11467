// A server for tests. Each argument enables a behaviour; `say` always works.
import fs from 'node:fs'
import readline from 'node:readline'

const modes = new Set(process.argv.slice(2))
const send = (message) => process.stdout.write(JSON.stringify({ jsonrpc: '2.0', ...message }) + '\n')
const text = (value) => ({ content: [{ type: 'text', text: String(value) }] })
const tool = (name, properties = {}) => ({ name, description: `does ${name}`, inputSchema: { type: 'object', properties } })
const pages = [
  [tool('say', { text: { type: 'string' } }), tool('env'), tool('fail')],
  [tool('hang'), tool('crash'), tool('big'), tool('endless')],
  [tool('heard'), tool('slow'), tool('chatter'), tool('refused'), tool('ask'), tool('grow'), { nameless: true }],
]
const heard = []
let extra = []
let mark = process.env.MARK

const calls = {
  say: (args) => text(`said ${args.text}`),
  env: () => text(JSON.stringify({ ...process.env, cwd: process.cwd() })),
  fail: () => ({ ...text('it went wrong'), isError: true }),
  big: () => text('x'.repeat(3 << 20)),
  heard: () => text(JSON.stringify(heard)),
  crash: () => { console.error(`about to crash with ${process.env.TOKEN}`); process.exit(7) },
}

function call(id, name, args, meta) {
  if (name === 'hang') return
  if (name === 'endless') {
    const chunk = Buffer.alloc(1 << 20, 120)
    const more = () => process.stdout.write(chunk, more)
    return more()
  }
  if (name === 'refused') return send({ id, error: { code: -32602, message: 'not with me' } })
  if (name === 'slow') {
    let left = 5
    const timer = setInterval(() => {
      send({ method: 'notifications/progress', params: { progressToken: meta.progressToken, progress: 5 - left } })
      if (--left === 0) { clearInterval(timer); send({ id, result: text('at last') }) }
    }, 800)
    return
  }
  if (name === 'chatter') {
    const note = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/message', params: { level: 'info', data: 'x' } }) + '\n'
    process.stdout.write(note.repeat(20000))
    process.stderr.write('noise\n'.repeat(20000))
    return send({ id, result: text('heard through it') })
  }
  if (name === 'ask') { send({ id: 'p', method: 'ping' }); send({ id: 'r', method: 'tasks/list' }); return send({ id, result: text('asked') }) }
  if (name === 'grow') { extra = [tool('more')]; send({ method: 'notifications/tools/list_changed' }); return send({ id, result: text('grown') }) }
  send({ id, result: calls[name](args) })
}

if (mark) fs.writeFileSync(mark, String(process.pid))
if (modes.has('once') && fs.existsSync(process.env.SEEN)) { console.error('not again'); process.exit(9) }
if (modes.has('once')) fs.writeFileSync(process.env.SEEN, '')
if (modes.has('garbage')) process.stdout.write('Welcome!\n\n{"not": "a message"}\n[1]\n\u0000\u0001\n')
if (modes.has('stubborn')) setInterval(() => {}, 1000)

readline.createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params, result, error } = JSON.parse(line)
  heard.push(method ?? { id, result, error })
  if (method === 'notifications/cancelled') heard.push(params.requestId)
  if (method === 'initialize') send({ id, result: { protocolVersion: params.protocolVersion, capabilities: modes.has('bare') ? {} : { tools: {} }, serverInfo: { name: 'tester', version: '1.2' } } })
  else if (method === 'tools/list') {
    if (modes.has('loop')) return send({ id, result: { tools: [], nextCursor: 'a' } })
    const at = Number(params.cursor ?? 0)
    const last = at === pages.length - 1
    send({ id, result: { tools: [...pages[at], ...(last ? extra : [])], ...(last ? {} : { nextCursor: String(at + 1) }) } })
  } else if (method === 'tools/call') call(id, params.name, params.arguments, params._meta)
})
