//! The one way to the terminal (invariant 14).
//!
//! Text from outside (a model, a tool, a file name, a title, a plugin, a server) may hold what a terminal obeys: sequences
//! that clear the screen, set the clipboard, turn text around or write over a question. Everything that is printed goes
//! through [`out`] or [`err`], which show such characters instead of sending them: `␛` for ESC and the like, `\u009b` for
//! those that have no picture, which in JSON is the same character. What is sent of them are line ends, tabs and the plain
//! colours of [`COLOURS`], those only to a terminal that has colours, and never beyond the end of a line.
//!
//! What is asked, and names in lists, are stricter: see [`name`] and [`question`].

use std::io::{self, IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use outrigger_files::sync::lock;

use crate::exit;

/// Parameters of SGR that are sent: bold, faint, italic, underlined, foregrounds that can be read on black and on white,
/// and what ends these. None that hides (8), swaps (7) or colours the ground.
const COLOURS: [&str; 23] = [
    "", "0", "00", "1", "01", "2", "3", "4", "22", "23", "24", "31", "32", "33", "34", "35", "36",
    "39", "90", "91", "92", "94", "96",
];
const RESET: &str = "\u{1b}[0m";
/// Longest sequence that is looked at.
const LONGEST: usize = 24;

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
/// How long a program at the other end of standard output has to read what was printed before a question.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);
/// How long it then has to print it.
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

/// Columns and rows of the terminal at standard error.
pub(super) fn err_size() -> Option<(u16, u16)> {
    size(io::stderr())
}

/// Columns and rows of the terminal at standard output.
pub(super) fn out_size() -> Option<(u16, u16)> {
    size(io::stdout())
}

fn size(terminal: impl std::os::fd::AsFd) -> Option<(u16, u16)> {
    let size = rustix::termios::tcgetwinsize(terminal).ok()?;
    Some((size.ws_col, size.ws_row))
}

/// A person is at both ends: they can read the question and answer it.
pub(crate) fn person_is_there() -> bool {
    io::stdin().is_terminal() && err_is_terminal()
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

/// Keeps the log, and standard output where that is no terminal, from the screen while somebody answers a question, and prints
/// them afterwards.
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

/// A name as one line: no control or invisible character is left in it, colours neither.
pub(crate) fn name(text: &str) -> String {
    text.chars().fold(String::new(), |mut shown, c| {
        match c {
            '\n' => shown.push('␊'),
            '\t' => shown.push('␉'),
            c if is_control(c) || is_invisible(c) => show(c, &mut shown),
            c => shown.push(c),
        }
        shown
    })
}

/// The same for what is asked of a person, which may have several lines.
pub(crate) fn question(text: &str) -> String {
    let lines: Vec<String> = text.split('\n').map(name).collect();
    lines.join("\n")
}

/// What may be sent of a text, and the rest shown.
fn safe(text: &str, colours: bool) -> String {
    let mut shown = String::with_capacity(text.len());
    let (mut rest, mut before, mut coloured) = (text, None, false);
    while let Some(c) = rest.chars().next() {
        let behind = rest.get(c.len_utf8()..).unwrap_or_default();
        rest = behind;
        match c {
            '\n' => {
                if std::mem::take(&mut coloured) {
                    shown.push_str(RESET);
                }
                shown.push(c);
            }
            '\t' => shown.push(c),
            '\r' if behind.starts_with('\n') => {}
            '\u{1b}' => match colour(behind) {
                Some(parameters) => {
                    rest = behind.get(parameters.len() + 2..).unwrap_or_default();
                    if colours {
                        shown.push_str(&format!("\u{1b}[{parameters}m"));
                        coloured = !matches!(parameters, "" | "0" | "00");
                    }
                }
                None => show(c, &mut shown),
            },
            // Emoji and some scripts join their letters with these.
            '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}' if before.is_some_and(joins) => {
                shown.push(c)
            }
            c if is_control(c) || is_invisible(c) => show(c, &mut shown),
            c => shown.push(c),
        }
        before = Some(c);
    }
    if coloured {
        shown.push_str(RESET);
    }
    shown
}

/// The parameters of a sequence that only colours, after its ESC.
fn colour(behind: &str) -> Option<&str> {
    let inner = behind.strip_prefix('[')?;
    let end = inner.bytes().take(LONGEST).position(|byte| byte == b'm')?;
    let parameters = inner.get(..end)?;
    let known = |parameter| COLOURS.contains(&parameter);
    parameters.split(';').all(known).then_some(parameters)
}

fn joins(before: char) -> bool {
    !before.is_ascii() && !is_control(before) && !is_invisible(before)
        || before == '\u{fe0f}'
        || before.is_ascii_digit()
}

/// Characters that a terminal obeys, in C0 and C1, and those that turn text around.
pub(super) fn is_control(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Characters without a width: two names that look the same may differ by them.
pub(super) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2065}' | '\u{206a}'..='\u{206f}' | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

fn show(c: char, shown: &mut String) {
    match c {
        '\0'..='\u{1f}' => shown.extend(char::from_u32(0x2400 + u32::from(c))),
        // As JSON has it, so that JSON stays the same.
        c => {
            let units = c
                .encode_utf16(&mut [0; 2])
                .iter()
                .map(|unit| format!("\\u{unit:04x}"))
                .collect::<String>();
            shown.push_str(&units);
        }
    }
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

    /// What a terminal would obey, and how it is shown.
    const HOSTILE: [(&str, &str); 22] = [
        ("\u{1b}]52;c;cm0gLXJm\u{7}", "␛]52;c;cm0gLXJm␇"),
        ("\u{1b}]0;title\u{1b}\\", "␛]0;title␛\\"),
        ("\u{1b}]8;;http://x\u{1b}\\y", "␛]8;;http://x␛\\y"),
        ("\u{1b}[2J\u{1b}[H", "␛[2J␛[H"),
        ("\u{1b}[1A\u{1b}[2K", "␛[1A␛[2K"),
        ("\u{1b}c", "␛c"),
        ("\u{1b}Pq#0\u{1b}\\", "␛Pq#0␛\\"),
        ("\u{1b}[?1049h", "␛[?1049h"),
        ("\u{1b}[8mhidden", "␛[8mhidden"),
        ("\u{1b}[30;40mhidden", "␛[30;40mhidden"),
        ("\u{1b}[6n\u{5}", "␛[6n␅"),
        ("\u{1b}", "␛"),
        ("\u{1b}[", "␛["),
        ("\u{9b}2J", "\\u009b2J"),
        ("\u{9d}52;c;x\u{9c}", "\\u009d52;c;x\\u009c"),
        ("safe\rrm", "safe␍rm"),
        ("rm\u{8}\u{8}ls", "rm␈␈ls"),
        ("a\u{7f}\0", "a\\u007f␀"),
        ("\u{202e}gpj.exe\u{202c}", "\\u202egpj.exe\\u202c"),
        ("\u{2067}x\u{2069}\u{2028}", "\\u2067x\\u2069\\u2028"),
        ("a\u{200b}b\u{feff}\u{ad}", "a\\u200bb\\ufeff\\u00ad"),
        ("\u{e0041}", "\\udb40\\udc41"),
    ];

    #[test]
    fn what_a_terminal_would_obey_is_shown() {
        for (hostile, shown) in HOSTILE {
            for colours in [false, true] {
                assert_eq!(safe(hostile, colours), shown, "{hostile:?}");
            }
            assert_eq!(name(hostile), shown);
            assert_eq!(question(hostile), shown);
        }
    }

    /// Pieces of a sequence that come one by one make none.
    #[test]
    fn a_sequence_in_pieces_is_none() {
        for (hostile, _) in HOSTILE {
            for at in (0..hostile.len()).filter(|at| hostile.is_char_boundary(*at)) {
                let (one, other) = hostile.split_at(at);
                let sent = safe(one, true) + &safe(other, true);
                let obeyed = |c: char| is_control(c) || is_invisible(c);
                assert!(!sent.contains(obeyed), "{hostile:?} at {at}: {sent:?}");
            }
        }
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

    #[test]
    fn colours_are_sent_where_there_are_some_and_end_with_their_line() {
        for (text, plain, coloured) in [
            ("\u{1b}[31mred\u{1b}[0m", "red", "\u{1b}[31mred\u{1b}[0m"),
            ("\u{1b}[1;32mx\ny", "x\ny", "\u{1b}[1;32mx\u{1b}[0m\ny"),
            ("\u{1b}[91mx", "x", "\u{1b}[91mx\u{1b}[0m"),
            ("a\tb\r\n", "a\tb\n", "a\tb\n"),
        ] {
            assert_eq!(safe(text, false), plain);
            assert_eq!(safe(text, true), coloured);
        }
        assert_eq!(name("\u{1b}[31mred"), "␛[31mred");
    }

    #[test]
    fn what_people_write_stays_as_it_is() {
        for text in [
            "äöü — „x“ …",
            "👩\u{200d}💻 ❤\u{fe0f} 1\u{fe0f}\u{20e3}",
            "می\u{200c}خواهم",
            "日本語",
            "{\"a\":\"\\u001b[2J\"}\n",
        ] {
            assert_eq!(safe(text, true), text);
        }
        assert_eq!(name("a\nb\tc"), "a␊b␉c");
        assert_eq!(question("a\nb\tc"), "a\nb␉c");
    }

    /// JSON that goes through it means the same.
    #[test]
    fn json_means_the_same() {
        for (hostile, _) in HOSTILE {
            let value = serde_json::json!({ "text": hostile, hostile: [1] });
            let sent = safe(&value.to_string(), false);
            let back: serde_json::Value = serde_json::from_str(&sent).unwrap();
            assert_eq!(back, value, "{sent}");
        }
    }
}
