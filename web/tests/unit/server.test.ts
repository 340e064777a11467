import { beforeEach, describe, expect, it } from 'vitest'
import { NotSignedIn, Server, Stranger, tag } from '../../src/lib/server'

const HOST = '127.0.0.1:4096'
const KEY = new Uint8Array(32).fill(7)

class Kept {
  all = new Map<string, string>()
  getItem = (name: string) => this.all.get(name) ?? null
  setItem = (name: string, value: string) => void this.all.set(name, value)
  removeItem = (name: string) => void this.all.delete(name)
}

/** What listens at the address: a server with its life and key, somebody else, or nobody. */
let listens: ((path: string, headers: Record<string, string>) => [number, unknown]) | null
let heard: string[]
let kept: Kept

function life(instance: string, key = KEY, knowsItself = true): NonNullable<typeof listens> {
  const token = tag(key, 'token', instance)
  return (path, headers) => {
    const nonce = /nonce=(.*)/.exec(path)?.[1]
    if (path.endsWith('/key')) return headers['authorization'] === `Bearer ${token}` ? [200, { instance, key: knowsItself ? btoa(String.fromCharCode(...key)) : null }] : [401, {}]
    return [200, { instance, proof: nonce && knowsItself ? tag(key, 'server', HOST, instance, nonce) : null }]
  }
}

const ask = (async (path: string, options: RequestInit = {}) => {
  if (!listens) throw new TypeError('nobody')
  const headers = (options.headers ?? {}) as Record<string, string>
  heard.push(JSON.stringify([path, headers, options.body ?? null]))
  const [status, body] = listens(path, headers)
  return new Response(JSON.stringify(body), { status })
}) as typeof fetch

function opened(instance: string, key = KEY): Server {
  const page = new Server(HOST, kept as unknown as Storage, ask)
  const location = { hash: `#token=${tag(key, 'token', instance)}`, pathname: '/', search: '' } as Location
  page.begin(location, { replaceState: () => undefined } as unknown as History)
  return page
}

beforeEach(() => {
  heard = []
  kept = new Kept()
  listens = life('one')
})

describe('the server of a page', () => {
  it('is known again after it was started anew, with another token', async () => {
    const page = opened('one')
    await page.meet()
    const before = page.authorization()
    page.lost()
    await expect(page.allowed()).rejects.toThrow(TypeError)
    listens = null
    await expect(page.meet()).rejects.toThrow(TypeError)
    listens = life('two')
    await page.meet()
    await page.allowed()
    expect(page.authorization()).toEqual({ authorization: `Bearer ${tag(KEY, 'token', 'two')}` })
    expect(page.authorization()).not.toEqual(before)
    // What a later listener can read of the tab is a token of a server's life, and no key.
    expect([...kept.all.values()]).toEqual([tag(KEY, 'token', 'two')])
  })

  it('is taken for a stranger without a proof, which is sent a number and nothing else', async () => {
    const page = opened('one')
    await page.meet()
    const known = life('one')
    for (const [name, stranger] of Object.entries({
      'says what everybody can know': (path: string) => (path.endsWith('/key') ? [200, { instance: 'one', key: null }] : [200, { instance: 'one', proof: null }]),
      'has another key': life('one', new Uint8Array(32).fill(8)),
      'wants no password': () => [200, { instance: null, proof: null }],
      'kept a proof of before': () => known('?nonce=of-before', {}),
      'is a web page': () => [404, 'no JSON'],
    } as Record<string, NonNullable<typeof listens>>)) {
      page.lost()
      heard = []
      listens = stranger
      await expect(page.meet(), name).rejects.toThrow(Stranger)
      await expect(page.allowed(), name).rejects.toThrow(Stranger)
      expect(heard.length, name).toBe(1)
      expect(heard[0], name).toMatch(/^\["\/outrigger\/web\/session\?nonce=[\w-]{32}",\{\},null\]$/)
      // It goes, and the server comes back.
      listens = life('one')
      await page.meet()
    }
  })

  it('by a name proves nothing: the token is good or it is not', async () => {
    listens = life('one', KEY, false)
    const page = opened('one')
    await page.meet()
    page.lost()
    await page.meet()
    page.lost()
    listens = life('two', KEY, false)
    await expect(page.meet()).rejects.toThrow(Stranger)
  })

  it('wants a password where the token is one of a server that has ended', async () => {
    listens = life('two')
    const page = opened('one')
    await expect(page.meet()).rejects.toThrow(NotSignedIn)
    expect(kept.all.size).toBe(0)
    await page.signIn('opencode', 's3cret').catch(() => undefined)
    expect(heard.join()).not.toContain('s3cret')
  })
})
