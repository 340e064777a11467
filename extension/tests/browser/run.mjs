// The extension in Chromium against a scripted model. Usage: run.mjs [NAME..]
import { join } from 'node:path'
import { bridge } from './bridge.mjs'
import { Chromium } from './chromium.mjs'
import { conformance } from './conformance.mjs'
import { dialogs } from './dialogs.mjs'
import { frames } from './frames.mjs'
import { handover } from './handover.mjs'
import { kills } from './kills.mjs'
import { large } from './large.mjs'
import { network } from './network.mjs'
import { person } from './person.mjs'
import { turn } from './turn.mjs'
import { wake } from './wake.mjs'
import { World } from './world.mjs'

/** Each with the build that it needs. */
const TESTS = { turn: [turn, 'dist'], person: [person, 'dist-faults'], conformance: [conformance, 'dist'], frames: [frames, 'dist'], dialogs: [dialogs, 'dist'], network: [network, 'dist'], bridge: [bridge, 'dist'], handover: [handover, 'dist'], large: [large, 'dist'], wake: [wake, 'dist'], kills: [kills, 'dist-faults'] }
const only = process.argv.slice(2)

for (const [name, [test, build]] of Object.entries(TESTS)) {
  if (only.length > 0 && !only.includes(name)) continue
  const world = new World()
  await world.start()
  const browser = new Chromium()
  try {
    const id = await browser.load(join(import.meta.dirname, '../..', build))
    const page = await browser.open(`chrome-extension://${id}/panel.html`)
    const rules = [{ permission: 'browser', pattern: `${world.url}/*`, action: 'allow' }]
    await page.tell('save', { settings: { url: `${world.url}/v1`, model: 'scripted', rules }, key: 'k' })
    await test({ browser, id, page, world })
  } finally {
    await browser.close()
    await world.close()
  }
}
