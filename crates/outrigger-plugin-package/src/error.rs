//! Errors of finding, installing and reading plugins.

use std::path::PathBuf;

use outrigger_protocol::diagnose::Diagnose;

/// Why a package is missing or is not a plugin.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    /// The program has this plugin's function built in.
    #[error("{spec} is no longer loaded: what it did is part of the program")]
    Deprecated {
        /// Spec as declared.
        spec: String,
    },
    /// An npm package whose `exports` name no server entry. OpenCode skips it too.
    #[error(
        "{spec} has `exports` but no server entry (`exports[\"./server\"]` or `main`), so it is not a server plugin"
    )]
    NoServerEntry {
        /// Spec as declared.
        spec: String,
    },
    /// Its `outrigger.plugin.toml` is invalid.
    #[error("plugin {spec} is not started: its manifest cannot be used: {message}")]
    OwnManifest {
        /// Spec as declared.
        spec: String,
        /// The problem, with file, line and column.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// Its id is that of a required bundled plugin (D4, `ReservedBundledPluginId`).
    #[error("plugin {spec} is not started: {id} is the id of a bundled plugin that is required")]
    Reserved {
        /// Spec as declared.
        spec: String,
        /// The id.
        id: String,
    },
    /// The spec is invalid.
    #[error("cannot use plugin spec {spec:?}: {reason}")]
    Spec {
        /// Spec as declared.
        spec: String,
        /// Reason.
        reason: String,
    },
    /// A path spec without a file.
    #[error("plugin {spec}: there is nothing at {}", path.display())]
    NotFound {
        /// Spec as declared.
        spec: String,
        /// The path that was tried.
        path: PathBuf,
    },
    /// A folder with nothing to load.
    #[error(
        "plugin {spec}: {} has {} and no index file",
        dir.display(),
        if *described { "a package.json without an entry (`exports[\"./server\"]` or `main`)" } else { "no package.json" }
    )]
    NoEntry {
        /// Spec as declared.
        spec: String,
        /// The folder.
        dir: PathBuf,
        /// Whether it has a package.json.
        described: bool,
    },
    /// The entry that the package names does not exist.
    #[error("plugin {spec}: its entry {} does not exist", entry.display())]
    EntryMissing {
        /// Spec as declared.
        spec: String,
        /// The file.
        entry: PathBuf,
    },
    /// The entry is outside the package (invariant 11).
    #[error("plugin {spec}: its entry {entry:?} leads out of the package folder")]
    EntryOutside {
        /// Spec as declared.
        spec: String,
        /// Entry as named by the package.
        entry: String,
    },
    /// `package.json` is invalid.
    #[error("plugin {spec}: cannot read {}: {message}", path.display())]
    Manifest {
        /// Spec as declared.
        spec: String,
        /// The file.
        path: PathBuf,
        /// The problem.
        message: String,
    },
    /// `engines.opencode` requires another version.
    #[error("plugin {spec} wants opencode {wanted}; this host is compatible with {have}")]
    Incompatible {
        /// Spec as declared.
        spec: String,
        /// Its range.
        wanted: String,
        /// Supported version.
        have: String,
    },
    /// It must be installed, and no installer is available.
    #[error("plugin {spec} has to be installed from npm, and neither bun nor npm was found")]
    NoInstaller {
        /// Spec as declared.
        spec: String,
    },
    /// The installer failed.
    #[error("plugin {spec}: {installer} failed{}", tail(lines))]
    Install {
        /// Spec as declared.
        spec: String,
        /// `bun` or `npm`.
        installer: String,
        /// Last lines of its output.
        lines: String,
    },
    /// The installer succeeded, but the package is missing.
    #[error("plugin {spec}: {installer} reported success, but {} is missing", path.display())]
    NotInstalled {
        /// Spec as declared.
        spec: String,
        /// `bun` or `npm`.
        installer: String,
        /// The expected path.
        path: PathBuf,
    },
    /// The plugin cache is unusable.
    #[error("the plugin cache at {} cannot be used: {message}", path.display())]
    Cache {
        /// Path of the cache.
        path: PathBuf,
        /// What happened.
        message: String,
    },
    /// Bun is missing and could not be fetched.
    #[error("Bun {} could not be installed: {message}", crate::BUN_VERSION)]
    Bun {
        /// What happened.
        message: String,
    },
    /// The installer could not be started.
    #[error("plugin {spec}: {installer} could not be run: {message}")]
    Sandbox {
        /// Spec as declared.
        spec: String,
        /// `bun` or `npm`.
        installer: String,
        /// Reason.
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

impl Diagnose for PackageError {
    fn code(&self) -> &'static str {
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

    fn hint(&self) -> Option<String> {
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
}

impl PackageError {
    /// Returns whether it is skipped on purpose, as in OpenCode; this is not a failure.
    #[must_use]
    pub fn is_skip(&self) -> bool {
        matches!(self, Self::Deprecated { .. } | Self::NoServerEntry { .. })
    }
}
