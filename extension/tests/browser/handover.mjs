// A conversation of the native program goes on in the extension, and one of the extension goes to it (docs/extension.md).
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Hand } from './hand.mjs'

const FIXTURES = join(import.meta.dirname, '../../../crates/outrigger-import/tests/fixtures')
const fixture = (name) => JSON.parse(readFileSync(join(FIXTURES, name), 'utf8'))

export async function handover({ page, world }) {
  // What `opencode export`, and so `outrigger export --format opencode`, wrote.
  const native = fixture('opencode-1.18.33.json')
  const session = native.info.id
  assert.deepEqual(await page.tell('import', { text: JSON.stringify(native) }), { session, messages: native.messages.length })
  const again = await page.tell('export', { session })
  assert.equal(again.info.title, native.info.title)
  assert.deepEqual(again.messages.map(({ info }) => [info.id, info.role]), native.messages.map(({ info }) => [info.id, info.role]))
  const shape = (message) => message.parts.map((part) => [part.id, part.type, part.text ?? part.tool ?? '', part.state?.output ?? ''])
  assert.deepEqual(again.messages.map(shape), native.messages.map(shape))
  assert.equal(await page.tell('verify'), null, 'the hash chain of the log')
  // Taken over once more, nothing is new.
  assert.equal((await page.tell('import', { text: JSON.stringify(native) })).messages, 0)

  // It goes on here, and the model reads what was said there.
  let read = []
  const hand = new Hand(world, page, session)
  const next = hand.next.bind(hand)
  hand.next = (messages) => next((read = messages))
  await hand.begin()
  const said = JSON.stringify(read)
  for (const { parts } of native.messages) for (const part of parts) if (part.type === 'text') assert.ok(said.includes(JSON.stringify(part.text).slice(1, -1)), part.text)
  await hand.call('write', { filePath: 'a.txt', content: 'a' })
  await assert.rejects(page.tell('export', { session }), /still at work/)
  await hand.end()
  const grown = await page.tell('export', { session })
  assert.ok(grown.messages.length > native.messages.length)
  // What comes of it natively is looked at in crates/outrigger-import/tests/it/handover.rs, by a file of this form.
  const kinds = (messages) => [...new Set(messages.flatMap(({ parts }) => parts.map((part) => part.type)))]
  const recorded = fixture('extension-0.1.0.json')
  assert.deepEqual(Object.keys(grown.info).toSorted(), Object.keys(recorded.info).toSorted())
  for (const kind of kinds(grown.messages.slice(native.messages.length))) assert.ok(kinds(recorded.messages).includes(kind), kind)
  if (process.env.OUTRIGGER_RECORD) console.log(JSON.stringify(grown, null, 1))

  // What is none is refused, and nothing of it is there.
  const count = (await page.tell('sessions')).length
  const broken = structuredClone(native)
  broken.info.id = 'ses_broken'
  broken.messages.at(-1).info.role = 'nobody'
  for (const [text, why] of [['{', /not a conversation that can be imported/], ['{"info":{}}', /no `info` and `messages`/], [JSON.stringify(broken), /cannot read event/]]) {
    await assert.rejects(page.tell('import', { text }), why)
  }
  assert.equal((await page.tell('sessions')).length, count)
  console.log('handover: a native conversation goes on here, and what it has become goes back')
}
