import { Signal } from './signal'

export interface Comment {
  id: number
  conversation: string
  path: string
  /** Of the new file; negative: of the old one. */
  line: number
  /** The line as it stands there. */
  code: string
  text: string
}

let next = 1
let all: Comment[] = []

/** Comments on changes, which go with the next prompt of their conversation. */
export const comments = {
  signal: new Signal(),
  of(conversation: string): Comment[] {
    return all.filter((one) => one.conversation === conversation)
  },
  add(comment: Omit<Comment, 'id'>): void {
    all = [...all, { ...comment, id: next++ }]
    comments.signal.changed()
  },
  remove(id: number): void {
    all = all.filter((one) => one.id !== id)
    comments.signal.changed()
  },
  /** They are sent. */
  clear(conversation: string): void {
    all = all.filter((one) => one.conversation !== conversation)
    comments.signal.changed()
  },
}

/** A prompt with comments before it, as a model reads it. */
export function withComments(text: string, list: Comment[]): string {
  if (!list.length) return text
  const lines = list.map((one) => {
    const where = `${one.path}:${Math.abs(one.line)}${one.line < 0 ? ' (removed line)' : ''}`
    const code = one.code.trim() ? `\n  > ${one.code.trim()}` : ''
    return `- ${where}${code}\n  ${one.text.replaceAll('\n', '\n  ')}`
  })
  return `Comments on your changes:\n\n${lines.join('\n')}${text.trim() ? `\n\n${text}` : ''}`
}
