//! Questions that wait for the user: permissions, questions of the model, and those before there is an agent.

use std::collections::VecDeque;

use outrigger_client::Display;
use outrigger_protocol::permission::PermissionRequest;
use outrigger_protocol::question::QuestionRequest;
use outrigger_terminal::Frame;

use super::editor::Editor;

/// Keys pressed this soon after a question has appeared, or after such a key, were meant for the prompt; in milliseconds.
pub const GRACE: u64 = 600;

/// A question of the program itself before there is an agent: whether to trust a folder, or to start a plugin.
#[derive(Clone, Debug)]
pub struct Ask {
    /// Its id, for the answer.
    pub id: u64,
    /// A summary of what it is about.
    pub summary: Frame,
    /// The full details.
    pub details: Frame,
    /// The effect of a yes, in our own words.
    pub what: String,
}

/// A question.
#[derive(Debug)]
pub enum Dialog {
    /// Whether to allow a call.
    Permission(Box<PermissionRequest>, Display),
    /// A question of the model.
    Question(Box<Inquiry>),
    /// A question before there is an agent.
    Start(Box<Ask>),
}

/// Questions of the model with the answers so far.
#[derive(Debug)]
pub struct Inquiry {
    /// The questions.
    pub request: QuestionRequest,
    /// Answers to the first questions.
    pub answers: Vec<Vec<String>>,
    /// Selected options of the displayed question.
    pub chosen: Vec<usize>,
    /// The option under the cursor.
    pub at: usize,
}

impl Inquiry {
    /// Returns the next question to answer.
    #[must_use]
    pub fn question(&self) -> Option<&outrigger_protocol::question::Question> {
        self.request.questions.get(self.answers.len())
    }

    /// Answers the displayed question; returns whether it was the last.
    pub fn answer(&mut self, answer: Vec<String>) -> bool {
        self.answers.push(answer);
        self.chosen.clear();
        self.at = 0;
        self.answers.len() >= self.request.questions.len()
    }

    /// Returns the selection: the chosen options, or the one under the cursor.
    #[must_use]
    pub fn choice(&self) -> Vec<String> {
        let options = self.question().map_or(&[][..], |it| &it.options);
        let marked = if self.chosen.is_empty() {
            vec![self.at]
        } else {
            self.chosen.clone()
        };
        marked
            .iter()
            .filter_map(|at| Some(options.get(*at)?.label.clone()))
            .collect()
    }
}

/// The displayed question and the queue.
#[derive(Debug, Default)]
pub struct Asking {
    queue: VecDeque<Dialog>,
    /// Questions answered since none was open.
    answered: usize,
    /// The time from which keys are for the question.
    pub ready_at: u64,
    /// All of it is shown.
    pub is_open: bool,
    /// Rows scrolled off the top.
    pub scroll: usize,
    /// A text answer while it is written.
    pub words: Option<Editor>,
}

impl Asking {
    /// Returns the displayed question.
    #[must_use]
    pub fn shown(&self) -> Option<&Dialog> {
        self.queue.front()
    }

    /// Like [`Self::shown`], mutable.
    pub fn shown_mut(&mut self) -> Option<&mut Dialog> {
        self.queue.front_mut()
    }

    /// Returns which one of how many questions is displayed, counted since none was open.
    #[must_use]
    pub fn place(&self) -> (usize, usize) {
        (self.answered + 1, self.answered + self.queue.len())
    }

    /// Adds a question, unless it is already known.
    pub fn ask(&mut self, asked: Dialog, now: u64) {
        let id = asked.id();
        if self.queue.iter().any(|it| it.id() == id) {
            return;
        }
        self.queue.push_back(asked);
        if self.queue.len() == 1 {
            self.begin(now);
        }
    }

    /// Removes a question that was answered, by any client.
    pub fn settled(&mut self, id: &str, now: u64) {
        let was_first = self.queue.front().is_some_and(|it| it.id() == id);
        let before = self.queue.len();
        self.queue.retain(|it| it.id() != id);
        self.answered += before - self.queue.len();
        if was_first {
            self.begin(now);
        }
    }

    /// Removes the permissions, or else the questions of the model, that are no longer open.
    pub fn keep_open(&mut self, are_permissions: bool, open: &[String], now: u64) {
        let first = self.queue.front().map(Dialog::id);
        self.queue.retain(|it| match it {
            Dialog::Permission(..) if are_permissions => open.contains(&it.id()),
            Dialog::Question(_) if !are_permissions => open.contains(&it.id()),
            _ => true,
        });
        if first != self.queue.front().map(Dialog::id) {
            self.begin(now);
        }
    }

    /// Takes the displayed question.
    pub fn take(&mut self, now: u64) -> Option<Dialog> {
        let asked = self.queue.pop_front();
        self.answered += 1;
        self.begin(now);
        asked
    }

    /// Removes all but the questions before there is an agent.
    pub fn clear(&mut self) {
        self.queue.retain(|it| matches!(it, Dialog::Start(_)));
        self.words = None;
    }

    /// Returns whether a key at this time is for the question. One that is not delays that time: the user is typing.
    pub fn takes_key(&mut self, now: u64) -> bool {
        if self.queue.is_empty() {
            return false;
        }
        if now < self.ready_at {
            self.ready_at = now + GRACE;
            return false;
        }
        true
    }

    /// Records that the user types a prompt over the question.
    pub fn is_typed_over(&mut self, now: u64) {
        self.ready_at = now + GRACE;
    }

    fn begin(&mut self, now: u64) {
        if self.queue.is_empty() {
            self.answered = 0;
        }
        self.ready_at = now + GRACE;
        self.is_open = false;
        self.scroll = 0;
        self.words = None;
    }
}

impl Dialog {
    fn id(&self) -> String {
        match self {
            Self::Permission(request, _) => request.id.to_string(),
            Self::Question(inquiry) => inquiry.request.id.to_string(),
            Self::Start(ask) => format!("start:{}", ask.id),
        }
    }
}
