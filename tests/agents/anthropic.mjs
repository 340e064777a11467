// Anthropic's Messages API, as Claude Code uses it.
import path from 'node:path'
import { COMMANDS, pieces, step } from './task.mjs'

const calls = (project) => ({
  read: { name: 'Read', input: { file_path: path.join(project, 'calc.txt') } },
  change: { name: 'Edit', input: { file_path: path.join(project, 'calc.txt'), old_string: 'one\n', new_string: 'two\n' } },
  test: { name: 'Bash', input: COMMANDS.test },
  remove: { name: 'Bash', input: COMMANDS.remove },
})

const blocks = (message) => (Array.isArray(message.content) ? message.content : [])
const offers = (body, name) => (body.tools ?? []).some((tool) => tool.name === name)

export const anthropic = {
  serves: (url) => url.includes('/v1/messages'),

  /** A title, a summary, how many tokens there are: whatever is asked beside the task. */
  aside(url, body) {
    if (url.includes('count_tokens')) return { input_tokens: 12 }
    if (offers(body, 'Bash') && body.stream) return undefined
    return { id: 'msg_aside', type: 'message', role: 'assistant', model: body.model, content: [{ type: 'text', text: 'A title' }], stop_reason: 'end_turn', stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } }
  },

  async answer(body, project, send) {
    const results = body.messages.flatMap(blocks).filter((block) => block.type === 'tool_result').length
    const { number, thought, words, does } = offers(body, 'Bash') ? step(results) : { number: 0, words: 'A title' }
    const event = (type, rest) => send({ type, ...rest }, type)
    const usage = { input_tokens: 12, output_tokens: 1 }
    await event('message_start', { message: { id: `msg_${number}`, type: 'message', role: 'assistant', model: body.model, content: [], stop_reason: null, stop_sequence: null, usage } })
    let index = 0
    const block = async (content_block, deltas) => {
      await event('content_block_start', { index, content_block })
      for (const delta of deltas) await event('content_block_delta', { index, delta })
      await event('content_block_stop', { index })
      index += 1
    }
    if (thought) {
      const deltas = pieces(thought).map((thinking) => ({ type: 'thinking_delta', thinking }))
      await block({ type: 'thinking', thinking: '', signature: '' }, [...deltas, { type: 'signature_delta', signature: 'c2ln' }])
    }
    await block({ type: 'text', text: '' }, pieces(words).map((text) => ({ type: 'text_delta', text })))
    if (does) {
      const { name, input } = calls(project)[does]
      await block({ type: 'tool_use', id: `toolu_${number}`, name, input: {} }, [{ type: 'input_json_delta', partial_json: JSON.stringify(input) }])
    }
    await event('message_delta', { delta: { stop_reason: does ? 'tool_use' : 'end_turn', stop_sequence: null }, usage: { output_tokens: 20 } })
    await event('message_stop', {})
  },
}
