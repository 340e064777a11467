import type { Unmet } from '../../kernel/operations'
import type { Fields, Json } from '../../kernel/types'
import type { Context } from '../tool'
import type { Done } from './act'
import type { Tab } from './desk'
import { observe } from './page'

/** How long expectations are waited for where nothing is said, and at most. */
const WAIT = 5_000
const MAX_WAIT = 60_000
/** How long an action may take to show an effect before it is said to have none. */
const EFFECT = 600
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

/** Looks at the page until what was expected has come, or its time is over. */
export async function judged(context: Context, tab: Tab, action: Fields, about: { kind: string; should_change: boolean }, sent: Sent): Promise<Verdict> {
  const { desk, kernel } = context.host
  const expected = (action['expect'] ?? []) as Json[]
  const own = usual(about.kind, action, sent.came, sent.isKept, sent.typed)
  const wait = Math.min(Number(action['timeout_ms'] ?? WAIT), MAX_WAIT)
  for (const begun = Date.now(); ; ) {
    const open = desk.records.dialog(tab.id)
    if (open) return { status: own.length ? 'failed_verify' : 'done', unmet: own, sentence: sentenceOf(own), url: '', dialog: `a dialog is open (${open.type}): ${JSON.stringify(open.message)}; answer it with the action dialog` }
    const seen = await observe(kernel, desk, tab, sent.since)
    const said = kernel.call('browser.unmet', { tab: tab.name, expect: expected })
    const unmet = [...said.unmet, ...own]
    const sentence = [said.sentence, sentenceOf(own)].filter(Boolean).join('; ')
    const elapsed = Date.now() - begun
    const end = (status: Verdict['status']): Verdict => ({ status, unmet, sentence, url: seen.url })
    if (unmet.length) {
      if (elapsed >= wait || (!expected.length && elapsed >= EFFECT)) return end('failed_verify')
    } else if (expected.length) {
      return end('verified')
    } else if (!about.should_change || hasChanged(about.kind, sent.before, seen.text) || moved(context, tab, sent)) {
      return end('done')
    } else if (elapsed >= EFFECT) {
      return end('unchanged')
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

/** What is expected of some actions without being said: a field holds what was put in it. What is the user's is not shown. */
function usual(kind: string, action: Fields, { value }: Done, isKept: boolean, typed: string): Unmet[] {
  const wanted: Record<string, string> = { fill: typed, type: typed, check: 'true', uncheck: 'false', select: ((action['values'] ?? []) as string[]).join(', ') }
  const text = wanted[kind]
  if (value === undefined || text === undefined) return []
  // Options are chosen by value, too.
  const holds = kind === 'type' ? flat(value).includes(flat(text)) : kind === 'select' ? value !== '' || text === '' : flat(value) === flat(text)
  if (holds) return []
  const shown = (it: string) => (isKept ? '(not shown)' : JSON.stringify(it))
  return [{ expected: `the field to hold ${shown(text)}`, seen: shown(value) }]
}

function flat(text: string): string {
  return text.split(/\s+/).filter(Boolean).join(' ')
}

function sentenceOf(unmet: Unmet[]): string {
  return unmet.map(({ expected, seen }) => `failed_verify: expected ${expected}, but saw: ${seen}`).join('; ')
}

/** That a click moves the focus is not an effect of it; of a key it may be all. */
function hasChanged(kind: string, before: string, after: string): boolean {
  return kind === 'press' ? before !== after : before.replaceAll(' focused', '') !== after.replaceAll(' focused', '')
}
