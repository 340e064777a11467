//! Followers of a store, without a server.

use std::sync::Arc;
use std::time::Duration;

use outrigger_api::StreamItem;
use outrigger_kernel::merge::Transcript;
use outrigger_protocol::event::BusEvent;
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::merged::{Change, Placed};
use outrigger_store::Store;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{Feed, Follow, FollowOptions, Form, Nothing, Reader};

struct World {
    _dir: TempDir,
    store: Store,
    feed: Feed,
    events: u64,
}

impl World {
    async fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (store, _) = Store::open(&dir.path().join("store.db")).unwrap();
        let feed = Feed::new(Arc::new(Reader::new(store.clone(), Arc::new(Nothing))));
        let mut world = Self {
            _dir: dir,
            store,
            feed,
            events: 0,
        };
        let session = json!({
            "id": "ses_1", "slug": "a-b-c", "projectID": "global", "directory": "/p", "path": "", "title": "t", "version": "1", "cost": 0.0,
            "tokens": { "input": 0, "output": 0, "reasoning": 0, "cache": { "read": 0, "write": 0 } },
            "time": { "created": 1, "updated": 1 },
        });
        world
            .event(
                "session.created",
                json!({ "sessionID": "ses_1", "info": session }),
            )
            .await;
        world
    }

    fn made(&mut self, kind: &str, properties: Value) -> BusEvent {
        self.events += 1;
        let id = format!("evt_{:06}", self.events);
        serde_json::from_value(json!({ "id": id, "type": kind, "properties": properties })).unwrap()
    }

    /// Stores an event and publishes it, as an agent does.
    async fn event(&mut self, kind: &str, properties: Value) {
        let event = self.made(kind, properties);
        let record = LogRecord::Event(Box::new(event.clone()));
        self.store.append(1, vec![record]).await.unwrap();
        self.feed.heard(&event);
    }

    /// Adds a prompt with this number.
    async fn prompt(&mut self, n: usize) {
        let id = format!("msg_{n:04}");
        let info = json!({
            "role": "user", "id": id, "sessionID": "ses_1", "time": { "created": n }, "agent": "build",
            "model": { "providerID": "p", "modelID": "m" },
        });
        self.event(
            "message.updated",
            json!({ "sessionID": "ses_1", "info": info }),
        )
        .await;
        let part = json!({ "id": format!("prt_{n:04}"), "sessionID": "ses_1", "messageID": id, "type": "text", "text": n.to_string() });
        self.event(
            "message.part.updated",
            json!({ "sessionID": "ses_1", "part": part, "time": n }),
        )
        .await;
    }

    fn delta(&mut self, text: &str) {
        let event = self.made(
            "message.part.delta",
            json!({ "sessionID": "ses_1", "messageID": "msg_9999", "partID": "prt_9999", "field": "text", "delta": text }),
        );
        self.feed.heard(&event);
    }

    async fn follow(&self, after: Option<i64>) -> Follow {
        let wanted = FollowOptions {
            only: Some("ses_1".into()),
            after,
            ..FollowOptions::default()
        };
        Follow::new(self.feed.clone(), wanted).await.unwrap()
    }
}

/// Returns the next items of a stream, or none if nothing arrives.
async fn next(follow: &mut Follow) -> Vec<StreamItem> {
    let waited = tokio::time::timeout(Duration::from_millis(300), follow.next()).await;
    let Ok(bytes) = waited else {
        return Vec::new();
    };
    let text = String::from_utf8(bytes.unwrap().to_vec()).unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

async fn all(follow: &mut Follow) -> Vec<StreamItem> {
    let mut all = Vec::new();
    loop {
        let some = next(follow).await;
        if some.is_empty() {
            return all;
        }
        all.extend(some);
    }
}

/// Returns the texts of the entries, in order.
fn texts(items: &[StreamItem]) -> Vec<String> {
    let mut transcript = Transcript::default();
    for item in items {
        match item {
            StreamItem::Entry { entry } => transcript.apply(Change::Put(Placed {
                key: entry.key.clone(),
                state: entry.state,
                message: entry.message.clone(),
            })),
            StreamItem::Removed { key, .. } => transcript.apply(Change::Remove(key.clone())),
            _ => {}
        }
    }
    transcript
        .iter()
        .map(|it| it.message.content.clone())
        .collect()
}

/// A client that does not read blocks nothing and misses no entry: it gets from the log what it was too slow for.
#[tokio::test]
async fn one_that_falls_behind_misses_no_entry() {
    let mut world = World::new().await;
    let mut slow = world.follow(Some(0)).await;
    let begun = all(&mut slow).await;
    assert!(matches!(begun[0], StreamItem::Connected { event: 0 }));
    for n in 0..30 {
        world.prompt(n).await;
        // More than may be queued for it.
        for _ in 0..300 {
            world.delta("x");
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let came = all(&mut slow).await;
    let want: Vec<String> = (0..30).map(|n| n.to_string()).collect();
    assert_eq!(texts(&came), want);
    let deltas = came
        .iter()
        .filter(|it| matches!(it, StreamItem::Delta { .. }))
        .count();
    assert!(deltas < 9000, "{deltas}");
    // When it comes back, it gets the complete text so far.
    let whole = came.iter().rev().find_map(|it| match it {
        StreamItem::Delta {
            text, start: true, ..
        } => Some(text.len()),
        _ => None,
    });
    let after = came
        .iter()
        .rev()
        .take_while(|it| !matches!(it, StreamItem::Delta { start: true, .. }))
        .filter(|it| matches!(it, StreamItem::Delta { .. }))
        .count();
    assert_eq!(whole.unwrap() + after, 9000);
}

/// A client continues after the last event it saw; with one that the log does not have, it starts over.
#[tokio::test]
async fn every_event_is_one_to_go_on_from() {
    let mut world = World::new().await;
    for n in 0..5 {
        world.prompt(n).await;
    }
    let head = world.store.head().unwrap().seq;
    for after in 0..=head {
        let mut follow = world.follow(Some(after)).await;
        let items = all(&mut follow).await;
        let came = texts(&items);
        // The session, then two events for each prompt.
        let seen = usize::try_from(after).unwrap().saturating_sub(1) / 2;
        let want: Vec<String> = (seen..5).map(|n| n.to_string()).collect();
        assert_eq!(came, want, "after {after}");
    }
    let mut now = world.follow(None).await;
    assert_eq!(all(&mut now).await, [StreamItem::Connected { event: head }]);
    let mut other = world.follow(Some(head + 1)).await;
    assert_eq!(all(&mut other).await, [StreamItem::Reset { event: head }]);
}

/// What another process writes into the store arrives, too.
#[tokio::test]
async fn what_another_process_writes_comes() {
    let mut world = World::new().await;
    let mut follow = world.follow(None).await;
    all(&mut follow).await;
    let part = json!({ "id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "type": "text", "text": "elsewhere" });
    let event = world.made(
        "message.part.updated",
        json!({ "sessionID": "ses_1", "part": part, "time": 1 }),
    );
    let record = LogRecord::Event(Box::new(event));
    world.store.append(1, vec![record]).await.unwrap();
    let came = tokio::time::timeout(Duration::from_secs(30), follow.next()).await;
    let came = String::from_utf8(came.unwrap().unwrap().to_vec()).unwrap();
    assert!(came.contains("elsewhere"), "{came}");
}

/// Pages go from the newest backwards, have each message once, and name where the stream continues.
#[tokio::test]
async fn pages_meet() {
    let mut world = World::new().await;
    for n in 0..25 {
        world.prompt(n).await;
    }
    let reader = world.feed.reader();
    let (mut seen, mut before) = (Vec::new(), None);
    loop {
        let page = reader
            .page(&"ses_1".into(), before.as_ref(), 10, Form::Merged)
            .unwrap();
        assert_eq!(page.event, world.store.head().unwrap().seq);
        seen.splice(0..0, page.entries.into_iter().map(|it| it.message.content));
        match page.next {
            Some(next) => before = Some(next.as_str().into()),
            None => break,
        }
    }
    let want: Vec<String> = (0..25).map(|n| n.to_string()).collect();
    assert_eq!(seen, want);
}

/// Conversations with one title are distinguished by their first prompts, which stay the same until they are taken back.
#[tokio::test]
async fn a_conversation_has_the_beginning_of_its_first_prompt() {
    let mut world = World::new().await;
    let mut follow = world.follow(None).await;
    let opening = |world: &World| {
        let (_, found) = (world.feed.reader().find(&"ses_1".into()))
            .unwrap()
            .unwrap();
        found.opening
    };
    assert_eq!(opening(&world), None);
    for n in 1..3 {
        world.prompt(n).await;
    }
    assert_eq!(opening(&world).as_deref(), Some("1"));
    let removed = json!({ "sessionID": "ses_1", "messageID": "msg_0001" });
    world.event("message.removed", removed).await;
    all(&mut follow).await;
    assert_eq!(opening(&world).as_deref(), Some("2"));
    for (project, count) in [("global", 1), ("another", 0)] {
        let query = crate::ListQuery {
            limit: 10,
            project: Some(project.to_owned()),
            ..crate::ListQuery::default()
        };
        let page = world.feed.reader().list(&query, &|_| true).unwrap();
        assert_eq!(page.unwrap().conversations.len(), count, "{project}");
    }
}

#[test]
fn an_opening_is_one_short_line() {
    let message = |text: &str| {
        let info = json!({ "role": "user", "id": "msg_1", "sessionID": "ses_1", "time": { "created": 1 }, "agent": "build",
            "model": { "providerID": "p", "modelID": "m" } });
        let part = |text: &str, synthetic: bool| {
            json!({ "id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1",
            "type": "text", "text": text, "synthetic": synthetic })
        };
        let parts = [part("for the model", true), part(text, false)];
        serde_json::from_value(json!({ "info": info, "parts": parts })).unwrap()
    };
    let opening = |text: &str| crate::reader::opening(&message(text));
    assert_eq!(
        opening("  fix\n\n the   tests "),
        Some("fix the tests".to_owned())
    );
    assert_eq!(opening("  "), None);
    let long = opening(&"ä".repeat(1000)).unwrap();
    assert_eq!(long, format!("{}…", "ä".repeat(160)));
}
