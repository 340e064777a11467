import type { Fields, Json } from '../kernel/types'
import type { ChatMessage } from '../model/history'
import type { Tool } from '../tools/tool'

/** The request to the model that is being made, as hooks have left it so far. */
export class Request {
  tools: Tool[] = []
  messages: ChatMessage[] = []
  system: string[] = []
  params: Fields = {}
  headers: Record<string, string> = {}

  /** Takes what the hooks of a point left; what is not in its form is left as it was. */
  keep(point: string, output: Json): void {
    const left = (output ?? {}) as Fields
    switch (point) {
      case 'llm.before_messages':
        if (Array.isArray(left['messages'])) this.messages = left['messages'] as unknown as ChatMessage[]
        return
      case 'llm.before_system':
        if (Array.isArray(left['system'])) this.system = left['system'].filter((text): text is string => typeof text === 'string' && text !== '')
        return
      case 'llm.before_params':
        this.params = left
        return
      case 'llm.before_headers':
        for (const [name, value] of Object.entries((left['headers'] ?? {}) as Fields)) if (typeof value === 'string') this.headers[name] = value
    }
  }

  /** Takes what the hooks of the whole request left. A tool that was not offered is not added. */
  sent(output: Json): void {
    const left = (output ?? {}) as Fields
    if (Array.isArray(left['messages'])) this.messages = left['messages'] as unknown as ChatMessage[]
    if (Array.isArray(left['tools'])) {
      const names = left['tools'].map((tool) => (tool as Fields)['name'])
      this.tools = this.tools.filter((tool) => names.includes(tool.name))
    }
  }
}
