import type { ShownPermission, WaitingPermission } from '../api'

/** What is shown of a permission, by its place on the card. */
export interface Facts {
  command: string
  /** A unified diff. */
  change: string
  rows: { name: string; text: string }[]
}

/** Characters that a reader does not see, or that put others in another order, are shown by their numbers. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu, (it) => (it === '\n' || it === '\t' ? it : `\\u{${(it.codePointAt(0) ?? 0).toString(16)}}`))
}

/** The server says what is shown; here it gets its place. */
export function place(shown: ShownPermission): Facts {
  const facts = shown.facts.map(({ name, text }) => ({ name, text: visible(text) }))
  const of = (wanted: string) => facts.find(({ name }) => name === wanted)?.text ?? ''
  return {
    command: of('command'),
    change: of('change'),
    rows: facts.filter(({ name }) => name !== 'command' && name !== 'change'),
  }
}

/** The file that a change is shown for. */
export function changedFile({ shown, request }: WaitingPermission): string {
  return visible(shown.facts.find(({ name }) => name === 'file')?.text ?? request.patterns[0] ?? 'file')
}
