//! The same as a schema.
#![expect(
    non_upper_case_globals,
    reason = "names of the document, which clients are made from"
)]

use outrigger_schema::{Schema, schema};

/// Constants of the forms' names, and a list of all.
macro_rules! forms {
    ($($(#[doc = $doc:literal])* $name:ident = $($one:tt)|+;)*) => {
        $($(#[doc = $doc])* pub static $name: Schema = Schema::Named(stringify!($name), &schema!($($one)|+));)*

        /// All of them, by their names.
        pub static ALL: &[(&str, &Schema)] = &[$((stringify!($name), &$name)),*];
    };
}

forms! {
    /// An entry of the audit, with its place.
    AuditEntry = {seq: integer, at: integer, kind: string, decision: string, policyCheckResult: string, sessionId?: string,
        pluginId?: string, subPluginId?: string, hookName?: string, subject?: string, detail?: string, durationMs?: number,
        prevHash: string, hash: string};
    /// Whether the audit is whole.
    AuditVerification = {valid: boolean, rows: integer, first: integer, removed: integer, unlisted: integer, seals: integer,
        unsealed: integer, head: integer,
        /// The key that seals are made with.
        key: string | null,
        faults: [string]};
    /// What a hook changed at one place.
    ChangedValue = {
        /// JSON pointer into the output of the hook. What was removed from a list has its index from before.
        at: string,
        /// What stood there.
        before?: RecordedValue,
        /// What stands there now.
        after?: RecordedValue
    };
    /// A session, as a list shows it.
    Conversation = {
        id: string,
        title: string,
        /// The beginning of its first prompt, on one line: it tells conversations with one title apart.
        opening?: string,
        /// Folder that it works in.
        directory: string,
        projectID: string,
        /// The session whose agent started it.
        parentID?: string,
        /// The session that a person began.
        task: string,
        agent?: string,
        model?: {id: string, providerID: string, variant?: string},
        status: ConversationStatus,
        /// What waits for a person, in it and in what its agents started.
        waiting: [Waiting],
        /// US dollars so far.
        cost: number,
        tokens: ConversationTokens,
        summary?: {additions: integer, deletions: integer, files: integer, diffs?: [any]},
        revert?: {messageID: string, partID?: string, snapshot?: string, diff?: string},
        /// The program that it was imported from, and what that says of it.
        origin?: {program: string, version?: string, session: string, directory?: string},
        time: {created: integer, updated: integer, compacting?: integer, archived?: number}
    };
    /// A message of a conversation.
    ConversationMessage = {
        id: string,
        /// `user`, `assistant`, `system`.
        role: string,
        /// `text`, `reasoning`, `tool_use`, `tool_result`, `tool_execution` and others.
        messageType: string,
        /// For people.
        content: string,
        /// Milliseconds since 1970.
        timestamp: integer,
        metadata: MessageMetadata
    };
    /// Structured facts of a message; other keys are for its kind alone.
    MessageMetadata = {
        tool_name?: string,
        tool_use_id?: string,
        input?: any,
        output?: any,
        is_error?: boolean,
        duration_ms?: number,
        summary?: string,
        details?: Details,
        /// A patch of several files: what changed in each.
        changes?: [Details],
        /// The conversation of a subagent.
        conversation?: string,
        /// What a running tool says of itself.
        title?: string,
        progress?: any,
        /// Whose tool it is, where a bundled one has its name.
        plugin?: string,
        /// The plugin that refused the call.
        refused_by?: string
    };
    /// Conversations, what waits for a person first.
    ConversationPage = {conversations: [Conversation], next: string | null};
    /// What a conversation is doing.
    ConversationStatus = "idle" | "busy" | "retry";
    /// Tokens that were used.
    ConversationTokens = {total?: integer, input: integer, output: integer, reasoning: integer, cache: {read: integer, write: integer}};
    /// What a tool did, for display.
    Details = DiffDetails | FileListDetails | CommandOutputDetails;
    /// A file changed.
    DiffDetails = {type: "diff", data: {oldContent: string, newContent: string, path: string | null}};
    /// Files were found.
    FileListDetails = {type: "fileList", data: {files: [string]}};
    /// A command ran.
    CommandOutputDetails = {type: "commandOutput", data: {
        stdout: string,
        stderr: string,
        /// Null when it was killed.
        exitCode: integer | null
    }};
    /// A message at its place: it takes the place of the entry that has its key.
    Entry = {
        /// Keys ascend in the order of the conversation.
        key: string,
        state: EntryState,
        conversation: string,
        /// The conversation that a person began.
        task: string,
        /// The prompt that it is, or that it answers.
        attempt: string,
        message: ConversationMessage,
        /// Texts of the message that are cut.
        shortened?: [Shortened]
    };
    /// Entries in ascending order.
    EntryPage = {
        entries: [Entry],
        /// `before` of the next, older page.
        next: string | null,
        /// The stream goes on after it.
        event: integer
    };
    /// How far an entry is.
    EntryState = "running" | "done";
    /// What a hook of a plugin cost.
    HookCost = {plugin: string, hook: string, calls: integer, skipped: integer, outcomes: {integer}, p50_ms: number, p95_ms:
        number, p99_ms: number, max_ms: number, total_ms: number, max_bytes: integer};
    /// Plugins of a folder.
    PluginPage = {plugins: [PluginState], perf: [HookCost], flags: {{on: boolean, from: string}}, snapshot: any};
    /// How a plugin is.
    PluginState = {
        id: string,
        spec: string,
        version?: string | null,
        /// `registered`, `active`, `suspended`, `deactivated`, `failed`.
        state: string,
        stage: string,
        /// Why it is not further.
        cause?: any,
        warnings: [string],
        notes: [string],
        hooks: [string],
        tools: [string],
        pid?: integer | null,
        /// How often its process has been started.
        generation: integer,
        /// What its process uses, shared ones with all plugins in it.
        usage?: {cpu_ms: integer, cpu: number, rss: integer, processes: integer},
        own_cpu_ms?: integer,
        quarantine?: string,
        /// Those that are not at rest.
        breakers?: [{hook: string, state: string, timeouts: integer, opens_in_ms?: integer}]
    };
    /// Files that a prompt changed.
    PromptDiff = {attempt: string, diffs: [any]};
    /// Nothing of a value but what tells it from others: bytes of its JSON text, and the SHA-256 of that.
    RecordedDigest = {kind: "digest", bytes: integer, sha256: string};
    /// A part of a value, from where it differs: of a text, or of the JSON text of anything else.
    RecordedExcerpt = {
        kind: "excerpt",
        text: string,
        /// Bytes of the whole text before the part.
        from: integer,
        /// Bytes of the whole text.
        bytes: integer
    };
    /// A value, as far as a record keeps it.
    RecordedValue = RecordedWhole | RecordedExcerpt | RecordedDigest;
    /// All of a value.
    RecordedWhole = {kind: "whole", value: any};
    /// A text that has all the words that are looked for.
    SearchHit = {
        conversation: string,
        title: string,
        directory: string,
        message: string,
        /// Of its entry.
        key: string,
        /// `text`, `reasoning`, `file`, `subtask` or a tool's name.
        kind: string,
        before: string,
        /// The first word, as it stands there.
        found: string,
        after: string
    };
    /// Texts that were found, the newest first. A page may have none and still a next one.
    SearchPage = {hits: [SearchHit], next: string | null};
    /// A text that is cut.
    Shortened = {
        /// JSON pointer into the message.
        at: string,
        bytes: integer,
        ref: string
    };
    /// A permission question as people see it: who wants the call, all of it, and all that an answer allows.
    ShownPermission = {
        /// What is asked; of a permission that is not ours its name.
        title: string,
        /// In the order in which they are read. `command` is a command line, `change` a unified diff. The texts are others', as they wrote them.
        facts: [{name: string, text: string}]
    };
    /// Something of a turn that took time.
    Span = {
        kind: "model" | "tool" | "hook",
        name: string,
        start: integer,
        durationMs: number,
        state: "ok" | "error" | "skipped" | "running",
        plugin?: string,
        /// JSON pointers into what the hook was given.
        changed?: [string],
        values?: [ChangedValue],
        /// How many places changed besides.
        moreValues?: integer,
        facts: {any}
    };
    /// What a stream says.
    StreamItem = StreamConnected | StreamReset | StreamEntry | StreamRemoved | StreamConversation | StreamDeleted | StreamAsked |
        StreamAnswered | StreamDelta | StreamProgress | StreamStatus;
    /// It does no longer wait.
    StreamAnswered = {type: "answered", conversation: string, id: string};
    /// Something waits for a person.
    StreamAsked = {type: "asked", waiting: Waiting};
    /// Where the stream begins.
    StreamConnected = {type: "connected", event: integer};
    /// A session is new or has changed.
    StreamConversation = {type: "conversation", conversation: Conversation};
    /// A session is gone.
    StreamDeleted = {type: "deleted", conversation: string};
    /// A piece of a text that is being written; with `start` it is all of it so far. Not stored.
    StreamDelta = {type: "delta", conversation: string, key: string, text: string, start?: boolean};
    /// An entry is new or has changed.
    StreamEntry = {type: "entry", entry: Entry};
    /// What a running tool has printed so far. Not stored.
    StreamProgress = {type: "progress", entry: Entry};
    /// Gone: this key, and all that begin with it and `/`.
    StreamRemoved = {type: "removed", conversation: string, key: string};
    /// The log is not the one that you know.
    StreamReset = {type: "reset", event: integer};
    /// What a session is doing. Not stored.
    StreamStatus = {type: "status", conversation: string, status: ConversationStatus};
    /// What happened in a turn.
    Trace = {turn: Turn, spans: [Span]};
    /// A turn of a session.
    Turn = {id: string, conversation: string, attempt?: string, began: integer, ended: integer, open: boolean};
    /// What a person is asked.
    Waiting = WaitingPermission | WaitingQuestion;
    /// May something be done?
    WaitingPermission = {type: "permission", request: {
        id: string,
        sessionID: string,
        /// `bash`, `edit`, `external_directory` ...
        permission: string,
        patterns: [string],
        /// Patterns that "always" would allow.
        always: [string],
        metadata: {any},
        /// Who caused it, where it was not the user and the model alone.
        provenance?: [{any}],
        tool?: {messageID: string, callID: string}
    }, shown: ShownPermission};
    /// The model asks.
    WaitingQuestion = {type: "question", request: {
        id: string,
        sessionID: string,
        questions: [{
            question: string,
            header: string,
            options: [{label: string, description: string}],
            multiple?: boolean,
            custom?: boolean
        }],
        tool?: {messageID: string, callID: string}
    }};
}
