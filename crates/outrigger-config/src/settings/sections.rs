//! The table of settings. From it come the structs and their defaults, the check of files and of the environment,
//! `docs/outrigger.schema.json` and the tables of `docs/configuration/outrigger-toml.md`, for which the comments are written
//! (`cargo xtask generate`).
//!
//! A row is the setting's comment, its name, its type, its default, what it may be, in the notation of
//! [`outrigger_schema::schema!`], and what a project's own file may do about it ([`ProjectFile`]).

use std::collections::BTreeMap;
use std::path::PathBuf;

use outrigger_schema::{Format, PORT, POSITIVE, Schema, schema};
use serde::Serialize;

use super::keys::{Key, ProjectFile, Section, key, settings};
use super::{
    ChatMessage, Editing, Environment, Install, Isolation, JsRuntime, PluginProfile, Profile,
    Settings, TrustChanges, TrustProjects, TuiColors, TuiTheme,
};

const TEXT: Schema = Schema::Text(Format::NotEmpty);
const NAME: Schema = Schema::Text(Format::Name);
const FIELD: Schema = schema!("password" | "card" | "code");
const VARIABLE: Schema = Schema::Text(Format::Variable);
/// With a slash in it, a relative one starts at the declaring file's folder.
const PROGRAM: Schema = Schema::Text(Format::Program);
/// A relative one starts at the declaring file's folder.
const FOLDER: Schema = Schema::Text(Format::Folder);
/// Names of actions with their keys.
const KEYS: Schema = Schema::Said(
    "a table of names with keys as text, such as `session_new = \"ctrl+n\"`",
    &schema!({ string }),
);
/// At least one, and at most a day: a deadline that never comes is a hang.
const MILLIS: Schema = schema!(1..=86_400_000);

/// The settings that are in no section.
pub const TOP: &[Key<Settings>] = &[
    key! {
        /// Run plugin processes in a sandbox, and enforce permission rules on the processes of tools. `"strict"`: also
        /// refuse to start a process whose sandbox the system cannot enforce completely. `"off"`: neither.
        sandbox: ("on" | "off" | "strict"), Security
    },
    key! {
        /// Exit with code 3 if a plugin does not load (`--strict-plugins`).
        strict_plugins: boolean, UserOnly
    },
];

settings! {
    /// `[trust]`: which plugins may start (trust by content).
    trust: Trust {
        /// Whether to trust plugins of a project. `"trust"`: trusting the folder also trusts the plugins that it
        /// contains at that time; later ones need approval. `"ask"`: each plugin needs approval. `"deny"`: only plugins
        /// that were trusted before start. See [plugins.md](../plugins/trust.md).
        projects: TrustProjects = TrustProjects::Trust, ("trust" | "ask" | "deny"), Security;
        /// What happens if a plugin differs from what was trusted, or settings changed while a sandboxed process ran.
        /// `"ask"`: the user is asked; without a terminal the plugin, or for settings the agent, does not start.
        /// `"allow"`: the new version is trusted.
        changes: TrustChanges = TrustChanges::Ask, ("ask" | "allow"), Security;
        /// Start plugins whose files other users of the machine may change.
        world_writable: bool = false, boolean, Security;
    }

    /// `[discovery]`: which plugins with a manifest, and which bundled plugins, run (D1, D3, D5).
    discovery: Discovery {
        /// Which bundled plugins run. `"minimal"`: all except `telegram` and `mcp`; `"messaging"`: also `telegram`;
        /// `"full"`: also `mcp` (see [plugins.md](../plugins.md#which-plugins-run)).
        profile: PluginProfile = PluginProfile::Minimal, ("minimal" | "messaging" | "full"), Security;
        /// Additional folders to search for plugins with a manifest.
        paths: Vec<PathBuf> = Vec::new(), [FOLDER], Security;
        /// Plugins that may run although their manifest declares `has_side_effects` or requests a capability that has
        /// some: user plugins by id, project plugins by the path of their folder.
        allow: Vec<String> = Vec::new(), [NAME], Security;
        /// Ids of plugins that must not run, including bundled ones. `*` matches any text.
        deny: Vec<String> = Vec::new(), [NAME], Security;
        /// Seconds between checks of `serve` whether other plugins should run now, or whether a plugin that failed to
        /// start can start. A change of the user's `outrigger.toml` is noticed at once. 0 disables the check.
        renew_seconds: u64 = 10, (0..=86_400), Security;
    }

    /// `[telegram]`: the connector to Telegram (D5).
    telegram: Telegram {
        /// Ids of the chats whose messages are prompts (see [plugins.md](../plugins.md#telegram)).
        chats: Vec<i64> = Vec::new(), [integer], Security;
        /// Agent that answers the messages. Default: the default agent.
        agent: Option<String> = None, TEXT, Security;
        /// URL of the Bot API, for a self-hosted server.
        api: String = "https://api.telegram.org".to_owned(), TEXT, Security;
    }

    /// `[js]`: JavaScript runtimes.
    js: Js {
        /// Runtime of plugins. `"auto"`: Bun if it is installed, otherwise Node.
        runtime: JsRuntime = JsRuntime::Auto, ("auto" | "bun" | "node"), UserOnly;
        /// Path of Bun. Default: searched for.
        bun: Option<PathBuf> = None, PROGRAM, Security;
        /// Path of Node. Default: searched for.
        node: Option<PathBuf> = None, PROGRAM, Security;
        /// Which environment variables plugins see. `"user"`: those of the user, except names that look like secrets;
        /// `"list"`: a short fixed list.
        environment: Environment = Environment::User, ("user" | "list"), Security;
        /// What happens if a plugin needs Bun and it is not installed. `"ask"`: ask in a terminal whether to download
        /// it; `"auto"`: download it; `"never"`: only `outrigger plugin setup` downloads it.
        install: Install = Install::Ask, ("ask" | "auto" | "never"), Security;
    }

    /// `[deadlines]`: deadlines of plugins, in milliseconds (C5).
    deadlines: Deadlines {
        /// Deadline of pure policy hooks: `llm.before_request`, and custom points that declare it.
        fast_ms: u64 = 500, MILLIS, UserOnly;
        /// Deadline of other hooks.
        normal_ms: u64 = 5_000, MILLIS, UserOnly;
        /// Deadline of each step of loading a plugin, and of its `config` hook.
        load_ms: u64 = 10_000, MILLIS, UserOnly;
        /// Deadline of authentication: loaders, and each step of a login.
        slow_ms: u64 = 30_000, MILLIS, UserOnly;
    }

    /// `[models]`: model requests.
    models: Models {
        /// Maximum time to the first byte of an answer, in milliseconds.
        first_byte_ms: u64 = 120_000, MILLIS, Counts;
        /// Maximum pause within an answer, in milliseconds.
        idle_ms: u64 = 120_000, MILLIS, Counts;
        /// Maximum duration of a request, in milliseconds.
        total_ms: u64 = 1_800_000, MILLIS, Counts;
        /// Maximum number of retries of a failed request. If it is not set, the provider's own limit applies.
        max_retries: u32 = 5, (0..=100), Counts;
        /// Download the published model catalog (limits, prices, capabilities) in the background, at most once a day,
        /// when a provider needs it. `OPENCODE_DISABLE_MODELS_FETCH=1` also disables it.
        fetch_catalog: bool = true, boolean, UserOnly;
        /// URL of the model catalog. `OPENCODE_MODELS_URL` overrides it.
        catalog_url: String = "https://models.dev".to_owned(), TEXT, Security;
    }

    /// `[tools]`: bundled tools, and the sandbox of shell commands.
    tools: Tools {
        /// Maximum size of tool output that the model receives, in bytes. The complete output is saved to a file.
        output_bytes: u64 = 51_200, POSITIVE, Counts;
        /// Maximum number of lines of tool output that the model receives.
        output_lines: u64 = 2_000, POSITIVE, Counts;
        /// MCP server with the tool `web_search_exa`, which the tool `websearch` uses if `OPENCODE_ENABLE_EXA=1`
        /// enables it.
        websearch_url: String = "https://mcp.exa.ai/mcp".to_owned(), TEXT, Security;
        /// Default timeout of a shell command, in milliseconds.
        bash_timeout_ms: u64 = 120_000, MILLIS, Counts;
        /// Milliseconds after which an unused MCP server of a skill is stopped.
        skill_server_idle_ms: u64 = 300_000, MILLIS, Counts;
        /// What shell commands of the model may access (see [sandbox.md](../sandbox.md)). `"workspace-write"`: read
        /// everything except [secrets of the home folder](../sandbox.md#secrets), and change the project, caches and a
        /// temporary folder; `"read-only"`: change the temporary folder only; `"full"`: everything that the user may,
        /// as in OpenCode, except [what rules deny and Outrigger's own files](../configuration.md#permissions). The
        /// first two also deny UNIX sockets and access to other processes.
        sandbox: Profile = Profile::WorkspaceWrite, ("full" | "workspace-write" | "read-only"), Security;
        /// Allow shell commands to connect to UNIX sockets even if a `deny` rule names paths or `tools.sandbox` is
        /// narrower than `"full"`. By default they then cannot reach Docker, an SSH agent, tmux and similar services,
        /// which could do for a command what is denied to it.
        unix_sockets: bool = false, boolean, Security;
        /// Hosts that shell commands may connect to, such as `["*.npmjs.org", "localhost"]`; patterns are those of
        /// [plugins.md](../plugins/sandbox.md#the-network). Unset: all hosts; `[]`: none. If set, the shell and Python
        /// tools, `!` in prompts, the user's `!` commands and terminals, formatters and command hooks use Outrigger's
        /// proxy: `HTTP_PROXY` and related variables name it, and connections of programs that ignore them are
        /// redirected. UDP and UNIX sockets are then denied. A refused host is named in the tool's output and in the
        /// audit. A command reaches its own servers; those of other commands need `localhost`.
        hosts: Option<Vec<String>> = None, [NAME], Security;
        /// Secrets of the home folder that commands may read, such as `["~/.ssh"]`.
        secrets: Vec<String> = Vec::new(), [FOLDER], Security;
        /// Additional environment variables that commands see, such as `["GH_TOKEN", "AWS_*"]`. By default they see
        /// those that build tools need, without names and values that look like secrets.
        env: Vec<String> = Vec::new(), [NAME], Security;
        /// Additional files and folders that commands may change.
        write: Vec<String> = Vec::new(), [FOLDER], Security;
        /// Local ports of other services that commands may connect to, such as `[5432]`.
        ports: Vec<u16> = Vec::new(), [PORT], Security;
    }

    /// `[browser]`: a browser for the model ([browser.md](../browser.md)).
    browser: Browser {
        /// Offer the browser tools to the model if Chromium is installed.
        enabled: bool = false, boolean, Security;
        /// Path of Chromium. Default: searched for.
        program: Option<PathBuf> = None, PROGRAM, Security;
        /// WebSocket URL of a running Chromium, such as `ws://127.0.0.1:9222/devtools/browser/…`, to use instead of
        /// starting one.
        url: Option<String> = None, TEXT, Security;
        /// Origin of the Outrigger extension in the user's own browser, such as `chrome-extension://…`, to use that browser
        /// with the user's logins, instead of starting one ([browser.md](../browser.md#your-own-browser)).
        extension: Option<String> = None, TEXT, Security;
        /// Port on 127.0.0.1 that the extension connects to.
        extension_port: u16 = 39_223, PORT, Security;
        /// Run Chromium without a window.
        headless: bool = true, boolean, UserOnly;
        /// Additional arguments for Chromium.
        arguments: Vec<String> = Vec::new(), [TEXT], Security;
        /// Environment variables whose values the model may type by name, each with the hosts that it may be typed on,
        /// such as `["SHOP_PASSWORD@*.shop.example"]`. The model does not see the values.
        secrets: Vec<String> = Vec::new(), [TEXT], Security;
        /// Kinds of protected fields that are read and filled in like other fields.
        fields: Vec<String> = Vec::new(), [FIELD], Security;
        /// Sites where each change needs approval: hosts, `*.host`, or URLs with `*`.
        ask: Vec<String> = Vec::new(), [TEXT], Security;
        /// Offer the tool `browser_eval`, which runs JavaScript of the model in pages.
        eval: bool = false, boolean, Security;
    }

    /// `[agent]`: limits of turns.
    agent: Agent {
        /// Maximum number of model requests per turn, by default 200. An agent's `steps` takes precedence. A project may lower
        /// both values but not raise them.
        max_steps: Option<u64> = None, POSITIVE, Lowers;
        /// Maximum number of times in a row that hooks may keep a turn from ending (default 10).
        max_continuations: Option<u64> = None, POSITIVE, UserOnly;
        /// Maximum number of turns in a row that plugins may start through their client without a prompt of the user in
        /// between, over all sessions of a folder (default 100).
        max_plugin_turns: Option<u64> = None, POSITIVE, UserOnly;
    }

    /// `[budget]`: what a session may use, including subagents and turns that plugins start. After that, no further
    /// model requests are sent. `outrigger session show` prints the usage.
    budget: Budget {
        /// Maximum number of prompts.
        turns: Option<u64> = None, POSITIVE, UserOnly;
        /// Maximum number of tokens, sent and received, including cached ones. If a provider reports no plausible
        /// number of sent tokens, a quarter of the sent bytes is counted.
        tokens: Option<u64> = None, POSITIVE, UserOnly;
        /// Maximum cost in US cents, by the prices of the models.
        cents: Option<u64> = None, POSITIVE, UserOnly;
    }

    /// `[log]`: how output of plugins is logged (A9).
    log: Log {
        /// Log level of plugin output: `error`, `warn`, `info`, `debug`, `trace` or `off`.
        plugin_stderr_level: String = "warn".to_owned(), ("error" | "warn" | "info" | "debug" | "trace" | "off"), UserOnly;
        /// Maximum number of lines per second that are logged of one plugin process.
        plugin_stderr_lines_per_second: u64 = 50, POSITIVE, UserOnly;
    }

    /// `[limits]`: what a plugin process and the processes that it starts may use (A10, C7).
    limits: Limits {
        /// Maximum memory of a plugin process and its children, in MiB, checked once a second. A process that exceeds
        /// it is stopped, named and restarted. Where control groups are available (cgroup v1 or v2, owned by the user),
        /// one enforces nine eighths of it at once; everywhere, allocations fail beyond eight times the private memory.
        plugin_memory_mb: u64 = 2048, (64..=1_048_576), UserOnly;
        /// Maximum number of processes of a plugin process, including itself.
        plugin_processes: u64 = 128, POSITIVE, UserOnly;
        /// Maximum number of open files of each process of a plugin. A process that comes near it is named in the log.
        plugin_open_files: u64 = 4096, (64..=1_048_576), UserOnly;
        /// Seconds between health checks of an idle plugin process. A process that fails two checks in a row, each
        /// within `deadlines.normal_ms`, is restarted. 0 disables the checks.
        plugin_health_seconds: u64 = 30, (0..=86_400), UserOnly;
        /// Maximum size of a hook payload that is sent through the channel, in bytes. Larger payloads are sent as
        /// files.
        plugin_inline_bytes: u64 = 64 * 1024, (0..=67_108_864), UserOnly;
        /// Maximum amount that the client of a plugin may store per day (UTC) and folder, in MiB: request bodies, files
        /// attached to prompts, and copied sessions. Stored data remains in the log.
        plugin_stored_mb: u64 = 128, (1..=1_048_576), UserOnly;
        /// Maximum number of storing requests of the client of a plugin per day (UTC) and folder.
        plugin_stored_requests: u64 = 20_000, POSITIVE, UserOnly;
    }

    /// `[claude]`: which formats of Claude Code are read.
    claude: Claude {
        /// Read `.mcp.json` of the project. Each of its servers still needs approval.
        mcp: bool = true, boolean, Counts;
        /// Read `.claude/commands`.
        commands: bool = true, boolean, Counts;
        /// Run the command hooks of `.claude/settings.json`. Those of a project still need approval. A project cannot
        /// change this setting, since hooks of the user may be guards.
        hooks: bool = true, boolean, Security;
        /// Folders of Claude Code plugins whose `hooks/hooks.json` is also read
        /// ([command-hooks.md](../command-hooks.md)).
        plugins: Vec<PathBuf> = Vec::new(), [FOLDER], UserOnly;
    }

    /// `[network]`: connections of plugins.
    network: Network {
        /// Local and private hosts and addresses that all plugins may connect to, such as `127.0.0.1:11434` (see
        /// [plugins.md](../plugins/sandbox.md#the-network)).
        allow: Vec<String> = Vec::new(), [NAME], Security;
    }

    /// `[audit]`: retention of the audit (C13). It has minimums, so that low values cannot be used to erase the record
    /// of a run.
    audit: Audit {
        /// Maximum number of records in the [audit](../audit.md), at least 10000. Older records are removed.
        keep_records: u64 = 200_000, (10_000..), Security;
        /// Maximum age of records in days, at least 7.
        keep_days: u64 = 90, (7..=36_500), Security;
    }

    /// `[flags]`: features that can be disabled (A7, A8, A10, A12, A14).
    flags: Flags {
        /// Call hooks one after another. If disabled, hooks that cannot change anything run in parallel.
        plugin_seq_hooks: bool = true, boolean, UserOnly;
        /// Restart a plugin process after a timeout.
        plugin_timeout_self_heal: bool = true, boolean, UserOnly;
        /// Skip hooks that keep timing out (see plugins.md). If disabled, timeouts count towards the limit of restarts
        /// instead.
        plugin_circuit_breaker: bool = true, boolean, UserOnly;
        /// Pass large payloads to plugins as files (see plugin-protocol.md). If disabled, they are sent through the
        /// channel.
        plugin_large_payload_file_ipc: bool = true, boolean, UserOnly;
        /// Keep a copy of a session's messages in plugin processes, so that `experimental.chat.messages.transform`
        /// transfers only the changes since the last call. If disabled, each call transfers the whole history.
        plugin_message_mirror: bool = true, boolean, UserOnly;
    }

    /// `[tui]`: the [terminal interface](../terminal.md).
    tui: Tui {
        /// Colour theme at the start. If unset, the one last chosen with `/themes`, at first `"dark"`.
        theme: Option<TuiTheme> = None, ("system" | "dark" | "light"), UserOnly;
        /// Number of colours. `"auto"`: detected from `NO_COLOR`, `COLORTERM` and `TERM`.
        colors: TuiColors = TuiColors::Auto, ("auto" | "none" | "16" | "256" | "true"), UserOnly;
        /// Key bindings of the prompt: Emacs or vi.
        editing: Editing = Editing::Emacs, ("emacs" | "vi"), UserOnly;
        /// Capture the mouse: the wheel scrolls, a click expands. Hold Shift to select text.
        mouse: bool = false, boolean, UserOnly;
        /// Key bindings by action (names: [terminal.md](../terminal.md#other-keys)), such as `session_new =
        /// "ctrl+n,<leader>n"` in `[tui.keys]`. `"none"` removes a binding.
        keys: BTreeMap<String, String> = BTreeMap::new(), KEYS, UserOnly;
    }
}

settings! {
    /// `[plugins.NAME]`: settings of one plugin.
    plugin Plugin {
        /// Which process the plugin runs in. `"auto"`: a shared process, until the plugin hangs or crashes it, then its
        /// own; `"shared"`: the shared process; `"own"`: its own process from the start.
        isolation: Isolation = Isolation::Auto, ("auto" | "shared" | "own"), OwnPlugins;
        /// Plugins with a higher priority run first.
        priority: i32 = 0, (-1_000_000..=1_000_000), OwnPlugins;
        /// `"assistant"`: call the plugin's `chat.message` for completed assistant messages (`message.completed`)
        /// instead of user messages.
        #[alias = "chatMessage"]
        chat_message: ChatMessage = ChatMessage::User, ("user" | "assistant"), OwnPlugins;
        /// Deadline of its hooks in milliseconds, regardless of their class.
        timeout_ms: Option<u64> = None, MILLIS, OwnPlugins;
        /// Allow UNIX sockets, and thereby access to all user services that listen on one, which take it for Outrigger.
        /// Gives the plugin its own process.
        unix_sockets: bool = false, boolean, Security;
        /// Allow it to approve permission questions, in its `permission.ask` hook and through its client. Otherwise the
        /// user is still asked, with the name of the plugin, and without a terminal the call is refused. Denying needs
        /// no grant. Gives the plugin its own process.
        approve: bool = false, boolean, Security;
        /// Allow it to change the arguments of tool calls (`tool.execute.before`) and to set variables of commands
        /// (`shell.env`). Otherwise each changed call needs approval regardless of the rules, shown with its original
        /// arguments; without a terminal, and with `--auto`, it is refused, and the variables are not set. Calls of its
        /// own tools need no grant. Gives the plugin its own process.
        rewrite: bool = false, boolean, Security;
        /// Apply the user's rules to tool calls of a model whose requests the plugin handles (`fetch` of its
        /// `auth.loader`, or its own provider) or redirects (`baseURL`). Otherwise each call needs approval, and
        /// without a terminal it is refused. Gives the plugin its own process.
        model: bool = false, boolean, Security;
        /// Apply the user's rules to tool calls of turns that the plugin starts or joins through its client. Otherwise
        /// calls that it could not make itself (`bash`, files and hosts that it was not granted) need approval, and
        /// without a terminal they are refused. Gives the plugin its own process. See
        /// [permissions.md](../permissions.md).
        prompt: bool = false, boolean, Security;
        /// Security-critical hooks of the plugin, such as `["tool.execute.before"]`; custom points by name
        /// (`"deploy/release.before"`). If such a hook throws, times out, crashes, is skipped by its circuit breaker or
        /// cannot be called, what it guards is refused with `hook.failed_closed`, and `run` reports it. A hook cannot
        /// be called if the plugin failed to load, is disabled, shadowed, not admitted, excluded by `--pure` or not
        /// installed, or does not provide the hook. An unknown hook name refuses all tool calls. The lists of several
        /// files are combined. Gives the plugin its own process. The guard of a project is named by its path: an
        /// existing path in another folder, `claude:project` and `claude:local` may be absent, unless the project
        /// itself names them.
        #[alias = "failClosed"]
        fail_closed: Vec<String> = Vec::new(), [NAME], Adds;
        /// Do not load the plugin. In a project's file this applies only to plugins of that project.
        disabled: bool = false, boolean, OwnPlugins;
        /// Whether to run the plugin, regardless of its manifest and the profile. Also applies to bundled plugins.
        enabled: Option<bool> = None, boolean, Security;
        /// Environment variables that the plugin sees although their names look like secrets (see
        /// [plugins.md](../plugins.md)). In the environment, lists such as this one and `ports` are separated by
        /// commas: `OUTRIGGER_PLUGINS_GUARD_ENV=A_KEY,B_KEY`.
        env: Vec<String> = Vec::new(), [VARIABLE], Security;
        /// Files and folders outside the project that it may read: absolute, or `~/...`.
        read: Vec<String> = Vec::new(), [NAME], Security;
        /// Files and folders outside the project that it may read and change: absolute, or `~/...`.
        write: Vec<String> = Vec::new(), [NAME], Security;
        /// Programs that it may run, by name or path. Unset: all; `[]`: none. Gives the plugin its own process.
        processes: Option<Vec<String>> = None, [NAME], Security;
        /// Hosts that it may connect to. Unset: all public hosts. Gives the plugin its own process. See
        /// [plugins.md](../plugins/sandbox.md#the-network).
        hosts: Option<Vec<String>> = None, [NAME], Security;
        /// TCP ports that it may listen on in the sandbox.
        ports: Vec<u16> = Vec::new(), [PORT], Security;
    }
    and {
        /// The part of `fail_closed` that the policy of the machine requires: the plugin must provide these hooks, regardless of
        /// other files.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        required: Vec<String>,
        /// The project's own file disables it, which applies only to plugins of that project.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        disabled_in_project: bool,
    }
}
