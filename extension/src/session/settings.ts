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
}

/** What counts where the user says nothing else: reading is allowed, changing asks. */
const RULES: Rule[] = [
  { permission: '*', pattern: '*', action: 'ask' },
  { permission: 'read', pattern: '*', action: 'allow' },
  { permission: 'edit', pattern: '*', action: 'allow' },
]

/** Who does what where the user says nothing else (C11). There is no local machine here, so nobody does `exec`. */
const ROUTES: Route[] = [
  { contract: 'read', provider: 'opfs' },
  { contract: 'write', provider: 'opfs' },
  { contract: 'edit', provider: 'opfs' },
  { contract: 'browser.read', provider: 'cdp-ext' },
  { contract: 'browser.write', provider: 'cdp-ext' },
]

const SETTINGS = 'settings'
const KEY = 'key'
const SECRETS = 'secrets'

export class SettingsStore {
  current = DEFAULTS
  #key = ''
  #values: Record<string, string> = {}
  readonly secrets: Secrets

  constructor(kernel: Kernel) {
    this.secrets = new Secrets(kernel, () => ({ list: this.current.secrets, values: this.#values }))
  }

  async load(): Promise<void> {
    const [local, session] = await Promise.all([chrome.storage.local.get(SETTINGS), chrome.storage.session.get([KEY, SECRETS])])
    this.current = { ...DEFAULTS, ...(local[SETTINGS] as Partial<Settings> | undefined) }
    this.#key = (session[KEY] as string | undefined) ?? ''
    this.#values = (session[SECRETS] as Record<string, string> | undefined) ?? {}
  }

  /** `key`, `values`: undefined leaves what is there; of the values of secrets those that are named are replaced. */
  async save(settings: Partial<Settings>, key?: string, values?: Record<string, string>): Promise<void> {
    this.current = { ...this.current, ...settings }
    await chrome.storage.local.set({ [SETTINGS]: this.current })
    if (values !== undefined) {
      this.#values = { ...this.#values, ...values }
      await chrome.storage.session.set({ [SECRETS]: this.#values })
    }
    if (key === undefined) return
    this.#key = key
    await chrome.storage.session.set({ [KEY]: key })
  }

  get hasKey(): boolean {
    return this.#key !== ''
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
    return [...this.current.routes, ...ROUTES]
  }
}
