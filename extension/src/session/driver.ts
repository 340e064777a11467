import type { Input, Effect } from '../kernel/types'
import { boundary } from '../faults'
import type { LeftTurn } from '../log/log'
import { Effects } from './effects'
import type { Host } from './host'

/** The host of a turn: it tells the kernel what happened, stores what that means, and begins what the kernel wants.
 *
 * Nothing is begun before the step that wants it is stored, so that whatever the worker dies of, what was begun is known. */
export class Driver {
  readonly #effects: Effects
  readonly #stop = new AbortController()
  /** Inputs are taken one after another. */
  #queue: Promise<void> = Promise.resolve()
  #ended = false
  /** Which request to the model the turn is at. */
  #modelStep = 0
  /** Resolves when the turn has ended or cannot be gone on with. */
  readonly ended: Promise<void>
  #end: () => void = () => {}

  private constructor(
    readonly host: Host,
    readonly session: string,
    readonly turn: string,
    private readonly number: number,
  ) {
    this.#effects = new Effects(host, session, turn, this.#stop.signal, (input) => this.take(input))
    this.ended = new Promise((resolve) => (this.#end = resolve))
  }

  /** A new turn. */
  static async start(host: Host, session: string, turn: string, begin: Input): Promise<Driver> {
    const driver = new Driver(host, session, turn, host.kernel.call('turn.open', {}).turn)
    await driver.take(begin)
    return driver
  }

  /** A turn that an earlier worker left: its inputs are replayed, and it goes on as resumed. */
  static async resume(host: Host, left: LeftTurn): Promise<Driver> {
    host.log.resume(left)
    const opened = host.kernel.call('turn.open', {}, [...left.packs, ...left.steps])
    const driver = new Driver(host, left.session, left.id, opened.turn)
    driver.#modelStep = opened.step
    await driver.take({ kind: 'resumed' })
    return driver
  }

  take(input: Input): Promise<void> {
    this.#queue = this.#queue.then(() => this.#take(input))
    return this.#queue
  }

  cancel(): void {
    void this.take({ kind: 'cancel' })
  }

  async #take(input: Input): Promise<void> {
    if (this.#ended) return
    try {
      await this.#step(input)
    } catch (error) {
      // What is stored is whole: the turn goes on from there when the worker is started again.
      this.#close()
      this.host.report(this.session, `The turn stands still: ${error instanceof Error ? error.message : String(error)}`)
    }
  }

  async #step(input: Input): Promise<void> {
    const about = this.#effects.about(input)
    await boundary(this.turn, this.#modelStep, 'before', input, about)
    const { effects, rows, done } = this.host.kernel.call('turn.step', { turn: this.number, at: Date.now(), input })
    await this.host.log.append({ turn: { id: this.turn, session: this.session, done: done ? 1 : 0 }, rows, effects })
    await boundary(this.turn, this.#modelStep, 'after', input, about)
    this.host.published(this.session, rows)
    for (const effect of effects) this.#begin(effect)
    if (done) this.#close()
  }

  #begin(effect: Effect): void {
    switch (effect.kind) {
      case 'publish':
      case 'patch_session':
        // Stored with the step.
        return
      case 'abort':
        this.#stop.abort()
        return
      case 'finish':
        this.host.finished(this.session, effect.outcome)
        return
      case 'prepare_tools':
        this.host.firstEffect ??= performance.now()
        this.#modelStep = effect.step
        void this.#effects.run(effect)
        return
      default:
        void this.#effects.run(effect)
    }
  }

  #close(): void {
    this.#ended = true
    this.#stop.abort()
    this.host.kernel.call('turn.close', { turn: this.number })
    this.#end()
  }
}
