//! Records to write, and this test binary started again as another process.

use std::path::Path;
use std::process::{Command, ExitStatus};

use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{EventId, MessageId, PartId, SessionId, TurnId};
use outrigger_protocol::log::{LogRecord, TurnStep};
use outrigger_protocol::message::{AssistantMessage, MessageInfo, Part, PartKind, TextPart};
use outrigger_protocol::session::{Session, SessionTime, Todo};
use outrigger_protocol::turn::Input;
use outrigger_store::Store;

pub(crate) fn event(event: Event) -> LogRecord {
    LogRecord::Event(Box::new(BusEvent {
        id: EventId("evt_1".into()),
        event,
    }))
}

pub(crate) fn session(id: &str, parent: Option<&str>, updated: u64) -> Session {
    Session {
        id: id.into(),
        project_id: "prj".into(),
        directory: "/work".into(),
        parent_id: parent.map(Into::into),
        title: format!("Session {id}"),
        time: SessionTime {
            created: 1,
            updated,
            ..SessionTime::default()
        },
        ..Session::default()
    }
}

pub(crate) fn created(session: Session) -> LogRecord {
    event(Event::SessionCreated {
        session_id: session.id.clone(),
        info: Box::new(session),
    })
}

pub(crate) fn updated(session: Session) -> LogRecord {
    event(Event::SessionUpdated {
        session_id: session.id.clone(),
        info: Box::new(session),
    })
}

pub(crate) fn deleted(id: &str) -> LogRecord {
    event(Event::SessionDeleted {
        session_id: id.into(),
        info: Box::new(session(id, None, 1)),
    })
}

pub(crate) fn message(session: &str, id: &str, cost: f64) -> LogRecord {
    event(Event::MessageUpdated {
        session_id: session.into(),
        info: Box::new(MessageInfo::Assistant(AssistantMessage {
            id: id.into(),
            session_id: session.into(),
            cost,
            ..AssistantMessage::default()
        })),
    })
}

pub(crate) fn message_removed(session: &str, id: &str) -> LogRecord {
    event(Event::MessageRemoved {
        session_id: session.into(),
        message_id: id.into(),
    })
}

pub(crate) fn part(session: &str, message: &str, id: &str, text: &str) -> LogRecord {
    event(Event::PartUpdated {
        session_id: session.into(),
        part: Box::new(Part {
            id: PartId(id.into()),
            session_id: session.into(),
            message_id: MessageId(message.into()),
            kind: PartKind::Text(TextPart {
                text: text.into(),
                ..TextPart::default()
            }),
        }),
        time: 1,
    })
}

pub(crate) fn part_removed(session: &str, message: &str, id: &str) -> LogRecord {
    event(Event::PartRemoved {
        session_id: session.into(),
        message_id: message.into(),
        part_id: id.into(),
    })
}

pub(crate) fn todos(session: &str, contents: &[&str]) -> LogRecord {
    event(Event::TodoUpdated {
        session_id: session.into(),
        todos: contents
            .iter()
            .map(|content| Todo {
                content: (*content).into(),
                status: "pending".into(),
                priority: "high".into(),
            })
            .collect(),
    })
}

pub(crate) fn step(session: &str, turn: &str, n: u64, last: bool) -> LogRecord {
    LogRecord::TurnStep(Box::new(TurnStep {
        turn: TurnId(turn.into()),
        session_id: SessionId(session.into()),
        n,
        at: 100 + n,
        input: Input::Cancel,
        intents: Vec::new(),
        digest: "d".into(),
        last,
        abandoned: None,
    }))
}

/// The projections are what the log says, and the chain is whole.
pub(crate) async fn assert_sound(store: &Store) {
    let report = store.verify_chain().unwrap();
    assert!(report.is_valid(), "{report:?}");
    let live = store.dump_projections().unwrap();
    store.rebuild().await.unwrap();
    assert_eq!(live, store.dump_projections().unwrap());
}

/// Runs one ignored test of this binary in another process, with the store's path and `env`.
pub(crate) fn child(test: &str, path: &Path, env: &[(&str, &str)]) -> std::process::Child {
    #[expect(
        clippy::disallowed_methods,
        reason = "the store must not depend on the sandbox; this is a test"
    )]
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args([
            "--exact",
            test,
            "--ignored",
            "--nocapture",
            "--test-threads=1",
        ])
        .env("OUTRIGGER_TEST_STORE", path)
        .envs(env.iter().copied())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null());
    command.spawn().unwrap()
}

/// The path that [`child`] gave this process; `None` when someone runs all ignored tests.
pub(crate) fn given_path() -> Option<std::path::PathBuf> {
    std::env::var_os("OUTRIGGER_TEST_STORE").map(Into::into)
}

pub(crate) fn killed(status: ExitStatus) -> bool {
    use std::os::unix::process::ExitStatusExt;
    status.signal() == Some(9)
}
