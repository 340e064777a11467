//! Interpretation of a command's result: its exit code and its output, in Claude Code's form.

mod second_pass;
mod values;

use outrigger_config::claude_hooks::HookEvent;
use outrigger_kernel::hooks::HookPoint;
use outrigger_sandbox::Output;
use serde_json::{Map, Value};

pub use self::second_pass::{Rewrite, SecondPass};
use crate::ignored_output::ignored_output;

/// Maximum number of bytes read of each output stream of a command, besides [`PER_INPUT`].
pub(crate) const MAX_OUTPUT: usize = 256 * 1024;
/// Additional bytes for each byte of its input: an answer may contain the call, and JSON makes it longer.
pub(crate) const PER_INPUT: usize = 4;
/// Maximum size in bytes of a text that a command adds to the conversation.
const MAX_CONTEXT: usize = 32 * 1024;
/// Exit code by which a command refuses.
const REFUSES: i32 = 2;

/// Reason for the end of a turn if the command gives none.
const ENDED: &str = "a hook has ended the turn";

/// A command's answer about a permission; the stronger one wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Permission {
    /// The call runs without asking.
    Allow,
    /// The user is asked.
    Ask,
    /// It is refused.
    Deny,
}

/// The answer of one command, or of all commands of an event.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// Decision about the permission of a call.
    pub(crate) permission: Option<Permission>,
    /// Why it is refused, or why the turn may not end.
    pub(crate) reason: Option<String>,
    pub(crate) refuses: bool,
    /// Replacement of the arguments.
    pub(crate) updated: Option<Value>,
    /// Replacement of a tool's result.
    pub(crate) replaced: Option<Value>,
    /// Context for the model.
    pub(crate) context: Vec<String>,
    /// The model continues with `context`.
    pub(crate) wakes: bool,
    /// Set if the turn is to end: the reason.
    pub stop: Option<String>,
    /// Messages for the user.
    pub messages: Vec<String>,
    /// Parts of the answer that have no effect.
    pub ignored: Vec<String>,
    /// Problems that stopped nothing.
    pub failures: Vec<String>,
    /// Time limit in milliseconds of the slowest command, if it was exceeded.
    pub(crate) timed_out: Option<u64>,
}

impl Answer {
    /// Creates the answer of a command that could not be run.
    pub(crate) fn failed(message: String) -> Self {
        Self {
            failures: vec![message],
            ..Self::default()
        }
    }

    /// Creates the answer of a command that must not run because it changed since it was approved, or whose output cannot be
    /// read: if it could refuse, the call is refused.
    pub(crate) fn not_asked(event: HookEvent, why: String) -> Self {
        let mut answer = Self::failed(why);
        if event.may_refuse() {
            answer.refuses = true;
            let is_permission =
                matches!(event, HookEvent::PreToolUse | HookEvent::PermissionRequest);
            answer.permission = is_permission.then_some(Permission::Deny);
            answer.reason = Some(answer.failures.join("; "));
        }
        answer
    }

    /// Returns whether the next event of the point, or the next file of its call, can be skipped.
    pub(crate) fn ends(&self, point: HookPoint, next: HookEvent) -> bool {
        // An answered question is not reported further; a call is allowed only if all of its files are.
        let allowed = self.permission == Some(Permission::Allow) && next == HookEvent::Notification;
        let answered = allowed || self.permission == Some(Permission::Deny);
        self.stop.is_some()
            || (point == HookPoint::ToolBeforePermission && answered)
            || (point == HookPoint::ToolBeforeCall && self.refuses)
    }

    fn deny(&mut self, why: String) {
        self.permission = Some(Permission::Deny);
        self.refuses = true;
        self.messages.push(why.clone());
        self.reason = Some(why);
    }

    /// Returns the arguments without the key that was added for commands. The tool does not have it, so a call in which it was
    /// changed cannot be run as intended, and is refused.
    pub(crate) fn without(
        mut self,
        made: Option<&'static str>,
        input: &Map<String, Value>,
    ) -> Self {
        let Some((key, Value::Object(fields))) = made.zip(self.updated.as_mut()) else {
            return self;
        };
        let written = fields.shift_remove(key);
        let given = |key: &str| input.get(key).unwrap_or(&Value::Null);
        if written.is_some_and(|written| given("tool_input").get(key) != Some(&written)) {
            self.deny(format!(
                "a hook changes `{key}`, which {} does not have: its own arguments can be changed",
                given("outrigger_tool")
            ));
        }
        self
    }

    /// Adds the answer about the next event, or the next file of the same call. Such a call is allowed if all of its files are,
    /// and becomes one other call at most.
    pub(crate) fn then(&mut self, next: Self, is_same_call: bool) {
        let allows = |one: &Self| one.permission == Some(Permission::Allow);
        let in_part = is_same_call && allows(self) != allows(&next);
        let differ = matches!((&self.updated, &next.updated), (Some(one), Some(two)) if one != two);
        self.merge(next);
        if in_part && allows(self) {
            self.permission = None;
        }
        if differ {
            self.deny("hooks change the arguments of a call of several files in different ways, and it is one call".to_owned());
        }
    }

    /// Turns the failure of a command into a refusal, if it is configured to refuse on failure.
    pub(crate) fn or_refusal(mut self, event: HookEvent) -> Self {
        let refusing = matches!(
            event,
            HookEvent::PreToolUse
                | HookEvent::UserPromptSubmit
                | HookEvent::PreCompact
                | HookEvent::Stop
                | HookEvent::SubagentStop
        );
        if self.failures.is_empty() || self.refuses || !refusing {
            return self;
        }
        self.refuses = true;
        self.permission = (event == HookEvent::PreToolUse).then_some(Permission::Deny);
        self.reason = Some(self.failures.join("; "));
        self
    }

    /// Adds the answer of another command of the same event. A refusal takes precedence over a question, and a question over a
    /// permission; several reasons of one kind are all kept.
    pub(crate) fn merge(&mut self, other: Self) {
        let stronger = other.permission > self.permission;
        self.reason = match (self.reason.take(), other.reason) {
            (Some(one), Some(two)) if self.refuses == other.refuses => {
                Some(format!("{one}\n{two}"))
            }
            (Some(one), Some(two)) => Some(if self.refuses { one } else { two }),
            (one, two) => one.or(two),
        };
        self.refuses |= other.refuses;
        if stronger {
            self.permission = other.permission;
        }
        self.updated = other.updated.or(self.updated.take());
        self.replaced = other.replaced.or(self.replaced.take());
        self.context.extend(other.context);
        self.stop = self.stop.take().or(other.stop);
        self.messages.extend(other.messages);
        self.ignored.extend(other.ignored);
        self.failures.extend(other.failures);
        self.timed_out = self.timed_out.max(other.timed_out);
    }
}

/// Interprets a command's result for its event. `ms` is its time limit.
pub(crate) fn read(event: HookEvent, command: &str, output: &Output, ms: u64) -> Answer {
    let name = shortened(command);
    if output.timed_out {
        return Answer {
            timed_out: Some(ms),
            ..Answer::failed(format!("`{name}` did not end within {ms} ms"))
        };
    }
    let stderr = text(&output.stderr);
    let stderr = stderr.trim();
    let object = match output.exit.code {
        Some(0) | None => None,
        Some(_) => object(output),
    };
    match (output.exit.code, object) {
        (Some(0), _) => said(event, &name, output),
        // Output besides the code is used too; its own reason comes before its message to the user.
        (Some(REFUSES), Some(object)) => {
            let mut answer = answer_of(event, &name, &object);
            if !answer.refuses {
                answer.merge(refused(event, &name, stderr));
            }
            answer
        }
        (Some(REFUSES), None) => refused(event, &name, stderr),
        (Some(_), Some(object)) => answer_of(event, &name, &object),
        (Some(_), None) if is_object_cut_short(output) => not_read(event, &name, output),
        (Some(code), None) => {
            Answer::failed(format!("`{name}` ended with code {code}: {}", cut(stderr)))
        }
        (None, _) => Answer::failed(format!(
            "`{name}` was ended by signal {}: {}",
            output.exit.signal.unwrap_or_default(),
            cut(stderr)
        )),
    }
}

/// Interprets the output of an `asyncRewake` command that exits with the refusing code: nothing waits for it, so all that it can
/// do is make the model continue. `None` for another exit code.
pub(crate) fn woken(command: &str, output: &Output) -> Option<Answer> {
    if output.timed_out || output.exit.code != Some(REFUSES) {
        return None;
    }
    let said = [&output.stderr, &output.stdout].map(|bytes| text(bytes));
    let said = said
        .iter()
        .map(|text| text.trim())
        .into_iter()
        .find(|text| !text.is_empty());
    Some(Answer {
        context: vec![match said {
            Some(text) => cut(text),
            None => format!(
                "`{}` has ended with code 2 and does not say why",
                shortened(command)
            ),
        }],
        wakes: true,
        ..Answer::default()
    })
}

/// Parses the output as an object, if it is one.
fn object(output: &Output) -> Option<Value> {
    let whole = output.stdout_total == output.stdout.len() as u64;
    let value: Option<Value> = serde_json::from_slice(without_mark(&output.stdout)).ok();
    value.filter(|value| whole && value.is_object())
}

fn is_object_cut_short(output: &Output) -> bool {
    let cut_short = output.stdout_total > output.stdout.len() as u64;
    cut_short
        && without_mark(&output.stdout)
            .trim_ascii_start()
            .starts_with(b"{")
}

/// Removes the byte order mark that PowerShell writes.
fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// Returns the answer for an output over the limit. It may be a denial that repeats what it denies.
fn not_read(event: HookEvent, name: &str, output: &Output) -> Answer {
    let (total, limit) = (output.stdout_total, output.stdout.len());
    let why =
        format!("`{name}` wrote {total} bytes, and {limit} is the limit: its answer is not read");
    Answer::not_asked(event, why)
}

fn refused(event: HookEvent, name: &str, stderr: &str) -> Answer {
    let reason = match stderr {
        "" => format!("`{name}` refuses and does not say why"),
        text => cut(text),
    };
    match event {
        HookEvent::PreToolUse | HookEvent::PermissionRequest => Answer {
            permission: Some(Permission::Deny),
            reason: Some(reason),
            refuses: true,
            ..Answer::default()
        },
        HookEvent::UserPromptSubmit
        | HookEvent::PreCompact
        | HookEvent::PostToolUse
        | HookEvent::PostToolUseFailure
        | HookEvent::Stop
        | HookEvent::SubagentStop => Answer {
            reason: Some(reason),
            refuses: true,
            ..Answer::default()
        },
        _ => Answer::failed(format!(
            "`{name}` refuses, which {} does not allow: {reason}",
            event.name()
        )),
    }
}

fn said(event: HookEvent, name: &str, output: &Output) -> Answer {
    let stdout = text(without_mark(&output.stdout));
    let stdout = stdout.trim();
    let cut_short = output.stdout_total > output.stdout.len() as u64;
    // If text is accepted, output that only begins like an object is text.
    let takes_text = matches!(event, HookEvent::UserPromptSubmit | HookEvent::SessionStart);
    if stdout.starts_with('{') && (!takes_text || cut_short || stdout.ends_with('}')) {
        if cut_short {
            return not_read(event, name, output);
        }
        return match serde_json::from_str(stdout) {
            Ok(Value::Object(fields)) => answer_of(event, name, &Value::Object(fields)),
            Ok(_) => Answer::default(),
            Err(error) => Answer::failed(format!(
                "`{name}` wrote what looks like JSON and is not: {error}"
            )),
        };
    }
    let mut answer = Answer::default();
    if takes_text && !stdout.is_empty() {
        answer.context.push(cut(stdout));
        if cut_short || stdout.len() > MAX_CONTEXT {
            answer.failures.push(format!(
                "`{name}` wrote {} bytes, and {MAX_CONTEXT} is the limit: the rest is skipped",
                output.stdout_total
            ));
        }
    }
    answer
}

/// Interprets the object. `name` is the command's.
fn answer_of(event: HookEvent, name: &str, whole: &Value) -> Answer {
    let specific = whole.get("hookSpecificOutput").unwrap_or(&Value::Null);
    let mut answer = Answer::default();
    answer.messages.extend(field(whole, "systemMessage"));
    answer.ignored = ignored_output(event, name, whole);
    if whole.get("continue") == Some(&Value::Bool(false)) {
        answer.stop = field(whole, "stopReason").or_else(|| Some(ENDED.to_owned()));
    }
    match event {
        HookEvent::PreToolUse => answer.read_call(name, whole, specific),
        HookEvent::PermissionRequest => answer.read_permission(event, name, specific),
        HookEvent::UserPromptSubmit
        | HookEvent::PreCompact
        | HookEvent::PostToolUse
        | HookEvent::PostToolUseFailure
        | HookEvent::Stop
        | HookEvent::SubagentStop => answer.read_objection(whole),
        _ => {}
    }
    if event == HookEvent::PostToolUse {
        let mut forms = ["updatedToolOutput", "updatedMCPToolOutput"].into_iter();
        answer.replaced = forms.find_map(|key| specific.get(key)).cloned();
    }
    answer.context.extend(field(specific, "additionalContext"));
    // The meaning of such a value is unknown, and it may be a denial.
    if let (Some(why), false) = (values::unknown(event, name, whole), answer.refuses) {
        answer.merge(match event {
            // The question stays open.
            HookEvent::PermissionRequest => Answer::failed(why),
            _ => Answer::not_asked(event, why),
        });
    }
    answer
}

impl Answer {
    /// Interprets `PreToolUse`: whether the call may be made, and with which arguments.
    fn read_call(&mut self, name: &str, whole: &Value, specific: &Value) {
        let decision = specific.get("permissionDecision").and_then(Value::as_str);
        let older = whole.get("decision").and_then(Value::as_str);
        self.permission = match decision.or(older) {
            Some("allow" | "approve") => Some(Permission::Allow),
            // There is no later point to return to, so the user is asked now.
            Some("ask" | "defer") => Some(Permission::Ask),
            Some("deny" | "block") => Some(Permission::Deny),
            _ => None,
        };
        self.refuses = self.permission == Some(Permission::Deny);
        self.reason =
            field(specific, "permissionDecisionReason").or_else(|| field(whole, "reason"));
        if self.refuses && self.reason.is_none() {
            self.reason = Some("a hook denies this call".to_owned());
        }
        let updated = specific.get("updatedInput").filter(|it| !it.is_null());
        self.updated = updated.filter(|value| value.is_object()).cloned();
        if updated.is_some() && self.updated.is_none() {
            self.failures.push(format!(
                "`{name}` answers with an `updatedInput` that is not an object: the call stays as it is, and is not allowed by it"
            ));
            // It allows a different call.
            self.permission = self.permission.filter(|it| *it != Permission::Allow);
        }
    }

    /// Interprets `PermissionRequest`: an answer in place of the user's.
    fn read_permission(&mut self, event: HookEvent, name: &str, specific: &Value) {
        let decision = specific.get("decision").unwrap_or(&Value::Null);
        let changes = decision.get("updatedInput").is_some_and(|it| !it.is_null());
        self.permission = match decision.get("behavior").and_then(Value::as_str) {
            // It allows a different call.
            Some("allow") if changes => {
                self.failures.push(format!(
                    "`{name}` allows the call with another input, which {} cannot change here: the question stays",
                    event.name()
                ));
                None
            }
            Some("allow") => Some(Permission::Allow),
            Some("deny") => Some(Permission::Deny),
            _ => None,
        };
        let why = field(decision, "message");
        if self.permission == Some(Permission::Deny) {
            if decision.get("interrupt") == Some(&Value::Bool(true)) {
                self.stop = why.clone().or_else(|| Some(ENDED.to_owned()));
            }
            self.reason.clone_from(&why);
            self.refuses = true;
        }
        let why = why.filter(|_| self.permission.is_some());
        self.messages.extend(why);
    }

    /// Interprets `decision: "block"` of the other events.
    fn read_objection(&mut self, whole: &Value) {
        self.refuses = whole.get("decision").and_then(Value::as_str) == Some("block");
        if self.refuses {
            let reason = field(whole, "reason");
            self.reason = Some(reason.unwrap_or_else(|| "a hook objects".to_owned()));
        }
    }
}

/// Returns a text of an object, truncated to the limit; an empty one counts as absent.
fn field(value: &Value, key: &str) -> Option<String> {
    let text = value.get(key).and_then(Value::as_str);
    text.filter(|text| !text.is_empty()).map(cut)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Truncates a text to the limit for the conversation, with a note.
fn cut(text: &str) -> String {
    if text.len() <= MAX_CONTEXT {
        return text.to_owned();
    }
    let end = outrigger_stdx::text::floor_char_boundary(text, MAX_CONTEXT);
    format!(
        "{}\n(cut at {MAX_CONTEXT} bytes)",
        text.get(..end).unwrap_or_default()
    )
}

/// Shortens a command for a message.
pub(crate) fn shortened(command: &str) -> String {
    const MAX_CHARS: usize = 120;
    let line = command.lines().next().unwrap_or_default();
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests;
