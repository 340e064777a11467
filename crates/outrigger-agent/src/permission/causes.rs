//! Causes of what a turn does, and limits for tool calls of a turn that a plugin started without the grant for it: such calls may
//! do what the plugin can do itself in its sandbox.

use std::path::Path;

use outrigger_config::Origin;
use outrigger_permissions::approval::UngrantedAction;
use outrigger_plugins::Grant;
use outrigger_protocol::id::PluginId;
use outrigger_protocol::permission_names::{DOOM_LOOP, EXTERNAL_DIRECTORY};
use outrigger_protocol::provenance::{Actor, Cause, Deed, Provenance, SUBTASK};
use outrigger_protocol::turn::CommandCall;
use outrigger_tools::PermissionAsk;

use crate::session::edit;
use crate::state::AgentState;

/// Our own tools that ask for themselves about anything beyond reading the project, or have no effect outside the session. A subagent has
/// the causes of the call that started it.
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
    DOOM_LOOP,
    "edit",
    "write",
    "apply_patch",
];

/// Quiet tools that read the project.
const READING: [&str; 5] = ["read", "glob", "grep", "list", "lsp"];

impl AgentState {
    /// Returns who contributed the agent and the command that a turn begins with, if not the user.
    pub(crate) fn contributions(&self, agent: &str, command: Option<&CommandCall>) -> Provenance {
        let named = [
            ("agent", Some(agent)),
            ("command", command.map(|it| it.name.as_str())),
        ];
        let mut causes = Provenance::default();
        for (key, name) in named {
            let Some(name) = name else { continue };
            for actor in self.contributors(key, name) {
                causes = causes.with(actor, Deed::Contributed, Some(format!("{key} {name}")));
            }
        }
        causes
    }

    /// Returns the plugins whose `config` hooks wrote this entry, or the project whose files did.
    fn contributors(&self, key: &str, name: &str) -> Vec<Actor> {
        let plugins = self.plugins.host.configured_by(key, name);
        if !plugins.is_empty() {
            return plugins.iter().map(Actor::plugin).collect();
        }
        let root = self.project_root();
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
        contributed.then_some(Actor::Project).into_iter().collect()
    }

    /// Returns the folder that commands may write: a worktree of `/` is not a project.
    pub(super) fn project_root(&self) -> &Path {
        let location = &self.project.location;
        match location.worktree.parent() {
            Some(_) => &location.worktree,
            None => &location.directory,
        }
    }

    /// Returns who makes the calls of a model: the plugin that speaks for it, or the model itself.
    pub(crate) fn caller(&self, provider: &str) -> Actor {
        match self.models.speaker(provider) {
            Some(plugin) => Actor::plugin(&PluginId(plugin)),
            None => Actor::Model,
        }
    }

    /// Returns the causes of a prompt that a call sends: the one that made or changed the call without the grant also caused the
    /// prompt.
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

    /// Returns the first plugin that influenced the prompt without the grant and could not do the action itself; `tool` is the
    /// tool that asks, if any.
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
            let foreign = || tool.is_some_and(|tool| !self.tools.runtime.is_ours(tool));
            (!own && (foreign() || self.is_beyond(&plugin, ask))).then_some(lacking)
        })
    }

    /// Like [`Self::prompted_without_grant`], for a request of a plugin to the server: `what` describes it.
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

    /// Returns whether the user must be asked about a call even if the tool itself asks nothing: always if `tool`, which runs, is not
    /// our own, whatever it is called.
    pub(crate) fn is_loud(&self, name: &str, tool: Option<&str>) -> bool {
        !QUIET.contains(&name) || tool.is_some_and(|tool| !self.tools.runtime.is_ours(tool))
    }

    /// Returns whether a plugin without the grant sent one of the prompts.
    pub(crate) fn is_prompted_without_grant(&self, causes: &Provenance) -> bool {
        let mut plugins = causes.plugins_that(Deed::Prompted).into_iter();
        plugins.any(|plugin| self.lacks(&plugin, Grant::Prompt, "").is_some())
    }

    /// Returns whether a plugin could not do the action itself.
    fn is_beyond(&self, plugin: &PluginId, ask: &PermissionAsk) -> bool {
        self.is_beyond_in(&self.project.location.worktree, plugin, ask)
    }

    /// Like [`Self::is_beyond`], for a process that may write this folder.
    pub(super) fn is_beyond_in(
        &self,
        folder: &Path,
        plugin: &PluginId,
        ask: &PermissionAsk,
    ) -> bool {
        let worktree = &self.project.location.worktree;
        let own = || self.plugins.host.plugin_reach(plugin, folder);
        match ask.permission.as_str() {
            reading if READING.contains(&reading) => {
                let is_kept = |it: &String| reading == "read" && self.is_kept_from_plugins(it);
                !own().reads(&self.project.location.directory) || ask.patterns.iter().any(is_kept)
            }
            "skill" => ask.patterns.iter().any(|name| self.has_servers(name)),
            EXTERNAL_DIRECTORY => {
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
            other => self.is_loud(other, None),
        }
    }

    /// Returns whether a pattern of a question about reading names what processes of plugins do not see: a resource of an MCP
    /// server, or a file that the rules of the configuration keep from them. An agent may have wider rules than these.
    fn is_kept_from_plugins(&self, pattern: &str) -> bool {
        if outrigger_mcp_tools::attach::is_resource(pattern) {
            return true;
        }
        let path = self.project.location.worktree.join(pattern);
        let real = path.canonicalize();
        self.is_hidden_from_processes(&path, real.as_deref().unwrap_or(&path))
    }

    /// Returns whether loading a skill starts MCP servers, which run outside of the sandbox of plugins.
    fn has_servers(&self, skill: &str) -> bool {
        let skill = self.catalog.skills.iter().find(|it| it.name == skill);
        skill.is_some_and(|skill| !self.config.skill_servers(skill).0.is_empty())
    }
}
