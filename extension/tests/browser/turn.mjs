// A turn with tools, as a person sees it: questions are asked, leases end, the panel shows what was said.
import assert from 'node:assert/strict'
import { until } from './chromium.mjs'

export async function turn({ browser, id, page, world }) {
  world.plan = [
    { tool: 'browser_open', input: { url: `${world.url}/page` } },
    { tool: 'browser_action', input: { action: 'click' } },
    { tool: 'write', input: { filePath: 'notes/a.txt', content: 'done' } },
  ]
  await page.tell('save', { settings: { rules: [] } })
  void page.tell('prompt', { session: 'ses_turn', text: 'Click it', turn: 'trn_turn' })
  let questions = []
  await until(async () => (questions = await page.tell('questions')).length === 1, 'a question about the page')
  assert.equal(questions[0].permission, 'browser')
  assert.equal(world.clicks, 0)
  assert.equal(await page.tell('answer', { id: questions[0].id, reply: 'always' }), true)
  await page.tell('ended', { session: 'ses_turn' })
  assert.equal(world.clicks, 1)
  assert.equal(await page.tell('file', { path: 'notes/a.txt' }), 'done')
  assert.deepEqual(await page.tell('leases'), [], 'the lease ends with the turn')
  const { settings } = await page.tell('settings')
  assert.deepEqual(settings.rules, [{ permission: 'browser', pattern: `${world.url}/*`, action: 'allow' }])
  const panel = await browser.open(`chrome-extension://${id}/panel.html`)
  await until(() => panel.run(`document.querySelector('[role=log]')?.innerText.includes('All of it is done.') ?? false`), 'the answer in the panel')
  const shown = await panel.run(`document.querySelector('[role=log]').innerText`)
  assert.match(shown, /browser_action/)
  assert.deepEqual(await panel.run(`[...document.querySelectorAll('.card-name')].map((it) => it.innerText)`), ['browser_open', 'browser_action', 'write'])
  console.log('turn: asked once, clicked once, shown in the panel')
}
