// The cases that every provider of a browser passes (crates/outrigger-browser/tests/cases/pages.json), played through the extension's tools. The
// native provider runs the same file (crates/outrigger-browser/tests/it/shared.rs).
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Hand, reference } from './hand.mjs'

const CASES = JSON.parse(readFileSync(join(import.meta.dirname, '../../../crates/outrigger-browser/tests/cases/pages.json'), 'utf8'))

export async function conformance({ page, world }) {
  const other = world.url.replace('127.0.0.1', 'localhost')
  const rules = [world.url, other].map((site) => ({ permission: 'browser', pattern: `${site}/*`, action: 'allow' }))
  const settings = { rules, secrets: ['SHOP_PASSWORD@127.0.0.1'], maxSteps: 200 }
  for (const [number, it] of CASES.entries()) {
    await page.tell('save', { settings: { ...settings, fields: it.fields ?? [] }, secrets: { SHOP_PASSWORD: 'hunter22' } })
    const fill = (html) => html.replaceAll('{site}', world.url).replaceAll('{other}', other)
    world.pages = Object.fromEntries(Object.entries({ ...it.pages, ...it.other, ...it.more }).map(([path, html]) => [path, fill(html)]))
    const hand = new Hand(world, page, `ses_case${number}`)
    await hand.begin()
    const play = new Play(page, hand, await hand.call('browser_open', { url: `${world.url}/` }))
    for (const [place, step] of it.steps.entries()) {
      try {
        await play.step(step)
      } catch (error) {
        throw new Error(`${it.name}, step ${place + 1} ${JSON.stringify(step)}: ${error.message}`, { cause: error })
      }
    }
    await hand.end()
  }
  console.log(`conformance: ${CASES.length} cases of the native provider's, ${CASES.reduce((sum, it) => sum + it.steps.length, 0)} steps`)
}

class Play {
  constructor(page, hand, opened) {
    this.page = page
    this.hand = hand
    // The names of pop-ups are counted from the tab that was opened.
    this.first = Number(/^t(\d+)/.exec(opened)[1])
  }

  name(tab) {
    return `t${this.first + Number(tab.slice(1)) - 1}`
  }

  async step(step) {
    if (step.write) return void (await this.hand.call('write', { filePath: step.write, content: step.content }))
    if (step.file) return assert.equal(await this.page.tell('file', { path: step.file }), step.holds)
    if (step.shows) return this.shows(step)
    const shown = step.on ? await this.hand.call('browser_snapshot', { full: true }) : ''
    const input = { ...step.with, ...(step.on ? { ref: reference(shown, step.on) } : {}), ...(step.to ? { to: reference(shown, step.to) } : {}) }
    const said = await this.hand.call('browser_action', input)
    for (const text of [...(step.says ?? []), ...(step.refused ?? [])]) assert.ok(said.includes(text.replace(/\bt(\d)\b/, (tab) => this.name(tab))), said)
    for (const text of step.not ?? []) assert.ok(!said.includes(text), said)
    // What was refused has no verdict.
    assert.equal(/^\w+ t\d+: (done|verified|unchanged|failed_verify)/.test(said), !step.refused, said)
  }

  /** What comes late, as a frame of another site does, is waited for. */
  async shows({ shows, not = [], tab }) {
    let said = ''
    for (let tries = 0; tries < 100; tries++) {
      said = await this.hand.call('browser_snapshot', { full: true, ...(tab ? { tab: this.name(tab) } : {}) })
      if (shows.every((text) => said.includes(text))) break
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
    for (const text of shows) assert.ok(said.includes(text), said)
    for (const text of not) assert.ok(!said.includes(text), said)
  }
}
