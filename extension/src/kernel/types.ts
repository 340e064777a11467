/** Types of the wire that the extension reads; those of Rust are in `crates/outrigger-protocol`. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json }
export type Fields = { [key: string]: Json }

export interface ModelRef {
  providerID: string
  modelID: string
}

export interface NamedError {
  name: string
  data: Json
}

export interface Usage {
  input: number
  output: number
  reasoning: number
  cache_read: number
  cache_write: number
}

export interface ToolCall {
  call_id: string
  session_id: string
  message_id: string
  agent: string
  tool: string
  input: Json
}

export interface ToolOutput {
  title: string
  output: string
  metadata: Json
  attachments?: Json[]
}

export type ToolOutcome =
  | { outcome: 'completed'; input: Json; output: ToolOutput }
  | { outcome: 'failed'; input: Json; code: string; message: string; metadata?: Json }

export type ModelSignal =
  | { signal: 'started' }
  | { signal: 'text_start'; index: number }
  | { signal: 'text_end'; index: number; text: string }
  | { signal: 'reasoning_start'; index: number }
  | { signal: 'reasoning_end'; index: number; text: string }
  | { signal: 'tool_start'; call_id: string; tool: string }
  | { signal: 'tool_end'; call_id: string; tool: string; raw: string }
  | { signal: 'finished'; reason: string; usage: Usage }
  | { signal: 'failed'; error: NamedError }

export type TurnOutcome = { outcome: 'done'; message_id?: string } | { outcome: 'failed'; error: NamedError } | { outcome: 'cancelled' }

export type Input =
  | { kind: 'begin'; [field: string]: Json }
  | { kind: 'hook_done'; effect: number; output?: Json; block?: Json }
  | { kind: 'tools_ready'; effect: number; tools: { name: string; read_only: boolean }[] }
  | ({ kind: 'model'; effect: number } & { signal: ModelSignal })
  | { kind: 'tool_started'; effect: number; input: Json }
  | { kind: 'tool_progress'; effect: number; title?: string; metadata: Json }
  | { kind: 'tool_done'; effect: number; outcome: ToolOutcome }
  | { kind: 'calls_used'; ids: string[] }
  | { kind: 'cancel' }
  | { kind: 'resumed' }

export interface SessionPatch {
  agent?: string
  model?: ModelRef
  usage?: Usage
  cost: number
}

export type Effect =
  | { kind: 'publish'; event: BusEvent }
  | { kind: 'patch_session'; patch: SessionPatch }
  | { kind: 'hooks'; effect: number; point: string; payload?: { input: Json; output: Json } }
  | { kind: 'prepare_tools'; effect: number; step: number }
  | { kind: 'call_model'; effect: number; step: number; message_id: string }
  | { kind: 'run_tool'; effect: number; call: ToolCall }
  | { kind: 'make_title'; message_id: string }
  | { kind: 'abort' }
  | { kind: 'finish'; outcome: TurnOutcome }

/** What is published; of its kinds those that change the tables. */
export interface BusEvent {
  type: string
  properties: Fields
}

export interface MessageInfo {
  id: string
  sessionID: string
  role: 'user' | 'assistant'
  [field: string]: Json
}

export interface Part {
  id: string
  sessionID: string
  messageID: string
  type: string
  [field: string]: Json
}

/** A message of the conversation, as the panel shows it. */
export interface Placed {
  key: string
  state: 'running' | 'done'
  message: Fields
}
