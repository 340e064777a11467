import type { Fields, ToolOutput } from '../kernel/types'
import { type Context, ToolError } from '../tools/tool'
import { Connection } from './connection'

/** The name of the provider in routes. */
export const BRIDGE = 'bridge'
/** Milliseconds that the bridge has for a call; the runtime waits longer. */
const DEADLINE = 140_000
/** A page sends the token as the name of a subprotocol. */
const SENDABLE = /^[\w.~!#$%&'*+^`|-]+$/

/** Where a native program listens, and what lets the extension in. */
export interface Place {
  url: string
  token: string
}

/** A connection, and what it was made with. */
interface Link {
  place: string
  open: Promise<Connection>
}

/** `outrigger bridge` as a provider (C11): a folder of this machine and its commands, where the user has connected one. It is connected to
 * when it is first needed, and again when the connection was lost. */
export class Bridge {
  #link: Link | null = null

  constructor(private readonly place: () => Place) {}

  /** Has a call executed, and lets plugins know, as natively: `bridge.before_invoke`, `bridge.after_invoke`, `bridge.on_error`. */
  async invoke(tool: string, params: Fields, context: Context): Promise<ToolOutput> {
    const { host, call, turn, stopped } = context
    const path = params['filePath'] ?? params['workdir'] ?? null
    const about: Fields = { callID: call.call_id, side: 'asks', connector: BRIDGE, sessionID: call.session_id, tool, path }
    const notify = (point: string, input: Fields, output: Fields) => host.hooks.run(point, { input: { ...about, ...input }, output }, { session: call.session_id, turn })
    await notify('bridge.before_invoke', {}, {})
    try {
      const connection = await this.#connected()
      const output = await connection.invoke({ tool, params, deadlineMs: DEADLINE, sessionId: call.session_id }, stopped)
      await notify('bridge.after_invoke', {}, { title: output.title, bytes: new TextEncoder().encode(output.output).length })
      return output
    } catch (error) {
      const { code, message } = error instanceof ToolError ? error : ToolError.failed(String(error))
      await notify('bridge.on_error', { code, message }, { context: [] })
      throw error
    }
  }

  /** The folder of the bridge, or why it cannot be reached. */
  async check(): Promise<string> {
    return (await this.#connected()).root
  }

  async #connected(): Promise<Connection> {
    const { url, token } = this.place()
    const place = JSON.stringify([url, token])
    if (this.#link?.place === place) return this.#link.open
    // A connection to where the user no longer wants to go.
    void this.#link?.open.then((connection) => connection.close(), () => {})
    const gone = () => {
      if (this.#link === link) this.#link = null
    }
    const link: Link = { place, open: Connection.open(addressOf({ url, token }, 'bridge'), token, gone) }
    this.#link = link
    return link.open
  }
}

/** The address, where the token may go: this machine, or an encrypted connection. */
export function addressOf({ url, token }: Place, what: string): string {
  const wrong = (why: string) => new ToolError('tool.unavailable', `The ${what} cannot be used: ${why}`)
  if (!URL.canParse(url)) throw wrong(`${JSON.stringify(url)} is not an address as ws://127.0.0.1:7070`)
  const { protocol, hostname } = new URL(url)
  const isHere = ['127.0.0.1', 'localhost', '[::1]'].includes(hostname)
  if (protocol !== 'wss:' && !(protocol === 'ws:' && isHere)) throw wrong('the token would go to another machine in the clear; lead a port of this machine there (`ssh -L`)')
  if (token === '') throw wrong('its token is not there; it is kept until the browser closes, and `outrigger bridge` says where it is')
  if (!SENDABLE.test(token)) throw wrong('its token has characters that a page cannot send: take letters, digits, - and _')
  return url
}
