import type { Entry, EntryPage } from '../api'
import type { Sent } from '../lib/sse'

/** Entries that are kept whole; of those beyond only the key is known, and they are asked for again. */
export const MAX_KEPT = 800
/** Messages of a page. */
export const PAGE = 40

/** What is never shown as a row of its own. */
const HIDDEN = new Set(['step'])

interface Slot {
  /** Null: dropped to keep memory bounded. */
  entry: Entry | null
  /** The record that it was seen at. */
  seq: number
}

/**
 * A conversation as it is known here. An entry takes the place of the one that has its key; what was seen later wins, whether it came from
 * a page or the stream. Nothing depends on how the stream was cut into pieces.
 */
export class Conversation {
  readonly id: string
  #slots = new Map<string, Slot>()
  /** Prefixes that were removed, by the record that said so. */
  #removed = new Map<string, number>()
  #drafts = new Map<string, string>()
  #progress = new Map<string, Entry>()
  #rows: string[] | null = null
  #version = 0
  /** `before` of the next, older page; undefined: nothing was read yet. */
  next: string | null | undefined = undefined

  constructor(id: string) {
    this.id = id
  }

  /** Changes whenever keys come or go. */
  get version(): number {
    return this.#version
  }

  get size(): number {
    return this.#slots.size
  }

  /** Entries that are in memory. */
  get kept(): number {
    let count = 0
    for (const slot of this.#slots.values()) if (slot.entry) count++
    return count
  }

  /** Keys of what is shown, in their order. */
  rows(): string[] {
    if (this.#rows) return this.#rows
    const keys: string[] = []
    for (const [key, slot] of this.#slots) if (!slot.entry || isShown(slot.entry)) keys.push(key)
    this.#rows = keys.sort(compare)
    return this.#rows
  }

  /** What stands there now: running tools with what they have printed so far. */
  entry(key: string): Entry | null {
    return this.#progress.get(key) ?? this.#slots.get(key)?.entry ?? null
  }

  /** A text that is being written, as far as it has come. */
  draft(key: string): string | undefined {
    return this.#drafts.get(key)
  }

  /** All that is in memory, in order. */
  entries(): Entry[] {
    const keys = [...this.#slots.keys()].sort(compare)
    return keys.flatMap((key) => this.entry(key) ?? [])
  }

  /** Takes a page: older ones are put in front, and one that is read again fills in what was dropped. Answers the keys that changed. */
  page(page: EntryPage, asked: string | null): Set<string> {
    const changed = new Set<string>()
    for (const entry of page.entries) if (this.#put(entry, page.event)) changed.add(entry.key)
    // A re-read page says nothing about entries older than its oldest.
    if (this.next === undefined || (asked !== null && asked === this.next)) this.next = page.next
    return changed
  }

  /** Takes items of the stream; those of other conversations change nothing. Answers the keys that changed. */
  take(sent: Sent[]): Set<string> {
    const changed = new Set<string>()
    for (const { item, seq } of sent) {
      switch (item.type) {
        case 'entry':
          if (item.entry.conversation === this.id && this.#put(item.entry, seq ?? 0)) changed.add(item.entry.key)
          break
        case 'progress':
          // A finished entry has no more output.
          if (item.entry.conversation === this.id && this.#slots.get(item.entry.key)?.entry?.state !== 'done') {
            this.#progress.set(item.entry.key, item.entry)
            changed.add(item.entry.key)
          }
          break
        case 'removed':
          if (item.conversation === this.id) for (const key of this.#remove(item.key, seq ?? 0)) changed.add(key)
          break
        case 'delta':
          if (item.conversation === this.id && this.#slots.get(item.key)?.entry?.state !== 'done') {
            this.#drafts.set(item.key, item.start ? item.text : (this.#drafts.get(item.key) ?? '') + item.text)
            changed.add(item.key)
          }
          break
        default:
      }
    }
    return changed
  }

  /** A connection was lost: what was not stored comes again, from its beginning. */
  lost(): Set<string> {
    const changed = new Set([...this.#drafts.keys(), ...this.#progress.keys()])
    this.#drafts.clear()
    this.#progress.clear()
    return changed
  }

  /** Drops entries far from those between two rows. Their keys stay, so the list keeps its length. */
  trim(first: number, last: number, limit = MAX_KEPT): void {
    const rows = this.rows()
    if (this.kept <= limit) return
    const margin = Math.floor(limit / 3)
    for (let index = 0; index < rows.length; index++) {
      if (index >= first - margin && index <= last + margin) continue
      const slot = this.#slots.get(rows[index] as string)
      if (slot?.entry?.state === 'done') slot.entry = null
    }
    // Entries that are not shown need not be kept after reading.
    for (const [key, slot] of this.#slots) if (slot.entry && !isShown(slot.entry)) this.#slots.delete(key)
  }

  /** The page to ask for where a row was dropped: `before` is the message after some more rows. Undefined: it is there. */
  missing(first: number, last: number): { before: string | null } | undefined {
    const rows = this.rows()
    let wanted = -1
    for (let index = Math.min(last, rows.length - 1); index >= Math.max(0, first); index--) {
      if (!this.entry(rows[index] as string)) {
        wanted = index
        break
      }
    }
    if (wanted < 0) return undefined
    const message = messageOf(rows[wanted] as string)
    for (let index = wanted + 1; index < rows.length; index++) {
      const other = messageOf(rows[index] as string)
      if (other !== message) return { before: other }
    }
    return { before: null }
  }

  /** A row that the server does not have any more. */
  forget(key: string): void {
    if (this.#slots.get(key)?.entry === null) this.#change(() => this.#slots.delete(key))
  }

  #put(entry: Entry, seq: number): boolean {
    if (this.#wasRemoved(entry.key, seq)) return false
    const known = this.#slots.get(entry.key)
    if (known && known.seq > seq) return false
    // A re-read page repeats known entries; a running one may be further along.
    const sameRow = known !== undefined && (known.entry === null || isShown(known.entry)) === isShown(entry)
    if (sameRow) this.#slots.set(entry.key, { entry, seq })
    else this.#change(() => this.#slots.set(entry.key, { entry, seq }))
    if (entry.state === 'done' || this.#progress.get(entry.key)) this.#progress.delete(entry.key)
    if (entry.state === 'done') this.#drafts.delete(entry.key)
    return true
  }

  #remove(prefix: string, seq: number): string[] {
    this.#removed.set(prefix, Math.max(seq, this.#removed.get(prefix) ?? 0))
    const gone: string[] = []
    for (const [key, slot] of this.#slots) {
      if ((key === prefix || key.startsWith(`${prefix}/`)) && slot.seq <= seq) gone.push(key)
    }
    if (gone.length) {
      this.#change(() => {
        for (const key of gone) {
          this.#slots.delete(key)
          this.#drafts.delete(key)
          this.#progress.delete(key)
        }
      })
    }
    return gone
  }

  #wasRemoved(key: string, seq: number): boolean {
    if (!this.#removed.size) return false
    // It, or its message with all its parts.
    const at = Math.max(this.#removed.get(key) ?? -1, this.#removed.get(messageOf(key)) ?? -1)
    return at > seq
  }

  #change(change: () => void): void {
    change()
    this.#rows = null
    this.#version++
  }
}

/** Whether an entry has a row. */
export function isShown(entry: Entry): boolean {
  const { messageType, metadata } = entry.message
  if (HIDDEN.has(messageType)) return false
  const flags = metadata as Record<string, unknown>
  return !(messageType === 'text' && (flags['synthetic'] === true || flags['ignored'] === true))
}

export function messageOf(key: string): string {
  const slash = key.indexOf('/')
  return slash < 0 ? key : key.slice(0, slash)
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
