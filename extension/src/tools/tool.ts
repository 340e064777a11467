import type { Contract } from '../kernel/operations'
import type { Fields, Json, ToolCall, ToolOutput } from '../kernel/types'
import type { Host } from '../session/host'

/** A tool, as the model is offered it and as the runtime runs it. */
export interface Tool {
  name: string
  description: string
  /** JSON Schema of the arguments. */
  parameters: Fields
  /** What it does, for the registry that binds it to a provider (C11). */
  contract: Contract
  /** A call whose outcome is unknown may be made again: it changes nothing, or leads to the same when it is done twice. */
  repeatable: boolean
  /** The questions that rules, or a person, answer before it runs. */
  permissions(input: Fields, context: Context): Promise<Ask[]>
  run(input: Fields, context: Context): Promise<ToolOutput>
}

/** A permission question: one pattern is asked about by its name. */
export interface Ask {
  permission: string
  pattern: string
  /** What "always" covers; null: it cannot be answered for good. */
  always: string | null
  /** In words, for the person. */
  title: string
}

export interface Context {
  host: Host
  call: ToolCall
  turn: string
  /** Names the call in this browser: what is done under it twice is one thing. */
  key: string
  /** The provider that the call is bound to. */
  provider: string
  stopped: AbortSignal
}

/** Why a call failed, with the code that the native runtime has for it. */
export class ToolError extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
    this.name = 'ToolError'
  }

  static failed(message: string): ToolError {
    return new ToolError('tool.failed', message)
  }

  static denied(message: string): ToolError {
    return new ToolError('tool.denied', message)
  }
}

/** The schema of an object with these properties. */
export function object(properties: Record<string, Json>, required: string[]): Fields {
  return { type: 'object', properties, required, additionalProperties: false }
}
