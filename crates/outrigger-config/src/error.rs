//! Errors and problems of the configuration.

use std::fmt;

use outrigger_protocol::diagnose::Diagnose;

/// Why the configuration could not be read. Every variant names the file (or environment variable) that it is
/// about.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigError {
    /// The file exists but cannot be read, or is not UTF-8.
    #[error("cannot read {file}: {reason}")]
    Read {
        /// File.
        file: String,
        /// Error of the operating system.
        reason: String,
    },
    /// The file cannot be written.
    #[error("cannot write {file}: {reason}")]
    Write {
        /// File.
        file: String,
        /// Error of the operating system.
        reason: String,
    },
    /// Not JSON with comments, or not TOML.
    #[error("{file}:{line}:{column}: not valid {language}: {message}")]
    Syntax {
        /// File or environment variable.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Column in characters, from 1.
        column: u32,
        /// `JSON` or `TOML`.
        language: &'static str,
        /// Error of the parser.
        message: String,
        /// What to do about it.
        hint: String,
    },
    /// A known key of opencode.json has a value of the wrong type.
    #[error("{file}{}: {}: expected {expected}, found {found}", LineColumn(*line, *column), Pointer(pointer))]
    Type {
        /// File, environment variable, or `config hook`.
        file: String,
        /// Line, from 1; 0 if unknown.
        line: u32,
        /// Column in characters, from 1; 0 if unknown.
        column: u32,
        /// JSON pointer of the value.
        pointer: String,
        /// Expected value.
        expected: String,
        /// What is there.
        found: String,
    },
    /// `{file:PATH}` names an unreadable file.
    #[error("{file}{}: {}: cannot read {reference}: {path}: {reason}", LineColumn(*line, *column), Pointer(pointer))]
    FileReference {
        /// File or environment variable that contains the substitution.
        file: String,
        /// Line, from 1; 0 if unknown.
        line: u32,
        /// Column in characters, from 1; 0 if unknown.
        column: u32,
        /// JSON pointer of the string.
        pointer: String,
        /// The substitution as written.
        reference: Box<str>,
        /// Absolute path of the file.
        path: String,
        /// Error of the operating system.
        reason: Box<str>,
    },
    /// outrigger.toml has an unknown key.
    #[error("{file}:{line}:{column}: unknown setting `{key}`")]
    UnknownSetting {
        /// File.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Column in characters, from 1.
        column: u32,
        /// The key with its section, as written.
        key: String,
        /// The nearest known key, if one is similar.
        suggestion: Option<String>,
        /// Known keys in that position.
        known: Vec<String>,
    },
    /// A value is not one of the known words.
    #[error("{file}:{line}:{column}: unknown value `{value}`; known are {}", .known.join(", "))]
    UnknownValue {
        /// File.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Column in characters, from 1.
        column: u32,
        /// The value as written.
        value: String,
        /// The nearest known value, if one is similar.
        suggestion: Option<String>,
        /// Known values in that position.
        known: Vec<String>,
    },
    /// A policy requires an unknown hook, or one that can refuse nothing.
    #[error(
        "{file}:{line}:{column}: `{hook}` is not a hook that can refuse anything, so requiring it would guard nothing"
    )]
    UnknownHook {
        /// File.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Column in characters, from 1.
        column: u32,
        /// The hook as written.
        hook: String,
        /// Similar names, the nearest first.
        near: Vec<String>,
    },
    /// A file of command hooks that may contain a guard is unreadable.
    #[error("{file}: {why}; its hooks may guard, so nothing is started without them")]
    Hooks {
        /// File.
        file: String,
        /// The problem, with its position.
        why: String,
    },
    /// A setting of outrigger.toml or of the environment has an invalid value.
    #[error("{file}{}: setting `{key}`: expected {expected}, found {found}", LineColumn(*line, *column))]
    Setting {
        /// File or environment variable.
        file: String,
        /// Line, from 1; 0 for the environment.
        line: u32,
        /// Column in characters, from 1; 0 for the environment.
        column: u32,
        /// The key with its section.
        key: String,
        /// Expected value.
        expected: String,
        /// What is there.
        found: String,
    },
}

impl Diagnose for ConfigError {
    fn code(&self) -> &'static str {
        match self {
            Self::Read { .. } => "config.read",
            Self::Write { .. } => "config.write",
            Self::Syntax { .. } => "config.syntax",
            Self::Type { .. } => "config.type",
            Self::FileReference { .. } => "config.file_reference",
            Self::UnknownSetting { .. } => "config.unknown_setting",
            Self::UnknownValue { .. } => "config.unknown_value",
            Self::UnknownHook { .. } => "config.unknown_hook",
            Self::Hooks { .. } => "config.hooks",
            Self::Setting { .. } => "config.setting",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Read { .. } => {
                Some("check that the file can be read by you and is UTF-8 text".into())
            }
            Self::Write { .. } => {
                Some("check that you may write the file and its folder, and that the disk is not full".into())
            }
            Self::Syntax { hint, .. } => Some(hint.clone()),
            Self::Type { pointer, .. } if pointer.is_empty() => {
                Some("put the keys and their values into braces: `{ ... }`".into())
            }
            Self::Type {
                pointer, expected, ..
            } => Some(format!(
                "change `{}` to {expected}, or remove it",
                Pointer(pointer)
            )),
            Self::FileReference { file, .. } => Some(format!(
                "create the file or correct the path; a relative path starts at the folder of {file}"
            )),
            Self::Hooks { .. } => Some(
                "correct the file; `claude.hooks = false` in your outrigger.toml does without all command hooks"
                    .into(),
            ),
            Self::UnknownHook { near, .. } => {
                Some(format!("nearest names: `{}`", near.join("`, `")))
            }
            Self::UnknownValue { suggestion, .. } => Some(match suggestion {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write one of the known values".to_owned(),
            }),
            Self::UnknownSetting {
                suggestion, known, ..
            } => Some(match suggestion {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("known here: {}", known.join(", ")),
            }),
            Self::Setting { key, expected, .. } => {
                Some(format!("set `{key}` to {expected}, or remove it"))
            }
        }
    }
}

/// A problem that did not stop the loading: its subject was skipped or is used unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigProblem {
    /// File, environment variable or `config hook`.
    pub file: String,
    /// JSON pointer or setting, if it is about one.
    pub pointer: Option<String>,
    /// The problem and how it was handled.
    pub message: String,
}

impl fmt::Display for ConfigProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.pointer {
            Some(pointer) => write!(f, "{}: {}: {}", self.file, Pointer(pointer), self.message),
            None => write!(f, "{}: {}", self.file, self.message),
        }
    }
}

/// `:line:column`, or nothing if the line is unknown.
struct LineColumn(u32, u32);

impl fmt::Display for LineColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            Ok(())
        } else {
            write!(f, ":{}:{}", self.0, self.1)
        }
    }
}

/// A pointer for display: the empty one is the whole document.
struct Pointer<'a>(&'a str);

impl fmt::Display for Pointer<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() {
            "the document"
        } else {
            self.0
        })
    }
}
