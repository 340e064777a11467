//! The command lines that Codex reports: those of a shell that it starts.

use outrigger_shell_parse::unquoted;

const SHELLS: [&str; 3] = ["bash", "sh", "zsh"];

/// Returns LINE of `bash -lc 'LINE'` if that is all, otherwise the command unchanged.
pub(crate) fn script(command: &str) -> String {
    let given = command.split_once(' ').and_then(|(program, rest)| {
        // A shell elsewhere may be a program that a command has created.
        let (place, name) = program.rsplit_once('/')?;
        let is_shell = ["/bin", "/usr/bin"].contains(&place) && SHELLS.contains(&name);
        let word = rest.strip_prefix("-lc ").or(rest.strip_prefix("-c "))?;
        is_shell.then(|| unquoted(word)).flatten()
    });
    given.unwrap_or_else(|| command.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_that_a_shell_is_given_is_read_or_the_command_left() {
        let cases = [
            ("/bin/bash -lc 'sh test.sh'", "sh test.sh"),
            ("/bin/bash -lc ls", "ls"),
            (r#"/bin/bash -lc "echo \"a\" 'b'""#, "echo \"a\" 'b'"),
            (r#"/usr/bin/bash -lc 'it'"'"'s'"#, "it's"),
            ("./bash -lc 'git status'", "./bash -lc 'git status'"),
            ("/project/bash -lc 'ls'", "/project/bash -lc 'ls'"),
            ("bash -lc 'ls'", "bash -lc 'ls'"),
            ("/bin/bash -lc 'a' 'b'", "/bin/bash -lc 'a' 'b'"),
            (r#"/bin/bash -lc "rm $HOME""#, r#"/bin/bash -lc "rm $HOME""#),
            ("rm -rf x", "rm -rf x"),
            ("python3 -c 'x'", "python3 -c 'x'"),
            ("bash -lc 'open", "bash -lc 'open"),
        ];
        for (command, line) in cases {
            assert_eq!(script(command), line, "{command}");
        }
    }
}
