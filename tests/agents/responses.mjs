// OpenAI's Responses API, as Codex uses it.
import { COMMANDS, pieces, step } from './task.mjs'

const PATCH = '*** Begin Patch\n*** Update File: calc.txt\n@@\n-one\n+two\n*** End Patch\n'

const named = (body, name) => (body.tools ?? []).find((tool) => tool.name === name)

/** A command, by the tool that this version offers for it. */
function command(body, does) {
  const line = COMMANDS[does].command
  if (named(body, 'exec_command')) return { name: 'exec_command', arguments: { cmd: line } }
  if (named(body, 'shell_command')) return { name: 'shell_command', arguments: { command: line } }
  return { name: 'shell', arguments: { command: ['bash', '-lc', line] } }
}

function call(body, does, number) {
  const base = { id: `fc_${number}`, call_id: `call_${number}`, status: 'completed' }
  if (does !== 'change') {
    const { name, arguments: input } = command(body, does)
    return { ...base, type: 'function_call', name, arguments: JSON.stringify(input) }
  }
  if (named(body, 'apply_patch')?.type === 'function') return { ...base, type: 'function_call', name: 'apply_patch', arguments: JSON.stringify({ input: PATCH }) }
  return { ...base, type: 'custom_tool_call', name: 'apply_patch', input: PATCH }
}

export const responses = {
  serves: (url) => url.includes('/responses'),
  aside: () => undefined,

  async answer(body, _project, send) {
    const results = body.input.filter((item) => item.type?.endsWith('_call_output')).length
    const { number, thought, words, does } = step(results)
    const event = (type, rest) => send({ type, ...rest }, type)
    const response = { id: `resp_${number}`, object: 'response', status: 'in_progress', output: [] }
    await event('response.created', { response })
    let output_index = 0
    const item = async (begun, deltas, whole) => {
      await event('response.output_item.added', { output_index, item: begun })
      for (const [type, rest] of deltas) await event(type, { item_id: begun.id, output_index, ...rest })
      await event('response.output_item.done', { output_index, item: whole })
      output_index += 1
    }
    if (thought) {
      const begun = { type: 'reasoning', id: `rs_${number}`, summary: [] }
      const deltas = pieces(thought).map((delta) => ['response.reasoning_summary_text.delta', { summary_index: 0, delta }])
      const part = ['response.reasoning_summary_part.added', { summary_index: 0, part: { type: 'summary_text', text: '' } }]
      await item(begun, [part, ...deltas], { ...begun, summary: [{ type: 'summary_text', text: thought }] })
    }
    const begun = { type: 'message', id: `msg_${number}`, role: 'assistant', status: 'in_progress', content: [] }
    const deltas = pieces(words).map((delta) => ['response.output_text.delta', { content_index: 0, delta }])
    await item(begun, deltas, { ...begun, status: 'completed', content: [{ type: 'output_text', text: words, annotations: [] }] })
    if (does) {
      const called = call(body, does, number)
      await item(called, [], called)
    }
    const usage = { input_tokens: 12, input_tokens_details: { cached_tokens: 0 }, output_tokens: 20, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 32 }
    await event('response.completed', { response: { ...response, status: 'completed', usage } })
  },
}
