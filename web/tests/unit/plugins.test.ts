import { expect, it } from 'vitest'
import type { CommandOutputDetails, PluginState, Span } from '../../src/api'
import { reasonBeside } from '../../src/ui/cards'
import { sharing } from '../../src/views/Plugins'
import { nameOf, waited } from '../../src/views/Trace'

const span = (fields: Partial<Span>): Span => ({ kind: 'hook', name: 'llm.before_messages', start: 0, durationMs: 100, state: 'ok', facts: {}, ...fields })

it('names hooks as plugins know them', () => {
  expect(nameOf(span({ facts: { hook: 'experimental.chat.messages.transform' } }))).toBe('experimental.chat.messages.transform')
  expect(nameOf(span({}))).toBe('llm.before_messages')
  expect(nameOf(span({ kind: 'tool', name: 'bash', facts: { hook: 'x' } }))).toBe('bash')
})

it('takes the time of a question from that of the tool', () => {
  expect(waited(span({ kind: 'tool', facts: { waitedMs: 60 } }))).toBe(60)
  expect(waited(span({ kind: 'tool', facts: { waitedMs: 101 } }))).toBe(100)
  expect(waited(span({ kind: 'tool' }))).toBe(0)
})

it('knows which plugins share a process', () => {
  const plugin = (id: string, pid: number | null) => ({ id, pid }) as PluginState
  const all = [plugin('a', 1), plugin('b', 1), plugin('c', 2), plugin('d', null), plugin('e', null)]
  expect(all.map((it) => sharing(it, all))).toEqual([['b'], ['a'], [], [], []])
})

it('says why a call failed if the output of its command does not', () => {
  const printed = { type: 'commandOutput', data: { command: 'ls', stdout: 'a.txt\n', stderr: '', exitCode: 0 } } as unknown as CommandOutputDetails
  expect(reasonBeside('plugin x: I am broken', printed)).toBe('plugin x: I am broken')
  expect(reasonBeside('a.txt', printed)).toBeNull()
  expect(reasonBeside('a.txt\n\n(exit 1)', printed)).toBeNull()
  expect(reasonBeside('', printed)).toBeNull()
})
