import type { Fields, Json, ToolOutput } from '../kernel/types'
import type { Host } from '../session/host'
import { BROWSER } from './browser/tools'
import { FILES } from './files'
import { SHELL } from './shell'
import type { Tool } from './tool'

/** The tools that there are. */
export class Tools {
  readonly #all: Tool[] = [...FILES, SHELL, ...BROWSER.map(masked)]

  constructor(private readonly host: Host) {}

  find(name: string): Tool | undefined {
    return this.#all.find((tool) => tool.name === name)
  }

  /** The tools that the model is offered, as the hooks of `llm.tool_definition` describe them: all of them are one batch. */
  async offered(session: string): Promise<Tool[]> {
    const rules = this.host.settings.rules()
    const isBridged = this.host.settings.current.bridge !== ''
    const allowed = this.#all.filter(({ name }) => this.host.kernel.call('rule.offered', { tool: name, rules }))
    const tools = allowed.filter(({ contract }) => contract !== 'exec' || isBridged)
    const items = tools.map(({ name, description, parameters }) => ({ input: { toolID: name }, output: { description, parameters } }))
    const folded = await this.host.hooks.runBatch('llm.tool_definition', items, { session, turn: '' })
    return tools.map((tool, place) => {
      const left = (folded[place]?.output ?? {}) as Fields
      const description = typeof left['description'] === 'string' ? left['description'] : tool.description
      // What a bridge changes is planned by nobody, so it is not done again.
      const repeatable = tool.repeatable && !(isBridged && ['write', 'edit'].includes(tool.contract))
      return { ...tool, description, repeatable }
    })
  }
}

/** A tool of the browser, whose answer has the names of secrets in place of their values. */
function masked(tool: Tool): Tool {
  return {
    ...tool,
    async run(input, context) {
      const answer = await tool.run(input, context)
      return hidden(answer as unknown as Json, (text) => context.host.settings.secrets.hide(text)) as unknown as ToolOutput
    },
  }
}

function hidden(value: Json, hide: (text: string) => string, key = ''): Json {
  // Pictures are long, and no text.
  if (typeof value === 'string') return key === 'attachments' ? value : hide(value)
  if (Array.isArray(value)) return value.map((it) => hidden(it, hide, key))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, hidden(it, hide, key === 'attachments' ? key : name)]))
}
