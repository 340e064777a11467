import type { StreamItem } from '../api'

/** An event of a stream of server-sent events. */
export interface Frame {
  id: string | null
  data: string
}

/** Reads server-sent events out of texts that may be cut anywhere. */
export class Parser {
  #rest = ''
  #data: string[] = []
  #id: string | null = null

  push(text: string): Frame[] {
    const frames: Frame[] = []
    this.#rest += text
    let from = 0
    for (;;) {
      const end = this.#rest.indexOf('\n', from)
      if (end < 0) break
      let line = this.#rest.slice(from, end)
      from = end + 1
      if (line.endsWith('\r')) line = line.slice(0, -1)
      if (line === '') {
        if (this.#data.length) frames.push({ id: this.#id, data: this.#data.join('\n') })
        this.#data = []
        this.#id = null
        continue
      }
      const colon = line.indexOf(':')
      if (colon === 0) continue
      const name = colon < 0 ? line : line.slice(0, colon)
      const value = colon < 0 ? '' : line.slice(colon + 1).replace(/^ /, '')
      if (name === 'data') this.#data.push(value)
      else if (name === 'id') this.#id = value
    }
    this.#rest = this.#rest.slice(from)
    return frames
  }
}

/** An item, and the number of the record that it comes from; null for what is not stored. */
export interface Sent {
  item: StreamItem
  seq: number | null
}

const BESIDE = new Set(['connected', 'reset', 'delta', 'progress', 'status'])

/**
 * Collects the items of one record of the log: only the last of them has the number. Items of an incomplete record are dropped with the
 * connection, and are sent again.
 */
export class Groups {
  #open: StreamItem[] = []

  push(frame: Frame): Sent[] {
    let item: StreamItem
    try {
      item = JSON.parse(frame.data) as StreamItem
    } catch {
      return []
    }
    if (BESIDE.has(item.type)) return [{ item, seq: null }]
    this.#open.push(item)
    if (frame.id === null) return []
    const seq = Number(frame.id)
    const all = this.#open.map((one) => ({ item: one, seq }))
    this.#open = []
    return all
  }
}
