/**
 * The password of the server, as its clients send it: the base64 of `name:password`. It comes in the fragment of the address, which no
 * browser sends anywhere, and stays in this tab.
 */
const KEY = 'outrigger.token'

let token: string | null = null

/** Takes the token out of the address, or the one of this tab. */
export function begin(location: Location, history: History): void {
  const given = /(?:^#|&)token=([A-Za-z0-9_=-]+)/.exec(location.hash)?.[1]
  if (given) {
    history.replaceState(null, '', location.pathname + location.search)
    // Base64 as headers have it.
    const text = given.replaceAll('-', '+').replaceAll('_', '/').replace(/=+$/, '')
    keep(text.padEnd(Math.ceil(text.length / 4) * 4, '='))
  } else {
    token = stored()?.getItem(KEY) ?? null
  }
}

/** What a person typed. */
export function signIn(name: string, password: string): void {
  const bytes = new TextEncoder().encode(`${name}:${password}`)
  keep(btoa(String.fromCharCode(...bytes)))
}

/** Forgets it. */
export function signOut(): void {
  token = null
  stored()?.removeItem(KEY)
}

/** For every request. */
export function authorization(): Record<string, string> {
  return token ? { authorization: `Basic ${token}` } : {}
}

function keep(value: string): void {
  token = value
  stored()?.setItem(KEY, value)
}

function stored(): Storage | null {
  try {
    return window.sessionStorage
  } catch {
    return null
  }
}
