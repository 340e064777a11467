import { NotSignedIn, Stranger, server } from './server'

/** What the server says is wrong, or that it cannot be reached. */
export class RequestError extends Error {
  constructor(
    message: string,
    /** 0: no answer. */
    readonly status: number,
    /** Name of the error, if the server has one. */
    readonly kind: string | null = null,
  ) {
    super(message)
  }
  get isOffline(): boolean {
    return this.status === 0
  }
}

type Refused = () => void
let refused: Refused = () => {}

/** Called when the server wants this page to sign in. */
export function onRefused(listener: Refused): void {
  refused = listener
}

interface Options {
  method?: string
  body?: unknown
  /** Folder of the agent that is asked. */
  directory?: string | undefined
  signal?: AbortSignal | undefined
  headers?: Record<string, string>
}

/** Makes sure that the server is the one that this page belongs to. */
async function meet(join: () => Promise<void>): Promise<void> {
  try {
    await join()
  } catch (error) {
    if (error instanceof NotSignedIn) {
      refused()
      throw new RequestError(error.message, 401)
    }
    throw new RequestError(error instanceof Stranger ? error.message : 'The server cannot be reached.', 0)
  }
}

/** After a break: asks who is there, before anything else is sent. */
export const reconnect = () => meet(() => server.meet())

/** A request with the token in a header; the answer, if it is a good one. */
export async function request(path: string, options: Options = {}): Promise<Response> {
  await meet(() => server.allowed())
  const headers: Record<string, string> = { ...server.authorization(), ...options.headers }
  if (options.body !== undefined) headers['content-type'] = 'application/json'
  if (options.directory) headers['x-opencode-directory'] = encodeURIComponent(options.directory)
  let response: Response
  try {
    response = await fetch(path, {
      method: options.method ?? (options.body === undefined ? 'GET' : 'POST'),
      headers,
      body: options.body === undefined ? null : JSON.stringify(options.body),
      signal: options.signal ?? null,
      // The header authenticates: no cookie, and no login dialog of the browser.
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'error',
    })
  } catch (error) {
    if (options.signal?.aborted) throw error
    throw new RequestError('The server cannot be reached.', 0)
  }
  // The server has ended and another one has taken its place.
  if (response.status === 401) server.lost()
  if (!response.ok) {
    const { text, kind } = await reason(response)
    throw new RequestError(text, response.status, kind)
  }
  return response
}

async function reason(response: Response): Promise<{ text: string; kind: string | null }> {
  const text = await response.text().catch(() => '')
  try {
    const body = JSON.parse(text) as { name?: string; data?: { message?: string }; message?: string }
    return { text: body.data?.message ?? body.message ?? `The server answers ${response.status}.`, kind: body.name ?? null }
  } catch {
    return { text: text.slice(0, 300) || `The server answers ${response.status}.`, kind: null }
  }
}

export async function get<T>(path: string, options: Options = {}): Promise<T> {
  return (await request(path, options)).json() as Promise<T>
}

export async function post<T>(path: string, body: unknown = {}, options: Options = {}): Promise<T> {
  const response = await request(path, { ...options, method: 'POST', body })
  const text = await response.text()
  return (text ? JSON.parse(text) : null) as T
}

export function query(fields: Record<string, string | number | boolean | null | undefined>): string {
  const all = new URLSearchParams()
  for (const [name, value] of Object.entries(fields)) if (value !== null && value !== undefined && value !== '') all.set(name, String(value))
  const text = all.toString()
  return text && `?${text}`
}
