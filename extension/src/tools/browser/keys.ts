/** Keys by their names, as the DevTools protocol wants them. */
export interface Press {
  key: string
  code: string
  number: number
  text: string
  modifiers: number
}

/** Name, number, text. */
const NAMED: Record<string, [number, string]> = {
  Enter: [13, '\r'], Tab: [9, ''], Escape: [27, ''], Backspace: [8, ''], Delete: [46, ''], Home: [36, ''], End: [35, ''], PageUp: [33, ''],
  PageDown: [34, ''], ArrowUp: [38, ''], ArrowDown: [40, ''], ArrowLeft: [37, ''], ArrowRight: [39, ''],
}
const BITS: Record<string, number> = { Alt: 1, Control: 2, Ctrl: 2, Meta: 4, Command: 4, Shift: 8 }

/** A key with those that are held, as `Control+Shift+a`; null where there is none of that name. */
export function chord(text: string): Press | null {
  const held = text.endsWith('++') ? text.slice(0, -2).split('+') : text.split('+').slice(0, -1)
  const last = text.endsWith('+') ? '+' : (text.split('+').at(-1) ?? '')
  let modifiers = 0
  for (const name of held.filter((it) => it !== '')) {
    const bit = BITS[name]
    if (bit === undefined) return null
    modifiers |= bit
  }
  const named = NAMED[last]
  if (named) return { key: last, code: last, number: named[0], text: modifiers & ~8 ? '' : named[1], modifiers }
  if ([...last].length !== 1) return null
  const upper = last.toUpperCase()
  const isLetter = /^[A-Z]$/.test(upper)
  const isDigit = /^[0-9]$/.test(last)
  const code = isLetter ? `Key${upper}` : isDigit ? `Digit${last}` : ''
  return { key: last, code, number: code ? upper.charCodeAt(0) : 0, text: modifiers & ~8 ? '' : last, modifiers }
}
