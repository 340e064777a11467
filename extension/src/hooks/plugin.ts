import type { Json } from '../kernel/types'

/** What a hook is handed, as OpenCode hands it: `input` is to be read, `output` is changed in place. */
export type Hook = (input: Json, output: Json) => void | Promise<void>

/** A refusal: `throw new Refusal(code, message)` where the point allows one (C2). */
export class Refusal extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message)
    this.name = 'Refusal'
  }
}

/** A plugin that is packed with the extension. There are no others: no code is fetched, and none is made of text (C10, C16). */
export interface Plugin {
  id: string
  version: string
  /** By our name of a point, or OpenCode's. Naming a point in the manifest is what gives the right to refuse there (C3). */
  hooks: Record<string, Hook>
  /** Higher comes first. */
  priority?: number
  /** A throw or a timeout refuses, where the point has it so (C5). */
  failClosed?: boolean
  dependsOn?: string[]
  enabledByDefault?: boolean
}
