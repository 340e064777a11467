//! Inserts the name of the file into a formatter's command. `$FILE` is an argument, or a part of one; in a line for a shell it becomes
//! a variable of that shell, so that no file name is a part of the line.

use std::path::Path;

/// The placeholder of the file name.
const FILE: &str = "$FILE";
/// The shell variable with the name.
pub(super) const VARIABLE: &str = "FILE";
/// Shells in which `"$FILE"` is a variable, and that run the word after `-c`.
const SHELLS: [&str; 9] = [
    "ash", "bash", "busybox", "dash", "fish", "ksh", "mksh", "sh", "zsh",
];

/// Returns the command with the file name. The error is the word that the name would be a part of, and which another program may run.
pub(super) fn filled(command: &[String], file: &str) -> Result<Vec<String>, String> {
    let line = shell_line(command);
    command
        .iter()
        .enumerate()
        .map(|(at, word)| {
            if Some(at) == line {
                return Ok(with_variable(word));
            }
            if is_safe(word, file) {
                Ok(word.replace(FILE, file))
            } else {
                Err(word.clone())
            }
        })
        .collect()
}

/// Returns the position of the line that a shell runs, if there is one.
fn shell_line(command: &[String]) -> Option<usize> {
    let name = |word: &String| {
        let name = Path::new(word).file_name();
        name.map(|it| it.to_string_lossy().into_owned())
    };
    let mut words = command.iter().enumerate();
    let (_, first) = words.next()?;
    let mut program = name(first)?;
    if program == "env" {
        let rest = words.by_ref();
        let (_, next) = rest.find(|(_, it)| !it.contains('=') && !it.starts_with('-'))?;
        program = name(next)?;
    }
    if !SHELLS.contains(&program.as_str()) {
        return None;
    }
    let is_option = |word: &str| word.starts_with('-') && !word.starts_with("--");
    let (at, _) = words.find(|(_, word)| is_option(word) && word.contains('c'))?;
    Some(at + 1)
}

/// Returns the line with the variable as one word, in whatever quotes.
fn with_variable(line: &str) -> String {
    let (mut out, mut rest) = (String::new(), line);
    let mut quote = None;
    while let Some(c) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix(FILE) {
            let is_longer = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let is_other = behind.starts_with(is_longer);
            out.push_str(match quote {
                // `$FILENAME` meant the name of the file and the rest.
                _ if is_other && quote != Some('\'') => "${FILE}",
                Some('"') => FILE,
                Some(_) => "'\"$FILE\"'",
                None => "\"$FILE\"",
            });
            rest = behind;
            continue;
        }
        let mut length = c.len_utf8();
        match (quote, c) {
            (None | Some('"'), '\\') => {
                let escaped = rest.chars().nth(1);
                length += escaped.map_or(0, char::len_utf8);
            }
            (None, '\'' | '"') => quote = Some(c),
            (Some(open), c) if c == open => quote = None,
            _ => {}
        }
        let (taken, behind) = rest.split_at(length);
        out.push_str(taken);
        rest = behind;
    }
    out
}

/// Returns whether the file name may be in a word: it is a word of its own or the value of an option, or neither contains shell syntax.
fn is_safe(word: &str, file: &str) -> bool {
    let Some((before, behind)) = word.split_once(FILE) else {
        return true;
    };
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@,:%".contains(c);
    let is_value = before.is_empty()
        || before.starts_with('-') && before.chars().all(|c| is_plain(c) || c == '=');
    if is_value && behind.chars().all(is_plain) {
        return true;
    }
    let is_quoted = ['\'', '"']
        .iter()
        .any(|it| before.ends_with(*it) && behind.starts_with(*it));
    file.chars().all(|c| is_plain(c) || is_quoted && c == ' ')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_file_is_part_of_a_line() {
        let evil = "/p/x';touch a;$(touch b).txt";
        let safe = "/p/a.txt";
        for (command, file, want) in [
            (
                &["fmt", "-w", "$FILE"][..],
                evil,
                Some(vec!["fmt", "-w", evil]),
            ),
            (
                &["fmt", "--path=$FILE"],
                safe,
                Some(vec!["fmt", "--path=/p/a.txt"]),
            ),
            (
                &["fmt", "--path=$FILE"],
                "/p/a;b",
                Some(vec!["fmt", "--path=/p/a;b"]),
            ),
            (
                &["sh", "-c", "fmt $FILE"],
                evil,
                Some(vec!["sh", "-c", "fmt \"$FILE\""]),
            ),
            (
                &["/bin/bash", "-euc", "fmt \"$FILE\" && x"],
                evil,
                Some(vec!["/bin/bash", "-euc", "fmt \"$FILE\" && x"]),
            ),
            (
                &["bash", "-o", "pipefail", "-c", "fmt '$FILE'"],
                evil,
                Some(vec!["bash", "-o", "pipefail", "-c", "fmt ''\"$FILE\"''"]),
            ),
            (
                &["env", "A=b", "zsh", "-c", "fmt it\\'s $FILE.tmp"],
                evil,
                Some(vec!["env", "A=b", "zsh", "-c", "fmt it\\'s \"$FILE\".tmp"]),
            ),
            (
                &["sh", "-c", "fmt $FILE2"],
                evil,
                Some(vec!["sh", "-c", "fmt ${FILE}2"]),
            ),
            (
                &["sh", "-c", "fmt \"$0\"", "$FILE"],
                evil,
                Some(vec!["sh", "-c", "fmt \"$0\"", evil]),
            ),
            (
                &["nix-shell", "--run", "fmt $FILE"],
                safe,
                Some(vec!["nix-shell", "--run", "fmt /p/a.txt"]),
            ),
            (
                &["nix-shell", "--run", "fmt '$FILE'"],
                "/p/a b.txt",
                Some(vec!["nix-shell", "--run", "fmt '/p/a b.txt'"]),
            ),
            (&["nix-shell", "--run", "fmt $FILE"], "/p/a b.txt", None),
            (&["nix-shell", "--run", "fmt '$FILE'"], evil, None),
            (&["make", "fmt", "FILE=$FILE"], "/p/$(shell x).txt", None),
            (
                &["make", "fmt", "FILE=$FILE"],
                safe,
                Some(vec!["make", "fmt", "FILE=/p/a.txt"]),
            ),
            (&["sh"], evil, Some(vec!["sh"])),
        ] {
            let command: Vec<String> = command.iter().map(|it| (*it).to_owned()).collect();
            let want = want.map(|it| it.into_iter().map(str::to_owned).collect::<Vec<_>>());
            assert_eq!(filled(&command, file).ok(), want, "{command:?} {file}");
        }
    }
}
