//! What can go wrong with one plugin. Nothing here ends a session: a plugin that fails is listed with its cause and the
//! others run (A13).

use std::path::PathBuf;

use outrigger_plugin_status::{Cause, Stage};

mod code;

pub(crate) use code::PROCESS;

/// Why a plugin is not there, or why one of its calls failed.
#[derive(Debug, thiserror::Error)]
pub enum PluginError {
    /// The program does what this plugin did.
    #[error("{spec} is no longer loaded: what it did is part of the program")]
    Deprecated {
        /// As declared.
        spec: String,
    },
    /// An npm package whose `exports` name no server entry. The reference skips it too.
    #[error(
        "{spec} has `exports` but no server entry (`exports[\"./server\"]` or `main`), so it is not a server plugin"
    )]
    NoServerEntry {
        /// As declared.
        spec: String,
    },
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
    /// Its signature is not what the policy of the machine asks for (C7).
    #[error("plugin {id} is not started: {problem}")]
    Signature {
        /// Which.
        id: String,
        /// What is wrong, with its name.
        problem: String,
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
    /// Its files are not those that were trusted (issue 5, trust by content).
    #[error("plugin {id} is not started: it is not what was trusted ({what})")]
    Changed {
        /// As declared.
        spec: String,
        /// Name.
        id: String,
        /// What changed.
        what: String,
    },
    /// Nobody has said that it may be started.
    #[error("plugin {id} is not started: {reason}")]
    Untrusted {
        /// As declared.
        spec: String,
        /// Name.
        id: String,
        /// Why it is not trusted.
        reason: String,
        /// A review would help.
        review: bool,
    },
    /// The project's `outrigger.lock` says something else.
    #[error("plugin {spec} is not what {} says", lock.display())]
    NotAsPinned {
        /// As declared.
        spec: String,
        /// The file.
        lock: PathBuf,
    },
    /// Everybody on the machine may change it (D3).
    #[error("plugin {spec} is not started: everybody may write to {}", path.display())]
    WorldWritable {
        /// As declared.
        spec: String,
        /// The file or folder.
        path: PathBuf,
    },
    /// Its files cannot be told, so nobody can have trusted them.
    #[error("plugin {spec} is not started: its files cannot be looked at: {reason}")]
    Unreviewable {
        /// As declared.
        spec: String,
        /// Why.
        reason: String,
    },
    /// What says which plugins are trusted cannot be used.
    #[error("{} cannot be used: {message}", path.display())]
    TrustFile {
        /// Where.
        path: PathBuf,
        /// What happened.
        message: String,
    },
    /// The plugin that hosts it is not there (C8).
    #[error("plugin {id} does not run: {host}, which hosts it, does not")]
    HostGone {
        /// Plugin.
        id: String,
        /// The plugin that hosts it.
        host: String,
    },
    /// Its `outrigger.plugin.toml` cannot be used.
    #[error("plugin {spec} is not started: its manifest cannot be used: {message}")]
    OwnManifest {
        /// As declared.
        spec: String,
        /// What is wrong, with file, line and column.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// It calls itself what a required bundled plugin is called (D4, `ReservedBundledPluginId`).
    #[error("plugin {spec} is not started: {id} is the id of a bundled plugin that is required")]
    Reserved {
        /// As declared.
        spec: String,
        /// The id.
        id: String,
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
    /// The spec cannot be read.
    #[error("the plugin spec {spec:?} cannot be used: {reason}")]
    Spec {
        /// As declared.
        spec: String,
        /// Why.
        reason: String,
    },
    /// A path spec that leads nowhere.
    #[error("plugin {spec}: there is nothing at {}", path.display())]
    NotFound {
        /// As declared.
        spec: String,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// A folder with nothing to load.
    #[error(
        "plugin {spec}: {} has {} and no index file",
        dir.display(),
        if *described { "a package.json without an entry (`exports[\"./server\"]` or `main`)" } else { "no package.json" }
    )]
    NoEntry {
        /// As declared.
        spec: String,
        /// The folder.
        dir: PathBuf,
        /// Whether it has a package.json.
        described: bool,
    },
    /// The entry that the package names is not there.
    #[error("plugin {spec}: its entry {} does not exist", entry.display())]
    EntryMissing {
        /// As declared.
        spec: String,
        /// The file.
        entry: PathBuf,
    },
    /// The entry lies outside the package (invariant 11).
    #[error("plugin {spec}: its entry {entry:?} leads out of the package folder")]
    EntryOutside {
        /// As declared.
        spec: String,
        /// As the package names it.
        entry: String,
    },
    /// `package.json` cannot be read.
    #[error("plugin {spec}: {} cannot be read: {message}", path.display())]
    Manifest {
        /// As declared.
        spec: String,
        /// The file.
        path: PathBuf,
        /// What is wrong.
        message: String,
    },
    /// `engines.opencode` wants another version.
    #[error("plugin {spec} wants opencode {wanted}; this host is compatible with {have}")]
    Incompatible {
        /// As declared.
        spec: String,
        /// Its range.
        wanted: String,
        /// Ours.
        have: String,
    },
    /// It has to be installed and there is nothing to install it with.
    #[error("plugin {spec} has to be installed from npm, and neither bun nor npm was found")]
    NoInstaller {
        /// As declared.
        spec: String,
    },
    /// The installer failed.
    #[error("plugin {spec}: {installer} failed{}", tail(lines))]
    Install {
        /// As declared.
        spec: String,
        /// `bun` or `npm`.
        installer: String,
        /// What it said last.
        lines: String,
    },
    /// The installer ended well and the package is not there.
    #[error("plugin {spec}: {installer} reported success, but {} is missing", path.display())]
    NotInstalled {
        /// As declared.
        spec: String,
        /// `bun` or `npm`.
        installer: String,
        /// What should be there.
        path: PathBuf,
    },
    /// The plugin cache cannot be used.
    #[error("the plugin cache at {} cannot be used: {message}", path.display())]
    Cache {
        /// Where.
        path: PathBuf,
        /// What happened.
        message: String,
    },
    /// There is no Bun and it could not be fetched.
    #[error("Bun {} could not be installed: {message}", crate::bun::BUN_VERSION)]
    Bun {
        /// What happened.
        message: String,
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
    /// The installer could not be started.
    #[error("plugin {spec}: {installer} could not be run: {message}")]
    Sandbox {
        /// As declared.
        spec: String,
        /// `bun` or `npm`.
        installer: String,
        /// Why.
        message: String,
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

fn tail(lines: &str) -> String {
    if lines.is_empty() {
        String::new()
    } else {
        format!(":\n{lines}")
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
            Self::Deprecated { .. } => "remove it from the `plugin` list",
            Self::NotFound { .. } => {
                "check the path; a relative one starts at the folder of the configuration file that names it"
            }
            Self::Changed { id, .. }
            | Self::Untrusted {
                id, review: true, ..
            } => {
                return Some(format!(
                    "look at it with `outrigger plugin review {id}` and trust it with `outrigger plugin review {id} --accept`"
                ));
            }
            Self::NotAsPinned { .. } => {
                "undo the change, or pin what is there with `outrigger plugin review --accept --pin`"
            }
            Self::WorldWritable { .. } => {
                "take the right away (`chmod o-w`); where a file system gives it to everything, set `trust.world_writable = true` in your own outrigger.toml"
            }
            Self::Spec { .. } => "write `name`, `name@version`, `./path` or `file:///path`",
            Self::Incompatible { .. } => {
                "pin a version of the plugin that supports this host: `name@version`"
            }
            Self::NoInstaller { .. } => {
                "install Bun (`npm install -g bun`) or npm, or set OUTRIGGER_BUN to Bun's path"
            }
            Self::Install { .. } => "check the name and version, the network and your .npmrc",
            Self::Bun { .. } => {
                "check the network and your .npmrc and run `outrigger plugin setup`, or install Bun and set OUTRIGGER_BUN to its path"
            }
            Self::Required { .. } => {
                "install it among your own plugins, or ask whoever administers this machine"
            }
            Self::Overridden { .. } => "remove one of the two entries",
            Self::HooksNotAllowed { .. } => {
                "look at them with `outrigger plugin allow-hooks --list`, and allow them with `outrigger plugin allow-hooks`"
            }
            Self::Hung { .. } => "raise the load deadline if the plugin is only slow",
            Self::Off { .. } => "remove the plugin named above, then start again",
            Self::NotAdmitted { remedy, .. } => return Some(remedy.clone()),
            Self::NoRuntime { hint, .. } | Self::OwnManifest { hint, .. } => return hint.clone(),
            Self::Auth {
                plugin, message, ..
            }
            | Self::Load {
                plugin, message, ..
            } => return crate::granted::port_hint(plugin, message),
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// The same, of a plugin that needed Bun, with why there is none.
    #[must_use]
    pub(crate) fn because(&self, reason: &str) -> Self {
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
            other => Self::Bun {
                message: format!("{reason} ({other})"),
            },
        }
    }

    /// It is left out on purpose, as the reference leaves it out; this is not a failure.
    #[must_use]
    pub fn is_skip(&self) -> bool {
        matches!(
            self,
            Self::Deprecated { .. }
                | Self::NoServerEntry { .. }
                | Self::Disabled { .. }
                | Self::HostGone { .. }
                | Self::HooksNotAllowed { .. }
                | Self::Forbidden { .. }
                | Self::NotAdmitted { .. }
                | Self::Requirements { .. }
        ) || self.is_expected()
    }

    /// It is left out, and whoever put it there may not know: not by a word of his own, and not in silence. What a project leaves
    /// off by itself is its own matter.
    pub(crate) fn is_worth_a_line(&self, local: bool) -> bool {
        match self {
            Self::NotAdmitted { reason, .. } => match reason.as_str() {
                "LeftOut" | "SwitchedOff" | "Denied" | "ForbiddenByManagedPolicy" => false,
                "OffByDefault" => !local,
                _ => true,
            },
            // Somebody's guard, perhaps: that it does not act yet is said each time.
            Self::Requirements { .. } | Self::HooksNotAllowed { .. } => true,
            _ => false,
        }
    }

    /// It is what the user has said, so nothing has to be warned of.
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
