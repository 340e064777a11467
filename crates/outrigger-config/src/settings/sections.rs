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
        /// Run plugin processes in a sandbox, and keep what rules deny from the processes of tools. `"strict"`: start
        /// nothing whose sandbox the system cannot enforce in full. `"off"`: neither.
        sandbox: ("on" | "off" | "strict"), Security
    },
    key! {
        /// A plugin that does not load ends the start with exit code 3 (`--strict-plugins`).
        strict_plugins: boolean, UserOnly
    },
];

settings! {
    /// `[trust]`: which plugins are started (trust by content).
    trust: Trust {
        /// Plugins that a project brings: those that are there when its folder is trusted are trusted with it, later ones
        /// asked for. `"ask"`: each is asked for; `"deny"`: none is started but those that were trusted before. See
        /// [plugins.md](../plugins/trust.md).
        projects: TrustProjects = TrustProjects::Trust, ("trust" | "ask" | "deny"), Security;
        /// A plugin that is not as it was trusted: a person is asked, without one it is not started. Settings that
        /// changed while something in a sandbox ran: no agent starts. `"allow"`: they are trusted as they are now.
        changes: TrustChanges = TrustChanges::Ask, ("ask" | "allow"), Security;
        /// Start plugins that everybody on the machine may change.
        world_writable: bool = false, boolean, Security;
    }

    /// `[discovery]`: which plugins with a manifest, and which of the bundled ones, run (D1, D3, D5).
    discovery: Discovery {
        /// Which bundled plugins run: all but `telegram` and `mcp`; `"messaging"`: `telegram` too; `"full"`: `mcp`
        /// too (see [plugins.md](../plugins.md#which-plugins-run)).
        profile: PluginProfile = PluginProfile::Minimal, ("minimal" | "messaging" | "full"), Security;
        /// More folders to look for plugins with a manifest in.
        paths: Vec<PathBuf> = Vec::new(), [FOLDER], Security;
        /// Plugins that may run although their manifest says `has_side_effects` or asks for what has some: yours by
        /// id, a project's by the path of its folder.
        allow: Vec<String> = Vec::new(), [NAME], Security;
        /// Ids of plugins that do not run, bundled ones too; `*` stands for any run of characters.
        deny: Vec<String> = Vec::new(), [NAME], Security;
        /// How often `serve` looks whether other plugins should run now (besides when your own `outrigger.toml` has
        /// changed), and whether one whose process could not be started can be; 0: never.
        renew_seconds: u64 = 10, (0..=86_400), Security;
    }

    /// `[telegram]`: the connector to Telegram (D5).
    telegram: Telegram {
        /// Numbers of the chats whose messages are prompts (see [plugins.md](../plugins.md#telegram)).
        chats: Vec<i64> = Vec::new(), [integer], Security;
        /// The agent that they are for; without it the default one.
        agent: Option<String> = None, TEXT, Security;
        /// Address of the Bot API, for a server of your own.
        api: String = "https://api.telegram.org".to_owned(), TEXT, Security;
    }

    /// `[js]`: JavaScript runtimes.
    js: Js {
        /// `"bun"`, `"node"`, or Bun if there, else Node.
        runtime: JsRuntime = JsRuntime::Auto, ("auto" | "bun" | "node"), UserOnly;
        /// Path of Bun; looked for where it is not set.
        bun: Option<PathBuf> = None, PROGRAM, Security;
        /// Path of Node; looked for where it is not set.
        node: Option<PathBuf> = None, PROGRAM, Security;
        /// What plugins see of the environment: the user's without what looks like a secret, or `"list"`, a short
        /// list.
        environment: Environment = Environment::User, ("user" | "list"), Security;
        /// Fetch Bun when a plugin needs it, none is there, and you say yes; without a terminal it is not fetched.
        /// `"auto"`: without asking. `"never"`: only `outrigger plugin setup` does.
        install: Install = Install::Ask, ("ask" | "auto" | "never"), Security;
    }

    /// `[deadlines]`, in milliseconds (C5).
    deadlines: Deadlines {
        /// Pure policy hooks: `llm.before_request`, and points of plugins that say so.
        fast_ms: u64 = 500, MILLIS, UserOnly;
        /// Hooks of plugins.
        normal_ms: u64 = 5_000, MILLIS, UserOnly;
        /// Each step of loading a plugin, and its `config` hook.
        load_ms: u64 = 10_000, MILLIS, UserOnly;
        /// Authentication: loaders, and each step of a login.
        slow_ms: u64 = 30_000, MILLIS, UserOnly;
    }

    /// `[models]`: model requests.
    models: Models {
        /// Longest wait for the first byte of an answer.
        first_byte_ms: u64 = 120_000, MILLIS, Counts;
        /// Longest pause within an answer.
        idle_ms: u64 = 120_000, MILLIS, Counts;
        /// Longest whole request.
        total_ms: u64 = 1_800_000, MILLIS, Counts;
        /// How often a failed request is sent again, where it is set; else the provider's own rule.
        max_retries: u32 = 5, (0..=100), Counts;
        /// Fetch the published catalog of models (limits, prices, abilities) into the cache when a provider needs it, at most
        /// once a day, in the background. `OPENCODE_DISABLE_MODELS_FETCH=1` switches it off as well.
        fetch_catalog: bool = true, boolean, UserOnly;
        /// Where it is published; `OPENCODE_MODELS_URL` counts above it.
        catalog_url: String = "https://models.dev".to_owned(), TEXT, Security;
    }

    /// `[tools]`: bundled tools, and what commands of the model may touch.
    tools: Tools {
        /// Bytes of a tool's output for the model; the rest is in a file.
        output_bytes: u64 = 51_200, POSITIVE, Counts;
        /// Lines of a tool's output for the model.
        output_lines: u64 = 2_000, POSITIVE, Counts;
        /// The service that the tool `websearch` asks, where `OPENCODE_ENABLE_EXA=1` switches it on: an MCP server with the tool
        /// `web_search_exa`.
        websearch_url: String = "https://mcp.exa.ai/mcp".to_owned(), TEXT, Security;
        /// Time limit of a shell command that sets none.
        bash_timeout_ms: u64 = 120_000, MILLIS, Counts;
        /// MCP servers of skills that nobody has used for so long are ended.
        skill_server_idle_ms: u64 = 300_000, MILLIS, Counts;
        /// What the model's shell commands may touch, see [sandbox.md](../sandbox.md): `"workspace-write"`: read
        /// all but [secrets of the home folder](../sandbox.md#secrets), change the project, caches and a temporary
        /// folder of their own; `"read-only"`: change the temporary folder only; `"full"`: all that you may, as in
        /// OpenCode, but for [what is denied and what is ours](../configuration.md#permissions). The first two may
        /// not make UNIX sockets or look into other processes.
        sandbox: Profile = Profile::WorkspaceWrite, ("full" | "workspace-write" | "read-only"), Security;
        /// Lets the model's shell commands connect to UNIX sockets where a `deny` rule names paths (or
        /// `tools.sandbox` is narrower than `full`). Without it Docker, an SSH agent, tmux and the like are not
        /// reached then: they would do for a command what it is denied.
        unix_sockets: bool = false, boolean, Security;
        /// Hosts that shell commands may connect to, with the patterns of
        /// [plugins.md](../plugins/sandbox.md#the-network), as `["*.npmjs.org", "localhost"]`; all when unset, none
        /// when empty. Then the shell and Python tools, `!` in prompts, your own `!` commands and terminals,
        /// formatters and command hooks go through a proxy of ours (`HTTP_PROXY` and its like name it, what knows
        /// of no proxy is led there), and make no UDP and no UNIX sockets. A refused host is named in the tool's
        /// output and in the audit. A command's own servers are reached by itself; those of other commands need
        /// `localhost`.
        hosts: Option<Vec<String>> = None, [NAME], Security;
        /// Secrets of the home folder that commands see, as `["~/.ssh"]`.
        secrets: Vec<String> = Vec::new(), [FOLDER], Security;
        /// More files and folders that commands may change.
        write: Vec<String> = Vec::new(), [FOLDER], Security;
        /// Ports of this machine on which commands reach services that are not their own, as `[5432]`.
        ports: Vec<u16> = Vec::new(), [PORT], Security;
    }

    /// `[browser]`: a browser for the model ([browser.md](../browser.md)).
    browser: Browser {
        /// Offer the model the browser tools, where there is a Chromium.
        enabled: bool = false, boolean, Security;
        /// Path of Chromium; looked for where it is not set.
        program: Option<PathBuf> = None, PROGRAM, Security;
        /// WebSocket address of a Chromium that is there already, as `ws://127.0.0.1:9222/devtools/browser/…`, in place of one that is
        /// started.
        url: Option<String> = None, TEXT, Security;
        /// Without a window.
        headless: bool = true, boolean, UserOnly;
        /// More arguments for Chromium.
        arguments: Vec<String> = Vec::new(), [TEXT], Security;
        /// Variables of the environment whose values may be typed by name, each with the hosts for which it is, as
        /// `["SHOP_PASSWORD@*.shop.example"]`. The model reads neither.
        secrets: Vec<String> = Vec::new(), [TEXT], Security;
        /// Fields that are read and typed in like others.
        fields: Vec<String> = Vec::new(), [FIELD], Security;
        /// Sites where you are asked before each change: hosts, `*.host`, or addresses with `*`.
        ask: Vec<String> = Vec::new(), [TEXT], Security;
        /// Offer the tool `browser_eval`, which runs code of the model in pages.
        eval: bool = false, boolean, Security;
    }

    /// `[agent]`: the turn.
    agent: Agent {
        /// Most model requests of a turn, 200 where it is not set; an agent's `steps` counts first. A project lowers what you
        /// set, here and as `steps` of an agent, and does not raise it.
        max_steps: Option<u64> = None, POSITIVE, Lowers;
        /// How often in a row hooks may keep a turn from ending, 10 where it is not set.
        max_continuations: Option<u64> = None, POSITIVE, UserOnly;
        /// How many turns in a row plugins may start over their client, in all sessions of a folder together, with no prompt of yours in between; 100
        /// where it is not set.
        max_plugin_turns: Option<u64> = None, POSITIVE, UserOnly;
    }

    /// `[budget]`: what a session may use, subagents included, turns that plugins start among it. When it is used up no further model
    /// request is made. `outrigger session show` says how much is used.
    budget: Budget {
        /// Most prompts that are answered.
        turns: Option<u64> = None, POSITIVE, UserOnly;
        /// Most tokens, sent and received, those from the provider's cache too. Where a provider says nothing of what was sent, or nonsense, a fourth of the bytes counts.
        tokens: Option<u64> = None, POSITIVE, UserOnly;
        /// Most money, in US cents, by the prices of the models.
        cents: Option<u64> = None, POSITIVE, UserOnly;
    }

    /// `[log]`: what goes to the log of what plugins print (A9).
    log: Log {
        /// Level of what plugins print: `error`, `warn`, `info`, `debug`, `trace`, `off`.
        plugin_stderr_level: String = "warn".to_owned(), ("error" | "warn" | "info" | "debug" | "trace" | "off"), UserOnly;
        /// Most lines a second of what one plugin process prints.
        plugin_stderr_lines_per_second: u64 = 50, POSITIVE, UserOnly;
    }

    /// `[limits]`: what one plugin process may use, with everything it starts (A10, C7).
    limits: Limits {
        /// Most memory of a plugin process with everything it starts, in MiB; it is stopped, named and started
        /// again. What grows faster than it is looked at (once a second) is held by a control group at nine eighths
        /// of it, where one can be made (cgroup v2 or v1, the user's own); everywhere, at eight times the private
        /// memory, allocations fail in it.
        plugin_memory_mb: u64 = 2048, (64..=1_048_576), UserOnly;
        /// Most processes of a plugin process with everything it starts.
        plugin_processes: u64 = 128, POSITIVE, UserOnly;
        /// Most open files of each process of a plugin; one that comes near is named in the log.
        plugin_open_files: u64 = 4096, (64..=1_048_576), UserOnly;
        /// How often a plugin process that nobody calls is asked whether it takes requests; one that does not,
        /// twice in a row, within `deadlines.normal_ms` each, is started again. 0: never.
        plugin_health_seconds: u64 = 30, (0..=86_400), UserOnly;
        /// Largest payload of a hook that is sent over the channel; a larger one goes by file.
        plugin_inline_bytes: u64 = 64 * 1024, (0..=67_108_864), UserOnly;
        /// Most that the client of a plugin stores a day (UTC) in a folder, in MiB: bodies of requests, files that its
        /// prompts attach, sessions that it copies. What is stored stays in the log.
        plugin_stored_mb: u64 = 128, (1..=1_048_576), UserOnly;
        /// Most requests of the client of a plugin a day (UTC) in a folder that store something.
        plugin_stored_requests: u64 = 20_000, POSITIVE, UserOnly;
    }

    /// `[claude]`: what of Claude Code's formats is read.
    claude: Claude {
        /// Read the project's `.mcp.json`. Each of its servers still has to be allowed.
        mcp: bool = true, boolean, Counts;
        /// Read `.claude/commands`.
        commands: bool = true, boolean, Counts;
        /// Run the command hooks of `.claude/settings.json`. Those of a project still have to be allowed. A project
        /// cannot set it: yours may be guards.
        hooks: bool = true, boolean, Security;
        /// Folders of Claude Code plugins whose `hooks/hooks.json` is read, too
        /// ([command-hooks.md](../command-hooks.md)).
        plugins: Vec<PathBuf> = Vec::new(), [FOLDER], UserOnly;
    }

    /// `[network]`: what plugins connect to.
    network: Network {
        /// Hosts and addresses of this machine or of private networks that every plugin may connect to, as
        /// `127.0.0.1:11434`; see [plugins.md](../plugins/sandbox.md#the-network).
        allow: Vec<String> = Vec::new(), [NAME], Security;
    }

    /// `[audit]`: how much of it is kept (C13). Low values would be a way to make the record of a run be forgotten.
    audit: Audit {
        /// Most records of the [audit](../audit.md); at least 10000. What is older is removed.
        keep_records: u64 = 200_000, (10_000..), Security;
        /// Most days that the audit goes back; at least 7.
        keep_days: u64 = 90, (7..=36_500), Security;
    }

    /// `[flags]`: parts that can be switched off (A7, A8, A10, A12, A14).
    flags: Flags {
        /// Call every hook one after another. Off: those that can change nothing run at the same time.
        plugin_seq_hooks: bool = true, boolean, UserOnly;
        /// Start a plugin process again after a timeout.
        plugin_timeout_self_heal: bool = true, boolean, UserOnly;
        /// Skip hooks that keep timing out (see plugins.md). Without it, timeouts count for the limit of restarts.
        plugin_circuit_breaker: bool = true, boolean, UserOnly;
        /// Hand large payloads to plugins by file (see plugin-protocol.md). Without it they go over the channel.
        plugin_large_payload_file_ipc: bool = true, boolean, UserOnly;
        /// Plugin processes keep the messages of sessions, and `experimental.chat.messages.transform` carries what
        /// changed since the last call. Without it every call carries the whole history.
        plugin_message_mirror: bool = true, boolean, UserOnly;
    }

    /// `[tui]`: the [terminal interface](../terminal.md).
    tui: Tui {
        /// Its colours, before another theme is chosen.
        theme: TuiTheme = TuiTheme::Dark, ("system" | "dark" | "light"), UserOnly;
        /// How many colours: `"auto"`: what `NO_COLOR`, `COLORTERM` and `TERM` say.
        colors: TuiColors = TuiColors::Auto, ("auto" | "none" | "16" | "256" | "true"), UserOnly;
        /// The keys of the prompt: emacs' or vi's.
        editing: Editing = Editing::Emacs, ("emacs" | "vi"), UserOnly;
        /// Take the mouse: the wheel scrolls, a click unfolds. The terminal then selects text with shift held.
        mouse: bool = false, boolean, UserOnly;
        /// Other keys, by the names that [terminal.md](../terminal.md#other-keys) lists: `[tui.keys]`, and in it
        /// `session_new = "ctrl+n,<leader>n"`; `"none"` for no key.
        keys: BTreeMap<String, String> = BTreeMap::new(), KEYS, UserOnly;
    }
}

settings! {
    /// `[plugins.NAME]`: what the user says of one plugin.
    plugin Plugin {
        /// `"auto"`: shares a process until it hangs or crashes that, then has one of its own. `"shared"`: shares
        /// it whatever it does. `"own"`: a process of its own from the start.
        isolation: Isolation = Isolation::Auto, ("auto" | "shared" | "own"), OwnPlugins;
        /// Higher runs earlier.
        priority: i32 = 0, (-1_000_000..=1_000_000), OwnPlugins;
        /// `"assistant"`: the plugin's `chat.message` is called for completed assistant messages
        /// (`message.completed`) instead of user messages.
        #[alias = "chatMessage"]
        chat_message: ChatMessage = ChatMessage::User, ("user" | "assistant"), OwnPlugins;
        /// Deadline of its hooks, whatever their class.
        timeout_ms: Option<u64> = None, MILLIS, OwnPlugins;
        /// It may make UNIX sockets, and so reach every service of yours that listens on one; the service takes it
        /// for Outrigger. It has a process of its own then.
        unix_sockets: bool = false, boolean, Security;
        /// It may approve what you would be asked about, in its `permission.ask` hook and over its client. Without
        /// it you are asked all the same, with the plugin's name, and where nobody can be asked the call is
        /// refused. It has a process of its own then. A plugin may deny without it.
        approve: bool = false, boolean, Security;
        /// It may change the arguments of tool calls (`tool.execute.before`) and set variables of commands
        /// (`shell.env`). Without it you are asked about each changed call whatever your rules allow, with what it
        /// was; where nobody can be asked, also with `--auto`, the call is refused, and the variables are left out.
        /// The calls of its own tools it changes without it. It has a process of its own then.
        rewrite: bool = false, boolean, Security;
        /// Where it speaks for a model provider (a `fetch` of its `auth.loader`, a provider of its own) or says
        /// where one is (`baseURL`), that model calls tools by your rules. Without it you are asked about each
        /// call, and where nobody can be asked the call is refused. It has a process of its own then.
        model: bool = false, boolean, Security;
        /// The tool calls of turns that it starts over its client, or joins, run by your rules. Without it you are
        /// asked about those that it could not make itself (`bash`, files and hosts that it was not granted), and
        /// where nobody can be asked they are refused. It has a process of its own then. See
        /// [permissions.md](../permissions.md).
        prompt: bool = false, boolean, Security;
        /// List of its hooks that are security-critical: `["tool.execute.before"]`; points of other plugins by
        /// their names (`"deploy/release.before"`). Where one throws, is late, crashes, is left out by its breaker
        /// or cannot be called (the plugin failed to load, is off, disabled, shadowed or not admitted for whatever
        /// reason, `--pure` leaves it out, it does not bring that hook, or no plugin goes by this name), what it
        /// guards is refused with `hook.failed_closed`, and `run` says so. A name that is not a hook refuses every
        /// tool call. It has a process of its own. The lists of several files add up. A guard that one project
        /// brings is named by its path: a path that is there and lies in another folder is not missed, nor are
        /// `claude:project` and `claude:local`, unless the project says it itself.
        #[alias = "failClosed"]
        fail_closed: Vec<String> = Vec::new(), [NAME], Adds;
        /// Not loaded. In a project's own file it counts for what the project brings and for nothing else.
        disabled: bool = false, boolean, OwnPlugins;
        /// `true` or `false`: run it or not, whatever its manifest or the profile says; of bundled plugins too.
        enabled: Option<bool> = None, boolean, Security;
        /// Names of variables that it gets although they look like secrets (see [plugins.md](../plugins.md)). In
        /// the environment, as for `ports`, with commas: `OUTRIGGER_PLUGINS_GUARD_ENV=A_KEY,B_KEY`.
        env: Vec<String> = Vec::new(), [VARIABLE], Security;
        /// Files and folders outside of the project that it may read: absolute, or `~/...`.
        read: Vec<String> = Vec::new(), [NAME], Security;
        /// Files and folders outside of the project that it may read and change: absolute, or `~/...`.
        write: Vec<String> = Vec::new(), [NAME], Security;
        /// Programs that it may run, by name or path; without it all, with `[]` none. It has a process of its own
        /// then.
        processes: Option<Vec<String>> = None, [NAME], Security;
        /// Hosts that it may connect to; without it all public ones. It has a process of its own then. See
        /// [plugins.md](../plugins/sandbox.md#the-network).
        hosts: Option<Vec<String>> = None, [NAME], Security;
        /// TCP ports that it may listen on in the sandbox.
        ports: Vec<u16> = Vec::new(), [PORT], Security;
    }
    and {
        /// Of `fail_closed`, those that the policy of the machine requires: the plugin has to bring them, whatever other
        /// files say.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        required: Vec<String>,
        /// The project's own file disables it, which counts for what the project brings and for nothing else.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        disabled_in_project: bool,
    }
}
