// An editor without a window: it starts an agent, does what it is given as JSON on standard input, and prints what it hears, a line each.
// Standard input: {"sdk": folder of the SDK, "command": [...], "cwd": folder, "capabilities": {...}, "steps": [...], "resume": session?}.
import { spawn } from 'node:child_process'
import { Readable, Writable } from 'node:stream'
import { pathToFileURL } from 'node:url'

const chunks = []
for await (const chunk of process.stdin) chunks.push(chunk)
const plan = JSON.parse(Buffer.concat(chunks).toString())
const acp = await import(pathToFileURL(`${plan.sdk}/dist/v1/stable/acp.js`))

const child = spawn(plan.command[0], plan.command.slice(1), { cwd: plan.cwd, stdio: ['pipe', 'pipe', 'inherit'] })
const ended = new Promise((resolve) => child.on('exit', (code, signal) => resolve(signal ?? code)))

const print = (line) => process.stdout.write(line + '\n')
let session = plan.resume
const names = new Map()
// Identifiers differ from run to run: they are numbered in order of appearance.
const named = (text) =>
  text.replace(/\b(ses|msg|prt|per|call)_[A-Za-z0-9]+/g, (id, kind) => {
    if (!names.has(id)) names.set(id, `${kind}_${[...names.keys()].filter((it) => it.startsWith(kind + '_')).length + 1}`)
    return names.get(id)
  })
const shown = (value) => named(JSON.stringify(value))

// Streamed text is shown as one: the number of pieces depends on timing.
let text
const flush = () => {
  if (text) print(`  ${text.kind}: ${JSON.stringify(text.said)}${text.pieces > 1 ? ' (streamed)' : ''}`)
  text = undefined
}
const heard = (update) => {
  const { sessionUpdate: kind, ...rest } = update
  if (kind.endsWith('_chunk') && rest.content.type === 'text') {
    if (text?.kind !== kind || text.id !== rest.messageId) flush()
    text ??= { kind, id: rest.messageId, said: '', pieces: 0 }
    text.said += rest.content.text
    text.pieces += 1
    waiting?.(kind)
    return
  }
  // That a call runs again after its question was answered is reported only if that took time.
  if (kind === 'tool_call_update' && rest.status === 'in_progress' && Object.keys(rest).length === 2) return
  flush()
  if (kind === 'available_commands_update') rest.availableCommands = rest.availableCommands.map((it) => `/${it.name}`)
  if (kind === 'config_option_update') rest.configOptions = options(rest.configOptions)
  if (!plan.quiet?.includes(kind)) print(`  ${kind}: ${shown(rest)}`)
  waiting?.(kind)
}
const options = (list) => list.map((it) => `${it.id}=${it.currentValue} of ${it.options.map((o) => o.value).join('|')}`)

let answers = []
let waiting
const buffers = new Map(Object.entries(plan.buffers ?? {}))
const client = acp
  .client({ name: 'test editor' })
  .onNotification(acp.methods.client.session.update, ({ params }) => heard(params.update))
  .onRequest(acp.methods.client.session.requestPermission, async ({ params }) => {
    flush()
    print(`  asks: ${shown(params.toolCall)}`)
    print(`  answers: ${params.options.map((it) => `${it.optionId} (${it.kind}) "${it.name}"`).join(', ')}`)
    waiting?.('asks')
    const answer = answers.shift() ?? 'cancelled'
    if (answer === 'cancelled') return { outcome: { outcome: 'cancelled' } }
    return { outcome: { outcome: 'selected', optionId: answer } }
  })
  .onRequest(acp.methods.client.elicitation.create, async ({ params }) => {
    flush()
    print(`  form: ${shown(params)}`)
    return plan.form ?? { action: 'cancel' }
  })
  .onRequest(acp.methods.client.fs.readTextFile, async ({ params }) => {
    flush()
    print(`  reads: ${params.path}`)
    if (!buffers.has(params.path)) throw acp.RequestError.resourceNotFound(params.path)
    return { content: buffers.get(params.path) }
  })
  .onRequest(acp.methods.client.fs.writeTextFile, async ({ params }) => {
    flush()
    print(`  writes: ${params.path} ${JSON.stringify(params.content)}`)
    buffers.set(params.path, params.content)
    return {}
  })

const connection = client.connect(acp.ndJsonStream(Writable.toWeb(child.stdin), Readable.toWeb(child.stdout)))
const ask = async (method, params) => {
  try {
    return await connection.agent.request(method, params)
  } catch (error) {
    flush()
    print(`  error: ${error.code} ${named(error.message)}`)
    return undefined
  }
}
const until = (what) => new Promise((resolve) => (waiting = (kind) => kind === what && resolve()))

const steps = {
  async initialize() {
    const hello = await ask('initialize', { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities: plan.capabilities ?? {} })
    delete hello?.agentInfo?.version
    print(`  ${shown(hello)}`)
  },
  async new({ mcpServers = [] }) {
    const commands = until('available_commands_update')
    const made = await ask('session/new', { cwd: plan.cwd, mcpServers })
    if (!made) return
    session = made.sessionId
    print(`  ${named(session)} modes ${made.modes?.availableModes.map((it) => it.id)} in ${made.modes?.currentModeId}`)
    print(`  ${shown(options(made.configOptions))}`)
    await commands
  },
  async prompt({ say, blocks = [{ type: 'text', text: say }], reply = [] }) {
    answers = [...reply]
    const answer = await ask('session/prompt', { sessionId: session, prompt: blocks })
    flush()
    if (answer) print(`  ${shown(answer)}`)
  },
  // A prompt that is cancelled as soon as this arrives.
  async cancelled({ say, at, wait = 0 }) {
    answers = []
    const there = until(at)
    const answer = ask('session/prompt', { sessionId: session, prompt: [{ type: 'text', text: say }] })
    await there
    await new Promise((resolve) => setTimeout(resolve, wait))
    await connection.agent.notify('session/cancel', { sessionId: session })
    const result = await answer
    flush()
    print(`  ${shown(result)}`)
  },
  async load({ method = 'session/load' }) {
    const commands = until('available_commands_update')
    const loaded = await ask(method, { sessionId: session, cwd: plan.cwd, mcpServers: [] })
    flush()
    if (!loaded) return
    print(`  in ${loaded.modes?.currentModeId}`)
    await commands
  },
  async list() {
    const { sessions } = (await ask('session/list', { cwd: plan.cwd })) ?? { sessions: [] }
    for (const it of sessions) print(`  ${named(it.sessionId)} ${JSON.stringify(it.title)} in ${it.cwd} at ${it.updatedAt?.length}`)
  },
  async request({ method, params = {}, ours }) {
    const filled = ours ? { sessionId: session, ...params } : params
    const answer = await ask(method, filled)
    flush()
    if (answer?.configOptions) answer.configOptions = options(answer.configOptions)
    if (answer) print(`  ${shown(answer)}`)
  },
}
for (const step of plan.steps) {
  print(`> ${step.do}${step.method ? ` ${step.method}` : ''}${step.say ? ` ${JSON.stringify(step.say)}` : ''}`)
  await steps[step.do](step)
  flush()
}
print(`> end (session ${session})`)
child.stdin.end()
print(`  exit ${await ended}`)
process.exit(0)
