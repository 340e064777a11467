//! Responses of the agent.

use outrigger_client::ClientError;
use outrigger_protocol::message::{MessageWithParts, ModelRef};
use outrigger_protocol::permission::PermissionRequest;
use outrigger_protocol::question::QuestionRequest;
use outrigger_protocol::session::{Session, SessionStatus};
use outrigger_protocol::turn::TurnOutcome;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::history::get;
use super::{App, PAGE, lists, sessions};
use crate::render::theme::Role;
use crate::state::effect::{Effect, Then};
use crate::state::picker::{Item, ListKind};

/// The code of the error if no model can be used.
const NO_MODEL: &str = "model.none";

impl App {
    /// Handles a response.
    pub(crate) fn reply(
        &mut self,
        then: Then,
        reply: Result<Value, ClientError>,
        now: u64,
    ) -> Vec<Effect> {
        let value = match reply {
            Ok(value) => value,
            Err(error) => return self.refused(&then, &error),
        };
        match then {
            Then::Nothing | Then::Shell | Then::Undone(_) => {}
            Then::Enter => return self.entered(value),
            Then::Made => return self.made(value),
            Then::Messages(id) => self.messages(&id, value),
            Then::Older(id) => self.older(&id, of(value)),
            Then::Around(id, part) => self.around(&id, &part, of(value)),
            Then::Over(id) => {
                let mut effects = self.over(&id, value);
                // A cancelled turn leaves no question behind.
                if self.asking.shown().is_some() {
                    effects.extend(Self::open_questions());
                }
                return effects;
            }
            Then::Status => {
                let own = self.session.as_ref().map(|it| it.id.to_string());
                let status = own
                    .and_then(|id| value.get(&id).cloned())
                    .and_then(|it| serde_json::from_value(it).ok());
                self.conversation.status = status.or(self.conversation.status.take());
            }
            Then::Permissions => {
                let open: Vec<PermissionRequest> = of(value);
                let ids: Vec<String> = open.iter().map(|it| it.id.to_string()).collect();
                self.asking.keep_open(true, &ids, now);
                open.iter()
                    .for_each(|request| self.ask_permission(request, now));
            }
            Then::Questions => {
                let open: Vec<QuestionRequest> = of(value);
                let ids: Vec<String> = open.iter().map(|it| it.id.to_string()).collect();
                self.asking.keep_open(false, &ids, now);
                open.iter()
                    .for_each(|request| self.ask_question(request, now));
            }
            Then::Granted => {
                self.granted(&value);
                return Self::open_questions();
            }
            Then::Files(before) => {
                let files: Vec<String> = of(value);
                self.found_files(&before, &files);
            }
            Then::Sessions => return self.list_sessions(of(value)),
            list => return self.asked_in_list(list, &value),
        }
        Vec::new()
    }

    /// Handles the response to what a list, or a command, has asked for.
    fn asked_in_list(&mut self, then: Then, value: &Value) -> Vec<Effect> {
        match then {
            Then::MaybeCommand(name, words) => {
                self.commands = lists::commands(value);
                return self.maybe_command(&name, &words);
            }
            Then::Retitled => self.say("the session has its new title", Role::Good),
            Then::RetitledInList => return self.open_list(ListKind::Sessions),
            Then::Deleted(id) => {
                if let Some(picker) = &mut self.picker {
                    picker.remove(&id);
                }
            }
            Then::LoginMethods(provider) => self.offer_login(&provider, value),
            Then::LoggedIn(provider) => return self.logged_in(&provider),
            Then::McpChanged => return self.open_list(ListKind::Mcps),
            list => self.list(&list, value),
        }
        Vec::new()
    }

    fn list(&mut self, list: &Then, value: &Value) {
        match list {
            Then::Found => self.found(value),
            Then::Openings => self.tell_apart(value),
            Then::Config => {
                let model = value["model"].as_str();
                self.usual_model = model.and_then(ModelRef::parse);
            }
            Then::Children => {
                let items = sessions::newest_first(of(value.clone()), (self.clock)());
                if items.is_empty() {
                    self.picker = None;
                    self.say("no subagent was started in this session", Role::Dim);
                }
                self.fill(ListKind::Children, items, None);
            }
            Then::Agents => {
                self.agents = lists::agents(value);
                let now = self.agent.clone();
                self.fill(ListKind::Agents, self.agents.clone(), now.as_deref());
            }
            Then::Models => {
                let models = lists::models(value);
                let name = |(item, _): &(Item, _)| (item.value.clone(), item.label.clone());
                self.conversation
                    .name_models(models.iter().map(name).collect());
                let limits = models
                    .iter()
                    .filter_map(|(item, limit)| Some((item.value.clone(), (*limit)?)));
                self.limits = limits.collect();
                self.has_no_model = models.is_empty();
                let items = models.into_iter().map(|(item, _)| item).collect();
                let now = self
                    .model
                    .as_ref()
                    .map(|it| format!("{}/{}", it.provider_id, it.model_id));
                self.fill(ListKind::Models, items, now.as_deref());
            }
            Then::Commands => {
                self.commands = lists::commands(value);
                self.fill(ListKind::Commands, self.all_commands(), None);
                if self.editor.text().starts_with('/') {
                    self.complete();
                }
            }
            Then::Providers => self.fill(ListKind::Providers, lists::providers(value), None),
            Then::Mcps => self.fill(ListKind::Mcps, lists::mcps(value), None),
            Then::StatusMcps => self.add_status(lists::status_of_mcps(value)),
            Then::StatusLsp => self.add_status(lists::status_of_lsp(value)),
            Then::StatusPlugins => self.add_status(lists::status_of_plugins(value)),
            Then::Plugins => {
                let width = usize::from(self.size.0);
                self.fill(ListKind::Plugins, lists::plugins(value, width), None);
            }
            _ => {}
        }
    }

    /// Requests all open questions.
    pub(crate) fn open_questions() -> Vec<Effect> {
        vec![
            get("/permission".to_owned(), Then::Permissions),
            get("/question".to_owned(), Then::Questions),
        ]
    }

    fn refused(&mut self, then: &Then, error: &ClientError) -> Vec<Effect> {
        match then {
            Then::Over(_) => {
                self.turns = self.turns.saturating_sub(1);
                self.give_back_unstored();
                if error.code() == NO_MODEL && self.conversation.messages() == 0 {
                    return self.drop_empty_session(error);
                }
            }
            Then::Enter => {
                let prompt = self.start.prompt.take();
                self.start = super::Start {
                    prompt,
                    ..super::Start::default()
                };
                self.is_entering = false;
                self.fail(error);
                return self.begins();
            }
            // What was written is not lost.
            Then::Made => {
                self.waiting.clear();
                self.give_back_unstored();
            }
            Then::Undone(undo) => {
                self.undo_refused(undo, error);
                return Vec::new();
            }
            // The question was answered elsewhere.
            Then::Messages(_) => {
                self.since_reload.0 = self.since_reload.0.saturating_sub(1);
            }
            Then::Nothing if error.is_refusal() => {
                self.say(error.message(), Role::Warn);
                return Vec::new();
            }
            Then::Files(_) | Then::Status | Then::Openings | Then::Config => return Vec::new(),
            // It is asked again: nothing was answered.
            Then::Granted => {
                self.say(error.message(), Role::Bad);
                return Self::open_questions();
            }
            _ => self.picker = None,
        }
        self.fail(error);
        Vec::new()
    }

    /// Deletes the session that was created for a prompt that no model could take: it would stay empty.
    fn drop_empty_session(&mut self, error: &ClientError) -> Vec<Effect> {
        let session = self.session.take();
        self.leave_session();
        self.fail(error);
        let path = session.map(|it| format!("/session/{}", it.id));
        let effects = path.map(|path| Effect::Call {
            method: "DELETE",
            path,
            body: None,
            then: Then::Nothing,
        });
        effects.into_iter().collect()
    }

    /// Switches to this session.
    fn entered(&mut self, value: Value) -> Vec<Effect> {
        self.is_entering = false;
        let Ok(session) = serde_json::from_value::<Session>(value) else {
            return self.begins();
        };
        if std::mem::take(&mut self.start.fork) {
            self.session = Some(session);
            return self.fork(None);
        }
        self.leave_session();
        // A subagent's is none that the user has chosen.
        if let Some(agent) = session
            .agent
            .clone()
            .filter(|_| session.parent_id.is_none())
        {
            self.agent = Some(agent);
        }
        let id = session.id.to_string();
        self.conversation.set_root(&session.directory);
        self.session = Some(session);
        let found = self.fetch_found();
        let mut effects = found.unwrap_or_else(|| self.reload());
        effects.push(get("/session/status".to_owned(), Then::Status));
        effects.extend(self.release(&id));
        effects.extend(self.first_prompt());
        effects
    }

    /// There is no session to resume: the waiting prompt starts one.
    fn begins(&mut self) -> Vec<Effect> {
        let mut effects = Vec::new();
        if !self.waiting.is_empty() && self.session.is_none() {
            effects.push(self.make_session());
        }
        effects.extend(self.first_prompt());
        effects
    }

    /// Handles the new session for the first prompt.
    fn made(&mut self, value: Value) -> Vec<Effect> {
        let Ok(session) = serde_json::from_value::<Session>(value) else {
            return Vec::new();
        };
        let id = session.id.to_string();
        self.conversation.set_root(&session.directory);
        self.session = Some(session);
        self.release(&id)
    }

    fn messages(&mut self, id: &str, value: Value) {
        if self.session.as_ref().is_none_or(|it| it.id.as_str() != id) {
            return;
        }
        let mut messages: Vec<MessageWithParts> = of(value);
        self.has_older = messages.len() >= self.conversation.messages().max(PAGE);
        let reverted = self.session.as_ref().and_then(|it| it.revert.as_ref());
        let hidden = reverted.map_or(0, |from| {
            let before = messages.len();
            messages.retain(|it| *it.info.id() < from.message_id);
            before - messages.len()
        });
        for message in &messages {
            self.meter(&message.info);
        }
        self.conversation.replace(messages);
        self.since_reload.0 = self.since_reload.0.saturating_sub(1);
        for event in &self.since_reload.1 {
            self.conversation.on(event);
        }
        if self.since_reload.0 == 0 {
            self.since_reload.1.clear();
        }
        if hidden > 0 {
            let keys = self.keymap.key("messages_redo");
            let text = format!("{hidden} messages are taken back; {keys} brings them back");
            self.conversation.note(text);
        }
    }

    fn over(&mut self, id: &str, value: Value) -> Vec<Effect> {
        self.turns = self.turns.saturating_sub(1);
        if self.session.as_ref().is_none_or(|it| it.id.as_str() != id) {
            return Vec::new();
        }
        if self.turns == 0 {
            self.conversation.status = Some(SessionStatus::Idle);
        }
        let said_no = std::mem::take(&mut self.said_no);
        if said_no && !self.conversation.is_answered() {
            self.conversation
                .note("stopped at your no: say what is to be done instead");
        } else if self.turns == 0 && self.conversation.ends_at_refusal() {
            self.conversation
                .note("stopped: a call was refused; say what is to be done instead");
        }
        match serde_json::from_value(value) {
            Ok(TurnOutcome::Failed { error }) => {
                self.conversation
                    .on(&outrigger_protocol::event::Event::SessionError {
                        session_id: None,
                        error,
                    });
                self.give_back_queued();
            }
            Ok(TurnOutcome::Cancelled) => {
                self.notice = None;
                self.give_back_queued();
            }
            _ if self.turns == 0 => return self.send_queued(),
            _ => {}
        }
        Vec::new()
    }
}

/// Parses a list; skips invalid items.
fn of<T: DeserializeOwned>(value: Value) -> Vec<T> {
    let items = value
        .as_array()
        .cloned()
        .unwrap_or_else(|| vec![json!(null)]);
    items
        .into_iter()
        .filter_map(|it| serde_json::from_value(it).ok())
        .collect()
}
