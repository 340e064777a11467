// A turn with tools whose worker dies at every boundary of an effect: nothing is lost, and nothing is done twice.
import assert from 'node:assert/strict'
import { until, within } from './chromium.mjs'

const LEAST_KILLS = 200

export async function kills({ browser, id, page, world }) {
  const files = Array.from({ length: 1 }, (_, place) => `notes/${place}.txt`)
  world.plan = [
    { tool: 'browser_open', input: { url: `${world.url}/page` } },
    ...files.flatMap((filePath, place) => [
      { tool: 'write', input: { filePath, content: `one ${place}\n` } },
      { tool: 'browser_action', input: { action: 'click' } },
      { tool: 'edit', input: { filePath, oldString: 'one', newString: 'one two' } },
    ]),
    { tool: 'read', input: { filePath: files[0] } },
  ]
  const session = 'ses_kills'
  const turn = 'trn_kills'
  await page.run(`chrome.storage.session.set({ 'faults.on': true })`)
  // Nobody knows whether a prompt whose worker died was taken: it is sent again, under its name.
  const send = () => page.tell('prompt', { session, text: 'do it', turn }).catch(() => {})
  void send()
  let count = 0
  let last = ''
  for (let ended = false; !ended; ) {
    let stopped
    await until(async () => {
      stopped = await within(page.run(`chrome.storage.session.get('faults.stopped').then((it) => it['faults.stopped'])`), `what stopped, after ${count} kills`)
      ended = !stopped && count > 0 && (await within(isDone(page, turn), 'the state of the turn'))
      return stopped || ended
    }, `a boundary, after ${count} kills, the last at ${last},`).catch(async (error) => {
      const workers = (await browser.targets('service_worker')).map((it) => it.url)
      const status = await within(page.tell('status'), 'the status').catch(String)
      const asked = JSON.stringify(await within(page.tell('questions'), 'the questions').catch(String))
      const seen = await page.run(`chrome.storage.session.get('faults.seen').then((it) => it['faults.seen'].slice(-3))`)
      throw new Error(`${error.message} (workers: ${workers}; status: ${JSON.stringify(status)}; ${world.requests} requests; seen: ${seen}; asked: ${asked}; log: ${await lastSteps(page)})`)
    })
    if (ended) break
    // What the worker that dies has said; the next one may say something before this is over.
    await within(page.run(`chrome.storage.session.remove('faults.stopped')`), `the next boundary, after ${stopped}`)
    await within(browser.killWorker(id), `the kill at ${stopped}`)
    count += 1
    last = stopped
    if (await page.run(`chrome.storage.session.get('faults.seen').then((it) => it['faults.seen'].length === 1)`)) void send()
    else void page.tell('sessions').catch(() => {})
  }
  await page.run(`chrome.storage.session.set({ 'faults.on': false })`)
  // The turn may have ended in a worker that stands at its last boundary.
  await browser.killWorker(id)
  assert.ok(count >= LEAST_KILLS, `${count} kills`)
  assert.equal(world.clicks, files.length, 'each click is made once')
  for (const [place, path] of files.entries()) assert.equal(await page.tell('file', { path }), `one two ${place}\n`)
  assert.deepEqual(await page.tell('files', { folder: 'notes' }), files.map((path) => path.split('/')[1]))
  assert.equal(await page.tell('verify'), null, 'the hash chain of the log')
  assert.equal((await browser.targets('page')).filter((it) => it.url.endsWith('/page')).length, 1, 'one tab was opened')
  await everyCallEnded(page, session)
  console.log(`kills: ${count} kills in one turn of ${world.plan.length} planned calls, ${world.requests} requests to the model; nothing lost, nothing twice`)
}

async function isDone(page, turn) {
  return page.run(`new Promise((resolve) => { const open = indexedDB.open('outrigger'); open.onsuccess = () => {
    const get = open.result.transaction('turns').objectStore('turns').get('${turn}'); get.onsuccess = () => { open.result.close(); resolve(get.result?.done === 1) } } })`)
}

/** The end of the log, for the message of a test that fails. */
async function lastSteps(page) {
  return page.run(`new Promise((resolve) => { const open = indexedDB.open('outrigger'); open.onsuccess = () => {
    const get = open.result.transaction('log').objectStore('log').getAll(); get.onsuccess = () => { open.result.close(); resolve(get.result.slice(-14).map((row) => row.body.slice(0, 400)).join('\\n')) } } })`)
}

async function everyCallEnded(page, session) {
  const { records, running } = await page.tell('conversation', { session })
  assert.equal(running, false)
  const parts = new Map()
  for (const record of records) {
    const { type, properties } = JSON.parse(record)
    if (type === 'message.part.updated') parts.set(properties.part.id, properties.part)
    if (type === 'message.part.removed') parts.delete(properties.partID)
  }
  const calls = [...parts.values()].filter((part) => part.type === 'tool')
  assert.ok(calls.every((part) => ['completed', 'error'].includes(part.state.status)), 'every call has an end')
  assert.equal(new Set(calls.map((part) => part.callID)).size, calls.length, 'no call has the name of another one')
  const texts = [...parts.values()].filter((part) => part.type === 'text')
  assert.equal(texts.at(-1).text, 'All of it is done.')
}
