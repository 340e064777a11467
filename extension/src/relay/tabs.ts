import type { Kernel } from '../kernel/kernel'
import type { Rule } from '../kernel/operations'
import type { Fields } from '../kernel/types'
import { Front } from '../tools/browser/front'
import type { Network } from '../tools/browser/network'
import { isLocal } from '../tools/browser/site'
import { PROTOCOL, UNJUDGED } from '../tools/browser/target'
import { ANYWHERE, COMMANDS, EVENTS, trimmed } from './allowed'

/** What the native program calls the context of its tabs. */
export const CONTEXT = 'extension'
const KEPT = 'relay'

/** Why a command is not carried out: the user's rules, or the list. */
export class Refusal extends Error {}

/** A tab that is lent to the native program: one that it opened, or that a page of these opened. */
interface Lent {
  /** The browser's number of it. */
  id: number
  /** Its name in the protocol. */
  target: string
  /** Addresses of its frames, by their names. */
  frames: Map<string, string>
  opener?: string
}

/** What outlives the worker. It goes with the browser, as the tabs do. */
interface Kept {
  agent: string
  tabs: { id: number; target: string }[]
}

/** The tabs that are lent to a native program, over `chrome.debugger`. It knows of no others. */
export class LentTabs {
  #agent = ''
  #tabs: Lent[] = []
  /** Tabs by the sessions of their frames and workers in other processes. */
  readonly #sessions = new Map<string, number>()
  readonly #front = new Front()
  /** Pop-ups that are attached to now. */
  readonly #lending = new Set<Promise<unknown>>()

  constructor(
    private readonly kernel: Kernel,
    private readonly network: Network,
    private readonly rules: () => Rule[],
    /** Takes an event; nobody does while no program is connected. */
    private readonly publish: (method: string, params: Fields, sessionId?: string) => void,
  ) {
    chrome.debugger.onEvent.addListener((source, method, params) => this.#event(source, method, (params ?? {}) as Fields))
    chrome.debugger.onDetach.addListener(({ tabId }, reason) => void (reason === 'canceled_by_user' && this.#gone(tabId)))
    chrome.tabs.onRemoved.addListener((id) => this.#gone(id))
    chrome.tabs.onUpdated.addListener((id) => void this.#updated(id))
    chrome.webNavigation.onCreatedNavigationTarget.addListener(({ sourceTabId, tabId }) => void this.#popup(sourceTabId, tabId))
  }

  async load(): Promise<void> {
    const [stored] = await Promise.all([chrome.storage.session.get(KEPT), this.#front.load()])
    const kept = stored[KEPT] as Kept | undefined
    this.#agent = kept?.agent ?? ''
    this.#tabs = (kept?.tabs ?? []).map((tab) => ({ ...tab, frames: new Map() }))
    await this.#cover()
  }

  get count(): number {
    return this.#tabs.length
  }

  /** A native program is there. Tabs of another one are closed; those that it has had are its own again. */
  async begin(agent: string): Promise<void> {
    if (agent !== this.#agent) await this.closeAll()
    this.#agent = agent
    const open = new Set((await chrome.tabs.query({})).map((tab) => tab.id))
    for (const tab of this.#tabs.filter(({ id }) => !open.has(id))) this.#gone(tab.id)
    await Promise.all(this.#tabs.map((tab) => this.#attach(tab).catch(() => this.#gone(tab.id))))
    await this.#keep()
  }

  /** No program is there any more: pages go on without it. */
  end(): void {
    this.#sessions.clear()
    for (const { id } of this.#tabs) void chrome.debugger.detach({ tabId: id }).catch(() => {})
  }

  async closeAll(): Promise<void> {
    for (const { target } of this.#tabs) await this.close(target)
  }

  /** Opens an empty tab in the background. */
  async open(): Promise<string> {
    const { id } = await chrome.tabs.create({ url: 'about:blank', active: false })
    if (id === undefined) throw new Error('the browser opened no tab')
    return (await this.#lend(id)).target
  }

  /** Closes a tab of its own. A browser whose last tab goes ends, so an empty one takes its place. */
  async close(target: string): Promise<void> {
    const tab = this.#tabs.find((it) => it.target === target)
    if (!tab) throw new Refusal('it is no tab of the agent')
    if ((await chrome.tabs.query({})).length <= 1) await chrome.tabs.create({ url: 'about:blank', active: false })
    await chrome.tabs.remove(tab.id)
  }

  /** Its tabs, those that are about to be attached to included. */
  async infos(): Promise<Fields[]> {
    await Promise.allSettled(this.#lending)
    return this.#tabs.map(({ target, frames, opener }) => infoOf(target, frames.get(target) ?? '', '', opener))
  }

  /** Sends a command to a tab, or to one of its frames. Commands of a session are sent in their order. */
  async command(session: string, method: string, params: Fields): Promise<Fields> {
    const tab = this.#tabOf(session)
    if (!COMMANDS.has(method)) throw new Refusal(`${method} is not among what the extension passes on`)
    const denied = ANYWHERE.has(method) ? undefined : this.#denied(tab)
    if (denied !== undefined) throw new Refusal(`a rule of the extension denies ${denied}, which the tab shows`)
    if (method === 'Page.navigate') await this.#judge(String(params['url']))
    const to = session === sessionOf(tab.id) ? { tabId: tab.id } : { tabId: tab.id, sessionId: session }
    return ((await chrome.debugger.sendCommand(to, method, params)) ?? {}) as Fields
  }

  /** An address that is led to: the user's rules of the extension count, and for this machine and its network a rule by name. */
  async #judge(url: string): Promise<void> {
    const { protocol, hostname, port, href } = new URL(URL.canParse(url) ? url : 'about:invalid')
    if (!['http:', 'https:'].includes(protocol)) throw new Refusal(`${url} is no address of a site`)
    const scheme = protocol.slice(0, -1)
    const number = port ? Number(port) : scheme === 'https' ? 443 : 80
    const action = this.#rule(href)
    if (action === 'deny') throw new Refusal(`a rule of the extension denies ${url}`)
    const local = action === 'allow' ? [`${scheme}://${hostname}:${number}`] : []
    try {
      this.kernel.call('browser.site', { scheme, host: hostname, port: number, is_local: isLocal(hostname), local })
    } catch (error) {
      throw new Refusal(error instanceof Error ? error.message : String(error))
    }
    await this.network.opens(href)
  }

  #rule(url: string) {
    return this.kernel.call('rule.permission', { permission: 'browser', pattern: url, rules: this.rules() })
  }

  /** The address of a frame that the tab shows and a rule denies. */
  #denied({ frames }: Lent): string | undefined {
    if (!this.rules().some((rule) => rule.action === 'deny')) return undefined
    return [...frames.values()].find((url) => url.startsWith('http') && this.#rule(url) === 'deny')
  }

  #tabOf(session: string): Lent {
    const id = this.#sessions.get(session)
    const tab = this.#tabs.find((it) => it.id === id || sessionOf(it.id) === session)
    if (!tab) throw new Refusal('it is no tab of the agent')
    return tab
  }

  /** From now on a tab is lent. */
  async #lend(id: number, opener?: string): Promise<Lent> {
    const tab: Lent = { id, target: '', frames: new Map(), ...(opener === undefined ? {} : { opener }) }
    this.#tabs.push(tab)
    await this.#cover()
    await this.#attach(tab)
    await this.#keep()
    return tab
  }

  async #attach(tab: Lent): Promise<void> {
    const to = { tabId: tab.id }
    // The worker before this one may have attached to it, and the browser has kept that, with requests that wait.
    await chrome.debugger.detach(to).catch(() => {})
    await chrome.debugger.attach(to, PROTOCOL)
    await chrome.debugger.sendCommand(to, 'Page.enable')
    await chrome.debugger.sendCommand(to, 'Page.addScriptToEvaluateOnNewDocument', { source: UNJUDGED })
    const { frameTree } = (await chrome.debugger.sendCommand(to, 'Page.getFrameTree')) as { frameTree: Tree }
    tab.frames = new Map(framesOf(frameTree))
    tab.target ||= frameTree.frame.id
    const { url = '', title = '' } = await chrome.tabs.get(tab.id)
    this.publish('Target.attachedToTarget', { sessionId: sessionOf(tab.id), targetInfo: infoOf(tab.target, url, title, tab.opener), waitingForDebugger: false })
    await this.#updated(tab.id)
  }

  #event({ tabId, sessionId }: chrome.debugger.DebuggerSession, method: string, params: Fields): void {
    const tab = this.#tabs.find((it) => it.id === tabId)
    if (!tab) return
    this.network.take(method, params)
    follow(tab.frames, method, params)
    if (method === 'Inspector.targetCrashed' && sessionId === undefined) this.publish('Target.targetCrashed', { targetId: tab.target })
    if (method === 'Target.attachedToTarget') {
      const child = String(params['sessionId'])
      this.#sessions.set(child, tab.id)
      // Its first document waits until the native program lets it go on.
      if ((params['targetInfo'] as Fields)['type'] === 'iframe') {
        for (const [name, with_] of [['Page.enable', {}], ['Page.addScriptToEvaluateOnNewDocument', { source: UNJUDGED }]] as const) {
          void chrome.debugger.sendCommand({ tabId: tab.id, sessionId: child }, name, with_).catch(() => {})
        }
      }
    }
    if (method === 'Target.detachedFromTarget') this.#sessions.delete(String(params['sessionId']))
    if (EVENTS.has(method)) this.publish(method, trimmed(method, params) as Fields, sessionId ?? sessionOf(tab.id))
  }

  async #updated(id: number): Promise<void> {
    const tab = this.#tabs.find((it) => it.id === id)
    if (!tab?.target) return
    const info = (await chrome.debugger.getTargets()).find(({ tabId }) => tabId === id)
    if (info) this.publish('Target.targetInfoChanged', { targetInfo: infoOf(tab.target, info.url, info.title, tab.opener) })
  }

  async #popup(source: number, id: number): Promise<void> {
    const opener = this.#tabs.find((it) => it.id === source)
    if (!opener || this.#tabs.some((it) => it.id === id)) return
    void this.#front.opened(id).catch(() => {})
    // It may be closed by now.
    const lending = this.#lend(id, opener.target).catch(() => this.#gone(id))
    this.#lending.add(lending)
    await lending
    this.#lending.delete(lending)
  }

  /** A tab is closed, or the person has ended the debugging of it: it is the person's then. */
  #gone(id: number | undefined): void {
    const tab = this.#tabs.find((it) => it.id === id)
    if (!tab) return
    this.#tabs = this.#tabs.filter((it) => it !== tab)
    for (const [session, of] of this.#sessions) if (of === id) this.#sessions.delete(session)
    this.publish('Target.targetDestroyed', { targetId: tab.target })
    void this.#cover()
    void this.#keep()
  }

  /** What pages of the tabs ask for is judged. */
  #cover(): Promise<void> {
    return this.network.covers('relay', this.#tabs.map(({ id }) => id))
  }

  async #keep(): Promise<void> {
    const kept: Kept = { agent: this.#agent, tabs: this.#tabs.map(({ id, target }) => ({ id, target })) }
    await chrome.storage.session.set({ [KEPT]: kept })
  }
}

interface Tree {
  frame: { id: string; url: string }
  childFrames?: Tree[]
}

function framesOf({ frame, childFrames = [] }: Tree): [string, string][] {
  return [[frame.id, frame.url], ...childFrames.flatMap(framesOf)]
}

/** Follows which frames a tab has, and what they show. */
function follow(frames: Map<string, string>, method: string, params: Fields): void {
  if (method === 'Page.frameNavigated') {
    const frame = params['frame'] as Fields
    if (frame['parentId'] === undefined && frames.has(String(frame['id']))) frames.clear()
    frames.set(String(frame['id']), String(frame['url']))
  }
  if (method === 'Page.frameDetached' && params['reason'] !== 'swap') frames.delete(String(params['frameId']))
}

function sessionOf(id: number): string {
  return `tab:${id}`
}

function infoOf(targetId: string, url: string, title: string, openerId?: string): Fields {
  return { targetId, type: 'page', url, title, attached: true, browserContextId: CONTEXT, ...(openerId === undefined ? {} : { openerId }) }
}
