/** How long a tab that a page has opened may take to come to the front, in milliseconds. */
const OPENING = 2_000

/** Which tab each window shows, so that a pop-up of an agent's page does not stay where the person works. */
export class Front {
  readonly #windows = new Map<number, { now: number; before: number | undefined }>()
  /** Tabs that pages have just opened, with when. */
  readonly #opened = new Map<number, number>()

  constructor() {
    chrome.tabs.onActivated.addListener(({ tabId, windowId }) => {
      const known = this.#windows.get(windowId)
      if (known?.now !== tabId) this.#windows.set(windowId, { now: tabId, before: known?.now })
      this.#giveBack(tabId, windowId)
    })
  }

  async load(): Promise<void> {
    for (const { id, windowId } of await chrome.tabs.query({ active: true })) {
      if (id !== undefined && !this.#windows.has(windowId)) this.#windows.set(windowId, { now: id, before: undefined })
    }
  }

  /** A page of an agent's tab has opened a tab: the one that was in front comes back. */
  async opened(tab: number): Promise<void> {
    this.#opened.set(tab, Date.now())
    const { active, windowId } = await chrome.tabs.get(tab)
    if (active) this.#giveBack(tab, windowId)
  }

  #giveBack(tab: number, window: number): void {
    const at = this.#opened.get(tab)
    const known = this.#windows.get(window)
    if (at === undefined || known?.now !== tab) return
    this.#opened.delete(tab)
    // The tab that was in front may be closed by now.
    if (known.before !== undefined && Date.now() - at < OPENING) void chrome.tabs.update(known.before, { active: true }).catch(() => {})
  }
}
