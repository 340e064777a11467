/** What the kernel can be asked, and what it answers. The Rust side: `crates/outrigger-kernel-wasm/src`. */
import type { Effect, Input, Json, Placed } from './types'

/** A row of the log. Its body is stored and handed back as it is: it may hold numbers that do not fit one of JavaScript's. */
export interface Row {
  at: number
  kind: string
  session: string | null
  turn: string | null
  body: string
}

export type SealedRow = Row & { seq: number; hash: string }

export interface Rule {
  permission: string
  pattern: string
  action: Action
}
export type Action = 'allow' | 'ask' | 'deny'

export interface Route {
  contract?: Contract
  tool?: string
  agent?: string
  path?: string
  provider: string
}
export type Contract = 'read' | 'write' | 'edit' | 'exec' | 'browser.read' | 'browser.write'

export interface Owner {
  session: string
  agent: string
  turn: number
}
export interface Grant {
  tab: string
  token: number
  owner: Owner
}

export interface Key {
  document: string
  node: number
}
export interface PageNode {
  depth: number
  key: Key
  role: string
  name: string
  value?: string
  states?: string[]
  field?: string
  actionable: boolean
}
/** Whose a frame is, as the browser enforces it. */
export interface FrameSite {
  origin: string
  url: string
}
/** Which elements of a page are of a frame: those after its holder. */
export interface Inside {
  holder: number
  end: number
  site: FrameSite
}
export interface Unmet {
  expected: string
  seen: string
}

/** An action that was sent, and what is known of its effect. */
export interface Judged {
  tab: string
  kind: string
  expect: Json[]
  timeout_ms?: number
  before: string
  came: boolean
  wanted?: string
  holds?: string
  is_kept: boolean
  dialog?: { kind: string; message: string }
  elapsed: number
}

export interface Change {
  path: (string | number)[]
  value?: Json
}
export type HookOutcome =
  | 'continue'
  | { patch: Change[][] }
  | { block: Block }
  | { threw: string }
  | { timed_out: number }
  | { skipped: string }
export interface Block {
  code: string
  message: string
  details?: Json
}
export interface HookItem {
  input: Json
  output: Json
}
export interface HookRun {
  plugin: string
  outcome: string
  decision: string
  changed: string[]
  message: string | null
  ms: number
}
export interface ChainStep {
  chain: number
  call?: { handler: number; plugin: string; instance: number }[]
  items?: HookItem[]
  done?: { outputs: Json[]; block: Block | null; runs: HookRun[] }
}
export interface Handler {
  plugin: string
  priority: number
  order: number
  named: boolean
  fail_closed: boolean
}
export interface Point {
  name: string
  hook: string
  block: boolean
  deadline_ms: number
  patch: string[]
}

/** A question to one room of the kernel, and its answer. */
interface Call<With, Ok> {
  with: With
  ok: Ok
}
type Nothing = Record<string, never>

export interface Answers {
  'turn.open': Call<Nothing, { turn: number; steps: number; step: number; done: boolean }>
  'turn.step': Call<{ turn: number; at: number; input: Input }, { effects: Effect[]; rows: Row[]; done: boolean }>
  'turn.close': Call<{ turn: number }, null>
  'chain.open': Call<{ point: string; handlers: Handler[]; items: HookItem[] }, ChainStep>
  'chain.feed': Call<{ chain: number; handler: number; outcome: HookOutcome; ms: number }, ChainStep>
  'chain.points': Call<Nothing, Point[]>
  'conversation.open': Call<Nothing, number>
  'conversation.on': Call<{ conversation: number; records: string[] }, ({ put: Placed } | { remove: string })[]>
  'conversation.close': Call<{ conversation: number }, null>
  'breaker.ask': Call<{ name: string; now: number }, { gate: 'call' | 'trial' | 'skip'; until?: number }>
  'breaker.ended': Call<{ name: string; trial: boolean; how: 'answered' | 'timed_out' | 'unclear'; now: number }, { turned: string } | null>
  'breaker.keep': Call<Nothing, Record<string, Json>>
  'breaker.recall': Call<{ breakers: Record<string, Json>; now: number }, null>
  'rule.permission': Call<{ permission: string; pattern: string; rules: Rule[] }, Action>
  'rule.path': Call<{ permission: string; asked: string; others?: string[]; rules: Rule[] }, Action>
  'rule.offered': Call<{ tool: string; rules: Rule[] }, boolean>
  'rule.route': Call<{ contract: Contract; tool: string; agent: string; directory: string; place: string | null; routes: Route[] }, number | null>
  'rule.admission': Call<
    { candidates: Candidate[]; rules: { deny?: string[] }; machine?: { env?: string[]; bins?: string[] } },
    { id: string; place: string; enabled: boolean; layer: string | null; why: Json }[]
  >
  'log.seal': Call<{ before: string; rows: Row[] }, string[]>
  'log.events': Call<{ at: number; seed: number; session: string; events: string[] }, Row[]>
  'log.verify': Call<{ before: string; rows: SealedRow[] }, { place: number } | null>
  'browser.acquire': Call<{ tab: string; owner: Owner; now: number }, Grant>
  'browser.check': Call<{ grant: Grant; now: number }, null>
  'browser.end_turn': Call<{ session: string }, null>
  'browser.person': Call<{ tab: string }, null>
  'browser.hand_back': Call<{ tab: string }, null>
  'browser.forget': Call<{ tab: string }, null>
  'browser.held': Call<Nothing, Grant[]>
  'browser.keep': Call<Nothing, Json>
  'browser.recall': Call<{ kept: Json }, null>
  'browser.action': Call<
    { action: Json; target?: string; submits?: boolean },
    { missing: string | null; kind: string; write: boolean; risk: string; should_change: boolean; needs_target: boolean }
  >
  'browser.field': Call<{ kind: string; autocomplete: string; name: string; id: string }, string | null>
  'browser.site': Call<{ scheme: string; host: string; port: number; is_local: boolean; local: string[] }, null>
  'browser.frames': Call<{ page: string; frames: FrameSite[] }, string[]>
  'browser.secret': Call<{ name: string; hosts: string | null; frames: FrameSite[] }, null>
  'browser.mark': Call<{ url: string; text: string }, string>
  'browser.observe': Call<
    { tab: string; url: string; title: string; nodes: PageNode[]; origin: string; frames: Inside[]; rules: Rule[]; requests?: { method: string; url: string; status: number | null }[]; errors?: string[]; downloads?: { name: string; complete: boolean }[] },
    { text: string; stable: boolean }
  >
  'browser.show': Call<{ tab: string; reference?: string; full?: boolean; page?: number; budget?: number }, string>
  'browser.changed': Call<{ tab: string }, string>
  'browser.unmet': Call<{ tab: string; expect: Json[] }, { unmet: Unmet[]; sentence: string }>
  'browser.judge': Call<Judged, { status: 'verified' | 'failed_verify' | 'unchanged' | 'done' | null; unmet: Unmet[]; sentence: string }>
  'browser.element': Call<{ tab: string; reference: string }, { key: Key; words: string }>
}

export type Operation = keyof Answers

/** A plugin that might run, as admission asks about it. */
export interface Candidate {
  id: string
  source: 'Bundled'
  place: string
  order?: number
  depends_on?: string[]
  enabled_by_default?: boolean
}
