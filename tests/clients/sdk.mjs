// Calls every method of OpenCode's published client against a server and writes what came back.
// usage: node sdk.mjs SDK_FOLDER URL PROJECT OUT
// OUT is {"calls": {NAME: {status, shape: [PATH TYPE..]}}, "events": {TYPE: [PATH TYPE..]}, "never": [METHOD..]}.
// The project, its configuration and the model's answers are those of world.py.
import fs from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { collect, shape } from './shape.mjs'

const [sdk, url, project, out] = process.argv.slice(2)
const { createOpencodeClient } = await import(pathToFileURL(path.join(sdk, 'dist/index.js')))
const headers = process.env.CLIENT_AUTHORIZATION ? { authorization: process.env.CLIENT_AUTHORIZATION } : {}
const client = createOpencodeClient({ baseUrl: url, directory: project, headers })
const MODEL = { providerID: 'mock', modelID: 'm1' }
const LIMIT = 30_000
// A stream sends a heartbeat every 10 s.
const WAIT = 12_000
const sleep = (ms) => new Promise((done) => setTimeout(done, ms))

const calls = {}
const events = {}
const seen = []
const called = new Set()

// Calls `method` ("session.create") and records the response under its name and `note`, if one is given. `pick` selects
// the compared part.
async function call(method, options = {}, { note, pick, limit = LIMIT } = {}) {
  const names = method.split('.')
  const owner = names.slice(0, -1).reduce((object, key) => object[key], client)
  called.add(method)
  const label = note ? `${method} (${note})` : method
  const stop = AbortSignal.timeout(limit)
  const started = performance.now()
  try {
    const { data, error, response } = await owner[names.at(-1)]({ ...options, signal: stop })
    const body = response?.ok ? data : error
    calls[label] = { status: response?.status ?? 0, shape: shape(pick && response?.ok ? pick(body) : plain(body)) }
    return data
  } catch (error) {
    calls[label] = { status: stop.aborted ? 'timeout' : 'failed', shape: [], error: String(error) }
  } finally {
    if (process.env.CLIENT_VERBOSE) console.error(label, calls[label]?.status, Math.round(performance.now() - started), 'ms')
  }
}

// The client wraps the body of an error in an Error whose cause contains it.
const plain = (body) => (body instanceof Error ? (body.cause?.body ?? { message: body.message }) : body)

function note(event) {
  const paths = (events[event.type] ??= new Set())
  collect(event, '$', paths)
  seen.push(event)
}

// Waits for an event that matches `test` since `mark`; if none arrives, that is recorded.
async function until(test, mark, what) {
  for (let i = 0; i < WAIT / 20; i++) {
    const found = seen.slice(mark).find(test)
    if (found) return found.properties
    await sleep(20)
  }
  calls[`event: ${what}`] = { status: 'timeout', shape: [] }
}

const idle = (sessionID) => (event) => event.type === 'session.idle' && event.properties.sessionID === sessionID

// Waits until the session rests and everything that was told of it so far has come: events may be behind the answers of
// calls, and one of the last turn must not be taken for one of the next.
async function settle(id) {
  for (let i = 0; i < WAIT / 20; i++) {
    const { data } = await client.session.status()
    if (!data?.[id.id]) break
    await sleep(20)
  }
  const title = `settled ${seen.length}`
  await client.session.update({ path: id, body: { title } })
  await until((event) => event.type === 'session.updated' && event.properties.info.title === title, 0, 'settled')
  return seen.length
}

async function streams() {
  const stop = new AbortController()
  for (const method of ['event.subscribe', 'global.event']) {
    called.add(method)
    const [group, name] = method.split('.')
    const { stream } = await client[group][name]({ signal: stop.signal })
    const first = (await stream.next()).value
    calls[method] = { status: 200, shape: shape(first) }
    if (method === 'event.subscribe') (async () => { for await (const event of stream) note(event) })().catch(() => {})
  }
  return stop
}

const mock = (list) => list.filter((item) => item.id === 'mock')
const one = (key, value) => (list) => list.filter((item) => item[key] === value)

async function reading() {
  await call('project.list', {}, { pick: (list) => list.filter((item) => item.worktree === project) })
  await call('project.current')
  await call('path.get')
  await call('vcs.get')
  await call('config.get')
  await call('config.providers', {}, { pick: (body) => ({ ...body, providers: mock(body.providers), default: { mock: body.default.mock } }) })
  await call('provider.list', {}, { pick: (body) => ({ ...body, all: mock(body.all), default: { mock: body.default.mock } }) })
  await call('provider.auth', {}, { pick: (body) => ({ object: typeof body }) })
  for (const agent of ['build', 'plan', 'general', 'explore', 'compaction', 'title', 'summary', 'own']) {
    await call('app.agents', {}, { note: agent, pick: one('name', agent) })
  }
  await call('app.log', { body: { service: 'test', level: 'info', message: 'hello', extra: { a: 1 } } })
  await call('command.list', {}, { pick: one('name', 'own') })
  await call('tool.ids')
  await call('tool.list', { query: { provider: 'mock', model: 'm1' } })
  await call('lsp.status')
  await call('formatter.status')
  await call('find.text', { query: { pattern: 'hi there' } })
  await call('find.files', { query: { query: 'hello' } })
  await call('find.symbols', { query: { query: 'x' } })
  await call('file.list', { query: { path: '.' } })
  await call('file.read', { query: { path: 'hello.txt' } })
  await call('file.read', { query: { path: 'dot.png' } }, { note: 'binary' })
  await call('file.read', { query: { path: 'changed.txt' } }, { note: 'changed' })
  await call('file.read', { query: { path: 'missing.txt' } }, { note: 'missing' })
  await call('file.read', { query: { path: '../outside.txt' } }, { note: 'outside' })
  await call('file.status')
}

async function sessions() {
  const session = await call('session.create', { body: { title: 'one' } })
  const id = { id: session.id }
  await call('session.list')
  await call('session.get', { path: id })
  await call('session.update', { path: id, body: { title: 'two' } })
  await call('session.status')
  const text = (said) => ({ path: id, body: { model: MODEL, parts: [{ type: 'text', text: said }] } })
  const answer = await call('session.prompt', text('say hi'))
  await call('session.prompt', text('read the file'), { note: 'tool' })
  await call('session.prompt', text('fail to read'), { note: 'tool error' })
  await call('session.prompt', text('edit the file'), { note: 'edit' })
  await call('session.prompt', text('write its own'), { note: 'language server' })
  await call('lsp.status', {}, { note: 'with one' })
  await call('formatter.status', {}, { note: 'with one', pick: one('name', 'own') })
  await call('find.symbols', { query: { query: 'all' } }, { note: 'some' })
  await call('file.status', {}, { note: 'changed files' })
  await call('session.prompt', text('plan it'), { note: 'todo' })
  await call('session.prompt', text('delegate it'), { note: 'task' })
  await call('session.prompt', text('think'), { note: 'reasoning' })
  await call('session.prompt', text('be refused'), { note: 'model error' })
  await call('session.prompt', { path: id, body: { noReply: true, parts: [{ type: 'text', text: 'just so you know' }] } }, { note: 'noReply' })
  await call('session.prompt', { path: id, body: { model: MODEL, agent: 'plan', system: 'Be brief.', tools: { webfetch: false }, parts: [
    { type: 'text', text: 'look' },
    { type: 'file', mime: 'text/plain', filename: 'hello.txt', url: pathToFileURL(path.join(project, 'hello.txt')).href },
    { type: 'agent', name: 'general' },
  ] } }, { note: 'file and agent' })
  await call('session.messages', { path: id })
  await call('session.messages', { path: id, query: { limit: 2 } }, { note: 'limit' })
  await call('session.message', { path: { ...id, messageID: answer?.info?.id ?? 'msg_none' } })
  await call('session.todo', { path: id })
  await call('session.diff', { path: id })
  await call('session.children', { path: id })
  await call('session.command', { path: id, body: { command: 'own', arguments: 'now' } })
  await call('session.shell', { path: id, body: { agent: 'build', command: 'echo shell' } })
  return { id, text }
}

async function waiting({ id, text }) {
  let mark = await settle(id)
  await call('session.promptAsync', text('say hi'))
  await until(idle(id.id), mark, 'promptAsync')
  for (const response of ['once', 'reject']) {
    mark = await settle(id)
    await call('session.promptAsync', text('ask first'), { note: response })
    const asked = await until((event) => event.type === 'permission.asked', mark, 'permission.asked')
    await call('session.status', {}, { note: 'busy' })
    await call('postSessionIdPermissionsPermissionId', { path: { ...id, permissionID: asked?.id ?? 'per_none' }, body: { response } }, { note: response })
    await until(idle(id.id), mark, `permission ${response}`)
  }
  mark = await settle(id)
  await call('session.promptAsync', text('talk slowly'), { note: 'slow' })
  await until((event) => event.type === 'message.part.delta', mark, 'first words')
  await call('session.abort', { path: id })
  await until(idle(id.id), mark, 'abort')
  await call('session.messages', { path: id }, { note: 'at the end' })
}

async function changing({ id }) {
  const fork = await call('session.fork', { path: id, body: {} })
  await call('session.children', { path: id }, { note: 'with children' })
  const all = await client.session.messages({ path: id })
  const edited = all.data.find((message) => message.parts.some((part) => part.text === 'edit the file'))
  await call('session.revert', { path: id, body: { messageID: edited.info.id } })
  await call('session.unrevert', { path: id })
  await call('session.summarize', { path: id, body: MODEL })
  await call('session.init', { path: { id: fork?.id ?? id.id }, body: { ...MODEL, messageID: 'msg_' + 'f'.repeat(26) } })
  await call('session.share', { path: id })
  await call('session.unshare', { path: id })
  await call('session.delete', { path: { id: fork?.id ?? 'ses_none' } })
}

async function mistakes({ id }) {
  const none = { id: 'ses_' + '0'.repeat(26) }
  for (const method of ['get', 'messages', 'todo', 'children', 'diff', 'abort', 'delete', 'fork', 'unrevert']) {
    await call(`session.${method}`, { path: none, body: method === 'fork' ? {} : undefined }, { note: 'no such session' })
  }
  await call('session.update', { path: none, body: { title: 'x' } }, { note: 'no such session' })
  await call('session.prompt', { path: none, body: { parts: [{ type: 'text', text: 'x' }] } }, { note: 'no such session' })
  await call('session.promptAsync', { path: none, body: { parts: [{ type: 'text', text: 'x' }] } }, { note: 'no such session' })
  await call('session.get', { path: { id: 'wrong' } }, { note: 'bad id' })
  await call('session.message', { path: { ...id, messageID: 'msg_' + '0'.repeat(26) } }, { note: 'no such message' })
  await call('session.prompt', { path: id, body: { parts: 'none' } }, { note: 'bad body' })
  await call('session.prompt', { path: id, body: { parts: [{ type: 'nonsense' }] } }, { note: 'bad part' })
  await call('session.prompt', { path: id, body: { agent: 'nobody', parts: [{ type: 'text', text: 'x' }] } }, { note: 'no such agent' })
  await call('session.prompt', { path: id, body: { model: { providerID: 'mock', modelID: 'none' }, parts: [{ type: 'text', text: 'x' }] } }, { note: 'no such model' })
  await call('session.command', { path: id, body: { command: 'none', arguments: '' } }, { note: 'no such command' })
  await call('session.create', { body: { parentID: 5 } }, { note: 'bad body' })
  await call('postSessionIdPermissionsPermissionId', { path: { ...id, permissionID: 'per_' + '0'.repeat(26) }, body: { response: 'once' } }, { note: 'no such question' })
  await call('find.text', { query: {} }, { note: 'no pattern' })
  await call('tool.list', { query: {} }, { note: 'no model' })
}

async function servers() {
  await call('mcp.status')
  await call('mcp.add', { body: { name: 'echo', config: { type: 'local', command: ['node', path.join(project, 'mcp.mjs')], enabled: true } } })
  await call('mcp.status', {}, { note: 'with one' })
  await call('mcp.disconnect', { path: { name: 'echo' } })
  await call('mcp.connect', { path: { name: 'echo' } })
  await call('mcp.connect', { path: { name: 'none' } }, { note: 'no such server' })
  await call('mcp.add', { body: { name: 'bad', config: { type: 'nonsense' } } }, { note: 'bad body' })
  // The client has one class for both, so each method exists under two names.
  for (const group of ['mcp.auth', 'auth']) {
    for (const method of ['start', 'authenticate', 'remove']) await call(`${group}.${method}`, { path: { name: 'echo' } })
    await call(`${group}.callback`, { path: { name: 'echo' }, body: { code: 'x' } })
    await call(`${group}.set`, { path: { id: 'other' }, body: { type: 'api', key: 'k' } })
  }
  await call('mcp.auth.start', { path: { name: 'none' } }, { note: 'no such server' })
  await call('auth.set', { path: { id: 'other' }, body: { type: 'nonsense' } }, { note: 'bad body' })
  await call('provider.oauth.authorize', { path: { id: 'none' }, body: { method: 0 } })
  await call('provider.oauth.callback', { path: { id: 'none' }, body: { method: 0 } })
}

async function terminals() {
  const made = await call('pty.create', { body: { command: '/bin/sh', args: ['-c', 'sleep 20'], title: 'shell' } })
  await call('pty.list')
  const id = { id: made?.id ?? 'pty_none' }
  await call('pty.get', { path: id })
  await call('pty.update', { path: id, body: { title: 'other', size: { rows: 30, cols: 100 } } })
  await call('pty.connect', { path: id })
  await call('pty.remove', { path: id })
  await call('pty.get', { path: { id: 'pty_none' } }, { note: 'no such terminal' })
  for (const [method, body] of [
    ['appendPrompt', { text: 'x' }], ['openHelp'], ['openSessions'], ['openThemes'], ['openModels'], ['submitPrompt'], ['clearPrompt'],
    ['executeCommand', { command: 'agent_cycle' }], ['showToast', { message: 'm', variant: 'info' }],
    ['publish', { type: 'tui.toast.show', properties: { message: 'm', variant: 'info' } }],
  ]) await call(`tui.${method}`, body ? { body } : {})
  await call('tui.publish', { body: { type: 'nonsense', properties: {} } }, { note: 'bad body' })
  await call('tui.control.next', {}, { limit: 1500 })
  await call('tui.control.response', { body: { ok: true } })
}

// Returns the names of all methods of the client: "session.create".
function methods(object, prefix = '') {
  const own = Object.getOwnPropertyNames(Object.getPrototypeOf(object)).filter((name) => name !== 'constructor' && typeof object[name] === 'function')
  const groups = Object.keys(object).filter((name) => !name.startsWith('_') && typeof object[name] === 'object' && object[name] !== null)
  return [...own.map((name) => prefix + name), ...groups.flatMap((name) => methods(object[name], `${prefix}${name}.`))]
}

const stop = await streams()
await reading()
const session = await sessions()
await waiting(session)
await changing(session)
await mistakes(session)
await servers()
await terminals()
// Before what ends the stream: a changed configuration does.
await until((event) => event.type === 'server.heartbeat', 0, 'server.heartbeat')
await call('config.update', { body: { username: 'somebody' } })
await call('instance.dispose')
await sleep(200)
stop.abort()
const all = methods(client)
const result = {
  methods: all.length,
  never: all.filter((name) => !called.has(name)),
  calls,
  events: Object.fromEntries(Object.entries(events).sort().map(([type, paths]) => [type, [...paths].sort()])),
}
fs.writeFileSync(out, JSON.stringify(result, null, 1) + '\n')
console.log(`${all.length} methods, ${Object.keys(calls).length} calls, ${seen.length} events`)
process.exit(0)
