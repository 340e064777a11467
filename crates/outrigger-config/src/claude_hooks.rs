//! Command hooks in Claude Code's form (issue 5, item 12): `hooks` of `.claude/settings.json` and its local neighbour. This
//! reads them; who may run them, and what they mean, is decided elsewhere.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::{ConfigProblem, LoadOptions, layers, paths};

/// How long a command may run when its entry does not say.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// The longest that an entry may ask for.
const LONGEST: Duration = Duration::from_secs(60 * 60);

/// When a command is run; the names are Claude Code's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum HookEvent {
    PreToolUse,
    PostToolUse,
    UserPromptSubmit,
    SessionStart,
    PreCompact,
    Notification,
    Stop,
    SubagentStop,
    SessionEnd,
}

impl HookEvent {
    /// All that are called here.
    pub const ALL: [Self; 9] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::PreCompact,
        Self::Notification,
        Self::Stop,
        Self::SubagentStop,
        Self::SessionEnd,
    ];

    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::SessionStart => "SessionStart",
            Self::PreCompact => "PreCompact",
            Self::Notification => "Notification",
            Self::Stop => "Stop",
            Self::SubagentStop => "SubagentStop",
            Self::SessionEnd => "SessionEnd",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }
}

/// Whose file it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookScope {
    /// `~/.claude/settings.json`: the user's own, which runs unasked.
    User,
    /// `.claude/settings.json` of the project: whoever wrote the project chose its commands.
    Project,
    /// `.claude/settings.local.json` of the project. It lies in the project, so it is no safer than the other.
    Local,
}

impl HookScope {
    /// In a word.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

/// A command of such a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandHook {
    /// When.
    pub event: HookEvent,
    /// For which tools or sources: a regular expression over the whole name; empty for all.
    pub matcher: String,
    /// What `sh -c` is given.
    pub command: String,
    /// How long it may run.
    pub timeout: Duration,
}

/// The hooks of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct HookFile {
    /// The file.
    pub file: PathBuf,
    /// Whose it is.
    pub scope: HookScope,
    /// The folder that its `.claude` lies in.
    pub folder: PathBuf,
    /// `hooks` as written, which is what a person allows.
    pub written: Value,
    /// What of it can be run, in order.
    pub hooks: Vec<CommandHook>,
    /// What of it is left out, and why.
    pub left_out: Vec<String>,
}

/// The user's file, then those of the project from its root down to the working folder, in each the shared one first. They
/// all add up. A file that cannot be read is a problem, and the others count.
pub(crate) fn files(options: &LoadOptions, problems: &mut Vec<ConfigProblem>) -> Vec<HookFile> {
    let mut places = vec![(options.home.clone(), "settings.json", HookScope::User)];
    for folder in layers::project_dirs(options) {
        if folder == options.home {
            continue;
        }
        places.push((folder.clone(), "settings.json", HookScope::Project));
        places.push((folder, "settings.local.json", HookScope::Local));
    }
    let mut all = Vec::new();
    for (folder, name, scope) in places {
        let file = folder.join(".claude").join(name);
        match written(&file) {
            Ok(None) => {}
            Ok(Some(written)) => {
                let (hooks, left_out) = hooks_in(&written);
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
                });
            }
            Err(message) => problems.push(problem(
                &file,
                format!("{message}; none of its hooks is run"),
            )),
        }
    }
    all
}

fn written(file: &Path) -> Result<Option<Value>, String> {
    let Some(text) = paths::read(file).map_err(|error| error.to_string())? else {
        return Ok(None);
    };
    let mut whole: Value =
        serde_json::from_str(&text).map_err(|error| format!("not valid JSON: {error}"))?;
    if whole.get("disableAllHooks") == Some(&Value::Bool(true)) {
        return Ok(None);
    }
    match whole.get_mut("hooks").map(Value::take) {
        None | Some(Value::Null) => Ok(None),
        Some(hooks @ Value::Object(_)) => Ok(Some(hooks)),
        Some(_) => Err("`hooks` is not an object of events".to_owned()),
    }
}

/// What can be run, and what is left out.
fn hooks_in(written: &Value) -> (Vec<CommandHook>, Vec<String>) {
    let (mut hooks, mut left_out) = (Vec::new(), Vec::new());
    for (name, groups) in written.as_object().into_iter().flatten() {
        let Some(event) = HookEvent::named(name) else {
            left_out.push(format!(
                "hooks.{name}: this event is not called here; its hooks are left out"
            ));
            continue;
        };
        let Some(groups) = groups.as_array() else {
            left_out.push(format!("hooks.{name} is not a list; it is left out"));
            continue;
        };
        for (number, group) in groups.iter().enumerate() {
            let at = format!("hooks.{name}[{number}]");
            read_group(event, group, &at, &mut hooks, &mut left_out);
        }
    }
    (hooks, left_out)
}

fn read_group(
    event: HookEvent,
    group: &Value,
    at: &str,
    hooks: &mut Vec<CommandHook>,
    left_out: &mut Vec<String>,
) {
    let matcher = match group.get("matcher") {
        None | Some(Value::Null) => "",
        Some(Value::String(text)) if text == "*" => "",
        Some(Value::String(text)) => text,
        Some(_) => {
            left_out.push(format!("{at}.matcher is not a text; it is left out"));
            return;
        }
    };
    let Some(entries) = group.get("hooks").and_then(Value::as_array) else {
        left_out.push(format!("{at} has no list `hooks`; it is left out"));
        return;
    };
    for (number, entry) in entries.iter().enumerate() {
        match read_entry(entry) {
            Ok((command, timeout)) => hooks.push(CommandHook {
                event,
                matcher: matcher.to_owned(),
                command,
                timeout,
            }),
            Err(why) => left_out.push(format!("{at}.hooks[{number}]: {why}; it is left out")),
        }
    }
}

fn read_entry(entry: &Value) -> Result<(String, Duration), String> {
    let text = |key: &str| entry.get(key).and_then(Value::as_str);
    match text("type") {
        Some("command") => {}
        Some(other) => {
            return Err(format!(
                "hooks of the type {other:?} are not supported, only \"command\""
            ));
        }
        None => return Err("it has no `type`".to_owned()),
    }
    // Both change what is run when, so running it all the same would not be what was written.
    for key in ["async", "asyncRewake"] {
        if entry.get(key) == Some(&Value::Bool(true)) {
            return Err(format!("`{key}` is not supported"));
        }
    }
    if entry
        .get("if")
        .is_some_and(|condition| !condition.is_null())
    {
        return Err("`if` is not supported".to_owned());
    }
    let command = text("command").filter(|command| !command.trim().is_empty());
    let command = command.ok_or("it has no `command`")?;
    let timeout = match entry.get("timeout") {
        None | Some(Value::Null) => TIMEOUT,
        Some(seconds) => seconds
            .as_f64()
            .filter(|seconds| *seconds > 0.0)
            .map(|seconds| Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64())))
            .ok_or("`timeout` is not a number of seconds")?,
    };
    Ok((command.to_owned(), timeout))
}

fn problem(file: &Path, message: String) -> ConfigProblem {
    ConfigProblem {
        file: file.display().to_string(),
        pointer: None,
        message,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_run_and_what_is_left_out() {
        let entry = |command: &str| json!({"type": "command", "command": command});
        let group = |entry: Value| json!({"Stop": [{"hooks": [entry]}]});
        for (written, runs, out) in [
            (
                json!({"PreToolUse": [{"matcher": "Bash|Edit", "hooks": [entry("a"), entry("b")]}]}),
                vec!["PreToolUse Bash|Edit a 60", "PreToolUse Bash|Edit b 60"],
                vec![],
            ),
            (
                json!({"Stop": [{"matcher": "*", "hooks": [entry("a")]}, {"hooks": [entry("b")]}]}),
                vec!["Stop  a 60", "Stop  b 60"],
                vec![],
            ),
            (
                group(json!({"type": "command", "command": "a", "timeout": 0.5})),
                vec!["Stop  a 0.5"],
                vec![],
            ),
            (
                group(json!({"type": "command", "command": "a", "timeout": 1e9})),
                vec!["Stop  a 3600"],
                vec![],
            ),
            (
                json!({"TeammateIdle": [{"hooks": [entry("a")]}], "Stop": {}}),
                vec![],
                vec![
                    "hooks.TeammateIdle: this event is not called here; its hooks are left out",
                    "hooks.Stop is not a list; it is left out",
                ],
            ),
            (
                group(json!({"type": "prompt", "prompt": "x"})),
                vec![],
                vec![
                    "hooks.Stop[0].hooks[0]: hooks of the type \"prompt\" are not supported, only \"command\"; it is left out",
                ],
            ),
            (
                json!({"Stop": [{"hooks": [{}, {"type": "command", "command": " "}, {"type": "command", "command": "a", "timeout": -1}, {"type": "command", "command": "a", "async": true}, entry("c")]}]}),
                vec!["Stop  c 60"],
                vec![
                    "hooks.Stop[0].hooks[0]: it has no `type`; it is left out",
                    "hooks.Stop[0].hooks[1]: it has no `command`; it is left out",
                    "hooks.Stop[0].hooks[2]: `timeout` is not a number of seconds; it is left out",
                    "hooks.Stop[0].hooks[3]: `async` is not supported; it is left out",
                ],
            ),
            (
                json!({"PreToolUse": [{"matcher": 1, "hooks": []}, {"matcher": "x"}]}),
                vec![],
                vec![
                    "hooks.PreToolUse[0].matcher is not a text; it is left out",
                    "hooks.PreToolUse[1] has no list `hooks`; it is left out",
                ],
            ),
        ] {
            let (hooks, left_out) = hooks_in(&written);
            let hooks = hooks.iter().map(|hook| {
                let seconds = hook.timeout.as_secs_f64();
                format!(
                    "{} {} {} {seconds}",
                    hook.event.name(),
                    hook.matcher,
                    hook.command
                )
            });
            assert_eq!(hooks.collect::<Vec<_>>(), runs, "{written}");
            assert_eq!(left_out, out, "{written}");
        }
    }

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
        let files = files(&options, &mut problems);
        let found: Vec<_> = files
            .iter()
            .map(|file| (file.scope.name(), file.hooks[0].command.as_str()))
            .collect();
        assert_eq!(
            found,
            [("user", "user"), ("project", "root"), ("local", "local")]
        );
        assert_eq!(files[2].folder, root.join("p/sub"));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].file.ends_with("p/sub/.claude/settings.json"));
        assert!(problems[0].message.contains("none of its hooks is run"));
    }
}
