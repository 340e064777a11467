//! The table of hook points. OpenCode's hook names are views of it (C1); the docs, the schemas and the matrix are
//! generated from it.

/// When a point is reached, relative to what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Before it happens.
    Before,
    /// After it has happened.
    After,
    /// After it has failed.
    Error,
    /// Told, not asked: nothing waits for the answer.
    Observe,
}

/// How long a handler may take (C5). The milliseconds are the defaults; settings may change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Deadline {
    /// Pure policy: 500 ms.
    Fast,
    /// Hooks of JS plugins: 5 s.
    Normal,
    /// Loading: 10 s.
    Load,
    /// Authentication: 30 s.
    Slow,
}

impl Deadline {
    /// The default in milliseconds.
    #[must_use]
    pub const fn default_ms(self) -> u64 {
        match self {
            Self::Fast => 500,
            Self::Normal => 5_000,
            Self::Load => 10_000,
            Self::Slow => 30_000,
        }
    }
}

/// What a throw means at a point (C5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Reported; the chain goes on with the output from before the handler.
    Open,
    /// Refusal: the text becomes the tool's error, as in the reference. A timeout is still `Open`.
    ThrowBlocks,
}

/// JSON type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names of JSON's types")]
pub enum Kind {
    Any,
    String,
    Number,
    Bool,
    Array,
    Object,
}

impl Kind {
    /// As JavaScript names it (`typeof`, or `array`); `any` for all.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::String => "string",
            Self::Number => "number",
            Self::Bool => "boolean",
            Self::Array => "array",
            Self::Object => "object",
        }
    }
}

/// A field of `output` that a handler may change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its key; `*` for any.
    pub key: &'static str,
    /// What it must be afterwards.
    pub kind: Kind,
    /// It must still be there afterwards.
    pub required: bool,
}

const fn must(key: &'static str, kind: Kind) -> Field {
    Field {
        key,
        kind,
        required: true,
    }
}
const fn may(key: &'static str, kind: Kind) -> Field {
    Field {
        key,
        kind,
        required: false,
    }
}

/// A place where plugins are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Point {
    /// Our name, `domain.phase_name`.
    pub name: &'static str,
    /// The key under which plugins bring a handler: OpenCode's name where it has one, else a name of ours. A plugin may
    /// also use the point's own name.
    pub hook: &'static str,
    /// When it is reached.
    pub phase: Phase,
    /// What may be changed. Empty: observe only.
    pub patch: &'static [Field],
    /// A handler may refuse.
    pub block: bool,
    /// How long a handler may take.
    pub deadline: Deadline,
    /// What a throw means.
    pub failure: Failure,
    /// Keys of `input`, for the docs.
    pub input: &'static str,
    /// What it is for, for the docs.
    pub about: &'static str,
}

/// Points of our own whose result nobody can refuse: the configuration, the choice of a model for titles, the list of tools.
const NO_REFUSAL: &[&str] = &[
    "runtime.configure",
    "runtime.route.small_model",
    "llm.tool_definition",
];

impl Point {
    /// Whether a plugin declares it (B8): only such names have a `/`.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.name.contains('/')
    }

    /// Whether a security-critical handler's failure refuses there (C5). At a point of a plugin's own only where that
    /// plugin allows refusals; at the program's also where `block` is not open to everybody, since the user says so.
    #[must_use]
    pub fn fails_closed(&self) -> bool {
        if self.is_own() {
            return self.block;
        }
        matches!(self.phase, Phase::Before | Phase::After) && !NO_REFUSAL.contains(&self.name)
    }
}

use Deadline::{Fast, Load, Normal};
use Failure::{Open, ThrowBlocks};
use Kind::{Any, Array, Bool, Number, Object, String};
use Phase::{After, Before, Observe};

/// Every point, in the order in which a turn reaches them.
// A table is read by its columns.
#[rustfmt::skip]
pub const POINTS: &[Point] = &[
    Point { name: "runtime.configure", hook: "config", phase: Before, patch: &[may("*", Any)], block: false, deadline: Load, failure: Open,
        input: "", about: "The merged configuration, changed in place before anything is made from it." },
    Point { name: "runtime.route.small_model", hook: "experimental.provider.small_model", phase: Before, patch: &[may("model", Any)], block: false, deadline: Normal, failure: Open,
        input: "provider", about: "Which small model makes titles and summaries, when the configuration names none." },
    Point { name: "run.before_command", hook: "command.execute.before", phase: Before, patch: &[must("parts", Array)], block: false, deadline: Normal, failure: Open,
        input: "command, sessionID, arguments", about: "A slash command's template is expanded and about to become a message." },
    Point { name: "run.before_start", hook: "chat.message", phase: Before, patch: &[must("message", Object), must("parts", Array)], block: true, deadline: Normal, failure: Open,
        input: "sessionID, agent?, model?, messageID?, variant?", about: "A user message and its parts exist and are about to be stored; the model has not been called." },
    Point { name: "llm.tool_definition", hook: "tool.definition", phase: Before, patch: &[must("description", String), must("parameters", Any), may("jsonSchema", Object)], block: false, deadline: Normal, failure: Open,
        input: "toolID", about: "A tool is about to be offered to the model. All tools of a step are one batch." },
    Point { name: "llm.before_messages", hook: "experimental.chat.messages.transform", phase: Before, patch: &[must("messages", Array)], block: false, deadline: Normal, failure: Open,
        input: "", about: "The history that the request is made from. Changes are for this request; the stored history stays." },
    Point { name: "llm.before_system", hook: "experimental.chat.system.transform", phase: Before, patch: &[must("system", Array)], block: false, deadline: Normal, failure: Open,
        input: "sessionID?, model", about: "The system prompt, as a list of texts." },
    Point { name: "llm.before_params", hook: "chat.params", phase: Before, patch: &[may("temperature", Number), may("topP", Number), may("topK", Number), may("maxOutputTokens", Number), must("options", Object)], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, model, provider, message", about: "Parameters of the request." },
    Point { name: "llm.before_headers", hook: "chat.headers", phase: Before, patch: &[must("headers", Object)], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, model, provider, message", about: "Headers of the request." },
    Point { name: "llm.after_text", hook: "experimental.text.complete", phase: After, patch: &[must("text", String)], block: false, deadline: Normal, failure: Open,
        input: "sessionID, messageID, partID", about: "A text of the model is complete and about to be stored." },
    Point { name: "tool.before_call", hook: "tool.execute.before", phase: Before, patch: &[must("args", Object)], block: true, deadline: Normal, failure: ThrowBlocks,
        input: "tool, sessionID, callID", about: "A tool is about to run. What stands in args is checked again and is what the tool gets; where the user did not grant the plugin `rewrite`, the user is asked about the changed call. A throw refuses the call." },
    // Not `fast`, though it is a question of policy: plugins of OpenCode ask a service, or a person's phone, over the network
    // here, and a late one costs its process.
    Point { name: "tool.before_permission", hook: "permission.ask", phase: Before, patch: &[must("status", String)], block: false, deadline: Normal, failure: Open,
        input: "the permission request", about: "The user is about to be asked; status deny answers instead, and allow where the user granted the plugin that (`approve`). A rule that denies is never asked about." },
    Point { name: "execute.before_shell", hook: "shell.env", phase: Before, patch: &[must("env", Object)], block: true, deadline: Normal, failure: ThrowBlocks,
        input: "cwd, sessionID?, callID?", about: "Environment variables for a shell command, added to those it gets anyway, where the user granted the plugin that (`rewrite`)." },
    Point { name: "tool.after_result", hook: "tool.execute.after", phase: After, patch: &[may("title", String), may("output", Any), may("metadata", Any), may("attachments", Array), may("content", Array), may("*", Any)], block: true, deadline: Normal, failure: ThrowBlocks,
        input: "tool, sessionID, callID, args", about: "A tool has answered; the answer is about to be stored and given to the model. A throw replaces it by an error." },
    Point { name: "compaction.before_start", hook: "experimental.session.compacting", phase: Before, patch: &[must("context", Array), may("prompt", String)], block: true, deadline: Normal, failure: Open,
        input: "sessionID, instructions?", about: "The history is about to be summarised: context is appended to the prompt, prompt replaces it. One that only was due and is refused is put off, one that was asked for fails." },
    Point { name: "compaction.after_finish", hook: "experimental.compaction.autocontinue", phase: After, patch: &[must("enabled", Bool)], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, model, provider, message, overflow", about: "The history was summarised because it was full; enabled says whether the turn goes on by itself." },
    Point { name: "agent_end.before_stop", hook: "agent_end.before_stop", phase: Before, patch: &[may("continue", String)], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, model, messageID, active, lastMessage", about: "The turn is done and about to end; a text in continue goes on as a message of the user's, at most agent.max_continuations times in a row. active says that it went on so before." },
    // The one point that is a question of policy and nothing else, asked before each request: `fast` (C5). It is ours, so no
    // plugin of OpenCode is held to it.
    Point { name: "llm.before_request", hook: "llm.before_request", phase: Before, patch: &[], block: true, deadline: Fast, failure: Open,
        input: "sessionID, agent, model, messageID, step", about: "The request is complete and about to be sent. A refusal is final: nothing repeats it." },
    Point { name: "llm.on_error", hook: "llm.on_error", phase: Phase::Error, patch: &[must("context", Array)], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, model, messageID, step, error", about: "A request has failed for good. Texts in context are read behind its message, which stays, in the session and by whoever is told of the error. Nothing waits where the turn was stopped." },
    Point { name: "tool.on_error", hook: "tool.on_error", phase: Phase::Error, patch: &[must("context", Array)], block: false, deadline: Normal, failure: Open,
        input: "tool, sessionID, callID, args, code, message, began", about: "A tool call has failed, was refused or was stopped. Texts in context are read by the model behind the message, which stays; began says whether the tool had begun. Nothing waits where the turn was stopped." },
    Point { name: "session.after_append_entry", hook: "session.after_append_entry", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID, messageID, role, agent", about: "A message is stored, with message and parts as output: one of the user's with its parts, the model's once it is complete; copies of a fork and commands that the user ran too. Each is told once." },
    Point { name: "session.after_complete_message", hook: "message.completed", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, model, messageID, variant?", about: "An assistant message of a turn is stored, and every tool part of it has reached its final state; told once for each message, with message and parts as output (A4)." },
    Point { name: "run.on_error", hook: "run.on_error", phase: Phase::Error, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID, error", about: "A turn has ended with an error, which is stored and told by then." },
    Point { name: "hook.on_error", hook: "hook.on_error", phase: Phase::Error, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "point, hook, plugin, outcome, message, sessionID?", about: "A handler at another point has failed, missed its deadline (C5), or answered against a rule (outcome refused)." },
    Point { name: "session.before_create", hook: "session.before_create", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "parentID?, title?", about: "A session is about to be made." },
    Point { name: "session.before_fork", hook: "session.before_fork", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID", about: "A session is about to be copied." },
    Point { name: "session.on_error", hook: "session.on_error", phase: Phase::Error, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID, error", about: "The session told an error." },
    Point { name: "run.after_start", hook: "run.after_start", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID, messageID, agent, model", about: "The user's message is stored and its turn has begun." },
    Point { name: "execute.before_step", hook: "execute.before_step", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, model, step", about: "A step of the turn (one request and the calls that it leads to) has begun." },
    Point { name: "execute.after_step", hook: "execute.after_step", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, model, messageID, finish?", about: "A step is over; its message is stored." },
    Point { name: "execute.on_error", hook: "execute.on_error", phase: Phase::Error, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, model, messageID, finish?, error", about: "A step has ended with an error; its message holds it." },
    Point { name: "runtime.route.after_select", hook: "runtime.route.after_select", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, callID, tool, contract, provider, rule?", about: "A tool call was bound to a provider, by the routing rule of that number, or to the local machine where none fits (C11)." },
    Point { name: "runtime.route.on_error", hook: "runtime.route.on_error", phase: Phase::Error, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, callID, tool, contract, provider, code", about: "A call that was bound to another provider than the local machine has failed." },
    Point { name: "bridge.before_invoke", hook: "bridge.before_invoke", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "callID, connection, sessionID?, tool, path", about: "A brain elsewhere asks the bridge to execute something (C17). Authentication, limits and guards are nobody's to change." },
    Point { name: "bridge.after_invoke", hook: "bridge.after_invoke", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "callID, connection, sessionID?, tool, path", about: "The bridge has executed it; title and size of the answer are output." },
    Point { name: "bridge.on_error", hook: "bridge.on_error", phase: Phase::Error, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "callID, connection, sessionID?, tool, path, code, message", about: "The bridge has refused it behind its limits, or it failed." },
    Point { name: "llm.after_response", hook: "llm.after_response", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "sessionID, agent, model, reason, usage", about: "A request has been answered to its end." },
    Point { name: "session.on_event", hook: "event", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "event", about: "Every bus event, in order, in batches; nothing waits for it." },
    Point { name: "runtime.dispose", hook: "dispose", phase: Observe, patch: &[], block: false, deadline: Normal, failure: Open,
        input: "", about: "The plugin's process is about to end." },
];

/// Other names of points, which the Browser Brain Loop specification uses (C1): its steps are those that we execute, and
/// what it tells in two parts is told at once: what came over the wire is not kept, and what is made of it is in the message.
pub const ALIASES: &[(&str, &str)] = &[
    ("step.before_start", "execute.before_step"),
    ("step.after_finish", "execute.after_step"),
    ("step.on_error", "execute.on_error"),
    ("llm.after_response_raw", "llm.after_response"),
    ("llm.after_response_parsed", "llm.after_response"),
];

/// Whether it is one of [`ALIASES`].
#[must_use]
pub fn is_alias(name: &str) -> bool {
    ALIASES.iter().any(|(alias, _)| *alias == name)
}

/// The point of that name, ours or OpenCode's.
#[must_use]
pub fn point(name: &str) -> Option<&'static Point> {
    POINTS
        .iter()
        .find(|p| p.name == name)
        .or_else(|| by_hook(name))
}

/// The point that a handler under this key belongs to. Spellings without `experimental.`, and the points' own names, are
/// accepted (A5).
#[must_use]
pub fn by_hook(hook: &str) -> Option<&'static Point> {
    let find = |is: &dyn Fn(&Point) -> bool| POINTS.iter().find(|p| is(p));
    find(&|p| p.hook == hook)
        .or_else(|| find(&|p| p.hook.strip_prefix("experimental.") == Some(hook)))
        .or_else(|| find(&|p| p.name == hook))
        .or_else(|| {
            let (_, name) = ALIASES.iter().find(|(alias, _)| *alias == hook)?;
            find(&|p| p.name == *name)
        })
}

/// The reference's spelling of a hook's name.
#[must_use]
pub fn canonical_hook(hook: &str) -> Option<&'static str> {
    by_hook(hook).map(|p| p.hook)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aliases_are_names_of_points_and_of_nothing_else() {
        for (alias, name) in ALIASES {
            assert_eq!(by_hook(alias).map(|p| p.name), Some(*name));
            assert!(!POINTS.iter().any(|p| p.name == *alias || p.hook == *alias));
        }
    }

    #[test]
    fn names_are_unique_and_shaped() {
        for (i, a) in POINTS.iter().enumerate() {
            assert!(a.name.split('.').count() >= 2, "{}", a.name);
            for b in POINTS.iter().skip(i + 1) {
                assert_ne!(a.name, b.name);
                assert_ne!(a.hook, b.hook);
            }
        }
    }

    /// Every hook function of B3 has a point. `tool`, `auth` and `provider` are registrations, not calls.
    #[test]
    fn every_hook_of_the_reference_is_a_view_of_a_point() {
        for hook in [
            "event",
            "config",
            "chat.message",
            "chat.params",
            "chat.headers",
            "permission.ask",
            "command.execute.before",
            "tool.execute.before",
            "shell.env",
            "tool.execute.after",
            "experimental.chat.messages.transform",
            "experimental.chat.system.transform",
            "experimental.provider.small_model",
            "experimental.session.compacting",
            "experimental.compaction.autocontinue",
            "experimental.text.complete",
            "tool.definition",
            "dispose",
        ] {
            assert!(by_hook(hook).is_some(), "{hook}");
        }
        assert_eq!(
            canonical_hook("chat.messages.transform"),
            Some("experimental.chat.messages.transform")
        );
        assert_eq!(
            canonical_hook("text.complete"),
            Some("experimental.text.complete")
        );
        assert_eq!(canonical_hook("nonsense"), None);
    }
}
