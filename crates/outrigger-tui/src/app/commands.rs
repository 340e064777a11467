//! Commands that start with `/`: built in, and those of the project.

use super::App;
use crate::state::actions::Action;
use crate::state::effect::Effect;
use crate::state::picker::Item;

/// Name, aliases, description and action.
const OWN: &[(&str, &[&str], &str, Action)] = &[
    ("new", &["clear"], "a new session", Action::NewSession),
    (
        "sessions",
        &["resume", "continue"],
        "choose a session",
        Action::Sessions,
    ),
    ("models", &["model"], "choose a model", Action::Models),
    ("agents", &["agent"], "choose an agent", Action::Agents),
    (
        "timeline",
        &[],
        "go to one of your prompts; fork or revert there",
        Action::Timeline,
    ),
    (
        "search",
        &["find"],
        "search the conversation",
        Action::Search,
    ),
    (
        "subagents",
        &["children"],
        "open the conversation of a subagent",
        Action::Child,
    ),
    (
        "parent",
        &["back"],
        "back from a subagent's conversation",
        Action::Parent,
    ),
    (
        "editor",
        &[],
        "write the prompt in $VISUAL or $EDITOR",
        Action::Edit,
    ),
    ("fork", &[], "work in a copy of the session", Action::Fork),
    (
        "undo",
        &[],
        "take the last prompt and its changes back",
        Action::UndoMessage,
    ),
    ("redo", &[], "bring them back", Action::RedoMessage),
    (
        "plugins",
        &["status"],
        "plugins: state, breakers, latency, memory",
        Action::Status,
    ),
    (
        "thinking",
        &[],
        "show or fold the reasoning",
        Action::Thinking,
    ),
    (
        "details",
        &[],
        "show tool cards whole or folded",
        Action::Details,
    ),
    ("themes", &["theme"], "choose a theme", Action::Themes),
    ("copy", &[], "copy the last answer", Action::Copy),
    (
        "history",
        &[],
        "search your earlier prompts",
        Action::HistorySearch,
    ),
    ("help", &[], "the keys", Action::Help),
    ("exit", &["quit", "q"], "leave", Action::Exit),
];

impl App {
    /// Lists every command, by name.
    pub(crate) fn all_commands(&self) -> Vec<Item> {
        let own = OWN
            .iter()
            .map(|(name, _, what, _)| Item::new(*name, format!("/{name}"), *what));
        let compact = Item::new("compact", "/compact", "summarise the session");
        let is_own = |it: &&Item| {
            !OWN.iter()
                .any(|(name, others, ..)| *name == it.value || others.contains(&it.value.as_str()))
        };
        own.chain([compact])
            .chain(self.commands.iter().filter(is_own).cloned())
            .collect()
    }

    /// Runs a command.
    pub(crate) fn run_command(&mut self, name: &str, words: &str) -> Vec<Effect> {
        let own = OWN
            .iter()
            .find(|(own, others, ..)| *own == name || others.contains(&name));
        match own {
            Some((.., action)) => self.act(*action, 0).unwrap_or_default(),
            None if name == "compact" && self.session.is_none() => {
                self.refuse("there is nothing to summarise yet")
            }
            None => self.project_command(name, words),
        }
    }
}
