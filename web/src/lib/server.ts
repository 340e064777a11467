import { hmac } from '@noble/hashes/hmac.js'
import { pbkdf2Async } from '@noble/hashes/pbkdf2.js'
import { sha256 } from '@noble/hashes/sha2.js'

/**
 * Which server this page belongs to, and how it signs in there. The password is never sent: a token is, which ends with the server, so that
 * what takes its port is sent nothing of use. After a break nothing at all is sent before the server has proved itself. The other side of
 * it, and why, is crates/outrigger-server/src/access/page_session.rs.
 */

const SESSION = '/outrigger/web/session'
/** As the server has it. */
const ROUNDS = 100_000
const STORED = 'outrigger.token'

/** Not met yet; met; there is no connection; somebody else answers where the server was. */
export type Meeting = 'new' | 'met' | 'lost' | 'stranger'

/** A server that answers and does not want this page in. */
export class NotSignedIn extends Error {}

/** Another program answers at the address of the server. */
export class Stranger extends Error {}

interface About {
  instance: string | null
  proof: string | null
}

/** What is said for one purpose, and what it gives with a key. */
export function tag(key: Uint8Array, ...said: string[]): string {
  return encode(hmac(sha256, key, utf8(`outrigger page 1\n${said.join('\n')}`)))
}

export class Server {
  meeting: Meeting = 'new'
  /** The server's life that this page knows; none where no password is needed. */
  #instance: string | null = null
  #token: string | null = null
  /** By which it knows the next server. In no storage: what listens there later could read it. */
  #key: Uint8Array | null = null
  #first: Promise<void> | null = null

  constructor(
    private readonly host: string,
    private readonly storage: Storage | null,
    private readonly ask: typeof fetch = (...all) => fetch(...all),
  ) {}

  /** Takes the token out of the address, or the one of this tab. */
  begin(location: Location, history: History): void {
    const given = /(?:^#|&)token=([A-Za-z0-9_-]+)/.exec(location.hash)?.[1]
    if (given) {
      history.replaceState(null, '', location.pathname + location.search)
      this.#keep(given)
    } else {
      this.#token = this.storage?.getItem(STORED) ?? null
    }
  }

  /** Whether a server at this address can prove that it is the one. */
  get provesItself(): boolean {
    return this.#key !== null
  }

  /** For every request. */
  authorization(): Record<string, string> {
    return this.#token ? { authorization: `Bearer ${this.#token}` } : {}
  }

  /** Comes back when requests may be sent; throws where they may not. */
  async allowed(): Promise<void> {
    if (this.meeting === 'new') await (this.#first ?? this.meet())
    if (this.meeting === 'stranger') throw new Stranger('Another program answers at the address of the server.')
    if (this.meeting === 'lost') throw new TypeError('The server cannot be reached.')
  }

  /** There is no connection: who answers next has to prove itself. */
  lost(): void {
    if (this.meeting === 'met') this.meeting = 'lost'
  }

  /** Meets the server, or makes sure that it is the one that was met, or the same user's. */
  async meet(): Promise<void> {
    if (this.meeting === 'met') return
    if (this.meeting !== 'new') return this.#again()
    this.#first ??= this.#begins().finally(() => {
      this.#first = null
    })
    return this.#first
  }

  /** What a person typed. It is not sent, only what it gives. */
  async signIn(user: string, password: string): Promise<void> {
    const instance = this.#instance ?? ''
    const key = await pbkdf2Async(sha256, utf8(password), utf8(instance), { c: ROUNDS, dkLen: 32 })
    const nonce = chosen()
    const body = { user, instance, nonce, proof: tag(key, 'sign-in', user, instance, nonce) }
    const response = await this.#fetch(SESSION, { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) })
    if (response.status === 401) throw new NotSignedIn('That is not the password of this server.')
    if (!response.ok) throw new Error('The server was restarted: reload the page.')
    const given = (await response.json()) as { token: string; proof: string }
    if (given.proof !== tag(key, 'signed-in', given.token, nonce)) throw new Error('The server does not know the password either.')
    this.#keep(given.token)
  }

  async #begins(): Promise<void> {
    if (this.#token) {
      const response = await this.#fetch(`${SESSION}/key`, { headers: this.authorization() })
      if (response.ok) {
        const known = (await response.json()) as { instance: string; key: string | null }
        this.#instance = known.instance
        this.#key = known.key === null ? null : decode(known.key)
        this.meeting = 'met'
        return
      }
      // From a server that has ended.
      this.#forget()
    }
    const about = await this.#about(SESSION)
    this.#instance = about.instance
    if (about.instance !== null) throw new NotSignedIn('This server asks for a password.')
    this.meeting = 'met'
  }

  async #again(): Promise<void> {
    this.meeting = 'lost'
    // A server without a password has nothing to prove, and gets no secrets.
    if (this.#instance === null) {
      await this.#about(SESSION)
      this.meeting = 'met'
      return
    }
    if (!this.#key) return this.#stillThere()
    const nonce = chosen()
    const { instance, proof } = await this.#about(`${SESSION}?nonce=${nonce}`)
    if (!instance || !proof || proof !== tag(this.#key, 'server', this.host, instance, nonce)) this.#stranger()
    if (instance !== this.#instance) this.#keep(tag(this.#key, 'token', instance))
    this.#instance = instance
    this.meeting = 'met'
  }

  /** By a name or through a tunnel no server proves itself: the token, which is of one life, is good or it is not. */
  async #stillThere(): Promise<void> {
    const response = await this.#fetch(`${SESSION}/key`, { headers: this.authorization() })
    if (response.status >= 500) throw new TypeError('The server cannot be reached.')
    const known = (await response.json().catch(() => null)) as { instance?: unknown } | null
    if (!response.ok || known?.instance !== this.#instance) this.#stranger()
    this.meeting = 'met'
  }

  #stranger(): never {
    this.meeting = 'stranger'
    throw new Stranger('Another program answers at the address of the server.')
  }

  async #about(path: string): Promise<About> {
    const response = await this.#fetch(path)
    // A proxy in front of a server that is not running.
    if (response.status >= 500) throw new TypeError('The server cannot be reached.')
    const about: unknown = await response.json().catch(() => null)
    const { instance, proof } = (about ?? {}) as Partial<Record<keyof About, unknown>>
    return { instance: typeof instance === 'string' ? instance : null, proof: typeof proof === 'string' ? proof : null }
  }

  #fetch(path: string, options: RequestInit = {}): Promise<Response> {
    return this.ask(path, { ...options, credentials: 'omit', cache: 'no-store', redirect: 'error' })
  }

  #keep(token: string): void {
    this.#token = token
    this.storage?.setItem(STORED, token)
  }

  #forget(): void {
    this.#token = null
    this.storage?.removeItem(STORED)
  }
}

/** A number that nobody has seen yet. */
function chosen(): string {
  return encode(crypto.getRandomValues(new Uint8Array(24)))
}

function utf8(text: string): Uint8Array {
  return new TextEncoder().encode(text)
}

function encode(bytes: Uint8Array): string {
  return btoa(String.fromCharCode(...bytes)).replaceAll('+', '-').replaceAll('/', '_').replace(/=+$/, '')
}

function decode(text: string): Uint8Array {
  return Uint8Array.from(atob(text.replaceAll('-', '+').replaceAll('_', '/')), (it) => it.charCodeAt(0))
}

function stored(): Storage | null {
  try {
    return window.sessionStorage
  } catch {
    return null
  }
}

export const server = new Server(typeof window === 'undefined' ? '' : window.location.host, typeof window === 'undefined' ? null : stored())
