//! Why a plugin cannot be found, installed or read.

use std::path::PathBuf;

/// Why there is no package, or why it is none of a plugin.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The program does what this plugin did.
    #[error("{spec} is no longer loaded: what it did is part of the program")]
    Deprecated {
        /// As declared.
        spec: String,
    },
    /// An npm package whose `exports` name no server entry. OpenCode skips it too.
    #[error(
        "{spec} has `exports` but no server entry (`exports[\"./server\"]` or `main`), so it is not a server plugin"
    )]
    NoServerEntry {
        /// As declared.
        spec: String,
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
    /// It must be installed and there is nothing to install it with.
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
    #[error("Bun {} could not be installed: {message}", crate::BUN_VERSION)]
    Bun {
        /// What happened.
        message: String,
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
}

fn tail(lines: &str) -> String {
    if lines.is_empty() {
        String::new()
    } else {
        format!(":\n{lines}")
    }
}

impl PackageError {
    /// Stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Deprecated { .. } => "plugin.deprecated",
            Self::NoServerEntry { .. } => "plugin.no_server_entry",
            Self::OwnManifest { .. } => "plugin.own_manifest",
            Self::Reserved { .. } => "plugin.reserved_id",
            Self::Spec { .. } => "plugin.spec",
            Self::NotFound { .. } => "plugin.not_found",
            Self::NoEntry { .. } => "plugin.no_entry",
            Self::EntryMissing { .. } => "plugin.entry_missing",
            Self::EntryOutside { .. } => "plugin.entry_outside",
            Self::Manifest { .. } => "plugin.manifest",
            Self::Incompatible { .. } => "plugin.incompatible",
            Self::NoInstaller { .. } => "plugin.no_installer",
            Self::Install { .. } => "plugin.install",
            Self::NotInstalled { .. } => "plugin.not_installed",
            Self::Cache { .. } => "plugin.cache",
            Self::Bun { .. } => "plugin.bun",
            Self::Sandbox { .. } => "plugin.installer",
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
            Self::OwnManifest { hint, .. } => return hint.clone(),
            _ => return None,
        };
        Some(text.to_owned())
    }

    /// It is left out on purpose, as OpenCode leaves it out; this is not a failure.
    #[must_use]
    pub fn is_skip(&self) -> bool {
        matches!(self, Self::Deprecated { .. } | Self::NoServerEntry { .. })
    }
}
