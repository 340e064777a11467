import type { Conversation as Info, Entry } from '../api'
import { Conversation } from '../state/conversation'
import type { Open } from '../state/live'
import { Signal, Signals } from '../state/signal'

/** What `outrigger export --format json` writes. */
export interface Document {
  conversations: { conversation: Info; origin?: Origin; entries: Entry[] }[]
}

export interface Origin {
  program: string
  version?: string
  session: string
  directory?: string
}

/** A conversation of the file, with what the rows of the page ask of one that is open. */
export interface Shown {
  info: Info
  origin: Origin | undefined
  open: Open
}

/** The conversations of the file, in its order. Text that is no document holds none. */
export function read(text: string): Shown[] {
  let document: Document
  try {
    document = JSON.parse(text) as Document
  } catch {
    return []
  }
  return document.conversations.map(({ conversation, origin, entries }) => ({ info: conversation, origin, open: whole(conversation.id, entries) }))
}

/** All of it is there: nothing is asked for, dropped or written any more. */
function whole(id: string, entries: Entry[]): Open {
  const model = new Conversation(id)
  model.page({ entries, next: null, event: 0 }, null)
  const open = { id, model, rows: new Signal(), keys: new Signals(), loading: false, error: null }
  return open as unknown as Open
}
