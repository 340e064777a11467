// Frames of other sites: rules go by whose a frame is, and what is typed as a secret goes into its field alone, as natively
// (crates/outrigger-browser/tests/it/frames.rs).
import assert from 'node:assert/strict'
import { Hand, reference } from './hand.mjs'

const button = (name) => `<button onclick="o.textContent = '${name} was pressed'">${name}</button><p id=o></p>`
const field = (name) => `<input id=p type=password aria-label=${name} oninput="o.textContent = '${name} holds ' + p.value"><p id=o></p>`

export async function frames({ page, world }) {
  const other = world.url.replace('127.0.0.1', 'localhost')
  const rule = (site, action) => ({ permission: 'browser', pattern: `${site}/*`, action })
  const rules = (action) => page.tell('save', { settings: { rules: [rule(world.url, 'allow'), rule(other, action)], secrets: ['SHOP_PASSWORD@127.0.0.1'], maxSteps: 200 }, secrets: { SHOP_PASSWORD: 'hunter22' } })
  const hand = new Hand(world, page, 'ses_frames')
  await rules('allow')
  world.pages = {
    '/': `${button('Own')}<iframe src="${other}/frame"></iframe>`,
    '/frame': button('Transfer'),
    // As soon as the field has the focus, the frame takes it.
    '/thief': `${field('Own')}<iframe id=f src="${other}/taker"></iframe><script>p.onfocus = () => queueMicrotask(() => f.contentWindow.focus())</script>`,
    '/kept': `<label id=l for=q>Words</label><input id=q aria-label=Search><input id=w type=password aria-label=Word><button onclick="w.type = 'text'">Show</button>`,
    '/taker': `${field('Thief')}<script>onfocus = () => p.focus()</script>`,
  }
  await hand.begin()

  await hand.call('browser_open', { url: `${world.url}/` })
  const shown = await shows(hand, '"Own"', '"Transfer"')
  const [own, transfer] = ['"Own"', '"Transfer"'].map((part) => reference(shown, part))
  assert.match(shown, new RegExp(`iframe \\(frame of ${other}\\)`))
  assert.match(await hand.call('browser_screenshot', {}), /The picture is attached/)
  await rules('deny')
  // What is in it is not read.
  const without = await hand.call('browser_snapshot', { full: true })
  assert.match(without, new RegExp(`iframe \\(frame of ${other}: denied\\)`))
  assert.doesNotMatch(without, /Transfer/)
  assert.match(await hand.call('browser_screenshot', {}), /a frame of http:\/\/localhost:\d+\/frame, which a rule denies/)
  // What is not aimed at an element may be of any frame.
  const inside = [{ action: 'click', ref: transfer }, { action: 'click', at: { x: 30, y: 90 } }, { action: 'press', text: 'Enter' }, { action: 'drag', ref: own, to: transfer }]
  for (const input of inside) assert.match(await hand.call('browser_action', input), /A rule denies browser of http:\/\/localhost:/, JSON.stringify(input))
  const said = await hand.call('browser_action', { action: 'click', ref: own })
  assert.match(said, /Own was pressed/)
  assert.doesNotMatch(said, /Transfer was/)
  await rules('allow')
  // What was pressed before has moved the frame, in a tab that nobody looks at.
  assert.match(await hand.call('browser_action', { action: 'click', ref: transfer }), /Transfer was pressed/)

  await hand.call('browser_open', { url: `${world.url}/thief` })
  const fields = await shows(hand, '"Own"', '"Thief"')
  for (const action of ['fill', 'type']) {
    // Whatever it comes to: that the frame gets nothing is what counts.
    await hand.call('browser_action', { action, ref: reference(fields, '"Own"'), secret: 'SHOP_PASSWORD' })
    const after = await hand.call('browser_snapshot', { full: true })
    assert.doesNotMatch(after, /Thief holds/)
    assert.match(after, /Own holds/)
  }
  // A field with a secret is the user's from then on, whatever its type becomes.
  await hand.call('browser_open', { url: `${world.url}/kept` })
  const kept = await shows(hand, '"Search"', '"Word"')
  const [plain, word, show] = ['"Search"', '"Word"', '"Show"'].map((part) => reference(kept, part))
  for (const ref of [plain, word]) await hand.call('browser_action', { action: 'type', ref, secret: 'SHOP_PASSWORD' })
  await hand.call('browser_action', { action: 'click', ref: show })
  const keys = [{ action: 'press', ref: plain, text: 'ArrowLeft' }, { action: 'press', ref: word, text: '-' }, { action: 'press', text: '-' }, { action: 'type', ref: plain, text: '-' }]
  for (const input of keys) assert.match(await hand.call('browser_action', input), /neither read nor typed in without a grant/, JSON.stringify(input))
  const masked = await hand.call('browser_snapshot', { full: true })
  assert.doesNotMatch(masked, /hunter|SHOP_PASSWORD/)
  await hand.end()
  console.log('frames: rules count for frames of other sites, these get nothing of a secret, and its field is kept')
}

/** The page, once all of these are on it: frames come later than it. */
async function shows(hand, ...parts) {
  let shown = ''
  for (let tries = 0; tries < 100; tries++) {
    shown = await hand.call('browser_snapshot', { full: true })
    if (parts.every((part) => shown.includes(part))) return shown
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`${parts} did not come: ${shown}`)
}
