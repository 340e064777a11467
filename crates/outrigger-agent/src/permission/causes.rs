//! Who caused what a turn does, and what the tool calls of a turn may do that a plugin started without the grant for it: what the
//! plugin may do by itself, in its sandbox.

use std::path::Path;

use outrigger_config::Origin;
use outrigger_permissions::approval::UngrantedAction;
use outrigger_plugins::Grant;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::provenance::{Actor, Cause, Deed, Provenance, SUBTASK};
use outrigger_protocol::turn::CommandCall;
use outrigger_tools::PermissionAsk;

use crate::session::edit;
use crate::state::AgentState;

/// Tools that ask by themselves about what is beyond reading the project, or have no effect outside of the session. A subagent
/// has the causes of the call that started it.
const QUIET: [&str; 15] = [
    "read",
    "glob",
    "grep",
    "list",
    "lsp",
    "todowrite",
    "todoread",
    "task",
    "skill",
    "question",
    "invalid",
    "doom_loop",
    "edit",
    "write",
    "apply_patch",
];

/// Of these, what reads the project.
const READING: [&str; 5] = ["read", "glob", "grep", "list", "lsp"];

impl AgentState {
    /// Who contributed the agent, and the command, that a turn begins with, where the user did not.
    pub(crate) fn contributions(&self, agent: &str, command: Option<&CommandCall>) -> Provenance {
        let named = [
            ("agent", Some(agent)),
            ("command", command.map(|it| it.name.as_str())),
        ];
        let mut causes = Provenance::default();
        for (key, name) in named {
            let Some(name) = name else { continue };
            if let Some(actor) = self.contributor(key, name) {
                causes = causes.with(actor, Deed::Contributed, Some(format!("{key} {name}")));
            }
        }
        causes
    }

    /// The plugin whose `config` hook wrote this entry, or the project, whose files did.
    fn contributor(&self, key: &str, name: &str) -> Option<Actor> {
        if let Some(plugin) = self.plugins.configured_by(key, name) {
            return Some(Actor::plugin(&plugin));
        }
        let place = &self.place;
        let root = match place.worktree.parent() {
            Some(_) => &place.worktree,
            None => &place.directory,
        };
        let entry = format!("/{key}/{}", name.replace('~', "~0").replace('/', "~1"));
        let is_of_it = |at: &String| {
            at.strip_prefix(&entry)
                .is_some_and(|it| it.is_empty() || it.starts_with('/'))
        };
        let mut origins = self.config.origins.range(entry.clone()..);
        let contributed = origins.any(|(at, origin)| {
            let file = match origin {
                Origin::File { path, .. } => Some(path),
                Origin::Env { .. } | Origin::Default => None,
            };
            is_of_it(at) && file.is_some_and(|file| file.starts_with(root))
        });
        contributed.then_some(Actor::Project)
    }

    /// Who makes the calls of a model: the plugin that speaks for it, or it itself.
    pub(crate) fn caller(&self, provider: &str) -> Actor {
        match self.models.speaker(provider) {
            Some(plugin) => Actor::plugin(&PluginId(plugin)),
            None => Actor::Model,
        }
    }

    /// The causes of a prompt that a call sends: who made or changed the call without the grant for it sent the prompt.
    pub(crate) fn causes_of_prompt(&self, causes: &Provenance) -> Provenance {
        let sent = |cause: &Cause| {
            let grant = match cause.did {
                Deed::Changed => Grant::Rewrite,
                Deed::Called => Grant::Model,
                Deed::Prompted | Deed::Contributed | Deed::Answered => return false,
            };
            let plugin = cause.actor.plugin_id();
            plugin.is_some_and(|it| self.lacks(&it, grant, "").is_some())
        };
        let mut prompt = Provenance::default();
        for cause in causes.causes() {
            let did = if sent(cause) {
                Deed::Prompted
            } else {
                cause.did
            };
            prompt.push(Cause {
                did,
                ..cause.clone()
            });
        }
        prompt
    }

    /// The first plugin that had a hand in the prompt without the grant for it, and could not do by itself what is asked about;
    /// `tool` is the one that asks, where one does.
    pub(crate) fn prompted_without_grant(
        &self,
        causes: &Provenance,
        tool: Option<&str>,
        ask: &PermissionAsk,
    ) -> Option<UngrantedAction> {
        let prompted = causes.causes().iter();
        let mut prompted = prompted.filter(|cause| cause.did == Deed::Prompted);
        prompted.find_map(|cause| {
            let plugin = cause.actor.plugin_id()?;
            let what = match cause.what.as_deref() {
                None => "sent the prompt that made the call",
                Some(SUBTASK) => "started the subagent that made the call",
                Some(edit::CHANGED) => "changed a message that the model reads",
                Some(_) => "sent a message that the model reads",
            };
            let lacking = self.lacks(&plugin, Grant::Prompt, what)?;
            let own = tool.is_some_and(|tool| self.owns_tool(&plugin, tool));
            (!own && self.is_beyond(&plugin, ask)).then_some(lacking)
        })
    }

    /// The same of what a plugin asked the server for: `what` it did, in words.
    pub(crate) fn asked_without_grant(
        &self,
        causes: &Provenance,
        what: &str,
        ask: &PermissionAsk,
    ) -> Option<UngrantedAction> {
        let mut plugins = causes.plugins_that(Deed::Prompted).into_iter();
        plugins.find_map(|plugin| {
            let lacking = self.lacks(&plugin, Grant::Prompt, what)?;
            self.is_beyond(&plugin, ask).then_some(lacking)
        })
    }

    /// The same before it is known what the tool asks: whether the user is to be asked about the call though the tool asks
    /// nothing.
    pub(crate) fn is_loud(tool: &str) -> bool {
        !QUIET.contains(&tool)
    }

    /// Whether a plugin could not do by itself what is asked about.
    fn is_beyond(&self, plugin: &PluginId, ask: &PermissionAsk) -> bool {
        let worktree = &self.place.worktree;
        let own = || self.plugins.plugin_reach(plugin, worktree);
        match ask.permission.as_str() {
            reading if READING.contains(&reading) => !own().reads(&self.place.directory),
            "external_directory" => {
                let own = own();
                let folders = ask.patterns.iter().map(|it| it.trim_end_matches('*'));
                !folders.into_iter().all(|it| own.reads(Path::new(it)))
            }
            "edit" => {
                let own = own();
                ask.patterns.is_empty()
                    || !ask.patterns.iter().all(|it| own.writes(&worktree.join(it)))
            }
            "webfetch" => {
                let own = own();
                ask.patterns.is_empty() || !ask.patterns.iter().all(|it| own.connects(it))
            }
            other => Self::is_loud(other),
        }
    }
}
