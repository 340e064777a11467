/** Files from this size on, in bytes, are written by a worker that has a handle of its own on the file: in place, piece by piece, without a copy of the whole. */
export const LARGE = 1 << 20

/** What the writer is asked: to carry out a plan. */
export interface Asked {
  to: 'writer'
  key: string
}

/** What came of it. */
export interface Written {
  key: string
  /** Why it was not written. */
  error?: string
  /** There is no room. */
  isFull?: boolean
}

let opening: Promise<void> | undefined

/** Has a planned file written. Throws a `QuotaExceededError` where there is no room. */
export async function writeLarge(key: string): Promise<void> {
  await (opening ??= open().finally(() => (opening = undefined)))
  const asked: Asked = { to: 'writer', key }
  const written = (await chrome.runtime.sendMessage(asked)) as Written | undefined
  if (!written) throw new Error('the writer of files did not answer')
  if (written.isFull) throw new DOMException(written.error, 'QuotaExceededError')
  if (written.error) throw new Error(written.error)
}

async function open(): Promise<void> {
  const [there] = await chrome.runtime.getContexts({ contextTypes: [chrome.runtime.ContextType.OFFSCREEN_DOCUMENT] })
  if (there) return
  await chrome.offscreen.createDocument({ url: 'offscreen.html', reasons: [chrome.offscreen.Reason.WORKERS], justification: 'Writes large files of the workspace.' })
}
