//! Who caused an action, as a short list of causes in the order in which they came: the user prompted, a plugin prompted, the
//! model called, a plugin changed the call. It goes with every turn, prompt, tool call, permission question and answer, and is
//! stored with them. An empty list is of a log that was written before there were any.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::PluginId;

/// Limit of causes of one action, not counting one of each kind by an unknown plugin. More than this is one plugin's
/// noise.
const MAX_CAUSES: usize = 32;

/// What a plugin is called of which only the process is known, which it shares with others. None of these has grants.
pub const UNKNOWN_PLUGIN: &str = "(one of several)";

/// What a plugin prompted whose hook added or changed the part of a message that starts a subagent.
pub const SUBTASK: &str = "a subtask";

/// How it begins what a plugin contributed whose tool has the name of a bundled one.
const TOOL: &str = "tool ";

/// Who acts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", rename_all = "lowercase")]
pub enum Actor {
    /// The person at this program.
    User,
    /// A program that speaks for the user over the API.
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
        /// The plugin behind it that acted.
        #[serde(
            default,
            rename = "subPluginId",
            skip_serializing_if = "Option::is_none"
        )]
        sub: Option<PluginId>,
    },
}

impl Actor {
    /// The plugin of this identifier.
    #[must_use]
    pub fn plugin(id: &PluginId) -> Self {
        let (top, sub) = id.split();
        Self::Plugin { top, sub }
    }

    /// The identifier of the plugin, where it is one.
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

/// What somebody did to bring an action about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Deed {
    /// Sent the prompt, or had the turn go on.
    Prompted,
    /// Contributed the agent, command or server that is used.
    Contributed,
    /// Was the model that made the call.
    Called,
    /// Changed the call.
    Changed,
    /// Answered the question whether it may be made.
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
    /// Who.
    #[serde(flatten)]
    pub actor: Actor,
    /// What it did.
    pub did: Deed,
    /// To what, where that is not the action itself: `agent NAME`, `command NAME`.
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

/// The causes of an action, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Provenance(Vec<Cause>);

impl Provenance {
    /// What somebody prompted.
    #[must_use]
    pub fn prompted(by: Actor) -> Self {
        Self::default().with(by, Deed::Prompted, None)
    }

    /// The same with one cause more.
    #[must_use]
    pub fn with(mut self, actor: Actor, did: Deed, what: Option<String>) -> Self {
        self.push(Cause { actor, did, what });
        self
    }

    /// Adds a cause, once. Where the list is full, what a plugin did counts as done by one that nobody knows, which has no
    /// grants: a plugin does not get rid of a cause by causing more.
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

    /// Adds what else caused it.
    pub fn extend(&mut self, more: Self) {
        for cause in more.0 {
            self.push(cause);
        }
    }

    /// In order.
    #[must_use]
    pub fn causes(&self) -> &[Cause] {
        &self.0
    }

    /// Nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same of a call of a plugin's tool that took the place of a bundled one.
    #[must_use]
    pub fn by_replaced_tool(self, plugin: &PluginId, tool: &str) -> Self {
        let what = Some(format!("{TOOL}{tool}"));
        self.with(Actor::plugin(plugin), Deed::Contributed, what)
    }

    /// The plugin whose tool is called in the place of a bundled one.
    #[must_use]
    pub fn replaced_tool_of(&self) -> Option<PluginId> {
        let tool = self.0.iter().find(|cause| cause.is_tool());
        tool.and_then(|cause| cause.actor.plugin_id())
    }

    /// Caused by the user, a client and a configured model only, apart from who contributed the agent or the command.
    /// What clients of OpenCode read says nothing of it then.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let plain = |cause: &Cause| {
            let usual = matches!(cause.actor, Actor::User | Actor::Client | Actor::Model);
            usual || (cause.did == Deed::Contributed && !cause.is_tool())
        };
        self.0.iter().all(plain)
    }

    /// What of it plugins prompted.
    #[must_use]
    pub fn prompted_by_plugins(&self) -> Self {
        let causes = self.0.iter();
        let of_plugins =
            causes.filter(|it| it.did == Deed::Prompted && it.actor.plugin_id().is_some());
        Self(of_plugins.cloned().collect())
    }

    /// The plugins that did this, each once.
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
        // A tool that is shown as another one's is.
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
