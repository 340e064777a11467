import { useCallback, useSyncExternalStore } from 'react'

/** Notifies those who look at something that it has changed: once for all changes that come together. */
export class Signal {
  #listeners = new Set<() => void>()
  #version = 0
  #scheduled = false

  get version(): number {
    return this.#version
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** Something has changed. Whoever shows it is called before the next frame. */
  changed(): void {
    this.#version++
    if (this.#scheduled || !this.#listeners.size) return
    this.#scheduled = true
    const flush = () => {
      this.#scheduled = false
      for (const listener of this.#listeners) listener()
    }
    // No frame is drawn in the background.
    if (typeof document === 'undefined' || document.hidden) setTimeout(flush, 50)
    else requestAnimationFrame(flush)
  }
}

/** Draws anew when it changes. */
export function useSignal(signal: Signal): number {
  return useSyncExternalStore(signal.subscribe, () => signal.version)
}

/** Signals by name, for lists of which only some rows are looked at. */
export class Signals {
  #all = new Map<string, { version: number; listeners: Set<() => void> }>()
  #pending = new Set<string>()

  subscribe(name: string, listener: () => void): () => void {
    const one = this.#all.get(name) ?? { version: 0, listeners: new Set() }
    this.#all.set(name, one)
    one.listeners.add(listener)
    return () => {
      one.listeners.delete(listener)
      if (!one.listeners.size) this.#all.delete(name)
    }
  }

  version(name: string): number {
    return this.#all.get(name)?.version ?? 0
  }

  changed(names: Iterable<string>): void {
    const first = this.#pending.size === 0
    for (const name of names) if (this.#all.has(name)) this.#pending.add(name)
    if (!first || !this.#pending.size) return
    const flush = () => {
      const due = [...this.#pending]
      this.#pending.clear()
      for (const name of due) {
        const one = this.#all.get(name)
        if (!one) continue
        one.version++
        for (const listener of one.listeners) listener()
      }
    }
    if (typeof document === 'undefined' || document.hidden) setTimeout(flush, 50)
    else requestAnimationFrame(flush)
  }
}

export function useNamed(signals: Signals, name: string): number {
  const subscribe = useCallback((listener: () => void) => signals.subscribe(name, listener), [signals, name])
  return useSyncExternalStore(subscribe, () => signals.version(name))
}
