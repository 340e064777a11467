import { describe, expect, it } from 'vitest'
import { changesOf } from '../../src/hooks/pipeline'
import { type ChatMessage, toWire } from '../../src/model/history'
import { mask } from '../../src/session/masked'
import { chord } from '../../src/tools/browser/keys'
import { replaced } from '../../src/tools/files'
import { normal } from '../../src/workspace/path'

describe('paths of the workspace', () => {
  it('are without dots, and do not lead out', () => {
    expect(['a/./b', '/a//b/', 'a/c/../b'].map(normal)).toEqual(['a/b', 'a/b', 'a/b'])
    expect(() => normal('a/../../b')).toThrow('leads out of the workspace')
  })
})

describe('a secret', () => {
  it('is found however it is written, as natively (masked.rs)', () => {
    const value = 'p@ss/CANARY <22"7é'
    const written = [
      value, 'p%40ss%2FCANARY+%3C22%227%C3%A9', 'p%40ss%2fCANARY%20%3c22%227%c3%a9', 'p@ss/CANARY &lt;22&quot;7&#xe9;', 'p&#64;ss/CANARY&nbsp;&lt;22&#34;7é',
      'p@ss\\/CANARY <22\\"7\\u00e9', '%70%40%73%73/CANARY%20<22%227é',
    ]
    for (const text of written) expect(mask(`a=${text}&b`, value, '[it]')).toBe('a=[it]&b')
    const others = ['cEBzcy9DQU5BUlk=', 'dTpwQHNzL0NBTkFSWQ==', 'p%4ss% &am \\', '&#99999999999; \\u12 é']
    expect(others.map((text) => mask(text, 'p@ss/CANARY', '[it]'))).toEqual(['[it]k=', 'dTp[it]Q==', ...others.slice(2)])
  })
})

describe('keys', () => {
  it('have names, and others that are held', () => {
    expect(chord('Enter')?.text).toBe('\r')
    expect(chord('Control+a')).toMatchObject({ modifiers: 2, code: 'KeyA', number: 65, text: '' })
    expect(chord('Shift+Tab')?.modifiers).toBe(8)
    expect(chord('Control++')?.key).toBe('+')
    expect(chord('é')?.text).toBe('é')
    expect(['', 'Enterr', 'Hyper+a'].map(chord)).toEqual([null, null, null])
  })
})

describe('what a hook changed', () => {
  it('is found key by key; absent is not null', () => {
    expect(changesOf({ a: 1, b: { c: 2 }, d: 0 }, { a: 1, b: { c: 3 }, e: null })).toEqual([{ path: ['d'] }, { path: ['b'], value: { c: 3 } }, { path: ['e'], value: null }])
    expect(changesOf({ a: [1] }, { a: [1] })).toEqual([])
    expect(changesOf({ a: 1 }, 'text')).toEqual([{ path: [], value: 'text' }])
  })
})

describe('an edit', () => {
  const edit = (input: Record<string, string | boolean>) => replaced('one two one', { newString: '$&', ...input }, 'f')
  it('needs its old text once, and puts in the new one as it is', () => {
    expect(edit({ oldString: 'two' })).toBe('one $& one')
    expect(edit({ oldString: 'one', replaceAll: true })).toBe('$& two $&')
    expect(() => edit({ oldString: 'one' })).toThrow('2 times')
    expect(() => edit({ oldString: 'three' })).toThrow('does not have')
  })
})

describe('the conversation on the wire', () => {
  const message = (role: 'user' | 'assistant', ...parts: object[]) => ({ info: { id: 'm', sessionID: 's', role }, parts }) as unknown as ChatMessage
  it('has an answer for every call, and no message without content', () => {
    const call = { type: 'tool', callID: 'c', tool: 'read', state: { status: 'error', input: { a: 1 }, error: 'no' } }
    const wire = toWire(['sys'], [message('user', { type: 'text', text: 'hi' }), message('assistant'), message('assistant', call, { ...call, callID: 'd', state: { status: 'running' } })])
    expect(wire.map((it) => [it.role, it.content, it.tool_call_id])).toEqual([
      ['system', 'sys', undefined],
      ['user', 'hi', undefined],
      ['assistant', null, undefined],
      ['tool', 'no', 'c'],
      ['tool', 'The call has not ended.', 'd'],
    ])
    expect(wire[2]?.tool_calls?.[0]).toEqual({ id: 'c', type: 'function', function: { name: 'read', arguments: '{"a":1}' } })
  })
})
