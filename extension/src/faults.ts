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
  const signal = input.kind === 'model' ? `${input.signal.signal} ${'index' in input.signal ? input.signal.index : ''}` : ''
  const place = `${turn} ${step} ${phase} ${input.kind} ${signal}${about}`
  alone = alone.then(() => stopOnce(place))
  return alone
}

async function stopOnce(place: string): Promise<void> {
  const kept = await chrome.storage.session.get([ON, SEEN])
  if (!kept[ON]) return
  const seen = (kept[SEEN] ?? []) as string[]
  if (seen.includes(place)) return
  await chrome.storage.session.set({ [SEEN]: [...seen, place], [STOPPED]: place })
  await new Promise(() => {})
}
