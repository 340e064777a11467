//! Requests and responses of each route, by its name in `doc.txt`.

use outrigger_schema::{Schema, schema};

use outrigger_api::forms::{
    AuditEntry, AuditVerification, Conversation, ConversationPage, EntryPage, PluginPage,
    PromptDiff, SearchPage, StreamItem, Trace, Turn, Waiting,
};

use super::forms::*;

/// Request and response of a route.
pub(super) struct Body {
    /// Its name.
    pub(super) name: &'static str,
    /// The parameters of its query.
    pub(super) query: Option<Schema>,
    /// Its body.
    pub(super) takes: Option<Schema>,
    /// Content type and schema; `None` if the response is empty.
    pub(super) answers: Option<(&'static str, Schema)>,
}

/// The name of a route, after `?` the parameters of its query or in parentheses its body, and its response: a schema,
/// `(stream FORM)` with the schema of its events, `(text)` or `(nothing)`.
macro_rules! bodies {
    ($($first:ident $(.$rest:ident)* $(? $query:tt)? $(($($takes:tt)+))? -> $($answer:tt)|+;)*) => {
        /// All routes.
        pub(super) static ALL: &[Body] = &[$(Body {
            name: concat!(stringify!($first) $(, ".", stringify!($rest))*),
            query: bodies!(@some $($query)?),
            takes: bodies!(@some $($($takes)+)?),
            answers: bodies!(@answer $($answer)|+),
        }),*];
    };
    (@some) => { None };
    (@some $($one:tt)+) => { Some(schema!($($one)+)) };
    (@answer (stream $event:tt)) => { Some(("text/event-stream", schema!($event))) };
    (@answer (text)) => { Some(("text/plain", Schema::String)) };
    (@answer (nothing)) => { None };
    (@answer $($one:tt)|+) => { Some(("application/json", schema!($($one)|+))) };
}

bodies! {
    app.agents -> [Agent];
    v2.agent.list -> {location: Location, data: [{any}]};
    v2.command.list -> {location: Location, data: [{any}]};
    v2.fs.find ? {query: string, type?: "file" | "directory", limit?: integer} -> {location: Location, data: [{any}]};
    v2.health.get -> {healthy: true};
    v2.integration.list -> {location: Location, data: [{any}]};
    v2.location.get -> Location;
    v2.model.list -> {location: Location, data: [{any}]};
    v2.provider.list -> {location: Location, data: [{any}]};
    v2.reference.list -> {location: Location, data: [{any}]};
    v2.session.get -> {data: {any}};
    v2.session.list ? {limit?: number, order?: "asc" | "desc", search?: string, cursor?: string} -> {data: [{any}],
        cursor: {any}};
    v2.skill.list -> {location: Location, data: [{any}]};
    auth.remove -> boolean;
    auth.set (Auth) -> boolean;
    command.list -> [Command];
    config.get -> Config;
    config.update (Config) -> Config;
    config.providers -> {providers: [Provider], default: {string}};
    doc.get -> {any};
    event.subscribe -> (stream Event);
    experimental.capabilities -> {any};
    experimental.console.get -> any;
    experimental.console.listOrgs -> any;
    experimental.console.switchOrg (any) -> any;
    experimental.controlPlane.moveSession ({sessionID: string, destination: {directory: string}, moveChanges?: boolean}) ->
        (nothing);
    v2.projectCopy.create ({strategy: string, directory: string, name?: string}) -> ProjectCopyCopy;
    v2.projectCopy.remove ({directory: string, force: boolean}) -> (nothing);
    experimental.projectCopy.generateName ({context?: string}) -> {name: string};
    v2.projectCopy.refresh -> (nothing);
    experimental.resource.list -> {McpResource};
    experimental.session.list ? {roots?: "true" | "false", start?: number, cursor?: number, search?: string, limit?:
        number, archived?: "true" | "false"} -> [GlobalSession];
    experimental.session.background -> boolean;
    tool.list ? {provider: string, model: string} -> ToolList;
    tool.ids -> ToolIDs;
    experimental.workspace.list -> [any];
    experimental.workspace.create (any) -> any;
    experimental.workspace.adapter.list -> [any];
    experimental.workspace.status -> [any];
    worktree.remove (any) -> any;
    worktree.list -> [string];
    worktree.create (any) -> any;
    worktree.reset (any) -> any;
    file.list ? {path: string} -> [FileNode];
    file.read ? {path: string} -> FileContent;
    file.status -> [File];
    find.text ? {pattern: string} -> [{path: {text: string}, lines: {text: string}, line_number: integer,
        absolute_offset: integer, submatches: [{match: {text: string}, start: integer, end: integer}]}];
    find.files ? {query: string, dirs?: "true" | "false", type?: "file" | "directory", limit?: integer} -> [string];
    find.symbols ? {query: string} -> [Symbol];
    formatter.status -> [FormatterStatus];
    global.config.get -> Config;
    global.config.update (Config) -> Config;
    global.dispose -> boolean;
    global.event -> (stream GlobalEvent);
    global.health -> {healthy: true, version: string};
    global.upgrade ({target: string}) -> {success: true, version: string} | {success: false, error: string};
    instance.dispose -> boolean;
    app.log ({service: string, level: "debug" | "info" | "error" | "warn", message: string, extra?: {any}}) ->
        boolean;
    lsp.status -> [LSPStatus];
    mcp.status -> {MCPStatus};
    mcp.add ({name: string, config: McpLocalConfig | McpRemoteConfig}) -> {MCPStatus};
    mcp.auth.remove -> {success: true};
    mcp.auth.start -> {authorizationUrl: string, oauthState: string};
    mcp.auth.authenticate -> MCPStatus;
    mcp.auth.callback ({code: string}) -> MCPStatus;
    mcp.connect -> boolean;
    mcp.disconnect -> boolean;
    outrigger.check ({agent?: string, command?: string, model?: {providerID: string, modelID: string}, continues?:
        boolean}) -> (nothing);
    outrigger.permission.grant -> {file: string | null};
    outrigger.plugin.list -> any;
    outrigger.plugin.reload ({id: string}) -> any;
    outrigger.plugin.resume ({id: string}) -> any;
    outrigger.plugin.suspend ({id: string}) -> any;
    outrigger.session.latest -> Session | null;
    outrigger.session.cancel -> boolean;
    outrigger.session.events ? {after?: number} -> {head: number, events: [Event]};
    outrigger.session.interrupted -> {turn: string | null};
    outrigger.v1.audit.list ? {session?: string, plugin?: string, kind?: string, hook?: string, decision?: string, subject?: string,
        since?: integer, until?: integer, after?: integer, limit?: integer} -> [AuditEntry];
    outrigger.v1.audit.verify -> AuditVerification;
    outrigger.v1.conversation.list ? {limit?: integer, cursor?: string, search?: string, project?: string, children?: boolean} -> ConversationPage;
    outrigger.v1.conversation.get -> Conversation;
    outrigger.v1.conversation.content -> (text);
    outrigger.v1.conversation.diff -> [PromptDiff];
    outrigger.v1.conversation.messages ? {limit?: integer, before?: string, merge?: boolean} -> EntryPage;
    outrigger.v1.conversation.stream ? {after?: integer, merge?: boolean} -> (stream StreamItem);
    outrigger.v1.turn.list ? {limit?: integer} -> [Turn];
    outrigger.v1.turn.trace -> Trace;
    outrigger.v1.permission.reply ({reply: "once" | "always" | "reject", message?: string}) -> boolean;
    outrigger.v1.plugin.list -> PluginPage;
    outrigger.v1.question.reject -> boolean;
    outrigger.v1.question.reply ({answers: [QuestionAnswer]}) -> boolean;
    outrigger.v1.search ? {q: string, limit?: integer, cursor?: string, conversation?: string} -> SearchPage;
    outrigger.v1.stream ? {after?: integer, merge?: boolean} -> (stream StreamItem);
    outrigger.v1.waiting -> [Waiting];
    outrigger.session.turn ({prompt?: {any}, command?: [any], resume?: string}) -> {any};
    path.get -> Path;
    permission.list -> [PermissionRequest];
    permission.reply ({reply: "once" | "always" | "reject", message?: string}) -> boolean;
    project.list -> [Project];
    project.current -> Project;
    project.initGit -> Project;
    project.update ({name?: string, icon?: ProjectIcon, commands?: ProjectCommands}) -> Project;
    project.directories -> ProjectDirectories;
    provider.list -> {all: [Provider], default: {string}, connected: [string]};
    provider.auth -> {[ProviderAuthMethod]};
    provider.oauth.authorize ({method: number, inputs?: {string}}) -> ProviderAuthAuthorization;
    provider.oauth.callback ({method: number, code?: string}) -> boolean;
    pty.list -> [Pty];
    pty.create ({command?: string, args?: [string], cwd?: string, title?: string, env?: {string}}) -> Pty;
    pty.shells -> [{path: string, name: string, acceptable: boolean}];
    pty.remove -> boolean;
    pty.get -> Pty;
    pty.update ({title?: string, size?: {rows: integer, cols: integer}}) -> Pty;
    pty.connect ? {cursor?: string, ticket?: string} -> boolean;
    pty.connectToken -> PtyTicketConnectToken;
    question.list -> [QuestionRequest];
    question.reject -> boolean;
    question.reply ({answers: [QuestionAnswer]}) -> boolean;
    session.list ? {scope?: "project", path?: string, roots?: "true" | "false", start?: number, search?: string,
        limit?: number} -> [Session];
    session.create ({parentID?: string, title?: string, agent?: string, model?: {id: string, providerID: string,
        variant?: string}, metadata?: {any}, permission?: PermissionRuleset, workspaceID?: string}) -> Session;
    session.status -> {SessionStatus};
    session.delete -> boolean;
    session.get -> Session;
    session.update ({title?: string, metadata?: {any}, permission?: PermissionRuleset, time?: {archived?: number}}) ->
        Session;
    session.abort -> boolean;
    session.children -> [Session];
    session.command ({messageID?: string, agent?: string, model?: string, arguments: string, command: string,
        variant?: string, parts?: [{id?: string, type: "file", mime: string, filename?: string, url: string, source?:
        FilePartSource}]}) -> {info: Message, parts: [Part]};
    session.diff ? {messageID?: string} -> [SnapshotFileDiff];
    session.fork ({messageID?: string}) -> Session;
    session.init ({modelID: string, providerID: string, messageID: string}) -> boolean;
    session.messages ? {limit?: integer, before?: string} -> [{info: Message, parts: [Part]}];
    session.prompt ({messageID?: string, model?: {providerID: string, modelID: string}, agent?: string, noReply?:
        boolean, tools?: {boolean}, format?: OutputFormat, system?: string, variant?: string, parts: [TextPartInput |
        FilePartInput | AgentPartInput | SubtaskPartInput]}) -> {info: Message, parts: [Part]};
    session.deleteMessage -> boolean;
    session.message -> {info: Message, parts: [Part]};
    part.delete -> boolean;
    part.update (Part) -> Part;
    permission.respond ({response: "once" | "always" | "reject"}) -> boolean;
    session.prompt_async ({messageID?: string, model?: {providerID: string, modelID: string}, agent?: string,
        noReply?: boolean, tools?: {boolean}, format?: OutputFormat, system?: string, variant?: string, parts:
        [TextPartInput | FilePartInput | AgentPartInput | SubtaskPartInput]}) -> (nothing);
    session.revert ({messageID: string, partID?: string}) -> Session;
    session.unshare -> Session;
    session.share -> Session;
    session.shell ({messageID?: string, agent: string, model?: {providerID: string, modelID: string}, command:
        string}) -> {info: Message, parts: [Part]};
    session.summarize ({providerID: string, modelID: string, auto?: boolean}) -> boolean;
    session.todo -> [Todo];
    session.unrevert -> Session;
    app.skills -> [{name: string, description?: string, location: string, content: string}];
    sync.history.list ({integer}) -> [{id: string, aggregate_id: string, seq: integer, type: string, data: {any}}];
    sync.replay ({directory: string, events: [{id: string, aggregateID: string, seq: integer, type: string, data:
        {any}}]}) -> {sessionID: string};
    sync.start -> boolean;
    sync.steal ({sessionID: string}) -> {sessionID: string};
    tui.appendPrompt ({text: string}) -> boolean;
    tui.clearPrompt -> boolean;
    tui.control.next -> {path: string, body: any};
    tui.control.response (any) -> boolean;
    tui.executeCommand ({command: string}) -> boolean;
    tui.openHelp -> boolean;
    tui.openModels -> boolean;
    tui.openSessions -> boolean;
    tui.openThemes -> boolean;
    tui.publish (EventTuiPromptAppend | EventTuiCommandExecute | EventTuiToastShow | EventTuiSessionSelect) ->
        boolean;
    tui.selectSession ({sessionID: string}) -> boolean;
    tui.showToast ({title?: string, message: string, variant: "info" | "success" | "warning" | "error", duration?:
        integer}) -> boolean;
    tui.submitPrompt -> boolean;
    vcs.get -> VcsInfo;
    vcs.apply ({patch: string}) -> {applied: boolean};
    vcs.diff ? {mode: "git" | "branch", context?: integer} -> [VcsFileDiff];
    vcs.diff.raw -> (text);
    vcs.status -> [VcsFileStatus];
}
