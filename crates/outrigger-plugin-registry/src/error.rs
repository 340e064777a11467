//! Errors of one plugin. None of them ends a session: a failed plugin is listed with its cause and the others run (A13).

use std::path::PathBuf;

use outrigger_plugin_package::PackageError;
use outrigger_plugin_status::{Cause, Stage};
use outrigger_plugin_trust::TrustError;
use outrigger_protocol::diagnose::Diagnose;

mod code;

pub use code::PROCESS;

/// Why a plugin is unavailable, or why one of its calls failed.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// It cannot be found, installed or read.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// It is not trusted.
    #[error(transparent)]
    Trust(TrustError),
    /// `--pure` or `OPENCODE_PURE`: no external plugin is loaded.
    #[error("{spec} is not loaded: `--pure` (or OPENCODE_PURE) leaves out everything from outside")]
    Pure {
        /// Spec as declared.
        spec: String,
    },
    /// `outrigger plugin bisect` tests a command without it.
    #[error("{spec} is disabled in this run by `plugin bisect` (OUTRIGGER_LEAVE_OUT)")]
    LeftOut {
        /// Spec as declared.
        spec: String,
    },
    /// The same plugin is listed again, and the last entry wins.
    #[error("{spec} is listed again as {other} in {}, and the last entry counts", declared_in.display())]
    Overridden {
        /// Spec as declared.
        spec: String,
        /// The entry that is used.
        other: String,
        /// File of that entry.
        declared_in: PathBuf,
    },
    /// The managed policy of the machine does not allow it.
    #[error("{spec} is not loaded: the policy of this machine ({}) does not allow it", file.display())]
    Forbidden {
        /// Spec as declared.
        spec: String,
        /// The policy's file.
        file: PathBuf,
    },
    /// Its state cannot be changed this way (C7); the running plugin is unaffected.
    #[error("plugin {id}: {why}")]
    Life {
        /// Id of the plugin.
        id: String,
        /// Reason.
        why: String,
    },
    /// The machine policy requires it, and it is missing.
    #[error("plugin {id} is not installed, and the policy of this machine ({}) requires it", file.display())]
    Required {
        /// What it is called.
        id: String,
        /// The policy.
        file: PathBuf,
    },
    /// `fail_closed` names it, and no plugin has that name.
    #[error("`fail_closed` is set for plugin {id}, which is not installed")]
    NoGuard {
        /// Name in the settings.
        id: String,
    },
    /// The file of command hooks is missing or unreadable.
    #[error("the commands of {spec} are not run: {why}")]
    HooksUnreadable {
        /// The file.
        spec: String,
        /// The problem.
        why: String,
    },
    /// The snapshot excludes it (D2).
    #[error("plugin {id} is not loaded ({reason}): {why}")]
    NotAdmitted {
        /// What it is called.
        id: String,
        /// Name of the reason.
        reason: String,
        /// Description of the reason.
        why: String,
        /// How to change that.
        remedy: String,
    },
    /// A later file of the global folder has its own `plugin` list.
    #[error("{spec} is not loaded: a later file of the same folder has a `plugin` list of its own")]
    Replaced {
        /// Spec as declared.
        spec: String,
    },
    /// The settings disable it.
    #[error("{spec} is switched off in the settings")]
    Disabled {
        /// Spec as declared.
        spec: String,
    },
    /// Command hooks of a project, which its author chose.
    #[error("the command hooks of {spec} changed or are new, and are not approved")]
    HooksNotAllowed {
        /// The file.
        spec: String,
    },
    /// The plugin that hosts it is not running (C8).
    #[error("plugin {id} is not running because its host plugin {host} is not running")]
    HostGone {
        /// Id of the plugin.
        id: String,
        /// Id of its host.
        host: String,
    },
    /// A requirement is missing (D3).
    #[error("cannot start plugin {id}: missing {}", missing.join(", "))]
    Requirements {
        /// Spec as declared.
        spec: String,
        /// Id of the plugin.
        id: String,
        /// Missing requirements.
        missing: Vec<String>,
    },
    /// A plugin that it depends on is not running (C6).
    #[error("plugin {id} is not started: it depends on {needs}, which is missing")]
    DependsOn {
        /// Id of the plugin.
        id: String,
        /// Id of the other plugin.
        needs: String,
    },
    /// Its manifest requests what the machine policy forbids.
    #[error("plugin {id} is not started: it asks for {what}, which the policy of this machine ({}) forbids", file.display())]
    TooWide {
        /// Id of the plugin.
        id: String,
        /// What it asks for.
        what: String,
        /// The policy's file.
        file: PathBuf,
    },
    /// No JS runtime, or one that is too old.
    #[error("plugins need a JavaScript runtime: {message}")]
    NoRuntime {
        /// What was found.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// The plugin process did not start or violated the protocol.
    #[error("the plugin process {process} failed: {message}")]
    Process {
        /// Name of the process.
        process: String,
        /// What happened.
        message: String,
    },
    /// The module could not be loaded, by the stage that failed.
    #[error("plugin {plugin} failed at {stage}: {message}")]
    Load {
        /// Id of the plugin.
        plugin: String,
        /// `import`, `export`, `server`, `hooks`, `tool`.
        stage: String,
        /// Its message.
        message: String,
    },
    /// It did not finish loading in time.
    #[error("plugin {plugin} did not finish its {what} within {ms} ms")]
    Hung {
        /// Id of the plugin.
        plugin: String,
        /// `import` or `server`.
        what: String,
        /// The deadline in milliseconds.
        ms: u64,
    },
    /// It ended the process while loading.
    #[error("plugin {plugin} ended its process during {what}: {message}")]
    Crashed {
        /// Id of the plugin.
        plugin: String,
        /// `import` or `server`.
        what: String,
        /// What is known.
        message: String,
    },
    /// Its process failed too often.
    #[error(
        "the plugin process {process} is off after {restarts} restarts in {seconds} s; last: {cause}"
    )]
    Off {
        /// Name of the process.
        process: String,
        /// Number of restarts.
        restarts: usize,
        /// Period in seconds.
        seconds: u64,
        /// Cause.
        cause: String,
    },
    /// A plugin's tool failed.
    #[error("{message}")]
    Tool {
        /// Id of the plugin.
        plugin: String,
        /// Name of the tool.
        tool: String,
        /// Stable code: `plugin.tool`, `plugin.tool_timeout`, `plugin.tool_cancelled`, `plugin.tool_lost`.
        code: &'static str,
        /// Its message.
        message: String,
    },
    /// A login, a loader or a list of models of a plugin failed.
    #[error("{what} of plugin {plugin} failed: {message}")]
    Auth {
        /// Id of the plugin.
        plugin: String,
        /// Which request.
        what: String,
        /// Stable code: `plugin.auth`, `plugin.auth_timeout`, `plugin.auth_lost`.
        code: &'static str,
        /// Its message.
        message: String,
    },
}

impl From<TrustError> for PluginError {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Package(error) => Self::Package(error),
            error => Self::Trust(error),
        }
    }
}

impl Diagnose for PluginError {
    fn code(&self) -> &'static str {
        self.stable_code()
    }

    fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Package(error) => return error.hint(),
            Self::Trust(error) => return error.hint(),
            Self::Required { .. } => {
                "install it among your own plugins, or ask the administrator of this machine"
            }
            Self::NoGuard { id } if id.starts_with("claude:") => {
                "that file of command hooks is missing, empty or switched off; restore it, or remove `fail_closed` from outrigger.toml"
            }
            Self::NoGuard { .. } => {
                "correct the name (`outrigger plugin list` lists plugins), install the plugin, trust its folder, start without `--pure`, or remove `fail_closed` from outrigger.toml"
            }
            Self::HooksUnreadable { .. } => "correct the file or remove its entry",
            Self::Overridden { .. } => "remove one of the two entries",
            Self::HooksNotAllowed { .. } => {
                "review them with `outrigger plugin allow-hooks --list`, then approve them with `outrigger plugin allow-hooks`"
            }
            Self::Hung { .. } => {
                "if the plugin is just slow, raise `deadlines.load_ms` in outrigger.toml"
            }
            Self::Off { .. } => "remove the plugin named above, then start again",
            Self::NotAdmitted { remedy, .. } => return Some(remedy.clone()),
            Self::NoRuntime { hint, .. } => return hint.clone(),
            Self::Auth {
                plugin, message, ..
            }
            | Self::Load {
                plugin, message, ..
            } => return port_hint(plugin, message),
            _ => return None,
        };
        Some(text.to_owned())
    }
}

impl PluginError {
    /// Returns the displayed cause of a plugin that ended at this stage with this error.
    #[must_use]
    pub fn cause(&self, at: Stage) -> Cause {
        Cause {
            at,
            code: self.code().to_owned(),
            message: self.to_string(),
            hint: self.hint(),
        }
    }

    /// Adds the reason for the missing Bun to the error of a plugin that needed it.
    #[must_use]
    pub fn because(&self, reason: &str) -> Self {
        match self {
            Self::NoRuntime { message, hint } => Self::NoRuntime {
                message: format!("{message}; {reason}"),
                hint: hint.clone(),
            },
            Self::Load {
                plugin,
                stage,
                message,
            } => Self::Load {
                plugin: plugin.clone(),
                stage: stage.clone(),
                message: format!("{message}; {reason}"),
            },
            other => Self::Package(PackageError::Bun {
                message: format!("{reason} ({other})"),
            }),
        }
    }

    /// Returns whether it is skipped on purpose, as in OpenCode; this is not a failure.
    #[must_use]
    pub fn is_skip(&self) -> bool {
        matches!(self, Self::Package(error) if error.is_skip())
            || matches!(
                self,
                Self::Disabled { .. }
                    | Self::HostGone { .. }
                    | Self::HooksNotAllowed { .. }
                    | Self::HooksUnreadable { .. }
                    | Self::NoGuard { .. }
                    | Self::Forbidden { .. }
                    | Self::NotAdmitted { .. }
                    | Self::Requirements { .. }
            )
            || self.is_expected()
    }

    /// Returns whether a skipped plugin is worth a line: the user may not know, since it was not skipped by the user's own
    /// setting. A project's own exclusions are not reported.
    pub(crate) fn is_worth_a_line(&self, local: bool) -> bool {
        match self {
            Self::NotAdmitted { reason, .. } => match reason.as_str() {
                "LeftOut" | "SwitchedOff" | "Denied" | "ForbiddenByManagedPolicy" => false,
                // One line reports the whole folder.
                "FolderNotTrusted" => false,
                "OffByDefault" => !local,
                _ => true,
            },
            // It may be a guard: report each time that it is not active yet.
            Self::Requirements { .. }
            | Self::HooksNotAllowed { .. }
            | Self::HooksUnreadable { .. }
            | Self::NoGuard { .. } => true,
            _ => false,
        }
    }

    /// Returns whether the user chose this, so that no warning is needed.
    pub(crate) fn is_expected(&self) -> bool {
        matches!(
            self,
            Self::Pure { .. }
                | Self::LeftOut { .. }
                | Self::Overridden { .. }
                | Self::Replaced { .. }
        )
    }
}

/// Returns the hint if the sandbox kept a plugin from listening, from the messages of Bun and Node: `permission denied
/// 127.0.0.1:1455`, `listen EACCES: permission denied 127.0.0.1:1455`.
fn port_hint(plugin: &str, message: &str) -> Option<String> {
    let (_, place) = message.split_once("permission denied ")?;
    let (_, port) = place.split_whitespace().next()?.rsplit_once(':')?;
    let port: u16 = port.parse().ok()?;
    Some(format!(
        "the sandbox lets a plugin listen on the ports that you grant it: in your own outrigger.toml, [plugins.\"{plugin}\"] \
        (or the path of its file) ports = [{port}]"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_that_was_refused_is_named() {
        for (message, port) in [
            ("permission denied 127.0.0.1:1455", Some("ports = [1455]")),
            (
                "listen EACCES: permission denied 0.0.0.0:80 (x)",
                Some("ports = [80]"),
            ),
            ("permission denied /etc/shadow", None),
            ("permission denied", None),
            ("no way", None),
        ] {
            let hint = port_hint("acme", message);
            assert_eq!(hint.is_some(), port.is_some(), "{message}: {hint:?}");
            assert!(
                port.is_none_or(|port| hint.unwrap().contains(port)),
                "{message}"
            );
        }
    }
}
