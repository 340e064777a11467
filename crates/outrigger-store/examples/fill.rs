//! Fills a store for `cargo xtask bench scale`: `fill STORE messages SESSION COUNT`, `fill STORE sessions LIKE COUNT`.
//!
//! Messages are a prompt and its answer in turns, each of 200 bytes of text; sessions are copies of the one that is named.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a benchmark")]

use std::path::Path;

use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, MessageTime, ModelRef, Part, PartKind, TextPart, UserMessage,
};
use outrigger_store::Store;

const AT: u64 = 1_700_000_000_000;
const BATCH: usize = 500;

fn event(n: usize, event: Event) -> LogRecord {
    let id = format!("evt_{n:026}").as_str().into();
    LogRecord::Event(Box::new(BusEvent { id, event }))
}

/// Identifiers that stand before those that are made now.
fn message_id(n: usize) -> MessageId {
    MessageId(format!("msg_{n:026}"))
}

fn message(session: &SessionId, n: usize) -> Vec<LogRecord> {
    let (id, created) = (message_id(n), AT + n as u64);
    let time = MessageTime {
        created,
        completed: None,
    };
    let info = if n.is_multiple_of(2) {
        MessageInfo::User(UserMessage {
            id: id.clone(),
            session_id: session.clone(),
            time,
            agent: "build".into(),
            model: ModelRef {
                provider_id: "mock".into(),
                model_id: "m1".into(),
                variant: None,
            },
            ..UserMessage::default()
        })
    } else {
        MessageInfo::Assistant(AssistantMessage {
            id: id.clone(),
            session_id: session.clone(),
            parent_id: message_id(n - 1),
            time: MessageTime {
                completed: Some(created),
                ..time
            },
            agent: "build".into(),
            mode: "build".into(),
            provider_id: "mock".into(),
            model_id: "m1".into(),
            finish: Some("stop".into()),
            ..AssistantMessage::default()
        })
    };
    let part = Part {
        id: format!("prt_{n:026}").as_str().into(),
        session_id: session.clone(),
        message_id: id,
        kind: PartKind::Text(TextPart {
            text: format!("{n:<200}"),
            ..TextPart::default()
        }),
    };
    vec![
        event(
            n,
            Event::MessageUpdated {
                session_id: session.clone(),
                info: Box::new(info),
            },
        ),
        event(
            n,
            Event::PartUpdated {
                session_id: session.clone(),
                part: Box::new(part),
                time: created,
            },
        ),
    ]
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [path, what, session, count] = arguments.as_slice() else {
        eprintln!("usage: fill STORE messages|sessions SESSION COUNT");
        std::process::exit(2);
    };
    let (store, _) = Store::open(Path::new(path)).unwrap();
    let session = SessionId(session.clone());
    let like = store.session(&session).unwrap().unwrap();
    let records = |n: usize| match what.as_str() {
        "messages" => message(&session, n),
        _ => {
            let mut copy = like.clone();
            copy.id = SessionId(format!("ses_{n:026}"));
            (copy.time.created, copy.time.updated) = (AT + n as u64, AT + n as u64);
            vec![event(
                n,
                Event::SessionCreated {
                    session_id: copy.id.clone(),
                    info: Box::new(copy),
                },
            )]
        }
    };
    let count: usize = count.parse().unwrap();
    let numbers: Vec<usize> = (0..count).collect();
    for batch in numbers.chunks(BATCH) {
        let records = batch.iter().flat_map(|n| records(*n)).collect();
        store.append(AT, records).await.unwrap();
    }
    store.flush(true).await.unwrap();
}
