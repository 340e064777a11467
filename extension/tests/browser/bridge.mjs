// Files and commands of this machine, over `outrigger bridge`: what is asked first, what the bridge refuses, what a worker that dies leaves.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from './chromium.mjs'
import { Hand } from './hand.mjs'

const PROGRAM = process.env.OUTRIGGER_BIN ?? join(import.meta.dirname, '../../../target/debug/outrigger')
const TOKEN = 'a-token-of-the-test-long-enough'

export async function bridge({ browser, id, page, world }) {
  const place = mkdtempSync(join(tmpdir(), 'outrigger-bridge-'))
  const [folder, home] = ['project', 'home'].map((name) => join(place, name))
  mkdirSync(folder)
  mkdirSync(home)
  let running
  try {
    running = await started(folder, home, id)
    await calls({ browser, id, page, world, folder, running })
  } finally {
    running?.process.kill()
    rmSync(place, { recursive: true, force: true })
  }
  console.log('bridge: files and commands of a folder, asked about, and as before where it is disconnected')
}

async function calls({ browser, id, page, world, folder, running }) {
  writeFileSync(join(folder, 'a.txt'), 'one\ntwo\n')
  const hand = new Hand(world, page, 'ses_bridge')
  await page.tell('save', { settings: { rules: [], bridge: running.url }, token: 'a token with spaces' })
  await assert.rejects(page.tell('bridge'), /cannot send/)
  await page.tell('save', { settings: {}, token: 'another-token-which-is-wrong' })
  await assert.rejects(page.tell('bridge'), /Cannot reach the bridge/)
  await page.tell('save', { settings: {}, token: TOKEN })
  assert.equal(await page.tell('bridge'), folder)

  // What is the user's is asked about, reading too.
  await hand.begin()
  const reading = hand.call('read', { filePath: 'a.txt', offset: 2 })
  assert.equal(await answered(page, 'always'), 'read bridge:a.txt')
  assert.match(await reading, /two/)
  assert.doesNotMatch(await reading, /one/)
  const writing = hand.call('write', { filePath: 'b.txt', content: 'written' })
  assert.equal(await answered(page, 'once'), 'edit bridge:b.txt')
  await writing
  assert.equal(readFileSync(join(folder, 'b.txt'), 'utf8'), 'written')
  // Who says no has the turn end.
  hand.call('edit', { filePath: 'b.txt', oldString: 'written', newString: 'changed' }).catch(() => {})
  assert.equal(await answered(page, 'reject'), 'edit bridge:b.txt')
  await page.tell('ended', { session: 'ses_bridge' })
  assert.equal(readFileSync(join(folder, 'b.txt'), 'utf8'), 'written')
  await hand.begin()
  // Nothing of it is in the private workspace.
  assert.deepEqual(await page.tell('files', { folder: '' }), [])

  // Commands are asked about, and the bridge has its own list.
  const listing = hand.call('bash', { command: 'ls' })
  assert.equal(await answered(page, 'always'), 'bash ls')
  assert.match(await listing, /a\.txt[^]*b\.txt/)
  assert.match(await hand.call('bash', { command: 'ls' }), /a\.txt/)
  const unlisted = hand.call('bash', { command: 'rm b.txt' })
  await answered(page, 'once')
  assert.match(await unlisted, /\[bridge\.command\]/)
  assert.match(await hand.call('read', { filePath: '../x' }), /\[bridge\.path\]/)

  // A worker that dies takes its calls with it, and nobody makes them again.
  const cut = hand.call('bash', { command: 'sleep 300' })
  await answered(page, 'once')
  await until(() => sleeps(running) > 0, 'the command')
  await browser.killWorker(id)
  await until(() => sleeps(running) === 0, 'the end of the command')
  await page.tell('sessions')
  assert.match(await cut, /interrupted, outcome unknown/)

  // A bridge that is gone is said to be; one that is disconnected leaves the workspace.
  running.process.kill()
  await running.ended
  assert.match(await hand.call('read', { filePath: 'a.txt' }), /Cannot reach the bridge|connection to the bridge was lost/)
  await page.tell('save', { settings: { bridge: '' } })
  assert.match(await hand.call('bash', { command: 'ls' }), /nobody does exec here/)
  await hand.call('write', { filePath: 'c.txt', content: 'private' })
  assert.equal(await page.tell('file', { path: 'c.txt' }), 'private')
  await hand.end()
}

/** Answers the next question; returns what it is about. */
async function answered(page, reply) {
  let questions = []
  await until(async () => (questions = await page.tell('questions')).length === 1, 'a question')
  await page.tell('answer', { id: questions[0].id, reply })
  return `${questions[0].permission} ${questions[0].pattern}`
}

/** How many of the bridge's commands run. */
function sleeps({ process: { pid } }) {
  const children = (task) => readFileSync(`/proc/${pid}/task/${task}/children`, 'utf8').split(' ').filter(Boolean)
  return readdirSync(`/proc/${pid}/task`).flatMap(children).length
}

async function started(folder, home, id) {
  const options = ['bridge', '--origin', `chrome-extension://${id}`, '--command', 'ls', '--command', 'sleep **']
  const env = { PATH: process.env.PATH, HOME: home, OUTRIGGER_BRIDGE_TOKEN: TOKEN }
  const child = spawn(PROGRAM, options, { cwd: folder, env, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = new Promise((resolve) => child.once('exit', resolve))
  let said = ''
  child.stdout.setEncoding('utf8').on('data', (text) => (said += text))
  await until(() => /ws:\/\/\S+/.test(said) || child.exitCode !== null, 'the address of the bridge')
  if (child.exitCode !== null) throw new Error(`the bridge ended: ${said}`)
  return { process: child, ended, url: /ws:\/\/\S+/.exec(said)[0] }
}
