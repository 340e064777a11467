// Made by `cargo xtask generate` from crates/outrigger-api/src/forms.rs.

export interface AuditEntry {
  seq: number
  at: number
  kind: string
  decision: string
  policyCheckResult: string
  sessionId?: string
  pluginId?: string
  subPluginId?: string
  hookName?: string
  subject?: string
  detail?: string
  durationMs?: number
  prevHash: string
  hash: string
}

export interface AuditVerification {
  valid: boolean
  rows: number
  first: number
  removed: number
  unlisted: number
  seals: number
  unsealed: number
  head: number
  /** The key that seals are made with. */
  key: string | null
  faults: Array<string>
}

export interface ChangedValue {
  /** JSON pointer into the output of the hook. What was removed from a list has its index from before. */
  at: string
  /** What stood there. */
  before?: RecordedValue
  /** What stands there now. */
  after?: RecordedValue
}

export interface Conversation {
  id: string
  title: string
  /** The beginning of its first prompt, on one line: it tells conversations with one title apart. */
  opening?: string
  /** Folder that it works in. */
  directory: string
  projectID: string
  /** The session whose agent started it. */
  parentID?: string
  /** The session that a person began. */
  task: string
  agent?: string
  model?: {
    id: string
    providerID: string
    variant?: string
  }
  status: ConversationStatus
  /** What waits for a person, in it and in what its agents started. */
  waiting: Array<Waiting>
  /** US dollars so far. */
  cost: number
  tokens: ConversationTokens
  summary?: {
    additions: number
    deletions: number
    files: number
    diffs?: Array<unknown>
  }
  revert?: {
    messageID: string
    partID?: string
    snapshot?: string
    diff?: string
  }
  /** The program that it was imported from, and what that says of it. */
  origin?: {
    program: string
    version?: string
    session: string
    directory?: string
  }
  time: {
    created: number
    updated: number
    compacting?: number
    archived?: number
  }
}

export interface ConversationMessage {
  id: string
  /** `user`, `assistant`, `system`. */
  role: string
  /** `text`, `reasoning`, `tool_use`, `tool_result`, `tool_execution` and others. */
  messageType: string
  /** For people. */
  content: string
  /** Milliseconds since 1970. */
  timestamp: number
  metadata: MessageMetadata
}

export interface MessageMetadata {
  tool_name?: string
  tool_use_id?: string
  input?: unknown
  output?: unknown
  is_error?: boolean
  duration_ms?: number
  summary?: string
  details?: Details
  /** A patch of several files: what changed in each. */
  changes?: Array<Details>
  /** The conversation of a subagent. */
  conversation?: string
  /** What a running tool says of itself. */
  title?: string
  progress?: unknown
  /** Whose tool it is, where a bundled one has its name. */
  plugin?: string
  /** The plugin that refused the call. */
  refused_by?: string
}

export interface ConversationPage {
  conversations: Array<Conversation>
  next: string | null
}

export type ConversationStatus = "idle" | "busy" | "retry"

export interface ConversationTokens {
  total?: number
  input: number
  output: number
  reasoning: number
  cache: {
    read: number
    write: number
  }
}

export type Details = DiffDetails | FileListDetails | CommandOutputDetails

export interface DiffDetails {
  type: "diff"
  data: {
    oldContent: string
    newContent: string
    path: string | null
  }
}

export interface FileListDetails {
  type: "fileList"
  data: {
    files: Array<string>
  }
}

export interface CommandOutputDetails {
  type: "commandOutput"
  data: {
    stdout: string
    stderr: string
    /** Null when it was killed. */
    exitCode: number | null
  }
}

export interface Entry {
  /** Keys ascend in the order of the conversation. */
  key: string
  state: EntryState
  conversation: string
  /** The conversation that a person began. */
  task: string
  /** The prompt that it is, or that it answers. */
  attempt: string
  message: ConversationMessage
  /** Texts of the message that are cut. */
  shortened?: Array<Shortened>
}

export interface EntryPage {
  entries: Array<Entry>
  /** `before` of the next, older page. */
  next: string | null
  /** The stream goes on after it. */
  event: number
}

export type EntryState = "running" | "done"

export interface HookCost {
  plugin: string
  hook: string
  calls: number
  skipped: number
  outcomes: Record<string, number>
  p50_ms: number
  p95_ms: number
  p99_ms: number
  max_ms: number
  total_ms: number
  max_bytes: number
}

export interface PluginPage {
  plugins: Array<PluginState>
  perf: Array<HookCost>
  flags: Record<string, {
    on: boolean
    from: string
  }>
  snapshot: unknown
}

export interface PluginState {
  id: string
  spec: string
  version?: string | null
  /** `registered`, `active`, `suspended`, `deactivated`, `failed`. */
  state: string
  stage: string
  /** Why it is not further. */
  cause?: unknown
  warnings: Array<string>
  notes: Array<string>
  hooks: Array<string>
  tools: Array<string>
  pid?: number | null
  /** How often its process has been started. */
  generation: number
  /** What its process uses, shared ones with all plugins in it. */
  usage?: {
    cpu_ms: number
    cpu: number
    rss: number
    processes: number
  }
  own_cpu_ms?: number
  quarantine?: string
  /** Those that are not at rest. */
  breakers?: Array<{
    hook: string
    state: string
    timeouts: number
    opens_in_ms?: number
  }>
}

export interface PromptDiff {
  attempt: string
  diffs: Array<unknown>
}

export interface RecordedDigest {
  kind: "digest"
  bytes: number
  sha256: string
}

export interface RecordedExcerpt {
  kind: "excerpt"
  text: string
  /** Bytes of the whole text before the part. */
  from: number
  /** Bytes of the whole text. */
  bytes: number
}

export type RecordedValue = RecordedWhole | RecordedExcerpt | RecordedDigest

export interface RecordedWhole {
  kind: "whole"
  value: unknown
}

export interface SearchHit {
  conversation: string
  title: string
  directory: string
  message: string
  /** Of its entry. */
  key: string
  /** `text`, `reasoning`, `file`, `subtask` or a tool's name. */
  kind: string
  before: string
  /** The first word, as it stands there. */
  found: string
  after: string
}

export interface SearchPage {
  hits: Array<SearchHit>
  next: string | null
}

export interface Shortened {
  /** JSON pointer into the message. */
  at: string
  bytes: number
  ref: string
}

export interface ShownPermission {
  /** What is asked; of a permission that is not ours its name. */
  title: string
  /** In the order in which they are read. `command` is a command line, `change` a unified diff. The texts are others', as they wrote them. */
  facts: Array<{
    name: string
    text: string
  }>
}

export interface Span {
  kind: "model" | "tool" | "hook"
  name: string
  start: number
  durationMs: number
  state: "ok" | "error" | "skipped" | "running"
  plugin?: string
  /** JSON pointers into what the hook was given. */
  changed?: Array<string>
  values?: Array<ChangedValue>
  /** How many places changed besides. */
  moreValues?: number
  facts: Record<string, unknown>
}

export type StreamItem = StreamConnected | StreamReset | StreamEntry | StreamRemoved | StreamConversation | StreamDeleted | StreamAsked | StreamAnswered | StreamDelta | StreamProgress | StreamStatus

export interface StreamAnswered {
  type: "answered"
  conversation: string
  id: string
}

export interface StreamAsked {
  type: "asked"
  waiting: Waiting
}

export interface StreamConnected {
  type: "connected"
  event: number
}

export interface StreamConversation {
  type: "conversation"
  conversation: Conversation
}

export interface StreamDeleted {
  type: "deleted"
  conversation: string
}

export interface StreamDelta {
  type: "delta"
  conversation: string
  key: string
  text: string
  start?: boolean
}

export interface StreamEntry {
  type: "entry"
  entry: Entry
}

export interface StreamProgress {
  type: "progress"
  entry: Entry
}

export interface StreamRemoved {
  type: "removed"
  conversation: string
  key: string
}

export interface StreamReset {
  type: "reset"
  event: number
}

export interface StreamStatus {
  type: "status"
  conversation: string
  status: ConversationStatus
}

export interface Trace {
  turn: Turn
  spans: Array<Span>
}

export interface Turn {
  id: string
  conversation: string
  attempt?: string
  began: number
  ended: number
  open: boolean
}

export type Waiting = WaitingPermission | WaitingQuestion

export interface WaitingPermission {
  type: "permission"
  request: {
    id: string
    sessionID: string
    /** `bash`, `edit`, `external_directory` ... */
    permission: string
    patterns: Array<string>
    /** Patterns that "always" would allow. */
    always: Array<string>
    metadata: Record<string, unknown>
    /** Who caused it, where it was not the user and the model alone. */
    provenance?: Array<Record<string, unknown>>
    tool?: {
      messageID: string
      callID: string
    }
  }
  shown: ShownPermission
}

export interface WaitingQuestion {
  type: "question"
  request: {
    id: string
    sessionID: string
    questions: Array<{
      question: string
      header: string
      options: Array<{
        label: string
        description: string
      }>
      multiple?: boolean
      custom?: boolean
    }>
    tool?: {
      messageID: string
      callID: string
    }
  }
}
