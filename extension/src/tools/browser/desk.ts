import type { Kernel } from '../../kernel/kernel'
import type { Grant, Owner, Rule } from '../../kernel/operations'
import type { Fields, Json } from '../../kernel/types'
import { ToolError } from '../tool'
import { Front } from './front'
import { Network, notArrived } from './network'
import { OwnEvents } from './own'
import { type Dialog, Records } from './records'
import { PERSON, Target } from './target'

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
  /** The tab whose page opened it. */
  opener?: string
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
  /** Tabs that a person has taken, for people; what counts is in the kernel. */
  readonly #persons = new Set<string>()
  readonly #targets = new Map<number, Target>()
  readonly #front = new Front()
  readonly network: Network
  readonly records = new Records()
  /** Clicks and keys of ours that are on their way. */
  readonly own = new OwnEvents()
  /** A secret was typed: where it is not known what has the focus, it may be its field. */
  hasSecret = false

  constructor(
    private readonly kernel: Kernel,
    /** Puts the names of secrets in place of their values. */
    readonly hide: (text: string) => string,
    /** The rules that count. */
    readonly rules: () => Rule[],
    /** Whether a kind of the user's fields is neither read nor typed in: the settings grant others. */
    readonly protects: (field: string) => boolean,
  ) {
    this.network = new Network(kernel, rules)
    chrome.tabs.onRemoved.addListener((id) => this.#removed(id))
    chrome.webNavigation.onCreatedNavigationTarget.addListener(({ sourceTabId, tabId }) => this.#created(sourceTabId, tabId))
    chrome.debugger.onDetach.addListener(({ tabId }) => tabId !== undefined && this.#targets.get(tabId)?.detached())
    chrome.debugger.onEvent.addListener((source, method, params) => this.#event(source, method, (params ?? {}) as Fields))
  }

  async load(): Promise<void> {
    const [stored] = await Promise.all([chrome.storage.session.get(KEPT), this.#front.load(), this.network.load()])
    const kept = stored[KEPT] as Kept | undefined
    if (!kept) return
    const open = new Set((await chrome.tabs.query({})).map((tab) => tab.id))
    this.#last = kept.last
    this.#turns = kept.turns
    this.#tabs = kept.tabs.filter((tab) => open.has(tab.id))
    this.kernel.call('browser.recall', { kept: kept.kernel })
    // The rules outlive the worker: what wakes does not wait for them.
    void this.#cover()
  }

  /** What pages of the tabs ask for is judged. */
  #cover(): Promise<void> {
    return this.network.covers('desk', this.#tabs.map((tab) => tab.id))
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
    await Promise.all([this.keep(), this.#cover()])
    const { errorText } = await this.target(tab).call('Page.navigate', { url })
    if (errorText && errorText !== 'net::ERR_ABORTED') {
      await this.close(tab)
      throw ToolError.failed(notArrived(url, errorText))
    }
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

  /** Whether a rule denies that a page of this address is read. */
  denies(url: string): boolean {
    return this.kernel.call('rule.permission', { permission: 'browser', pattern: url, rules: this.rules() }) === 'deny'
  }

  /** The dialog that is open in a tab, without what it says where a rule denies its frame. */
  dialog(tab: Tab): Dialog | undefined {
    const open = this.records.dialog(tab.id)
    return open && this.denies(open.url) ? { ...open, message: '(not shown: it is of a frame that a rule denies)' } : open
  }

  /** A session uses a tab from now on, where it names none. */
  uses(tab: Tab): void {
    if (this.#tabs.includes(tab)) this.#tabs = [...this.#tabs.filter((it) => it !== tab), tab]
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

  get persons(): string[] {
    return [...this.#persons]
  }

  /** The person lets agents go on in a tab. */
  async handBack(tab: Tab): Promise<void> {
    this.kernel.call('browser.hand_back', { tab: tab.name })
    this.#persons.delete(tab.name)
    await this.keep()
  }

  /** Closes a tab. A browser whose last tab goes ends, so an empty one takes its place. */
  async close(tab: Tab): Promise<void> {
    const all = await chrome.tabs.query({})
    if (all.length <= 1) await chrome.tabs.create({ url: 'about:blank', active: false })
    await chrome.tabs.remove(tab.id)
  }

  /** Tabs that the page of a tab has opened, in their order. */
  openedBy(tab: Tab): Tab[] {
    const number = ({ name }: Tab) => Number(name.slice(1))
    return this.#tabs.filter((it) => it.opener === tab.name).toSorted((a, b) => number(a) - number(b))
  }

  #event({ tabId, sessionId }: chrome.debugger.DebuggerSession, method: string, params: Fields): void {
    if (tabId === undefined) return
    this.#targets.get(tabId)?.take(sessionId, method, params)
    this.records.take(tabId, method, params)
    this.network.take(method, params)
    if (method === 'Runtime.bindingCalled' && params['name'] === PERSON) this.#touched(tabId, String(params['payload']))
  }

  /** A click or a key in a tab: ours, or a person's, who then has the tab. */
  #touched(id: number, kind: string): void {
    if (this.own.take(id, kind)) return
    const tab = this.#tabs.find((it) => it.id === id)
    if (!tab) return
    this.kernel.call('browser.person', { tab: tab.name })
    this.#persons.add(tab.name)
    void this.keep()
  }

  /** A page of an agent's tab has opened another one, which belongs to the same session. */
  #created(source: number, id: number): void {
    const opener = this.#tabs.find((it) => it.id === source)
    if (!opener || this.#tabs.some((it) => it.id === id)) return
    this.#last += 1
    // The tab that the session uses stays the one that it has used.
    this.#tabs.unshift({ name: `t${this.#last}`, id, session: opener.session, opener: opener.name })
    void this.#front.opened(id)
    void this.#cover()
    void this.keep()
  }

  #removed(id: number): void {
    const tab = this.#tabs.find((it) => it.id === id)
    if (!tab) return
    this.#tabs = this.#tabs.filter((it) => it !== tab)
    this.#targets.delete(id)
    this.records.forget(id)
    this.kernel.call('browser.forget', { tab: tab.name })
    void this.#cover()
    void this.keep()
  }
}
