//! Ctrl-C and SIGTERM: one stream of signals for the whole command, from before the first plugin is loaded until the last
//! one is disposed of.
//!
//! While a turn runs, the first signal cancels it and the next one exits at once. At any other time Ctrl-C exits at once:
//! there is nothing to save. SIGTERM lets current work end on its own.

use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::exit;
use crate::failure::Failure;

/// Maximum time to exit, even if a write to a pipe that nothing reads blocks the main thread.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Signal {
    Interrupt,
    Terminate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Phase {
    /// Nothing has been done yet that would be lost.
    #[default]
    Loading,
    /// A turn runs.
    Turn,
    /// The turn has ended.
    Ending,
}

/// The effect of the signals so far.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    phase: Phase,
    /// The turn must be cancelled.
    cancel: bool,
    /// The cancellation was handled.
    taken: bool,
    /// The exit code to exit with at once.
    leave: Option<u8>,
    terminated: bool,
}

impl State {
    fn on(&mut self, signal: Signal) {
        let again = self.terminated;
        self.terminated |= signal == Signal::Terminate;
        match self.phase {
            Phase::Turn if !self.cancel => self.cancel = true,
            // It is ending already; a second signal is intended.
            Phase::Ending if signal == Signal::Terminate && !again => {}
            _ => {
                self.leave = Some(if self.terminated {
                    exit::TERMINATED
                } else {
                    exit::CANCELLED
                })
            }
        }
    }

    fn turn(&mut self) {
        self.phase = Phase::Turn;
        // A program that was asked to end starts nothing new.
        self.cancel = self.terminated;
        self.taken = false;
    }

    /// Between turns, when the user is asked what to do next: a signal that came too late for the turn is for the program.
    fn rest(&mut self) {
        if self.terminated {
            self.leave = Some(exit::TERMINATED);
        } else if self.cancel && !self.taken {
            self.leave = Some(exit::CANCELLED);
        }
        self.phase = Phase::Loading;
        self.cancel = false;
    }
}

/// The signals of this process. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Signals {
    state: watch::Sender<State>,
}

impl Signals {
    /// Installs handlers for both signals, for the life of the process.
    fn listen() -> Result<Self, Failure> {
        let fail = |e: std::io::Error| {
            Failure::new(
                "cli.signals",
                format!("cannot listen to signals: {e}"),
                None,
            )
        };
        let mut interrupt = signal(SignalKind::interrupt()).map_err(fail)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(fail)?;
        let state = watch::Sender::new(State::default());
        let shared = state.clone();
        tokio::spawn(async move {
            loop {
                let signal = tokio::select! {
                    Some(()) = interrupt.recv() => Signal::Interrupt,
                    Some(()) = terminate.recv() => Signal::Terminate,
                    else => return,
                };
                shared.send_modify(|state| state.on(signal));
                if let Some(code) = shared.borrow().leave {
                    std::thread::spawn(move || {
                        std::thread::sleep(EXIT_TIMEOUT);
                        std::process::exit(i32::from(code));
                    });
                }
            }
        });
        Ok(Self { state })
    }

    /// Marks a running turn until the guard is dropped.
    pub(crate) fn turn(&self) -> Turn<'_> {
        self.state.send_modify(State::turn);
        Turn(self)
    }

    /// Marks the wait for the next input: from here on a signal ends the command, as before the first turn.
    pub(crate) fn rest(&self) {
        self.state.send_modify(State::rest);
    }

    /// Waits until the turn must be cancelled, which the caller then does; returns whether the cause was SIGTERM.
    pub(crate) async fn cancelled(&self) -> bool {
        match self.state.subscribe().wait_for(|state| state.cancel).await {
            Ok(state) => {
                let terminated = state.terminated;
                drop(state);
                self.state.send_modify(|state| state.taken = true);
                terminated
            }
            Err(_) => std::future::pending().await,
        }
    }

    async fn left(&self) -> u8 {
        match self
            .state
            .subscribe()
            .wait_for(|state| state.leave.is_some())
            .await
        {
            Ok(state) => state.leave.unwrap_or(exit::CANCELLED),
            Err(_) => std::future::pending().await,
        }
    }
}

/// See [`Signals::turn`].
pub(crate) struct Turn<'a>(&'a Signals);

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.0
            .state
            .send_modify(|state| state.phase = Phase::Ending);
    }
}

/// Runs a command until it is done or a signal requests to exit; unfinished work is dropped.
pub(crate) async fn guarded<W>(work: impl FnOnce(Signals) -> W) -> Result<u8, Failure>
where
    W: Future<Output = Result<u8, Failure>>,
{
    let signals = Signals::listen()?;
    let result = tokio::select! {
        biased;
        code = signals.left() => return Ok(code),
        result = work(signals.clone()) => result,
    };
    let terminated = signals.state.borrow().terminated;
    if terminated {
        result
            .map(|_| exit::TERMINATED)
            .map_err(|failure| failure.exiting(exit::TERMINATED))
    } else {
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the effect of signals: `i` is Ctrl-C, `t` SIGTERM, `(` and `)` are the ends of a turn, `c` handles its
    /// cancellation, `_` waits for the next input.
    fn after(script: &str) -> (bool, Option<u8>, bool) {
        let mut state = State::default();
        for step in script.chars() {
            match step {
                'i' => state.on(Signal::Interrupt),
                't' => state.on(Signal::Terminate),
                '(' => state.turn(),
                'c' => state.taken = true,
                '_' => state.rest(),
                _ => state.phase = Phase::Ending,
            }
        }
        (state.cancel, state.leave, state.terminated)
    }

    #[test]
    fn what_signals_mean_by_table() {
        for (script, cancel, leave, terminated) in [
            ("i", false, Some(130), false),
            ("t", false, Some(143), true),
            ("(i", true, None, false),
            ("(ii", true, Some(130), false),
            ("(t", true, None, true),
            ("(tt", true, Some(143), true),
            ("(it", true, Some(143), true),
            ("(i)", true, None, false),
            ("(i)i", true, Some(130), false),
            ("()i", false, Some(130), false),
            ("()t", false, None, true),
            ("()tt", false, Some(143), true),
            ("()(i", true, None, false),
            // SIGTERM cancelled the first turn, or came after it: the second one does not start.
            ("(t)(", true, None, true),
            ("()t(", true, None, true),
            ("(i)(", false, None, false),
            ("(ic)_", false, None, false),
            ("(ic)_(", false, None, false),
            ("(ic)_i", false, Some(130), false),
            // It came when the turn was as good as over.
            ("(i)_", false, Some(130), false),
            ("()_t", false, Some(143), true),
            ("(tc)_", false, Some(143), true),
            ("()t_", false, Some(143), true),
        ] {
            assert_eq!(after(script), (cancel, leave, terminated), "{script}");
        }
    }
}
