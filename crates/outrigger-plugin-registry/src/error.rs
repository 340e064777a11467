//! What can go wrong with one plugin. Nothing here ends a session: a plugin that fails is listed with its cause and the
//! others run (A13).

use std::path::PathBuf;

use outrigger_plugin_package::PackageError;
use outrigger_plugin_status::{Cause, Stage};
use outrigger_plugin_trust::TrustError;

mod code;

pub use code::PROCESS;

/// Why a plugin is not there, or why one of its calls failed.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// It cannot be found, installed or read.
    #[error(transparent)]
    Package(#[from] PackageError),
    /// It is not trusted.
    #[error(transparent)]
    Trust(TrustError),
    /// `--pure` or `OPENCODE_PURE`: nothing from outside is loaded.
    #[error("{spec} is not loaded: `--pure` (or OPENCODE_PURE) leaves out everything from outside")]
    Pure {
        /// As declared.
        spec: String,
    },
    /// `outrigger plugin bisect` looks how a command does without it.
    #[error("{spec} is left out of this run by `plugin bisect` (OUTRIGGER_LEAVE_OUT)")]
    LeftOut {
        /// As declared.
        spec: String,
    },
    /// The same plugin is listed again, and the last entry counts.
    #[error("{spec} is listed again as {other} in {}, and the last entry counts", declared_in.display())]
    Overridden {
        /// As declared.
        spec: String,
        /// The entry that counts.
        other: String,
        /// Where that one stands.
        declared_in: PathBuf,
    },
    /// The managed policy of the machine does not allow it (issue 5).
    #[error("{spec} is not loaded: the policy of this machine ({}) does not allow it", file.display())]
    Forbidden {
        /// As declared.
        spec: String,
        /// The policy's file.
        file: PathBuf,
    },
    /// Its state cannot be changed so (C7); what ran before runs on.
    #[error("plugin {id}: {why}")]
    Life {
        /// Which.
        id: String,
        /// Why not.
        why: String,
    },
    /// The policy of the machine requires it, and it is not there.
    #[error("plugin {id} is not there, and the policy of this machine ({}) requires it", file.display())]
    Required {
        /// What it is called.
        id: String,
        /// The policy.
        file: PathBuf,
    },
    /// `fail_closed` names it, and no plugin goes by that name.
    #[error(
        "no plugin goes by the name {id}, and `fail_closed` of [plugins.\"{id}\"] says that it guards"
    )]
    NoGuard {
        /// As the settings name it.
        id: String,
    },
    /// The file of command hooks is not there or cannot be read.
    #[error("the commands of {spec} are not run: {why}")]
    HooksUnreadable {
        /// The file.
        spec: String,
        /// What is wrong with it.
        why: String,
    },
    /// The snapshot does not have it (D2).
    #[error("plugin {id} is not loaded ({reason}): {why}")]
    NotAdmitted {
        /// What it is called.
        id: String,
        /// The name of the reason.
        reason: String,
        /// The same in words.
        why: String,
        /// What would change it.
        remedy: String,
    },
    /// A later file of the global folder has a `plugin` list of its own.
    #[error("{spec} is not loaded: a later file of the same folder has a `plugin` list of its own")]
    Replaced {
        /// As declared.
        spec: String,
    },
    /// The settings switch it off.
    #[error("{spec} is switched off in the settings")]
    Disabled {
        /// As declared.
        spec: String,
    },
    /// Command hooks of a project, which its author chose.
    #[error("the commands of {spec} are not run: they have not been allowed as they are")]
    HooksNotAllowed {
        /// The file.
        spec: String,
    },
    /// The plugin that hosts it is not there (C8).
    #[error("plugin {id} does not run: {host}, which hosts it, does not")]
    HostGone {
        /// Plugin.
        id: String,
        /// The plugin that hosts it.
        host: String,
    },
    /// What it requires is not there (D3).
    #[error("plugin {id} is not started: {} not there", is_are(missing))]
    Requirements {
        /// As declared.
        spec: String,
        /// Name.
        id: String,
        /// What is missing.
        missing: Vec<String>,
    },
    /// Another plugin that it depends on is not there (C6).
    #[error("plugin {id} is not started: it depends on {needs}, which is not there")]
    DependsOn {
        /// Name.
        id: String,
        /// The other plugin.
        needs: String,
    },
    /// Its manifest asks for what the policy of the machine forbids.
    #[error("plugin {id} is not started: it asks for {what}, which the policy of this machine ({}) forbids", file.display())]
    TooWide {
        /// Name.
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
    /// The plugin process did not start or broke the protocol.
    #[error("the plugin process {process} failed: {message}")]
    Process {
        /// Which.
        process: String,
        /// What happened.
        message: String,
    },
    /// The module could not be loaded, by the stage that failed.
    #[error("plugin {plugin} failed at {stage}: {message}")]
    Load {
        /// Which.
        plugin: String,
        /// `import`, `export`, `server`, `hooks`, `tool`.
        stage: String,
        /// What it said.
        message: String,
    },
    /// It did not come back in time while it loaded.
    #[error("plugin {plugin} did not finish its {what} within {ms} ms")]
    Hung {
        /// Which.
        plugin: String,
        /// `import` or `server`.
        what: String,
        /// The deadline.
        ms: u64,
    },
    /// It ended the process while it loaded.
    #[error("plugin {plugin} ended its process during {what}: {message}")]
    Crashed {
        /// Which.
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
        /// Which.
        process: String,
        /// How many.
        restarts: usize,
        /// Within.
        seconds: u64,
        /// Why.
        cause: String,
    },
    /// A plugin's tool failed.
    #[error("{message}")]
    Tool {
        /// Plugin.
        plugin: String,
        /// Tool.
        tool: String,
        /// Stable code: `plugin.tool`, `plugin.tool_timeout`, `plugin.tool_cancelled`, `plugin.tool_lost`.
        code: &'static str,
        /// What it said.
        message: String,
    },
    /// A login, a loader or a list of models of a plugin failed.
    #[error("{what} of plugin {plugin} failed: {message}")]
    Auth {
        /// Plugin.
        plugin: String,
        /// Which request.
        what: String,
        /// Stable code: `plugin.auth`, `plugin.auth_timeout`, `plugin.auth_lost`.
        code: &'static str,
        /// What it said.
        message: String,
    },
}

fn is_are(missing: &[String]) -> String {
    let verb = if missing.len() == 1 { "is" } else { "are" };
    format!("{} {verb}", missing.join(", "))
}

impl From<TrustError> for PluginError {
    fn from(error: TrustError) -> Self {
        match error {
            TrustError::Package(error) => Self::Package(error),
            error => Self::Trust(error),
        }
    }
}

impl PluginError {
    /// The cause that is shown where this error ended a plugin's way at a stage.
    #[must_use]
    pub fn cause(&self, at: Stage) -> Cause {
        Cause {
            at,
            code: self.code().to_owned(),
            message: self.to_string(),
            hint: self.hint(),
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::Package(error) => return error.hint(),
            Self::Trust(error) => return error.hint(),
            Self::Required { .. } => {
                "install it among your own plugins, or ask the administrator of this machine"
            }
            Self::NoGuard { id } if id.starts_with("claude:") => {
                "that file of command hooks is not there, has no hooks or is switched off: bring it back, or take `fail_closed` out of outrigger.toml"
            }
            Self::NoGuard { .. } => {
                "correct the name (`outrigger plugin list` shows those that there are), install the plugin, trust the folder that brings it, start without `--pure`, or take `fail_closed` out of outrigger.toml"
            }
            Self::HooksUnreadable { .. } => "correct the file, or take its entry out",
            Self::Overridden { .. } => "remove one of the two entries",
            Self::HooksNotAllowed { .. } => {
                "look at them with `outrigger plugin allow-hooks --list`, and allow them with `outrigger plugin allow-hooks`"
            }
            Self::Hung { .. } => "raise the load deadline if the plugin is only slow",
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

    /// The same, of a plugin that needed Bun, with why there is none.
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

    /// It is left out on purpose, as OpenCode leaves it out; this is not a failure.
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

    /// It is left out, and the user may not know: it was not left out by the user's own setting, and is worth a line. What a project leaves
    /// off by itself is its own matter.
    pub(crate) fn is_worth_a_line(&self, local: bool) -> bool {
        match self {
            Self::NotAdmitted { reason, .. } => match reason.as_str() {
                "LeftOut" | "SwitchedOff" | "Denied" | "ForbiddenByManagedPolicy" => false,
                // One line says it of the whole folder.
                "FolderNotTrusted" => false,
                "OffByDefault" => !local,
                _ => true,
            },
            // Somebody's guard, perhaps: that it does not act yet is said each time.
            Self::Requirements { .. }
            | Self::HooksNotAllowed { .. }
            | Self::HooksUnreadable { .. }
            | Self::NoGuard { .. } => true,
            _ => false,
        }
    }

    /// It is what the user has said, so nothing must be warned of.
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

/// What to do where the sandbox kept a plugin from listening, as Bun and Node say it: `permission denied 127.0.0.1:1455`,
/// `listen EACCES: permission denied 127.0.0.1:1455`.
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
