//! The reasons why a line is not understood.

use std::fmt;

/// The first construct in a line that the reader does not support.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// A control character other than newline and TAB.
    Control,
    /// A quote, here-document or operator without an end.
    Unfinished,
    /// A backslash at the end of a line, within a word.
    Continuation,
    /// `$(…)`, `` `…` ``, `<(…)`.
    Substitution,
    /// `$((…))`, `${…}` with more than a name, `$'…'` and the like.
    Expansion,
    /// `{a,b}`.
    Braces,
    /// `( … )`, also of functions and arrays.
    Parenthesis,
    /// `if`, `for`, `[[`, `{` and other words of the shell's grammar.
    Keyword(String),
    /// `!` outside quotes, other than before a command.
    Exclamation,
    /// A word that shells read differently.
    Word(String),
    /// The program is not known before the line runs.
    Program,
    /// A redirection to a file that is not known, or that only the shell knows.
    Redirection,
    /// A here-document whose text shells may expand or end differently.
    HereDocument,
    /// A variable that changes what other commands run.
    Variable(String),
    /// A builtin that runs, reads or redefines something on its own.
    Builtin(String),
    /// A program that starts others, in an unknown form.
    Wrapper(String),
    /// Commands nested too deeply.
    Depth,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Control => f.write_str("a control character"),
            Self::Unfinished => f.write_str("a quote or operator without its end"),
            Self::Continuation => f.write_str("a line that continues within a word"),
            Self::Substitution => f.write_str("a command or process substitution"),
            Self::Expansion => f.write_str("an expansion other than $NAME"),
            Self::Braces => f.write_str("a brace expansion"),
            Self::Parenthesis => f.write_str("a subshell, function or array"),
            Self::Keyword(word) => write!(f, "the shell keyword `{word}`"),
            Self::Exclamation => f.write_str("a `!` outside of quotes"),
            Self::Word(word) => write!(f, "the word `{word}`"),
            Self::Program => f.write_str("a program that a variable or wildcard names"),
            Self::Redirection => f.write_str("a redirection to a file that is not named literally"),
            Self::HereDocument => f.write_str("a here-document that is not plain text"),
            Self::Variable(name) => {
                write!(
                    f,
                    "the variable {name}, which may change what other commands run"
                )
            }
            Self::Builtin(name) => write!(f, "the shell command `{name}` with these arguments"),
            Self::Wrapper(name) => {
                write!(
                    f,
                    "`{name}`, which starts another program that is not clear from its arguments"
                )
            }
            Self::Depth => f.write_str("commands nested too deeply"),
        }
    }
}
