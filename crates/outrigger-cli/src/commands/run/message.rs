//! The message of `run`: the words of the command line, then standard input.

use std::io::{IsTerminal as _, Read as _};
use std::time::Duration;

use crate::args::RunArgs;
use crate::failure::Failure;
use crate::terminal::{Paint, err};

/// Maximum bytes of standard input.
const MAX_INPUT: u64 = 16 * 1024 * 1024;
/// After this time without input, an open pipe is reported as what the program waits for.
const SILENT: Duration = Duration::from_secs(1);

/// Returns the whole message; empty if there is none.
///
/// # Errors
/// Standard input cannot be read, is not text, or is longer than 16 MiB.
pub(crate) async fn message(args: &RunArgs) -> Result<String, Failure> {
    let words = words(&args.message);
    if std::io::stdin().is_terminal() {
        return Ok(words);
    }
    // In a separate thread, so that Ctrl-C works while it waits.
    let mut reading = tokio::task::spawn_blocking(|| read(std::io::stdin()));
    let something_else = !words.is_empty()
        || args.continued.has_session()
        || args.command.is_some()
        || !args.files.is_empty();
    let piped = tokio::select! {
        biased;
        piped = &mut reading => piped,
        () = tokio::time::sleep(SILENT), if something_else => {
            err(&Paint::for_stderr().dim("~ reading standard input; </dev/null to skip\n"));
            reading.await
        }
    };
    let piped =
        piped.map_err(|e| Failure::usage(format!("cannot read standard input: {e}"), None))??;
    Ok(match (words.is_empty(), piped.trim().is_empty()) {
        (_, true) => words,
        (true, false) => piped,
        (false, false) => format!("{words}\n{piped}"),
    })
}

fn read(from: impl std::io::Read) -> Result<String, Failure> {
    let mut text = String::new();
    from.take(MAX_INPUT + 1)
        .read_to_string(&mut text)
        .map_err(|e| Failure::usage(format!("cannot read standard input: {e}"), None))?;
    if text.len() as u64 > MAX_INPUT {
        let hint = "put it into a file and name the file in the message";
        return Err(Failure::usage(
            "standard input is longer than 16 MiB",
            Some(hint.into()),
        ));
    }
    Ok(text)
}

/// Joins words as OpenCode does: one with a blank keeps its quotation marks.
fn words(words: &[String]) -> String {
    let quoted = |word: &String| {
        if word.contains(' ') {
            format!("\"{}\"", word.replace('"', "\\\""))
        } else {
            word.clone()
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_with_blanks_keep_their_quotation_marks() {
        let words =
            |list: &[&str]| super::words(&list.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>());
        assert_eq!(
            words(&["fix", "the tests", "a\"b c"]),
            "fix \"the tests\" \"a\\\"b c\""
        );
        assert_eq!(words(&[]), "");
    }

    #[test]
    fn input_without_end_is_refused() {
        assert_eq!(read("text".as_bytes()).unwrap(), "text");
        assert!(read(std::io::repeat(b'x')).is_err());
        assert!(read(&b"\xff\xfe"[..]).is_err());
    }
}
