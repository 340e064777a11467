import type { Effect, Fields, Input, Json, ToolCall } from '../kernel/types'
import { history } from '../model/history'
import { stream } from '../model/stream'
import { runTool } from '../tools/runtime'
import type { Host } from './host'
import { Request } from './request'

type Take = (input: Input) => Promise<void>
type Numbered = Exclude<Effect, { kind: 'publish' | 'patch_session' | 'make_title' | 'abort' | 'finish' }>

/** Carries out what the kernel wants of the world, and says how it ended. */
export class Effects {
  /** The request that is being made; a worker that is started again makes it anew. */
  #request = new Request()
  /** What runs, in words. */
  readonly #running = new Map<number, string>()

  constructor(
    private readonly host: Host,
    private readonly session: string,
    private readonly turn: string,
    private readonly stopped: AbortSignal,
    private readonly take: Take,
  ) {}

  /** Which effect an input is about, in words. */
  about(input: Input): string {
    return 'effect' in input && typeof input.effect === 'number' ? (this.#running.get(input.effect) ?? '') : ''
  }

  async run(effect: Effect): Promise<void> {
    switch (effect.kind) {
      case 'hooks':
        this.#running.set(effect.effect, effect.point)
        return this.#hooks(effect)
      case 'prepare_tools':
        this.#request = new Request()
        this.#request.tools = await this.host.tools.offered(this.session)
        return this.take({
          kind: 'tools_ready',
          effect: effect.effect,
          tools: this.#request.tools.map(({ name, repeatable }) => ({ name, read_only: repeatable })),
        })
      case 'call_model':
        return this.#model(effect)
      case 'run_tool':
        this.#running.set(effect.effect, `${effect.call.tool} ${JSON.stringify(effect.call.input)}`)
        return this.#tool(effect.effect, effect.call)
      case 'make_title':
        // The first line of the prompt is the title.
        return
    }
  }

  async #hooks({ effect, point, payload }: Numbered & { kind: 'hooks' }): Promise<void> {
    const given = payload ?? (await this.#payload(point))
    const folded = await this.host.hooks.run(point, given, { session: this.session, turn: this.turn })
    // What the host has made, the host keeps: the whole conversation is not written down at each step.
    if (!payload) this.#request.keep(point, folded.output)
    const output = payload ? { output: folded.output } : {}
    const block = folded.block ? { block: folded.block as unknown as Json } : {}
    await this.take({ kind: 'hook_done', effect, ...output, ...block })
  }

  /** Input and output of a point that the host makes of what it holds. */
  async #payload(point: string): Promise<{ input: Json; output: Json }> {
    const { agent, model } = this.host.settings.current
    const about: Fields = { sessionID: this.session, agent, model: { id: model, providerID: 'extension' } }
    switch (point) {
      case 'llm.before_messages':
        return { input: {}, output: { messages: (await history(this.host.log.database, this.session)) as unknown as Json } }
      case 'llm.before_system':
        return { input: about, output: { system: [this.host.settings.system()] } }
      case 'llm.before_params':
        return { input: about, output: { options: {} } }
      case 'llm.before_headers':
        return { input: about, output: { headers: {} } }
      default:
        return { input: about, output: {} }
    }
  }

  async #model({ effect, step }: Numbered & { kind: 'call_model' }): Promise<void> {
    const { agent, model } = this.host.settings.current
    const offered = this.#request.tools.map(({ name, description, parameters }) => ({ name, description, parameters }))
    const input = { sessionID: this.session, agent, model: { providerID: 'extension', modelID: model }, step }
    const output = { messages: this.#request.messages as unknown as Json, tools: offered as unknown as Json, params: this.#request.params }
    const folded = await this.host.hooks.run('llm.before_request', { input, output }, { session: this.session, turn: this.turn })
    if (folded.block) {
      const error = { name: 'HookBlockedError', data: { message: folded.block.message, code: folded.block.code } }
      return this.take({ kind: 'model', effect, signal: { signal: 'failed', error } })
    }
    this.#request.sent(folded.output)
    const used = await this.host.usedCalls(this.session)
    const draft = (index: number, text: string) => this.host.draft(this.session, index, text)
    for await (const signal of stream(this.host.settings.provider(), this.#request, this.stopped, draft)) {
      // A name that stands in the history already is not given twice.
      if (signal.signal === 'tool_start' && used.has(signal.call_id)) await this.take({ kind: 'calls_used', ids: [signal.call_id] })
      await this.take({ kind: 'model', effect, signal })
    }
  }

  async #tool(effect: number, call: ToolCall): Promise<void> {
    const about = { host: this.host, key: `${this.turn}/${effect}`, turn: this.turn, call, stopped: this.stopped }
    const outcome = await runTool(about, {
      started: (input) => this.take({ kind: 'tool_started', effect, input }),
    })
    await this.take({ kind: 'tool_done', effect, outcome })
  }
}
