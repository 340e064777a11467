// Large files of the workspace: written whole or not at all, whatever ends the worker; no room and removed files are said.
import assert from 'node:assert/strict'
import { until } from './chromium.mjs'
import { Hand } from './hand.mjs'

const SIZE = 6 << 20

export async function large({ browser, id, page, world }) {
  const content = (letter) => letter.repeat(SIZE)
  const text = async () => page.run(`(async () => {
    const root = await navigator.storage.getDirectory()
    const file = await (await (await root.getDirectoryHandle('workspace')).getFileHandle('large.txt')).getFile()
    const text = await file.text()
    return [text.length, [...new Set(text)].join('')]
  })()`)
  const parts = () => page.run(`(async () => {
    const parts = await (await navigator.storage.getDirectory()).getDirectoryHandle('parts', { create: true })
    return Array.fromAsync(parts.keys())
  })()`)
  const hand = new Hand(world, page, 'ses_large')
  await hand.begin()
  assert.match(await hand.call('write', { filePath: 'large.txt', content: content('a') }), /Wrote 6291456 bytes/)
  assert.deepEqual(await text(), [SIZE, 'a'])
  assert.equal((await page.run(`chrome.runtime.getContexts({ contextTypes: ['OFFSCREEN_DOCUMENT'] }).then((all) => all.length)`)), 1, 'a worker wrote it')

  // The worker dies while it is written, again and again: what is there is the old file or the new one.
  for (const letter of ['b', 'c', 'd']) {
    const written = hand.call('write', { filePath: 'large.txt', content: content(letter) })
    const planned = `new Promise((resolve) => { const open = indexedDB.open('outrigger'); open.onsuccess = () => {
      const all = open.result.transaction('plans').objectStore('plans').getAllKeys(); all.onsuccess = () => { open.result.close(); resolve(all.result.length) } } })`
    const before = await page.run(planned)
    await until(async () => (await page.run(planned)) > before, 'the plan')
    await browser.killWorker(id)
    const [length, letters] = await text()
    assert.equal(length, SIZE)
    assert.equal(letters.length, 1, 'no file is half of each')
    void page.tell('sessions').catch(() => {})
    await written
    assert.deepEqual(await text(), [SIZE, letter])
  }
  assert.deepEqual(await parts(), [])

  // No room: nothing is changed, and the model is told.
  const origin = `chrome-extension://${id}`
  await page.browser.call('Storage.overrideQuotaForOrigin', { origin, quotaSize: 1 << 20 }, page.session)
  const full = await hand.call('write', { filePath: 'large.txt', content: content('e') })
  await page.browser.call('Storage.overrideQuotaForOrigin', { origin }, page.session)
  assert.match(full, /the browser gives this extension no more room/)
  assert.deepEqual(await text(), [SIZE, 'd'])

  // What the browser has removed is said to be, and can be written again.
  await page.run(`navigator.storage.getDirectory().then((root) => root.removeEntry('workspace', { recursive: true }))`)
  assert.match(await hand.call('read', { filePath: 'large.txt' }), /large.txt is gone: the browser has removed it \(6291456 bytes were written\)/)
  assert.match(await hand.call('read', { filePath: 'never.txt' }), /There is no file never.txt/)
  assert.match(await hand.call('write', { filePath: 'large.txt', content: 'small' }), /Wrote 5 bytes/)
  assert.match(await hand.call('read', { filePath: 'large.txt' }), /1\| small/)
  await hand.end()
  console.log('large: written whole whatever ends the worker; no room and removed files are said')
}
