import { diffWordsWithSpace, parsePatch, structuredPatch, type StructuredPatch } from 'diff'

export interface Line {
  kind: 'same' | 'old' | 'new'
  /** Numbers in the old and the new file. */
  old: number | null
  new: number | null
  text: string
  /** What of it differs from the line that it stands for. */
  marks?: { text: string; changed: boolean }[]
}

export interface Hunk {
  lines: Line[]
}

export interface FileChange {
  path: string
  hunks: Hunk[]
  added: number
  removed: number
  /** Too different to be compared in reasonable time. */
  tooLong: boolean
}

/** Steps after which a comparison is given up. */
const MAX_EDITS = 4000
/** Longer lines are not compared word by word. */
const MAX_WORDS = 600

export function compare(path: string, before: string, after: string): FileChange {
  const patch = structuredPatch(path, path, before, after, '', '', { context: 3, maxEditLength: MAX_EDITS, timeout: 1500 })
  if (!patch) {
    const count = (text: string) => (text ? text.split('\n').length : 0)
    return { path, hunks: [], added: count(after), removed: count(before), tooLong: true }
  }
  return fromPatch(path, [patch])
}

/** Changes of a unified patch. */
export function fromText(path: string, patch: string): FileChange {
  try {
    return fromPatch(path, parsePatch(patch))
  } catch {
    return { path, hunks: [], added: 0, removed: 0, tooLong: true }
  }
}

function fromPatch(path: string, patches: StructuredPatch[]): FileChange {
  const change: FileChange = { path, hunks: [], added: 0, removed: 0, tooLong: false }
  for (const hunk of patches.flatMap((patch) => patch.hunks)) {
    let [before, after] = [hunk.oldStart, hunk.newStart]
    const lines: Line[] = []
    for (const raw of hunk.lines) {
      const text = raw.slice(1)
      if (raw.startsWith('-')) {
        lines.push({ kind: 'old', old: before++, new: null, text })
        change.removed++
      } else if (raw.startsWith('+')) {
        lines.push({ kind: 'new', old: null, new: after++, text })
        change.added++
      } else if (raw.startsWith(' ')) {
        lines.push({ kind: 'same', old: before++, new: after++, text })
      }
    }
    mark(lines)
    change.hunks.push({ lines })
  }
  return change
}

/** Compares lines that took each other's place word by word. */
function mark(lines: Line[]): void {
  for (let index = 0; index < lines.length; ) {
    let end = index
    while (lines[end]?.kind === 'old') end++
    let last = end
    while (lines[last]?.kind === 'new') last++
    const [old, next] = [lines.slice(index, end), lines.slice(end, last)]
    if (old.length && old.length === next.length) old.forEach((line, n) => words(line, next[n] as Line))
    index = Math.max(last, index + 1)
  }
}

function words(old: Line, next: Line): void {
  if (old.text.length > MAX_WORDS || next.text.length > MAX_WORDS) return
  const parts = diffWordsWithSpace(old.text, next.text)
  const same = parts.filter((part) => !part.added && !part.removed).reduce((sum, part) => sum + part.value.trim().length, 0)
  // Lines with nothing in common are clearer without it.
  if (same * 3 < Math.min(old.text.trim().length, next.text.trim().length)) return
  old.marks = parts.filter((part) => !part.added).map((part) => ({ text: part.value, changed: part.removed ?? false }))
  next.marks = parts.filter((part) => !part.removed).map((part) => ({ text: part.value, changed: part.added ?? false }))
}

export interface Pair {
  left: Line | null
  right: Line | null
}

/** Lines side by side. */
export function sideBySide(lines: Line[]): Pair[] {
  const pairs: Pair[] = []
  for (let index = 0; index < lines.length; ) {
    const line = lines[index] as Line
    if (line.kind === 'same') {
      pairs.push({ left: line, right: line })
      index++
      continue
    }
    const old: Line[] = []
    const next: Line[] = []
    while (lines[index]?.kind === 'old') old.push(lines[index++] as Line)
    while (lines[index]?.kind === 'new') next.push(lines[index++] as Line)
    for (let n = 0; n < Math.max(old.length, next.length); n++) pairs.push({ left: old[n] ?? null, right: next[n] ?? null })
  }
  return pairs
}
