import type { Kernel } from '../../kernel/kernel'
import type { Grant, Owner } from '../../kernel/operations'
import type { Fields, Json } from '../../kernel/types'
import { ToolError } from '../tool'
import { Records } from './records'
import { Target } from './target'

/** How long a place in the queue for a tab is kept. */
const QUEUE = 10_000
const QUEUE_PAUSE = 100
const KEPT = 'browser'

/** A tab that an agent has opened. */
export interface Tab {
  /** Its name: `t1`. Never used again. */
  name: string
  /** The browser's number of it. */
  id: number
  session: string
}

/** What outlives the worker: names of tabs, leases and references. It goes with the browser, as the tabs do. */
interface Kept {
  last: number
  tabs: Tab[]
  turns: Record<string, number>
  kernel: Json
}

/** The tabs of agents: who has opened which, who may change which. */
export class Desk {
  #last = 0
  #tabs: Tab[] = []
  /** Turns of sessions so far: a lease is of one turn. */
  #turns: Record<string, number> = {}
  readonly #targets = new Map<number, Target>()
  readonly records = new Records()

  constructor(private readonly kernel: Kernel) {
    chrome.tabs.onRemoved.addListener((id) => this.#removed(id))
    chrome.debugger.onDetach.addListener(({ tabId }) => tabId !== undefined && this.#targets.get(tabId)?.detached())
    chrome.debugger.onEvent.addListener(({ tabId }, method, params) => tabId !== undefined && this.records.take(tabId, method, (params ?? {}) as Fields))
  }

  async load(): Promise<void> {
    const kept = (await chrome.storage.session.get(KEPT))[KEPT] as Kept | undefined
    if (!kept) return
    const open = new Set((await chrome.tabs.query({})).map((tab) => tab.id))
    this.#last = kept.last
    this.#turns = kept.turns
    this.#tabs = kept.tabs.filter((tab) => open.has(tab.id))
    this.kernel.call('browser.recall', { kept: kept.kernel })
  }

  /** Writes down what outlives the worker. */
  async keep(): Promise<void> {
    const kept: Kept = { last: this.#last, tabs: this.#tabs, turns: this.#turns, kernel: this.kernel.call('browser.keep', {}) }
    await chrome.storage.session.set({ [KEPT]: kept })
  }

  /** Opens a tab in the background. */
  async open(session: string, url: string): Promise<Tab> {
    const { id } = await chrome.tabs.create({ url: 'about:blank', active: false })
    if (id === undefined) throw ToolError.failed('the browser opened no tab')
    this.#last += 1
    const tab = { name: `t${this.#last}`, id, session }
    this.#tabs.push(tab)
    await this.keep()
    await this.target(tab).call('Page.navigate', { url })
    return tab
  }

  /** A tab of a session by its name, or the one that it opened last. */
  tab(session: string, name: Json | undefined): Tab {
    const own = this.#tabs.filter((tab) => tab.session === session)
    const tab = typeof name === 'string' ? own.find((it) => it.name === name) : own.at(-1)
    if (tab) return tab
    const names = own.map((it) => it.name).join(', ') || 'none'
    throw ToolError.failed(typeof name === 'string' ? `There is no tab ${name}; this conversation has ${names}` : 'No tab is open: browser_open opens one')
  }

  target(tab: Tab): Target {
    const known = this.#targets.get(tab.id) ?? new Target(tab.id)
    this.#targets.set(tab.id, known)
    return known
  }

  owner(session: string, agent: string): Owner {
    return { session, agent, turn: this.#turns[session] ?? 0 }
  }

  /** The lease on a tab; a place in the queue is waited for. */
  async lease(tab: Tab, owner: Owner): Promise<Grant> {
    const begun = Date.now()
    for (;;) {
      try {
        const grant = this.kernel.call('browser.acquire', { tab: tab.name, owner, now: Date.now() })
        await this.keep()
        return grant
      } catch (error) {
        const isHeld = error instanceof Error && 'code' in error && error.code === 'lease.held'
        if (!isHeld || Date.now() - begun > QUEUE) throw error
        await new Promise((resolve) => setTimeout(resolve, QUEUE_PAUSE))
      }
    }
  }

  /** Right before anything is sent that changes a tab, whatever was looked at before (C9, 6). */
  check(grant: Grant): void {
    this.kernel.call('browser.check', { grant, now: Date.now() })
  }

  async endTurn(session: string): Promise<void> {
    this.#turns[session] = (this.#turns[session] ?? 0) + 1
    this.kernel.call('browser.end_turn', { session })
    await this.keep()
  }

  async close(tab: Tab): Promise<void> {
    await chrome.tabs.remove(tab.id)
  }

  #removed(id: number): void {
    const tab = this.#tabs.find((it) => it.id === id)
    if (!tab) return
    this.#tabs = this.#tabs.filter((it) => it !== tab)
    this.#targets.delete(id)
    this.records.forget(id)
    this.kernel.call('browser.forget', { tab: tab.name })
    void this.keep()
  }
}
