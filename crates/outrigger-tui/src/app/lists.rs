//! Selection lists: their contents, and the effect of a choice.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use outrigger_protocol::message::ModelRef;
use serde_json::Value;

mod connect;
mod plugins;
mod servers;

use super::history::get;
use super::{App, sessions};
use crate::render::text::inline;
use crate::render::theme::Theme;
use crate::state::actions::TABLE;
use crate::state::editor::To;
use crate::state::effect::{Effect, Then};
use crate::state::picker::{Item, ListKind, Picker};

/// Maximum number of lines that are searched.
const MAX_LINES: usize = 50_000;
/// Number of lines that a page key moves.
const PAGE: isize = 10;

pub(crate) use connect::providers;
pub(crate) use plugins::plugins;
pub(crate) use servers::{mcps, status_of_lsp, status_of_mcps, status_of_plugins};

impl App {
    /// Opens a list and requests its contents.
    pub(crate) fn open_list(&mut self, kind: ListKind) -> Vec<Effect> {
        let fetched = match kind {
            ListKind::Sessions => Some(("Sessions", "/session?roots=true", Then::Sessions)),
            ListKind::Models => Some(("Models", "/config/providers", Then::Models)),
            ListKind::Agents => Some(("Agents", "/agent", Then::Agents)),
            ListKind::Plugins => Some(("Plugins", "/outrigger/plugin", Then::Plugins)),
            ListKind::Providers => Some(("Add a provider", "/provider", Then::Providers)),
            ListKind::Mcps => Some(("MCP servers", "/mcp", Then::Mcps)),
            _ => None,
        };
        match kind {
            ListKind::Children => return self.open_children(),
            ListKind::Status => return self.open_status(),
            _ => {}
        }
        if let Some((title, path, then)) = fetched {
            if !self.is_ready {
                return self.refuse("the agent is still starting");
            }
            self.picker = Some(Picker::loading(kind, title));
            return vec![get(path.to_owned(), then)];
        }
        self.picker = Some(match kind {
            ListKind::Themes => self.themes(),
            ListKind::Commands => Picker::new(kind, "Commands", self.all_commands()),
            ListKind::Timeline => self.timeline(),
            ListKind::Search => self.search(),
            ListKind::History => {
                let items = self
                    .history
                    .iter()
                    .rev()
                    .map(|it| Item::new(it, inline(it), ""))
                    .collect();
                Picker::new(kind, "Earlier prompts", items)
            }
            _ => self.help(),
        });
        match kind {
            ListKind::Commands if self.commands.is_empty() && self.is_ready => {
                vec![get("/command".to_owned(), Then::Commands)]
            }
            _ => Vec::new(),
        }
    }

    /// Opens the list of this session's subagent conversations.
    fn open_children(&mut self) -> Vec<Effect> {
        let Some(session) = &self.session else {
            return self.refuse("there is no session yet");
        };
        let path = format!("/session/{}/children", session.id);
        self.picker = Some(Picker::loading(ListKind::Children, "Subagents"));
        vec![get(path, Then::Children)]
    }

    /// Lists the lines in memory, newest first.
    fn search(&self) -> Picker {
        let lines = self.conversation.lines();
        let mut items: Vec<Item> = lines
            .map(|(block, line)| Item::new(block, inline(&line), ""))
            .collect();
        items.reverse();
        items.truncate(MAX_LINES);
        Picker::new(ListKind::Search, "Search", items)
    }

    fn timeline(&self) -> Picker {
        let prompts = self
            .conversation
            .prompts()
            .map(|(id, text)| Item::new(id.as_str(), inline(text), ""));
        let mut picker = Picker::new(ListKind::Timeline, "Timeline", prompts.collect());
        picker.step(isize::MAX);
        picker
    }

    fn help(&self) -> Picker {
        let keys = TABLE
            .iter()
            .map(|(name, _, _, what)| Item::new(*name, *what, self.keymap.keys(name)));
        Picker::new(ListKind::Help, "Keys", keys.collect())
    }

    /// Handles a key in the open list.
    pub(crate) fn list_key(&mut self, key: KeyEvent) -> Vec<Effect> {
        let Some(picker) = &mut self.picker else {
            return Vec::new();
        };
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if picker.kind == ListKind::Sessions
            && let Some(effects) = self.change_session(key)
        {
            return effects;
        }
        let Some(picker) = &mut self.picker else {
            return Vec::new();
        };
        match key.code {
            KeyCode::Esc => self.picker = None,
            KeyCode::Char('c' | 'd') if control => self.picker = None,
            KeyCode::Up => picker.step(-1),
            KeyCode::Char('p' | 'k') if control => picker.step(-1),
            KeyCode::Down => picker.step(1),
            KeyCode::Char('n' | 'j') if control => picker.step(1),
            KeyCode::PageUp => picker.step(-PAGE),
            KeyCode::PageDown => picker.step(PAGE),
            KeyCode::Home => picker.step(isize::MIN),
            KeyCode::End => picker.step(isize::MAX),
            KeyCode::Backspace => {
                picker.filter.delete(To::Left);
                picker.narrow();
            }
            KeyCode::Char('u' | 'w') if control => {
                picker.filter.take();
                picker.narrow();
            }
            KeyCode::Tab if picker.kind == ListKind::Search => return self.search_all(),
            KeyCode::Enter => return self.choose(),
            KeyCode::Char(c) if !control => {
                picker.filter.insert(c.encode_utf8(&mut [0; 4]));
                picker.narrow();
            }
            _ => {}
        }
        Vec::new()
    }

    fn choose(&mut self) -> Vec<Effect> {
        let Some(picker) = self.picker.take() else {
            return Vec::new();
        };
        if picker.kind.is_typed() {
            return self.typed(&picker);
        }
        let Some(chosen) = picker.chosen().map(|it| it.value.clone()) else {
            return Vec::new();
        };
        match picker.kind {
            ListKind::Sessions | ListKind::Children => {
                let path = format!("/session/{}", outrigger_client::encoded(&chosen));
                return vec![get(path, Then::Enter)];
            }
            ListKind::Search => return self.go_to_line(&chosen, picker.filter.text()),
            ListKind::Found => return self.go_to_found(&chosen),
            ListKind::Models => self.model = ModelRef::parse(&chosen),
            ListKind::Agents => self.agent = Some(chosen),
            ListKind::Commands => return self.run_command(&chosen, ""),
            ListKind::Themes => {
                self.theme = Theme::new(&chosen, self.theme.depth());
                return vec![Effect::KeepTheme(self.theme.name())];
            }
            ListKind::Timeline => {
                let block = self
                    .conversation
                    .blocks()
                    .iter()
                    .find(|it| it.message.as_str() == chosen);
                if let Some(id) = block.map(|it| it.id.clone()) {
                    self.scroll.to(&id);
                }
                self.chosen_prompt = Some(chosen);
                let items = vec![
                    Item::new("stay", "go there", ""),
                    Item::new("fork", "fork", "go on in a copy that ends before it"),
                    Item::new(
                        "revert",
                        "revert",
                        "take it back with all that came after, and its changes of files",
                    ),
                ];
                self.picker = Some(Picker::new(ListKind::Prompt, "This prompt", items));
            }
            ListKind::Prompt => return self.prompt_choice(&chosen),
            ListKind::ForceUndo => return self.force_undo(&chosen),
            ListKind::History => self.editor.set(chosen),
            ListKind::Providers => return Self::login_methods(&chosen),
            ListKind::LoginMethods => self.login_by(&chosen, picker.subject.as_deref()),
            ListKind::Mcps => return self.switch_mcp(&chosen),
            ListKind::Status => return self.run_command(&chosen, ""),
            ListKind::Plugins | ListKind::Help | ListKind::Rename | ListKind::Key => {}
        }
        Vec::new()
    }

    /// Handles a text that was typed instead of a choice.
    fn typed(&mut self, picker: &Picker) -> Vec<Effect> {
        let text = picker.filter.text().trim();
        let Some(subject) = picker.subject.as_deref().filter(|_| !text.is_empty()) else {
            return Vec::new();
        };
        match picker.kind {
            ListKind::Rename => vec![sessions::retitled(subject, text, Then::RetitledInList)],
            _ => Self::store_key(subject, text),
        }
    }

    fn prompt_choice(&mut self, choice: &str) -> Vec<Effect> {
        let Some(message) = self.chosen_prompt.take() else {
            return Vec::new();
        };
        let text = self
            .conversation
            .prompts()
            .find(|(id, _)| id.as_str() == message);
        let text = text.map(|(_, text)| text.to_owned()).unwrap_or_default();
        match choice {
            "fork" => {
                self.editor.set(text);
                self.fork(Some(&message))
            }
            "revert" => {
                self.editor.set(text);
                self.revert(&message)
            }
            _ => Vec::new(),
        }
    }

    /// Fills a list after its contents have arrived.
    pub(crate) fn fill(&mut self, kind: ListKind, items: Vec<Item>, marked: Option<&str>) {
        if let Some(picker) = self.picker.as_mut().filter(|it| it.kind == kind) {
            picker.fill(items);
            if let Some(marked) = marked {
                picker.mark(marked);
            }
        }
    }
}

/// Returns the agents that answer users.
pub(crate) fn agents(all: &Value) -> Vec<Item> {
    let shown = |it: &&Value| it["mode"] != "subagent" && it["hidden"] != true;
    all.as_array()
        .into_iter()
        .flatten()
        .filter(shown)
        .map(|it| {
            let field = |key: &str| inline(it[key].as_str().unwrap_or_default());
            Item::new(field("name"), field("name"), field("description"))
        })
        .collect()
}

/// Returns models by provider, with their context sizes in tokens.
pub(crate) fn models(all: &Value) -> Vec<(Item, Option<u64>)> {
    let mut models = Vec::new();
    for provider in all["providers"].as_array().into_iter().flatten() {
        let id = provider["id"].as_str().unwrap_or_default();
        for (name, model) in provider["models"].as_object().into_iter().flatten() {
            let value = format!("{id}/{name}");
            let label = inline(model["name"].as_str().unwrap_or(name));
            let context = model["limit"]["context"].as_u64().filter(|it| *it > 0);
            models.push((Item::new(&value, label, inline(&value)), context));
        }
    }
    models
}

/// Returns commands of the project.
pub(crate) fn commands(all: &Value) -> Vec<Item> {
    all.as_array()
        .into_iter()
        .flatten()
        .map(|it| {
            let field = |key: &str| inline(it[key].as_str().unwrap_or_default());
            Item::new(
                field("name"),
                format!("/{}", field("name")),
                field("description"),
            )
        })
        .collect()
}
