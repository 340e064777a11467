import { addressOf, type Place } from '../bridge/bridge'
import type { Kernel } from '../kernel/kernel'
import type { Rule } from '../kernel/operations'
import type { Fields } from '../kernel/types'
import type { Network } from '../tools/browser/network'
import { CONTEXT, LentTabs, Refusal } from './tabs'

/** Milliseconds between attempts to connect, while the native program does not listen. */
const RETRY = 1_000
const SUBPROTOCOL = 'outrigger.browser.v1'
/** The first command, in which the program says who it is. */
const HELLO = 'Outrigger.hello'
/** Codes of answers: what is refused goes into the program's audit. */
const REFUSED = -32_001
const FAILED = -32_000

interface Command {
  id: number
  method: string
  params?: Fields
  sessionId?: string
}

/** The native program in this browser (C11): tabs that it opens are driven by it, over `chrome.debugger`, where the user has switched that
 * on in both. The extension connects to it, as often as it takes: it listens while its agent uses the browser. */
export class Relay {
  readonly #tabs: LentTabs
  #socket: WebSocket | null = null
  #isTrusted = false
  #retry: ReturnType<typeof setTimeout> | undefined

  constructor(
    kernel: Kernel,
    network: Network,
    rules: () => Rule[],
    private readonly place: () => Place,
  ) {
    this.#tabs = new LentTabs(kernel, network, rules, (method, params, sessionId) => this.#send({ method, params, ...(sessionId === undefined ? {} : { sessionId }) }))
  }

  async load(): Promise<void> {
    await this.#tabs.load()
  }

  get isOn(): boolean {
    return this.place().url !== ''
  }

  /** For the panel. */
  status(): { connected: boolean; tabs: number } {
    if (this.isOn) addressOf(this.place(), 'native program')
    return { connected: this.#isTrusted, tabs: this.#tabs.count }
  }

  /** Connects anew, by the settings of now. */
  async apply(): Promise<void> {
    this.#socket?.close()
    this.#socket = null
    if (!this.isOn) await this.#tabs.closeAll()
    await this.connect()
  }

  /** Connects, unless it is connected or switched off. */
  async connect(): Promise<void> {
    clearTimeout(this.#retry)
    if (this.#socket || !this.isOn) return
    const place = this.place()
    let url: string
    try {
      url = addressOf(place, 'native program')
    } catch {
      // The panel says what is wrong with it.
      return
    }
    const nonce = hex(crypto.getRandomValues(new Uint8Array(16)))
    // Neither the token nor what is derived from it for the other end goes out: who listens in place of the program learns nothing that is
    // of use here.
    const [bearer, proof] = await Promise.all([digest(`client:${place.token}`), digest(`server:${nonce}:${place.token}`)])
    if (this.#socket) return
    const socket = new WebSocket(url, [SUBPROTOCOL, `bearer.${bearer}`, `nonce.${nonce}`])
    this.#socket = socket
    socket.addEventListener('message', ({ data }) => void this.#take(socket, JSON.parse(String(data)) as Command, proof))
    socket.addEventListener('close', () => this.#closed(socket))
  }

  #closed(socket: WebSocket): void {
    if (this.#socket === socket) this.#socket = null
    if (this.#isTrusted && !this.#socket) {
      this.#isTrusted = false
      this.#tabs.end()
    }
    clearTimeout(this.#retry)
    if (this.isOn) this.#retry = setTimeout(() => void this.connect(), RETRY)
  }

  #send(message: Fields): void {
    if (this.#isTrusted && this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(message))
  }

  async #take(socket: WebSocket, command: Command, proof: string): Promise<void> {
    if (socket !== this.#socket) return
    if (!this.#isTrusted) {
      const { agent, proof: given } = command.params ?? {}
      if (command.method !== HELLO || given !== proof) return socket.close()
      this.#isTrusted = true
      await this.#tabs.begin(String(agent))
      return this.#send({ id: command.id, result: {} })
    }
    try {
      this.#send({ id: command.id, result: await this.#carryOut(command) })
    } catch (error) {
      const code = error instanceof Refusal ? REFUSED : FAILED
      this.#send({ id: command.id, error: { code, message: messageOf(error), data: { method: command.method } } })
    }
  }

  async #carryOut({ method, params = {}, sessionId }: Command): Promise<Fields> {
    if (sessionId !== undefined) return this.#tabs.command(sessionId, method, params)
    switch (method) {
      case 'Target.createBrowserContext':
        return { browserContextId: CONTEXT }
      case 'Target.setDiscoverTargets':
      case 'Target.setAutoAttach':
        // Tabs are attached to as they are lent.
        return {}
      case 'Target.createTarget':
        return { targetId: await this.#tabs.open() }
      case 'Target.closeTarget':
        await this.#tabs.close(String(params['targetId']))
        return { success: true }
      case 'Target.getTargets':
        return { targetInfos: await this.#tabs.infos() }
      case 'Target.disposeBrowserContext':
        await this.#tabs.closeAll()
        return {}
      default:
        throw new Refusal(`${method} is not among what the extension does`)
    }
  }
}

async function digest(text: string): Promise<string> {
  return hex(new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))))
}

function hex(bytes: Uint8Array): string {
  return [...bytes].map((byte) => byte.toString(16).padStart(2, '0')).join('')
}

/** What `chrome.debugger` says of a command that failed is JSON, with the browser's reason in it. */
function messageOf(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error)
  try {
    return String((JSON.parse(text) as { message: string }).message)
  } catch {
    return text
  }
}
