//! Permission questions at the terminal: one after the other, however many tools ask at the same time.

use std::collections::VecDeque;
use std::io::BufRead as _;

use outrigger_client::{Asker, Display};
use outrigger_protocol::id::PermissionId;
use outrigger_protocol::permission::{PermissionRequest, Reply};
use tokio::sync::mpsc;

use crate::terminal::progress::Line;
use crate::terminal::{self, Paint, err_size, name};

/// Questions in order of arrival; one of them is displayed.
#[derive(Debug, Default)]
struct Queue {
    shown: Option<PermissionRequest>,
    waiting: VecDeque<PermissionRequest>,
}

impl Queue {
    fn asked(&mut self, request: &PermissionRequest) {
        let known = self
            .shown
            .iter()
            .chain(&self.waiting)
            .any(|other| other.id == request.id);
        if !known {
            self.waiting.push_back(request.clone());
        }
    }

    /// Removes a question that was answered elsewhere or is no longer open; returns whether it was the displayed one.
    fn gone(&mut self, id: &PermissionId) -> bool {
        self.waiting.retain(|other| other.id != *id);
        self.shown.take_if(|shown| shown.id == *id).is_some()
    }

    /// Returns whether a question may have to be shown now.
    fn has_next(&self) -> bool {
        self.shown.is_none() && !self.waiting.is_empty()
    }

    /// Returns the next question to show, if none is displayed.
    fn next(&mut self, is_open: impl Fn(&PermissionId) -> bool) -> Option<&PermissionRequest> {
        if self.shown.is_some() {
            return None;
        }
        while let Some(request) = self.waiting.pop_front() {
            if is_open(&request.id) {
                return Some(self.shown.insert(request));
            }
        }
        None
    }
}

/// The only thread of the program that reads the terminal. It reads a line only if there is a question: what is typed for
/// the shell that follows stays in the terminal.
struct Reader {
    wanted: Option<std::sync::mpsc::Sender<()>>,
    lines: Option<mpsc::UnboundedReceiver<Option<String>>>,
    is_reading: bool,
    is_closed: bool,
}

impl Reader {
    /// Requests a line, unless one is already requested: a read cannot be cancelled, so it serves the next question.
    fn want(&mut self) {
        if self.is_reading || self.is_closed {
            return;
        }
        let wanted = self.wanted.get_or_insert_with(|| {
            let (wanted, wants) = std::sync::mpsc::channel();
            let (sender, receiver) = mpsc::unbounded_channel();
            self.lines = Some(receiver);
            std::thread::spawn(move || {
                while wants.recv().is_ok() {
                    let mut text = String::new();
                    let read = std::io::stdin().lock().read_line(&mut text).unwrap_or(0);
                    if sender.send((read > 0).then_some(text)).is_err() {
                        return;
                    }
                }
            });
            wanted
        });
        self.is_reading = wanted.send(()).is_ok();
    }

    async fn line(&mut self) -> Option<String> {
        let Some(lines) = &mut self.lines else {
            return std::future::pending().await;
        };
        let line = lines.recv().await.flatten();
        self.is_reading = false;
        self.is_closed |= line.is_none();
        line
    }
}

/// The questions of a run.
pub(crate) struct Questions {
    queue: Queue,
    reader: Reader,
    /// The displayed question.
    display: Option<Display>,
    /// Something else is on the screen, and these questions wait.
    is_held: bool,
}

impl Questions {
    pub(crate) fn new() -> Self {
        let reader = Reader {
            wanted: None,
            lines: None,
            is_reading: false,
            is_closed: false,
        };
        Self {
            queue: Queue::default(),
            reader,
            display: None,
            is_held: false,
        }
    }

    /// Requests a line for another purpose than a question; [`Self::typed`] returns it.
    pub(crate) fn want(&mut self) {
        self.reader.want();
    }

    /// Holds questions back while something else waits for a line, until called with `false`.
    pub(super) fn hold(&mut self, hold: bool) {
        self.is_held = hold;
    }

    /// Returns whether the input has ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.reader.is_closed
    }

    /// Returns whether a question is on the screen.
    pub(crate) fn is_shown(&self) -> bool {
        self.queue.shown.is_some()
    }

    /// Asks a question, now or after those before it.
    pub(super) async fn ask(&mut self, asker: &Asker, line: &Line, request: &PermissionRequest) {
        self.queue.asked(request);
        self.next(asker, line).await;
    }

    /// Handles a question that was answered, by any client.
    pub(super) async fn gone(&mut self, asker: &Asker, line: &Line, id: &PermissionId) {
        if self.queue.gone(id) {
            line.say(&Paint::for_stderr().dim("\n~ this needs no answer any more\n"));
        }
        self.next(asker, line).await;
    }

    /// Returns the typed line; `None` is the end of the input.
    pub(crate) async fn typed(&mut self) -> Option<String> {
        self.reader.line().await
    }

    /// Passes a line on as the answer to the displayed question. Without a question it is dropped.
    pub(super) async fn answer(&mut self, asker: &Asker, line: &Line, typed: Option<&str>) {
        if let (Some(_), Some(display), true) = (
            &self.queue.shown,
            &mut self.display,
            typed.is_some_and(is_view),
        ) {
            line.say(&display.view(err_size()));
            return self.reader.want();
        }
        if let Some(shown) = self.queue.shown.take() {
            let granted = if typed.is_some_and(is_grant) {
                asker.grant(&shown.id).await
            } else {
                None
            };
            match granted {
                Some(Ok(done)) => line.say(&format!("{}\n", name(&done))),
                // A permanent yes that failed is a no for now: the user reads why.
                other => {
                    if let Some(Err(why)) = other {
                        line.say(&format!("it cannot be granted: {}\n", name(&why)));
                    }
                    // The end of input is an answer too, and means no; so does an "always" that was not offered.
                    let reply = typed.map_or(Reply::Reject, meaning);
                    let is_offered = reply != Reply::Always || !shown.always.is_empty();
                    let reply = if is_offered { reply } else { Reply::Reject };
                    let instead = typed.and_then(instead).filter(|_| reply == Reply::Reject);
                    if instead.is_some() {
                        line.say(&Paint::for_stderr().dim("~ no; the model gets your answer\n"));
                    }
                    asker.answer_with(&shown.id, reply, instead).await;
                }
            }
        }
        self.next(asker, line).await;
    }

    /// Requests the open questions after events were missed.
    pub(super) async fn catch_up(&mut self, asker: &Asker, line: &Line) {
        let open = asker.questions().await;
        for request in &open {
            self.queue.asked(request);
        }
        if let Some(shown) = self.queue.shown.as_ref().map(|shown| shown.id.clone())
            && !open.iter().any(|request| request.id == shown)
        {
            self.gone(asker, line, &shown).await;
        }
        self.next(asker, line).await;
    }

    /// Shows the question again, below what was printed since.
    pub(crate) fn again(&self, line: &Line) {
        if let (Some(_), Some(display)) = (&self.queue.shown, &self.display) {
            line.say(&display.text(err_size()));
        }
    }

    /// Drops all questions after the end of the turn.
    pub(crate) fn clear(&mut self, line: &Line) {
        self.queue.waiting.clear();
        if self.queue.shown.take().is_some() {
            line.say("\n");
        }
    }

    async fn next(&mut self, asker: &Asker, line: &Line) {
        while !self.is_held && self.queue.has_next() {
            let open = asker.questions().await;
            let Some(request) = self
                .queue
                .next(|id| open.iter().any(|request| request.id == *id))
            else {
                return;
            };
            line.wait_for(None);
            terminal::hold(true);
            terminal::settle().await;
            let display = Display::of(request, asker.can_grant());
            let text = display.text(err_size());
            self.display = Some(display);
            // What was typed before a question could be read is not an answer to it; what is typed as soon as it can be is
            // one.
            let _ =
                rustix::termios::tcflush(std::io::stdin(), rustix::termios::QueueSelector::IFlush);
            line.say(&text);
            if !self.reader.is_closed {
                return self.reader.want();
            }
            asker.answer(&request.id, Reply::Reject).await;
            self.queue.shown = None;
            line.say("no, since standard input is closed\n");
        }
    }
}

fn is_grant(text: &str) -> bool {
    matches!(text.trim().to_ascii_lowercase().as_str(), "g" | "grant")
}

fn is_view(text: &str) -> bool {
    matches!(text.trim().to_ascii_lowercase().as_str(), "v" | "view")
}

fn meaning(text: &str) -> Reply {
    match text.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Reply::Once,
        "a" | "always" => Reply::Always,
        _ => Reply::Reject,
    }
}

/// Returns an answer in words: a no that says why, or what to do instead. A single word is not one: it may be a mistyped
/// yes.
fn instead(text: &str) -> Option<&str> {
    let text = text.trim();
    text.contains(char::is_whitespace).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_in_words_is_a_no_for_the_model_to_read() {
        for (text, want) in [
            ("no, use git clean\n", Some("no, use git clean")),
            ("yes, but only in src", Some("yes, but only in src")),
            ("yep\n", None),
            ("n \n", None),
            ("\n", None),
        ] {
            assert_eq!(instead(text), want, "{text:?}");
            assert_eq!(meaning(text), Reply::Reject);
        }
    }

    #[test]
    fn only_a_clear_yes_is_one() {
        for (text, want) in [
            ("y\n", Reply::Once),
            ("YES\n", Reply::Once),
            ("a\n", Reply::Always),
            ("\n", Reply::Reject),
            ("yep\n", Reply::Reject),
        ] {
            assert_eq!(meaning(text), want, "{text:?}");
        }
    }

    fn request(id: &str) -> PermissionRequest {
        PermissionRequest {
            id: PermissionId(id.into()),
            session_id: outrigger_protocol::id::SessionId("ses_1".into()),
            permission: "bash".into(),
            patterns: vec!["rm \u{1b}[2K\rls".into()],
            always: vec!["rm *".into()],
            metadata: serde_json::Value::Null,
            tool: None,
            provenance: outrigger_protocol::provenance::Provenance::default(),
            missing_grant: None,
        }
    }

    #[test]
    fn one_question_at_a_time_and_none_that_is_answered() {
        let mut queue = Queue::default();
        for id in ["1", "2", "3", "2"] {
            queue.asked(&request(id));
        }
        let shown = |queue: &mut Queue, open: &[&str]| {
            queue
                .next(|id| open.contains(&id.as_str()))
                .map(|request| request.id.0.clone())
        };
        assert_eq!(shown(&mut queue, &["1", "2", "3"]).as_deref(), Some("1"));
        assert_eq!(
            shown(&mut queue, &["1", "2", "3"]),
            None,
            "the first one waits for its answer"
        );
        queue.shown = None;
        assert_eq!(
            shown(&mut queue, &["3"]).as_deref(),
            Some("3"),
            "nobody waits for the second one any more"
        );
        queue.asked(&request("4"));
        assert!(
            !queue.gone(&PermissionId("4".into())),
            "it was not shown yet"
        );
        assert!(queue.gone(&PermissionId("3".into())));
        assert_eq!(shown(&mut queue, &["4"]), None);
    }
}
