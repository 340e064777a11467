/** Where a worker may die. In the build for tests it stops at each such place once, says so and waits to be ended; in the product this
 * is nothing, and the bundler takes it out. */
import type { Input } from './kernel/types'

const ON = 'faults.on'
const SEEN = 'faults.seen'
const STOPPED = 'faults.stopped'
let alone: Promise<void> = Promise.resolve()

/** An input is about to be stored, or has been. `about` says which of its kind it is, in words that another worker would use, too:
 * what is done again after a death is the same place. */
export function boundary(turn: string, step: number, phase: 'before' | 'after', input: Input, about: string): Promise<void> {
  if (import.meta.env.MODE !== 'faults') return Promise.resolve()
  // A worker that dies of its first step never gets further.
  if (input.kind === 'resumed') return Promise.resolve()
  const place = `${turn} ${phase} ${input.kind} ${placeOf(step, input, about)}`
  alone = alone.then(() => stopOnce(place))
  return alone
}

/** The call that the model has written last. */
let written = ''

/** What happens while a call is under way is named by that call, whichever request it comes of: a worker that dies then leaves the call
 * without an outcome, and if it died of every such call anew, none would ever be made. */
function placeOf(step: number, input: Input, about: string): string {
  if (input.kind === 'model') {
    const { signal } = input
    if (signal.signal === 'tool_end') written = `${signal.tool} ${signal.raw}`
    if (signal.signal === 'tool_end' || signal.signal === 'finished') return `${signal.signal} ${written}`
    return `${step} ${signal.signal}`
  }
  if (input.kind === 'hook_done' && about === 'llm.after_text') return `${about} ${JSON.stringify(input.output)}`
  return input.kind === 'tool_started' || input.kind === 'tool_done' ? about : `${step} ${about}`
}

async function stopOnce(place: string): Promise<void> {
  const kept = await chrome.storage.session.get([ON, SEEN])
  if (!kept[ON]) return
  const seen = (kept[SEEN] ?? []) as string[]
  if (seen.includes(place)) return
  await chrome.storage.session.set({ [SEEN]: [...seen, place], [STOPPED]: place })
  await new Promise(() => {})
}
