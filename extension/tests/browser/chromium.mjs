// A Chromium over the debugging pipe, with an extension in it.
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium'
const ARGUMENTS = ['--headless=new', '--no-sandbox', '--no-first-run', '--disable-gpu', '--remote-debugging-pipe', '--enable-unsafe-extension-debugging']

export class Chromium {
  #last = 0
  #calls = new Map()
  #buffer = ''
  #listeners = new Set()

  constructor() {
    this.profile = mkdtempSync(join(tmpdir(), 'outrigger-extension-'))
    this.process = spawn(CHROMIUM, [...ARGUMENTS, `--user-data-dir=${this.profile}`, 'about:blank'], { stdio: ['ignore', 'ignore', 'ignore', 'pipe', 'pipe'] })
    // What is asked of a browser that has ended is answered by that.
    this.process.once('exit', (code, signal) => {
      this.gone = `Chromium ended (${signal ?? code})`
      for (const { reject, method } of this.#calls.values()) reject(new Error(`${method}: ${this.gone}`))
      this.#calls.clear()
    })
    this.process.stdio[4].setEncoding('utf8').on('data', (text) => this.#read(text))
  }

  #read(text) {
    const messages = (this.#buffer + text).split('\0')
    this.#buffer = messages.pop()
    for (const message of messages.map((it) => JSON.parse(it))) {
      const call = this.#calls.get(message.id)
      this.#calls.delete(message.id)
      if (message.error) call?.reject(new Error(`${call.method}: ${message.error.message}`))
      else if (call) call.resolve(message.result)
      else for (const listener of this.#listeners) listener(message)
    }
  }

  call(method, params = {}, sessionId) {
    if (this.gone) return Promise.reject(new Error(`${method}: ${this.gone}`))
    const id = ++this.#last
    this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`)
    return new Promise((resolve, reject) => this.#calls.set(id, { resolve, reject, method }))
  }

  async load(path) {
    return (await this.call('Extensions.loadUnpacked', { path })).id
  }

  async targets(type) {
    const { targetInfos } = await this.call('Target.getTargets', { filter: [{}] })
    return targetInfos.filter((it) => it.type === type)
  }

  /** A page of the extension. */
  async open(url) {
    const { targetId } = await this.call('Target.createTarget', { url })
    const { sessionId } = await this.call('Target.attachToTarget', { targetId, flatten: true })
    const page = new Page(this, sessionId)
    await until(async () => page.run(`document.readyState === 'complete' && chrome.runtime?.id !== undefined`), 'the page')
    return page
  }

  /** A tab that is there already, as a person has it. */
  async attach(is) {
    let found
    await until(async () => (found = (await this.targets('page')).find(is)), 'the tab')
    const { sessionId } = await this.call('Target.attachToTarget', { targetId: found.targetId, flatten: true })
    return new Page(this, sessionId)
  }

  /** Ends the worker of an extension, and returns when it is gone. */
  async killWorker(id) {
    const before = (await this.#workers(id)).map((it) => it.targetId)
    for (const targetId of before) await this.call('Target.closeTarget', { targetId }).catch(() => {})
    // A panel that is open wakes the next one at once.
    await until(async () => (await this.#workers(id)).every((it) => !before.includes(it.targetId)), 'the end of the worker')
  }

  async #workers(id) {
    return (await this.targets('service_worker')).filter((it) => it.url.includes(id))
  }

  async close() {
    const ended = this.gone ? null : new Promise((resolve) => this.process.once('exit', resolve))
    await this.call('Browser.close').catch(() => {})
    await ended
    rmSync(this.profile, { recursive: true, force: true, maxRetries: 5 })
  }
}

class Page {
  constructor(browser, session) {
    this.browser = browser
    this.session = session
  }

  /** Runs an expression; a promise is waited for. */
  async run(expression) {
    const params = { expression, awaitPromise: true, returnByValue: true }
    const { result, exceptionDetails } = await this.browser.call('Runtime.evaluate', params, this.session)
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text)
    return result.value
  }

  /** A click that nobody has announced: a person's. */
  async click(x, y) {
    for (const type of ['mousePressed', 'mouseReleased']) {
      await this.browser.call('Input.dispatchMouseEvent', { type, x, y, button: 'left', buttons: 1, clickCount: 1 }, this.session)
    }
  }

  /** A key that nobody has announced. */
  async key(key) {
    for (const type of ['keyDown', 'keyUp']) await this.browser.call('Input.dispatchKeyEvent', { type, key, text: type === 'keyDown' ? key : '' }, this.session)
  }

  /** Asks the worker, which is woken for that. */
  async tell(op, ask = {}) {
    const said = await this.run(`chrome.runtime.sendMessage(${JSON.stringify({ op, with: ask })})`)
    if (!said) throw new Error(`the worker did not answer ${op}`)
    if (said.error) throw new Error(`${op}: ${said.error}`)
    return said.ok
  }
}

/** Waits for a condition. */
export async function until(holds, what, limit = 30_000) {
  for (const begun = Date.now(); ; ) {
    if (await holds()) return
    if (Date.now() - begun > limit) throw new Error(`${what} did not come`)
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}

/** What has to be answered, or the test says what was not. */
export function within(work, what, limit = 60_000) {
  let timer
  const late = new Promise((_, reject) => (timer = setTimeout(() => reject(new Error(`${what} was not answered`)), limit).unref()))
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}
