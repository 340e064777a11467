import { describe, expect, it } from 'vitest'
import type { Entry, EntryPage, StreamItem } from '../../src/api'
import type { Sent } from '../../src/lib/sse'
import { Conversation, messageOf } from '../../src/state/conversation'

function entry(key: string, content: string, state: 'running' | 'done' = 'done', messageType = 'text'): Entry {
  return { key, state, conversation: 'c', task: 'c', attempt: 'm', message: { id: key, role: 'assistant', messageType, content, timestamp: 1, metadata: {} } }
}

function put(key: string, content: string, seq: number, state: 'running' | 'done' = 'done'): Sent {
  return { item: { type: 'entry', entry: entry(key, content, state) }, seq }
}

function page(event: number, entries: Entry[], next: string | null = null): EntryPage {
  return { entries, next, event }
}

/** What is shown: key, state and text of each row. */
function shown(model: Conversation): unknown[] {
  return model.rows().map((key) => [key, model.entry(key)?.state, model.draft(key) ?? model.entry(key)?.message.content])
}

/** The same numbers each time. */
function random(seed: number): () => number {
  let state = seed
  return () => {
    state = (state * 1664525 + 1013904223) % 4294967296
    return state / 4294967296
  }
}

/** A log of a conversation: entries that begin, are written and end, some removed. */
function log(seed: number): Sent[] {
  const next = random(seed)
  const sent: Sent[] = []
  for (let seq = 1; seq <= 120; seq++) {
    const key = `m${Math.floor(next() * 9)}/p${Math.floor(next() * 4)}`
    const roll = next()
    if (roll < 0.1) sent.push({ item: { type: 'removed', conversation: 'c', key: next() < 0.5 ? key : messageOf(key) }, seq })
    else if (roll < 0.3) sent.push({ item: { type: 'delta', conversation: 'c', key, text: `d${seq} ` }, seq: null })
    else if (roll < 0.35) sent.push({ item: { type: 'entry', entry: { ...entry(key, 'elsewhere'), conversation: 'other' } }, seq })
    else sent.push(put(key, `text ${seq}`, seq, roll < 0.6 ? 'running' : 'done'))
  }
  return sent
}

/** What the store has of a log up to a record. */
function stored(sent: Sent[], event: number): Entry[] {
  const model = new Conversation('c')
  model.take(sent.filter((one) => one.seq !== null && one.seq <= event))
  return model.entries()
}

const isStored = (one: Sent) => one.seq !== null

describe('a conversation', () => {
  it('is the same however the stream is cut', () => {
    for (let seed = 1; seed <= 40; seed++) {
      const sent = log(seed)
      const whole = new Conversation('c')
      whole.take(sent)
      const next = random(seed + 1000)
      const pieces = new Conversation('c')
      for (let at = 0; at < sent.length; ) {
        const size = 1 + Math.floor(next() * 7)
        pieces.take(sent.slice(at, at + size))
        at += size
      }
      expect(shown(pieces)).toEqual(shown(whole))
    }
  })

  it('is the same whenever its page was read, before or after the items of the stream', () => {
    for (let seed = 1; seed <= 40; seed++) {
      const sent = log(seed).filter(isStored)
      const whole = new Conversation('c')
      whole.take(sent)
      for (const event of [0, 10, 60, 119, 120]) {
        const entries = stored(sent, event)
        // The stream begins before the page is read, and its items come before the page, after it, or around it.
        for (const arrives of [0, event, sent.length]) {
          const model = new Conversation('c')
          const begun = sent.filter((one) => (one.seq ?? 0) > Math.min(event, 5))
          model.take(begun.slice(0, arrives))
          model.page(page(event, entries), null)
          model.take(begun.slice(arrives))
          expect(shown(model), `${seed} ${event} ${arrives}`).toEqual(shown(whole))
        }
      }
    }
  })

  it('goes on after a break as if there had been none', () => {
    for (let seed = 1; seed <= 40; seed++) {
      const sent = log(seed)
      const whole = new Conversation('c')
      whole.take(sent.filter(isStored))
      for (const cut of [1, 30, 77, 119]) {
        const model = new Conversation('c')
        model.take(sent.slice(0, cut))
        const last = Math.max(0, ...sent.slice(0, cut).map((one) => one.seq ?? 0))
        model.lost()
        // The server sends what came after the last record that was seen.
        model.take(sent.filter((one) => (one.seq ?? 0) > last))
        expect(shown(model)).toEqual(shown(whole))
      }
    }
  })

  it('shows a text while it is written, and the stored one in its place', () => {
    const model = new Conversation('c')
    model.take([put('m/p', '', 1, 'running')])
    const delta = (text: string, start = false): Sent => ({ item: { type: 'delta', conversation: 'c', key: 'm/p', text, ...(start ? { start } : {}) }, seq: null })
    model.take([delta('on', true), delta('e t')])
    model.take([delta('wo')])
    expect(shown(model)).toEqual([['m/p', 'running', 'one two']])
    model.take([put('m/p', 'one two!', 2)])
    // A late piece changes nothing.
    model.take([delta(' three')])
    expect(shown(model)).toEqual([['m/p', 'done', 'one two!']])
  })

  it('keeps few entries of many, in their places, and asks for those that it dropped', () => {
    const model = new Conversation('c')
    const key = (n: number) => `m${String(n).padStart(6, '0')}/p`
    const total = 10_000
    for (let from = total - 40; from >= 0; from -= 40) {
      const entries = Array.from({ length: 40 }, (_, n) => entry(key(from + n), `text ${from + n}`))
      model.page(page(1, entries, from ? messageOf(key(from)) : null), from + 40 === total ? null : messageOf(key(from + 40)))
      model.trim(0, 20)
      expect(model.kept).toBeLessThanOrEqual(800 + 40)
    }
    expect(model.next).toBe(null)
    expect(model.rows()).toHaveLength(total)
    const missing = model.missing(5000, 5020)
    expect(missing).toEqual({ before: messageOf(key(5021)) })
    expect(model.missing(total - 20, total - 1)).toEqual({ before: null })
    model.page(page(1, Array.from({ length: 40 }, (_, n) => entry(key(4981 + n), `text ${4981 + n}`)), messageOf(key(4981))), messageOf(key(5021)))
    expect(model.missing(5000, 5020)).toBeUndefined()
    expect(model.rows()).toHaveLength(total)
    expect(model.next).toBe(null)
  })

  it('has no row for what nobody needs to see', () => {
    const model = new Conversation('c')
    const hidden = entry('m/b', 'x')
    hidden.message.metadata = { synthetic: true } as never
    model.page(page(1, [entry('m/a', 'shown'), hidden, entry('m/c', '', 'done', 'step'), entry('m/d', 'new kind', 'done', 'not known yet')]), null)
    expect(model.rows()).toEqual(['m/a', 'm/d'])
  })

  it('ignores what it does not know', () => {
    const model = new Conversation('c')
    expect(model.take([{ item: { type: 'of a later version' } as unknown as StreamItem, seq: 1 }]).size).toBe(0)
  })
})
