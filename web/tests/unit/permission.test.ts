import { expect, test } from 'vitest'
import { place, visible } from '../../src/lib/permission'

test('every fact of the server has a place, in its order', () => {
  const facts = [
    { name: 'by', text: 'user prompted, plugin acme changed' },
    { name: 'runs', text: 'npm test\nrm -r x' },
    { name: 'command', text: 'npm test; rm\u202E -r x' },
    { name: 'later', text: 'what this page has not heard of' },
    { name: 'change', text: '--- a\n+++ b\n' },
  ]
  expect(place({ title: 'Run a command', facts })).toEqual({
    command: 'npm test; rm\\u{202e} -r x',
    change: '--- a\n+++ b\n',
    rows: [facts[0], facts[1], facts[3]],
  })
})

test('what reorders or hides text is shown by its number', () => {
  for (const code of [0x34f, 0x115f, 0x1160, 0x17b4, 0x180b, 0x3164, 0xfe0f, 0xffa0, 0xe0100, 0x2800])
    expect(visible(String.fromCodePoint(code))).toBe(`\\u{${code.toString(16)}}`)
  expect(visible('a\u202Eb\u200Bc\u001B[2Jd\r\n\te')).toBe('a\\u{202e}b\\u{200b}c\\u{1b}[2Jd\\u{d}\n\te')
})
