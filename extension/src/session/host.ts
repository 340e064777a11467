import { Bridge } from '../bridge/bridge'
import { BUNDLED } from '../hooks/bundled'
import { Pipeline } from '../hooks/pipeline'
import type { Kernel } from '../kernel/kernel'
import type { Row } from '../kernel/operations'
import type { Input, TurnOutcome } from '../kernel/types'
import type { Database } from '../log/database'
import { type LeftTurn, Log } from '../log/log'
import { Desk } from '../tools/browser/desk'
import { Relay } from '../relay/relay'
import { Tools } from '../tools/tools'
import { Workspace } from '../workspace/opfs'
import { Driver } from './driver'
import { newId } from './ids'
import { Questions } from './questions'
import { type Keys, type Settings, SettingsStore } from './settings'

/** What a panel is notified of. */
export type Notice =
  | { notice: 'rows'; session: string; records: string[] }
  | { notice: 'draft'; session: string; index: number; text: string }
  | { notice: 'finished'; session: string; outcome: TurnOutcome }
  | { notice: 'report'; session: string; text: string }
  | { notice: 'questions' }

/** Everything that a worker has, and the turns that run in it. */
export class Host {
  readonly log: Log
  readonly settings: SettingsStore
  readonly workspace: Workspace
  readonly hooks: Pipeline
  readonly tools: Tools
  readonly desk: Desk
  readonly bridge: Bridge
  readonly relay: Relay
  readonly questions: Questions
  readonly #turns = new Map<string, Driver>()
  /** Milliseconds from the start of the worker to the first effect that was begun in it. */
  firstEffect: number | null = null

  private constructor(
    readonly kernel: Kernel,
    database: Database,
    private readonly notify: (notice: Notice) => void,
  ) {
    this.settings = new SettingsStore(kernel)
    this.log = new Log(database, kernel)
    this.workspace = new Workspace(database)
    this.hooks = new Pipeline(kernel, admitted(kernel), (rows) => this.log.note(rows))
    this.tools = new Tools(this)
    this.desk = new Desk(
      kernel,
      (text) => this.settings.secrets.hide(text),
      () => this.settings.rules(),
      (field) => !this.settings.current.fields.includes(field),
    )
    this.bridge = new Bridge(() => this.settings.bridge())
    this.relay = new Relay(kernel, this.desk.network, () => this.settings.rules(), () => this.settings.relay())
    this.questions = new Questions(
      () => this.notify({ notice: 'questions' }),
      ({ permission, always }) => this.settings.save({ rules: [...this.settings.current.rules, { permission, pattern: always ?? '', action: 'allow' }] }),
    )
  }

  /** A host with what was there before, and the turns that another worker left going on. */
  static async wake(kernel: Kernel, database: Database, left: LeftTurn[], notify: (notice: Notice) => void): Promise<Host> {
    const host = new Host(kernel, database, notify)
    await Promise.all([host.settings.load(), host.desk.load(), host.relay.load()])
    void host.relay.connect()
    for (const turn of left) await host.#run(turn.session, () => Driver.resume(host, turn))
    return host
  }

  /** Whether anything runs: then the worker has to stay. */
  get isBusy(): boolean {
    return this.#turns.size > 0 || this.relay.isOn
  }

  async save(settings: Partial<Settings>, keys: Keys): Promise<void> {
    const before = JSON.stringify(this.settings.relay())
    await this.settings.save(settings, keys)
    await this.desk.network.apply()
    if (JSON.stringify(this.settings.relay()) !== before) await this.relay.apply()
  }

  isRunning(session: string): boolean {
    return this.#turns.has(session)
  }

  async newSession(id = newId('ses')): Promise<string> {
    const now = Date.now()
    if (!(await this.log.database.get('sessions', id))) {
      await this.log.database.put('sessions', { id, title: '', created: now, updated: now, cost: 0, input: 0, output: 0 })
    }
    return id
  }

  /** Begins a turn. `turn` names it: a prompt that is sent again, because nobody answered it, is not begun again. */
  async prompt(session: string, text: string, turn = newId('trn')): Promise<string> {
    if (await this.log.database.get('turns', turn)) return turn
    if (this.isRunning(session)) throw new Error('The agent is still at work in this conversation: wait, or stop it')
    await this.#entitle(session, text)
    await this.#run(session, () => Driver.start(this, session, turn, this.#begin(session, text, turn)))
    return turn
  }

  cancel(session: string): void {
    this.#turns.get(session)?.cancel()
  }

  /** Resolves when the turn of a session has ended. */
  async ended(session: string): Promise<void> {
    await this.#turns.get(session)?.ended
  }

  // ---- what turns report ----

  published(session: string, rows: Row[]): void {
    const records = rows.filter((row) => row.kind === 'event').map((row) => row.body)
    if (records.length > 0) this.notify({ notice: 'rows', session, records })
  }

  draft(session: string, index: number, text: string): void {
    this.notify({ notice: 'draft', session, index, text })
  }

  finished(session: string, outcome: TurnOutcome): void {
    void this.desk.endTurn(session)
    this.notify({ notice: 'finished', session, outcome })
  }

  report(session: string, text: string): void {
    this.notify({ notice: 'report', session, text })
  }

  /** Names of calls that stand in the history of a session. */
  async usedCalls(session: string): Promise<Set<string>> {
    const parts = await this.log.database.getAllFromIndex('parts', 'session', session)
    return new Set(parts.flatMap((part) => (part.type === 'tool' ? [String(part['callID'])] : [])))
  }

  async #run(session: string, make: () => Promise<Driver>): Promise<void> {
    const driver = await make()
    this.#turns.set(session, driver)
    void driver.ended.then(() => this.#turns.delete(session))
  }

  async #entitle(session: string, text: string): Promise<void> {
    const known = await this.log.database.get('sessions', await this.newSession(session))
    if (known && !known.title) await this.log.database.put('sessions', { ...known, title: text.split('\n')[0]?.slice(0, 80) ?? '' })
  }

  #begin(session: string, text: string, turn: string): Input {
    const { agent, model, maxSteps } = this.settings.current
    const ref = { providerID: 'extension', modelID: model }
    const seed = crypto.getRandomValues(new Uint32Array(1))[0] ?? 0
    return {
      kind: 'begin', turn, session_id: session, seed, agent, model: ref, path: { cwd: '/', root: '/' }, no_reply: false, wants_title: false,
      max_steps: maxSteps, prices: [0, 0, 0, 0], requested: {}, parts: [{ type: 'text', text }],
      message: { id: '', sessionID: session, role: 'user', time: { created: Date.now() }, agent, model: ref },
    }
  }
}

/** The plugins of the package that should run, as admission decides (D1 to D5). */
function admitted(kernel: Kernel) {
  const candidates = BUNDLED.map(({ id, dependsOn = [], enabledByDefault = true }, order) => ({
    id, source: 'Bundled' as const, place: id, order, depends_on: dependsOn, enabled_by_default: enabledByDefault,
  }))
  const entries = kernel.call('rule.admission', { candidates, rules: {} })
  const enabled = entries.filter((entry) => entry.enabled).map((entry) => entry.id)
  return BUNDLED.filter((plugin) => enabled.includes(plugin.id))
}
