// A person clicks in a tab that an agent uses, and plugins are at the points of an action: as natively (docs/browser.md).
import assert from 'node:assert/strict'
import { until } from './chromium.mjs'
import { Hand, reference } from './hand.mjs'

const PAGE = `<title>0</title><button style="width:200px;height:80px" onclick="document.title=+document.title+1">Count</button><button>Nothing</button>
<button onclick="document.title='sent'">Forbidden</button><button disabled>Off</button><input aria-label=Field>
<a href="/popup" target=_blank>Pop</a>`

export async function person({ browser, id, page, world }) {
  world.pages['/'] = PAGE
  const hand = new Hand(world, page, 'ses_person')
  await hand.begin()
  const opened = await hand.call('browser_open', { url: `${world.url}/` })
  assert.match(opened, /witness after_action open navigate/)
  const [count, nothing, forbidden, off, field] = ['"Count"', '"Nothing"', '"Forbidden"', '"Off"', '"Field"'].map((part) => reference(opened, part))
  const click = (ref, more = {}) => hand.call('browser_action', { action: 'click', ref, ...more })
  const title = async () => /title "(\w+)"/.exec(await hand.call('browser_snapshot', { full: true }))[1]

  // Our own clicks and keys are not a person's.
  for (let times = 0; times < 3; times++) assert.match(await click(count), /click t1: done[^]*witness after_action click input\n\nwitness after_verify click done/)
  await hand.call('browser_action', { action: 'press', ref: field, text: 'a' })
  assert.equal(await title(), '3')

  // Nor are they where other workers have attached to the tab before.
  for (let times = 0; times < 2; times++) {
    await browser.killWorker(id)
    await hand.again()
    assert.match(await click(count), /click t1: done/)
  }
  assert.deepEqual(await page.tell('persons'), [])
  assert.equal(await title(), '5')

  // No plugin makes a success of a failure, and what was not done is said to plugins, too.
  assert.match(await click(nothing, { timeout_ms: 200, expect: [{ text: 'Thank you' }] }), /click t1: failed_verify[^]*witness after_verify click failed_verify/)
  assert.match(await click(nothing), /click t1: unchanged/)
  assert.match(await click(off), /It was not done: it is disabled[^]*witness on_error click tool.failed/)
  assert.match(await click(forbidden), /The witness says no/)
  assert.equal(await title(), '5')

  // A pop-up is the session's, and does not stay in front of the person.
  const front = () => page.run(`chrome.tabs.query({ active: true }).then(([it]) => it.id)`)
  const before = await front()
  world.pages['/popup'] = 'popped up'
  assert.match(await click(reference(opened, '"Pop"')), /It opened the tab t2\./)
  assert.match(await hand.call('browser_snapshot', { tab: 't2' }), /popped up/)
  await until(async () => (await front()) === before, 'the tab that was in front')

  // A person clicks: the agent waits, and asks before it goes on.
  const tab = await browser.attach((it) => it.url === `${world.url}/`)
  const touch = async (send) => {
    await send()
    return until(async () => (await page.tell('persons')).includes('t1'), 'the tab to be the person\'s')
  }
  await touch(() => tab.click(60, 40))
  const asking = click(count)
  const question = await asked(page)
  assert.match(question.title, /^You have clicked or typed in the tab t1. May the agent continue in it with: click .*button "Count"/)
  assert.equal(question.always, null)
  await page.tell('answer', { id: question.id, reply: 'once' })
  assert.match(await asking, /click t1: done/)
  assert.equal(await title(), '7')

  // Keys count, too; a person who says no keeps the tab, and the model is told.
  await touch(() => tab.key('b'))
  const refused = click(count)
  await page.tell('answer', { id: (await asked(page)).id, reply: 'reject' })
  assert.match(await refused, /a person has clicked or typed in the tab t1 and has it now/)
  assert.equal(await title(), '7')
  assert.deepEqual(await page.tell('leases'), [])
  await hand.end()
  console.log('person: a click and a key take the tab, the agent asks, plugins are at all four points')
}

async function asked(page) {
  let questions = []
  await until(async () => (questions = await page.tell('questions')).length === 1, 'a question')
  return questions[0]
}
