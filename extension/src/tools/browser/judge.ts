import type { Unmet } from '../../kernel/operations'
import type { Fields, Json } from '../../kernel/types'
import type { Context } from '../tool'
import type { Done } from './act'
import type { Tab } from './desk'
import { observe, observed } from './page'

/** How long expectations are waited for where nothing is said, and at most. */
const WAIT = 5_000
const MAX_WAIT = 60_000
/** Pause between two looks. */
const PAUSE = 100

/** What an action came to. */
export interface Verdict {
  status: 'verified' | 'failed_verify' | 'unchanged' | 'done'
  unmet: Unmet[]
  sentence: string
  url: string
  /** A dialog that is open: the page cannot be looked at before it is answered. */
  dialog?: string
}

interface Sent {
  before: string
  since: number
  came: Done
  /** What was typed; of the user's it is not shown. */
  typed: string
  isKept: boolean
  /** Tabs that the page had opened before. */
  opened: number
}

/** Looks at the page until the kernel has a verdict: what was expected has come, or its time is over. */
export async function judged(context: Context, tab: Tab, action: Fields, kind: string, sent: Sent): Promise<Verdict> {
  const { desk, kernel } = context.host
  const { came, isKept } = sent
  const about = {
    tab: tab.name,
    kind,
    expect: (action['expect'] ?? []) as Json[],
    before: sent.before,
    is_kept: isKept,
    ...(typeof action['timeout_ms'] === 'number' && { timeout_ms: action['timeout_ms'] }),
    ...(came.value !== undefined && { holds: came.value, wanted: came.chosen ?? sent.typed }),
  }
  for (const begun = Date.now(); ; ) {
    const open = desk.dialog(tab)
    const seen = open ? undefined : await observed(kernel, desk, tab, sent.since)
    // One has opened meanwhile.
    if (!open && !seen) continue
    const dialog = open && { kind: open.type, message: open.message }
    const said = kernel.call('browser.judge', { ...about, ...(dialog && { dialog }), came: moved(context, tab, sent), elapsed: Date.now() - begun })
    const { status, unmet, sentence } = said
    if (status) {
      const verdict = { status, unmet, sentence, url: seen?.url ?? '' }
      return open ? { ...verdict, dialog: `a dialog is open (${open.type}): ${JSON.stringify(open.message)}; answer it with the action dialog` } : verdict
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE))
  }
}

/** What else shows that something was done. */
function moved({ host: { desk } }: Context, tab: Tab, { since, opened }: Sent): boolean {
  const { records } = desk
  return records.requests(tab.id, since).length > 0 || records.downloads(tab.id, since).length > 0 || desk.openedBy(tab).length > opened
}

/** Whether expectations are met, now or within their time. */
export async function verified({ host: { kernel, desk } }: Context, tab: Tab, expect: Json[], timeout: number) {
  for (const begun = Date.now(); ; ) {
    const { url } = await observe(kernel, desk, tab)
    const said = kernel.call('browser.unmet', { tab: tab.name, expect })
    if (said.unmet.length === 0 || Date.now() - begun >= Math.min(timeout || WAIT, MAX_WAIT)) return { ...said, url }
    await new Promise((resolve) => setTimeout(resolve, PAUSE))
  }
}
