//! The one table of hook points (C1): [`HookPoint`] has a variant for each, and each has its own file below this folder,
//! `tool.before_call` in `tool/before_call.rs`. OpenCode's hook names are views of it; the docs, the schemas and the matrix
//! are generated from it.

pub mod agent_end;
pub mod bridge;
pub mod cdp;
pub mod compaction;
pub mod execute;
pub mod hook;
pub mod llm;
pub mod run;
pub mod runtime;
pub mod session;
pub mod tool;

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::spec::{Phase, PointSpec};

/// Defines the enum from the list of points.
macro_rules! points {
    ($($variant:ident => $domain:ident::$file:ident,)*) => {
        /// A point at which plugins are called.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum HookPoint {
            $(
                #[doc = concat!("See [`", stringify!($domain), "::", stringify!($file), "`].")]
                $variant,
            )*
            /// A point that a plugin declares in its manifest, under its own id (B8): `acme/deploy.before`.
            Declared(&'static PointSpec),
        }

        impl HookPoint {
            /// Every point of the program, in the order in which a turn reaches them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// Returns its row in the table.
            #[must_use]
            pub const fn spec(self) -> &'static PointSpec {
                match self {
                    $(Self::$variant => const { &$domain::$file::SPEC.without_docs_in_browser() },)*
                    Self::Declared(spec) => spec,
                }
            }
        }
    };
}

points! {
    RuntimeConfigure => runtime::configure,
    RuntimeRouteSmallModel => runtime::route_small_model,
    RunBeforeCommand => run::before_command,
    RunBeforeStart => run::before_start,
    LlmToolDefinition => llm::tool_definition,
    LlmBeforeMessages => llm::before_messages,
    LlmBeforeSystem => llm::before_system,
    LlmBeforeParams => llm::before_params,
    LlmBeforeHeaders => llm::before_headers,
    LlmAfterText => llm::after_text,
    ToolBeforeCall => tool::before_call,
    ToolBeforePermission => tool::before_permission,
    ExecuteBeforeShell => execute::before_shell,
    ToolAfterResult => tool::after_result,
    CompactionBeforeStart => compaction::before_start,
    CompactionAfterFinish => compaction::after_finish,
    AgentEndBeforeStop => agent_end::before_stop,
    LlmBeforeRequest => llm::before_request,
    LlmOnError => llm::on_error,
    ToolOnError => tool::on_error,
    SessionAfterAppendEntry => session::after_append_entry,
    SessionAfterCompleteMessage => session::after_complete_message,
    RunOnError => run::on_error,
    HookOnError => hook::on_error,
    SessionBeforeCreate => session::before_create,
    SessionBeforeFork => session::before_fork,
    SessionOnError => session::on_error,
    RunAfterStart => run::after_start,
    ExecuteBeforeStep => execute::before_step,
    ExecuteAfterStep => execute::after_step,
    ExecuteOnError => execute::on_error,
    RuntimeRouteAfterSelect => runtime::route_after_select,
    RuntimeRouteOnError => runtime::route_on_error,
    BridgeBeforeInvoke => bridge::before_invoke,
    BridgeAfterInvoke => bridge::after_invoke,
    BridgeOnError => bridge::on_error,
    CdpBeforeAction => cdp::before_action,
    CdpAfterAction => cdp::after_action,
    CdpAfterVerify => cdp::after_verify,
    CdpOnError => cdp::on_error,
    LlmAfterResponse => llm::after_response,
    SessionOnEvent => session::on_event,
    RuntimeDispose => runtime::dispose,
}

/// Other names of points, used by the Browser Brain Loop specification (C1). Its steps are the executed ones. What it
/// reports in two parts is reported at once: raw wire data is not kept, and the parsed result is in the message.
pub const ALIASES: &[(&str, HookPoint)] = &[
    ("step.before_start", HookPoint::ExecuteBeforeStep),
    ("step.after_finish", HookPoint::ExecuteAfterStep),
    ("step.on_error", HookPoint::ExecuteOnError),
    ("llm.after_response_raw", HookPoint::LlmAfterResponse),
    ("llm.after_response_parsed", HookPoint::LlmAfterResponse),
];

/// Returns whether a name is one of [`ALIASES`].
#[must_use]
pub fn is_alias(name: &str) -> bool {
    ALIASES.iter().any(|(alias, _)| *alias == name)
}

impl HookPoint {
    /// Returns the program's point with this name: Outrigger's name, OpenCode's (also without its `experimental.`, A5), or
    /// an alias.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        let has_name = |point: &Self| {
            let PointSpec {
                name: ours, hook, ..
            } = *point.spec();
            ours == name || hook == name || hook.strip_prefix("experimental.") == Some(name)
        };
        let alias = || ALIASES.iter().find(|(alias, _)| *alias == name);
        Self::ALL
            .iter()
            .copied()
            .clone()
            .find(has_name)
            .or_else(|| alias().map(|(_, point)| *point))
    }

    /// Returns Outrigger's name, `domain.phase_name`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.spec().name
    }

    /// Returns OpenCode's name if there is one, else Outrigger's hook name: the key under which plugins register a handler.
    #[must_use]
    pub const fn hook(self) -> &'static str {
        self.spec().hook
    }

    /// Returns whether a plugin declares it (B8).
    #[must_use]
    pub const fn is_declared(self) -> bool {
        matches!(self, Self::Declared(_))
    }

    /// Returns whether a failure of a security-critical handler refuses there (C5). At a plugin's own point this requires
    /// that the plugin allows refusals; at the program's points it applies even if `block` is not open to all, since the
    /// user chose the handler. The configuration, the choice of a model for titles, and the list of tools cannot be refused.
    #[must_use]
    pub fn fails_closed(self) -> bool {
        match self {
            Self::Declared(spec) => spec.block,
            Self::RuntimeConfigure | Self::RuntimeRouteSmallModel | Self::LlmToolDefinition => {
                false
            }
            _ => matches!(self.spec().phase, Phase::Before | Phase::After),
        }
    }
}

/// Displays its name.
impl fmt::Display for HookPoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Serialises as its name.
impl Serialize for HookPoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// Deserialises a point of the program from its name.
impl<'de> Deserialize<'de> for HookPoint {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| de::Error::custom(format_args!("no hook point {name}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn aliases_are_names_of_points_and_of_nothing_else() {
        for (alias, point) in ALIASES {
            assert_eq!(HookPoint::parse(alias), Some(*point));
            assert!(
                !HookPoint::ALL
                    .iter()
                    .any(|p| p.name() == *alias || p.hook() == *alias)
            );
        }
    }

    /// The order in which [`HookPoint::parse`] checks them is therefore irrelevant.
    #[test]
    fn names_are_unique_and_shaped() {
        let mut seen: Vec<(&str, HookPoint)> = Vec::new();
        for point in HookPoint::ALL {
            assert!(point.name().split('.').count() >= 2, "{point}");
            let short = point.hook().strip_prefix("experimental.");
            for name in [point.name(), point.hook()].into_iter().chain(short) {
                let other = seen.iter().find(|(other, _)| *other == name);
                assert!(other.is_none_or(|(_, other)| other == point), "{name}");
                assert_eq!(HookPoint::parse(name), Some(*point));
                seen.push((name, *point));
            }
        }
    }

    /// Every hook function of B3 has a point. `tool`, `auth` and `provider` are registrations, not calls.
    #[test]
    fn every_hook_of_opencode_is_a_view_of_a_point() {
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
            assert!(HookPoint::parse(hook).is_some(), "{hook}");
        }
        assert_eq!(
            HookPoint::parse("chat.messages.transform"),
            Some(HookPoint::LlmBeforeMessages)
        );
        assert_eq!(HookPoint::parse("nonsense"), None);
    }
}
