//! `outrigger doctor`: what is installed, what is missing, and what to do about it.

mod costs;

use outrigger_agent::{Agent, McpState, ProjectLocation};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_sandbox::{Level, Spawner};
use outrigger_store::Store;

use crate::args::Global;
use crate::exit;
use crate::failure::Failure;
use crate::terminal::{Paint, entry, out};

struct Lines {
    paint: Paint,
    bad: bool,
}

impl Lines {
    fn good(&self, what: &str, text: impl std::fmt::Display) {
        out(&format!(
            "{} {}",
            self.paint.good("ok  "),
            entry(&format!("{what:<12} {text}"))
        ));
    }
    fn note(&self, what: &str, text: impl std::fmt::Display) {
        out(&format!(
            "{} {}",
            self.paint.dim("note"),
            entry(&format!("{what:<12} {text}"))
        ));
    }
    fn below(&self, text: impl std::fmt::Display) {
        out(&entry(&format!("                  {text}")));
    }
    fn wrong(&mut self, what: &str, text: impl std::fmt::Display, hint: Option<&str>) {
        self.bad = true;
        out(&format!(
            "{} {}",
            self.paint.bad("bad "),
            entry(&format!("{what:<12} {text}"))
        ));
        if let Some(hint) = hint {
            self.below(format_args!("hint: {hint}"));
        }
    }
}

/// Runs the command; it fails if a problem prevents turns.
pub(crate) async fn doctor(global: &Global) -> Result<u8, Failure> {
    let mut lines = Lines {
        paint: Paint::for_stdout(),
        bad: false,
    };
    let boot = crate::commands::plugin::listing::listing(global)?;
    lines.good("version", env!("CARGO_PKG_VERSION"));
    let location = ProjectLocation::find(&boot.directory);
    lines.good(
        "folder",
        format!(
            "{} (project {})",
            location.directory.display(),
            location.worktree.display()
        ),
    );
    match boot.load(&location) {
        Ok(config) => {
            let files: Vec<String> = config
                .files
                .iter()
                .map(|f| f.display().to_string())
                .collect();
            lines.good(
                "config",
                if files.is_empty() {
                    "no files, defaults only".to_owned()
                } else {
                    files.join(", ")
                },
            );
            for problem in &config.problems {
                lines.note("config", problem);
            }
            policies(&lines, &config);
            flags(&lines, &config);
        }
        Err(error) => lines.wrong("config", &error, error.hint().as_deref()),
    }
    let rows = store(&mut lines, &boot.folders.store());
    match Spawner::new() {
        Ok(spawner) => sandbox(&mut lines, &spawner),
        Err(error) => lines.wrong("sandbox", &error, error.hint().as_deref()),
    }
    if lines.bad {
        return Ok(exit::FAILED);
    }
    match boot.js_runtime() {
        Ok(found) => lines.good("javascript", found),
        Err(why) => lines.note("javascript", format!("{why} (only plugins need it)")),
    }
    if let Some(agent) = agent(&mut lines, global, boot).await {
        plugins(&mut lines, &agent);
        plugin_costs(&mut lines, &agent, rows);
        mcp_servers(&mut lines, &agent);
        models(&mut lines, &agent);
        agent.shutdown().await;
    }
    Ok(if lines.bad { exit::FAILED } else { 0 })
}

/// Starts the agent of the folder or, if its settings have changed, one with only the user's settings. `None` if that fails.
async fn agent(lines: &mut Lines, global: &Global, boot: outrigger_agent::Boot) -> Option<Agent> {
    let error = match Agent::boot(boot).await {
        Ok(agent) => return Some(agent),
        Err(error) => error,
    };
    lines.wrong("settings", &error, error.hint().as_deref());
    if error.code() != CHANGED {
        return None;
    }
    let mut boot = crate::commands::plugin::listing::listing(global).ok()?;
    boot.env
        .insert("OPENCODE_DISABLE_PROJECT_CONFIG".into(), "1".into());
    let agent = Agent::boot(boot).await.ok()?;
    lines.below("what follows is of your own settings alone");
    Some(agent)
}

/// Code of the error about project settings that a process may have changed.
const CHANGED: &str = "config.changed";

/// Reports what the system can enforce, and the consequences of what it cannot.
fn sandbox(lines: &mut Lines, spawner: &Spawner) {
    let level = spawner.level();
    let has = |there: bool, what: &str| format!("{}{what}", if there { "" } else { "no " });
    let parts = [
        format!("Landlock ABI {}", spawner.landlock_abi()),
        has(spawner.has_views(), "mount namespaces"),
        has(spawner.has_namespaces(), "PID namespaces"),
        has(spawner.has_filters(), "seccomp"),
        has(spawner.has_connects(), "connections by address"),
    ];
    let has = format!("{} ({})", level.name(), parts.join(", "));
    if level == Level::Full {
        return lines.good("sandbox", has);
    }
    let open = if spawner.has_views() {
        ""
    } else {
        // As in Ubuntu 24.04 for unknown programs.
        "user namespaces are unavailable, so commands can see other processes and cannot create files next to denied ones; "
    };
    lines.note(
        "sandbox",
        format!("{has}: partial sandbox: {open}`sandbox = \"strict\"` refuses to start processes"),
    );
    if !spawner.has_views() {
        lines.below("hint: enable user namespaces");
    }
}

/// Reports the administrator's policy.
fn policies(lines: &Lines, config: &outrigger_config::Loaded) {
    for policy in &config.policies {
        let file = policy.path.display();
        if policy.loose {
            lines.note(
                "policy",
                format!("{file}: writable by users other than root"),
            );
        } else {
            lines.good("policy", file);
        }
        for line in policy.lines() {
            lines.below(format!("policy: {line}"));
        }
    }
}

/// Reports disabled parts (A12), with the source of the setting.
fn flags(lines: &Lines, config: &outrigger_config::Loaded) {
    for (flag, on, origin) in outrigger_agent::flags(config) {
        let text = format!("{flag} {} ({origin})", if on { "on" } else { "off" });
        if on {
            lines.good("flag", text);
        } else {
            lines.note("flag", text);
        }
    }
}

/// Reports the cost of plugins, from the `rows` records of the log and their processes.
fn plugin_costs(lines: &mut Lines, agent: &Agent, rows: u64) {
    let costs = match costs::recorded(agent.store(), rows) {
        Ok(costs) => costs,
        Err(error) => return lines.wrong("cost", error.text().trim(), None),
    };
    for report in costs::reports(costs, &agent.plugins(), outrigger_sandbox::usage::usage) {
        let mut said = report.lines.iter();
        let first = said.next().map(String::as_str).unwrap_or_default();
        let text = format!("{}: {first}", report.plugin);
        if report.advice.is_empty() {
            lines.good("cost", text);
        } else {
            lines.note("cost", text);
        }
        said.for_each(|line| lines.below(line));
        for advice in &report.advice {
            lines.below(format_args!("hint: {advice}"));
        }
    }
}

/// Reports the state of the store; returns its number of records.
fn store(lines: &mut Lines, path: &std::path::Path) -> u64 {
    if !path.exists() {
        lines.note(
            "store",
            format!("{} is created by the first run", path.display()),
        );
        return 0;
    }
    let checked = Store::open(path)
        .and_then(|(store, _)| Ok((store.verify_chain()?, store.verify_audit(None)?)));
    match checked {
        Ok((report, audit)) => {
            if let Some(first) = audit.faults.first() {
                lines.wrong(
                    "audit",
                    format!("the audit log was modified: {first}"),
                    Some("`outrigger audit verify` lists each problem"),
                );
            }
            if report.faults.is_empty() {
                lines.good(
                    "store",
                    format!("{} ({} records, chain intact)", path.display(), report.rows),
                );
            } else {
                lines.wrong(
                    "store",
                    format!("{} records were modified", report.faults.len()),
                    Some("`outrigger session verify` names the first one"),
                );
            }
            report.rows
        }
        Err(error) => {
            lines.wrong("store", &error, error.hint().as_deref());
            0
        }
    }
}

fn plugins(lines: &mut Lines, agent: &Agent) {
    for plugin in agent.plugins() {
        let what = format!("{} {}", plugin.id, plugin.stage);
        match &plugin.cause {
            Some(cause) => lines.wrong(
                "plugin",
                format!("{what}: {}", cause.message),
                cause.hint.as_deref(),
            ),
            None => lines.good(
                "plugin",
                format!("{what}, {:.0} ms to load", plugin.load_ms),
            ),
        }
    }
}

/// Reports MCP servers. A server that does not start only costs its tools, so this is not a failure.
fn mcp_servers(lines: &mut Lines, agent: &Agent) {
    for status in agent.mcp() {
        let what = format!(
            "{} {}",
            status.name,
            crate::commands::mcp::word(status.state)
        );
        match (&status.error, status.state) {
            (Some(error), _) => {
                lines.note("mcp", format!("{what}: {error}"));
                if let Some(hint) = &status.hint {
                    lines.note("mcp", hint);
                }
            }
            (None, McpState::Connected) => {
                lines.good("mcp", format!("{what}, {} tools", status.tools.len()));
            }
            (None, _) => lines.note("mcp", what),
        }
        if let Some(placement) = &status.placement {
            let starts = crate::commands::mcp::starts(placement);
            lines.note("mcp", format!("{} starts {starts}", status.name));
        }
    }
}

fn models(lines: &mut Lines, agent: &Agent) {
    match agent.models().default_model() {
        Ok(model) => match agent.models().resolve(&model) {
            Ok(_) => lines.good("model", format!("{}/{}", model.provider_id, model.model_id)),
            Err(error) => lines.wrong("model", &error, error.hint().as_deref()),
        },
        Err(error) => lines.wrong("model", &error, error.hint().as_deref()),
    }
}
