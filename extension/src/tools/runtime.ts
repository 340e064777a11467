import { Validator, type Schema } from '@cfworker/json-schema'
import { BRIDGE } from '../bridge/bridge'
import type { Row } from '../kernel/operations'
import type { Fields, Json, ToolCall, ToolOutcome, ToolOutput } from '../kernel/types'
import type { Host } from '../session/host'
import { type Ask, type Context, type Tool, ToolError } from './tool'

/** How long a call may take. */
const DEADLINE = 150_000
/** What the model reads of an answer at most, in characters; the rest goes to a file of the workspace. */
const MAX_OUTPUT = 30_000

export interface Run {
  host: Host
  key: string
  turn: string
  call: ToolCall
  stopped: AbortSignal
}

interface Reports {
  /** Hooks and questions are answered: it runs, with these arguments. */
  started(input: Json): Promise<void>
}

/** The one way to run a tool (invariant 2), in the order of the native runtime: look up, check, hooks, check again, ask, run at the
 * provider that it is bound to, hooks, record. */
export async function runTool(run: Run, reports: Reports): Promise<ToolOutcome> {
  const at = Date.now()
  const asked: string[] = []
  let input = run.call.input
  let outcome: ToolOutcome
  try {
    const tool = find(run)
    checked(tool, input)
    input = await before(run, input)
    const fields = checked(tool, input)
    const context = bound(run, tool, fields)
    for (const ask of await tool.permissions(fields, context)) asked.push(await allow(run, ask))
    await reports.started(input)
    const output = await after(run, input, await limited(tool, fields, context))
    outcome = { outcome: 'completed', input, output }
  } catch (error) {
    outcome = { outcome: 'failed', input, ...failure(error) }
  }
  await run.host.log.note([recordOf(run, outcome, asked, at)])
  return outcome
}

function find({ host, call }: Run): Tool {
  if (call.tool === 'invalid') throw ToolError.failed(String((call.input as Fields)['error'] ?? 'the call cannot be made'))
  const tool = host.tools.find(call.tool)
  if (!tool) throw new ToolError('tool.not_found', `there is no tool ${call.tool}`)
  return tool
}

function checked(tool: Tool, input: Json): Fields {
  const { valid, errors } = new Validator(tool.parameters as Schema, '2020-12', false).validate(input)
  if (valid) return input as Fields
  const words = errors.map(({ instanceLocation, error }) => `${instanceLocation}: ${error}`)
  throw new ToolError('tool.invalid_input', `The arguments of ${tool.name} do not fit: ${words.join('; ')}`)
}

async function before({ host, turn, call }: Run, args: Json): Promise<Json> {
  const input = { tool: call.tool, sessionID: call.session_id, callID: call.call_id }
  const { output, block } = await host.hooks.run('tool.before_call', { input, output: { args } }, { session: call.session_id, turn })
  if (block) throw new ToolError('tool.blocked', block.message)
  return (output as Fields)['args'] ?? args
}

async function after({ host, turn, call }: Run, args: Json, answer: ToolOutput): Promise<ToolOutput> {
  const input = { tool: call.tool, sessionID: call.session_id, callID: call.call_id, args }
  const item = { input, output: answer as unknown as Json }
  const { output, block } = await host.hooks.run('tool.after_result', item, { session: call.session_id, turn })
  if (block) throw ToolError.failed(block.message)
  const left = output as Fields
  const text = (key: 'title' | 'output') => (typeof left[key] === 'string' ? left[key] : answer[key])
  return { ...answer, title: text('title'), output: text('output'), metadata: left['metadata'] ?? answer.metadata }
}

/** Whom the call is bound to (C11). */
function bound(run: Run, tool: Tool, input: Fields): Context {
  const { host, call, turn, key, stopped } = run
  const place = typeof input['filePath'] === 'string' ? input['filePath'] : null
  const rule = host.kernel.call('rule.route', {
    contract: tool.contract, tool: tool.name, agent: call.agent, directory: '/', place, routes: host.settings.routes(),
  })
  const provider = rule === null ? null : host.settings.routes()[rule]?.provider
  if (!provider) throw new ToolError('tool.unavailable', `nobody does ${tool.contract} here: add a route in the settings`)
  return { host, call, turn, key, provider, stopped }
}

async function allow({ host, call, stopped }: Run, ask: Ask): Promise<string> {
  const { permission, pattern } = ask
  const rules = host.settings.rules()
  const action =
    isFile(permission) ? host.kernel.call('rule.path', { permission, asked: pattern, rules }) : host.kernel.call('rule.permission', { permission, pattern, rules })
  const said = `${permission} ${pattern} -> ${action}`
  if (action === 'allow') return said
  if (action === 'deny') throw ToolError.denied(`A rule denies ${permission} of ${pattern}`)
  if (await host.questions.ask(call.session_id, ask, stopped)) return `${said}, allowed`
  throw new ToolError('tool.rejected', `The user did not allow ${permission} of ${pattern}`)
}

function isFile(permission: string): boolean {
  return permission === 'read' || permission === 'edit'
}

async function limited(tool: Tool, input: Fields, context: Context): Promise<ToolOutput> {
  const late = AbortSignal.timeout(DEADLINE)
  const stopped = new Promise<never>((_, reject) => {
    context.stopped.addEventListener('abort', () => reject(new ToolError('tool.cancelled', 'The call was stopped')))
    late.addEventListener('abort', () => reject(new ToolError('tool.timeout', `The call took longer than ${DEADLINE / 1000} s`)))
  })
  const running = context.provider === BRIDGE ? context.host.bridge.invoke(tool.contract, input, context) : tool.run(input, context)
  const answer = await Promise.race([running, stopped])
  if (answer.output.length <= MAX_OUTPUT) return answer
  const path = `.outrigger/${context.key.replace('/', '-')}.txt`
  await context.host.workspace.write(path, new TextEncoder().encode(answer.output), `${context.key}/rest`)
  return { ...answer, output: `${answer.output.slice(0, MAX_OUTPUT)}\n(shortened: all of it is in ${path})` }
}

function failure(error: unknown): { code: string; message: string } {
  if (error instanceof ToolError) return { code: error.code, message: error.message }
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : 'tool.failed'
  return { code, message: error instanceof Error ? error.message : String(error) }
}

/** How a call went, as the native log has it (C13). */
function recordOf({ call, turn }: Run, outcome: ToolOutcome, permissions: string[], at: number): Row {
  const label = outcome.outcome === 'completed' ? 'completed' : outcome.code
  const record = { record: 'tool', call, turn, permissions, outcome: label, duration_ms: Date.now() - at, at }
  return { at, kind: 'tool', session: call.session_id, turn, body: JSON.stringify(record) }
}
