import type { Fields, ToolOutput } from '../kernel/types'
import { ToolError } from '../tools/tool'

/** Milliseconds that a connection may take to come about. */
const CONNECT_TIMEOUT = 10_000
/** The largest frame of a bridge that does not say how much it takes, in bytes. */
const MAX_FRAME = 8 * 1024 * 1024
const SUBPROTOCOL = 'outrigger.bridge.v1'

/** A frame of the bridge: `docs/bridge.md`. */
type Frame =
  | { type: 'hello'; root: string; frameBytes?: number }
  | { type: 'result'; id: string; output: ToolOutput }
  | { type: 'error'; id?: string; code: string; message: string; output?: string }

interface Waiting {
  resolve(output: ToolOutput): void
  reject(error: ToolError): void
}

/** An open connection to `outrigger bridge`. */
export class Connection {
  readonly #waiting = new Map<string, Waiting>()
  #last = 0

  private constructor(
    private readonly socket: WebSocket,
    /** The folder that paths are in. */
    readonly root: string,
    private readonly maxFrame: number,
  ) {
    socket.addEventListener('message', ({ data }) => this.#take(read(data)))
    socket.addEventListener('close', () => this.#lost())
  }

  /** Connects; the token goes in a subprotocol, since a page sets no headers. The first frame is the bridge's `hello`. `gone` is called when
   * the connection has failed or was closed. */
  static open(url: string, token: string, gone: () => void): Promise<Connection> {
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url, [SUBPROTOCOL, `bearer.${token}`])
      const failed = (why: string) => {
        clearTimeout(late)
        socket.close()
        reject(new ToolError('tool.unavailable', `Cannot reach the bridge at ${url}: ${why}`))
      }
      const late = setTimeout(() => failed('it does not answer'), CONNECT_TIMEOUT)
      socket.addEventListener('close', gone)
      socket.addEventListener('error', () => failed(`it is not there, its token is another one, or it was not started with --origin ${location.origin}`))
      const first = ({ data }: MessageEvent) => {
        const frame = read(data)
        if (frame?.type !== 'hello') return failed('it is no bridge')
        clearTimeout(late)
        resolve(new Connection(socket, frame.root, frame.frameBytes ?? MAX_FRAME))
      }
      socket.addEventListener('message', first, { once: true })
    })
  }

  get isOpen(): boolean {
    return this.socket.readyState === WebSocket.OPEN
  }

  close(): void {
    this.socket.close()
  }

  /** Has a call executed. One that is stopped is withdrawn: the bridge ends what it started. */
  async invoke(call: { tool: string; params: Fields; deadlineMs: number; sessionId: string }, stopped: AbortSignal): Promise<ToolOutput> {
    const id = String(++this.#last)
    const frame = JSON.stringify({ type: 'invoke', id, ...call })
    const { length } = new TextEncoder().encode(frame)
    // Sent, it would cost every other call its connection.
    if (length > this.maxFrame) throw refused('bridge.too_large', `the call has ${length} bytes, and at most ${this.maxFrame} are taken`)
    const answer = new Promise<ToolOutput>((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
    const cancel = () => this.isOpen && this.socket.send(JSON.stringify({ type: 'cancel', id }))
    stopped.addEventListener('abort', cancel)
    this.socket.send(frame)
    return answer.finally(() => stopped.removeEventListener('abort', cancel))
  }

  #take(frame: Frame | null): void {
    if (!frame || frame.type === 'hello' || frame.id === undefined) return
    const waiting = this.#waiting.get(frame.id)
    this.#waiting.delete(frame.id)
    if (frame.type === 'result') waiting?.resolve(frame.output)
    else waiting?.reject(errorOf(frame))
  }

  #lost(): void {
    for (const { reject } of this.#waiting.values()) reject(ToolError.failed('The connection to the bridge was lost; whether the call was made is not known'))
    this.#waiting.clear()
  }
}

function read(data: unknown): Frame | null {
  try {
    return JSON.parse(String(data)) as Frame
  } catch {
    return null
  }
}

/** As the native connector reports it. */
function errorOf({ code, message, output }: Frame & { type: 'error' }): ToolError {
  if (code === 'bridge.busy') return new ToolError('tool.unavailable', `The bridge: ${message}`)
  const error = code.startsWith('bridge.') ? refused(code, message) : ToolError.failed(message)
  return output ? new ToolError(error.code, `${error.message}\n${output}`) : error
}

function refused(code: string, why: string): ToolError {
  return ToolError.failed(`The bridge refused the call: ${why} [${code}]`)
}
