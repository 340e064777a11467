//! Decides which plugins should run: candidates from five sources, each id once, and three layers that all must pass (D1 to
//! D5).
//!
//! Everything that must be looked up (files, permissions, variables, programs) is passed in as facts of the candidates. The
//! result states what should run and why the rest should not, in an order that does not depend on how the facts were found.

mod bundled;
mod depends;
mod reason;
mod rules;

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

pub use bundled::{BUNDLED, Bundled, bundled};
pub use depends::unmet;
pub use reason::Reason;
pub use rules::decide;

/// Source of a candidate, highest precedence first (D1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// Named in the user's configuration.
    ConfigPath,
    /// In a folder of the environment variable for plugins.
    EnvRoot,
    /// In a folder of the project.
    WorkspaceRoot,
    /// In a folder of the user.
    UserRoot,
    /// Part of the program.
    Bundled,
}

impl Source {
    /// Returns its number, 0 to 4.
    #[must_use]
    pub fn precedence(self) -> u8 {
        match self {
            Self::ConfigPath => 0,
            Self::EnvRoot => 1,
            Self::WorkspaceRoot => 2,
            Self::UserRoot => 3,
            Self::Bundled => 4,
        }
    }

    /// Returns its name in D1.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ConfigPath => "ConfigPath",
            Self::EnvRoot => "EnvRoot",
            Self::WorkspaceRoot => "WorkspaceRoot",
            Self::UserRoot => "UserRoot",
            Self::Bundled => "Bundled",
        }
    }

    /// Returns its display name.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::ConfigPath => "settings",
            Self::EnvRoot => "environment",
            Self::WorkspaceRoot => "project",
            Self::UserRoot => "user",
            Self::Bundled => "bundled",
        }
    }
}

/// Layers of the decision, in order (D2, D3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// One candidate for each id.
    Identity,
    /// Profile, lists and switches.
    Policy,
    /// Files and their permissions.
    Admission,
    /// Requirements on the environment and on other plugins.
    Dependencies,
}

impl Layer {
    /// All layers, in order.
    pub const ALL: [Self; 4] = [
        Self::Identity,
        Self::Policy,
        Self::Admission,
        Self::Dependencies,
    ];

    /// Returns its name as written in output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Identity => "identity",
            Self::Policy => "policy",
            Self::Admission => "admission",
            Self::Dependencies => "dependencies",
        }
    }
}

/// Profile: which bundled plugins run (D5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Profile {
    /// All but `telegram` and `mcp`.
    #[default]
    Minimal,
    /// `telegram` too.
    Messaging,
    /// All, including `mcp`.
    Full,
}

impl Profile {
    /// Returns its name in D5.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Minimal => "Minimal",
            Self::Messaging => "Messaging",
            Self::Full => "Full",
        }
    }

    /// Returns its name in the settings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Messaging => "messaging",
            Self::Full => "full",
        }
    }
}

/// Facts about a plugin before anything of it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What it is called.
    pub id: String,
    /// Source of the candidate.
    pub source: Source,
    /// Position within its source: an earlier root precedes a later one.
    pub order: usize,
    /// Path or entry; unique within its source.
    pub place: String,
    /// Listed by OpenCode's own rules, which decide on their own which of two entries is used: two of these with one id are
    /// two plugins.
    pub listed: bool,
    /// The id comes from its manifest. Otherwise it is just the name of a file or package and conflicts with no other.
    pub has_own_id: bool,
    /// From a project. User settings for a user plugin with the same id do not apply.
    pub of_project: bool,
    /// A bundled plugin that cannot be replaced (D4).
    pub required: bool,
    /// Lowest profile that includes it; bundled plugins only.
    pub profile: Option<Profile>,
    /// Its manifest enables it.
    pub enabled_by_default: bool,
    /// It changes something outside of the session.
    pub side_effects: bool,
    /// Variables that must be set.
    pub env: Vec<String>,
    /// Groups of variables of which one must be set.
    pub env_any: Vec<Vec<String>>,
    /// Programs that must be installed.
    pub external_bins: Vec<String>,
    /// Ids of plugins that must run.
    pub depends_on: Vec<String>,
    /// Exclusion decided earlier: by OpenCode's own switches or the machine policy.
    pub excluded: Option<Reason>,
    /// Checks of its files; `None` if it has no path.
    pub files: Option<Files>,
    /// Why it is not trusted in its current state, if known before it is loaded.
    pub untrusted: Option<String>,
    /// Why this program cannot load it.
    pub unsupported: Option<String>,
}

impl Candidate {
    /// Creates a candidate that no rule excludes.
    #[must_use]
    pub fn new(id: &str, source: Source, place: &str) -> Self {
        Self {
            id: id.into(),
            source,
            order: 0,
            place: place.into(),
            listed: false,
            has_own_id: true,
            of_project: false,
            required: false,
            profile: None,
            enabled_by_default: true,
            side_effects: false,
            env: Vec::new(),
            env_any: Vec::new(),
            external_bins: Vec::new(),
            depends_on: Vec::new(),
            excluded: None,
            files: None,
            untrusted: None,
            unsupported: None,
        }
    }
}

/// Facts about a candidate's files (D3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// Real path of its manifest, if outside its root.
    pub outside: Option<String>,
    /// A world-writable path component.
    pub world_writable: Option<String>,
    /// Problem with its signature, if one is required or present.
    pub signature: Option<String>,
}

/// Switch for a single plugin.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Switch {
    /// Whether it is on.
    pub on: bool,
    /// Where it is set.
    pub by: String,
}

/// The user's rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Which bundled plugins run.
    pub profile: Profile,
    /// Ids of plugins with side effects that may run although they are not bundled (`policy.allow` of D3); plugins of a
    /// project by path.
    pub allow: Vec<String>,
    /// Plugins that do not run; `*` matches any run of characters.
    pub deny: Vec<String>,
    /// Switches of single plugins, by path or id. An id switches nothing of a project on.
    pub switches: BTreeMap<String, Switch>,
    /// Ids that the user has rules for. No project candidate takes one of these from a candidate of another source.
    pub kept: BTreeSet<String>,
}

/// Requirements of candidates that the machine meets.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    /// Variables that are set and not empty.
    pub env: Vec<String>,
    /// Programs that were found.
    pub bins: Vec<String>,
}

/// A candidate with the decision about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The candidate.
    pub candidate: Candidate,
    /// Why it does not run; `None`: it runs.
    pub disabled: Option<Reason>,
}

impl Entry {
    /// Returns whether it should run.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.disabled.is_none()
    }

    /// Returns the layer that excluded it.
    #[must_use]
    pub fn layer(&self) -> Option<Layer> {
        self.disabled.as_ref().map(Reason::layer)
    }
}
