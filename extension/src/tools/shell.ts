import { type Ask, object, type Tool, ToolError } from './tool'

/** Command lines, which a bridge executes (`Bridge.invoke`): there is no shell in a browser. What it executes, the bridge says. */
export const SHELL: Tool = {
  name: 'bash',
  description: 'Executes a command line in the folder of the user\'s machine that a bridge is connected to, within what that bridge allows, and shows what it prints.',
  parameters: object(
    {
      command: { type: 'string', minLength: 1 },
      workdir: { type: 'string', description: 'a folder in that of the bridge' },
      timeout: { type: 'integer', minimum: 1, description: 'milliseconds' },
      description: { type: 'string', description: 'what it is for, for the user' },
    },
    ['command'],
  ),
  contract: 'exec',
  repeatable: false,
  async permissions(input): Promise<Ask[]> {
    const pattern = String(input['command'])
    return [{ permission: 'bash', pattern, always: pattern, title: `Execute on this machine, over the bridge: ${pattern}` }]
  },
  async run(_, { provider }) {
    throw new ToolError('tool.unavailable', `the provider ${provider} executes no commands`)
  },
}
