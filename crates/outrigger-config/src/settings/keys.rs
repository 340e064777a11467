//! The table of settings.

use std::path::PathBuf;

pub use super::kind::{Kind, Leaf};
use super::{
    ChatMessage, Environment, Install, Isolation, JsRuntime, Plugin, PluginProfile, Profile,
    Sandbox, Settings, TrustChanges, TrustProjects,
};

/// What a project's own file may do about a setting, whether or not a person trusts the project. None that it may change makes a
/// plugin or hook of the user's run shorter, less, later or not at all (issue 18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfProject {
    /// Nothing: it decides what code of others may do, so a project could loosen its own sandbox.
    Loosens,
    /// Nothing: it is about what is the user's, plugins and hooks among it.
    OfUser,
    /// It counts for what the project brings, and for nothing else.
    Brought,
    /// It counts, and makes something stricter only.
    Adds,
    /// It counts: it is about the work in this project.
    Counts,
}

/// One setting.
#[derive(Debug)]
pub struct Key<T: 'static> {
    /// Dotted name: `js.runtime`. For plugins only the last part.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// What it is for, in one line.
    pub about: &'static str,
    /// What a project's own file may do about it.
    pub of_project: OfProject,
    pub(crate) apply: fn(&mut T, &Leaf),
}

/// Milliseconds of at least one, and at most a day: a deadline that never comes is a hang.
const MILLIS: Kind = Kind::Whole(1, 86_400_000);
const COUNT: Kind = Kind::Whole(1, i64::MAX);

/// A setting with the word that says what a project's file may do about it ([`OfProject`]): there is none without.
macro_rules! key {
    (trust $($rest:tt)*) => { key!(@ OfProject::Loosens, $($rest)*) };
    (user $($rest:tt)*) => { key!(@ OfProject::OfUser, $($rest)*) };
    (counts $($rest:tt)*) => { key!(@ OfProject::Counts, $($rest)*) };
    (brought $($rest:tt)*) => { key!(@ OfProject::Brought, $($rest)*) };
    (adds $($rest:tt)*) => { key!(@ OfProject::Adds, $($rest)*) };
    (@ $of_project:expr, $name:literal, $kind:expr, $about:literal, $apply:expr $(,)?) => {
        Key {
            name: $name,
            kind: $kind,
            about: $about,
            of_project: $of_project,
            apply: $apply,
        }
    };
}

/// Every setting but those of single plugins.
pub const KEYS: &[Key<Settings>] = &[
    key!(trust "sandbox", Kind::Word(&["on", "off", "strict"]), "run plugin processes in a box", |s, v| {
        s.sandbox = match v.text() {
            "off" => Sandbox::Off,
            "strict" => Sandbox::Strict,
            _ => Sandbox::On,
        };
    }),
    key!(
        user "strict_plugins",
        Kind::Bool,
        "a plugin that does not load ends the start",
        |s, v| s.strict_plugins = v.bool()
    ),
    key!(trust "trust.projects", Kind::Word(&["trust", "ask", "deny"]), "what is done about the plugins that a project brings", |s, v| {
        s.trust.projects = match v.text() {
            "ask" => TrustProjects::Ask,
            "deny" => TrustProjects::Deny,
            _ => TrustProjects::Trust,
        };
    }),
    key!(trust "trust.changes", Kind::Word(&["ask", "allow"]), "what is done about a plugin that changed", |s, v| {
        s.trust.changes = if v.text() == "allow" { TrustChanges::Allow } else { TrustChanges::Ask };
    }),
    key!(trust "trust.world_writable", Kind::Bool, "start plugins that everybody may change", |s, v| s.trust.world_writable = v.bool()),
    key!(trust "discovery.profile", Kind::Word(&["minimal", "messaging", "full"]), "which bundled plugins run", |s, v| {
        s.discovery.profile = match v.text() {
            "messaging" => PluginProfile::Messaging,
            "full" => PluginProfile::Full,
            _ => PluginProfile::Minimal,
        };
    }),
    key!(trust "discovery.paths", Kind::Folders, "more folders to look for plugins with a manifest in", |s, v| {
        s.discovery.paths = v.list().iter().map(PathBuf::from).collect();
    }),
    key!(trust "discovery.allow", Kind::Names, "plugins with side effects that may run", |s, v| {
        s.discovery.allow = v.list().to_vec();
    }),
    key!(trust "discovery.deny", Kind::Names, "plugins that do not run", |s, v| {
        s.discovery.deny = v.list().to_vec();
    }),
    key!(trust "discovery.renew_seconds", Kind::Whole(0, 86_400), "how often a server looks whether other plugins should run", |s, v| {
        s.discovery.renew_seconds = v.count();
    }),
    key!(trust "telegram.chats", Kind::Numbers, "chats of Telegram whose messages are prompts", |s, v| {
        s.telegram.chats = v.list().iter().filter_map(|number| number.parse().ok()).collect();
    }),
    key!(trust "telegram.agent", Kind::Text, "agent that prompts from Telegram are for", |s, v| {
        s.telegram.agent = Some(v.text().to_owned());
    }),
    key!(trust "telegram.api", Kind::Text, "address of Telegram's Bot API", |s, v| s.telegram.api = v.text().to_owned()),
    key!(
        user "js.runtime",
        Kind::Word(&["auto", "bun", "node"]),
        "which JavaScript runtime runs plugins",
        |s, v| {
            s.js.runtime = match v.text() {
                "bun" => JsRuntime::Bun,
                "node" => JsRuntime::Node,
                _ => JsRuntime::Auto,
            };
        }
    ),
    key!(trust "js.bun", Kind::Program, "path of Bun", |s, v| s.js.bun = Some(PathBuf::from(v.text()))),
    key!(trust "js.node", Kind::Program, "path of Node", |s, v| s.js.node = Some(PathBuf::from(v.text()))),
    key!(trust "js.environment", Kind::Word(&["user", "list"]), "which environment variables plugins get", |s, v| {
        s.js.environment = if v.text() == "list" { Environment::List } else { Environment::User };
    }),
    key!(trust "js.install", Kind::Word(&["ask", "auto", "never"]), "fetch Bun when a plugin needs it and none is there", |s, v| {
        s.js.install = match v.text() {
            "never" => Install::Never,
            "auto" => Install::Auto,
            _ => Install::Ask,
        };
    }),
    key!(
        user "deadlines.fast_ms",
        MILLIS,
        "deadline of policy hooks",
        |s, v| s.deadlines.fast_ms = v.count()
    ),
    key!(
        user "deadlines.normal_ms",
        MILLIS,
        "deadline of plugin hooks",
        |s, v| s.deadlines.normal_ms = v.count()
    ),
    key!(
        user "deadlines.load_ms",
        MILLIS,
        "deadline of loading a plugin",
        |s, v| s.deadlines.load_ms = v.count()
    ),
    key!(
        user "deadlines.slow_ms",
        MILLIS,
        "deadline of authentication",
        |s, v| s.deadlines.slow_ms = v.count()
    ),
    key!(
        counts "models.first_byte_ms",
        MILLIS,
        "wait for a model's first byte",
        |s, v| s.models.first_byte_ms = v.count()
    ),
    key!(
        counts "models.idle_ms",
        MILLIS,
        "longest pause within an answer",
        |s, v| s.models.idle_ms = v.count()
    ),
    key!(counts "models.total_ms", MILLIS, "longest whole answer", |s, v| {
        s.models.total_ms = v.count()
    }),
    key!(
        counts "models.max_retries",
        Kind::Whole(0, 100),
        "how often a failed request is sent again",
        |s, v| {
            s.models.max_retries = u32::try_from(v.whole()).unwrap_or_default();
        }
    ),
    key!(
        counts "tools.output_bytes",
        COUNT,
        "bytes of tool output for the model",
        |s, v| s.tools.output_bytes = v.count()
    ),
    key!(
        counts "tools.output_lines",
        COUNT,
        "lines of tool output for the model",
        |s, v| s.tools.output_lines = v.count()
    ),
    key!(
        counts "tools.bash_timeout_ms",
        MILLIS,
        "time limit of shell commands",
        |s, v| s.tools.bash_timeout_ms = v.count()
    ),
    key!(trust "tools.unix_sockets", Kind::Bool, "let the model's shell commands connect to UNIX sockets although a rule denies paths", |s, v| s.tools.unix_sockets = v.bool()),
    key!(trust "tools.sandbox", Kind::Word(&["full", "workspace-write", "read-only"]), "what the model's shell commands may touch", |s, v| {
        s.tools.sandbox = match v.text() {
            "workspace-write" => Profile::WorkspaceWrite,
            "read-only" => Profile::ReadOnly,
            _ => Profile::Full,
        };
    }),
    key!(trust "tools.hosts", Kind::Names, "hosts that shell commands may connect to", |s, v| {
        s.tools.hosts = Some(v.list().to_vec());
    }),
    key!(trust "tools.secrets", Kind::Folders, "secrets of the home folder that the model's shell commands see", |s, v| {
        s.tools.secrets = v.list().to_vec();
    }),
    key!(trust "tools.write", Kind::Folders, "more that the model's shell commands may change", |s, v| {
        s.tools.write = v.list().to_vec();
    }),
    key!(trust "tools.ports", Kind::Ports, "ports of this machine that the model's shell commands reach", |s, v| {
        s.tools.ports = v.list().iter().filter_map(|port| port.parse().ok()).collect();
    }),
    key!(
        counts "tools.skill_server_idle_ms",
        MILLIS,
        "how long the MCP servers of skills may be idle",
        |s, v| s.tools.skill_server_idle_ms = v.count()
    ),
    key!(counts "agent.max_steps", COUNT, "most steps of a turn", |s, v| s
        .agent
        .max_steps =
        Some(v.count())),
    key!(
        user "agent.max_continuations",
        COUNT,
        "how often in a row hooks may keep a turn from ending",
        |s, v| s.agent.max_continuations = Some(v.count())
    ),
    key!(
        user "log.plugin_stderr_level",
        Kind::Word(&["error", "warn", "info", "debug", "trace", "off"]),
        "level of what plugins write to stderr",
        |s, v| s.log.plugin_stderr_level = v.text().into()
    ),
    key!(
        user "log.plugin_stderr_lines_per_second",
        COUNT,
        "most lines a second of one plugin's stderr",
        |s, v| {
            s.log.plugin_stderr_lines_per_second = v.count();
        }
    ),
    key!(
        user "limits.plugin_memory_mb",
        Kind::Whole(64, 1 << 20),
        "most memory of a plugin process, in MiB",
        |s, v| s.limits.plugin_memory_mb = v.count()
    ),
    key!(
        user "limits.plugin_processes",
        COUNT,
        "most processes of a plugin process",
        |s, v| s.limits.plugin_processes = v.count()
    ),
    key!(
        user "limits.plugin_open_files",
        Kind::Whole(64, 1 << 20),
        "most open files of a plugin process",
        |s, v| s.limits.plugin_open_files = v.count()
    ),
    key!(
        user "limits.plugin_health_seconds",
        Kind::Whole(0, 86_400),
        "how often a plugin process is asked whether it answers",
        |s, v| s.limits.plugin_health_seconds = v.count()
    ),
    key!(
        user "limits.plugin_inline_bytes",
        Kind::Whole(0, 1 << 26),
        "largest payload of a hook that is not sent by file",
        |s, v| s.limits.plugin_inline_bytes = v.count()
    ),
    key!(
        counts "claude.mcp",
        Kind::Bool,
        "read the project's .mcp.json",
        |s, v| s.claude.mcp = v.bool()
    ),
    key!(
        counts "claude.commands",
        Kind::Bool,
        "read .claude/commands",
        |s, v| s.claude.commands = v.bool()
    ),
    // Low values would be a way to make the record of a run be forgotten.
    key!(trust "network.allow", Kind::Names, "private hosts and addresses that every plugin may connect to", |s, v| {
        s.network.allow = v.list().to_vec();
    }),
    key!(trust "audit.keep_records", Kind::Whole(10_000, i64::MAX), "most records of the audit", |s, v| {
        s.audit.keep_records = v.count();
    }),
    key!(trust "audit.keep_days", Kind::Whole(7, 36_500), "most days that the audit goes back", |s, v| {
        s.audit.keep_days = v.count();
    }),
    // The user's own may be guards.
    key!(trust "claude.hooks", Kind::Bool, "run the command hooks of .claude/settings.json", |s, v| {
        s.claude.hooks = v.bool();
    }),
    // Not a question of trust: a person allows what is read there.
    key!(
        user "claude.plugins",
        Kind::Folders,
        "folders of Claude Code plugins whose hooks/hooks.json is read",
        |s, v| s.claude.plugins = v.list().iter().map(Into::into).collect()
    ),
    key!(
        user "flags.plugin_seq_hooks",
        Kind::Bool,
        "call hooks one after another, those that only observe too",
        |s, v| {
            s.flags.plugin_seq_hooks = v.bool();
        }
    ),
    key!(
        user "flags.plugin_timeout_self_heal",
        Kind::Bool,
        "restart a plugin process after a timeout",
        |s, v| {
            s.flags.plugin_timeout_self_heal = v.bool();
        }
    ),
    key!(
        user "flags.plugin_circuit_breaker",
        Kind::Bool,
        "skip hooks that keep timing out",
        |s, v| {
            s.flags.plugin_circuit_breaker = v.bool();
        }
    ),
    key!(
        user "flags.plugin_large_payload_file_ipc",
        Kind::Bool,
        "hand large payloads to plugins by file",
        |s, v| {
            s.flags.plugin_large_payload_file_ipc = v.bool();
        }
    ),
    key!(
        user "flags.plugin_message_mirror",
        Kind::Bool,
        "let plugin processes keep the messages of sessions",
        |s, v| {
            s.flags.plugin_message_mirror = v.bool();
        }
    ),
];

/// The settings of `[plugins.<id>]`.
pub const PLUGIN_KEYS: &[Key<Plugin>] = &[
    key!(
        brought "isolation",
        Kind::Word(&["auto", "shared", "own"]),
        "a process of its own",
        |p, v| {
            p.isolation = match v.text() {
                "own" => Isolation::Own,
                "shared" => Isolation::Shared,
                _ => Isolation::Auto,
            };
        }
    ),
    key!(
        brought "priority",
        Kind::Whole(-1_000_000, 1_000_000),
        "higher runs earlier",
        |p, v| {
            p.priority = i32::try_from(v.whole()).unwrap_or_default();
        }
    ),
    key!(
        brought "chat_message",
        Kind::Word(&["user", "assistant"]),
        "which message `chat.message` is about",
        |p, v| {
            p.chat_message = if v.text() == "assistant" {
                ChatMessage::Assistant
            } else {
                ChatMessage::User
            };
        }
    ),
    key!(brought "timeout_ms", MILLIS, "deadline of its hooks", |p, v| p
        .timeout_ms =
        Some(v.count())),
    key!(trust "unix_sockets", Kind::Bool, "it may make UNIX sockets", |p, v| p.unix_sockets = v.bool()),
    key!(trust "approve", Kind::Bool, "it may approve what the user would be asked about", |p, v| p.approve = v.bool()),
    key!(trust "rewrite", Kind::Bool, "it may change tool calls", |p, v| p.rewrite = v.bool()),
    key!(trust "model", Kind::Bool, "it may be the model that calls tools", |p, v| p.model = v.bool()),
    key!(trust "prompt", Kind::Bool, "it may start turns that call tools", |p, v| p.prompt = v.bool()),
    // Names add up: a project's file cannot take a guard's word from it.
    key!(
        adds "fail_closed",
        Kind::Names,
        "hooks of it whose failure refuses",
        |p, v| {
            let new = v.list().iter().filter(|name| !p.fail_closed.contains(name));
            let new: Vec<String> = new.cloned().collect();
            p.fail_closed.extend(new);
        }
    ),
    key!(brought "disabled", Kind::Bool, "do not load it", |p, v| p
        .disabled =
        v.bool()),
    key!(trust "enabled", Kind::Bool, "run it, or do not, whatever its manifest or the profile says", |p, v| {
        p.enabled = Some(v.bool());
    }),
    key!(trust "env", Kind::Variables, "variables that it gets although they look like secrets", |p, v| {
        p.env = v.list().to_vec();
    }),
    key!(trust "read", Kind::Names, "files outside of the project that it may read", |p, v| {
        p.read = v.list().to_vec();
    }),
    key!(trust "write", Kind::Names, "files outside of the project that it may change", |p, v| {
        p.write = v.list().to_vec();
    }),
    key!(trust "processes", Kind::Names, "programs that it may run", |p, v| {
        p.processes = Some(v.list().to_vec());
    }),
    key!(trust "hosts", Kind::Names, "hosts that it may connect to", |p, v| {
        p.hosts = Some(v.list().to_vec());
    }),
    key!(trust "ports", Kind::Ports, "TCP ports that it may listen on", |p, v| {
        p.ports = v.list().iter().filter_map(|port| port.parse().ok()).collect();
    }),
];

/// Spellings in the way of the requirements (A4), taken besides our own.
pub(crate) fn plugin_key(name: &str) -> &str {
    match name {
        "chatMessage" => "chat_message",
        "failClosed" => "fail_closed",
        other => other,
    }
}

/// `name.key`, the key in quotes when it is no bare TOML key.
pub(crate) fn dotted(name: &str, key: &str) -> String {
    let bare = !key.is_empty()
        && key
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    if bare {
        format!("{name}.{key}")
    } else {
        format!("{name}.\"{key}\"")
    }
}
