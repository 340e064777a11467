//! Reasons for which a call needs the user's approval regardless of the rules.

use outrigger_plugins::Grant;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::permission::MissingGrant;
use outrigger_protocol::provenance::UNKNOWN_PLUGIN;

use crate::access::startup::RunsLater;

/// Why the user is asked about a call regardless of the rules; displayed with the question.
#[derive(Clone, Debug)]
pub enum ApprovalReason {
    /// A command hook requires it.
    Hook(String),
    /// A plugin acted without a grant: only the user can approve, no rule and no `--auto`.
    Ungranted(UngrantedAction),
    /// A tool would change files that make something run later: only the user can approve, or a rule that names them.
    RunsLater(Vec<RunsLater>),
    /// A command line may run commands that nobody has read, and a rule denies some: only the user can approve.
    Unread,
}

/// An action of a plugin on the user's behalf, with the missing grant.
#[derive(Clone, Debug)]
pub struct UngrantedAction {
    /// The plugin.
    pub plugin: PluginId,
    /// The grant that would have allowed it.
    pub grant: Grant,
    /// NAME of `[plugins.NAME]`; `None` if the plugin is not identified.
    pub name: Option<String>,
    /// What it did, and how to grant it.
    pub why: String,
}

impl UngrantedAction {
    /// Creates it for what a plugin did. `key`: its NAME, if it is identified.
    pub fn of_plugin(plugin: &PluginId, grant: Grant, key: String, what: &str) -> Self {
        let word = grant.key();
        let is_known = plugin.0 != UNKNOWN_PLUGIN;
        let (who, table) = if is_known {
            (
                format!("the plugin {}", plugin.0),
                format!("[plugins.\"{key}\"]"),
            )
        } else {
            (
                "a plugin in a shared process".to_owned(),
                "[plugins.NAME]".to_owned(),
            )
        };
        Self {
            plugin: plugin.clone(),
            grant,
            name: is_known.then_some(key),
            why: format!(
                "{who} {what} (`{word} = true` under {table} in your own outrigger.toml grants that)"
            ),
        }
    }

    /// Creates it for what a command hook did that its sandbox would not have let it do. There is no grant for that.
    pub fn of_hook(hook: &PluginId, grant: Grant, what: &str) -> Self {
        Self {
            plugin: hook.clone(),
            grant,
            name: None,
            why: format!(
                "the command hook {} {what}, and its sandbox does not allow that (hooks in your own \
                 ~/.claude/settings.json have your rights)",
                hook.0
            ),
        }
    }

    /// Returns whether this plugin acted, or one of those that share its process.
    pub fn may_be(&self, plugin: &PluginId) -> bool {
        self.plugin == *plugin || self.plugin.0 == UNKNOWN_PLUGIN
    }

    /// Returns the missing grant for the question.
    pub fn missing(&self) -> Option<MissingGrant> {
        Some(MissingGrant {
            plugin: self.plugin.clone(),
            name: self.name.clone()?,
            grant: self.grant.key().to_owned(),
        })
    }
}

impl ApprovalReason {
    /// Returns the files that make something run later.
    pub fn named(&self) -> Vec<String> {
        match self {
            Self::RunsLater(files) => files.iter().map(|it| it.pattern.clone()).collect(),
            Self::Hook(_) | Self::Ungranted(_) | Self::Unread => Vec::new(),
        }
    }

    /// Returns the text displayed with the question.
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
            Self::Unread => {
                "a rule denies some commands, and not all that this line may run could be read"
                    .to_owned()
            }
        }
    }
}
