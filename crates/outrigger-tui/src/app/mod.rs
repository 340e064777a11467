//! The state of the interface and its transitions: [`App::update`] takes an input and returns effects.
//!
//! Nothing here asks, waits, reads or writes.

mod act;
mod attach;
mod commands;
mod events;
mod found;
mod history;
mod lists;
mod prompt;
#[cfg(test)]
mod prompt_tests;
mod questions;
mod replies;
mod sessions;
#[cfg(test)]
mod tests;
mod undo;

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use outrigger_protocol::event::Event;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::message::ModelRef;
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
/// How long a notice is shown, in milliseconds.
const NOTICE_SHOWN: u64 = 8000;

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
    /// Returns the time in milliseconds since 1970. Asked where the age of something is shown.
    pub clock: fn() -> u64,
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
    pub(crate) clock: fn() -> u64,
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
    /// When the notice disappears.
    notice_until: u64,
    /// The hook that the turn waits for, since when.
    pub(crate) slow_hook: Option<SlowHook>,
    pub(crate) picker: Option<Picker>,
    pub(crate) completion: Option<Completion>,
    pub(crate) asking: Asking,
    pub(crate) agents: Vec<Item>,
    pub(crate) agent: Option<String>,
    pub(crate) model: Option<ModelRef>,
    /// The model of the configuration.
    pub(crate) usual_model: Option<ModelRef>,
    /// Context sizes in tokens, by `provider/model`.
    pub(crate) limits: HashMap<String, u64>,
    /// No model can be used.
    pub(crate) has_no_model: bool,
    pub(crate) commands: Vec<Item>,
    /// Tokens of the last request, and its model.
    pub(crate) context: Option<(u64, String)>,
    /// The time of the last input.
    now: u64,
    /// When the turn was first seen to run.
    busy_since: Option<u64>,
    /// Turns that were requested and have not ended.
    pub(crate) turns: usize,
    pub(crate) has_older: bool,
    /// Events of messages since they were asked for, and how many replies are awaited: a reply may be older than they are.
    pub(crate) since_reload: (usize, Vec<Event>),
    /// The newest messages are not in memory.
    pub(crate) has_newer: bool,
    /// Deadline for a second Ctrl-C to quit.
    pub(crate) leaves_until: u64,
    /// A call was refused without a word, which ends a turn.
    pub(crate) said_no: bool,
    /// The server does not answer.
    pub(crate) is_lost: bool,
    /// The search in all conversations.
    pub(crate) sought: found::Sought,
    /// The prompt selected in the timeline.
    pub(crate) chosen_prompt: Option<String>,
    /// An undo that was refused; the user is asked whether to force it.
    refused_undo: Option<Undo>,
    pub(crate) start: Start,
}

/// A hook of a plugin that takes long.
#[derive(Clone, Debug)]
pub(crate) struct SlowHook {
    pub(crate) plugin: String,
    pub(crate) hook: String,
    since: u64,
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
            clock: options.clock,
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
            notice_until: NOTICE_SHOWN,
            slow_hook: None,
            picker: None,
            completion: None,
            asking: Asking::default(),
            agents: Vec::new(),
            agent: options.agent,
            model: options.model,
            usual_model: None,
            limits: HashMap::new(),
            has_no_model: false,
            commands: Vec::new(),
            context: None,
            now: 0,
            busy_since: None,
            turns: 0,
            has_older: false,
            since_reload: (0, Vec::new()),
            has_newer: false,
            leaves_until: 0,
            said_no: false,
            is_lost: false,
            sought: found::Sought::default(),
            chosen_prompt: None,
            refused_undo: None,
            start: Start::default(),
        }
    }

    /// Handles an input at a time in milliseconds of any clock; returns the effects.
    pub fn update(&mut self, input: Input, now: u64) -> Vec<Effect> {
        self.now = now;
        let effects = self.handle(input, now);
        if self.notice_until <= now {
            self.notice = None;
        }
        if !self.is_busy() {
            self.slow_hook = None;
        }
        self.busy_since = match self.busy_since {
            _ if !self.is_busy() => None,
            since => since.or(Some(now)),
        };
        effects
    }

    fn handle(&mut self, input: Input, now: u64) -> Vec<Effect> {
        match input {
            Input::Tick => Vec::new(),
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
            Input::Exported(written) => self.exported(written),
            Input::Click(_, row) => {
                self.toggle_at(row);
                Vec::new()
            }
            Input::Wheel(rows) => self.scroll_by(rows),
            Input::Resize(columns, rows) => {
                self.size = (columns, rows);
                self.fill_screen()
            }
            Input::Ready(start) => self.ready(start),
            Input::Failed(error) => {
                self.progress.clear();
                self.fail(&error);
                Vec::new()
            }
            // The first plugins start before the interface is ready, others later.
            Input::Progress(text) if self.is_ready => {
                self.say(&text, Role::Dim);
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
            Input::Bus(event) => self.on_event(&event, now),
            Input::Gap => self.reload(),
            Input::Gone => {
                self.is_lost = true;
                self.turns = 0;
                self.conversation.status = None;
                Vec::new()
            }
            Input::Back => self.reconnected(),
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

    /// Returns how long the turn has run, in milliseconds, while that is shown.
    #[must_use]
    pub fn busy_for(&self) -> Option<u64> {
        let since = self.busy_since?;
        let is_shown = self.asking.shown().is_none();
        is_shown.then(|| self.now.saturating_sub(since))
    }

    /// Returns when the notice disappears, while there is one.
    #[must_use]
    pub fn notice_until(&self) -> Option<u64> {
        self.notice.as_ref().map(|_| self.notice_until)
    }

    /// Returns the hook that the turn waits for, and for how long, in milliseconds.
    pub(crate) fn waits_for_hook(&self) -> Option<(&SlowHook, u64)> {
        let hook = self.slow_hook.as_ref()?;
        Some((hook, self.now.saturating_sub(hook.since)))
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
        self.notice_until = self.now.saturating_add(NOTICE_SHOWN);
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
            get("/config", Then::Config),
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

    /// Returns whether a session is the displayed one, or one of its subagents.
    pub(crate) fn is_ours(&self, id: &SessionId) -> bool {
        self.session.as_ref().is_some_and(|it| it.id == *id) || self.children.contains(id)
    }

    pub(crate) fn leave_session(&mut self) {
        self.session = None;
        self.children.clear();
        self.conversation.clear();
        self.sought.marked.clear();
        self.scroll = Scroll::default();
        self.context = None;
        self.turns = 0;
        self.has_older = false;
        self.since_reload = (0, Vec::new());
        self.has_newer = false;
        self.asking.clear();
    }
}
