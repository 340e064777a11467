// The browser tools of the extension as an MCP server on the standard streams, for `cargo xtask bench browser`. Usage: serve.mjs ORIGIN
// The client plays the model (`hand.mjs`). A call `begin` starts a new conversation: a turn of hundreds of calls would send each of them again.
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Chromium } from './chromium.mjs'
import { Hand } from './hand.mjs'
import { World } from './world.mjs'

/** Calls of a conversation at most. */
const MAX_STEPS = 1000

const [origin] = process.argv.slice(2)
const world = new World()
await world.start()
const browser = new Chromium()
const id = await browser.load(join(import.meta.dirname, '../../dist'))
const page = await browser.open(`chrome-extension://${id}/panel.html`)
const rules = [{ permission: 'browser', pattern: `${origin}/*`, action: 'allow' }]
await page.tell('save', { settings: { url: `${world.url}/v1`, model: 'scripted', rules, maxSteps: MAX_STEPS }, key: 'k' })

let hand = null
let count = 0

async function begun() {
  await hand?.end()
  hand = new Hand(world, page, `ses_bench_${++count}`)
  await hand.begin()
}

async function call({ name, arguments: input }) {
  if (name === 'begin') {
    await begun()
    return { content: [] }
  }
  const text = await hand.call(name, input)
  // What the tools answer begins with what was done, and the tab.
  return { content: [{ type: 'text', text }], isError: !/^(\w+ )?t\d+\b/.test(text) }
}

for await (const line of createInterface({ input: process.stdin })) {
  const { id: number, method, params } = JSON.parse(line)
  if (number === undefined) continue
  const answer = await (method === 'tools/call' ? call(params) : Promise.resolve({ capabilities: {} })).then(
    (result) => ({ result }),
    (error) => ({ error: { code: -32603, message: error.message } }),
  )
  process.stdout.write(`${JSON.stringify({ jsonrpc: '2.0', id: number, ...answer })}\n`)
}
await browser.close()
await world.close()
