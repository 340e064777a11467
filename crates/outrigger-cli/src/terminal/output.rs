//! The only output of lines to the terminal (invariant 13).
//!
//! Everything is printed through [`out`] or [`err`], which make control characters visible instead of sending them
//! (`outrigger_terminal::safe`). Colours are sent only to a terminal that supports them, and are reset at the end of each
//! line.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use outrigger_stdx::sync::lock;
use outrigger_terminal::{Size, safe};
pub(crate) use outrigger_terminal::{name, one_line, question};

use crate::exit;

/// Output held back while a question is on the screen, so that nothing can imitate one.
static HELD: Mutex<Option<Held>> = Mutex::new(None);

#[derive(Default)]
struct Held {
    /// Log entries, which may contain text of plugins.
    log: String,
    /// Redirected standard output: through a pipe (`| tee`) it may reach the same terminal at any time.
    out: Vec<u8>,
}

/// Maximum bytes of held log.
const MAX_HELD: usize = 64 * 1024;
/// How long a program at the other end of standard output may take to read output before a question.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long it then may take to print it.
const SETTLE: Duration = Duration::from_millis(100);
/// Replaces the rest.
const MORE: &str = "... and more (`--print-logs` with standard error to a file shows all)\n";
/// Prefix of further lines of an entry, so that none can imitate one of the program's own.
const FURTHER: &str = "     | ";

/// Bytes printed to standard output.
static SENT: AtomicU64 = AtomicU64::new(0);
/// Why standard output is incomplete; the first reason wins.
static LOST: OnceLock<io::ErrorKind> = OnceLock::new();

/// Returns whether standard output supports colours.
pub(crate) fn out_has_colours() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
}

/// Returns whether standard error supports colours.
pub(crate) fn err_has_colours() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| err_is_terminal() && std::env::var_os("NO_COLOR").is_none())
}

/// Returns whether standard error is a terminal.
pub(crate) fn err_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// Returns the size of standard error, where questions are asked.
pub(crate) fn err_size() -> Size {
    Size::of(size(io::stderr())).unwrap_or(Size::USUAL)
}

/// Returns the size of standard output. Without a terminal nothing is wrapped.
pub(crate) fn out_size() -> Size {
    Size::of(size(io::stdout())).unwrap_or(Size {
        columns: usize::MAX,
        ..Size::USUAL
    })
}

fn size(terminal: impl std::os::fd::AsFd) -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some((size.ws_col, size.ws_row))
}

/// Returns whether a user can read questions and answer them.
pub(crate) fn person_is_there() -> bool {
    io::stdin().is_terminal() && err_is_terminal()
}

/// Returns whether standard input and output are terminals, so that a full-screen interface is possible.
pub(crate) fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stdout().is_terminal()
}

/// Prints to standard output.
pub(crate) fn out(text: &str) {
    send_out(&safe(text, out_has_colours()));
}

/// Prints to standard error.
pub(crate) fn err(text: &str) {
    send_err(&safe(text, err_has_colours()));
}

/// Clears the screen of standard output and prints from its top.
pub(crate) fn screen(text: &str) {
    send_out(&format!(
        "\u{1b}[2J\u{1b}[H{}",
        safe(text, out_has_colours())
    ));
}

/// Replaces the last line of standard error; an empty text removes it.
pub(crate) fn last_line(text: &str) {
    send_err(&format!("\r\u{1b}[K{}", safe(text, err_has_colours())));
}

/// Passes a command's output on: verbatim to a program, sanitized to a terminal.
pub(crate) fn pass_out(bytes: &[u8]) {
    if io::stdout().is_terminal() {
        out(&String::from_utf8_lossy(bytes))
    } else {
        send_bytes(bytes)
    }
}

/// Like [`pass_out`], to standard error.
pub(crate) fn pass_err(bytes: &[u8]) {
    if err_is_terminal() {
        err(&String::from_utf8_lossy(bytes))
    } else {
        drop(io::stderr().lock().write_all(bytes))
    }
}

fn send_out(text: &str) {
    send_bytes(text.as_bytes());
}

fn send_bytes(bytes: &[u8]) {
    if !io::stdout().is_terminal()
        && let Some(held) = lock(&HELD).as_mut()
    {
        return held.out.extend_from_slice(bytes);
    }
    let mut stdout = io::stdout().lock();
    SENT.fetch_add(bytes.len() as u64, Relaxed);
    let sent = stdout.write_all(bytes).and_then(|()| stdout.flush());
    if let Err(error) = sent {
        LOST.get_or_init(|| error.kind());
    }
}

/// Write errors cannot be reported.
fn send_err(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Returns whether some output to standard output was lost.
pub(crate) fn is_lost() -> bool {
    LOST.get().is_some()
}

/// Returns the program's exit code: lost output turns a success into a failure. Nothing is printed for a reader that has
/// exited (`head`).
pub(crate) fn exit_code(code: u8) -> ExitCode {
    hold(false);
    let Some(reason) = LOST.get().filter(|_| code == 0) else {
        return ExitCode::from(code);
    };
    if *reason != io::ErrorKind::BrokenPipe {
        err(&format!(
            "error: cannot write to standard output: {reason} [cli.output]\n  hint: some of the output is lost; \
             free space or print elsewhere\n"
        ));
    }
    ExitCode::from(exit::FAILED)
}

/// The target of the log: one entry per write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Log;

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let entry = entry(&String::from_utf8_lossy(bytes));
        let mut held = lock(&HELD);
        match held.as_mut() {
            None => err(&entry),
            Some(Held { log, .. }) if log.len() + entry.len() <= MAX_HELD => log.push_str(&entry),
            Some(Held { log, .. }) => {
                log.truncate(log.trim_end_matches(MORE).len());
                log.push_str(MORE);
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Holds back the log, and redirected standard output, while the user answers a question, and prints them afterwards.
pub(crate) fn hold(hold: bool) {
    let mut held = lock(&HELD);
    if hold {
        held.get_or_insert_default();
        return;
    }
    let Some(Held { log, out }) = held.take() else {
        return;
    };
    drop(held);
    err(&log);
    if !out.is_empty() {
        send_bytes(&out);
    }
}

/// Waits until output through a pipe has been read, and so is above the question that follows.
pub(crate) async fn settle() {
    static SETTLED: AtomicU64 = AtomicU64::new(0);
    let sent = SENT.load(Relaxed);
    if io::stdout().is_terminal() || SETTLED.swap(sent, Relaxed) == sent {
        return;
    }
    let begun = Instant::now();
    let waits = || rustix::io::ioctl_fionread(io::stdout()).is_ok_and(|bytes| bytes > 0);
    while waits() && begun.elapsed() < SETTLE_TIMEOUT {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    tokio::time::sleep(SETTLE).await;
}

/// Formats a log entry, or a message with untrusted text, with its further lines marked.
pub(crate) fn entry(text: &str) -> String {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    lines.replace('\n', &format!("\n{FURTHER}")) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under a test runner, standard output is a file or a pipe.
    #[test]
    fn standard_output_that_is_no_terminal_waits_for_the_answer_to_a_question() {
        let held = || lock(&HELD).as_ref().map(|held| held.out.clone());
        if io::stdout().is_terminal() {
            return;
        }
        hold(true);
        out("");
        send_bytes(b" ");
        hold(true);
        assert_eq!(held().as_deref(), Some(&b" "[..]));
        hold(false);
        assert_eq!(held(), None);
    }

    #[test]
    fn an_entry_of_the_log_is_recognised() {
        for (text, shown) in [
            (" WARN a\n", " WARN a\n"),
            (
                "a\n\n? allow bash (ls)?\n",
                "a\n     | \n     | ? allow bash (ls)?\n",
            ),
            ("a", "a\n"),
        ] {
            assert_eq!(entry(text), shown);
        }
    }
}
