//! Schemas of requests and responses, under OpenCode's names.
#![expect(
    non_upper_case_globals,
    reason = "names of the document, which clients are made from"
)]

use outrigger_schema::{Schema, schema};

/// Defines a constant for each schema, and a list of all.
macro_rules! forms {
    ($($name:ident = $($one:tt)|+;)*) => {
        $(pub(super) static $name: Schema = Schema::Named(stringify!($name), &schema!($($one)|+));)*

        /// All schemas, by name.
        pub(super) static ALL: &[(&str, &Schema)] = &[$((stringify!($name), &$name)),*];
    };
}

forms! {
    APIError = {name: "APIError", data: {message: string, statusCode?: integer, isRetryable: boolean,
        responseHeaders?: {string}, responseBody?: string, metadata?: {string}}};
    Agent = {name: string, description?: string, mode: "subagent" | "primary" | "all", native?: boolean, hidden?:
        boolean, topP?: number, temperature?: number, color?: string, permission: PermissionRuleset, model?: {modelID:
        string, providerID: string}, variant?: string, prompt?: string, options: {any}, steps?: number};
    AgentPart = {id: string, sessionID: string, messageID: string, type: "agent", name: string, source?: {value:
        string, start: integer, end: integer}};
    AgentPartInput = {id?: string, type: "agent", name: string, source?: {value: string, start: integer, end:
        integer}};
    ApiAuth = {type: "api", key: string, metadata?: {string}};
    AssistantMessage = {id: string, sessionID: string, role: "assistant", time: {created: integer, completed?:
        integer}, error?: ProviderAuthError | UnknownError | MessageOutputLengthError | MessageAbortedError |
        StructuredOutputError | ContextOverflowError | ContentFilterError | APIError, parentID: string, modelID:
        string, providerID: string, mode: string, agent: string, path: {cwd: string, root: string}, summary?: boolean,
        cost: number, tokens: {total?: number, input: number, output: number, reasoning: number, cache: {read: number,
        write: number}}, structured?: any, variant?: string, finish?: string};
    Auth = OAuth | ApiAuth | WellKnownAuth;
    Command = {name: string, description?: string, agent?: string | null, model?: string | null, source?: "command" |
        "mcp" | "skill", template: string, subtask?: boolean | null, hints: [string]};
    CompactionPart = {id: string, sessionID: string, messageID: string, type: "compaction", auto: boolean, overflow?:
        boolean, tail_start_id?: string};
    Config = {any};
    ContentFilterError = {name: "ContentFilterError", data: {message: string}};
    ContextOverflowError = {name: "ContextOverflowError", data: {message: string, responseBody?: string}};
    Error = {name: string, data: {message?: string}} | {_tag: string, message: string};
    Event = {id?: string, type: string, properties: {any}};
    EventTuiCommandExecute = {type: "tui.command.execute", properties: {command: ("session.list" | "session.new" |
        "session.share" | "session.interrupt" | "session.compact" | "session.page.up" | "session.page.down" |
        "session.line.up" | "session.line.down" | "session.half.page.up" | "session.half.page.down" | "session.first"
        | "session.last" | "prompt.clear" | "prompt.submit" | "agent.cycle") | string}};
    EventTuiPromptAppend = {type: "tui.prompt.append", properties: {text: string}};
    EventTuiSessionSelect = {type: "tui.session.select", properties: {sessionID: string}};
    EventTuiToastShow = {type: "tui.toast.show", properties: {title?: string, message: string, variant: "info" |
        "success" | "warning" | "error", duration?: integer}};
    File = {path: string, added: integer, removed: integer, status: "added" | "deleted" | "modified"};
    FileContent = {type: "text" | "binary", content: string, diff?: string, patch?: {oldFileName: string, newFileName:
        string, oldHeader?: string, newHeader?: string, hunks: [{oldStart: integer, oldLines: integer, newStart:
        integer, newLines: integer, lines: [string]}], index?: string}, encoding?: "base64", mimeType?: string};
    FileNode = {name: string, path: string, absolute: string, type: "file" | "directory", ignored: boolean};
    FilePart = {id: string, sessionID: string, messageID: string, type: "file", mime: string, filename?: string, url:
        string, source?: FilePartSource};
    FilePartInput = {id?: string, type: "file", mime: string, filename?: string, url: string, source?:
        FilePartSource};
    FilePartSource = FileSource | SymbolSource | ResourceSource;
    FilePartSourceText = {value: string, start: number, end: number};
    FileSource = {text: FilePartSourceText, type: "file", path: string};
    FormatterStatus = {name: string, extensions: [string], enabled: boolean};
    GlobalEvent = {directory?: string, project?: string, workspace?: string, payload: Event};
    GlobalSession = {id: string, slug: string, projectID: string, workspaceID?: string, directory: string, path?:
        string, parentID?: string, summary?: {additions: number, deletions: number, files: number, diffs?:
        [SnapshotFileDiff]}, cost?: number, tokens?: {input: number, output: number, reasoning: number, cache: {read:
        number, write: number}}, share?: {url: string}, title: string, agent?: string, model?: {id: string,
        providerID: string, variant?: string}, version: string, metadata?: {any}, time: {created: integer, updated:
        integer, compacting?: integer, archived?: number}, permission?: PermissionRuleset, revert?: {messageID:
        string, partID?: string, snapshot?: string, diff?: string}, project: ProjectSummary | null};
    JSONSchema = {any};
    LSPStatus = {id: string, name: string, root: string, status: "connected" | "error"};
    Location = {directory: string, project: {id: string, directory: string}};
    MCPStatus = MCPStatusConnected | MCPStatusDisabled | MCPStatusFailed | MCPStatusNeedsAuth |
        MCPStatusNeedsClientRegistration;
    MCPStatusConnected = {status: "connected"};
    MCPStatusDisabled = {status: "disabled"};
    MCPStatusFailed = {status: "failed", error: string};
    MCPStatusNeedsAuth = {status: "needs_auth"};
    MCPStatusNeedsClientRegistration = {status: "needs_client_registration", error: string};
    McpLocalConfig = {type: "local", command: [string], cwd?: string, environment?: {string}, enabled?: boolean,
        timeout?: integer};
    McpOAuthConfig = {clientId?: string, clientSecret?: string, scope?: string, callbackPort?: integer, redirectUri?:
        string};
    McpRemoteConfig = {type: "remote", url: string, enabled?: boolean, headers?: {string}, oauth?: McpOAuthConfig |
        false, timeout?: integer};
    McpResource = {name: string, uri: string, description?: string, mimeType?: string, client: string};
    Message = UserMessage | AssistantMessage;
    MessageAbortedError = {name: "MessageAbortedError", data: {message: string}};
    MessageOutputLengthError = {name: "MessageOutputLengthError", data: {}};
    Model = {id: string, providerID: string, api: {id: string, url: string, npm: string}, name: string, family?:
        string, capabilities: {temperature: boolean, reasoning: boolean, attachment: boolean, toolcall: boolean,
        input: {text: boolean, audio: boolean, image: boolean, video: boolean, pdf: boolean}, output: {text: boolean,
        audio: boolean, image: boolean, video: boolean, pdf: boolean}, interleaved: boolean | {field: ("reasoning" |
        "reasoning_content" | "reasoning_text") | string}}, cost: {input: number, output: number, cache: {read:
        number, write: number}, tiers?: [{input: number, output: number, cache: {read: number, write: number}, tier:
        {type: "context", size: number}}], experimentalOver200K?: {input: number, output: number, cache: {read:
        number, write: number}}}, limit: {context: number, input?: number, output: number}, status: "alpha" | "beta" |
        "deprecated" | "active", options: {any}, headers: {string}, release_date: string, variants?: {{any}}};
    OAuth = {type: "oauth", refresh: string, access: string, expires: integer, accountId?: string, enterpriseUrl?:
        string};
    OutputFormat = OutputFormatText | OutputFormatJsonSchema;
    OutputFormatJsonSchema = {type: "json_schema", schema: JSONSchema, retryCount?: integer};
    OutputFormatText = {type: "text"};
    Part = TextPart | SubtaskPart | ReasoningPart | FilePart | ToolPart | StepStartPart | StepFinishPart |
        SnapshotPart | PatchPart | AgentPart | RetryPart | CompactionPart;
    PatchPart = {id: string, sessionID: string, messageID: string, type: "patch", hash: string, files: [string]};
    Path = {home: string, state: string, config: string, worktree: string, directory: string};
    PermissionAction = "allow" | "deny" | "ask";
    PermissionRequest = {id: string, sessionID: string, permission: string, patterns: [string], metadata: {any},
        always: [string], tool?: {messageID: string, callID: string}};
    PermissionRule = {permission: string, pattern: string, action: PermissionAction};
    PermissionRuleset = [PermissionRule];
    Project = {id: string, worktree: string, vcs?: ProjectVcs, name?: string, icon?: ProjectIcon, commands?:
        ProjectCommands, time: ProjectTime, sandboxes: [string]};
    ProjectCommands = {start?: string};
    ProjectCopyCopy = {directory: string};
    ProjectDirectories = [{directory: string, strategy?: string}];
    ProjectIcon = {url?: string, override?: string, color?: string};
    ProjectSummary = {id: string, name?: string, worktree: string};
    ProjectTime = {created: integer, updated: integer, initialized?: integer};
    ProjectVcs = "git";
    Provider = {id: string, name: string, source: "env" | "config" | "custom" | "api", env: [string], key?: string,
        options: {any}, models: {Model}};
    ProviderAuthAuthorization = {url: string, method: "auto" | "code", instructions: string};
    ProviderAuthError = {name: "ProviderAuthError", data: {providerID: string, message: string}};
    ProviderAuthMethod = {type: "oauth" | "api", label: string, prompts?: [{type: "text", key: string, message:
        string, placeholder?: string, when?: {key: string, op: "eq" | "neq", value: string}} | {type: "select", key:
        string, message: string, options: [{label: string, value: string, hint?: string}], when?: {key: string, op:
        "eq" | "neq", value: string}}]};
    Pty = {id: string, title: string, command: string, args: [string], cwd: string, status: "running" | "exited", pid:
        integer, exitCode?: integer};
    PtyTicketConnectToken = {ticket: string, expires_in: integer};
    QuestionAnswer = [string];
    QuestionInfo = {question: string, header: string, options: [QuestionOption], multiple?: boolean, custom?:
        boolean};
    QuestionOption = {label: string, description: string};
    QuestionRequest = {id: string, sessionID: string, questions: [QuestionInfo], tool?: QuestionTool};
    QuestionTool = {messageID: string, callID: string};
    Range = {start: {line: integer, character: integer}, end: {line: integer, character: integer}};
    ReasoningPart = {id: string, sessionID: string, messageID: string, type: "reasoning", text: string, metadata?:
        {any}, time: {start: integer, end?: integer}};
    ResourceSource = {text: FilePartSourceText, type: "resource", clientName: string, uri: string};
    RetryPart = {id: string, sessionID: string, messageID: string, type: "retry", attempt: integer, error: APIError,
        time: {created: integer}};
    Session = {id: string, slug: string, projectID: string, workspaceID?: string, directory: string, path?: string,
        parentID?: string, summary?: {additions: number, deletions: number, files: number, diffs?:
        [SnapshotFileDiff]}, cost?: number, tokens?: {input: number, output: number, reasoning: number, cache: {read:
        number, write: number}}, share?: {url: string}, title: string, agent?: string, model?: {id: string,
        providerID: string, variant?: string}, version: string, metadata?: {any}, time: {created: integer, updated:
        integer, compacting?: integer, archived?: number}, permission?: PermissionRuleset, revert?: {messageID:
        string, partID?: string, snapshot?: string, diff?: string}};
    SessionStatus = {type: "idle"} | {type: "retry", attempt: integer, message: string, action?: {reason: string,
        provider: string, title: string, message: string, label: string, link?: string}, next: integer} | {type:
        "busy"};
    SnapshotFileDiff = {file?: string, patch?: string, additions: number, deletions: number, status?: "added" |
        "deleted" | "modified"};
    SnapshotPart = {id: string, sessionID: string, messageID: string, type: "snapshot", snapshot: string};
    StepFinishPart = {id: string, sessionID: string, messageID: string, type: "step-finish", reason: string,
        snapshot?: string, cost: number, tokens: {total?: number, input: number, output: number, reasoning: number,
        cache: {read: number, write: number}}};
    StepStartPart = {id: string, sessionID: string, messageID: string, type: "step-start", snapshot?: string};
    StructuredOutputError = {name: "StructuredOutputError", data: {message: string, retries: integer}};
    SubtaskPart = {id: string, sessionID: string, messageID: string, type: "subtask", prompt: string, description:
        string, agent: string, model?: {providerID: string, modelID: string}, command?: string};
    SubtaskPartInput = {id?: string, type: "subtask", prompt: string, description: string, agent: string, model?:
        {providerID: string, modelID: string}, command?: string};
    Symbol = {name: string, kind: integer, location: {uri: string, range: Range}};
    SymbolSource = {text: FilePartSourceText, type: "symbol", path: string, range: Range, name: string, kind:
        integer};
    TextPart = {id: string, sessionID: string, messageID: string, type: "text", text: string, synthetic?: boolean,
        ignored?: boolean, time?: {start: integer, end?: integer}, metadata?: {any}};
    TextPartInput = {id?: string, type: "text", text: string, synthetic?: boolean, ignored?: boolean, time?: {start:
        integer, end?: integer}, metadata?: {any}};
    Todo = {content: string, status: string, priority: string};
    ToolIDs = [string];
    ToolList = [ToolListItem];
    ToolListItem = {id: string, description: string, parameters: any};
    ToolPart = {id: string, sessionID: string, messageID: string, type: "tool", callID: string, tool: string, state:
        ToolState, metadata?: {any}};
    ToolState = ToolStatePending | ToolStateRunning | ToolStateCompleted | ToolStateError;
    ToolStateCompleted = {status: "completed", input: {any}, output: string, title: string, metadata: {any}, time:
        {start: integer, end: integer, compacted?: integer}, attachments?: [FilePart]};
    ToolStateError = {status: "error", input: {any}, error: string, metadata?: {any}, time: {start: integer, end:
        integer}};
    ToolStatePending = {status: "pending", input: {any}, raw: string};
    ToolStateRunning = {status: "running", input: {any}, title?: string, metadata?: {any}, time: {start: integer}};
    UnknownError = {name: "UnknownError", data: {message: string, ref?: string}};
    UserMessage = {id: string, sessionID: string, role: "user", time: {created: number}, format?: OutputFormat,
        summary?: {title?: string, body?: string, diffs: [SnapshotFileDiff]}, agent: string, model: {providerID:
        string, modelID: string, variant?: string}, system?: string, tools?: {boolean}};
    VcsFileDiff = {file: string, patch?: string, additions: number, deletions: number, status?: "added" | "deleted" |
        "modified"};
    VcsFileStatus = {file: string, additions: number, deletions: number, status: "added" | "deleted" | "modified"};
    VcsInfo = {branch?: string, default_branch?: string};
    WellKnownAuth = {type: "wellknown", key: string, token: string};
}
