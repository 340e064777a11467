import type { Kernel } from '../../kernel/kernel'
import type { Rule } from '../../kernel/operations'
import type { Fields } from '../../kernel/types'
import { isLocal, LOCAL, originOf } from './site'

type NetworkRule = chrome.declarativeNetRequest.Rule
type Condition = chrome.declarativeNetRequest.RuleCondition

/** Requests of all kinds; without a list the browser leaves navigations alone. */
const KINDS = [
  'main_frame', 'sub_frame', 'stylesheet', 'script', 'image', 'font', 'object', 'xmlhttprequest', 'ping', 'csp_report', 'media', 'websocket', 'webtransport',
  'webbundle', 'other',
] as unknown as chrome.declarativeNetRequest.ResourceType[]
const NAVIGATIONS = ['main_frame'] as unknown as chrome.declarativeNetRequest.ResourceType[]
/** Addresses of this machine and its network, as the browser writes them. One pattern for all would be larger than a rule may be. */
const LOCAL_ADDRESSES = LOCAL.map((host) => `^(http|ws)s?://([^/]*@)?${host}(:\\d+)?/`)
/** The number of requests that are of no tab: those of service workers and shared workers. */
const NO_TAB = -1
const KEPT = 'network'

/** What outlives the worker, beside the rules themselves. */
interface Kept {
  opened: string[]
  hosts: string[]
}

/** What pages of agents may ask for. The browser itself judges each request, whatever makes it (a redirect, a part of a page, a frame, a
 * worker, a WebSocket), by rules of the session: addresses of this machine and its network are blocked, but for origins that a rule or a
 * person's word has allowed by name. The rules stay when the worker is ended. */
export class Network {
  /** Origins of this machine that were opened, which somebody has allowed. */
  readonly #opened = new Set<string>()
  /** Hosts that pages of agents were of: workers of theirs are of no tab. */
  readonly #hosts = new Set<string>()
  /** Tabs of the agent here, and of a native program. */
  #covered = { desk: [] as number[], relay: [] as number[] }
  /** The rules that count, as text. */
  #set = ''
  #last: Promise<void> = Promise.resolve()

  constructor(
    private readonly kernel: Kernel,
    private readonly rules: () => Rule[],
  ) {
    // A tab of the person's, unless `covers` says otherwise.
    chrome.tabs.onCreated.addListener(() => void this.apply())
  }

  async load(): Promise<void> {
    const { [KEPT]: stored } = await chrome.storage.session.get(KEPT)
    const kept = stored as Kept | undefined
    for (const origin of kept?.opened ?? []) this.#opened.add(origin)
    for (const host of kept?.hosts ?? []) this.#hosts.add(host)
  }

  /** An address that a rule or a person has allowed is about to be shown. */
  async opens(url: string): Promise<void> {
    const { hostname } = new URL(url)
    this.#hosts.add(hostname)
    if (isLocal(hostname)) this.#opened.add(originOf(url))
    await this.apply()
  }

  /** An event of the protocol: documents that a tab is about to show. */
  take(method: string, params: Fields): void {
    if (method === 'Network.requestWillBeSent' && params['type'] === 'Document') this.#shows(String((params['request'] as Fields)['url']))
    if (method === 'Page.frameNavigated') this.#shows(String((params['frame'] as Fields)['url']))
  }

  #shows(url: string): void {
    const { hostname } = URL.canParse(url) ? new URL(url) : { hostname: '' }
    if (hostname === '' || this.#hosts.has(hostname)) return
    this.#hosts.add(hostname)
    void this.apply()
  }

  /** The tabs of agents are these. */
  async covers(of: 'desk' | 'relay', tabs: number[]): Promise<void> {
    this.#covered[of] = tabs
    await this.apply()
  }

  get #tabs(): number[] {
    return [...this.#covered.desk, ...this.#covered.relay]
  }

  /** Sets the rules, unless they are set; each after the one before. */
  apply(): Promise<void> {
    return (this.#last = this.#last.catch(() => {}).then(() => this.#apply()))
  }

  async #apply(): Promise<void> {
    const tabs = (await chrome.tabs.query({})).flatMap(({ id }) => id ?? [])
    const persons = tabs.filter((id) => !this.#tabs.includes(id))
    const wanted = this.#tabs.length > 0 ? this.#wanted(persons) : []
    const text = JSON.stringify(wanted)
    if (text === this.#set) return
    const before = await chrome.declarativeNetRequest.getSessionRules()
    await chrome.declarativeNetRequest.updateSessionRules({ removeRuleIds: before.map((rule) => rule.id), addRules: wanted })
    const kept: Kept = { opened: [...this.#opened], hosts: [...this.#hosts] }
    await chrome.storage.session.set({ [KEPT]: kept })
    this.#set = text
  }

  #wanted(persons: number[]): NetworkRule[] {
    const initiatorDomains = [...this.#hosts]
    const block = (condition: Condition) => LOCAL_ADDRESSES.map((regexFilter) => made(1, 'block', { regexFilter, ...condition }))
    const ofTabs = block({ tabIds: this.#tabs })
    const hasHosts = initiatorDomains.length > 0
    const ofWorkers = hasHosts ? block({ tabIds: [NO_TAB], initiatorDomains }) : []
    // A pop-up asks before anybody knows whose tab it is.
    const ofPopups = hasHosts ? block({ excludedTabIds: [...persons, NO_TAB], initiatorDomains, resourceTypes: NAVIGATIONS }) : []
    const allowed = new Set([...this.#opened, ...this.#named()])
    // A WebSocket of an origin is that origin's.
    const filters = [...allowed].flatMap((origin) => [`|${origin}/`, `|${origin.replace('http', 'ws')}/`])
    const allow = filters.map((urlFilter) => made(2, 'allow', { urlFilter }))
    return [...ofTabs, ...ofWorkers, ...ofPopups, ...allow].map((rule, place) => ({ id: place + 1, ...rule }))
  }

  /** Origins that the user's rules allow by name. */
  #named(): string[] {
    const rules = this.rules()
    const origins = rules.filter(({ permission, action }) => permission === 'browser' && action === 'allow').map(({ pattern }) => originOf(pattern))
    const isAllowed = (origin: string) => this.kernel.call('rule.permission', { permission: 'browser', pattern: `${origin}/`, rules }) === 'allow'
    return origins.filter((origin) => origin !== '' && isAllowed(origin))
  }
}

/** Why a page did not come, for the model. */
export function notArrived(url: string, error: unknown): string {
  const why = error === 'net::ERR_BLOCKED_BY_CLIENT' ? 'it leads to this machine or its network, and no rule allows that by name' : String(error)
  return `${url} did not come: ${why}`
}

function made(priority: number, type: 'block' | 'allow', condition: Condition): Omit<NetworkRule, 'id'> {
  return { priority, action: { type: type as chrome.declarativeNetRequest.RuleActionType }, condition: { resourceTypes: KINDS, ...condition } }
}
