import type { Fields, Json } from '../../kernel/types'
import { type Context, ToolError } from '../tool'
import type { Verdict } from './judge'

/** What plugins' texts may add to an answer, in characters. */
const MAX_ADDED = 4_000

/** An action, as plugins read it. What is typed is not among it. */
export interface Told {
  action: string
  risk: string
  tab: string
  url: string
  target: string
  field: string | null
  to: string | null
}

/** Where plugins are asked and notified of an action in a browser, as natively: `cdp.before_action`, `cdp.after_action`, `cdp.after_verify`,
 * `cdp.on_error`. */
export class Points {
  constructor(
    private readonly context: Context,
    private readonly told: Told,
  ) {}

  /** Whether plugins let it be done; the lease is looked at behind them. */
  async before(): Promise<void> {
    const { block } = await this.#run('cdp.before_action', {}, {})
    if (block) throw new ToolError('tool.blocked', block.message)
  }

  /** It was sent: what plugins add for the model. */
  async after(): Promise<string> {
    return added((await this.#run('cdp.after_action', {}, { context: [] })).output)
  }

  /** Its verdict is known, and stays: what plugins add for the model. */
  async verified({ status, sentence }: Pick<Verdict, 'status' | 'sentence'>): Promise<string> {
    return added((await this.#run('cdp.after_verify', { unmet: sentence }, { status, context: [] })).output)
  }

  /** It was not done: the error, with what plugins add. Its code and its message stay. */
  async failed(error: unknown): Promise<ToolError> {
    const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'tool.failed'
    const message = error instanceof Error ? error.message : String(error)
    const { output } = await this.#run('cdp.on_error', { code, message }, { context: [] })
    return new ToolError(code, message + added(output))
  }

  #run(point: string, more: Fields, output: Fields) {
    const { host, call, turn } = this.context
    const input = { sessionID: call.session_id, callID: call.call_id, ...this.told, ...more }
    return host.hooks.run(point, { input, output }, { session: call.session_id, turn })
  }
}

function added(output: Json): string {
  const { context } = (output ?? {}) as Fields
  const texts = Array.isArray(context) ? context.filter((text): text is string => typeof text === 'string') : []
  return texts.map((text) => `\n\n${text}`).join('').slice(0, MAX_ADDED)
}
