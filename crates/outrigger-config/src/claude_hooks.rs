//! Command hooks in Claude Code's form (issue 5, item 12): `hooks` of `.claude/settings.json` and its local neighbour. This
//! reads them; who may run them, and what they mean, is decided elsewhere.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::{ConfigProblem, LoadOptions, layers, paths};

/// How long a command may run when its entry does not say.
pub const TIMEOUT: Duration = Duration::from_secs(600);
/// The same at the end of a session, which keeps the program from ending.
const TIMEOUT_AT_THE_END: Duration = Duration::from_secs(60);
/// The longest that an entry may ask for.
const LONGEST: Duration = Duration::from_secs(60 * 60);

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
    SubagentStart,
    SubagentStop,
    SessionEnd,
}

impl HookEvent {
    /// All that are called here.
    pub const ALL: [Self; 12] = [
        Self::PreToolUse,
        Self::PostToolUse,
        Self::PostToolUseFailure,
        Self::PermissionRequest,
        Self::UserPromptSubmit,
        Self::SessionStart,
        Self::PreCompact,
        Self::Notification,
        Self::Stop,
        Self::SubagentStart,
        Self::SubagentStop,
        Self::SessionEnd,
    ];

    /// As it is written.
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
            Self::SubagentStart => "SubagentStart",
            Self::SubagentStop => "SubagentStop",
            Self::SessionEnd => "SessionEnd",
        }
    }

    /// It is about a call of a tool, so `if` can be held against it.
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
    /// `hooks/hooks.json` of a Claude Code plugin that `claude.plugins` names.
    Plugin,
}

impl HookScope {
    /// In a word.
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
    /// When.
    pub event: HookEvent,
    /// For which tools or sources, as written: a list of names or a regular expression; empty for all.
    pub matcher: String,
    /// What a shell is given; with `args` the program that is started.
    pub command: String,
    /// Its arguments. With them no shell is started, and `${CLAUDE_PROJECT_DIR}` and `${CLAUDE_PLUGIN_ROOT}` are put in.
    pub args: Option<Vec<String>>,
    /// How long it may run.
    pub timeout: Duration,
    /// `if`: a permission rule in Claude Code's form (`Bash(git *)`); it is run for the calls that the rule means.
    pub condition: Option<String>,
    /// `"async": true`: it is run beside what goes on, and nothing waits for it.
    pub runs_async: bool,
    /// `"onFailure": "block"`: one that fails or takes too long refuses what it was asked about.
    pub blocks_on_failure: bool,
}

impl CommandHook {
    /// What is run, in one line.
    #[must_use]
    pub fn line(&self) -> String {
        let args = self.args.iter().flatten();
        let words = std::iter::once(self.command.clone()).chain(args.map(|arg| match arg {
            plain if !plain.is_empty() && !plain.contains(char::is_whitespace) => plain.clone(),
            other => format!("{other:?}"),
        }));
        words.collect::<Vec<_>>().join(" ")
    }
}

/// The hooks of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct HookFile {
    /// The file.
    pub file: PathBuf,
    /// Whose it is.
    pub scope: HookScope,
    /// The folder that its `.claude` lies in; of a plugin its own.
    pub folder: PathBuf,
    /// `hooks` as written, which is what a person allows.
    pub written: Value,
    /// What of it can be run, in order.
    pub hooks: Vec<CommandHook>,
    /// What of it is left out, and why.
    pub left_out: Vec<String>,
}

/// The user's file, then those of the project from its root down to the working folder, in each the shared one first, then
/// those of plugins. They all add up. A file that cannot be read is a problem, and the others count.
pub(crate) fn files(
    options: &LoadOptions,
    plugins: &[PathBuf],
    problems: &mut Vec<ConfigProblem>,
) -> Vec<HookFile> {
    let of = |folder: &Path, name| folder.join(".claude").join(name);
    let home = options.home.clone();
    let mut places = vec![(of(&home, "settings.json"), home, HookScope::User)];
    for folder in layers::project_dirs(options) {
        if folder == options.home {
            continue;
        }
        for (name, scope) in [
            ("settings.json", HookScope::Project),
            ("settings.local.json", HookScope::Local),
        ] {
            places.push((of(&folder, name), folder.clone(), scope));
        }
    }
    for named in plugins {
        let (file, folder) = of_plugin(named);
        if !file.exists() {
            let message = "`claude.plugins` names it, and it is not there".to_owned();
            problems.push(problem(&file, message));
        }
        places.push((file, folder, HookScope::Plugin));
    }
    let mut all = Vec::new();
    for (file, folder, scope) in places {
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

/// The file of a plugin's hooks and the plugin's folder, of either of them.
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
        let at = format!("{at}.hooks[{number}]");
        match read_entry(event, matcher, entry) {
            Ok(hook) => {
                hooks.push(hook);
                for key in unknown(entry) {
                    left_out.push(format!("{at}: `{key}` is not known here and does nothing"));
                }
            }
            Err(why) => left_out.push(format!("{at}: {why}; it is left out")),
        }
    }
}

/// Keys that say nothing about what is run when, beside those that are read.
const KNOWN: [&str; 14] = [
    "type",
    "command",
    "args",
    "timeout",
    "shell",
    "onFailure",
    "async",
    "asyncRewake",
    "rewakeMessage",
    "rewakeSummary",
    "if",
    "once",
    "statusMessage",
    "description",
];

fn unknown(entry: &Value) -> impl Iterator<Item = &str> {
    let keys = entry.as_object().into_iter().flat_map(|keys| keys.keys());
    keys.map(String::as_str).filter(|key| !KNOWN.contains(key))
}

fn read_entry(event: HookEvent, matcher: &str, entry: &Value) -> Result<CommandHook, String> {
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
    // They change what is run when, so running it all the same would not be what was written.
    if entry.get("asyncRewake") == Some(&Value::Bool(true)) {
        return Err("`asyncRewake` is not supported".to_owned());
    }
    let given = |key: &str| entry.get(key).filter(|value| !value.is_null());
    let condition = match (given("if"), text("if")) {
        (None, _) => None,
        (Some(_), Some(_)) if !event.is_of_tool() => {
            return Err(format!(
                "`if` is for the events of tools, so at {} it is never run",
                event.name()
            ));
        }
        (Some(_), Some(rule)) => Some(rule.to_owned()),
        (Some(other), None) => return Err(format!("`if` is {other}, not a permission rule")),
    };
    let runs_async = match given("async") {
        None => false,
        Some(Value::Bool(runs)) => *runs,
        Some(other) => return Err(format!("`async` is {other}, not true or false")),
    };
    match (given("shell"), text("shell")) {
        (None, _) | (_, Some("bash")) => {}
        (Some(other), _) => {
            return Err(format!(
                "the `shell` {other} is not supported, only \"bash\""
            ));
        }
    }
    let blocks_on_failure = match (given("onFailure"), text("onFailure")) {
        (None, _) | (_, Some("continue")) => false,
        (_, Some("block")) => true,
        (Some(other), _) => {
            return Err(format!(
                "`onFailure` is {other}, not \"block\" or \"continue\""
            ));
        }
    };
    if runs_async && blocks_on_failure {
        return Err(
            "nothing waits for an `async` command, so it cannot block on failure".to_owned(),
        );
    }
    let command = text("command").filter(|command| !command.trim().is_empty());
    let command = command.ok_or("it has no `command`")?;
    Ok(CommandHook {
        event,
        matcher: matcher.to_owned(),
        command: command.to_owned(),
        args: given("args").map(arguments).transpose()?,
        timeout: match (given("timeout"), event) {
            (Some(value), _) => timeout(value)?,
            (None, HookEvent::SessionEnd) => TIMEOUT_AT_THE_END,
            (None, _) => TIMEOUT,
        },
        condition,
        runs_async,
        blocks_on_failure,
    })
}

fn arguments(value: &Value) -> Result<Vec<String>, String> {
    let texts = value.as_array().map(|list| {
        let texts = list.iter().map(|arg| arg.as_str().map(str::to_owned));
        texts.collect::<Option<Vec<_>>>()
    });
    texts
        .flatten()
        .ok_or_else(|| "`args` is not a list of texts".to_owned())
}

fn timeout(value: &Value) -> Result<Duration, String> {
    let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
    let seconds = seconds.ok_or("`timeout` is not a number of seconds")?;
    Ok(Duration::from_secs_f64(seconds.min(LONGEST.as_secs_f64())))
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
                vec!["PreToolUse Bash|Edit a 600", "PreToolUse Bash|Edit b 600"],
                vec![],
            ),
            (
                json!({"Stop": [{"matcher": "*", "hooks": [entry("a")]}, {"hooks": [entry("b")]}]}),
                vec!["Stop  a 600", "Stop  b 600"],
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
                json!({"Stop": [{"hooks": [{}, {"type": "command", "command": " "}, {"type": "command", "command": "a", "timeout": -1}, {"type": "command", "command": "a", "asyncRewake": true}, {"type": "command", "command": "a", "async": true}, entry("c")]}]}),
                vec!["Stop  a 600 async", "Stop  c 600"],
                vec![
                    "hooks.Stop[0].hooks[0]: it has no `type`; it is left out",
                    "hooks.Stop[0].hooks[1]: it has no `command`; it is left out",
                    "hooks.Stop[0].hooks[2]: `timeout` is not a number of seconds; it is left out",
                    "hooks.Stop[0].hooks[3]: `asyncRewake` is not supported; it is left out",
                ],
            ),
            (
                group(
                    json!({"type": "command", "command": "sh", "args": ["a.sh", "", "x y"], "shell": "bash", "onFailure": "continue"}),
                ),
                vec!["Stop  sh a.sh \"\" \"x y\" 600"],
                vec![],
            ),
            (
                group(json!({"type": "command", "command": "a", "retries": 3})),
                vec!["Stop  a 600"],
                vec!["hooks.Stop[0].hooks[0]: `retries` is not known here and does nothing"],
            ),
            (
                json!({"Stop": [{"hooks": [
                    {"type": "command", "command": "a", "args": "b"},
                    {"type": "command", "command": "a", "args": [1]},
                    {"type": "command", "command": "a", "shell": "powershell"},
                    {"type": "command", "command": "a", "onFailure": 1},
                    {"type": "command", "command": "a", "if": "Bash(git *)"},
                    {"type": "command", "command": "a", "if": ["Bash"]},
                    {"type": "command", "command": "a", "async": "yes"},
                    {"type": "command", "command": "a", "async": true, "onFailure": "block"},
                ]}]}),
                vec![],
                vec![
                    "hooks.Stop[0].hooks[0]: `args` is not a list of texts; it is left out",
                    "hooks.Stop[0].hooks[1]: `args` is not a list of texts; it is left out",
                    "hooks.Stop[0].hooks[2]: the `shell` \"powershell\" is not supported, only \"bash\"; it is left out",
                    "hooks.Stop[0].hooks[3]: `onFailure` is 1, not \"block\" or \"continue\"; it is left out",
                    "hooks.Stop[0].hooks[4]: `if` is for the events of tools, so at Stop it is never run; it is left out",
                    "hooks.Stop[0].hooks[5]: `if` is [\"Bash\"], not a permission rule; it is left out",
                    "hooks.Stop[0].hooks[6]: `async` is \"yes\", not true or false; it is left out",
                    "hooks.Stop[0].hooks[7]: nothing waits for an `async` command, so it cannot block on failure; it is left out",
                ],
            ),
            (
                json!({"PostToolUseFailure": [{"hooks": [{"type": "command", "command": "a", "if": "Bash(git *)"}]}]}),
                vec!["PostToolUseFailure  a 600 if Bash(git *)"],
                vec![],
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
                let condition = hook.condition.iter().map(|rule| format!(" if {rule}"));
                let beside = if hook.runs_async { " async" } else { "" };
                format!(
                    "{} {} {} {seconds}{beside}{}",
                    hook.event.name(),
                    hook.matcher,
                    hook.line(),
                    condition.collect::<String>()
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
        let plugins = ["one", "one/hooks/hooks.json", "two/hooks.json", "gone"];
        let plugins = plugins.map(|name| root.join("plugins").join(name));
        let files = files(&options, &plugins, &mut problems);
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
        assert!(problems[0].message.contains("it is not there"));
        let problems = &problems[1..];
        assert!(problems[0].file.ends_with("p/sub/.claude/settings.json"));
        assert!(problems[0].message.contains("none of its hooks is run"));
    }
}
