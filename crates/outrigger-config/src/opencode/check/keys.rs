//! The known keys of opencode.json and their types. Unknown keys may have any value. `docs/opencode.schema.json` is generated
//! from this table.

use outrigger_schema::{COUNT, POSITIVE, Schema, schema};

const ACTION: Schema = schema!("allow" | "ask" | "deny");
const RULE: Schema = Schema::Said(
    "\"allow\", \"ask\" or \"deny\", or an object of patterns with one of these each",
    &schema!(ACTION | { ACTION }),
);
const PERMISSION: Schema = Schema::Said(
    "\"allow\", \"ask\" or \"deny\", or an object of permissions with their rules",
    &schema!(ACTION | { RULE }),
);
const MILLISECONDS: Schema = Schema::Said(
    "milliseconds as a whole number, or false",
    &schema!(POSITIVE | false),
);
const PLUGIN: Schema = Schema::Said(
    "a plugin as text, or a list of the plugin and its options",
    &schema!(string | [string, { any }]),
);
const FORMATTERS: Schema = Schema::Said(
    "true, false or an object of formatters",
    &schema!(boolean | { any }),
);
const SERVERS: Schema = Schema::Said(
    "true, false or an object of language servers",
    &schema!(boolean | { any }),
);
const UPDATE: Schema = Schema::Said("true, false or \"notify\"", &schema!(boolean | "notify"));

const AGENT: Schema = schema!({
    /// `provider/model`.
    model?: string,
    /// Named set of model options.
    variant?: string,
    temperature?: number,
    top_p?: number,
    /// System prompt.
    prompt?: string,
    /// Tools switched on or off; `permission` says more.
    tools?: {boolean},
    /// Take it away.
    disable?: boolean,
    /// When to use it.
    description?: string,
    /// Who may use it: other agents, the user, or both.
    mode?: "subagent" | "primary" | "all",
    /// Do not offer it for choosing.
    hidden?: boolean,
    /// Options for the model's provider, merged over those of the model.
    options?: {any},
    /// `#rrggbb` or the name of a theme color.
    color?: string,
    /// Most steps of a turn.
    steps?: POSITIVE,
    /// Older name of `steps`.
    maxSteps?: POSITIVE,
    permission?: PERMISSION,
    /// Where it stands among the agents, smallest first.
    order?: number,
});

const COMMAND: Schema = schema!({
    /// The prompt, with `$ARGUMENTS`, `$1`, `@file` and `` !`shell` `` in it.
    template: string,
    description?: string,
    /// Agent that runs it.
    agent?: string,
    /// `provider/model`.
    model?: string,
    /// Named set of model options.
    variant?: string,
    /// Run it as a subtask.
    subtask?: boolean,
});

const MODEL: Schema = schema!({
    id?: string,
    name?: string,
    family?: string,
    release_date?: string,
    attachment?: boolean,
    reasoning?: boolean,
    temperature?: boolean,
    tool_call?: boolean,
    /// US dollars for a million tokens.
    cost?: {input?: number, output?: number, cache_read?: number, cache_write?: number},
    /// Tokens.
    limit?: {context?: number, input?: number, output?: number},
    modalities?: {input?: [string], output?: [string]},
    options?: {any},
    headers?: {string},
    variants?: {{any}},
});

const PROVIDER: Schema = schema!({
    api?: string,
    name?: string,
    /// Variables that hold the key.
    env?: [string],
    id?: string,
    /// Package that speaks for it.
    npm?: string,
    /// The only models that are used.
    whitelist?: [string],
    /// Models that are not used.
    blacklist?: [string],
    options?: {
        apiKey?: string,
        baseURL?: string,
        setCacheKey?: boolean,
        timeout?: MILLISECONDS,
        headerTimeout?: MILLISECONDS,
        chunkTimeout?: MILLISECONDS,
    },
    models?: {MODEL},
});

const MCP: Schema = schema!({
    /// A program that is started, or an address.
    type?: "local" | "remote",
    command?: [string],
    cwd?: string,
    environment?: {string},
    url?: string,
    headers?: {string},
    enabled?: boolean,
    /// Milliseconds.
    timeout?: POSITIVE,
});

const SKILLS: Schema = schema!({
    /// More folders with skills.
    paths?: [string],
    /// Addresses with an index of skills.
    urls?: [string],
});

const TOOL_OUTPUT: Schema = schema!({ max_lines?: POSITIVE, max_bytes?: POSITIVE });

const COMPACTION: Schema = schema!({
    /// Compact when the context is full.
    auto?: boolean,
    /// Drop old tool output.
    prune?: boolean,
    /// Turns that are kept as they are.
    tail_turns?: COUNT,
    /// Tokens of recent messages that are kept.
    preserve_recent_tokens?: COUNT,
    /// Tokens of the context window kept free for the compaction itself.
    reserved?: COUNT,
});

const EXPERIMENTAL: Schema = schema!({
    primary_tools?: [string],
    continue_loop_on_deny?: boolean,
    /// Milliseconds.
    mcp_timeout?: POSITIVE,
    batch_tool?: boolean,
    openTelemetry?: boolean,
});

/// The whole document.
pub static CONFIG: Schema = schema!({
    "$schema"?: string,
    /// Shell of the bash tool.
    shell?: string,
    logLevel?: string,
    /// Commands by name.
    command?: {COMMAND},
    skills?: SKILLS,
    watcher?: {ignore?: [string]},
    /// Keep snapshots of the project's files.
    snapshot?: boolean,
    /// Plugins to load, in order.
    plugin?: [PLUGIN],
    share?: "manual" | "auto" | "disabled",
    autoshare?: boolean,
    autoupdate?: UPDATE,
    /// Providers that are never used.
    disabled_providers?: [string],
    /// The only providers that are used.
    enabled_providers?: [string],
    /// `provider/model`.
    model?: string,
    /// `provider/model` for titles and the like.
    small_model?: string,
    /// Agent to start with.
    default_agent?: string,
    /// How deep subagents may start subagents.
    subagent_depth?: COUNT,
    /// How to call the user.
    username?: string,
    /// Older name of `agent`.
    mode?: {AGENT},
    /// Agents by name.
    agent?: {AGENT},
    /// Model providers by name.
    provider?: {PROVIDER},
    /// MCP servers by name.
    mcp?: {MCP},
    formatter?: FORMATTERS,
    lsp?: SERVERS,
    /// Files and addresses with instructions.
    instructions?: [string],
    permission?: PERMISSION,
    /// Tools switched on or off; `permission` says more.
    tools?: {boolean},
    tool_output?: TOOL_OUTPUT,
    compaction?: COMPACTION,
    experimental?: EXPERIMENTAL,
});
