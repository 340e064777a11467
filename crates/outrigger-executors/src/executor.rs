//! The supported agents, and how each is started.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::access::{Access, Unasked};
use crate::acp::Acp;
use crate::claude::Claude;
use crate::codex::Codex;
use crate::gemini::Gemini;
use crate::step::{Protocol, Task};

/// Another vendor's agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Executor {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// A program that supports the Agent Client Protocol: the words of its command.
    Acp(Vec<String>),
}

/// A name that is not an executor's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no executor `{0}`: it is `claude`, `codex`, `gemini`, or `acp:COMMAND`")]
pub struct ExecutorError(String);

/// The command to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Program and arguments.
    pub command: Vec<String>,
    /// The whole standard input; without it, it stays open.
    pub input: Option<String>,
}

impl FromStr for Executor {
    type Err = ExecutorError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.trim() {
            "claude" => Ok(Self::Claude),
            "codex" => Ok(Self::Codex),
            "gemini" => Ok(Self::Gemini),
            other => {
                let command = other.strip_prefix("acp:").unwrap_or_default();
                let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
                if words.is_empty() {
                    Err(ExecutorError(other.to_owned()))
                } else {
                    Ok(Self::Acp(words))
                }
            }
        }
    }
}

impl fmt::Display for Executor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Claude => f.write_str("claude"),
            Self::Codex => f.write_str("codex"),
            Self::Gemini => f.write_str("gemini"),
            Self::Acp(words) => write!(f, "acp:{}", words.join(" ")),
        }
    }
}

impl Executor {
    /// Returns the program to look for.
    #[must_use]
    pub fn program(&self) -> &str {
        match self {
            Self::Claude => "claude",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::Acp(words) => words.first().map_or("", String::as_str),
        }
    }

    /// Returns how to install the program, for an error message.
    #[must_use]
    pub fn install_hint(&self) -> String {
        let package = match self {
            Self::Claude => "@anthropic-ai/claude-code",
            Self::Codex => "@openai/codex",
            Self::Gemini => "@google/gemini-cli",
            Self::Acp(_) => return format!("put {} on PATH", self.program()),
        };
        format!("`npm install -g {package}` installs it")
    }

    /// Returns whether calls wait for our answer; otherwise an agent acts with the rights it was started with.
    #[must_use]
    pub fn asks(&self) -> bool {
        *self != Self::Gemini
    }

    /// Returns whether images of a prompt can be sent. An agent with the Agent Client Protocol reports this itself.
    #[must_use]
    pub fn takes_images(&self) -> bool {
        *self != Self::Gemini
    }

    /// Returns the command for a task.
    #[must_use]
    pub fn launch(&self, task: &Task, unasked: Unasked) -> Launch {
        let (mut command, input) = match self {
            Self::Claude => (crate::claude::command(task), None),
            Self::Codex => (crate::codex::command(), None),
            Self::Gemini => (
                crate::gemini::command(task, unasked),
                Some(task.prompt.clone()),
            ),
            Self::Acp(words) => (words.get(1..).unwrap_or_default().to_vec(), None),
        };
        command.insert(0, self.program().to_owned());
        Launch { command, input }
    }

    /// Returns the protocol of its lines.
    #[must_use]
    pub fn protocol(&self, task: Task) -> Box<dyn Protocol> {
        match self {
            Self::Claude => Box::new(Claude::new(task)),
            Self::Codex => Box::new(Codex::new(task)),
            Self::Gemini => Box::new(Gemini::new()),
            Self::Acp(_) => Box::new(Acp::new(task)),
        }
    }

    /// Returns the access that the process needs to the user's home folder and environment.
    #[must_use]
    pub fn access(&self, home: &Path) -> Access {
        match self {
            Self::Claude => crate::claude::access(home),
            Self::Codex => crate::codex::access(home),
            Self::Gemini => crate::gemini::access(home),
            Self::Acp(_) => crate::access::of_acp(home, self.program()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written_alike() {
        for name in ["claude", "codex", "gemini", "acp:opencode acp"] {
            assert_eq!(name.parse::<Executor>().unwrap().to_string(), name);
        }
        for name in ["", "cladue", "acp:", "acp: "] {
            let error = name.parse::<Executor>().unwrap_err().to_string();
            assert!(error.contains("`claude`, `codex`, `gemini`, or `acp:COMMAND`"));
        }
    }

    #[test]
    fn what_runs_later_is_not_in_what_may_be_written() {
        let acp = Executor::Acp(vec!["opencode".into()]);
        for executor in [Executor::Claude, Executor::Codex, Executor::Gemini, acp] {
            let access = executor.access(Path::new("/home/user"));
            for kept in &access.keep {
                let is_open = access.write.iter().any(|it| it.starts_with(kept));
                assert!(!is_open, "{executor}: {}", kept.display());
            }
        }
    }
}
