//! Usage of a session if providers report none, or invalid values.

use outrigger_protocol::event::Event;
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::{AssistantMessage, MessageInfo};
use outrigger_store::Store;

use crate::support::*;

fn answer(session: &str, id: &str, input: u64) -> LogRecord {
    let mut answer = AssistantMessage {
        id: id.into(),
        session_id: session.into(),
        finish: Some("stop".to_owned()),
        ..AssistantMessage::default()
    };
    answer.tokens.input = input;
    event(Event::MessageUpdated {
        session_id: session.into(),
        info: Box::new(MessageInfo::Assistant(answer)),
    })
}

#[tokio::test]
async fn what_no_provider_said_is_estimated() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&dir.path().join("s.db")).unwrap();
    let mut said = session("a", None, 1);
    said.tokens.input = 70;
    let long = "x".repeat(4000);
    let records = [
        created(said),
        created(session("b", Some("a"), 1)),
        part("a", "msg_1", "prt_1", &long),
        answer("a", "msg_2", 70),
        part("a", "msg_2", "prt_1", "short"),
    ];
    store.append(1, records.to_vec()).await.unwrap();
    let usage = || store.session_usage(&"a".into()).unwrap().tokens;
    assert_eq!(usage(), 70);
    // With all that was sent for it.
    store
        .append(
            1,
            vec![
                answer("a", "msg_3", 0),
                part("a", "msg_3", "prt_1", "short"),
            ],
        )
        .await
        .unwrap();
    let first = usage();
    assert!((1000..1500).contains(&first), "{first}");
    // Of a subagent, too.
    store
        .append(
            1,
            vec![answer("b", "msg_1", 0), part("b", "msg_1", "prt_1", &long)],
        )
        .await
        .unwrap();
    assert!(usage() > first + 1000, "{first}");
}
