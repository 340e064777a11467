//! A search over all stored conversations, and navigation to its results.

use base64::Engine as _;
use outrigger_protocol::message::MessageWithParts;
use serde_json::{Value, json};

use super::history::get;
use super::{App, PAGE};
use crate::render::text::inline;
use crate::state::effect::{Effect, Then};
use crate::state::picker::{Item, ListKind, Picker};

/// Maximum number of results per page.
const LIMIT: usize = 100;
/// The choice that searches further back, followed by its cursor.
const FURTHER: &str = "further ";
/// Characters before a match.
const BEFORE: usize = 30;

/// The state of a search in all conversations.
#[derive(Debug, Default)]
pub(crate) struct Sought {
    words: String,
    /// The last search, in lower case, which is marked in the conversation.
    pub(crate) marked: String,
    /// Message and part to show once their session is open.
    goal: Option<(String, String)>,
}

impl App {
    /// Searches all conversations for the words of the open search.
    pub(crate) fn search_all(&mut self) -> Vec<Effect> {
        let words = self
            .picker
            .as_ref()
            .map(|it| it.filter.text().to_owned())
            .unwrap_or_default();
        if words.trim().is_empty() {
            return Vec::new();
        }
        self.sought.words = words;
        self.look(None)
    }

    fn look(&mut self, cursor: Option<&str>) -> Vec<Effect> {
        let words = &self.sought.words;
        let title = format!("All conversations: {}", inline(words));
        let words = outrigger_client::encoded(words);
        let cursor = cursor
            .map(|it| format!("&cursor={}", outrigger_client::encoded(it)))
            .unwrap_or_default();
        self.picker = Some(Picker::loading(ListKind::Found, title));
        let path = format!("/outrigger/v1/search?limit={LIMIT}&q={words}{cursor}");
        vec![get(path, Then::Found)]
    }

    /// Handles the search results.
    pub(crate) fn found(&mut self, page: &Value) {
        let hits = page["hits"].as_array().into_iter().flatten();
        let mut items: Vec<Item> = hits.filter_map(item).collect();
        if let Some(next) = page["next"].as_str() {
            items.push(Item::new(
                format!("{FURTHER}{next}"),
                "look further back",
                "",
            ));
        }
        if items.is_empty() {
            items.push(Item::new("", "no conversation has that", ""));
        }
        self.fill(ListKind::Found, items, None);
    }

    /// Goes to the line of a block that was searched for.
    pub(crate) fn go_to_line(&mut self, block: &str, wanted: &str) -> Vec<Effect> {
        let (shape, conversation) = (self.shape(), &mut self.conversation);
        self.scroll.to_text(block, wanted, conversation, shape);
        self.mark_words(wanted);
        self.fill_screen()
    }

    /// Goes to a result, or searches further back.
    pub(crate) fn go_to_found(&mut self, chosen: &str) -> Vec<Effect> {
        if let Some(cursor) = chosen.strip_prefix(FURTHER) {
            return self.look(Some(cursor));
        }
        let mut names = chosen.split(' ');
        let (Some(session), Some(message), Some(part)) = (names.next(), names.next(), names.next())
        else {
            return Vec::new();
        };
        let is_own = (self.session.as_ref()).is_some_and(|it| it.id.as_str() == session);
        if is_own && self.conversation.blocks().iter().any(|it| it.id == part) {
            self.show_found(part);
            return Vec::new();
        }
        self.sought.goal = Some((message.to_owned(), part.to_owned()));
        let path = format!("/session/{}", outrigger_client::encoded(session));
        vec![get(path, Then::Enter)]
    }

    /// Fetches the messages up to the target; `None` if the newest are wanted.
    pub(crate) fn fetch_found(&mut self) -> Option<Vec<Effect>> {
        let (message, part) = self.sought.goal.take()?;
        let id = self.session.as_ref()?.id.to_string();
        // A page ends before its cursor: this one is after the message and before all others.
        let cursor = json!({ "id": format!("{message}~"), "time": 0 }).to_string();
        let cursor = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(cursor);
        let path = format!("/session/{id}/message?limit={PAGE}&before={cursor}");
        let mut effects = vec![get(path, Then::Around(id, part))];
        effects.extend(Self::open_questions());
        Some(effects)
    }

    /// Handles the messages around a result.
    pub(crate) fn around(&mut self, id: &str, part: &str, messages: Vec<MessageWithParts>) {
        if self.session.as_ref().is_none_or(|it| it.id.as_str() != id) {
            return;
        }
        self.has_older = messages.len() >= PAGE;
        self.has_newer = true;
        self.conversation.replace(messages);
        self.show_found(part);
    }

    /// Marks the words of a search wherever the conversation shows them, until the user goes to its end.
    pub(crate) fn mark_words(&mut self, words: &str) {
        self.sought.marked = words.trim().to_lowercase();
    }

    fn show_found(&mut self, part: &str) {
        let first = self
            .sought
            .words
            .split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned();
        let (shape, words) = (self.shape(), self.sought.words.clone());
        self.mark_words(&words);
        self.scroll.to(part);
        (self.scroll).to_text(part, &first, &mut self.conversation, shape);
    }
}

fn item(hit: &Value) -> Option<Item> {
    let text = |key: &str| hit[key].as_str().unwrap_or_default();
    let (_, part) = text("key").split_once('/')?;
    let before = text("before");
    let from = before.char_indices().rev().nth(BEFORE - 1);
    let before = before.get(from.map_or(0, |(at, _)| at)..)?;
    let line = format!("{before}{}{}", text("found"), text("after"));
    Some(Item::new(
        format!("{} {} {part}", text("conversation"), text("message")),
        inline(line.trim_start()),
        inline(text("title")),
    ))
}
