//! The current activity: one line at the bottom of the terminal, removed when there is something to read.
//!
//! Without a terminal nothing is animated; only slow steps and failures are printed, each once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use outrigger_plugins::{Cause, Fetched, Progress, Stage};
use outrigger_stdx::sync::lock;

use crate::terminal::download::Fetching;
use crate::terminal::{self, name};
use crate::terminal::{Paint, entry, err};

/// A plugin that takes longer than this to load is named on screen (C5).
const SLOW_PLUGIN: Duration = Duration::from_secs(1);

/// Interval of redrawing the line.
const TICK: Duration = Duration::from_millis(250);

#[derive(Default)]
struct State {
    /// Plugins that are being loaded, with the stage and its start.
    loading: BTreeMap<String, (Stage, Instant)>,
    named: Vec<String>,
    /// Current installations, by plugin.
    fetching: BTreeMap<String, Fetching>,
    /// What the turn waits for.
    waiting: Option<(String, Instant)>,
    /// Its progress.
    detail: Option<String>,
    shown: bool,
    /// A task redraws the line.
    ticking: bool,
}

impl State {
    fn erase(&mut self) {
        if std::mem::take(&mut self.shown) {
            terminal::last_line("");
        }
    }

    /// Returns the text of the line. Downloads come first: the rest waits for them.
    fn text(&self, now: Instant) -> Option<String> {
        if let Some(fetching) = self.fetching.values().next() {
            return Some(fetching.bar(now));
        }
        let (what, since) = self.waiting.as_ref()?;
        let seconds = (now - *since).as_secs();
        (seconds > 0).then(|| match &self.detail {
            Some(detail) => format!("{what} {seconds} s  {detail}"),
            None => format!("{what} {seconds} s"),
        })
    }
}

/// The line. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Line {
    state: Arc<Mutex<State>>,
    terminal: bool,
}

impl Line {
    /// Creates a line on standard error.
    pub(crate) fn new() -> Self {
        Self {
            state: Arc::default(),
            terminal: terminal::err_is_terminal(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Reports the progress of a plugin. Installations and failures are printed; the rest is logged.
    pub(crate) fn plugin(&self, progress: Progress) {
        let paint = Paint::for_stderr();
        let Progress {
            plugin,
            spec,
            stage,
            cause,
            mention,
            guards,
            fetched,
        } = progress;
        if let Some(fetched) = fetched {
            return self.came(&plugin, fetched);
        }
        match stage {
            Stage::Installing => self.say(&paint.dim(&format!("~ installing {} …\n", name(&spec)))),
            Stage::Failed | Stage::Off => {
                let cause = cause
                    .map(|c| format!("{} (while {})", c.message, c.at))
                    .unwrap_or_default();
                let without = without(&guards);
                self.say(&entry(&format!(
                    "{} plugin {} {stage}: {cause}{without}",
                    paint.bad("!"),
                    name(&plugin)
                )));
            }
            // A guard's absence refuses what it guards, so the reason must be shown.
            Stage::Skipped if mention || !guards.is_empty() => {
                let line = left_out(cause, &guards);
                self.say(&entry(&format!("{} {line}", paint.bad("!"))));
            }
            Stage::Active if !guards.is_empty() => {
                let line = lacking(&plugin, &guards);
                self.say(&entry(&format!("{} {line}", paint.bad("!"))));
            }
            // It is logged.
            _ => {}
        }
        let mut state = self.state();
        if stage == Stage::Installing {
            let fetching = Fetching::new(&spec, Instant::now());
            state.fetching.insert(plugin.clone(), fetching);
            if !state.ticking && state.fetching.len() == 1 {
                self.tick_while_fetching();
            }
        } else if state.fetching.remove(&plugin).is_some() {
            // At once: the command's next output does not know about the line.
            state.erase();
        }
        if matches!(
            stage,
            Stage::Installed | Stage::Starting | Stage::Initialised
        ) {
            state.loading.insert(plugin, (stage, Instant::now()));
        } else {
            state.loading.remove(&plugin);
        }
    }

    /// Draws the line during downloads, for commands that have none otherwise.
    fn tick_while_fetching(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let line = self.clone();
        runtime.spawn(async move {
            let mut interval = tokio::time::interval(TICK);
            while !line.state().fetching.is_empty() {
                interval.tick().await;
                line.tick();
            }
            line.clear();
        });
    }

    fn came(&self, plugin: &str, fetched: Fetched) {
        if let Some(fetching) = self.state().fetching.get_mut(plugin) {
            fetching.came(fetched);
        }
    }

    /// Sets what the turn waits for; `None`: nothing.
    pub(crate) fn wait_for(&self, what: Option<&str>) {
        let mut state = self.state();
        // The same wait continues.
        let same = state
            .waiting
            .take_if(|(known, _)| Some(known.as_str()) == what);
        state.waiting = same.or_else(|| what.map(|what| (what.to_owned(), Instant::now())));
        if what.is_none() {
            state.detail = None;
        }
    }

    /// Sets the progress of what the turn waits for.
    pub(crate) fn detail(&self, detail: Option<&str>) {
        self.state().detail = detail.map(name);
    }

    /// Redraws the line at once after other output, if it is active.
    pub(crate) fn redraw(&self) {
        if self.state().ticking {
            self.tick();
        }
    }

    /// Removes the line, prints, and lets the next tick redraw it.
    pub(crate) fn say(&self, text: &str) {
        self.clear();
        err(text);
    }

    /// Removes the line.
    pub(crate) fn clear(&self) {
        self.state().erase();
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
            // Otherwise it would follow moving output.
            state.erase();
            err(&Paint::for_stderr().dim(&format!(
                "~ waiting for plugin {} …\n",
                terminal::name(&name)
            )));
            state.named.push(name);
        }
        if !self.terminal {
            for fetching in state.fetching.values_mut() {
                if let Some(line) = fetching.line(now) {
                    err(&Paint::for_stderr().dim(&format!("~ {line}\n")));
                }
            }
            return;
        }
        let Some(text) = state.text(now) else {
            return;
        };
        let text = cut(&name(&text), crate::terminal::err_size().columns);
        terminal::last_line(&Paint::for_stderr().dim(&format!("~ {text}")));
        state.shown = true;
    }

    /// Ticks until the guard is dropped.
    pub(crate) fn run(&self) -> Ticking {
        self.state().ticking = true;
        let line = self.clone();
        let task = tokio::spawn(async move {
            let mut interval = tokio::time::interval(TICK);
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

/// Truncates a text to a row of this many columns, after the mark of the line. A non-ASCII character may take two
/// columns.
fn cut(text: &str, columns: usize) -> String {
    let mut left = columns.saturating_sub(3);
    text.chars()
        .take_while(|c| {
            let width = if c.is_ascii() { 1 } else { 2 };
            let fits = left >= width;
            left = left.saturating_sub(width);
            fits
        })
        .collect()
}

/// Returns why a plugin is skipped, what to do about it, and the effect if it is a guard.
fn left_out(cause: Option<Cause>, guards: &[String]) -> String {
    let (message, hint) = cause.map(|it| (it.message, it.hint)).unwrap_or_default();
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{message}{hint}{}", without(guards))
}

/// Returns the effect of a guard that is present but lacks its hook.
fn lacking(plugin: &str, guards: &[String]) -> String {
    format!(
        "plugin {} does not bring a hook that `fail_closed` names, so {} is refused",
        name(plugin),
        guards.join(", ")
    )
}

/// Returns the effect of a missing guard.
fn without(guards: &[String]) -> String {
    if guards.is_empty() {
        String::new()
    } else {
        format!(
            "; without it {} is refused (fail_closed)",
            guards.join(", ")
        )
    }
}

/// Keeps the line active.
pub(crate) struct Ticking {
    task: tokio::task::JoinHandle<()>,
    line: Line,
}

impl Drop for Ticking {
    fn drop(&mut self) {
        self.task.abort();
        self.line.state().ticking = false;
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a command prints is a report that it still runs: the seconds go on from its start.
    #[test]
    fn a_wait_goes_on_while_a_command_prints() {
        let line = Line {
            state: Arc::default(),
            terminal: false,
        };
        let shown = |after: Instant, seconds: u64| {
            let now = after + Duration::from_secs(seconds);
            line.state().text(now)
        };
        line.wait_for(Some("bash"));
        let begun = line.state().waiting.as_ref().unwrap().1;
        assert_eq!(shown(begun, 0), None);
        // The clock has gone on by then.
        std::thread::sleep(Duration::from_millis(2));
        line.wait_for(Some("bash"));
        line.redraw();
        assert_eq!(line.state().waiting.as_ref().unwrap().1, begun);
        assert_eq!(shown(begun, 21).as_deref(), Some("bash 21 s"));
        line.detail(Some("3 of 5"));
        assert_eq!(shown(begun, 22).as_deref(), Some("bash 22 s  3 of 5"));
        line.wait_for(Some("model"));
        assert!(line.state().waiting.as_ref().unwrap().1 > begun);
        line.wait_for(None);
        assert_eq!(shown(begun, 60), None);
    }
}
