//! What is going on, while it goes on: one line at the bottom of the terminal, gone when there is something to read.
//!
//! Without a terminal nothing moves; only what takes long and what failed is said, each once.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use outrigger_plugins::{Progress, Stage};

use crate::view::{Paint, err};

/// A plugin that takes longer than this to load is named on screen (C5).
const SLOW_PLUGIN: Duration = Duration::from_secs(1);

#[derive(Default)]
struct State {
    /// Plugins that are being loaded, with the stage and since when.
    loading: BTreeMap<String, (Stage, Instant)>,
    named: Vec<String>,
    /// What the turn waits for.
    waiting: Option<(String, Instant)>,
    shown: bool,
}

/// The line. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Line {
    state: Arc<Mutex<State>>,
    terminal: bool,
}

impl Line {
    /// A line on standard error.
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How far a plugin is. Installing takes long and failing matters: both are said; the rest is for the log.
    pub(crate) fn plugin(&self, progress: Progress) {
        let paint = Paint::for_stderr();
        let Progress {
            plugin,
            spec,
            stage,
            cause,
        } = progress;
        match stage {
            Stage::Installing => self.say(&paint.dim(&format!("~ installing {spec} …\n"))),
            Stage::Failed | Stage::Off => {
                let cause = cause
                    .map(|c| format!("{} (while {})", c.message, c.at))
                    .unwrap_or_default();
                self.say(&format!(
                    "{} plugin {plugin} {stage}: {cause}\n",
                    paint.bad("!")
                ));
            }
            // The log has it.
            _ => {}
        }
        let mut state = self.state();
        if matches!(
            stage,
            Stage::Installing | Stage::Installed | Stage::Starting | Stage::Initialised
        ) {
            state.loading.insert(plugin, (stage, Instant::now()));
        } else {
            state.loading.remove(&plugin);
        }
    }

    /// The turn waits for this from now on; `None`: for nothing.
    pub(crate) fn wait_for(&self, what: Option<&str>) {
        let mut state = self.state();
        state.waiting = what.map(|what| (what.to_owned(), Instant::now()));
    }

    /// Takes the line away, prints, and lets the next tick put it back.
    pub(crate) fn say(&self, text: &str) {
        self.clear();
        err(text);
    }

    /// Takes the line away.
    pub(crate) fn clear(&self) {
        if std::mem::take(&mut self.state().shown) {
            let _ = std::io::stderr().lock().write_all(b"\r\x1b[K");
        }
    }

    /// Draws it; called a few times a second.
    pub(crate) fn tick(&self) {
        let mut state = self.state();
        let now = Instant::now();
        let slow: Vec<String> = state
            .loading
            .iter()
            .filter(|(name, (_, since))| now - *since > SLOW_PLUGIN && !state.named.contains(name))
            .map(|(name, _)| name.clone())
            .collect();
        for name in slow {
            err(&Paint::for_stderr().dim(&format!("~ waiting for plugin {name} …\n")));
            state.named.push(name);
        }
        if !self.terminal {
            return;
        }
        let Some((what, since)) = &state.waiting else {
            return;
        };
        let seconds = (now - *since).as_secs();
        if seconds == 0 {
            return;
        }
        let line = format!(
            "\r\x1b[K{}",
            Paint::for_stderr().dim(&format!("~ {what} {seconds} s"))
        );
        let _ = std::io::stderr().lock().write_all(line.as_bytes());
        state.shown = true;
    }

    /// Ticks until the guard is dropped.
    pub(crate) fn run(&self) -> Ticking {
        let line = self.clone();
        let task = tokio::spawn(async move {
            let mut interval = tokio::time::interval(Duration::from_millis(250));
            loop {
                interval.tick().await;
                line.tick();
            }
        });
        Ticking {
            task,
            line: self.clone(),
        }
    }
}

/// Keeps the line alive.
pub(crate) struct Ticking {
    task: tokio::task::JoinHandle<()>,
    line: Line,
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.task.abort();
        self.line.clear();
    }
}
