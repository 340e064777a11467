import type { Fields, Json } from '../../kernel/types'
import { ToolError } from '../tool'

/** The version of the DevTools protocol that is spoken. */
const PROTOCOL = '1.3'
/** What is switched on in a tab that is attached to. */
const DOMAINS = ['Page', 'DOM', 'Runtime', 'Network', 'Log', 'Accessibility']

/** One tab over `chrome.debugger`. The browser detaches when the worker dies; it is attached to again when it is needed. */
export class Target {
  #attached: Promise<void> | undefined

  constructor(readonly id: number) {}

  async call(method: string, params: Fields = {}): Promise<Fields> {
    await (this.#attached ??= this.#attach())
    try {
      return ((await chrome.debugger.sendCommand({ tabId: this.id }, method, params)) ?? {}) as Fields
    } catch (error) {
      throw ToolError.failed(`${method}: ${messageOf(error)}`)
    }
  }

  /** Runs a function on an element; the answer is JSON. */
  async on(object: string, code: string, ...values: Json[]): Promise<Fields> {
    const answer = await this.call('Runtime.callFunctionOn', {
      objectId: object, functionDeclaration: code, arguments: values.map((value) => ({ value })), returnByValue: true, awaitPromise: true,
    })
    if (answer['exceptionDetails']) throw ToolError.failed(`code on an element failed: ${JSON.stringify(answer['exceptionDetails'])}`)
    const value = (answer['result'] as Fields)['value'] ?? {}
    return (typeof value === 'object' && !Array.isArray(value) ? value : { value }) as Fields
  }

  detached(): void {
    this.#attached = undefined
  }

  async #attach(): Promise<void> {
    try {
      await chrome.debugger.attach({ tabId: this.id }, PROTOCOL)
    } catch (error) {
      // The worker before this one has attached to it, and the browser has kept that.
      if (!messageOf(error).includes('already attached')) {
        this.#attached = undefined
        throw ToolError.failed(`the tab cannot be used: ${messageOf(error)}`)
      }
    }
    await Promise.all(DOMAINS.map((domain) => chrome.debugger.sendCommand({ tabId: this.id }, `${domain}.enable`)))
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
