// Dialogs: what they say, what is not done behind one, and whose they are, as natively (crates/outrigger-browser/tests/it/frames.rs).
import assert from 'node:assert/strict'
import { Hand, reference } from './hand.mjs'

export async function dialogs({ page, world }) {
  const other = world.url.replace('127.0.0.1', 'localhost')
  const rule = (site, action) => ({ permission: 'browser', pattern: `${site}/*`, action })
  const rules = (action) => page.tell('save', { settings: { rules: [rule(world.url, 'allow'), rule(other, action)], maxSteps: 200 } })
  world.pages = {
    '/': `<title>0</title><button onclick="document.title = prompt('your name', 'none')">Name</button>
      <button onclick="f.contentWindow.postMessage('', '*')">Ask</button><iframe id=f src="${other}/frame"></iframe>`,
    '/frame': `<script>onmessage = () => { document.body.textContent = 'balance ' + confirm('balance 4711') }</script>`,
  }
  await rules('allow')
  const hand = new Hand(world, page, 'ses_dialogs')
  await hand.begin()
  const act = (action, input = {}) => hand.call('browser_action', { action, ...input })
  assert.match(await act('dialog', { accept: true }), /No tab is open/)
  const shown = await opened(hand, world.url, other)
  const [name, ask] = ['"Name"', '"Ask"'].map((part) => reference(shown, part))
  assert.match(await act('dialog', { accept: true }), /no dialog is open/)

  // A click that opens one is over, and says so; nothing is done behind it.
  assert.match(await act('click', { ref: name }), /click t1: done[^]*a dialog is open \(prompt\): "your name"/)
  assert.match(await act('click', { ref: ask }), /A dialog is open \(prompt\): "your name"; answer it/)
  assert.match(await hand.call('browser_screenshot', {}), /A dialog is open \(prompt\)/)
  await act('dialog', { accept: true, text: 'Ada' })
  assert.match(await hand.call('browser_snapshot', { full: true }), /title "?Ada/)
  await act('click', { ref: name })
  await act('dialog', { accept: false })
  assert.match(await hand.call('browser_snapshot', { full: true }), /title "?null/)

  // One of a frame of another site is that site's: a rule that denies it withholds what it says, and nobody answers it.
  assert.match(await act('click', { ref: ask }), /a dialog is open \(confirm\): "balance 4711"/)
  await rules('deny')
  for (const refused of [await act('click', { ref: ask }), await act('dialog', { accept: true }), await hand.call('browser_screenshot', {})]) {
    assert.match(refused, /A rule denies|not shown: it is of a frame that a rule denies/)
    assert.doesNotMatch(refused, /4711/)
  }
  await rules('allow')
  await act('dialog', { accept: true })
  assert.match(await hand.call('browser_snapshot', { full: true }), /balance true/)
  await rules('deny')
  const withheld = await act('click', { ref: ask })
  assert.match(withheld, /A rule denies|not shown/)
  assert.doesNotMatch(withheld, /4711/)
  await hand.end()
  console.log('dialogs: nothing is done behind one, and it is its frame\'s')
}

/** The page, once its frame is there. */
async function opened(hand, url, other) {
  let shown = await hand.call('browser_open', { url: `${url}/` })
  for (let tries = 0; tries < 100 && !shown.includes(`frame of ${other}`); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 100))
    shown = await hand.call('browser_snapshot', { full: true })
  }
  return shown
}
