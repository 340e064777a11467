//! The one way to the terminal for lines (invariant 13).
//!
//! Everything that is printed goes through [`out`] or [`err`], which show what a terminal obeys instead of sending it
//! (`outrigger_terminal::safe`). Colours are sent only to a terminal that has them, and never beyond the end of a line.

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use outrigger_files::sync::lock;
use outrigger_terminal::{Size, safe};
pub(crate) use outrigger_terminal::{name, question};

use crate::exit;

/// What waits while a question is on the screen, so that nothing looks like one.
static HELD: Mutex<Option<Held>> = Mutex::new(None);

#[derive(Default)]
struct Held {
    /// Entries of the log: a plugin may have written them.
    log: String,
    /// Standard output that goes elsewhere: through a pipe (`| tee`) it reaches the same terminal, at a time of its own.
    out: Vec<u8>,
}

/// Bytes of the log that are held.
const MAX_HELD: usize = 64 * 1024;
/// How long a program at the other end of standard output must read what was printed before a question.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long it then must print it.
const SETTLE: Duration = Duration::from_millis(100);
/// What stands for the rest.
const MORE: &str = "... and more (`--print-logs` with standard error to a file shows all)\n";
/// Before each further line of an entry, so that none looks like one of the program's own.
const FURTHER: &str = "     | ";

/// Bytes that were printed to standard output.
static SENT: AtomicU64 = AtomicU64::new(0);
/// Why standard output is not whole; the first reason counts.
static LOST: OnceLock<io::ErrorKind> = OnceLock::new();

/// Whether standard output wants colours.
pub(crate) fn out_has_colours() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none())
}

/// Whether standard error wants colours.
pub(crate) fn err_has_colours() -> bool {
    static HAS: OnceLock<bool> = OnceLock::new();
    *HAS.get_or_init(|| err_is_terminal() && std::env::var_os("NO_COLOR").is_none())
}

/// Whether somebody may look at standard error.
pub(crate) fn err_is_terminal() -> bool {
    io::stderr().is_terminal()
}

/// The size of standard error, where questions are put.
pub(crate) fn err_size() -> Size {
    Size::of(size(io::stderr())).unwrap_or(Size::USUAL)
}

/// The size of standard output. What is not a terminal wraps nothing.
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

/// A person is at both ends: they can read the question and answer it.
pub(crate) fn person_is_there() -> bool {
    io::stdin().is_terminal() && err_is_terminal()
}

/// A person is at standard input and output: the screen can be taken.
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

/// Puts a text in the place of the last line of standard error; an empty one only takes that away.
pub(crate) fn last_line(text: &str) {
    send_err(&format!("\r\u{1b}[K{}", safe(text, err_has_colours())));
}

/// Passes on what a command printed: to a program as it is, to a terminal as everything else.
pub(crate) fn pass_out(bytes: &[u8]) {
    match io::stdout().is_terminal() {
        true => out(&String::from_utf8_lossy(bytes)),
        false => send_bytes(bytes),
    }
}

/// The same to standard error.
pub(crate) fn pass_err(bytes: &[u8]) {
    match err_is_terminal() {
        true => err(&String::from_utf8_lossy(bytes)),
        false => drop(io::stderr().lock().write_all(bytes)),
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

/// What cannot be said has nobody to be said to.
fn send_err(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Something that was printed to standard output did not arrive.
pub(crate) fn is_lost() -> bool {
    LOST.get().is_some()
}

/// The program's exit code: a success whose output was lost is none. Nothing is printed for a reader that went away (`head`).
pub(crate) fn exit_code(code: u8) -> ExitCode {
    hold(false);
    let Some(reason) = LOST.get().filter(|_| code == 0) else {
        return ExitCode::from(code);
    };
    if *reason != io::ErrorKind::BrokenPipe {
        err(&format!(
            "error: standard output cannot be written: {reason} [cli.output]\n  hint: some of the output is lost; \
             free space or print elsewhere\n"
        ));
    }
    ExitCode::from(exit::FAILED)
}

/// Where the log goes: an entry with each write.
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

/// Keeps the log, and standard output where that is not a terminal, from the screen while somebody answers a question, and
/// prints them afterwards.
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

/// Waits until what was printed through a pipe has been read, and so stands above the question that comes next.
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

/// An entry of the log, or a message with text of others in it, with its further lines set off.
pub(crate) fn entry(text: &str) -> String {
    let lines = text.strip_suffix('\n').unwrap_or(text);
    lines.replace('\n', &format!("\n{FURTHER}")) + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Under a test runner standard output is a file or a pipe.
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
