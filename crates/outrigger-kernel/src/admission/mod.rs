//! Which plugins should run: candidates from five sources, each id once, and three layers that all must pass (D1 to D5).
//!
//! Everything that is looked up (files, rights, variables, programs) comes in as facts of the candidates; the answer says
//! what should run and why the rest should not, in an order that does not depend on how the facts were found.

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

/// Where a candidate comes from, the highest precedence first (D1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Source {
    /// The user's configuration names it.
    ConfigPath,
    /// A folder of the environment variable for plugins.
    EnvRoot,
    /// A folder of the project.
    WorkspaceRoot,
    /// A folder of the user.
    UserRoot,
    /// Part of the program.
    Bundled,
}

impl Source {
    /// Its number, 0 to 4.
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

    /// Its name in D1.
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

    /// What people call it.
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

/// What decides, in this order (D2, D3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Layer {
    /// One candidate for each id.
    Identity,
    /// Profile, lists, switches.
    Policy,
    /// Files and their rights.
    Admission,
    /// What must be there beside it.
    Dependencies,
}

impl Layer {
    /// All of them, in order.
    pub const ALL: [Self; 4] = [
        Self::Identity,
        Self::Policy,
        Self::Admission,
        Self::Dependencies,
    ];

    /// As it is written.
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

/// Which of the bundled plugins run (D5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Profile {
    /// All but `telegram` and `mcp`.
    #[default]
    Minimal,
    /// `telegram` too.
    Messaging,
    /// `mcp` too.
    Full,
}

impl Profile {
    /// Its name in D5.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Minimal => "Minimal",
            Self::Messaging => "Messaging",
            Self::Full => "Full",
        }
    }

    /// How it is written in the settings.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Messaging => "messaging",
            Self::Full => "full",
        }
    }
}

/// What is known of a plugin before anything of it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    /// What it is called.
    pub id: String,
    /// Where it comes from.
    pub source: Source,
    /// Position within its source: an earlier root goes before a later one.
    pub order: usize,
    /// The file or entry that it is; unique within its source.
    pub place: String,
    /// OpenCode's own rules put it onto the list, which say by themselves which of two entries counts: two of these with one
    /// id are two plugins.
    pub listed: bool,
    /// Its id is what its manifest says. Else it is the mere name of a file or package, which stands in nobody's way.
    pub has_own_id: bool,
    /// A project brings it: what the user wrote for his own of the same id is not for this one.
    pub of_project: bool,
    /// It is a bundled one that nobody can take the place of (D4).
    pub required: bool,
    /// The lowest profile that has it; bundled ones only.
    pub profile: Option<Profile>,
    /// Its manifest switches it on.
    pub enabled_by_default: bool,
    /// It changes something outside of the session.
    pub side_effects: bool,
    /// Variables that must be set.
    pub env: Vec<String>,
    /// Groups of variables of which one must be set.
    pub env_any: Vec<Vec<String>>,
    /// Programs that must be there.
    pub external_bins: Vec<String>,
    /// Plugins that must run, by id.
    pub depends_on: Vec<String>,
    /// What was already said about it before this: OpenCode's own switches, the policy of the machine.
    pub said: Option<Reason>,
    /// What speaks against its files; `None` for what has no path.
    pub files: Option<Files>,
    /// Why it would not be trusted as it is, where that is known before it is loaded.
    pub untrusted: Option<String>,
    /// Why it cannot be loaded by this program.
    pub unsupported: Option<String>,
}

impl Candidate {
    /// One that nothing speaks against.
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
            said: None,
            files: None,
            untrusted: None,
            unsupported: None,
        }
    }
}

/// What is known of a candidate's files (D3).
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Files {
    /// Where its manifest really is, when that is not inside of its root.
    pub outside: Option<String>,
    /// A path on the way to it that everybody may change.
    pub world_writable: Option<String>,
    /// What is wrong with its signature, where one is required or there.
    pub signature: Option<String>,
}

/// A switch of a single plugin.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Switch {
    /// On or off.
    pub on: bool,
    /// Who says so.
    pub by: String,
}

/// What the user says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Rules {
    /// Which bundled plugins run.
    pub profile: Profile,
    /// Plugins with side effects that may run although they are not bundled (`policy.allow` of D3), by id; those of a project
    /// by place.
    pub allow: Vec<String>,
    /// Plugins that do not run; `*` stands for any run of characters.
    pub deny: Vec<String>,
    /// Single ones, by place or by id. By id nothing of a project is switched on.
    pub switches: BTreeMap<String, Switch>,
    /// Ids that the user has rules for. No candidate of a project takes one of these from a candidate that is none.
    pub kept: BTreeSet<String>,
}

/// What is there on the machine, of what candidates require.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Machine {
    /// Variables that are set and not empty.
    pub env: Vec<String>,
    /// Programs that were found.
    pub bins: Vec<String>,
}

/// One candidate and what was decided about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The candidate.
    pub candidate: Candidate,
    /// Why it does not run; `None`: it does.
    pub disabled: Option<Reason>,
}

impl Entry {
    /// Whether it should run.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.disabled.is_none()
    }

    /// The layer that decided against it.
    #[must_use]
    pub fn layer(&self) -> Option<Layer> {
        self.disabled.as_ref().map(Reason::layer)
    }
}
