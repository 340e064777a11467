/** How long an event that we caused may take to come back, in milliseconds. */
const OWN_EVENT_TIMEOUT = 10_000

/** Tells our own clicks and keys from a person's: each of ours is announced before it is sent. */
export class OwnEvents {
  readonly #sent = new Map<string, number[]>()

  /** One of ours is about to be sent to a tab. */
  announce(tab: number, kind: string): void {
    const key = `${tab} ${kind}`
    this.#sent.set(key, [...(this.#sent.get(key) ?? []), Date.now()])
  }

  /** Whether an event that a tab has seen is one of ours. Each counts once. */
  take(tab: number, kind: string): boolean {
    const key = `${tab} ${kind}`
    const sent = (this.#sent.get(key) ?? []).filter((at) => Date.now() - at < OWN_EVENT_TIMEOUT)
    const isOwn = sent.pop() !== undefined
    this.#sent.set(key, sent)
    return isOwn
  }
}
