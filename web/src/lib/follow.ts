import { Groups, Parser, type Sent } from './sse'
import { RequestError, reconnect, request } from './http'
import { server } from './server'

/** `stranger`: somebody else answers where the server was, and is sent nothing. */
export type Link = 'connecting' | 'live' | 'lost' | 'stranger'

interface Follower {
  take(sent: Sent[]): void
  link(state: Link): void
  /** A connection is there, again where it is not the first. */
  connected(again: boolean): void
}

/** Silence after which a connection is taken for dead: the server sends something now and then. */
const FIRST_WAIT = 250
const MAX_WAIT = 5000

/** Follows all conversations. After a break it goes on behind the last record that it has seen. */
export class Follow {
  #last: number | null = null
  #stopped = new AbortController()
  #wake: (() => void) | null = null

  constructor(
    private readonly path: string,
    private readonly follower: Follower,
  ) {}

  stop(): void {
    this.#stopped.abort()
    this.#wake?.()
  }

  /** Tries now instead of later. */
  retry(): void {
    this.#wake?.()
  }

  async run(): Promise<void> {
    let wait = FIRST_WAIT
    let again = false
    while (!this.#stopped.signal.aborted) {
      this.follower.link('connecting')
      try {
        await reconnect()
        const headers: Record<string, string> = this.#last === null ? {} : { 'last-event-id': String(this.#last) }
        const response = await request(this.path, { headers, signal: this.#stopped.signal })
        wait = FIRST_WAIT
        await this.#read(response, () => {
          this.follower.link('live')
          this.follower.connected(again)
          again = true
        })
      } catch (error) {
        if (this.#stopped.signal.aborted) return
        if (error instanceof RequestError && error.status === 401 && server.meeting === 'new') {
          this.follower.link('lost')
          return
        }
      }
      if (this.#stopped.signal.aborted) return
      server.lost()
      if (server.meeting === 'stranger') {
        // No server is contacted again until the user confirms.
        this.follower.link('stranger')
        await this.#pause(null)
        continue
      }
      this.follower.link('lost')
      await this.#pause(wait)
      wait = Math.min(wait * 2, MAX_WAIT)
    }
  }

  async #read(response: Response, connected: () => void): Promise<void> {
    const parser = new Parser()
    const groups = new Groups()
    const text = response.body?.pipeThrough(new TextDecoderStream()).getReader()
    if (!text) return
    for (;;) {
      const { value, done } = await text.read()
      if (done) return
      const all: Sent[] = []
      for (const frame of parser.push(value)) {
        for (const sent of groups.push(frame)) {
          if (sent.item.type === 'connected') {
            this.#last ??= sent.item.event
            connected()
          } else if (sent.item.type === 'reset') {
            this.#last = sent.item.event
          }
          if (sent.seq !== null) this.#last = sent.seq
          all.push(sent)
        }
      }
      if (all.length) this.follower.take(all)
    }
  }

  #pause(ms: number | null): Promise<void> {
    return new Promise((done) => {
      const timer = ms === null ? undefined : setTimeout(done, ms)
      this.#wake = () => {
        clearTimeout(timer)
        done()
      }
    })
  }
}
