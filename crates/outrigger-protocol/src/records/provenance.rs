//! Who caused an action, as a short chronological list of causes: the user prompted, a plugin prompted, the model called, a
//! plugin changed the call. It accompanies every turn, prompt, tool call, permission question and answer, and is stored with
//! them. An empty list comes from an older log.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::PluginId;
use crate::tagged::tagged;

/// Maximum number of causes of one action, not counting one of each kind by an unknown plugin. More than this is one plugin's
/// noise.
const MAX_CAUSES: usize = 32;

/// The name of a plugin of which only the shared process is known. It has no grants.
pub const UNKNOWN_PLUGIN: &str = "(one of several)";

/// The object of a plugin's prompt if its hook added or changed the message part that starts a subagent.
pub const SUBTASK: &str = "a subtask";

/// Prefix of a contributed tool that has the name of a bundled one.
const TOOL: &str = "tool ";

/// The actor.
#[tagged("by")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Actor {
    /// The user of this program.
    User,
    /// A program that acts for the user over the API.
    Client,
    /// A configured model.
    Model,
    /// Files of the project.
    Project,
    /// A plugin, or the one that it hosts (C8).
    Plugin {
        /// The plugin that the user named.
        #[serde(rename = "topPluginId")]
        top: PluginId,
        /// The hosted plugin that acted.
        #[serde(
            default,
            rename = "subPluginId",
            skip_serializing_if = "Option::is_none"
        )]
        sub: Option<PluginId>,
    },
}

impl Actor {
    /// Creates the actor for a plugin's identifier.
    #[must_use]
    pub fn plugin(id: &PluginId) -> Self {
        let (top, sub) = id.split();
        Self::Plugin { top, sub }
    }

    /// Returns the identifier, if it is a plugin.
    #[must_use]
    pub fn plugin_id(&self) -> Option<PluginId> {
        match self {
            Self::Plugin { top, sub: None } => Some(top.clone()),
            Self::Plugin {
                top,
                sub: Some(sub),
            } => Some(PluginId(format!("{top}>{sub}"))),
            _ => None,
        }
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::User => f.write_str("user"),
            Self::Client => f.write_str("client"),
            Self::Model => f.write_str("model"),
            Self::Project => f.write_str("project"),
            Self::Plugin { top, sub: None } => write!(f, "plugin {top}"),
            Self::Plugin {
                top,
                sub: Some(sub),
            } => write!(f, "plugin {top}/{sub}"),
        }
    }
}

/// An actor's part in an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Deed {
    /// Sent the prompt, or continued the turn.
    Prompted,
    /// Contributed the agent, command or server in use.
    Contributed,
    /// Was the model that made the call.
    Called,
    /// Changed the call.
    Changed,
    /// Answered the permission question.
    Answered,
}

impl fmt::Display for Deed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Prompted => "prompted",
            Self::Contributed => "contributed",
            Self::Called => "called",
            Self::Changed => "changed",
            Self::Answered => "answered",
        })
    }
}

/// One cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// The actor.
    #[serde(flatten)]
    pub actor: Actor,
    /// Its part.
    pub did: Deed,
    /// The object, if not the action itself: `agent NAME`, `command NAME`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
}

impl Cause {
    fn is_tool(&self) -> bool {
        let what = self.what.as_deref().unwrap_or_default();
        self.did == Deed::Contributed && what.starts_with(TOOL)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.actor, self.did)?;
        match &self.what {
            Some(what) => write!(f, " {what}"),
            None => Ok(()),
        }
    }
}

/// The causes of an action, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Provenance(Vec<Cause>);

impl Provenance {
    /// Creates the provenance of an actor's prompt.
    #[must_use]
    pub fn prompted(by: Actor) -> Self {
        Self::default().with(by, Deed::Prompted, None)
    }

    /// Returns it with another cause.
    #[must_use]
    pub fn with(mut self, actor: Actor, did: Deed, what: Option<String>) -> Self {
        self.push(Cause { actor, did, what });
        self
    }

    /// Adds a cause, once. If the list is full, a plugin's part is attributed to an unknown plugin, which has no grants: a
    /// plugin cannot remove a cause by adding more.
    pub fn push(&mut self, cause: Cause) {
        if self.0.contains(&cause) {
            return;
        }
        if self.0.len() < MAX_CAUSES {
            self.0.push(cause);
            return;
        }
        let unknown = Cause {
            actor: Actor::plugin(&UNKNOWN_PLUGIN.into()),
            did: cause.did,
            what: None,
        };
        if cause.actor.plugin_id().is_some() && !self.0.contains(&unknown) {
            self.0.push(unknown);
        }
    }

    /// Adds further causes.
    pub fn extend(&mut self, more: Self) {
        for cause in more.0 {
            self.push(cause);
        }
    }

    /// Returns the causes in order.
    #[must_use]
    pub fn causes(&self) -> &[Cause] {
        &self.0
    }

    /// Returns whether it is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds that a plugin's tool replaced a bundled one in the call.
    #[must_use]
    pub fn by_replaced_tool(self, plugin: &PluginId, tool: &str) -> Self {
        let what = Some(format!("{TOOL}{tool}"));
        self.with(Actor::plugin(plugin), Deed::Contributed, what)
    }

    /// Returns the plugin whose tool replaces a bundled one.
    #[must_use]
    pub fn replaced_tool_of(&self) -> Option<PluginId> {
        self.0
            .iter()
            .find(|cause| cause.is_tool())
            .and_then(|cause| cause.actor.plugin_id())
    }

    /// Returns whether only the user, a client and a configured model caused it, apart from who contributed the agent or the
    /// command. OpenCode's clients then see no provenance.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let plain = |cause: &Cause| {
            let usual = matches!(cause.actor, Actor::User | Actor::Client | Actor::Model);
            usual || (cause.did == Deed::Contributed && !cause.is_tool())
        };
        self.0.iter().all(plain)
    }

    /// Returns the part that plugins prompted.
    #[must_use]
    pub fn prompted_by_plugins(&self) -> Self {
        let causes = self.0.iter();
        let of_plugins =
            causes.filter(|it| it.did == Deed::Prompted && it.actor.plugin_id().is_some());
        Self(of_plugins.cloned().collect())
    }

    /// Returns the plugins with this part, each once.
    #[must_use]
    pub fn plugins_that(&self, did: Deed) -> Vec<PluginId> {
        let mut plugins: Vec<PluginId> = Vec::new();
        for cause in self.0.iter().filter(|cause| cause.did == did) {
            if let Some(id) = cause.actor.plugin_id().filter(|id| !plugins.contains(id)) {
                plugins.push(id);
            }
        }
        plugins
    }
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, cause) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{cause}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn causes_have_the_names_of_the_requirement_and_survive_a_round_trip() {
        let mut causes = Provenance::prompted(Actor::User)
            .with(
                Actor::plugin(&"omo>inner".into()),
                Deed::Contributed,
                Some("agent sisyphus".into()),
            )
            .with(Actor::Model, Deed::Called, None);
        causes.push(causes.causes()[0].clone());
        assert_eq!(
            json!(causes),
            json!([
                { "by": "user", "did": "prompted" },
                { "by": "plugin", "topPluginId": "omo", "subPluginId": "inner", "did": "contributed", "what": "agent sisyphus" },
                { "by": "model", "did": "called" },
            ])
        );
        let again: Provenance = serde_json::from_value(json!(causes)).unwrap();
        assert_eq!(again, causes);
        assert_eq!(
            causes.to_string(),
            "user prompted, plugin omo/inner contributed agent sisyphus, model called"
        );
        let who = causes.plugins_that(Deed::Contributed);
        assert_eq!(who, ["omo>inner".into()]);
        // Contributing the agent is not an action.
        assert!(causes.is_plain());
        let changed = causes.with(Actor::plugin(&"omo".into()), Deed::Changed, None);
        assert!(!changed.is_plain());
        assert!(Provenance::prompted(Actor::Client).is_plain());
        // A tool that shadows another one is.
        let replaced = Provenance::prompted(Actor::User).by_replaced_tool(&"omo".into(), "edit");
        assert!(!replaced.is_plain());
        assert_eq!(replaced.replaced_tool_of(), Some("omo".into()));
    }

    #[test]
    fn the_list_stays_short() {
        let mut causes = Provenance::default();
        for n in 0..100 {
            let plugin = Actor::plugin(&PluginId(format!("p{n}")));
            causes = causes.with(plugin, Deed::Changed, None);
        }
        assert_eq!(causes.causes().len(), MAX_CAUSES + 1);
        let rest = causes.plugins_that(Deed::Changed);
        assert_eq!(rest.last(), Some(&UNKNOWN_PLUGIN.into()));
    }
}
