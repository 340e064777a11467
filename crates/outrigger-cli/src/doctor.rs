//! `outrigger doctor`: what is here, what is missing, and what to do about it.

use outrigger_agent::{Agent, McpState, Place};
use outrigger_store::Store;

use crate::args::Global;
use crate::exit;
use crate::progress::Line;
use crate::report::Failure;
use crate::view::{Paint, out};

struct Lines {
    paint: Paint,
    bad: bool,
}

impl Lines {
    fn good(&self, what: &str, text: impl std::fmt::Display) {
        out(&format!("{} {what:<12} {text}\n", self.paint.good("ok  ")));
    }
    fn note(&self, what: &str, text: impl std::fmt::Display) {
        out(&format!("{} {what:<12} {text}\n", self.paint.dim("note")));
    }
    fn wrong(&mut self, what: &str, text: impl std::fmt::Display, hint: Option<&str>) {
        self.bad = true;
        out(&format!("{} {what:<12} {text}\n", self.paint.bad("bad ")));
        if let Some(hint) = hint {
            out(&format!("                  {hint}\n"));
        }
    }
}

/// Runs the command; it fails when something is wrong that keeps a turn from running.
pub(crate) async fn doctor(global: &Global) -> Result<u8, Failure> {
    let mut lines = Lines {
        paint: Paint::for_stdout(),
        bad: false,
    };
    let boot = crate::run::boot(global, &Line::new())?;
    lines.good("version", env!("CARGO_PKG_VERSION"));
    let place = Place::find(&boot.directory);
    lines.good(
        "folder",
        format!(
            "{} (project {})",
            place.directory.display(),
            place.worktree.display()
        ),
    );
    match boot.load(&place) {
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
        }
        Err(error) => lines.wrong("config", &error, error.hint().as_deref()),
    }
    store(&mut lines, &boot.folders.store());
    match outrigger_sandbox::Spawner::new() {
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
    let agent = Agent::boot(boot).await?;
    plugins(&mut lines, &agent);
    mcp_servers(&mut lines, &agent);
    models(&mut lines, &agent);
    agent.shutdown().await;
    Ok(if lines.bad { exit::FAILED } else { 0 })
}

/// What the system can enforce, and what follows where it cannot.
fn sandbox(lines: &mut Lines, spawner: &Spawner) {
    let level = spawner.level();
    let has = |there: bool, what: &str| format!("{}{what}", if there { "" } else { "no " });
    let parts = [
        format!("Landlock ABI {}", spawner.landlock_abi()),
        has(spawner.has_views(), "mount namespaces"),
        has(spawner.has_filters(), "seccomp"),
    ];
    let told = format!("{} ({})", format!("{level:?}").to_lowercase(), parts.join(", "));
    if level == Level::Full {
        return lines.good("sandbox", told);
    }
    lines.note(
        "sandbox",
        format!("{told}: a part of the rules for processes cannot be enforced; `sandbox = \"strict\"` refuses to start them then"),
    );
}

fn store(lines: &mut Lines, path: &std::path::Path) {
    if !path.exists() {
        return lines.note(
            "store",
            format!("{} will be made by the first run", path.display()),
        );
    }
    match Store::open(path).and_then(|(store, _)| store.verify_chain()) {
        Ok(report) if report.faults.is_empty() => lines.good(
            "store",
            format!("{} ({} records, chain intact)", path.display(), report.rows),
        ),
        Ok(report) => lines.wrong(
            "store",
            format!("{} records are not what was written", report.faults.len()),
            Some("outrigger session verify names the first"),
        ),
        Err(error) => lines.wrong("store", &error, error.hint().as_deref()),
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

/// A server that does not come up costs its tools only, so it is no reason to fail.
fn mcp_servers(lines: &mut Lines, agent: &Agent) {
    for status in agent.mcp() {
        let what = format!("{} {}", status.name, crate::mcp::word(status.state));
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
