/** Finds a secret in a text, however a page, an address or a request writes it; the native browser does the same (`masked.rs`). */

/** Puts `name` in place of a secret's value. */
export function mask(text: string, value: string, name: string): string {
  let masked = text.replace(pattern(value), () => name)
  for (const form of base64(value)) masked = masked.replaceAll(form, () => name)
  return masked
}

const ENTITIES: Record<string, string> = { '&': 'amp', '<': 'lt', '>': 'gt', '"': 'quot', "'": 'apos', ' ': 'nbsp' }
const ESCAPES: Record<string, string> = { '\n': 'n', '\t': 't', '\r': 'r', '"': '"', '\\': '\\', '/': '/', "'": "'" }

/** A pattern in which each character may be written in its own way: as it is, percent-encoded, as a form sends it, in HTML, in JSON. */
function pattern(value: string): RegExp {
  const characters = [...value].map((c) => {
    const code = c.codePointAt(0) ?? 0
    const bytes = [...new TextEncoder().encode(c)].map((byte) => `%${anyCase(byte.toString(16).padStart(2, '0'))}`)
    const forms = [literal(c), bytes.join(''), `&#0*${code};`, `&#[xX]0*${anyCase(code.toString(16))};`]
    if (code <= 0xff_ff) forms.push(`\\\\u${anyCase(code.toString(16).padStart(4, '0'))}`)
    if (c === ' ') forms.push('\\+')
    if (ENTITIES[c]) forms.push(`&${ENTITIES[c]};`)
    if (ESCAPES[c]) forms.unshift(`\\\\${literal(ESCAPES[c])}`)
    return `(?:${forms.join('|')})`
  })
  return new RegExp(characters.join(''), 'gu')
}

function literal(text: string): string {
  return text.replaceAll(/[\^$\\.*+?()[\]{}|/-]/g, (c) => `\\${c}`)
}

/** Hexadecimal digits in both cases. */
function anyCase(digits: string): string {
  return digits.replaceAll(/[a-f]/g, (c) => `[${c}${c.toUpperCase()}]`)
}

/** The shortest form in base64 that is looked for. */
const MIN = 6

/** What stands for a value in base64, in both alphabets, wherever in the encoded bytes it begins: without characters that other bytes have a part in. */
function base64(value: string): string[] {
  const bytes = new TextEncoder().encode(value)
  const forms = new Set<string>()
  for (const [before, skipped] of [[0, 0], [1, 2], [2, 3]] as const) {
    const whole = btoa(String.fromCharCode(...new Uint8Array(before), ...bytes))
    const form = whole.slice(skipped, Math.floor(((before + bytes.length) * 8) / 6))
    if (form.length < MIN) continue
    forms.add(form)
    forms.add(form.replaceAll('+', '-').replaceAll('/', '_'))
  }
  return [...forms]
}
