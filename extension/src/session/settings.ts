import { BRIDGE, type Place } from '../bridge/bridge'
import type { Kernel } from '../kernel/kernel'
import type { Route, Rule } from '../kernel/operations'
import type { Provider } from '../model/stream'
import { Secrets } from './secrets'

/** What the user sets. Keys of providers are not among it: they stay in memory (`chrome.storage.session`), and go with the browser. */
export interface Settings {
  /** An address that speaks OpenAI's chat completions. */
  url: string
  model: string
  agent: string
  instructions: string
  /** Requests to the model in one turn (C16). */
  maxSteps: number
  rules: Rule[]
  routes: Route[]
  /** `NAME@HOST` of what may be typed by name; the values are with the key. */
  secrets: string[]
  /** Kinds of the user's fields (`password`, `card`, `code`) that are read and filled in like other fields. */
  fields: string[]
  /** The address of `outrigger bridge`, which files and commands go to then; empty: there is none. */
  bridge: string
  /** The address of a native program that uses this browser; empty: none does. */
  relay: string
}

const DEFAULTS: Settings = {
  url: 'https://openrouter.ai/api/v1',
  model: '',
  agent: 'browser',
  instructions: 'You work for the user in this browser. Do what is asked, look at what came of it, and say what you did.',
  maxSteps: 100,
  rules: [],
  routes: [],
  secrets: [],
  fields: [],
  bridge: '',
  relay: '',
}

/** What counts where the user says nothing else: files of the workspace are read and written, all else asks. */
const RULES: Rule[] = [
  { permission: '*', pattern: '*', action: 'ask' },
  { permission: 'read', pattern: '*', action: 'allow' },
  { permission: 'edit', pattern: '*', action: 'allow' },
  { permission: 'read', pattern: `${BRIDGE}:*`, action: 'ask' },
  { permission: 'edit', pattern: `${BRIDGE}:*`, action: 'ask' },
]

/** Who does what where the user says nothing else (C11). Without a bridge nobody does `exec`. */
const ROUTES: Route[] = [
  { contract: 'read', provider: 'opfs' },
  { contract: 'write', provider: 'opfs' },
  { contract: 'edit', provider: 'opfs' },
  { contract: 'browser.read', provider: 'cdp-ext' },
  { contract: 'browser.write', provider: 'cdp-ext' },
]

/** What a bridge that the user has connected does in its place. */
const BRIDGE_ROUTES: Route[] = (['read', 'write', 'edit', 'exec'] as const).map((contract) => ({ contract, provider: BRIDGE }))

const SETTINGS = 'settings'
const KEY = 'key'
const SECRETS = 'secrets'
const TOKEN = 'bridge'
const RELAY_TOKEN = 'relayToken'

/** What is kept until the browser closes. Undefined leaves what is there; of the values of secrets those that are named are replaced. */
export interface Keys {
  key?: string
  secrets?: Record<string, string>
  /** Of the bridge. */
  token?: string
  /** Of the native program that uses this browser. */
  relayToken?: string
}

export class SettingsStore {
  current = DEFAULTS
  #key = ''
  #values: Record<string, string> = {}
  #token = ''
  #relayToken = ''
  readonly secrets: Secrets

  constructor(kernel: Kernel) {
    this.secrets = new Secrets(kernel, () => ({ list: this.current.secrets, values: this.#values }))
  }

  async load(): Promise<void> {
    const [local, session] = await Promise.all([chrome.storage.local.get(SETTINGS), chrome.storage.session.get([KEY, SECRETS, TOKEN, RELAY_TOKEN])])
    this.current = { ...DEFAULTS, ...(local[SETTINGS] as Partial<Settings> | undefined) }
    this.#key = (session[KEY] as string | undefined) ?? ''
    this.#values = (session[SECRETS] as Record<string, string> | undefined) ?? {}
    this.#token = (session[TOKEN] as string | undefined) ?? ''
    this.#relayToken = (session[RELAY_TOKEN] as string | undefined) ?? ''
  }

  async save(settings: Partial<Settings>, { key, secrets, token, relayToken }: Keys = {}): Promise<void> {
    this.current = { ...this.current, ...settings }
    await chrome.storage.local.set({ [SETTINGS]: this.current })
    this.#key = key ?? this.#key
    this.#values = { ...this.#values, ...secrets }
    this.#token = token ?? this.#token
    this.#relayToken = relayToken ?? this.#relayToken
    await chrome.storage.session.set({ [KEY]: this.#key, [SECRETS]: this.#values, [TOKEN]: this.#token, [RELAY_TOKEN]: this.#relayToken })
  }

  get hasKey(): boolean {
    return this.#key !== ''
  }

  bridge(): Place {
    return { url: this.current.bridge, token: this.#token }
  }

  relay(): Place {
    return { url: this.current.relay, token: this.#relayToken }
  }

  provider(): Provider {
    return { url: this.current.url, model: this.current.model, key: this.#key }
  }

  system(): string {
    return this.current.instructions
  }

  rules(): Rule[] {
    return [...RULES, ...this.current.rules]
  }

  /** The user's routes come first. */
  routes(): Route[] {
    return [...this.current.routes, ...(this.current.bridge ? BRIDGE_ROUTES : []), ...ROUTES]
  }
}
