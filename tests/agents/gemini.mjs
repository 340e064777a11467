// Gemini's `generateContent`, as Gemini CLI uses it.
import path from 'node:path'
import { COMMANDS, pieces, step } from './task.mjs'

const calls = (project) => ({
  read: { name: 'read_file', args: { file_path: path.join(project, 'calc.txt') } },
  change: { name: 'replace', args: { file_path: path.join(project, 'calc.txt'), old_string: 'one\n', new_string: 'two\n', instruction: 'Change one to two', allow_multiple: false } },
  test: { name: 'run_shell_command', args: COMMANDS.test },
  remove: { name: 'run_shell_command', args: COMMANDS.remove },
})

const answerOf = (parts, finishReason) => ({
  candidates: [{ index: 0, content: { role: 'model', parts }, ...(finishReason && { finishReason }) }],
  usageMetadata: { promptTokenCount: 12, candidatesTokenCount: 20, totalTokenCount: 32 },
})

export const gemini = {
  serves: (url) => url.includes(':generateContent') || url.includes(':streamGenerateContent') || url.includes(':countTokens'),

  aside(url) {
    if (url.includes(':countTokens')) return { totalTokens: 12 }
    return url.includes(':generateContent') ? answerOf([{ text: '{}' }], 'STOP') : undefined
  },

  async answer(body, project, send) {
    const results = body.contents.flatMap((content) => content.parts ?? []).filter((part) => part.functionResponse).length
    const { number, thought, words, does } = step(results)
    // A thought comes whole, its subject before it.
    const said = [...(thought ? [{ text: `**The plan** ${thought}`, thought: true }] : []), ...pieces(words).map((text) => ({ text }))]
    for (const part of said) await send(answerOf([part]))
    const last = does ? { functionCall: { id: `fc_${number}`, ...calls(project)[does] } } : { text: '' }
    await send(answerOf([last], 'STOP'))
  },
}
