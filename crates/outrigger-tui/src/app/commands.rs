//! Commands that start with `/`: built in, and those of the project.

use super::App;
use super::history::get;
use crate::render::text::inline;
use crate::render::theme::Role;
use crate::state::actions::Action;
use crate::state::effect::{Effect, Then};
use crate::state::picker::{Item, ListKind};

/// Characters of a session's id in the name of a file, as in OpenCode.
const SHORT_ID: usize = 8;

/// How a command is run.
#[derive(Clone, Copy)]
enum Run {
    /// As the key of this action.
    Act(Action),
    /// Opens a list.
    List(ListKind),
    /// With the words after its name.
    With(fn(&mut App, &str) -> Vec<Effect>),
}

/// A built-in command: name, aliases and description.
struct Own(&'static str, &'static [&'static str], &'static str, Run);

/// Names and aliases are OpenCode's where it has the command.
const OWN: &[Own] = &[
    Own(
        "new",
        &["clear"],
        "start a new session",
        Run::Act(Action::NewSession),
    ),
    Own(
        "sessions",
        &["resume", "continue", "session"],
        "choose, rename or delete a session",
        Run::Act(Action::Sessions),
    ),
    Own(
        "rename",
        &[],
        "give this session another title",
        Run::With(App::rename),
    ),
    Own(
        "export",
        &[],
        "write this conversation to a Markdown file",
        Run::With(App::export),
    ),
    Own(
        "models",
        &["model"],
        "choose a model",
        Run::Act(Action::Models),
    ),
    Own(
        "agents",
        &["agent"],
        "choose an agent",
        Run::Act(Action::Agents),
    ),
    Own(
        "connect",
        &["login"],
        "add a provider of models",
        Run::List(ListKind::Providers),
    ),
    Own(
        "status",
        &[],
        "model, session, MCP and language servers, plugins",
        Run::List(ListKind::Status),
    ),
    Own(
        "mcps",
        &["mcp"],
        "MCP servers: connect or disconnect one",
        Run::List(ListKind::Mcps),
    ),
    Own(
        "plugins",
        &["plugin"],
        "plugins: state, errors, latency, memory",
        Run::Act(Action::Status),
    ),
    Own(
        "timeline",
        &[],
        "go to one of your prompts; fork or revert there",
        Run::Act(Action::Timeline),
    ),
    Own(
        "search",
        &["find"],
        "search the conversation",
        Run::Act(Action::Search),
    ),
    Own(
        "subagents",
        &["children"],
        "open a subagent's conversation",
        Run::Act(Action::Child),
    ),
    Own(
        "parent",
        &["back"],
        "back from a subagent's conversation",
        Run::Act(Action::Parent),
    ),
    Own(
        "editor",
        &[],
        "write the prompt in $VISUAL or $EDITOR",
        Run::Act(Action::Edit),
    ),
    Own(
        "fork",
        &[],
        "work in a copy of the session",
        Run::Act(Action::Fork),
    ),
    Own(
        "undo",
        &[],
        "take the last prompt and its changes back",
        Run::Act(Action::UndoMessage),
    ),
    Own(
        "redo",
        &[],
        "bring them back",
        Run::Act(Action::RedoMessage),
    ),
    Own(
        "compact",
        &["summarize"],
        "summarise the session",
        Run::Act(Action::Compact),
    ),
    Own(
        "thinking",
        &["toggle-thinking"],
        "show or fold the reasoning",
        Run::Act(Action::Thinking),
    ),
    Own(
        "details",
        &[],
        "show tool cards whole or folded",
        Run::Act(Action::Details),
    ),
    Own(
        "themes",
        &["theme"],
        "choose a theme",
        Run::Act(Action::Themes),
    ),
    Own("copy", &[], "copy the last answer", Run::Act(Action::Copy)),
    Own(
        "history",
        &[],
        "search your earlier prompts",
        Run::Act(Action::HistorySearch),
    ),
    Own("commands", &[], "all commands", Run::Act(Action::Commands)),
    Own("help", &[], "the keys", Run::Act(Action::Help)),
    Own("exit", &["quit", "q"], "leave", Run::Act(Action::Exit)),
];

/// Commands of OpenCode that there are not, and why.
const NOT_OURS: &[(&str, &str)] = &[
    (
        "share",
        "conversations stay on this machine; /export writes a file",
    ),
    ("unshare", "conversations stay on this machine"),
    ("timestamps", "each answer ends with how long it took"),
    ("skills", "the model lists and loads skills itself"),
];

impl Own {
    fn is(&self, name: &str) -> bool {
        self.0 == name || self.1.contains(&name)
    }
}

fn own(name: &str) -> Option<&'static Own> {
    OWN.iter().find(|it| it.is(name))
}

impl App {
    /// Lists every command: the built-in ones first.
    pub(crate) fn all_commands(&self) -> Vec<Item> {
        let built_in = OWN
            .iter()
            .map(|Own(name, _, what, _)| Item::new(*name, format!("/{name}"), *what));
        let others = self.commands.iter().filter(|it| own(&it.value).is_none());
        built_in.chain(others.cloned()).collect()
    }

    /// Runs a command.
    pub(crate) fn run_command(&mut self, name: &str, words: &str) -> Vec<Effect> {
        match own(name).map(|it| it.3) {
            Some(Run::Act(Action::Compact)) => self.compact(),
            Some(Run::Act(action)) => self.act(action, 0).unwrap_or_default(),
            Some(Run::List(kind)) => self.open_list(kind),
            Some(Run::With(run)) => run(self, words),
            None if self.commands.iter().any(|it| it.value == name) || !self.is_ready => {
                self.project_command(name, words)
            }
            // Plugins and MCP servers may have contributed it since the list was fetched.
            None => {
                let asked = Then::MaybeCommand(name.to_owned(), words.to_owned());
                vec![get("/command".to_owned(), asked)]
            }
        }
    }

    pub(crate) fn compact(&mut self) -> Vec<Effect> {
        if self.session.is_none() {
            return self.refuse("there is nothing to summarise yet");
        }
        self.project_command("compact", "")
    }

    /// Runs a command of the project that the list did not have before; if there is none, says which one is meant.
    pub(crate) fn maybe_command(&mut self, name: &str, words: &str) -> Vec<Effect> {
        if self.commands.iter().any(|it| it.value == name) {
            return self.project_command(name, words);
        }
        if self.editor.is_empty() {
            self.editor.set(format!("/{name} {words}").trim_end());
        }
        let shown = inline(name);
        if let Some((_, why)) = NOT_OURS.iter().find(|(known, _)| *known == name) {
            return self.refuse(&format!("there is no /{shown}: {why}"));
        }
        let meant = self.nearest_command(name);
        let meant = meant.map_or_else(String::new, |it| format!("; did you mean /{it}?"));
        self.refuse(&format!("there is no /{shown}{meant}; /commands lists all"))
    }

    /// Returns the command whose name begins with this one, or is a slip away from it.
    fn nearest_command(&self, name: &str) -> Option<String> {
        let aliases = OWN.iter().flat_map(|it| it.1.iter().copied());
        let names = OWN.iter().map(|it| it.0).chain(aliases);
        let names: Vec<&str> = names
            .chain(self.commands.iter().map(|it| it.value.as_str()))
            .collect();
        let limit = (name.chars().count() / 3).clamp(1, 4);
        let near = names
            .iter()
            .map(|it| (strsim::osa_distance(name, it), *it))
            .filter(|(distance, _)| *distance <= limit)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, it)| it);
        near.or_else(|| names.iter().copied().find(|it| it.starts_with(name)))
            .map(inline)
    }

    /// Gives the session this title, or offers its title to be changed.
    fn rename(&mut self, title: &str) -> Vec<Effect> {
        let Some(session) = &self.session else {
            return self.refuse("there is no session yet");
        };
        if title.is_empty() {
            self.editor
                .set(format!("/rename {}", inline(&session.title)));
            return Vec::new();
        }
        let id = session.id.to_string();
        vec![super::sessions::retitled(&id, title, Then::Retitled)]
    }

    /// Handles the end of an export.
    pub(crate) fn exported(&mut self, written: Result<String, String>) -> Vec<Effect> {
        match written {
            Ok(path) => self.say(&format!("wrote {}", inline(&path)), Role::Good),
            Err(why) => return self.refuse(&why),
        }
        Vec::new()
    }

    /// Writes the conversation to this file, or to one that is named after the session.
    fn export(&mut self, file: &str) -> Vec<Effect> {
        let Some(session) = &self.session else {
            return self.refuse("there is no session yet");
        };
        let id = session.id.to_string();
        if !self.is_local {
            return self.refuse(&format!(
                "the conversation is at the server: run `outrigger export --format markdown {id}` there"
            ));
        }
        let short: String = id.chars().take(SHORT_ID).collect();
        let file = match file {
            "" => format!("session-{short}.md"),
            file => file.to_owned(),
        };
        vec![Effect::Export { session: id, file }]
    }
}
