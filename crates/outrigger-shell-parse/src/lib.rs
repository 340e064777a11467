//! Reads a shell command line far enough to know which programs it runs.
//!
//! Not a shell. [`read`] accepts a small language that bash, dash and zsh read alike, and answers with every command of the
//! line. For a line outside of that language it gives the first reason ([`Doubt`]) and what a lenient second reader finds:
//! enough to apply a rule that denies, never enough for one that allows. No I/O, no dependencies.

#![warn(clippy::indexing_slicing, clippy::string_slice)]

mod builtins;
mod doubt;
mod find;
mod folders;
mod git;
mod lenient;
mod lexer;
mod possible;
mod spelling;
mod strict;
mod variables;
mod word;
mod wrappers;

pub use doubt::Doubt;
pub use lexer::unquoted;

/// Represents text in [`Word::value`] that only the shell knows: a variable, a wildcard.
pub const UNKNOWN: char = '\0';

/// A parsed command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Line {
    /// Its commands, including those that wrappers start. All of them, unless there is a doubt.
    pub commands: Vec<Command>,
    /// The reason why the line may run something else.
    pub doubt: Option<Doubt>,
    /// It may run commands that are not in the list at all: the lenient reader did not reach the end, met a limit, or found a program whose
    /// name is not known.
    pub missed: bool,
    /// It may do so if `sh`, which may be dash, runs it instead of bash or zsh.
    pub missed_by_sh: bool,
    /// Words of loops, arrays and `case`, which belong to no command.
    pub lists: Vec<Word>,
}

/// A simple command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Command {
    /// As written, with assignments and redirections.
    pub text: String,
    /// Program and arguments.
    pub words: Vec<Word>,
    /// Variables that it sets before its program, or alone: `NAME=value` each.
    pub assigned: Vec<Word>,
    /// Files of its redirections.
    pub files: Vec<File>,
    /// It only tests something or sets a shell variable: nothing that needs approval, unless it writes a file.
    pub inert: bool,
    /// It starts other commands, which follow it in the list.
    pub wraps: bool,
    /// The folders in which it may run: relative to the one in which the line starts (which is the empty text), absolute, or
    /// below `~`. `None` if unknown.
    pub folders: Option<Vec<String>>,
}

/// A file that the shell opens for a command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: Word,
    /// It is opened for writing.
    pub written: bool,
}

/// A word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// As written.
    pub raw: String,
    /// Without quotes, with [`UNKNOWN`] for unknown parts.
    pub value: String,
}

impl Word {
    /// Returns the value, if all of it is known.
    #[must_use]
    pub fn known(&self) -> Option<&str> {
        (!self.value.contains(UNKNOWN)).then_some(&self.value)
    }

    /// Returns whether it is a single word, whatever is unknown in it: quoted, and not `"$@"`.
    fn is_one(&self) -> bool {
        let inner = self
            .raw
            .strip_prefix('"')
            .and_then(|it| it.strip_suffix('"'));
        self.known().is_some() || inner.is_some_and(|inner| !inner.contains(['"', '@']))
    }
}

impl Command {
    /// Returns the program, if it is known.
    #[must_use]
    pub fn program(&self) -> Option<&str> {
        self.words.first().and_then(Word::known)
    }

    /// Returns whether it writes to one of its files.
    #[must_use]
    pub fn writes(&self) -> bool {
        self.files.iter().any(|file| file.written)
    }

    /// Returns the program and its arguments in all forms that a rule may name them by: as written without assignments and
    /// redirections, without quotes, and by the name of the program alone. Unknown parts are [`UNKNOWN`].
    #[must_use]
    pub fn spellings(&self) -> Vec<String> {
        spelling::of(&self.words)
    }
}

/// Reads a command line.
#[must_use]
pub fn read(line: &str) -> Line {
    match strict::read(line, 0, folders::Walk::begin()) {
        Ok(commands) => Line {
            commands,
            doubt: None,
            missed: false,
            missed_by_sh: false,
            lists: Vec::new(),
        },
        Err(doubt) => {
            let found = lenient::read(line);
            Line {
                commands: found.commands,
                // The lenient reader takes carriage returns for blanks.
                missed: found.missed || doubt == Doubt::Control,
                missed_by_sh: found.missed || found.differs || doubt == Doubt::Control,
                doubt: Some(doubt),
                lists: found.lists,
            }
        }
    }
}

#[cfg(test)]
mod tests;
