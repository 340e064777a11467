import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'
import type { Waiting } from '../../src/api'
import { WaitingCard } from '../../src/ui/Waiting'

const markup = (waiting: unknown) => renderToStaticMarkup(<WaitingCard waiting={waiting as Waiting} />)

test('a card shows the beginning and the end of every fact', () => {
  const lines = Array.from({ length: 200 }, (_, n) => `echo ${n}`).join('\n')
  const made = markup({
    type: 'permission',
    request: { id: 'per_1', sessionID: 'ses_1', permission: 'bash', patterns: [], always: ['x'] },
    shown: { title: 'Run a command', facts: [{ name: 'command', text: lines }, { name: 'always', text: lines }] },
  })
  expect(made.match(/echo 199/g)).toHaveLength(2)
  expect(made.match(/… 185 lines, \d+ characters/g)).toHaveLength(2)
  expect(made).not.toContain('echo 100')
})

test('what a model asks hides nothing', () => {
  const made = markup({
    type: 'question',
    request: {
      id: 'que_1',
      sessionID: 'ses_1',
      questions: [{ header: 'h\u202Ex', question: `Go on?${'\n'.repeat(60)}And send it?\u200B`, options: [{ label: 'yes\u2066', description: `ok${' '.repeat(90)}not` }] }],
    },
  })
  for (const shown of ['h\\u{202e}x', '59 empty lines', 'And send it?\\u{200b}', 'yes\\u{2066}', 'ok␠×90not']) expect(made).toContain(shown)
})
