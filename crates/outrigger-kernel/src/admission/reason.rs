//! Reasons for which a candidate does not run, with remedies.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use serde::Serialize;

use super::{Layer, Profile, Source};

/// Why a candidate does not run. The names are those of the requirements, where they define one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "reason")]
pub enum Reason {
    /// Another candidate with its id takes precedence (D2).
    ShadowedByHigherPrecedence {
        /// Source of that candidate.
        by: Source,
        /// Its path or entry.
        place: String,
    },
    /// Its id is that of a required bundled plugin (D4).
    ReservedBundledPluginId,
    /// It is from a project and has the id of a plugin that the user has rules for.
    ReservedUserPluginId {
        /// Source of that plugin.
        by: Source,
        /// Its path or entry.
        place: String,
    },
    /// It was listed and then excluded again: by `--pure`, `plugin bisect`, or a later file.
    LeftOut {
        /// What excluded it.
        by: String,
    },
    /// The machine policy excludes it.
    ForbiddenByManagedPolicy {
        /// File of the policy.
        file: String,
    },
    /// It is from a project whose folder is not trusted, or was trusted without this plugin.
    FolderNotTrusted,
    /// A deny list names it.
    Denied {
        /// The matching pattern as written.
        pattern: String,
    },
    /// It is switched off.
    SwitchedOff {
        /// Where.
        by: String,
    },
    /// The profile does not include it.
    NotInProfile {
        /// The current profile.
        profile: Profile,
        /// Lowest profile that includes it.
        needs: Profile,
    },
    /// Its own manifest disables it by default, and nothing enables it.
    OffByDefault,
    /// Its manifest is a link to a path outside its root.
    ManifestOutsideRoot {
        /// Where that is.
        path: String,
    },
    /// It is world-writable.
    WorldWritablePath {
        /// The writable path.
        path: String,
    },
    /// It has side effects outside the session, and `discovery.allow` does not name it.
    SideEffectsNotAllowed,
    /// Its signature does not meet the machine policy.
    Signature {
        /// The problem.
        problem: String,
    },
    /// It is not trusted in its current state, so it cannot shadow another plugin.
    Untrusted {
        /// Why it is not trusted.
        why: String,
    },
    /// This program cannot load it (D8).
    UnsupportedExternalPlugin {
        /// Why not.
        why: String,
    },
    /// A variable is not set.
    MissingEnv {
        /// Its name.
        name: String,
    },
    /// None of these variables is set.
    MissingEnvAny {
        /// Their names.
        names: Vec<String>,
    },
    /// A program is not on `PATH`.
    MissingExternalBin {
        /// Its name.
        name: String,
    },
    /// A plugin that it needs does not exist.
    MissingDependency {
        /// Id of that plugin.
        id: String,
    },
    /// A plugin that it needs does not run.
    DependencyDisabled {
        /// Id of that plugin.
        id: String,
    },
    /// It depends on itself through other plugins.
    DependencyCycle {
        /// The cycle, from its smallest id.
        ids: Vec<String>,
    },
}

impl Reason {
    /// Returns the layer that it belongs to.
    #[must_use]
    pub fn layer(&self) -> Layer {
        match self {
            Self::ShadowedByHigherPrecedence { .. }
            | Self::ReservedBundledPluginId
            | Self::ReservedUserPluginId { .. } => Layer::Identity,
            Self::LeftOut { .. }
            | Self::ForbiddenByManagedPolicy { .. }
            | Self::FolderNotTrusted
            | Self::Denied { .. }
            | Self::SwitchedOff { .. }
            | Self::NotInProfile { .. }
            | Self::OffByDefault => Layer::Policy,
            Self::ManifestOutsideRoot { .. }
            | Self::WorldWritablePath { .. }
            | Self::SideEffectsNotAllowed
            | Self::Signature { .. }
            | Self::Untrusted { .. }
            | Self::UnsupportedExternalPlugin { .. } => Layer::Admission,
            Self::MissingEnv { .. }
            | Self::MissingEnvAny { .. }
            | Self::MissingExternalBin { .. }
            | Self::MissingDependency { .. }
            | Self::DependencyDisabled { .. }
            | Self::DependencyCycle { .. } => Layer::Dependencies,
        }
    }

    /// Returns its name, as in the requirements.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::ShadowedByHigherPrecedence { .. } => "ShadowedByHigherPrecedence",
            Self::ReservedBundledPluginId => "ReservedBundledPluginId",
            Self::ReservedUserPluginId { .. } => "ReservedUserPluginId",
            Self::LeftOut { .. } => "LeftOut",
            Self::ForbiddenByManagedPolicy { .. } => "ForbiddenByManagedPolicy",
            Self::FolderNotTrusted => "FolderNotTrusted",
            Self::Denied { .. } => "Denied",
            Self::SwitchedOff { .. } => "SwitchedOff",
            Self::NotInProfile { .. } => "NotInProfile",
            Self::OffByDefault => "OffByDefault",
            Self::ManifestOutsideRoot { .. } => "ManifestOutsideRoot",
            Self::WorldWritablePath { .. } => "WorldWritablePath",
            Self::SideEffectsNotAllowed => "SideEffectsNotAllowed",
            Self::Signature { .. } => "Signature",
            Self::Untrusted { .. } => "Untrusted",
            Self::UnsupportedExternalPlugin { .. } => "UnsupportedExternalPlugin",
            Self::MissingEnv { .. } => "MissingEnv",
            Self::MissingEnvAny { .. } => "MissingEnvAny",
            Self::MissingExternalBin { .. } => "MissingExternalBin",
            Self::MissingDependency { .. } => "MissingDependency",
            Self::DependencyDisabled { .. } => "DependencyDisabled",
            Self::DependencyCycle { .. } => "DependencyCycle",
        }
    }

    /// Returns a description without the plugin's name.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::ShadowedByHigherPrecedence { by, place } => {
                format!("{place} ({}) has this id and goes before it", by.word())
            }
            Self::ReservedBundledPluginId => {
                "its id is that of a bundled plugin that is required".into()
            }
            Self::ReservedUserPluginId { by, place } => format!(
                "the id of {place} ({}) is reserved: you have rules for it, and this plugin comes from a project",
                by.word()
            ),
            Self::LeftOut { by } => format!("left out: {by}"),
            Self::ForbiddenByManagedPolicy { file } => {
                format!("the policy of this machine ({file}) does not allow it")
            }
            Self::FolderNotTrusted => "the folder of the project is not trusted".into(),
            Self::Denied { pattern } => format!("`discovery.deny` has {pattern:?}"),
            Self::SwitchedOff { by } => format!("switched off by {by}"),
            Self::NotInProfile { profile, needs } => {
                format!(
                    "not in profile {} ({} has it)",
                    profile.word(),
                    needs.word()
                )
            }
            Self::OffByDefault => "its manifest leaves it off (`enabled_by_default`)".into(),
            Self::ManifestOutsideRoot { path } => {
                format!("its manifest is really {path}, outside of its root")
            }
            Self::WorldWritablePath { path } => format!("everybody may change {path}"),
            Self::SideEffectsNotAllowed => {
                "it changes things outside of the session, and `discovery.allow` does not name it"
                    .into()
            }
            Self::Signature { problem } => problem.clone(),
            Self::Untrusted { why } => {
                format!("it is not trusted, so it cannot shadow another plugin: {why}")
            }
            Self::UnsupportedExternalPlugin { why } => format!("it cannot be loaded: {why}"),
            Self::MissingEnv { name } => format!("the variable {name} is not set"),
            Self::MissingEnvAny { names } => {
                format!("none of the variables {} is set", names.join(", "))
            }
            Self::MissingExternalBin { name } => format!("the program {name} is not on PATH"),
            Self::MissingDependency { id } => format!("no plugin {id}"),
            Self::DependencyDisabled { id } => format!("it needs {id}, which does not run"),
            Self::DependencyCycle { ids } => {
                format!("plugins need each other in a circle: {}", ids.join(" -> "))
            }
        }
    }

    /// Returns how to resolve it.
    #[must_use]
    pub fn remedy(&self, id: &str) -> String {
        match self {
            Self::ShadowedByHigherPrecedence { place, .. } => {
                format!("remove {place} or change one of the two ids")
            }
            Self::ReservedBundledPluginId | Self::ReservedUserPluginId { .. } => {
                "give it another id".into()
            }
            Self::LeftOut { .. } => "start without that".into(),
            Self::ForbiddenByManagedPolicy { file } => {
                format!("the administrator of this machine can allow it in {file}")
            }
            Self::FolderNotTrusted => {
                "review and trust the folder with `outrigger trust`".into()
            }
            Self::Denied { pattern } => {
                format!("take {pattern:?} from `discovery.deny` in outrigger.toml")
            }
            Self::SwitchedOff { .. } | Self::OffByDefault => {
                format!("`outrigger plugin enable {id}`")
            }
            Self::NotInProfile { needs, .. } => format!(
                "`outrigger plugin enable {id}`, or `discovery.profile = \"{}\"` in your own outrigger.toml",
                needs.word()
            ),
            Self::ManifestOutsideRoot { .. } => {
                "put the plugin itself into the folder, not a link to it".into()
            }
            Self::WorldWritablePath { path } => format!("`chmod o-w {path}`"),
            Self::SideEffectsNotAllowed => format!(
                "look at it, then `outrigger plugin enable {id}` (adds it to `discovery.allow` in your own outrigger.toml)"
            ),
            Self::Signature { .. } => {
                "ask its author for a signature by a key of the machine's policy (`outrigger plugin verify` checks it)".into()
            }
            Self::Untrusted { .. } => {
                format!("`outrigger plugin review {id}`, then `outrigger plugin review {id} --accept`")
            }
            Self::UnsupportedExternalPlugin { .. } => {
                "mend what is wrong, or take it away".into()
            }
            Self::MissingEnv { name } => format!("set {name}"),
            Self::MissingEnvAny { names } => format!("set one of {}", names.join(", ")),
            Self::MissingExternalBin { name } => format!("install {name}"),
            Self::MissingDependency { id } => format!("install {id}"),
            Self::DependencyDisabled { id } => {
                format!("see `outrigger plugin snapshot --explain {id}`")
            }
            Self::DependencyCycle { .. } => "one of them has to do without the others".into(),
        }
    }
}
