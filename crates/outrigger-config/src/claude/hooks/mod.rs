//! Command hooks in Claude Code's form: `hooks` of `.claude/settings.json` and its local neighbour. This module reads them;
//! other crates decide which may run, and define what they mean.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::problem;
use crate::load::layers;
use crate::{ConfigError, ConfigProblem, LoadOptions, paths};

mod entries;

/// Default time limit of a command.
pub const TIMEOUT: Duration = Duration::from_secs(600);

/// When a command is run; the names are Claude Code's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
    PostToolUseFailure,
    PermissionRequest,
    UserPromptSubmit,
    SessionStart,
    PreCompact,
    Notification,
    Stop,
    StopFailure,
    SubagentStart,
    SubagentStop,
    SessionEnd,
}

impl HookEvent {
    /// All supported events.
    pub const ALL: [Self; 13] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PermissionRequest,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::PreCompact,
        Self::Notification,
        Self::Stop,
        Self::StopFailure,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::SessionEnd,
    ];

    /// Returns its name as written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PostToolUseFailure => "PostToolUseFailure",
            Self::PermissionRequest => "PermissionRequest",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::PreCompact => "PreCompact",
            Self::Notification => "Notification",
            Self::Stop => "Stop",
            Self::StopFailure => "StopFailure",
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::SessionEnd => "SessionEnd",
        }
    }

    /// Returns whether it is about a tool call, so that `if` can be matched against it.
    #[must_use]
    pub fn is_of_tool(self) -> bool {
        matches!(
            self,
            Self::PreToolUse
                | Self::PostToolUse
                | Self::PostToolUseFailure
                | Self::PermissionRequest
        )
    }

    /// Returns whether its hooks can prevent something.
    #[must_use]
    pub fn may_refuse(self) -> bool {
        matches!(
            self,
            Self::PreToolUse | Self::PermissionRequest | Self::UserPromptSubmit | Self::PreCompact
        )
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }
}

/// Owner of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HookScope {
    /// `~/.claude/settings.json`: the user's own, which runs without approval.
    #[default]
    User,
    /// `.claude/settings.json` of the project: the author of the project chose its commands.
    Project,
    /// `.claude/settings.local.json` of the project. It lies in the project, so it is no safer than the other.
    Local,
    /// `hooks/hooks.json` of a Claude Code plugin that `claude.plugins` names.
    Plugin,
}

impl HookScope {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
            Self::Plugin => "plugin",
        }
    }
}

/// A command of such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandHook {
    /// Event.
    pub event: HookEvent,
    /// Tools or sources that it applies to, as written: a list of names or a regular expression; empty for all.
    pub matcher: String,
    /// Command line for a shell; with `args` the program to start.
    pub command: String,
    /// Its arguments. With them no shell is started, and `${CLAUDE_PROJECT_DIR}` and `${CLAUDE_PLUGIN_ROOT}` are replaced.
    pub args: Option<Vec<String>>,
    /// Time limit.
    pub timeout: Duration,
    /// `if`: a permission rule in Claude Code's form (`Bash(git *)`); the hook is run for matching calls.
    pub condition: Option<String>,
    /// `"async": true`: it runs in the background, and nothing waits for it.
    pub runs_async: bool,
    /// Its output with exit code 2 keeps a turn from ending; only with [`Self::runs_async`].
    pub wakes: bool,
    /// `"onFailure": "block"`: on failure or timeout it refuses what it was asked about.
    pub blocks_on_failure: bool,
}

impl CommandHook {
    /// Returns the command in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let args = self.args.iter().flatten();
        std::iter::once(self.command.clone())
            .chain(args.map(|arg| match arg {
                plain if !plain.is_empty() && !plain.contains(char::is_whitespace) => plain.clone(),
                other => format!("{other:?}"),
            }))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// An entry of such a file that cannot run as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenHook {
    /// Event.
    pub event: HookEvent,
    /// Tools that it applies to, as written; empty for all.
    pub matcher: String,
    /// The problem, with its position.
    pub why: String,
    /// It sets `onFailure` to a value other than continuing.
    pub blocks_on_failure: bool,
}

/// The hooks of one file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HookFile {
    /// The file.
    pub file: PathBuf,
    /// Its owner.
    pub scope: HookScope,
    /// Parent folder of its `.claude`; for a plugin its own folder.
    pub folder: PathBuf,
    /// `hooks` as written: the value that the user approves.
    pub written: Value,
    /// Valid hooks, in order.
    pub hooks: Vec<CommandHook>,
    /// Skipped entries, with reasons.
    pub left_out: Vec<String>,
    /// Entries that cannot run: what they guard is refused if a failure refuses.
    pub broken: Vec<BrokenHook>,
    /// Why nothing of it can run: it is unreadable, or missing although the settings name it.
    pub unreadable: Option<Unreadable>,
}

/// A problem with a file of hooks as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unreadable {
    /// The problem.
    pub why: String,
    /// It may contain a hook that can refuse something: running without it is the user's risk.
    pub may_guard: bool,
}

impl HookFile {
    fn unreadable(file: PathBuf, scope: HookScope, folder: PathBuf, what: Unreadable) -> Self {
        Self {
            file,
            scope,
            folder,
            unreadable: Some(what),
            ..Self::default()
        }
    }
}

/// Returns the user's file, then those of the project from its root down to the working directory, in each folder the shared
/// one first, then those of plugins. All of them apply. An unreadable file is a problem, and the others still apply.
pub(crate) fn files(
    options: &LoadOptions,
    plugins: &[PathBuf],
    problems: &mut Vec<ConfigProblem>,
) -> Vec<HookFile> {
    let mut all = Vec::new();
    let mut off = Vec::new();
    for HookPlace {
        file,
        folder,
        scope,
    } in places(options, plugins)
    {
        match written(&file, scope) {
            // A plugin's file has no switch for itself.
            Ok(Written::Off) if scope == HookScope::Plugin => {}
            Ok(Written::Off) => off.push(scope),
            Ok(Written::Nothing) => {}
            Ok(Written::Hooks(written)) => {
                let entries::Entries {
                    hooks,
                    left_out,
                    broken,
                } = entries::read(&written);
                for message in &left_out {
                    problems.push(problem(&file, message.clone()));
                }
                all.push(HookFile {
                    file,
                    scope,
                    folder,
                    written,
                    hooks,
                    left_out,
                    broken,
                    unreadable: None,
                });
            }
            Err(what) => {
                let message = format!("{}; none of its hooks is run", what.why);
                problems.push(problem(&file, message));
                all.push(HookFile::unreadable(file, scope, folder, what));
            }
        }
    }
    // The user's file switches off all; a project's only the project's, and its shared file not the local one.
    let is_off = |scope: HookScope| match scope {
        _ if off.contains(&HookScope::User) => true,
        HookScope::Project => off.contains(&HookScope::Project) || off.contains(&HookScope::Local),
        HookScope::Local => off.contains(&HookScope::Local),
        HookScope::Plugin | HookScope::User => false,
    };
    all.retain(|one| !is_off(one.scope));
    all
}

/// A file that may have hooks.
struct HookPlace {
    file: PathBuf,
    /// The folder that it applies to.
    folder: PathBuf,
    scope: HookScope,
}

/// Returns where hooks may be, in order.
fn places(options: &LoadOptions, plugins: &[PathBuf]) -> Vec<HookPlace> {
    let of = |folder: &Path, name, scope| HookPlace {
        file: folder.join(".claude").join(name),
        folder: folder.to_owned(),
        scope,
    };
    let mut places = vec![of(&options.home, "settings.json", HookScope::User)];
    for folder in layers::project_dirs(options) {
        if folder == options.home {
            continue;
        }
        for (name, scope) in [
            ("settings.json", HookScope::Project),
            ("settings.local.json", HookScope::Local),
        ] {
            places.push(of(&folder, name, scope));
        }
    }
    for named in plugins {
        let (file, folder) = of_plugin(named);
        places.push(HookPlace {
            file,
            folder,
            scope: HookScope::Plugin,
        });
    }
    places
}

/// Returns a plugin's hooks file and its folder, given either of them.
fn of_plugin(named: &Path) -> (PathBuf, PathBuf) {
    if named
        .extension()
        .is_none_or(|extension| extension != "json")
    {
        return (named.join("hooks").join("hooks.json"), named.to_owned());
    }
    let parent = named.parent().unwrap_or(named);
    let folder = match (parent.file_name(), parent.parent()) {
        (Some(name), Some(above)) if name == "hooks" => above,
        _ => parent,
    };
    (named.to_owned(), folder.to_owned())
}

/// Content of a file.
enum Written {
    Nothing,
    Hooks(Value),
    /// `disableAllHooks`.
    Off,
}

fn written(file: &Path, scope: HookScope) -> Result<Written, Unreadable> {
    let read = paths::read(file).map_err(|error| Unreadable {
        why: match error {
            ConfigError::Read { reason, .. } => format!("cannot read it: {reason}"),
            error => error.to_string(),
        },
        may_guard: is_file_of_hooks(file),
    })?;
    let Some(text) = read else {
        return match scope {
            // It may have been moved: only a plugin configured as a guard refuses anything.
            HookScope::Plugin => Err(Unreadable {
                why: "`claude.plugins` names it, and it is not there".to_owned(),
                may_guard: false,
            }),
            _ => Ok(Written::Nothing),
        };
    };
    let names_guard = || {
        let mut events = HookEvent::ALL.into_iter().filter(|it| it.may_refuse());
        events.any(|event| text.contains(event.name()))
    };
    let unreadable = |why: String| Unreadable {
        why,
        may_guard: names_guard(),
    };
    let mut whole: Value = serde_json::from_str(&text)
        .map_err(|error| unreadable(format!("not valid JSON: {error}")))?;
    if whole.get("disableAllHooks") == Some(&Value::Bool(true)) {
        return Ok(Written::Off);
    }
    match whole.get_mut("hooks").map(Value::take) {
        None | Some(Value::Null) => Ok(Written::Nothing),
        Some(hooks @ Value::Object(_)) => Ok(Written::Hooks(hooks)),
        Some(_) => Err(unreadable("`hooks` is not an object of events".to_owned())),
    }
}

/// Returns whether an unreadable file may contain settings: something that is not a file, or far too large, never did.
fn is_file_of_hooks(file: &Path) -> bool {
    match file.metadata() {
        Ok(meta) => meta.is_file() && meta.len() <= outrigger_files::SETTINGS,
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn files_add_up_and_a_broken_one_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let stop = |command: &str| {
            json!({"hooks": {"Stop": [{"hooks": [{"type": "command", "command": command}]}]}})
                .to_string()
        };
        for (path, text) in [
            ("home/.claude/settings.json", stop("user")),
            ("p/.claude/settings.json", stop("root")),
            ("p/sub/.claude/settings.json", "{".to_owned()),
            ("p/sub/.claude/settings.local.json", stop("local")),
            ("plugins/one/hooks/hooks.json", stop("one")),
            ("plugins/two/hooks.json", stop("two")),
        ] {
            let path = root.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let options = LoadOptions {
            directory: root.join("p/sub"),
            worktree: root.join("p"),
            home: root.join("home"),
            ..LoadOptions::default()
        };
        let mut problems = Vec::new();
        let plugins = ["one", "one/hooks/hooks.json", "two/hooks.json", "gone"]
            .map(|name| root.join("plugins").join(name));
        let files = files(&options, &plugins, &mut problems);
        let (files, broken): (Vec<_>, Vec<_>) = files
            .into_iter()
            .partition(|file| file.unreadable.is_none());
        let broken: Vec<_> = broken.iter().map(|file| file.scope.name()).collect();
        assert_eq!(broken, ["project", "plugin"]);
        let found: Vec<_> = files
            .iter()
            .map(|file| (file.scope.name(), file.hooks[0].command.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("user", "user"),
                ("project", "root"),
                ("local", "local"),
                ("plugin", "one"),
                ("plugin", "one"),
                ("plugin", "two"),
            ]
        );
        let folders: Vec<_> = files.iter().skip(2).map(|file| &file.folder).collect();
        let want = ["p/sub", "plugins/one", "plugins/one", "plugins/two"];
        assert_eq!(folders, want.map(|name| root.join(name)).each_ref());
        assert_eq!(problems.len(), 2);
        assert!(problems[1].message.contains("it is not there"));
        assert!(problems[0].file.ends_with("p/sub/.claude/settings.json"));
        assert!(problems[0].message.contains("none of its hooks is run"));
    }

    /// `disableAllHooks`, by the file that sets it.
    #[test]
    fn a_file_switches_off_what_is_its_to_switch_off() {
        let all = ["user", "project", "local", "plugin"];
        for (off, left) in [
            (None, &all[..]),
            (Some("home/.claude/settings.json"), &[]),
            (
                Some("p/.claude/settings.json"),
                &["user", "local", "plugin"],
            ),
            (Some("p/.claude/settings.local.json"), &["user", "plugin"]),
            (Some("one/hooks/hooks.json"), &["user", "project", "local"]),
        ] {
            let dir = tempfile::tempdir().unwrap();
            for path in [
                "home/.claude/settings.json",
                "p/.claude/settings.json",
                "p/.claude/settings.local.json",
                "one/hooks/hooks.json",
            ] {
                let text = json!({
                    "disableAllHooks": off == Some(path),
                    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "a"}]}]},
                });
                let path = dir.path().join(path);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text.to_string()).unwrap();
            }
            let options = LoadOptions {
                directory: dir.path().join("p"),
                worktree: dir.path().join("p"),
                home: dir.path().join("home"),
                ..LoadOptions::default()
            };
            let files = files(&options, &[dir.path().join("one")], &mut Vec::new());
            let found: Vec<_> = files.iter().map(|file| file.scope.name()).collect();
            assert_eq!(found, left, "{off:?}");
        }
    }
}
