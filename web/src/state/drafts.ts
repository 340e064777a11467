import { Signal } from './signal'

const all = new Map<string, string>()

/** Prompts that are being written, by their conversation. */
export const drafts = {
  signal: new Signal(),
  of(conversation: string): string {
    return all.get(conversation) ?? ''
  },
  write(conversation: string, text: string): void {
    all.set(conversation, text)
    drafts.signal.changed()
  },
}
