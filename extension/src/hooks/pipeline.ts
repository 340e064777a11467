import type { Kernel } from '../kernel/kernel'
import type { Block, Change, ChainStep, HookItem, HookOutcome, HookRun, Point, Row } from '../kernel/operations'
import type { Fields, Json } from '../kernel/types'
import { type Plugin, Refusal } from './plugin'

/** What a chain came to. */
export interface Folded {
  output: Json
  block: Block | null
}

/** Whom a chain is run for. */
export interface About {
  session: string
  turn: string
}

/** What a call of a hook came to. */
interface Called {
  outcome: HookOutcome
  ms: number
  how: 'answered' | 'timed_out'
}

/** The one way to call a hook: the kernel's chain says who is next and folds the answers, breakers say who is left out. */
export class Pipeline {
  readonly #points: Map<string, Point>

  constructor(
    private readonly kernel: Kernel,
    private readonly plugins: Plugin[],
    private readonly note: (rows: Row[]) => Promise<void>,
  ) {
    this.#points = new Map(kernel.call('chain.points', {}).map((point) => [point.name, point]))
  }

  async run(name: string, item: HookItem, about: About): Promise<Folded> {
    const [folded] = await this.runBatch(name, [item], about)
    return folded ?? { output: item.output, block: null }
  }

  /** The same over several items, as the tools of a step are. */
  async runBatch(name: string, items: HookItem[], about: About): Promise<Folded[]> {
    const point = this.#points.get(name)
    if (!point) throw new Error(`there is no hook point ${name}`)
    const handlers = this.plugins
      .map((plugin, order) => ({ plugin, order }))
      .filter(({ plugin }) => hookOf(plugin, point))
      .map(({ plugin, order }) => ({ plugin: plugin.id, priority: plugin.priority ?? 0, order, named: true, fail_closed: plugin.failClosed ?? false }))
    if (handlers.length === 0) return items.map(({ output }) => ({ output, block: null }))
    let step: ChainStep = this.kernel.call('chain.open', { point: name, handlers, items })
    while (!step.done) {
      const next = step.call?.[0]
      if (!next) throw new Error(`the chain of ${name} neither calls nor ends`)
      const { outcome, ms } = await this.#call(point, next.plugin, step.items ?? [])
      step = this.kernel.call('chain.feed', { chain: step.chain, handler: next.handler, outcome, ms })
    }
    const { outputs, block, runs } = step.done
    await this.note(runs.map((run) => recordOf(point, run, about)))
    return outputs.map((output) => ({ output, block }))
  }

  /** Calls one hook, under its deadline and its breaker. */
  async #call(point: Point, id: string, items: HookItem[]): Promise<Called> {
    const name = `${id}/${point.name}`
    const { gate } = this.kernel.call('breaker.ask', { name, now: Date.now() })
    if (gate === 'skip') return { outcome: { skipped: 'breaker open' }, ms: 0, how: 'answered' }
    const hook = hookOf(this.plugins.find((plugin) => plugin.id === id), point)
    const called = await timed(() => within(point.deadline_ms, runHook(hook, items)), point.deadline_ms)
    this.kernel.call('breaker.ended', { name, trial: gate === 'trial', how: called.how, now: Date.now() })
    return called
  }
}

function hookOf(plugin: Plugin | undefined, point: Point) {
  return plugin?.hooks[point.name] ?? plugin?.hooks[point.hook]
}

/** A plugin works on copies; what it changed is found by comparing. */
async function runHook(hook: ReturnType<typeof hookOf>, items: HookItem[]): Promise<HookOutcome> {
  const changes: Change[][] = []
  for (const { input, output } of items) {
    const copy = structuredClone(output)
    await hook?.(structuredClone(input), copy)
    changes.push(changesOf(output, copy))
  }
  return changes.every((list) => list.length === 0) ? 'continue' : { patch: changes }
}

/** What changed, key by key: the guard looks at keys. */
export function changesOf(before: Json, after: Json): Change[] {
  if (!isFields(before) || !isFields(after)) return same(before, after) ? [] : [{ path: [], value: after }]
  const changes: Change[] = []
  for (const key of Object.keys(before)) if (!(key in after)) changes.push({ path: [key] })
  for (const [key, value] of Object.entries(after)) if (!(key in before) || !same(before[key], value)) changes.push({ path: [key], value })
  return changes
}

function isFields(value: Json): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function same(a: Json | undefined, b: Json): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}

class TimedOut extends Error {}

function within<T>(ms: number, work: Promise<T>): Promise<T> {
  let timer: ReturnType<typeof setTimeout>
  const late = new Promise<never>((_, reject) => (timer = setTimeout(() => reject(new TimedOut()), ms)))
  return Promise.race([work, late]).finally(() => clearTimeout(timer))
}

async function timed(work: () => Promise<HookOutcome>, deadline: number): Promise<Called> {
  const begun = performance.now()
  const ended = (outcome: HookOutcome, how: Called['how']): Called => ({ outcome, how, ms: performance.now() - begun })
  try {
    return ended(await work(), 'answered')
  } catch (error) {
    if (error instanceof TimedOut) return ended({ timed_out: deadline }, 'timed_out')
    if (error instanceof Refusal) return ended({ block: { code: error.code, message: error.message } }, 'answered')
    return ended({ threw: error instanceof Error ? error.message : String(error) }, 'answered')
  }
}

/** The record of a hook's run (A1, C13), as the native log has it. */
function recordOf(point: Point, run: HookRun, { session, turn }: About): Row {
  const at = Date.now()
  const record = {
    record: 'hook', point: point.name, hook: point.hook, plugin: run.plugin, session, turn, outcome: run.outcome, decision: run.decision,
    payload_bytes: 0, duration_ms: run.ms, ...(run.changed.length ? { changed: run.changed } : {}), ...(run.message ? { message: run.message } : {}), at,
  }
  return { at, kind: 'hook', session, turn, body: JSON.stringify(record) }
}
