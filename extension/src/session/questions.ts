import type { Ask } from '../tools/tool'

/** A question that waits for a person. */
export interface Question extends Ask {
  id: string
  session: string
}

export type Reply = 'once' | 'always' | 'reject'

/** Permission questions: the panel shows them and answers. They are the worker's own; a call that waited when it died is not made. */
export class Questions {
  readonly #open = new Map<string, { question: Question; answer: (reply: Reply) => void }>()

  constructor(
    private readonly changed: () => void,
    private readonly always: (ask: Ask) => Promise<void>,
  ) {}

  list(): Question[] {
    return [...this.#open.values()].map(({ question }) => question)
  }

  async ask(session: string, ask: Ask, stopped: AbortSignal): Promise<boolean> {
    const question = { ...ask, id: crypto.randomUUID(), session }
    const reply = await new Promise<Reply>((answer) => {
      this.#open.set(question.id, { question, answer })
      stopped.addEventListener('abort', () => answer('reject'))
      this.changed()
    })
    this.#open.delete(question.id)
    this.changed()
    if (reply === 'always' && ask.always !== null) await this.always(ask)
    return reply !== 'reject'
  }

  answer(id: string, reply: Reply): boolean {
    const open = this.#open.get(id)
    open?.answer(reply)
    return open !== undefined
  }
}
