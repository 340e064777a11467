//! Entries under `hooks`: events, each with groups that have a matcher, each with commands.

use std::time::Duration;

use serde_json::Value;

use super::{BrokenHook, CommandHook, HookEvent, TIMEOUT};

/// Default time limit of a command at the end of a session, which delays the end of the program.
const TIMEOUT_AT_THE_END: Duration = Duration::from_secs(60);
/// Default time limit of a command between a prompt and its turn.
const TIMEOUT_OF_A_PROMPT: Duration = Duration::from_secs(30);
/// Maximum time limit that an entry may set.
const MAX_TIMEOUT: Duration = Duration::from_secs(60 * 60);

/// What was found.
#[derive(Debug, Default)]
pub(super) struct Entries {
    /// Valid hooks.
    pub(super) hooks: Vec<CommandHook>,
    /// Entries without effect.
    pub(super) left_out: Vec<String>,
    /// Hooks that cannot run.
    pub(super) broken: Vec<BrokenHook>,
}

/// Returns the valid hooks, and the skipped entries.
pub(super) fn read(written: &Value) -> Entries {
    let mut found = Entries::default();
    for (name, groups) in written.as_object().into_iter().flatten() {
        let Some(event) = HookEvent::named(name) else {
            found.left_out.push(format!(
                "hooks.{name}: this event is not called here; its hooks are skipped"
            ));
            continue;
        };
        let at = format!("hooks.{name}");
        match groups.as_array() {
            Some(groups) => {
                for (number, group) in groups.iter().enumerate() {
                    found.group(event, group, &format!("{at}[{number}]"));
                }
            }
            None => found.cannot_run(event, "", groups, format!("{at} is not a list")),
        }
    }
    found
}

impl Entries {
    fn group(&mut self, event: HookEvent, group: &Value, at: &str) {
        let matcher = match group.get("matcher") {
            None | Some(Value::Null) => "",
            Some(Value::String(text)) if text == "*" => "",
            Some(Value::String(text)) => text,
            Some(_) => {
                return self.cannot_run(event, "", group, format!("{at}.matcher is not a text"));
            }
        };
        let Some(entries) = group.get("hooks").and_then(Value::as_array) else {
            return self.cannot_run(event, matcher, group, format!("{at} has no list `hooks`"));
        };
        for (number, entry) in entries.iter().enumerate() {
            let at = format!("{at}.hooks[{number}]");
            match read_entry(event, matcher, entry) {
                Ok(hook) => self.can_run(hook, entry, &at),
                Err(why) => self.cannot_run(event, matcher, entry, format!("{at}: {why}")),
            }
        }
    }

    fn can_run(&mut self, hook: CommandHook, entry: &Value, at: &str) {
        if hook.wakes {
            self.left_out.push(format!(
                "{at}: `asyncRewake` wakes no session whose turn is over; what it says is read with the next prompt then"
            ));
        }
        self.hooks.push(hook);
        for key in unknown(entry) {
            self.left_out
                .push(format!("{at}: `{key}` is not known here and does nothing"));
        }
    }

    fn cannot_run(&mut self, event: HookEvent, matcher: &str, written: &Value, why: String) {
        self.left_out.push(format!("{why}; skipped"));
        self.broken.push(BrokenHook {
            event,
            matcher: matcher.to_owned(),
            why,
            blocks_on_failure: says_on_failure(written),
        });
    }
}

/// Returns whether something in there sets `onFailure` to a value other than continuing.
fn says_on_failure(written: &Value) -> bool {
    match written {
        Value::Object(fields) => fields.iter().any(|(key, value)| {
            let says = key == "onFailure" && !value.is_null() && value != "continue";
            says || says_on_failure(value)
        }),
        Value::Array(items) => items.iter().any(says_on_failure),
        _ => false,
    }
}

/// Known keys that do not affect what is run when.
const KNOWN: [&str; 12] = [
    "type",
    "command",
    "args",
    "timeout",
    "shell",
    "onFailure",
    "async",
    "asyncRewake",
    "if",
    "once",
    "statusMessage",
    "description",
];

fn unknown(entry: &Value) -> impl Iterator<Item = &str> {
    entry
        .as_object()
        .into_iter()
        .flat_map(|keys| keys.keys())
        .map(String::as_str)
        .filter(|key| !KNOWN.contains(key))
}

fn read_entry(event: HookEvent, matcher: &str, entry: &Value) -> Result<CommandHook, String> {
    let entry = Entry(entry);
    match entry.text("type") {
        Some("command") => {}
        Some(other) => {
            return Err(format!(
                "hooks of the type {other:?} are not supported, only \"command\""
            ));
        }
        None => return Err("it has no `type`".to_owned()),
    }
    let condition = entry.condition(event)?;
    let wakes = entry.flag("asyncRewake")?;
    let runs_async = entry.flag("async")? || wakes;
    entry.check_shell()?;
    let blocks_on_failure = entry.blocks_on_failure()?;
    if runs_async && blocks_on_failure {
        return Err(
            "nothing waits for an `async` command, so it cannot block on failure".to_owned(),
        );
    }
    let command = entry
        .text("command")
        .filter(|command| !command.trim().is_empty())
        .ok_or("it has no `command`")?;
    Ok(CommandHook {
        event,
        matcher: matcher.to_owned(),
        command: command.to_owned(),
        args: entry.given("args").map(arguments).transpose()?,
        timeout: match (entry.given("timeout"), event) {
            (Some(value), _) => timeout(value)?,
            (None, HookEvent::SessionEnd) => TIMEOUT_AT_THE_END,
            (None, HookEvent::UserPromptSubmit) => TIMEOUT_OF_A_PROMPT,
            (None, _) => TIMEOUT,
        },
        condition,
        runs_async,
        wakes,
        blocks_on_failure,
    })
}

/// One hook as written, read key by key.
struct Entry<'a>(&'a Value);

impl<'a> Entry<'a> {
    fn text(&self, key: &str) -> Option<&'a str> {
        self.0.get(key).and_then(Value::as_str)
    }

    /// Returns a value, unless it is null.
    fn given(&self, key: &str) -> Option<&'a Value> {
        self.0.get(key).filter(|value| !value.is_null())
    }

    fn flag(&self, key: &str) -> Result<bool, String> {
        match self.given(key) {
            None => Ok(false),
            Some(Value::Bool(flag)) => Ok(*flag),
            Some(other) => Err(format!("`{key}` is {other}, not true or false")),
        }
    }

    fn condition(&self, event: HookEvent) -> Result<Option<String>, String> {
        match (self.given("if"), self.text("if")) {
            (None, _) => Ok(None),
            (Some(_), Some(_)) if !event.is_of_tool() => Err(format!(
                "`if` is for the events of tools, so at {} it is never run",
                event.name()
            )),
            (Some(_), Some(rule)) => Ok(Some(rule.to_owned())),
            (Some(other), None) => Err(format!("`if` is {other}, not a permission rule")),
        }
    }

    fn check_shell(&self) -> Result<(), String> {
        match (self.given("shell"), self.text("shell")) {
            (None, _) | (_, Some("bash")) => Ok(()),
            (Some(other), _) => Err(format!(
                "the `shell` {other} is not supported, only \"bash\""
            )),
        }
    }

    fn blocks_on_failure(&self) -> Result<bool, String> {
        match (self.given("onFailure"), self.text("onFailure")) {
            (None, _) | (_, Some("continue")) => Ok(false),
            (_, Some("block")) => Ok(true),
            (Some(other), _) => Err(format!(
                "`onFailure` is {other}, not \"block\" or \"continue\""
            )),
        }
    }
}

fn arguments(value: &Value) -> Result<Vec<String>, String> {
    value
        .as_array()
        .and_then(|list| {
            list.iter()
                .map(|arg| arg.as_str().map(str::to_owned))
                .collect::<Option<Vec<_>>>()
        })
        .ok_or_else(|| "`args` is not a list of texts".to_owned())
}

fn timeout(value: &Value) -> Result<Duration, String> {
    let seconds = value
        .as_f64()
        .filter(|seconds| *seconds > 0.0)
        .ok_or("`timeout` is not a number of seconds")?;
    Ok(Duration::from_secs_f64(
        seconds.min(MAX_TIMEOUT.as_secs_f64()),
    ))
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
                json!({"UserPromptSubmit": [{"hooks": [entry("a")]}], "SessionEnd": [{"hooks": [entry("b")]}]}),
                vec!["UserPromptSubmit  a 30", "SessionEnd  b 60"],
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
                    "hooks.TeammateIdle: this event is not called here; its hooks are skipped",
                    "hooks.Stop is not a list; skipped",
                ],
            ),
            (
                group(json!({"type": "prompt", "prompt": "x"})),
                vec![],
                vec![
                    "hooks.Stop[0].hooks[0]: hooks of the type \"prompt\" are not supported, only \"command\"; skipped",
                ],
            ),
            (
                json!({"Stop": [{"hooks": [{}, {"type": "command", "command": " "}, {"type": "command", "command": "a", "timeout": -1}, {"type": "command", "command": "a", "asyncRewake": true}, {"type": "command", "command": "a", "async": true}, entry("c")]}]}),
                vec![
                    "Stop  a 600 async wakes",
                    "Stop  a 600 async",
                    "Stop  c 600",
                ],
                vec![
                    "hooks.Stop[0].hooks[0]: it has no `type`; skipped",
                    "hooks.Stop[0].hooks[1]: it has no `command`; skipped",
                    "hooks.Stop[0].hooks[2]: `timeout` is not a number of seconds; skipped",
                    "hooks.Stop[0].hooks[3]: `asyncRewake` wakes no session whose turn is over; what it says is read with the next prompt then",
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
                group(
                    json!({"type": "command", "command": "a", "retries": 3, "rewakeMessage": "x"}),
                ),
                vec!["Stop  a 600"],
                vec![
                    "hooks.Stop[0].hooks[0]: `retries` is not known here and does nothing",
                    "hooks.Stop[0].hooks[0]: `rewakeMessage` is not known here and does nothing",
                ],
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
                    "hooks.Stop[0].hooks[0]: `args` is not a list of texts; skipped",
                    "hooks.Stop[0].hooks[1]: `args` is not a list of texts; skipped",
                    "hooks.Stop[0].hooks[2]: the `shell` \"powershell\" is not supported, only \"bash\"; skipped",
                    "hooks.Stop[0].hooks[3]: `onFailure` is 1, not \"block\" or \"continue\"; skipped",
                    "hooks.Stop[0].hooks[4]: `if` is for the events of tools, so at Stop it is never run; skipped",
                    "hooks.Stop[0].hooks[5]: `if` is [\"Bash\"], not a permission rule; skipped",
                    "hooks.Stop[0].hooks[6]: `async` is \"yes\", not true or false; skipped",
                    "hooks.Stop[0].hooks[7]: nothing waits for an `async` command, so it cannot block on failure; skipped",
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
                    "hooks.PreToolUse[0].matcher is not a text; skipped",
                    "hooks.PreToolUse[1] has no list `hooks`; skipped",
                ],
            ),
        ] {
            let Entries {
                hooks,
                left_out,
                broken,
            } = read(&written);
            // A broken hook is recorded as such, not only reported.
            let of_broken = broken.iter().map(|it| format!("{}; skipped", it.why));
            let said = left_out.iter().filter(|it| it.ends_with("; skipped"));
            assert!(of_broken.eq(said.cloned()), "{written}");
            let blocks = broken.iter().any(|it| it.blocks_on_failure);
            assert_eq!(
                blocks,
                left_out
                    .iter()
                    .any(|it| it.contains("nFailure` is 1") || it.contains("block on"))
            );
            let hooks = hooks.iter().map(|hook| {
                let seconds = hook.timeout.as_secs_f64();
                let condition = hook.condition.iter().map(|rule| format!(" if {rule}"));
                let beside = match (hook.runs_async, hook.wakes) {
                    (true, true) => " async wakes",
                    (true, false) => " async",
                    (false, _) => "",
                };
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
}
