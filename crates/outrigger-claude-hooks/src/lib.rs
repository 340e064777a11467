//! Command hooks in Claude Code's form: handlers like those of plugins, in the same chains, whose code is a process started for
//! each call. There is one handler for each file; those of all files are neighbours in a chain, so all commands of an event run
//! concurrently, and equal commands once.
//!
//! This crate defines the input of commands and the meaning of their answers. The pipeline and the kernel decide when they are
//! called, in which order, and which parts of an answer are allowed.

#![cfg_attr(not(test), warn(clippy::indexing_slicing))]

mod answer;
mod async_hooks;
mod breakers;
mod condition;
mod ignored_output;
mod input;
mod matcher;
mod names;
mod outcome;
mod result;
mod run;
mod runtimes;
mod state;
mod transcript;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_config::claude_hooks::{CommandHook, HookEvent, HookFile, HookScope};
use outrigger_config::{PluginScope, PluginSource, PluginSpec};
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::history::History;
use outrigger_protocol::message::MessageWithParts;
use outrigger_sandbox::{Policy, Spawner};
use serde_json::Value;

pub use answer::{Answer, Rewrite, SecondPass};
pub use breakers::CommandBreakers;
use condition::Condition;
use matcher::Matcher;
pub use names::{guarded_as, known_as};
pub use outcome::outcome;
pub use run::{Called, Callee, Calls};
pub use state::Commands;

/// The command hooks of a project.
#[derive(Clone)]
pub struct CommandHooks {
    /// The files, in the order in which their answers apply.
    pub files: Vec<CommandFile>,
    /// The whole environment of the commands, except `CLAUDE_PROJECT_DIR`.
    pub environment: Vec<(OsString, OsString)>,
    /// `permission_mode` of their input: `default`, or `bypassPermissions` if nothing needs approval.
    pub permission_mode: &'static str,
    /// Provides session data for the commands, and their sandbox.
    pub host: Arc<dyn CommandHost>,
    /// Starts them.
    pub spawner: Spawner,
    /// Checks whether the project files that they execute are unchanged.
    pub changed: ChangedFn,
}

/// Returns why a hook of that file must not run: a project file that it executes changed since it was approved. Reads the disk.
pub type ChangedFn = Arc<dyn Fn(&Path, &CommandHook) -> Option<String> + Send + Sync>;

/// A file with hooks.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandFile {
    /// What is in it.
    pub hooks: HookFile,
    /// The user has approved its content; otherwise it is listed and never run.
    pub allowed: bool,
    /// Run only guards (`--pure`).
    pub is_pure: bool,
}

impl CommandFile {
    /// Returns the file's name in lists, records and settings (`[plugins."claude:user"]`). Further ones of a scope get a number.
    #[must_use]
    pub fn id(&self) -> String {
        format!("claude:{}", self.hooks.scope.name())
    }

    /// Returns the file as an entry of a configuration.
    #[must_use]
    pub fn declared(&self) -> PluginSpec {
        PluginSpec {
            spec: self.hooks.file.display().to_string(),
            options: None,
            declared_in: self.hooks.file.clone(),
            source: PluginSource::Command,
            scope: match self.hooks.scope {
                // Only the user chooses the plugins of Claude Code.
                HookScope::User | HookScope::Plugin => PluginScope::Global,
                HookScope::Project | HookScope::Local => PluginScope::Local,
            },
        }
    }
}

/// Services of the agent for command hooks.
pub trait CommandHost: Send + Sync {
    /// The sandbox of a command, which is that of the shell tool's commands; `None` where nothing is kept from it.
    ///
    /// # Errors
    /// Why no command may be started.
    fn confine<'a>(
        &'a self,
        session: Option<&'a str>,
    ) -> BoxFuture<'a, Result<Option<Policy>, String>>;

    /// Returns the current state of a session. Reads all of it, so it blocks.
    fn session(&self, id: &str) -> SessionAbout;

    /// Returns the names of the MCP servers, as they prefix the names of their tools.
    fn mcp_servers(&self) -> Vec<String>;

    /// Returns whether a user rule requires asking this question; only the user answers it then.
    fn rule_asks(&self, question: &str) -> bool;

    /// Returns tool and arguments of a call of a session.
    fn call(&self, session: &str, call: &str) -> Option<(String, Value)>;

    /// Returns whether a command line runs, or may run, a matching command. The predicate is called with each command, in several
    /// spellings, in which `\0` stands for unknown parts.
    fn may_run(&self, line: &str, means: &dyn Fn(&str) -> bool) -> bool;

    /// Returns the files that a patch in the form of `apply_patch` changes, as it names them, and whether each is created; `None`
    /// if the patch is invalid.
    fn patched(&self, patch: &str) -> Option<Vec<(String, bool)>>;

    /// Returns a message of a conversation as JSON lines.
    fn transcript(&self, message: &MessageWithParts) -> String;
}

/// Session data for command hooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionAbout {
    /// Set for a subagent's session.
    pub child: bool,
    /// Its current agent.
    pub agent: String,
    /// It has messages already.
    pub begun: bool,
    /// Its last compaction started automatically.
    pub compacts_by_itself: bool,
    /// Its conversation.
    pub history: History,
}

/// The hooks of one file, prepared for matching.
pub struct Handler {
    hooks: Vec<Matched>,
    /// The file that defines them.
    file: PathBuf,
    /// `CLAUDE_PROJECT_DIR`.
    project: PathBuf,
    /// `CLAUDE_PLUGIN_ROOT`, for the hooks of a Claude Code plugin.
    root: Option<PathBuf>,
    /// Chosen by the user, not the project.
    is_users: bool,
}

struct Matched {
    hook: CommandHook,
    matcher: Matcher,
    condition: Option<Condition>,
    /// Why it cannot run: it fails each time.
    broken: Option<String>,
}

impl Matched {
    /// Returns a stand-in for a hook that cannot run, for every tool.
    fn broken(event: HookEvent, why: String, blocks_on_failure: bool) -> Self {
        Self {
            hook: CommandHook {
                event,
                matcher: String::new(),
                // Two broken hooks stay distinct.
                command: why.clone(),
                args: None,
                timeout: outrigger_config::claude_hooks::TIMEOUT,
                condition: None,
                runs_async: false,
                wakes: false,
                blocks_on_failure,
            },
            matcher: Matcher::All,
            condition: None,
            broken: Some(why),
        }
    }
}

impl Handler {
    /// Prepares the hooks of the file; returns those that cannot be matched. If its failures refuse (`fail_closed`), or those of
    /// a hook (`onFailure`), an invalid hook fails instead of being skipped.
    #[must_use]
    pub fn new(
        file: &HookFile,
        directory: &std::path::Path,
        fail_closed: bool,
    ) -> (Self, Vec<String>) {
        let mut wrong = Vec::new();
        let mut hooks = Vec::new();
        let refuses =
            |event: HookEvent, blocks: bool| event.may_refuse() && (fail_closed || blocks);
        for hook in &file.hooks {
            match Matcher::new(&hook.matcher) {
                Ok(matcher) => {
                    wrong.extend(matcher.means_nothing().map(|name| {
                        format!(
                            "the matcher {name:?} of {} means no tool; \"{name}__.*\" means all of that server",
                            hook.event.name()
                        )
                    }));
                    hooks.push(Matched {
                        condition: hook.condition.as_deref().map(Condition::new),
                        hook: hook.clone(),
                        matcher,
                        broken: None,
                    });
                }
                Err(error) => {
                    let why = format!(
                        "the matcher {:?} of {} is not a regular expression, so `{}` is never run: {error}",
                        hook.matcher,
                        hook.event.name(),
                        answer::shortened(&hook.line())
                    );
                    if refuses(hook.event, hook.blocks_on_failure) {
                        let why = why.clone();
                        hooks.push(Matched::broken(hook.event, why, hook.blocks_on_failure));
                    }
                    wrong.push(why);
                }
            }
        }
        let broken = file.broken.iter();
        for it in broken.filter(|it| refuses(it.event, it.blocks_on_failure)) {
            hooks.push(Matched {
                matcher: Matcher::new(&it.matcher).unwrap_or(Matcher::All),
                ..Matched::broken(it.event, it.why.clone(), it.blocks_on_failure)
            });
        }
        let project = match file.scope {
            HookScope::User | HookScope::Plugin => directory.to_owned(),
            HookScope::Project | HookScope::Local => file.folder.clone(),
        };
        let handler = Self {
            hooks,
            file: file.file.clone(),
            project,
            root: (file.scope == HookScope::Plugin).then(|| file.folder.clone()),
            is_users: matches!(file.scope, HookScope::User | HookScope::Plugin),
        };
        (handler, wrong)
    }

    /// Returns the hooks of an event that match one of these names; no names: the event has nothing to match.
    fn matching<'a>(
        &'a self,
        event: HookEvent,
        names: &'a [String],
    ) -> impl Iterator<Item = &'a Matched> {
        let means = move |matched: &&Matched| {
            matched.hook.event == event && (names.is_empty() || matched.matcher.means(names))
        };
        self.hooks.iter().filter(means)
    }

    /// Returns whether the failure of one of its hooks refuses.
    #[must_use]
    pub fn blocks_on_failure(&self) -> bool {
        self.hooks
            .iter()
            .any(|matched| matched.hook.blocks_on_failure)
    }

    fn has(&self, event: HookEvent) -> bool {
        self.hooks.iter().any(|matched| matched.hook.event == event)
    }

    /// Returns the points that its commands are bound to.
    #[must_use]
    pub fn points(&self) -> Vec<HookPoint> {
        use HookEvent::{
            Notification, PermissionRequest, PostToolUse, PostToolUseFailure, PreCompact,
            PreToolUse, SessionEnd, SessionStart, Stop, StopFailure, SubagentStart, SubagentStop,
            UserPromptSubmit,
        };
        let table: [(HookPoint, &[HookEvent]); 9] = [
            // A session's end is reported only if its start was seen.
            (
                HookPoint::RunBeforeStart,
                &[UserPromptSubmit, SessionStart, SubagentStart, SessionEnd],
            ),
            (HookPoint::ToolBeforeCall, &[PreToolUse]),
            // A permission given before a call is used when the question is asked.
            (
                HookPoint::ToolBeforePermission,
                &[PermissionRequest, Notification, PreToolUse],
            ),
            // Output from before a call is read after its result, of either kind; a command with a failing exit code has failed,
            // although the tool has not.
            (
                HookPoint::ToolAfterResult,
                &[PostToolUse, PostToolUseFailure, PreToolUse],
            ),
            (
                HookPoint::ToolOnError,
                &[PostToolUseFailure, PreToolUse, PermissionRequest],
            ),
            (
                HookPoint::CompactionBeforeStart,
                &[PreCompact, SessionStart],
            ),
            (HookPoint::AgentEndBeforeStop, &[Stop, SubagentStop]),
            (HookPoint::RunOnError, &[StopFailure]),
            (HookPoint::RuntimeDispose, &[SessionEnd]),
        ];
        // Output of an async command is read at the next of these.
        let asynchronous = self.hooks.iter().any(|matched| matched.hook.runs_async);
        let wakes = self.hooks.iter().any(|matched| matched.hook.wakes);
        table
            .iter()
            .filter(|(point, events)| {
                events.iter().any(|event| self.has(*event))
                    || (asynchronous
                        && matches!(
                            *point,
                            HookPoint::RunBeforeStart
                                | HookPoint::ToolAfterResult
                                | HookPoint::ToolOnError
                        ))
                    || (wakes && *point == HookPoint::AgentEndBeforeStop)
            })
            .map(|(point, _)| *point)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn file(matchers: &[(&str, HookEvent)]) -> HookFile {
        HookFile {
            file: "/p/.claude/settings.json".into(),
            scope: HookScope::Project,
            folder: "/p".into(),
            written: serde_json::Value::Null,
            hooks: matchers
                .iter()
                .map(|(matcher, event)| CommandHook {
                    event: *event,
                    matcher: (*matcher).to_owned(),
                    command: "true".into(),
                    args: None,
                    timeout: Duration::from_secs(1),
                    condition: None,
                    runs_async: false,
                    wakes: false,
                    blocks_on_failure: false,
                })
                .collect(),
            ..HookFile::default()
        }
    }

    /// Names, or lists of them, match whole names; anything else is an expression that may match anywhere.
    #[test]
    fn matchers_mean_names_or_are_searched_for() {
        let names = |tool: &str| names::names(tool, &["git".to_owned()]);
        for (matcher, tool, means) in [
            ("", "bash", true),
            ("*", "bash", true),
            ("Bash", "bash", true),
            ("bash", "bash", true),
            ("BASH", "bash", false),
            ("Ba", "bash", false),
            ("Edit|Write", "write", true),
            ("Edit|Write", "multiedit", false),
            ("Edit|Write", "apply_patch", true),
            ("Edit, Bash", "bash", true),
            ("Edit ,Bash", "edit", true),
            (".*Edit", "multiedit", true),
            ("^Ba", "bash", true),
            ("Edit.*", "multiedit", true),
            ("^Edit$", "multiedit", false),
            ("^Notebook", "bash", false),
            ("^(Bash|Read)$", "read", true),
            ("^(?!Bash$)", "bash", false),
            ("^(?!Bash$)", "read", true),
            ("^mcp__", "git_log", true),
            ("mcp__git__.*", "git_log", true),
            ("mcp__git__log", "git_log", true),
            ("mcp__git", "git_log", false),
            ("mcp__.*", "bash", false),
            ("Notebook.*", "bash", false),
            ("Task", "task", true),
            ("Agent", "task", true),
        ] {
            let file = file(&[(matcher, HookEvent::PreToolUse)]);
            let (handler, wrong) = Handler::new(&file, "/d".as_ref(), false);
            assert_eq!(wrong.len(), usize::from(matcher == "mcp__git"), "{wrong:?}");
            let names = names(tool);
            let found = handler.matching(HookEvent::PreToolUse, &names).count();
            assert_eq!(found == 1, means, "{matcher} {tool}");
            assert_eq!(handler.matching(HookEvent::Stop, &names).count(), 0);
        }
    }

    #[test]
    fn a_matcher_that_is_no_expression_is_reported() {
        let file = file(&[("a(", HookEvent::PreToolUse), ("", HookEvent::Stop)]);
        let (handler, wrong) = Handler::new(&file, "/d".as_ref(), false);
        assert_eq!(wrong.len(), 1);
        assert!(
            wrong[0].starts_with("the matcher \"a(\" of PreToolUse is not a regular expression")
        );
        assert_eq!(handler.points(), [HookPoint::AgentEndBeforeStop]);
        // A guard is called nevertheless, and fails.
        let blocks = HookFile {
            hooks: file
                .hooks
                .iter()
                .cloned()
                .map(|hook| CommandHook {
                    blocks_on_failure: true,
                    ..hook
                })
                .collect(),
            ..file.clone()
        };
        for (file, fail_closed) in [(&file, true), (&blocks, false)] {
            let (handler, _) = Handler::new(file, "/d".as_ref(), fail_closed);
            let names = ["Read".to_owned()];
            let found: Vec<_> = handler.matching(HookEvent::PreToolUse, &names).collect();
            assert!(found[0].broken.as_ref().unwrap().contains("\"a(\""));
        }
    }

    #[test]
    fn every_event_has_its_points() {
        for (event, points) in [
            (
                HookEvent::PreToolUse,
                vec![
                    "tool.execute.before",
                    "permission.ask",
                    "tool.execute.after",
                    "tool.on_error",
                ],
            ),
            (
                HookEvent::PostToolUseFailure,
                vec!["tool.execute.after", "tool.on_error"],
            ),
            (
                HookEvent::PermissionRequest,
                vec!["permission.ask", "tool.on_error"],
            ),
            (HookEvent::SubagentStart, vec!["chat.message"]),
            (HookEvent::PostToolUse, vec!["tool.execute.after"]),
            (HookEvent::UserPromptSubmit, vec!["chat.message"]),
            (
                HookEvent::SessionStart,
                vec!["chat.message", "experimental.session.compacting"],
            ),
            (
                HookEvent::PreCompact,
                vec!["experimental.session.compacting"],
            ),
            (HookEvent::Notification, vec!["permission.ask"]),
            (HookEvent::Stop, vec!["agent_end.before_stop"]),
            (HookEvent::StopFailure, vec!["run.on_error"]),
            (HookEvent::SubagentStop, vec!["agent_end.before_stop"]),
            (HookEvent::SessionEnd, vec!["chat.message", "dispose"]),
        ] {
            let (handler, _) = Handler::new(&file(&[("", event)]), "/d".as_ref(), false);
            let found: Vec<&str> = handler.points().into_iter().map(HookPoint::hook).collect();
            assert_eq!(found, points, "{}", event.name());
        }
    }
}
