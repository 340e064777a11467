import type { Fields } from '../../kernel/types'
import { type Context, ToolError } from '../tool'
import type { Tab } from './desk'
import type { Element } from './element'

/** The largest file that is uploaded or taken in, in bytes. */
const MAX_FILE = 64 * 1024 * 1024
/** How long a download may take to begin, in milliseconds. */
const BEGIN_TIMEOUT = 10_000
/** Bytes of a file that go into a page at once: a multiple of three, so that their Base64 can be joined. */
const PIECE = 3 * 1024 * 1024

/** Called on a file field with the name of a file and its bytes. */
const PUT = `function (name, ...pieces) {
  const field = this
  if (!field.isConnected) return { gone: true }
  if (field.localName !== "input" || field.type !== "file") return { why: "it is not a field for a file" }
  if (field.disabled) return { why: "it is disabled" }
  const text = atob(pieces.join(""))
  const bytes = Uint8Array.from(text, (letter) => letter.charCodeAt(0))
  const list = new DataTransfer()
  list.items.add(new File([bytes], name))
  field.files = list.files
  for (const kind of ["input", "change"]) field.dispatchEvent(new Event(kind, { bubbles: true, composed: true }))
  return {}
}`

/** Called on a link: the bytes of what the page keeps under its address, where the browser asks no server for it. */
const FETCH = `async function () {
  const link = this.closest?.("a[href]")
  if (!link || !(link.hasAttribute("download") || /^(blob|data):/.test(link.href))) return {}
  const answer = await fetch(link.href)
  if (!answer.ok) return { why: "the address answered with " + answer.status }
  const bytes = new Uint8Array(await answer.arrayBuffer())
  if (bytes.length > ${MAX_FILE}) return { why: "it is larger than ${MAX_FILE} bytes" }
  let text = ""
  for (let at = 0; at < bytes.length; at += 32768) text += String.fromCharCode(...bytes.subarray(at, at + 32768))
  return { name: link.download || decodeURIComponent(new URL(link.href).pathname.split("/").at(-1) ?? ""), base64: btoa(text) }
}`

/** A file that a page has handed out. */
export interface Download {
  name: string
  bytes: Uint8Array
}

/** Gives a file of the workspace to a field. It has no name on this machine, so the page is given its bytes. */
export async function put(element: Element, { name, bytes }: Download): Promise<void> {
  if (bytes.length > MAX_FILE) throw ToolError.failed(`${name} has ${bytes.length} bytes; ${MAX_FILE} can be uploaded`)
  const pieces: string[] = []
  for (let at = 0; at < bytes.length; at += PIECE) pieces.push(base64(bytes.subarray(at, at + PIECE)))
  await element.run(PUT, name, ...pieces)
}

/** Clicks, and takes what the page then hands out: before the browser would put it in the person's folder of downloads. */
export async function downloadOf({ host: { desk }, stopped }: Context, tab: Tab, element: Element | null, click: () => Promise<void>): Promise<Download> {
  const kept = element ? await element.run(FETCH) : {}
  if (typeof kept['base64'] === 'string') {
    desk.records.downloaded(tab.id, String(kept['name']))
    return { name: String(kept['name']) || 'download', bytes: bytesOf(kept['base64']) }
  }
  const target = desk.target(tab)
  const sessions = [...new Set((await target.frames()).map((frame) => frame.session))]
  const found = new Promise<Download>((resolve, reject) => {
    const end = (how: () => void) => {
      clearTimeout(timer)
      chrome.debugger.onEvent.removeListener(listen)
      how()
    }
    const timer = setTimeout(() => end(() => reject(ToolError.failed('failed_verify: nothing was downloaded'))), BEGIN_TIMEOUT)
    stopped.addEventListener('abort', () => end(() => reject(ToolError.failed('The call was stopped'))))
    const listen = (source: chrome.debugger.DebuggerSession, method: string, params?: object) => {
      if (source.tabId !== tab.id || method !== 'Fetch.requestPaused') return
      const paused = params as Fields
      const send = (name: string, rest: Fields = {}) => target.call(name, { requestId: paused['requestId'] ?? '', ...rest }, source.sessionId)
      const name = nameOf(paused)
      // A request that is gone by now needs no answer.
      if (name === null) return void send('Fetch.continueRequest').catch(() => {})
      const taken = send('Fetch.getResponseBody').then((body) => {
        const text = String(body['body'] ?? '')
        return { name, bytes: body['base64Encoded'] === true ? bytesOf(text) : new TextEncoder().encode(text) }
      })
      void taken.finally(() => send('Fetch.failRequest', { errorReason: 'Aborted' }).catch(() => {})).catch(() => {})
      taken.then((it) => end(() => resolve(it)), (error: unknown) => end(() => reject(error)))
    }
    chrome.debugger.onEvent.addListener(listen)
  })
  // It may be refused before it is waited for.
  found.catch(() => {})
  const patterns = [{ requestStage: 'Response', resourceType: 'Document' }]
  await Promise.all(sessions.map((session) => target.call('Fetch.enable', { patterns }, session)))
  try {
    await click()
    const download = await found
    if (download.bytes.length > MAX_FILE) throw ToolError.failed(`The download has ${download.bytes.length} bytes; ${MAX_FILE} are taken in`)
    desk.records.downloaded(tab.id, download.name)
    return download
  } finally {
    // A frame that is gone by now has nothing that is enabled.
    await Promise.all(sessions.map((session) => target.call('Fetch.disable', {}, session).catch(() => {})))
  }
}

/** The name of the file that an answer is, or null where it is a page. */
function nameOf(paused: Fields): string | null {
  const headers = (paused['responseHeaders'] ?? []) as { name: string; value: string }[]
  const header = (name: string) => headers.find((it) => it.name.toLowerCase() === name)?.value ?? ''
  const how = header('content-disposition')
  const shown = /^(text\/|image\/|application\/(xhtml\+xml|xml|json|pdf))/i.test(header('content-type') || 'text/html')
  if (!/^\s*attachment/i.test(how) && shown) return null
  const said = /filename\*=UTF-8''([^;]+)/i.exec(how)?.[1] ?? /filename="?([^";]+)"?/i.exec(how)?.[1]
  const { url } = (paused['request'] ?? {}) as Fields
  const name = said ?? new URL(String(url)).pathname.split('/').at(-1)
  return decodeURIComponent(name || 'download').replaceAll(/[/\\]/g, '_')
}

function base64(bytes: Uint8Array): string {
  let text = ''
  for (let at = 0; at < bytes.length; at += 32_768) text += String.fromCharCode(...bytes.subarray(at, at + 32_768))
  return btoa(text)
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0))
}
