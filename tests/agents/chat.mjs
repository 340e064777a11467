// OpenAI's chat completions, as OpenCode uses them.
import path from 'node:path'
import { COMMANDS, pieces, step } from './task.mjs'

const calls = (project) => ({
  read: { name: 'read', input: { filePath: path.join(project, 'calc.txt') } },
  change: { name: 'edit', input: { filePath: path.join(project, 'calc.txt'), oldString: 'one\n', newString: 'two\n' } },
  test: { name: 'bash', input: COMMANDS.test },
  remove: { name: 'bash', input: COMMANDS.remove },
})

export const chat = {
  serves: (url) => url.includes('/chat/completions'),
  aside: () => undefined,

  async answer(body, project, send) {
    const results = body.messages.filter((message) => message.role === 'tool').length
    // Without tools a title is asked for.
    const { number, thought, words, does } = body.tools?.length ? step(results) : { number: 0, words: 'A title' }
    const chunk = (rest) => send({ id: `chatcmpl-${number}`, object: 'chat.completion.chunk', created: 1, model: body.model, ...rest })
    const delta = (content, finish_reason = null) => chunk({ choices: [{ index: 0, delta: content, finish_reason }] })
    await delta({ role: 'assistant', content: '' })
    for (const reasoning_content of pieces(thought ?? '')) await delta({ reasoning_content })
    for (const content of pieces(words)) await delta({ content })
    if (does) {
      const { name, input } = calls(project)[does]
      await delta({ tool_calls: [{ index: 0, id: `call_${number}`, type: 'function', function: { name, arguments: JSON.stringify(input) } }] })
    }
    await delta({}, does ? 'tool_calls' : 'stop')
    await chunk({ choices: [], usage: { prompt_tokens: 12, completion_tokens: 20, total_tokens: 32 } })
    await send('[DONE]')
  },
}
