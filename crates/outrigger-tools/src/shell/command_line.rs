//! The permission questions of a shell line: the one place where a line becomes patterns of rules.

use std::path::Path;

use outrigger_shell_parse::{Command, Line, Word};
use serde_json::json;

use self::line_folders::{LineFolders, Named};
use crate::host::PermissionAsk;

pub(crate) mod line_folders;
mod prefix;
pub(crate) mod redirections;

// Commands that only change the shell's folder: asked about by the folder alone (OpenCode's rule).
const FOLDERS: &[&str] = &["cd", "chdir", "popd", "pushd"];
const UNKNOWN_FOLDER: &str = "a program or script of a relative path in a folder that is not clear";

/// Returns the question for the permission `bash` that a command line needs; its patterns are empty if no command needs approval.
#[must_use]
pub fn ask_for_line(line: &str) -> PermissionAsk {
    ask_for(
        line,
        &outrigger_shell_parse::read(line),
        &LineFolders::unknown(),
    )
}

/// Returns whether a line runs, or may run, a command that the pattern matches.
#[must_use]
pub fn line_may_run(line: &str, means: impl Fn(&str) -> bool) -> bool {
    let read = outrigger_shell_parse::read(line);
    let mut commands = read.commands.iter();
    read.doubt.is_some()
        || commands.any(|command| {
            means(&command.text) || command.spellings().iter().any(|spelling| means(spelling))
        })
}

impl PermissionAsk {
    /// Returns the question for a shell whose lines are not understood.
    pub(crate) fn of_unknown_shell(
        mut self,
        line: &str,
        place: &LineFolders<'_>,
        shell: &Path,
    ) -> Self {
        let line = place.whole(line);
        self.always = literal(&line).into_iter().collect();
        self.patterns = vec![line];
        self.unclear = Some(format!("the syntax of {}", shell.display()));
        self.unread = true;
        self
    }

    /// Extends a plugin's question for the permission `bash`, whose patterns may be command lines: what these run needs approval,
    /// too.
    #[must_use]
    pub fn with_lines_read(mut self) -> Self {
        if self.permission != "bash" {
            return self;
        }
        for line in self.patterns.clone() {
            // `*` alone and the like are not lines.
            if line.bytes().all(|b| b == b'*') {
                continue;
            }
            let ask = ask_for_line(&line);
            for pattern in ask.patterns {
                push(&mut self.patterns, pattern);
            }
            for spelling in ask.spellings {
                push(&mut self.spellings, spelling);
            }
            self.unclear = self.unclear.or(ask.unclear);
            self.unread |= ask.unread;
        }
        self
    }
}

/// Like [`ask_for_line`], for a line that was parsed, in a known folder.
pub(crate) fn ask_for(line: &str, read: &Line, place: &LineFolders<'_>) -> PermissionAsk {
    let mut ask = PermissionAsk {
        permission: "bash".to_owned(),
        metadata: json!({"command": line}),
        unread: read.missed,
        ..PermissionAsk::default()
    };
    let mut unclear = read.doubt.as_ref().map(ToString::to_string);
    for command in &read.commands {
        for spelling in command.spellings() {
            push(&mut ask.spellings, spelling);
        }
        if read.doubt.is_some() || !needs_approval(command) {
            continue;
        }
        let named = match place.named(command) {
            Named::AsWritten => vec![command.clone()],
            Named::Elsewhere(at, names) => names
                .into_iter()
                .map(|name| renamed(command, at, name))
                .collect(),
            Named::Unknown => {
                unclear = Some(UNKNOWN_FOLDER.to_owned());
                break;
            }
        };
        for command in named {
            if let Some(always) = always(&command) {
                push(&mut ask.always, always);
            }
            push(&mut ask.patterns, command.text);
        }
    }
    if let Some(doubt) = unclear {
        // Allowed as a whole or not at all, and only in these exact words.
        let line = place.whole(line);
        ask.always = literal(&line).into_iter().collect();
        ask.patterns = vec![line];
        ask.unclear = Some(doubt);
    }
    ask
}

/// Returns a command with another name of the program or script that it runs.
fn renamed(command: &Command, at: usize, name: String) -> Command {
    let mut command = command.clone();
    let Some(word) = command.words.get_mut(at) else {
        return command;
    };
    let is_whole = |found: &usize| {
        command
            .text
            .get(..*found)
            .and_then(|it| it.chars().next_back())
            .is_none_or(char::is_whitespace)
    };
    let mut found = command
        .text
        .match_indices(&word.raw)
        .map(|(found, _)| found);
    let found = found.find(is_whole);
    match found {
        Some(found) => command
            .text
            .replace_range(found..found + word.raw.len(), &name),
        None => command.text = format!("{name} {}", command.text),
    }
    word.raw = name;
    command
}

fn needs_approval(command: &Command) -> bool {
    let changes_folder = command.program().is_some_and(|it| FOLDERS.contains(&it));
    let bare = command
        .text
        .starts_with(command.words.first().map_or("", |it| it.raw.as_str()));
    !(command.inert || changes_folder && bare && !command.writes())
}

/// Returns the pattern that "always" allows. What a wrapper starts is asked about separately, so that another line of the wrapper
/// is not allowed with it.
fn always(command: &Command) -> Option<String> {
    let words: Vec<&str> = command.words.iter().map(|word| word.raw.as_str()).collect();
    let head = prefix::prefix(&words).join(" ");
    if command.words.is_empty() || command.wraps {
        literal(&command.text)
    } else {
        literal(&head).map(|head| format!("{head} *"))
    }
}

/// Returns a text that is a pattern for itself alone.
fn literal(text: &str) -> Option<String> {
    (!text.contains(['*', '?'])).then(|| text.to_owned())
}

/// Returns a word that is a known path, with a leading `~` expanded.
pub(crate) fn known(word: &Word) -> Option<String> {
    word.known().map(expanded)
}

/// Expands a leading `~`. A quoted tilde is a name; asking once too often does no harm.
pub(crate) fn expanded(path: &str) -> String {
    let home = || std::env::var("HOME").unwrap_or_else(|_| "/root".to_owned());
    match path.strip_prefix('~') {
        Some("") => home(),
        Some(rest) if rest.starts_with('/') => format!("{}{rest}", home()),
        _ => path.to_owned(),
    }
}

fn push(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions() {
        for (line, patterns, always, unclear) in [
            (
                "git status && cd sub",
                &["git status"][..],
                &["git status *"][..],
                false,
            ),
            (
                "env ls -a",
                &["env ls -a", "ls -a"],
                &["env ls -a", "ls *"],
                false,
            ),
            ("a=1; [ -f x ]", &[], &[], false),
            ("ls *", &["ls *"], &["ls *"], false),
            ("git * x", &["git * x"], &[], false),
            ("A=1 cd x", &["A=1 cd x"], &["cd *"], false),
            ("cd x > y", &["cd x > y"], &["cd *"], false),
            ("> x", &["> x"], &["> x"], false),
            ("echo $(id)", &["echo $(id)"], &["echo $(id)"], true),
            ("ls *; $x", &["ls *; $x"], &[], true),
        ] {
            let ask = ask_for_line(line);
            assert_eq!(
                (&ask.patterns[..], &ask.always[..], ask.unclear.is_some()),
                (
                    &patterns
                        .iter()
                        .map(|it| (*it).to_owned())
                        .collect::<Vec<_>>()[..],
                    &always.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>()[..],
                    unclear
                ),
                "{line}"
            );
        }
    }

    /// A condition of a hook is checked with every spelling, and matches what is uncertain.
    #[test]
    fn conditions_mean_every_spelling() {
        let touch = |command: &str| command.starts_with("touch ");
        for (line, meant) in [
            ("touch x", true),
            ("'touch' x", true),
            ("\\touch\tx", true),
            ("Y=1 touch x", true),
            ("/usr/bin/touch $v", true),
            ("env touch x", true),
            ("ls | xargs touch", true),
            ("sh -c 'ls; touch x'", true),
            ("echo $(id)", true),
            ("$x y", true),
            ("echo touch x", false),
            ("ls; git status", false),
        ] {
            assert_eq!(line_may_run(line, touch), meant, "{line}");
        }
    }
}
