// A project, the scripted model of tests/clients and a server in front of it.
import { execFileSync, spawn } from 'node:child_process'
import fs from 'node:fs'
import http from 'node:http'
import os from 'node:os'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const HERE = path.dirname(fileURLToPath(import.meta.url))
export const ROOT = path.resolve(HERE, '../../..')
export const PASSWORD = 'a password of tests'

const call = (name, args) => ({ tools: [{ name, args }] })

const PLAN = `I moved the rate limiter out of the handler and gave it a clock that tests can set.

## What changed

- \`src/limiter.ts\` refills by **elapsed time** instead of a timer
- the handler asks for one token per request

\`\`\`ts
export function take(bucket: Bucket, now: number): boolean {
  bucket.tokens = Math.min(bucket.size, bucket.tokens + (now - bucket.at) * bucket.rate)
  bucket.at = now
  if (bucket.tokens < 1) return false
  bucket.tokens -= 1
  return true
}
\`\`\`

| Case | Before | After |
|---|---:|---:|
| burst of 100 | 41 ms | 3 ms |
| idle | 1 timer | none |

The suite passes. See <script>alert(1)</script> and [the notes](https://example.com/notes), not [this](javascript:alert(1)) and no ![picture](https://example.com/x.png).`

const BEFORE = `// Requests per second for each client.
export class Limiter {
  private tokens = 10

  constructor() {
    setInterval(() => this.refill(), 100)
  }

  private refill() {
    this.tokens = Math.min(10, this.tokens + 1)
  }

  take(): boolean {
    if (this.tokens < 1) return false
    this.tokens -= 1
    return true
  }
}
`

function rules(project) {
  const file = path.join(project, 'src/limiter.ts')
  return {
    title: { text: 'Rate limiter with a clock for tests' },
    rules: [
      {
        match: 'rework the limiter',
        turns: [
          { reasoning: 'The timer keeps the process alive and makes tests slow. Elapsed time is enough.', text: 'Let me look at the limiter and at what its tests say.', ...call('read', { filePath: file }) },
          call('todowrite', { todos: [{ content: 'Read the limiter', status: 'completed', priority: 'high' }, { content: 'Refill by elapsed time', status: 'in_progress', priority: 'high' }, { content: 'Run the tests', status: 'pending', priority: 'medium' }] }),
          call('edit', { filePath: file, oldString: '  constructor() {\n    setInterval(() => this.refill(), 100)\n  }\n\n  private refill() {\n    this.tokens = Math.min(10, this.tokens + 1)\n  }\n', newString: '  private at = 0\n\n  constructor(private readonly now: () => number = Date.now) {\n    this.at = now()\n  }\n\n  private refill() {\n    const elapsed = this.now() - this.at\n    this.at += elapsed\n    this.tokens = Math.min(10, this.tokens + elapsed / 100)\n  }\n' }),
          call('bash', { command: 'node check.mjs', description: 'run the tests' }),
          call('bash', { command: 'ls missing-folder', description: 'look for notes' }),
          { text: PLAN },
        ],
      },
      { match: 'run the release check', turns: [call('bash', { command: 'date +%Y && echo released', description: 'release check' }), { text: 'The release check ran.' }] },
      { match: 'ask me', turns: [call('question', { questions: [{ question: 'Which store should the limiter use?', header: 'Store', options: [{ label: 'Memory', description: 'Fast, lost at a restart' }, { label: 'Redis', description: 'Shared between processes' }] }] }), { text: 'You chose.' }] },
      { match: 'write notes', turns: [call('write', { filePath: path.join(project, 'notes.md'), content: 'of the agent\n' }), { text: 'Noted.' }] },
      { match: 'talk slowly', turns: [{ text: Array.from({ length: 60 }, (_, n) => `word${n}`).join(' '), delay: 40 }] },
      { match: 'print a lot', turns: [call('bash', { command: 'seq 1 20000', description: 'numbers' }), { text: 'Printed.' }] },
      { match: 'Comments on your changes', turns: [{ text: 'I read your comments.' }] },
    ],
  }
}

const PLUGIN = `export const Careful = async () => ({
  "tool.execute.before": async () => {},
  "tool.execute.after": async (input, output) => {
    output.title = output.title + " (checked)"
  },
  "chat.params": async (input, output) => { output.temperature = 0.2 },
})
`

const CHECK = String.raw`console.log('\x1b[1mrunning 3 tests\x1b[0m\n\x1b[32m ✓\x1b[0m refills by elapsed time\n\x1b[32m ✓\x1b[0m refuses an empty bucket\n\x1b[33m ~\x1b[0m skipped: slow clock\n\n\x1b[32m2 passed\x1b[0m, 1 skipped')
`

function configuration(url) {
  const models = { m1: { name: 'Sonnet (scripted)', tool_call: true, limit: { context: 100000, output: 4000 }, cost: { input: 3, output: 15 } } }
  return {
    model: 'mock/m1', small_model: 'mock/m1', autoupdate: false, share: 'disabled', enabled_providers: ['mock'],
    permission: { bash: { '*': 'allow', 'date *': 'ask' } },
    plugin: ['./careful.js'],
    provider: { mock: { npm: '@ai-sdk/openai-compatible', name: 'Mock', options: { baseURL: url, apiKey: 'x' }, models } },
  }
}

export class World {
  constructor() {
    this.folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'page-')))
    this.project = path.join(this.folder, 'rate-limiter')
    /** A folder without settings. */
    this.bare = path.join(this.folder, 'bare')
    this.home = path.join(this.folder, 'home')
    this.binary = path.resolve(process.env.OUTRIGGER_BIN ?? path.join(ROOT, 'target/debug/outrigger'))
    this.processes = new Set()
    /** Of each server that was started. */
    this.tokens = []
  }

  async begin() {
    fs.mkdirSync(path.join(this.project, 'src'), { recursive: true })
    fs.mkdirSync(this.home, { recursive: true })
    fs.mkdirSync(this.bare)
    fs.writeFileSync(path.join(this.folder, 'rules.json'), JSON.stringify(rules(this.project)))
    fs.writeFileSync(path.join(this.project, 'src/limiter.ts'), BEFORE)
    fs.writeFileSync(path.join(this.project, 'check.mjs'), CHECK)
    fs.writeFileSync(path.join(this.project, 'careful.js'), PLUGIN)
    const model = this.start('node', [path.join(ROOT, 'tests/clients/model.mjs'), path.join(this.folder, 'rules.json'), path.join(this.folder, 'model.jsonl')])
    const [, port] = await said(model, /mock on (\d+)/)
    fs.writeFileSync(path.join(this.project, 'opencode.json'), JSON.stringify(configuration(`http://127.0.0.1:${port}/v1`), null, 1))
    const git = (...args) => execFileSync('git', args, { cwd: this.project, stdio: 'ignore' })
    git('init', '-q')
    git('add', '-A')
    git('-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'commit.gpgsign=false', 'commit', '-qm', 'init')
  }

  get env() {
    const own = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^(OPENCODE|OUTRIGGER|XDG)_/.test(name) || name === 'OUTRIGGER_BUN'))
    const at = (...parts) => path.join(this.home, ...parts)
    return {
      ...own, HOME: this.home, XDG_CONFIG_HOME: at('.config'), XDG_DATA_HOME: at('.local/share'), XDG_CACHE_HOME: at('.cache'), XDG_STATE_HOME: at('.local/state'),
      OPENCODE_DISABLE_MODELS_FETCH: '1', OPENCODE_DISABLE_AUTOUPDATE: '1', NO_COLOR: '1', OUTRIGGER_TRUST_PROJECT: '1', OPENCODE_SERVER_PASSWORD: PASSWORD,
    }
  }

  start(program, args) {
    const child = spawn(program, args, { cwd: this.project, env: this.env, stdio: ['ignore', 'pipe', 'pipe'] })
    child.log = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => (child.log += text))
    this.processes.add(child)
    child.on('exit', () => this.processes.delete(child))
    return child
  }

  /** `outrigger web`, on the port of the one before. */
  async serve() {
    this.server = this.start(this.binary, ['web', '--no-open', '--port', String(this.port ?? 0)])
    const [, page] = await said(this.server, /page: (\S+)/)
    this.page = page
    this.tokens.push(/token=([\w-]+)/.exec(page)[1])
    this.port = Number(new URL(page).port)
    return page
  }

  /** The server ends without a word, as in a crash. */
  async kill() {
    const gone = new Promise((done) => this.server.on('exit', done))
    this.server.kill('SIGKILL')
    await gone
  }

  async api(method, route, body) {
    const headers = { authorization: `Basic ${Buffer.from(`opencode:${PASSWORD}`).toString('base64')}`, 'content-type': 'application/json' }
    const answer = await fetch(`http://127.0.0.1:${this.port}${route}`, { method, headers, body: body && JSON.stringify(body) })
    if (!answer.ok) throw new Error(`${method} ${route}: ${answer.status} ${await answer.text()}`)
    const text = await answer.text()
    return text ? JSON.parse(text) : null
  }

  async session(title) {
    return (await this.api('POST', '/session', title ? { title } : {})).id
  }

  prompt(id, text) {
    return this.api('POST', `/session/${id}/prompt_async`, { parts: [{ type: 'text', text }] })
  }

  /** Messages, put into the store while no server runs. */
  fill(id, count) {
    const fill = path.join(ROOT, 'target/debug/examples/fill')
    execFileSync(fill, [path.join(this.home, '.local/share/outrigger/outrigger.db'), 'messages', id, String(count)], { stdio: 'inherit' })
  }

  end() {
    for (const child of this.processes) child.kill('SIGKILL')
    fs.rmSync(this.folder, { recursive: true, force: true })
  }
}

/** Another program at the port of a server that has ended. It writes down what it is sent, and says yes to everything. */
export class Impostor {
  static async listen(port) {
    const impostor = new Impostor()
    impostor.heard = []
    impostor.server = http.createServer((request, response) => {
      let body = ''
      request.on('data', (piece) => (body += piece))
      request.on('end', () => {
        impostor.heard.push({ line: `${request.method} ${request.url}`, headers: request.headers, body })
        const isPage = request.url.endsWith('/web/')
        response.writeHead(200, { 'content-type': isPage ? 'text/html' : 'application/json' })
        response.end(isPage ? '<!doctype html><title>Outrigger</title><form><input type="password"></form>' : JSON.stringify({ instance: 'x', proof: 'y', token: 'z', key: null, event: 1, conversations: [], entries: [], next: null }))
      })
    })
    await new Promise((done, failed) => impostor.server.once('error', failed).listen(port, '127.0.0.1', done))
    return impostor
  }

  close() {
    this.server.close()
    this.server.closeAllConnections()
  }
}

async function said(child, pattern) {
  for (const end = Date.now() + 60_000; Date.now() < end; await new Promise((done) => setTimeout(done, 20))) {
    const found = pattern.exec(child.log)
    if (found) return found
    if (child.exitCode !== null) break
  }
  throw new Error(`${child.spawnfile} did not say ${pattern}:\n${child.log}`)
}
