//! Search over all stored conversations, without an index: it scans a limited number of stored parts per page, and the page says where
//! the next one continues. An index would cost time for each message, and searches are rare.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use outrigger_api::{SearchHit, SearchPage};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::Session;
use outrigger_store::{StoreError, StoredPart};
use serde_json::Value;

use crate::reader::Reader;

/// Maximum number of parts searched for one page.
const MAX_PARTS: usize = 50_000;
/// Maximum bytes of parts searched for one page.
const MAX_BYTES: usize = 64 * 1024 * 1024;
/// Maximum number of words; further ones are ignored.
const MAX_WORDS: usize = 16;
/// Characters before and after a match.
const AROUND: usize = 80;

/// A search.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// Words; a text must contain all of them, ignoring case.
    pub words: String,
    /// Maximum number of hits.
    pub limit: usize,
    /// `next` of the page before.
    pub cursor: Option<i64>,
    /// Only in this conversation.
    pub conversation: Option<SessionId>,
}

impl Reader {
    /// Returns texts of conversations that contain all the words, newest first.
    ///
    /// # Errors
    /// Those of the store.
    pub fn search(
        &self,
        query: &SearchQuery,
        allowed: &dyn Fn(&Path) -> bool,
    ) -> Result<SearchPage, StoreError> {
        let words = Words::of(&query.words);
        let mut page = SearchPage {
            hits: Vec::new(),
            next: None,
        };
        if words.0.is_empty() {
            return Ok(page);
        }
        let mut sessions: HashMap<String, Option<Session>> = HashMap::new();
        let (mut parts, mut bytes, mut failed) = (0, 0, None);
        self.store().scan_parts(query.cursor, |part| {
            if page.hits.len() == query.limit || parts == MAX_PARTS || bytes >= MAX_BYTES {
                return ControlFlow::Break(());
            }
            (parts, bytes) = (parts + 1, bytes + part.body.len());
            page.next = Some(part.row.to_string());
            if (query.conversation.as_ref()).is_some_and(|only| only.as_str() != part.session) {
                return ControlFlow::Continue(());
            }
            let Some(found) = words.find(part.body) else {
                return ControlFlow::Continue(());
            };
            let session = match sessions.get(part.session) {
                Some(known) => known,
                None => match self.store().session(&SessionId(part.session.to_owned())) {
                    Ok(session) => sessions.entry(part.session.to_owned()).or_insert(session),
                    Err(error) => {
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                },
            };
            let session = session
                .as_ref()
                .filter(|it| allowed(Path::new(&it.directory)));
            page.hits.extend(session.map(|it| hit(it, part, found)));
            ControlFlow::Continue(())
        })?;
        // Everything was searched.
        if page.hits.len() < query.limit && parts < MAX_PARTS && bytes < MAX_BYTES {
            page.next = None;
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(page),
        }
    }
}

fn hit(session: &Session, part: StoredPart<'_>, found: Excerpt) -> SearchHit {
    SearchHit {
        conversation: session.id.clone(),
        title: session.title.clone(),
        directory: session.directory.clone(),
        message: part.message.into(),
        key: format!("{}/{}", part.message, part.id),
        kind: found.kind,
        before: found.before,
        found: found.found,
        after: found.after,
    }
}

struct Excerpt {
    kind: String,
    before: String,
    found: String,
    after: String,
}

/// Search words, in lower case.
struct Words(Vec<String>);

impl Words {
    fn of(text: &str) -> Self {
        let words = text.split_whitespace().map(str::to_lowercase);
        Self(words.take(MAX_WORDS).collect())
    }

    /// Returns the first text of a part that contains all the words.
    fn find(&self, body: &str) -> Option<Excerpt> {
        // Most parts do not contain all of them and need not be decoded.
        let lower = body.to_lowercase();
        let is_in = |word: &String| {
            let escaped = Value::from(word.as_str()).to_string();
            lower.contains(escaped.trim_matches('"').trim_end_matches('\\'))
        };
        if !self.0.iter().all(is_in) {
            return None;
        }
        let part: Value = serde_json::from_str(body).ok()?;
        let (kind, texts) = texts(&part)?;
        let texts = texts.into_iter().map(readable);
        let text = texts.into_iter().find(|text| {
            let lower = text.to_lowercase();
            self.0.iter().all(|word| lower.contains(word.as_str()))
        })?;
        let first = self.0.first()?;
        let (at, length) = (text.char_indices())
            .find_map(|(at, _)| Some((at, begins(text.get(at..)?, first)?)))?;
        Some(Excerpt {
            kind,
            before: last_of(&text[..at]),
            found: text[at..at + length].to_owned(),
            after: text[at + length..].chars().take(AROUND).collect(),
        })
    }
}

fn last_of(text: &str) -> String {
    let from = text.char_indices().rev().nth(AROUND - 1);
    text[from.map_or(0, |(at, _)| at)..].to_owned()
}

/// Returns the length of the word at the start of a text; the word is in lower case.
fn begins(text: &str, word: &str) -> Option<usize> {
    let mut wanted = word.chars();
    let mut length = 0;
    for c in text.chars() {
        if wanted.as_str().is_empty() {
            return Some(length);
        }
        for lower in c.to_lowercase() {
            if wanted.next() != Some(lower) {
                return None;
            }
        }
        length += c.len_utf8();
    }
    wanted.as_str().is_empty().then_some(length)
}

/// Returns a text as people read it: JSON, which many tools print, as its names and values.
fn readable(text: &str) -> Cow<'_, str> {
    if !text.trim_start().starts_with(['{', '[']) {
        return Cow::Borrowed(text);
    }
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => {
            let mut out = String::new();
            write_value(&value, &mut out);
            Cow::Owned(out)
        }
        _ => Cow::Borrowed(text),
    }
}

/// Appends a value: fields as `name: value`, with commas between them and semicolons between the items of a list.
fn write_value(value: &Value, out: &mut String) {
    match value {
        Value::Null => {}
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            for (n, item) in items.iter().enumerate() {
                out.push_str(if n == 0 { "" } else { "; " });
                write_value(item, out);
            }
        }
        Value::Object(fields) => {
            for (n, (name, field)) in fields.iter().enumerate() {
                out.push_str(if n == 0 { "" } else { ", " });
                out.push_str(name);
                out.push_str(": ");
                write_value(field, out);
            }
        }
        Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
    }
}

/// Returns the visible texts of a part, and its kind.
fn texts(part: &Value) -> Option<(String, Vec<&str>)> {
    let kind = part["type"].as_str()?;
    let text = |pointer: &str| part.pointer(pointer).and_then(Value::as_str);
    match kind {
        // Written for the model, and not shown.
        "text" if part["synthetic"] == true => None,
        "text" | "reasoning" => Some((kind.to_owned(), text("/text").into_iter().collect())),
        "tool" => {
            let mut all: Vec<&str> = Vec::new();
            strings(&part["state"]["input"], &mut all);
            all.extend(
                ["/state/title", "/state/output", "/state/error"]
                    .map(text)
                    .into_iter()
                    .flatten(),
            );
            Some((text("/tool").unwrap_or(kind).to_owned(), all))
        }
        "file" => Some((kind.to_owned(), text("/filename").into_iter().collect())),
        "subtask" => {
            let all = ["/description", "/prompt"].map(text);
            Some((kind.to_owned(), all.into_iter().flatten().collect()))
        }
        _ => None,
    }
}

fn strings<'v>(value: &'v Value, all: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => all.push(text),
        Value::Array(items) => items.iter().for_each(|it| strings(it, all)),
        Value::Object(fields) => fields.values().for_each(|it| strings(it, all)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outrigger_protocol::log::LogRecord;
    use outrigger_store::Store;
    use serde_json::json;

    use super::*;
    use crate::Nothing;

    /// Creates a session with this many messages, every other one of which contains a needle.
    async fn filled(count: usize) -> (tempfile::TempDir, Reader) {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(&dir.path().join("store.db")).unwrap();
        let mut events = vec![
            json!({ "id": "evt_0", "type": "session.created", "properties": { "sessionID": "ses_1", "info": {
            "id": "ses_1", "slug": "a-b-c", "projectID": "global", "directory": "/p", "path": "", "title": "t", "version": "1", "cost": 0.0,
            "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } }, "time": { "created": 1, "updated": 1 } } } }),
        ];
        for n in 0..count {
            let what = if n % 2 == 0 { "needle" } else { "hay" };
            let part = json!({ "id": format!("prt_{n:03}"), "sessionID": "ses_1", "messageID": format!("msg_{n:03}"), "type": "text",
                "text": format!("a {what} in text {n}") });
            events.push(
                json!({ "id": format!("evt_{}", n + 1), "type": "message.part.updated",
                "properties": { "sessionID": "ses_1", "part": part, "time": 1 } }),
            );
        }
        let records = events
            .into_iter()
            .map(|event| LogRecord::Event(Box::new(serde_json::from_value(event).unwrap())));
        store.append(1, records.collect()).await.unwrap();
        (dir, Reader::new(store, Arc::new(Nothing)))
    }

    #[test]
    fn words_are_found_in_texts_that_people_see() {
        let text = |text: &str| json!({ "type": "text", "text": text });
        let tool = json!({ "type": "tool", "tool": "bash", "callID": "call_secret", "state": { "status": "completed",
            "input": { "command": "grep -n \"Needle\" a.txt", "deep": ["in the list"] }, "output": "12:a needle\n", "title": "" } });
        for (words, part, found) in [
            (
                "needle",
                text("a NEEDLE in hay"),
                Some(("a ", "NEEDLE", " in hay")),
            ),
            (
                "hay needle",
                text("a needle in hay"),
                Some(("a needle in ", "hay", "")),
            ),
            ("needle straw", text("a needle in hay"), None),
            (
                "größe",
                text("Die GRÖSSE ist GRÖßE"),
                Some(("Die GRÖSSE ist ", "GRÖßE", "")),
            ),
            (
                "say \"hi\"",
                text("they say\n\"hi\""),
                Some(("they ", "say", "\n\"hi\"")),
            ),
            ("a\\b", text("c:\\a\\b"), Some(("c:\\", "a\\b", ""))),
            ("text", text("a needle"), None),
            (
                "x",
                json!({ "type": "text", "text": "x", "synthetic": true }),
                None,
            ),
            ("call_secret", tool.clone(), None),
            ("LIST", tool.clone(), Some(("in the ", "list", ""))),
            ("12:a", tool, Some(("", "12:a", " needle\n"))),
            (
                "medium",
                json!({ "type": "tool", "tool": "todowrite", "state": { "status": "completed", "input": {},
                    "output": "[\n  {\"content\": \"Say \\\"hi\\\"\", \"priority\": \"medium\", \"n\": 1}, {\"content\": \"b\"}\n]", "title": "" } }),
                Some((
                    "content: Say \"hi\", priority: ",
                    "medium",
                    ", n: 1; content: b",
                )),
            ),
            ("{", text("{ not JSON"), Some(("", "{", " not JSON"))),
            ("", text("a needle"), None),
        ] {
            let query = Words::of(words);
            let got = (!query.0.is_empty())
                .then(|| query.find(&part.to_string()))
                .flatten()
                .map(|it| (it.before, it.found, it.after));
            let want = found.map(|(a, b, c)| (a.to_owned(), b.to_owned(), c.to_owned()));
            assert_eq!(got, want, "{words} {part}");
        }
    }

    /// Each text is found once, however the pages are cut, and none in a folder that may not be seen.
    #[tokio::test]
    async fn a_page_goes_on_where_the_one_before_ended() {
        let (_dir, reader) = filled(25).await;
        let mut query = SearchQuery {
            words: "NEEDLE text".into(),
            limit: 4,
            cursor: None,
            conversation: None,
        };
        let mut found = Vec::new();
        loop {
            let page = reader.search(&query, &|_| true).unwrap();
            assert!(page.hits.len() <= 4);
            found.extend(page.hits.into_iter().map(|hit| hit.key));
            let Some(next) = page.next else { break };
            query.cursor = Some(next.parse().unwrap());
        }
        let all: Vec<String> = (0..25)
            .rev()
            .filter(|n| n % 2 == 0)
            .map(|n| format!("msg_{n:03}/prt_{n:03}"))
            .collect();
        assert_eq!(found, all);
        query = SearchQuery {
            limit: 100,
            cursor: None,
            ..query
        };
        assert_eq!(reader.search(&query, &|_| false).unwrap().hits, []);
        query.conversation = Some(SessionId("ses_2".into()));
        assert_eq!(reader.search(&query, &|_| true).unwrap().hits, []);
        query.conversation = Some(SessionId("ses_1".into()));
        assert_eq!(reader.search(&query, &|_| true).unwrap().hits.len(), 13);
        query.words = " ".into();
        assert_eq!(reader.search(&query, &|_| true).unwrap().hits, []);
    }

    #[test]
    fn little_is_shown_around_what_was_found() {
        let long = format!("{}needle{}", "ä".repeat(500), "ö".repeat(500));
        let body = json!({ "type": "text", "text": long }).to_string();
        let found = Words::of("needle").find(&body).unwrap();
        assert_eq!(found.before.chars().count(), AROUND);
        assert_eq!(found.after.chars().count(), AROUND);
    }
}
