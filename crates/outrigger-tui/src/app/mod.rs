//! The state of the interface and its transitions: [`App::update`] takes an input and returns effects.
//!
//! Nothing here asks, waits, reads or writes.

mod act;
mod attach;
mod commands;
mod found;
mod history;
#[cfg(test)]
mod history_tests;
mod lists;
mod prompt;
#[cfg(test)]
mod prompt_tests;
mod questions;
mod replies;
#[cfg(test)]
mod tests;
mod undo;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::{MessageInfo, ModelRef};
use outrigger_protocol::session::{Session, SessionStatus};
use outrigger_protocol::turn::TurnBody;

use crate::render::theme::{Role, Theme};
use crate::state::asking::Asking;
use crate::state::attachments::Attachments;
use crate::state::conversation::Conversation;
use crate::state::editor::Editor;
use crate::state::effect::{Effect, Input, Start, Then, Undo};
use crate::state::keys::Keymap;
use crate::state::layout::{Scroll, Shape};
use crate::state::picker::{Completion, Item, Picker};
use crate::state::vi::{Mode, Vi};

/// Number of messages loaded at first.
const PAGE: usize = 60;
/// Maximum number of blocks kept while the end is shown: what is above can be reloaded.
const MAX_BLOCKS: usize = 4000;
/// How long after the first key a second one quits, in milliseconds.
const DOUBLE_PRESS_WINDOW_MS: u64 = 2000;

/// Settings that do not change while the interface is open.
#[derive(Clone, Debug)]
pub struct Options {
    /// Colours.
    pub theme: Theme,
    /// Changed key bindings, by action.
    pub keys: BTreeMap<String, String>,
    /// The prompt has vi key bindings.
    pub vi: bool,
    /// The folder, as displayed.
    pub folder: String,
    /// The agent runs in this process: all its questions are for this user, who can grant them.
    pub is_local: bool,
    /// The initial agent.
    pub agent: Option<String>,
    /// The initial model.
    pub model: Option<ModelRef>,
    /// Earlier prompts, oldest first.
    pub history: Vec<String>,
}

/// A prompt waiting for its session to be created.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum PendingInput {
    Turn(Box<TurnBody>),
    Shell(String),
}

/// The interface.
#[derive(Debug)]
pub struct App {
    pub(crate) keymap: Keymap,
    pub(crate) theme: Theme,
    pub(crate) folder: String,
    pub(crate) is_local: bool,
    /// Columns and rows.
    pub(crate) size: (u16, u16),
    pub(crate) editor: Editor,
    pub(crate) history: Vec<String>,
    /// The recalled prompt in the editor, and the text before.
    pub(crate) recalled: Option<(usize, String)>,
    /// Files selected with `@`.
    pub(crate) attached: Vec<String>,
    /// Pasted texts and images whose marks are in the editor.
    pub(crate) attachments: Attachments,
    /// Prompts that wait for the end of the turn.
    pub(crate) queued: VecDeque<String>,
    /// The prompt that was sent, until the agent has stored it.
    pub(crate) unstored: Option<String>,
    pub(crate) vi: Option<Vi>,
    pub(crate) leader: bool,
    pub(crate) conversation: Conversation,
    pub(crate) scroll: Scroll,
    pub(crate) details: bool,
    pub(crate) thinking: bool,
    pub(crate) session: Option<Session>,
    /// Sessions of subagents of this one.
    pub(crate) children: HashSet<SessionId>,
    pub(crate) waiting: Vec<PendingInput>,
    pub(crate) is_ready: bool,
    /// The session to resume is being determined.
    pub(crate) is_entering: bool,
    pub(crate) progress: String,
    pub(crate) notice: Option<(String, Role)>,
    pub(crate) picker: Option<Picker>,
    pub(crate) completion: Option<Completion>,
    pub(crate) asking: Asking,
    pub(crate) agents: Vec<Item>,
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<ModelRef>,
    /// Context sizes in tokens, by `provider/model`.
    pub(crate) limits: HashMap<String, u64>,
    /// No model can be used.
    pub(crate) has_no_model: bool,
    pub(crate) commands: Vec<Item>,
    /// Tokens of the last request, and its model.
    pub(crate) context: Option<(u64, String)>,
    /// Turns that were requested and have not ended.
    pub(crate) turns: usize,
    pub(crate) has_older: bool,
    /// The newest messages are not in memory.
    pub(crate) has_newer: bool,
    /// Deadline for a second Ctrl-C to quit.
    pub(crate) leaves_until: u64,
    /// The search in all conversations.
    pub(crate) sought: found::Sought,
    /// The prompt selected in the timeline.
    pub(crate) chosen_prompt: Option<String>,
    /// An undo that was refused; the user is asked whether to force it.
    refused_undo: Option<Undo>,
    pub(crate) start: Start,
}

impl App {
    /// Creates the interface before there is an agent.
    #[must_use]
    pub fn new(options: Options, size: (u16, u16)) -> Self {
        let (keymap, problems) = Keymap::new(&options.keys);
        let notice = problems
            .first()
            .map(|it| (format!("outrigger.toml: {it}"), Role::Bad));
        Self {
            keymap,
            theme: options.theme,
            folder: options.folder,
            is_local: options.is_local,
            size,
            editor: Editor::default(),
            history: options.history,
            recalled: None,
            attached: Vec::new(),
            attachments: Attachments::default(),
            queued: VecDeque::new(),
            unstored: None,
            vi: options.vi.then(Vi::default),
            leader: false,
            conversation: Conversation::default(),
            scroll: Scroll::default(),
            details: false,
            thinking: false,
            session: None,
            children: HashSet::new(),
            waiting: Vec::new(),
            is_ready: false,
            is_entering: false,
            progress: "starting".to_owned(),
            notice,
            picker: None,
            completion: None,
            asking: Asking::default(),
            agents: Vec::new(),
            agent: options.agent,
            model: options.model,
            limits: HashMap::new(),
            has_no_model: false,
            commands: Vec::new(),
            context: None,
            turns: 0,
            has_older: false,
            has_newer: false,
            leaves_until: 0,
            sought: found::Sought::default(),
            chosen_prompt: None,
            refused_undo: None,
            start: Start::default(),
        }
    }

    /// Handles an input at a time in milliseconds of any clock; returns the effects.
    pub fn update(&mut self, input: Input, now: u64) -> Vec<Effect> {
        match input {
            Input::Key(key) if key.kind == KeyEventKind::Release => Vec::new(),
            Input::Key(key) => self.key(key, now),
            Input::Paste(text) => self.paste(&text, now),
            Input::Image(pasted, image) => {
                self.image(&pasted, image);
                Vec::new()
            }
            Input::Edited(text) => {
                self.edited(text);
                Vec::new()
            }
            Input::Click(_, row) => {
                self.toggle_at(row);
                Vec::new()
            }
            Input::Wheel(rows) => self.scroll_by(rows),
            Input::Resize(columns, rows) => {
                self.size = (columns, rows);
                Vec::new()
            }
            Input::Ready(start) => self.ready(start),
            Input::Failed(error) => {
                self.progress.clear();
                self.fail(&error);
                Vec::new()
            }
            Input::Progress(text) => {
                self.progress = text;
                Vec::new()
            }
            Input::Ask(ask) => {
                self.asking
                    .ask(crate::state::asking::Dialog::Start(Box::new(ask)), now);
                Vec::new()
            }
            Input::Bus(event) => self.bus(&event, now),
            Input::Gap => self.reload(),
            Input::Gone => {
                self.notice = Some((
                    "lost the connection to the server; the conversation is saved".to_owned(),
                    Role::Bad,
                ));
                self.turns = 0;
                Vec::new()
            }
            Input::Reply(then, reply) => self.reply(then, reply, now),
            Input::Notice(text) => {
                self.say(&text, Role::Warn);
                Vec::new()
            }
        }
    }

    /// Returns whether a turn runs.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.turns > 0
            || matches!(
                self.conversation.status,
                Some(SessionStatus::Busy | SessionStatus::Retry { .. })
            )
    }

    /// Returns what determines the layout of the conversation.
    #[must_use]
    pub fn shape(&self) -> Shape {
        Shape {
            width: usize::from(self.size.0).saturating_sub(2).max(10),
            theme: self.theme,
            details: self.details,
            thinking: self.thinking,
        }
    }

    pub(crate) fn say(&mut self, text: &str, role: Role) {
        self.notice = Some((text.to_owned(), role));
    }

    pub(crate) fn fail(&mut self, error: &outrigger_client::ClientError) {
        let hint = error
            .hint()
            .map_or_else(String::new, |hint| format!("\n{hint}"));
        let text = format!("{} [{}]{hint}", error.message(), error.code());
        self.conversation.fail(text);
        self.scroll.to_end();
    }

    fn key(&mut self, key: KeyEvent, now: u64) -> Vec<Effect> {
        self.notice = None;
        if self.asking.takes_key(now) {
            return self.answer_key(key, now);
        }
        if self.picker.is_some() {
            return self.list_key(key);
        }
        if let Some(effects) = self.completion_key(key) {
            return effects;
        }
        let leader = std::mem::take(&mut self.leader);
        if let Some(vi) = self.vi.as_mut().filter(|_| !leader)
            && vi.key(&key, &mut self.editor)
        {
            return Vec::new();
        }
        let actions: Vec<_> = self.keymap.actions(leader, &key).collect();
        for action in &actions {
            if let Some(effects) = self.act(*action, now) {
                return effects;
            }
        }
        let is_command = self.vi.as_ref().is_some_and(|it| it.mode == Mode::Normal);
        if leader || is_command {
            return Vec::new();
        }
        match key.code {
            KeyCode::Char(c)
                if !key
                    .modifiers
                    .intersects(KeyModifiers::CONTROL | KeyModifiers::ALT) =>
            {
                self.editor.insert(c.encode_utf8(&mut [0; 4]));
                self.recalled = None;
                self.complete()
            }
            _ => Vec::new(),
        }
    }

    fn ready(&mut self, start: Start) -> Vec<Effect> {
        self.is_ready = true;
        self.progress.clear();
        // Prompts written earlier go first; the first starts a session unless one is being determined.
        let waited = !self.waiting.is_empty();
        let get = |path: &str, then| Effect::Call {
            method: "GET",
            path: path.to_owned(),
            body: None,
            then,
        };
        let mut effects = vec![
            get("/agent", Then::Agents),
            get("/config/providers", Then::Models),
        ];
        self.start = start;
        self.is_entering = self.start.session.is_some() || self.start.resume;
        if let Some(id) = self.start.session.clone() {
            effects.push(get(
                &format!("/session/{}", outrigger_client::encoded(&id)),
                Then::Enter,
            ));
        } else if self.start.resume {
            effects.push(get("/outrigger/session/latest", Then::Enter));
        } else {
            if waited {
                effects.push(self.make_session());
            }
            effects.extend(self.first_prompt());
        }
        effects
    }

    pub(crate) fn first_prompt(&mut self) -> Vec<Effect> {
        match self.start.prompt.take() {
            Some(prompt) => self.send(&prompt),
            None => Vec::new(),
        }
    }

    fn bus(&mut self, event: &BusEvent, now: u64) -> Vec<Effect> {
        if let Event::SessionCreated { session_id, info } = &event.event
            && info
                .parent_id
                .as_ref()
                .is_some_and(|parent| self.is_ours(parent))
        {
            self.children.insert(session_id.clone());
        }
        let mut effects = self.ask_of(&event.event, now);
        let own = self.session.as_ref().map(|it| &it.id);
        if event.event.session_id().is_none() || event.event.session_id() != own {
            return effects;
        }
        match &event.event {
            Event::SessionUpdated { info, .. } => {
                let was = self.session.as_ref().and_then(|it| it.revert.clone());
                let is = info.revert.clone();
                self.session = Some(info.as_ref().clone());
                if was != is {
                    effects.extend(self.reload());
                }
            }
            Event::SessionDeleted { .. } => self.leave_session(),
            Event::MessageUpdated { info, .. } => {
                if matches!(**info, MessageInfo::User(_)) {
                    self.unstored = None;
                }
                self.meter(info);
            }
            _ => {}
        }
        // Events after messages that are not in memory are fetched with them.
        let is_of_message = matches!(
            event.event,
            Event::MessageUpdated { .. } | Event::PartUpdated { .. } | Event::PartDelta { .. }
        );
        if !(self.has_newer && is_of_message) {
            self.conversation.on(&event.event);
        }
        if !self.is_busy() && !self.queued.is_empty() {
            effects.extend(self.send_queued());
        }
        if self.scroll.follows() && self.conversation.blocks().len() > MAX_BLOCKS {
            self.conversation.keep_newest(MAX_BLOCKS / 2);
            self.has_older = true;
        }
        effects
    }

    /// Expands or folds the block that was clicked.
    fn toggle_at(&mut self, row: u16) {
        let (shape, height) = (self.shape(), crate::view::conversation_height(self));
        let is_covered = self.picker.is_some() || usize::from(row) >= height;
        let conversation = &mut self.conversation;
        let found = self
            .scroll
            .block_at(usize::from(row), conversation, shape, height);
        let Some(id) = found.filter(|_| !is_covered) else {
            return;
        };
        // The position stays, whether it followed the end or not.
        if let Some(block) = conversation.blocks_mut().iter_mut().find(|it| it.id == id) {
            block.is_toggled = !block.is_toggled;
            block.cache.outdate();
        }
    }

    /// Records how full the model's context is.
    pub(crate) fn meter(&mut self, info: &MessageInfo) {
        if let MessageInfo::Assistant(answer) = info {
            let tokens = &answer.tokens;
            let used = tokens.input
                + tokens.output
                + tokens.reasoning
                + tokens.cache.read
                + tokens.cache.write;
            if used > 0 {
                self.context = Some((used, format!("{}/{}", answer.provider_id, answer.model_id)));
            }
        }
    }

    /// Returns whether a session is the displayed one, or one of its subagents.
    pub(crate) fn is_ours(&self, id: &SessionId) -> bool {
        self.session.as_ref().is_some_and(|it| it.id == *id) || self.children.contains(id)
    }

    pub(crate) fn leave_session(&mut self) {
        self.session = None;
        self.children.clear();
        self.conversation = Conversation::default();
        self.scroll = Scroll::default();
        self.context = None;
        self.turns = 0;
        self.has_older = false;
        self.has_newer = false;
        self.asking.clear();
    }
}
