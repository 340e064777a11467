import type { ShownPermission, WaitingPermission } from '../api'

/** What is shown of a permission, by its place on the card. */
export interface Facts {
  /** As the server sent it: `pieces` makes it visible. */
  command: string
  /** A unified diff, with visible characters. */
  change: string
  /** As the server sent them. */
  rows: { name: string; text: string }[]
}

/** A longer run of one character, or of blanks, is shown by its length, as in the terminal. */
const MAX_RUN = 24
/** More empty lines in a row are counted. */
const MAX_EMPTY = 2
/** Characters of a row. A longer line counts as several. */
const ROW = 120
/** Rows at the beginning and at the end of a text that is longer than both, with the note between them. */
const HEAD = 10
const TAIL = 5

/** A part of a text: its own characters, or what we say of those that are not shown. */
export type Piece = { text: string } | { note: string; isCut: boolean }

/** Characters that a reader does not see, or that put others in another order, are shown by their numbers. */
export function visible(text: string): string {
  return text.replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Default_Ignorable_Code_Point}\u2028\u2029\u2800]/gu, (it) => (it === '\n' || it === '\t' ? it : `\\u{${(it.codePointAt(0) ?? 0).toString(16)}}`))
}

const isBlank = (it: string) => /^[\s\u2800\u180e]$/u.test(it)

/** A line on which nothing hides: not behind blanks, and not by characters that are not seen. */
export function plain(line: string): string {
  const runs: string[][] = []
  for (const it of line) {
    const run = runs.at(-1)
    if (run && (run[0] === it || (isBlank(run[0] ?? '') && isBlank(it)))) run.push(it)
    else runs.push([it])
  }
  const shown = runs.map((run) => {
    if (run.length <= MAX_RUN) return visible(run.join(''))
    const first = run[0] ?? ''
    const isOne = run.every((it) => it === first)
    return `${[' ', '\t', '\n'].includes(first) || !isOne ? '␠' : visible(first)}×${run.length}`
  })
  return shown.join('')
}

/** A text with its beginning and its end, and what is left out between them. `whole` leaves nothing out. */
export function pieces(text: string, whole = false): Piece[] {
  const rows = rowsOf(text)
  if (whole || rows.length <= HEAD + 1 + TAIL) return joined(rows)
  const between = rows.slice(HEAD, -TAIL)
  const lines = between.reduce((sum, row) => sum + row.lines, 0)
  const characters = between.reduce((sum, row) => sum + row.text.length, 0)
  return [...joined(rows.slice(0, HEAD)), { note: `… ${lines} lines, ${characters} characters`, isCut: true }, ...joined(rows.slice(-TAIL))]
}

/** A piece of a line. `lines`: how many lines begin in it. */
interface Row {
  text: string
  note: boolean
  lines: number
}

function rowsOf(text: string): Row[] {
  const rows: Row[] = []
  const lines = text.replace(/\n+$/, '').split('\n')
  for (let at = 0; at < lines.length; ) {
    let end = at
    while (end < lines.length && [...(lines[end] ?? '')].every(isBlank)) end++
    if (end - at > MAX_EMPTY) {
      rows.push({ text: `${end - at} empty lines`, note: true, lines: end - at })
      at = end
      continue
    }
    const characters = [...plain(lines[at] ?? '')]
    for (let from = 0; from === 0 || from < characters.length; from += ROW)
      rows.push({ text: characters.slice(from, from + ROW).join(''), note: false, lines: from === 0 ? 1 : 0 })
    at++
  }
  return rows
}

/** Rows of one line, and lines, in a row are one text. */
function joined(rows: Row[]): Piece[] {
  const pieces: Piece[] = []
  for (const row of rows) {
    const last = pieces.at(-1)
    if (row.note) pieces.push({ note: row.text, isCut: false })
    else if (last && 'text' in last) last.text += (row.lines ? '\n' : '') + row.text
    else pieces.push({ text: row.text })
  }
  return pieces
}

/** The server says what is shown; here it gets its place. */
export function place(shown: ShownPermission): Facts {
  const of = (wanted: string) => shown.facts.find(({ name }) => name === wanted)?.text ?? ''
  return {
    command: of('command'),
    change: visible(of('change')),
    rows: shown.facts.filter(({ name }) => name !== 'command' && name !== 'change'),
  }
}

/** The file that a change is shown for. */
export function changedFile({ shown, request }: WaitingPermission): string {
  return visible(shown.facts.find(({ name }) => name === 'file')?.text ?? request.patterns[0] ?? 'file')
}
