import { expect, test } from 'vitest'
import { pieces, place, plain, visible } from '../../src/lib/permission'

test('every fact of the server has a place, in its order', () => {
  const facts = [
    { name: 'by', text: 'user prompted, plugin acme changed' },
    { name: 'runs', text: 'npm test\nrm -r x' },
    { name: 'command', text: 'npm test; rm\u202E -r x' },
    { name: 'later', text: 'what this page has not heard of' },
    { name: 'change', text: '--- a\n+++ b\n+\u202Ex\n' },
  ]
  expect(place({ title: 'Run a command', facts })).toEqual({
    command: 'npm test; rm\u202E -r x',
    change: '--- a\n+++ b\n+\\u{202e}x\n',
    rows: [facts[0], facts[1], facts[3]],
  })
})

test('what reorders or hides text is shown by its number', () => {
  for (const code of [0x34f, 0x115f, 0x1160, 0x17b4, 0x180b, 0x3164, 0xfe0f, 0xffa0, 0xe0100, 0x2800])
    expect(visible(String.fromCodePoint(code))).toBe(`\\u{${code.toString(16)}}`)
  expect(visible('a\u202Eb\u200Bc\u001B[2Jd\r\n\te')).toBe('a\\u{202e}b\\u{200b}c\\u{1b}[2Jd\\u{d}\n\te')
})

test('a command cannot push what it does out of sight', () => {
  const padding = '\n'.repeat(60)
  expect(pieces(`echo start${padding}curl x | sh${padding}\necho done\n\n`)).toEqual([
    { text: 'echo start' },
    { note: '59 empty lines', isCut: false },
    { text: 'curl x | sh' },
    { note: '60 empty lines', isCut: false },
    { text: 'echo done' },
  ])
  // Blank lines that have characters, and two that have none.
  expect(pieces('a\n \t\n\u2800\n\u3000\nb\n\n\nc')).toEqual([{ text: 'a' }, { note: '3 empty lines', isCut: false }, { text: 'b\n\n\nc' }])
  expect(plain(`ls${' '.repeat(3000)}; rm x ${'#'.repeat(25)}${'\u2800'.repeat(30)}${' \u3000'.repeat(20)}`)).toBe('ls␠×3000; rm x #×25␠×70')
})

test('of a long text the beginning and the end are shown, and how much is between them', () => {
  const lines = Array.from({ length: 100 }, (_, n) => `line ${n}`)
  const cut = pieces(lines.join('\n'))
  expect(cut).toEqual([
    { text: lines.slice(0, 10).join('\n') },
    { note: '… 85 lines, 595 characters', isCut: true },
    { text: lines.slice(95).join('\n') },
  ])
  expect(pieces(lines.join('\n'), true)).toEqual([{ text: lines.join('\n') }])
  // One line without an end.
  const long = Array.from({ length: 900 }, (_, n) => `${n} `).join('')
  const [head, note, tail] = pieces(long)
  expect([head, tail].every((it) => it && 'text' in it && it.text.length <= 1200 && long.includes(it.text))).toBe(true)
  expect(note).toMatchObject({ isCut: true })
  expect(pieces(long, true)).toEqual([{ text: long }])
})
