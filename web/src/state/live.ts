import type { Conversation as Info, ConversationPage, EntryPage, Entry, StreamItem, Waiting } from '../api'
import { Follow, type Link } from '../lib/follow'
import { RequestError, get, query } from '../lib/http'
import type { Sent } from '../lib/sse'
import { Conversation, PAGE, messageOf } from './conversation'
import { Fresh } from './fresh'
import { Signal, Signals } from './signal'

const V1 = '/outrigger/v1'
/** Conversations whose entries are kept when another one is opened. */
const MAX_OPEN = 3
/** Messages of a page where one far back is looked for. */
const MAX_PAGE = 1000

/** A conversation that is looked at. */
export class Open {
  readonly model: Conversation
  readonly rows = new Signal()
  readonly keys = new Signals()
  /** A prompt was sent from here: its answer is looked at. */
  readonly sent = new Signal()
  loading = false
  error: string | null = null

  constructor(
    readonly id: string,
    private readonly live: Live,
  ) {
    this.model = new Conversation(id)
  }

  /** The newest page. */
  async begin(): Promise<void> {
    if (this.model.next !== undefined) return
    await this.#load(null)
  }

  /** The page before the oldest. */
  async older(): Promise<void> {
    const next = this.model.next
    if (typeof next === 'string') await this.#load(next)
  }

  /** Reads back to an entry; its row, or none where it is not there any more. */
  async seek(key: string): Promise<number> {
    const message = messageOf(key)
    while (typeof this.model.next === 'string' && (this.model.rows()[0] ?? '') > key) {
      const before = this.model.next
      await this.#load(before, MAX_PAGE)
      if (this.error || this.model.next === before) break
    }
    const rows = this.model.rows()
    const exact = rows.indexOf(key)
    return exact >= 0 ? exact : rows.findIndex((row) => messageOf(row) === message)
  }

  /** Brings what was dropped between two rows back, and drops what is far from them. */
  async look(first: number, last: number): Promise<void> {
    if (this.loading) return
    const margin = 40
    const missing = this.model.missing(first - margin, last + margin)
    if (missing) {
      const rows = this.model.rows()
      await this.#load(missing.before)
      const again = this.model.missing(first - margin, last + margin)
      if (again && again.before === missing.before) {
        // The server has less than was known here.
        for (const key of rows.slice(Math.max(0, first - margin), last + margin)) if (!this.model.entry(key)) this.model.forget(key)
        this.rows.changed()
      }
    }
    this.model.trim(first, last)
  }

  async #load(before: string | null, limit = PAGE): Promise<void> {
    if (this.loading) return
    this.loading = true
    this.error = null
    this.rows.changed()
    const version = this.model.version
    try {
      const page = await get<EntryPage>(`${V1}/conversation/${this.id}/message${query({ limit, before })}`)
      this.keys.changed(this.model.page(page, before))
    } catch (error) {
      this.error = message(error)
      if (error instanceof RequestError && error.isOffline) this.live.follow?.retry()
    } finally {
      this.loading = false
      if (version !== this.model.version || this.error || before !== null) this.rows.changed()
      this.rows.changed()
    }
  }

  take(sent: Sent[]): void {
    const version = this.model.version
    const changed = this.model.take(sent)
    if (changed.size) this.keys.changed(changed)
    if (version !== this.model.version) this.rows.changed()
  }

  lost(): void {
    this.keys.changed(this.model.lost())
  }
}

/** All that is known of the server, kept up to date by one stream. */
export class Live {
  /** Connection. */
  readonly status = new Signal()
  /** List of conversations and what waits. */
  readonly list = new Signal()
  link: Link = 'connecting'
  since = Date.now()
  follow: Follow | null = null
  listError: string | null = null
  loaded = false
  next: string | null = null
  search = ''
  #infos = new Fresh<Info>()
  #listed = new Set<string>()
  #waiting = new Fresh<Waiting>()
  #open = new Map<string, Open>()
  /** What is being written or printed anywhere, for who opens a conversation later. */
  #writing = new Map<string, Map<string, StreamItem>>()
  #again: ReturnType<typeof setTimeout> | null = null

  start(): void {
    this.follow = new Follow(`${V1}/stream`, {
      take: (sent) => this.#take(sent),
      link: (link) => this.#linked(link),
      connected: (again) => this.#connected(again),
    })
    void this.follow.run()
  }

  stop(): void {
    this.follow?.stop()
    if (this.#again) clearTimeout(this.#again)
    this.#again = null
  }

  info(id: string): Info | undefined {
    return this.#infos.get(id)
  }

  /** Conversations that people began: what waits first, then what runs, then the newest. */
  conversations(): Info[] {
    const all = [...this.#listed].flatMap((id) => this.#infos.get(id) ?? [])
    return all.sort((a, b) => rank(this, a) - rank(this, b) || b.time.updated - a.time.updated || (a.id < b.id ? -1 : 1))
  }

  /** Folders that conversations work in, the last used first. */
  directories(): string[] {
    const all = [...this.#infos.values()].sort((a, b) => b.time.updated - a.time.updated)
    return [...new Set(all.map((info) => info.directory))]
  }

  waiting(): Waiting[] {
    return [...this.#waiting.values()]
  }

  /** What waits in a conversation and those that it started. */
  waitingOf(id: string): Waiting[] {
    return this.waiting().filter((one) => {
      const of = one.request.sessionID
      return of === id || this.#infos.get(of)?.task === id
    })
  }

  /** A conversation's entries. */
  open(id: string): Open {
    const known = this.#open.get(id)
    if (known) {
      this.#open.delete(id)
      this.#open.set(id, known)
      return known
    }
    const open = new Open(id, this)
    const writing = this.#writing.get(id)
    if (writing) open.take([...writing.values()].map((item) => ({ item, seq: null })))
    this.#open.set(id, open)
    for (const old of this.#open.keys()) {
      if (this.#open.size <= MAX_OPEN) break
      this.#open.delete(old)
    }
    return open
  }

  /** Makes sure that a conversation is known, listed or not. */
  async find(id: string): Promise<Info> {
    const info = await get<Info>(`${V1}/conversation/${id}`)
    this.#put(info)
    this.list.changed()
    return info
  }

  async load(search = this.search): Promise<void> {
    this.search = search
    const [infos, questions] = [this.#infos.reading(), this.#waiting.reading()]
    try {
      const [page, waiting] = await Promise.all([
        get<ConversationPage>(`${V1}/conversation${query({ limit: 50, search })}`),
        get<Waiting[]>(`${V1}/waiting`),
      ])
      if (search !== this.search) return
      this.#listed = new Set(page.conversations.map((info) => info.id))
      infos.take(page.conversations.map((info) => [info.id, info]), false)
      this.next = page.next
      questions.take(waiting.map((one) => [one.request.id, one]), true)
      this.listError = null
      this.loaded = true
      await Promise.all(waiting.map((one) => this.#knows(one.request.sessionID)))
    } catch (error) {
      this.listError = message(error)
    } finally {
      infos.end()
      questions.end()
    }
    this.list.changed()
  }

  async more(): Promise<void> {
    if (!this.next) return
    const cursor = this.next
    const infos = this.#infos.reading()
    try {
      const page = await get<ConversationPage>(`${V1}/conversation${query({ limit: 50, cursor, search: this.search })}`)
      if (cursor !== this.next) return
      infos.take(page.conversations.map((info) => [info.id, info]), false)
      for (const info of page.conversations) this.#listed.add(info.id)
      this.next = page.next
      this.list.changed()
    } finally {
      infos.end()
    }
  }

  /** It was answered here; the stream says so, too. */
  answered(id: string): void {
    if (this.#waiting.delete(id)) this.list.changed()
  }

  #linked(link: Link): void {
    if (link === this.link) return
    this.link = link
    this.since = Date.now()
    if (link === 'lost' || link === 'stranger') {
      this.#writing.clear()
      for (const open of this.#open.values()) open.lost()
    }
    this.status.changed()
  }

  #connected(again: boolean): void {
    void this.load()
    if (!again) return
    // Entries started without a connection come from the stream; a page that could not be read is read now.
    for (const open of this.#open.values()) if (open.error) void open.begin()
    this.status.changed()
  }

  #reset(): void {
    this.#open.clear()
    void this.load()
    this.status.changed()
  }

  #take(sent: Sent[]): void {
    for (const open of this.#open.values()) open.take(sent)
    let changed = false
    for (const { item } of sent) changed = this.#one(item) || changed
    if (changed) this.list.changed()
  }

  #one(item: StreamItem): boolean {
    switch (item.type) {
      case 'reset':
        this.#reset()
        return true
      case 'conversation':
        this.#put(item.conversation)
        return true
      case 'deleted':
        this.#listed.delete(item.conversation)
        this.#infos.delete(item.conversation)
        return true
      case 'status': {
        const info = this.#infos.get(item.conversation)
        if (item.status === 'idle') this.#writing.delete(item.conversation)
        if (info) this.#infos.set(info.id, { ...info, status: item.status })
        else this.#soon()
        return true
      }
      case 'asked':
        this.#waiting.set(item.waiting.request.id, item.waiting)
        void this.#knows(item.waiting.request.sessionID)
        return true
      case 'answered':
        return this.#waiting.delete(item.id)
      case 'delta': {
        const of = this.#writing.get(item.conversation) ?? new Map<string, StreamItem>()
        this.#writing.set(item.conversation, of)
        const before = of.get(item.key)
        const text = item.start || before?.type !== 'delta' ? item.text : before.text + item.text
        of.set(item.key, { ...item, text, start: true })
        return false
      }
      case 'progress':
        this.#writing.set(item.entry.conversation, (this.#writing.get(item.entry.conversation) ?? new Map()).set(item.entry.key, item))
        return false
      case 'entry':
        if (item.entry.state === 'done') this.#writing.get(item.entry.conversation)?.delete(item.entry.key)
        return this.#touch(item.entry)
      default:
        return false
    }
  }

  #touch(entry: Entry): boolean {
    if (!this.#infos.has(entry.task)) this.#soon()
    return false
  }

  #put(info: Info): void {
    // A stream item may have less data about what runs than is known.
    this.#infos.set(info.id, info)
    if (!info.parentID && !info.time.archived && (!this.search || info.title.toLowerCase().includes(this.search.toLowerCase()))) this.#listed.add(info.id)
  }

  async #knows(id: string): Promise<void> {
    if (!this.#infos.has(id)) await this.find(id).catch(() => undefined)
  }

  /** Reads the list again, once for many reasons. */
  #soon(): void {
    this.#again ??= setTimeout(() => {
      this.#again = null
      void this.load()
    }, 500)
  }
}

function rank(live: Live, info: Info): number {
  if (live.waitingOf(info.id).length) return 0
  return info.status === 'idle' ? 2 : 1
}

export function message(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export const live = new Live()
