import type { Fields, Json } from '../../kernel/types'

export interface SeenRequest {
  number: number
  id: string
  method: string
  url: string
  status: number | null
}

export interface SeenLine {
  number: number
  level: string
  text: string
}

export interface SeenDownload {
  number: number
  name: string
  complete: boolean
}

export interface Dialog {
  type: string
  message: string
  /** The address of the frame that opened it. */
  url: string
}

/** What is kept of a tab at most. */
const MAX = 500

/** What a page has asked for, what it wrote to its console, and which dialog it has open. */
export class Records {
  #last = 0
  readonly #requests = new Map<number, SeenRequest[]>()
  readonly #lines = new Map<number, SeenLine[]>()
  readonly #downloads = new Map<number, SeenDownload[]>()
  /** What is being dragged, by tab. */
  readonly #drags = new Map<number, Json>()
  readonly #dialogs = new Map<number, Dialog>()
  /** Who waits for a dialog to open, by tab. */
  readonly #waiting = new Map<number, Set<() => void>>()

  /** What comes from now on belongs to what is done from now on. */
  mark(): number {
    return this.#last
  }

  requests(tab: number, since = 0): SeenRequest[] {
    return (this.#requests.get(tab) ?? []).filter((it) => it.number > since)
  }

  lines(tab: number, since = 0): SeenLine[] {
    return (this.#lines.get(tab) ?? []).filter((it) => it.number > since)
  }

  dialog(tab: number): Dialog | undefined {
    return this.#dialogs.get(tab)
  }

  downloads(tab: number, since = 0): SeenDownload[] {
    return (this.#downloads.get(tab) ?? []).filter((it) => it.number > since)
  }

  /** A download has come, all of it. */
  downloaded(tab: number, name: string): void {
    add(this.#downloads, tab, { number: ++this.#last, name, complete: true })
  }

  /** What is asked of a page that a dialog holds up is not answered before the dialog is: this ends when one opens, or the work does. */
  async unlessDialog<T>(tab: number, work: Promise<T>): Promise<T | undefined> {
    const waiting = this.#waiting.get(tab) ?? new Set()
    this.#waiting.set(tab, waiting)
    let opened: () => void = () => {}
    const dialog = new Promise<undefined>((resolve) => waiting.add((opened = () => resolve(undefined))))
    try {
      return await Promise.race([work, dialog])
    } finally {
      waiting.delete(opened)
    }
  }

  /** What the page has begun to drag since it was last asked about. */
  takeDrag(tab: number): Json | undefined {
    const data = this.#drags.get(tab)
    this.#drags.delete(tab)
    return data
  }

  forget(tab: number): void {
    this.#requests.delete(tab)
    this.#lines.delete(tab)
    this.#downloads.delete(tab)
    this.#dialogs.delete(tab)
  }

  /** An event of the DevTools protocol. */
  take(tab: number, method: string, params: Fields): void {
    switch (method) {
      case 'Network.requestWillBeSent': {
        const request = (params['request'] ?? {}) as Fields
        add(this.#requests, tab, { number: ++this.#last, id: String(params['requestId']), method: String(request['method']), url: String(request['url']), status: null })
        return
      }
      case 'Network.responseReceived': {
        const seen = this.#requests.get(tab)?.findLast((it) => it.id === params['requestId'])
        if (seen) seen.status = Number((params['response'] as Fields)['status'])
        return
      }
      case 'Runtime.consoleAPICalled': {
        const values = (params['args'] ?? []) as Fields[]
        const text = values.map((it) => String(it['value'] ?? it['description'] ?? '')).join(' ')
        add(this.#lines, tab, { number: ++this.#last, level: String(params['type']), text })
        return
      }
      case 'Runtime.exceptionThrown': {
        const details = (params['exceptionDetails'] ?? {}) as Fields
        const text = String((details['exception'] as Fields | undefined)?.['description'] ?? details['text'])
        add(this.#lines, tab, { number: ++this.#last, level: 'error', text })
        return
      }
      case 'Page.javascriptDialogOpening':
        this.#dialogs.set(tab, { type: String(params['type']), message: String(params['message']), url: String(params['url']) })
        for (const opened of this.#waiting.get(tab) ?? []) opened()
        return
      case 'Input.dragIntercepted':
        this.#drags.set(tab, params['data'] ?? null)
        return
      case 'Page.javascriptDialogClosed':
        this.#dialogs.delete(tab)
    }
  }
}

function add<T>(all: Map<number, T[]>, tab: number, one: T): void {
  const list = all.get(tab) ?? []
  list.push(one)
  all.set(tab, list.slice(-MAX))
}
