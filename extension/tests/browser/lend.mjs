// A Chromium with the extension, as a user has it, for tests of the native program that uses it (`crates/outrigger-browser/tests/it/lent.rs`).
// Usage: lend.mjs FILE. It writes the port that it listens on into the file; each line of the first connection is a request, each line that it
// sends an answer, and the browser ends with the connection.
import { renameSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { Chromium } from './chromium.mjs'

const browser = new Chromium()
const id = await browser.load(join(import.meta.dirname, '../../dist'))
const page = await browser.open(`chrome-extension://${id}/panel.html`)
const rules = []

const OPERATIONS = {
  id: () => id,
  /** The user switches it on, or off with an empty address. */
  lend: async ({ url, token }) => page.tell('save', { settings: { relay: url, rules }, relayToken: token }),
  rule: async ({ action, pattern }) => {
    rules.push({ permission: 'browser', pattern, action })
    return page.tell('save', { settings: { rules } })
  },
  /** The worker is ended; a panel that is open wakes it again. */
  kill: async () => {
    await browser.killWorker(id)
    return page.tell('relay')
  },
  status: () => page.tell('relay'),
  /** A tab of the user's own. */
  open: async ({ url }) => (await browser.call('Target.createTarget', { url })).targetId,
  tabs: async () => (await browser.targets('page')).map(({ targetId, url }) => ({ targetId, url })),
  /** Ends the process of a page. */
  crash: async ({ url }) => {
    const { targetId } = (await browser.targets('page')).find((it) => it.url === url)
    const { sessionId } = await browser.call('Target.attachToTarget', { targetId, flatten: true })
    void browser.call('Page.crash', {}, sessionId).catch(() => {})
    return null
  },
}

const server = createServer(async (socket) => {
  server.close()
  for await (const line of createInterface({ input: socket })) {
    const { op, ...params } = JSON.parse(line)
    const said = await Promise.resolve()
      .then(() => OPERATIONS[op](params))
      .then((ok) => ({ ok: ok ?? null }), (error) => ({ error: error.message }))
    socket.write(`${JSON.stringify(said)}\n`)
  }
  await browser.close()
})
server.listen(0, '127.0.0.1', () => {
  const [file] = process.argv.slice(2)
  writeFileSync(`${file}.new`, String(server.address().port))
  renameSync(`${file}.new`, file)
})
