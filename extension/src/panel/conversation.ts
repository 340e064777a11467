import type { Entry } from '@web/api'
import { Kernel } from '../kernel/kernel'
import type { Placed } from '../kernel/types'
import { tell } from '../messages'
import type { Notice } from '../session/host'

let kernel: Promise<Kernel> | undefined

/** One conversation, as the panel shows it: folded by the kernel from what was published, live and stored alike (E5). */
export class Conversation {
  readonly #entries = new Map<string, Entry>()
  running = false
  /** A text that is being written. */
  draft = ''
  report = ''

  private constructor(
    readonly session: string,
    private readonly kernel: Kernel,
    private readonly number: number,
  ) {}

  static async open(session: string): Promise<Conversation> {
    const loaded = await (kernel ??= Kernel.load(chrome.runtime.getURL('kernel.wasm')))
    const { records, running } = await tell('conversation', { session })
    const conversation = new Conversation(session, loaded, loaded.call('conversation.open', {}))
    conversation.#fold(records)
    conversation.running = running
    return conversation
  }

  /** In the order of the conversation: keys ascend. */
  entries(): Entry[] {
    return [...this.#entries.values()].toSorted((a, b) => (a.key < b.key ? -1 : Number(a.key > b.key)))
  }

  /** Takes what the worker says; whether it was about this conversation. */
  take(notice: Notice): boolean {
    if (notice.notice === 'questions' || notice.session !== this.session) return false
    switch (notice.notice) {
      case 'rows':
        this.running = true
        this.draft = ''
        this.#fold(notice.records)
        break
      case 'draft':
        this.draft = notice.text
        break
      case 'finished':
        this.running = false
        this.draft = ''
        break
      case 'report':
        this.running = false
        this.report = notice.text
    }
    return true
  }

  close(): void {
    this.kernel.call('conversation.close', { conversation: this.number })
  }

  #fold(records: string[]): void {
    for (const change of this.kernel.call('conversation.on', { conversation: this.number, records })) {
      if ('put' in change) this.#entries.set(change.put.key, this.#entry(change.put))
      else this.#remove(change.remove)
    }
  }

  #remove(key: string): void {
    for (const at of this.#entries.keys()) if (at === key || at.startsWith(`${key}/`)) this.#entries.delete(at)
  }

  #entry(placed: Placed): Entry {
    return { ...placed, conversation: this.session, task: this.session, attempt: '' } as unknown as Entry
  }
}
