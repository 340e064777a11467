//! A running command: its output, its time limit, and the result for the model.

use std::path::PathBuf;
use std::pin::pin;
use std::time::Duration;

use outrigger_protocol::tool::ToolOutput;
use outrigger_sandbox::absent::SUFFIX;
use outrigger_sandbox::{Child, Exit, Killer, LockHolder, ProcessFreeze, process_time};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use super::capture::{Capture, Captured};
use crate::error::ToolError;
use crate::host::ToolContext;

/// Bytes of the output shown while a command runs: its end, as in OpenCode.
const PREVIEW: usize = 30_000;
/// How often the output is shown.
const PROGRESS: Duration = Duration::from_millis(150);
/// How long output is still read after the shell has ended while a descendant holds the pipe.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// A running command with its output.
pub(crate) struct Running<'a> {
    capture: Capture<'a>,
    /// The ends of the two streams separately, for display (E3).
    stdout: Tail,
    stderr: Tail,
    fresh: bool,
    /// Hosts to which the command was refused a connection.
    refused: Vec<String>,
    /// Further notes for the model.
    notes: Vec<String>,
    /// Forbidden files that it created.
    aside: Vec<PathBuf>,
}

#[derive(Default)]
struct Tail(Vec<u8>);

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        if self.0.len() > 2 * PREVIEW {
            self.0.drain(..self.0.len() - PREVIEW);
        }
    }
    fn text(&self) -> String {
        let from = self.0.len().saturating_sub(PREVIEW);
        String::from_utf8_lossy(self.0.get(from..).unwrap_or_default()).into_owned()
    }
}

/// Maximum number of locks that are named.
const MAX_LOCKS: usize = 5;

/// How the command ended; `None` if it timed out.
pub(crate) type Ended = Option<Exit>;

impl<'a> Running<'a> {
    pub(crate) fn new(capture: Capture<'a>) -> Self {
        Self {
            capture,
            stdout: Tail::default(),
            stderr: Tail::default(),
            fresh: false,
            refused: Vec::new(),
            notes: Vec::new(),
            aside: Vec::new(),
        }
    }

    /// Reads until the shell and its output have ended. Dropping this future drops the child, which kills the whole tree. Other commands
    /// may be frozen meanwhile: `freeze`. One that waits for what they hold is ended.
    pub(crate) async fn follow(
        &mut self,
        mut child: Child,
        timeout: Duration,
        freeze: Option<&ProcessFreeze>,
        ctx: &ToolContext,
    ) -> Result<Ended, ToolError> {
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let (mut out, mut err) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
        let mut exit: Option<Ended> = None;
        let mut drained = Instant::now();
        let mut late = pin!(late(timeout, freeze));
        let killer = child.killer();
        let mut blocked = pin!(blocked(freeze, &killer));
        let mut tick = interval(PROGRESS);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while exit.is_none() || stdout.is_some() || stderr.is_some() {
            tokio::select! {
                n = read_some(&mut stdout, &mut out), if stdout.is_some() => self.take(&out[..n], false),
                n = read_some(&mut stderr, &mut err), if stderr.is_some() => self.take(&err[..n], true),
                ended = child.wait(), if exit.is_none() => {
                    exit = Some(Some(ended.map_err(|e| ToolError::failed(e.to_string()))?));
                    drained = Instant::now() + DRAIN_TIMEOUT;
                }
                holder = &mut blocked, if exit.is_none() => {
                    child.kill_tree();
                    exit = Some(child.wait().await.ok());
                    drained = Instant::now() + DRAIN_TIMEOUT;
                    self.note(format!(
                        "It was ended because it waited for a lock that it could not get: {holder}, and was frozen meanwhile. Run the command again once that one is done."
                    ));
                }
                _ = tick.tick(), if self.fresh => {
                    self.fresh = false;
                    ctx.progress(None, json!({"output": self.printed()}));
                }
                () = &mut late, if exit.is_none() => {
                    child.kill_tree();
                    exit = Some(None);
                    drained = Instant::now() + DRAIN_TIMEOUT;
                }
                () = sleep_until(drained), if exit.is_some() => break,
            }
        }
        // The last output of a command is reported even if it ends at once, as in OpenCode.
        if self.fresh {
            ctx.progress(None, json!({"output": self.printed()}));
        }
        self.refused = child.refused();
        let is_done = |it: Exit| it.success() || it.signal.is_some();
        if !exit.flatten().is_some_and(is_done) {
            self.note_locks(freeze);
        }
        // Forbidden changes are checked on a thread where nothing else waits.
        let undone = tokio::task::spawn_blocking(move || child.finish()).await;
        let undone = undone.map_err(|e| ToolError::failed(e.to_string()))?;
        self.aside = undone.moved_aside;
        self.notes.extend(undone.changes);
        Ok(exit.flatten())
    }

    fn take(&mut self, bytes: &[u8], error: bool) {
        self.capture.add(bytes);
        if error {
            self.stderr.add(bytes);
        } else {
            self.stdout.add(bytes);
        }
        self.fresh |= !bytes.is_empty();
    }

    /// Names the locks that a failed command may have met.
    fn note_locks(&mut self, freeze: Option<&ProcessFreeze>) {
        let held = freeze.map(ProcessFreeze::locks).unwrap_or_default();
        let held: Vec<String> = held
            .iter()
            .take(MAX_LOCKS)
            .map(LockHolder::to_string)
            .collect();
        if !held.is_empty() {
            self.note(format!(
                "Frozen while it ran: {}. If that is the reason, run the command again once that one is done.",
                held.join("; ")
            ));
        }
    }

    /// Returns the end of its output so far.
    pub(crate) fn printed(&self) -> String {
        self.capture.preview(PREVIEW)
    }

    /// Adds a note for the model.
    pub(crate) fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Creates the result of the call.
    pub(crate) fn output(
        self,
        command: &str,
        ended: Ended,
        timeout: Duration,
        ctx: &ToolContext,
    ) -> ToolOutput {
        let mut preview = self.printed();
        let notes = notes(ended, timeout, &self.refused, &self.aside, self.notes);
        let captured = self.capture.finish();
        if captured.text.is_empty() {
            "(no output)".clone_into(&mut preview);
        }
        let mut output = shown(&captured);
        if !notes.is_empty() {
            let notes = notes.join("\n");
            output.push_str(&format!("\n\n<shell_metadata>\n{notes}\n</shell_metadata>"));
        }
        let mut metadata = json!({
            "output": preview,
            "exit": ended.and_then(|exit| exit.code),
            "truncated": captured.truncated,
        });
        if let Some(path) = captured.path {
            ctx.keeps(&path);
            metadata["outputPath"] = json!(path);
        }
        if !self.stderr.0.is_empty() {
            metadata["stdout"] = json!(self.stdout.text());
            metadata["stderr"] = json!(self.stderr.text());
        }
        ToolOutput {
            title: command.to_owned(),
            output,
            metadata,
            attachments: None,
        }
    }
}

/// Completes at the time limit: that of a command which runs while the others are frozen goes on.
async fn late(timeout: Duration, freeze: Option<&ProcessFreeze>) {
    match freeze {
        Some(_) => tokio::time::sleep(timeout).await,
        None => process_time::sleep(timeout).await,
    }
}

async fn blocked(freeze: Option<&ProcessFreeze>, command: &Killer) -> LockHolder {
    match freeze {
        Some(freeze) => freeze.blocks(command).await,
        None => std::future::pending().await,
    }
}

/// Returns the output, and the file with all of it if it was truncated.
fn shown(captured: &Captured) -> String {
    let printed = if captured.text.is_empty() {
        "(no output)"
    } else {
        &captured.text
    };
    if !captured.truncated {
        return printed.to_owned();
    }
    let mut saved = captured
        .path
        .as_ref()
        .map(|path| format!("Full output saved to: {}", path.display()))
        .unwrap_or_default();
    if let Some(why) = &captured.lost {
        saved.push_str(&format!(" (not all of it could be saved: {why})"));
    }
    format!("...output truncated...\n\n{}\n\n{printed}", saved.trim())
}

/// Returns the notes for the model that accompany the output.
fn notes(
    ended: Ended,
    timeout: Duration,
    refused: &[String],
    moved_aside: &[PathBuf],
    more: Vec<String>,
) -> Vec<String> {
    let end = match ended {
        None => Some(format!(
            "shell tool terminated command after exceeding timeout {} ms. If this command is expected to take longer and is not waiting for interactive input, retry with a larger timeout value in milliseconds.",
            timeout.as_millis()
        )),
        Some(Exit {
            signal: Some(signal),
            ..
        }) => Some(format!("The command was ended by signal {signal}.")),
        Some(_) => None,
    };
    let refused = (!refused.is_empty()).then(|| {
        let hosts = refused.join(", ");
        format!("No connection was made to {hosts}: the user's `tools.hosts` or the policy of this machine does not allow it.")
    });
    let aside = moved_aside.iter().map(|path| {
        let path = path.display();
        format!("Commands must not make {path}; it was renamed to {path}{SUFFIX}-*.")
    });
    end.into_iter()
        .chain(refused)
        .chain(aside)
        .chain(more)
        .collect()
}

/// Reads some bytes; closes the stream at its end, or if it cannot be read.
pub async fn read_some<R: AsyncRead + Unpin>(from: &mut Option<R>, into: &mut [u8]) -> usize {
    let n = match from {
        Some(stream) => stream.read(into).await.unwrap_or(0),
        None => 0,
    };
    if n == 0 {
        *from = None;
    }
    n
}
