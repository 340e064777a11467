/** A list that is being read. */
export interface Reading<T> {
  /** Takes the list in; with `whole`, what is not on it goes. What changed since the reading began stays as it is. */
  take(list: Iterable<[string, T]>, whole: boolean): void
  /** The reading is over, taken in or not. */
  end(): void
}

/** Values by identifier, of which the stream tells changes one by one, and which are read as a list at times. A list says how
 * things were when the server made it: what the stream said after the request was sent is newer. */
export class Fresh<T> extends Map<string, T> {
  /** For each list that is being read, what changed since then. */
  #changed = new Set<Set<string>>()

  override set(id: string, value: T): this {
    // The constructor of Map may call this before the field is there.
    for (const since of this.#changed ?? []) since.add(id)
    return super.set(id, value)
  }

  override delete(id: string): boolean {
    for (const since of this.#changed) since.add(id)
    return super.delete(id)
  }

  /** Call this before the list is requested. */
  reading(): Reading<T> {
    const since = new Set<string>()
    this.#changed.add(since)
    return {
      take: (list, whole) => {
        const listed = new Map(list)
        for (const id of whole ? [...this.keys()] : []) if (!listed.has(id) && !since.has(id)) super.delete(id)
        for (const [id, value] of listed) if (!since.has(id)) super.set(id, value)
      },
      end: () => void this.#changed.delete(since),
    }
  }
}
