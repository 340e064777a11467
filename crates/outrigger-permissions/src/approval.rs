//! Why a call needs a person's approval whatever the rules allow.

use outrigger_plugins::Grant;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::permission::MissingGrant;
use outrigger_protocol::provenance::UNKNOWN_PLUGIN;

use crate::access::startup::RunsLater;

/// Why the user is asked about a call whatever the rules allow, in words that stand beside the question.
#[derive(Clone, Debug)]
pub enum ApprovalReason {
    /// A command hook wants it.
    Hook(String),
    /// A plugin acted where it was not granted that: only a person can say yes, no rule and no `--auto`.
    Ungranted(UngrantedAction),
    /// A tool would change files that make something run later: only a person can say yes, or a rule that names them.
    RunsLater(Vec<RunsLater>),
}

/// A plugin that acts in the user's place, and the grant that it lacks for that.
#[derive(Clone, Debug)]
pub struct UngrantedAction {
    /// Who acted.
    pub plugin: PluginId,
    /// What would have allowed it.
    pub grant: Grant,
    /// NAME of `[plugins.NAME]`; none where it is not known which plugin it is.
    pub name: Option<String>,
    /// What it did, and how it is granted.
    pub why: String,
}

impl UngrantedAction {
    /// Whether it is this plugin that acted, or one of those that share its process.
    pub fn may_be(&self, plugin: &PluginId) -> bool {
        self.plugin == *plugin || self.plugin.0 == UNKNOWN_PLUGIN
    }

    /// For the question.
    pub fn missing(&self) -> Option<MissingGrant> {
        Some(MissingGrant {
            plugin: self.plugin.clone(),
            name: self.name.clone()?,
            grant: self.grant.key().to_owned(),
        })
    }
}

impl ApprovalReason {
    /// The files that make something run later.
    pub fn named(&self) -> Vec<String> {
        match self {
            Self::RunsLater(files) => files.iter().map(|it| it.pattern.clone()).collect(),
            Self::Hook(_) | Self::Ungranted(_) => Vec::new(),
        }
    }

    /// The text beside the question.
    pub fn shown(&self) -> String {
        match self {
            Self::Hook(why) => why.clone(),
            Self::Ungranted(lacking) => {
                format!("{}; \"always\" lets it until Outrigger ends", lacking.why)
            }
            Self::RunsLater(files) => {
                let files: Vec<String> = files.iter().map(RunsLater::why).collect();
                files.join("; ")
            }
        }
    }
}
