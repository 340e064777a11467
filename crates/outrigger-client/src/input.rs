//! What a user types at a prompt, as every front end reads it.

/// Splits a slash command into its name, which may be empty, and its arguments. Returns `None` for a prompt; a first word
/// with a second slash is a path, with which a prompt may start.
#[must_use]
pub fn slash_command(line: &str) -> Option<(&str, &str)> {
    let command = line.strip_prefix('/')?;
    let (name, arguments) = command
        .split_once(char::is_whitespace)
        .unwrap_or((command, ""));
    (!name.contains('/')).then(|| (name, arguments.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_prompt() {
        for (line, command) in [
            ("/model a/b ", Some(("model", "a/b"))),
            ("/new", Some(("new", ""))),
            ("/review\ttwo words", Some(("review", "two words"))),
            ("/", Some(("", ""))),
            ("/etc/hosts is odd", None),
            ("hello /new", None),
            ("", None),
        ] {
            assert_eq!(slash_command(line), command, "{line}");
        }
    }
}
