//! The cost of a long history as a count: allocations on the agent's thread. Reading a row and decoding, folding or writing a
//! message allocate, so none of this is done for each message of the history.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;

use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, MessageTime, ModelRef, Part, PartKind, TextPart, ToolPart,
    UserMessage,
};
use serde_json::json;

use crate::harness::Harness;

/// Counts the calling thread's allocations.
struct Counting;

#[derive(Clone, Copy, Debug)]
struct Allocated {
    count: u64,
    bytes: u64,
}

thread_local! {
    static ALLOCATED: Cell<Allocated> = const { Cell::new(Allocated { count: 0, bytes: 0 }) };
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn count(bytes: usize) {
    // A thread that ends allocates, too.
    let _ = ALLOCATED.try_with(|all| {
        let Allocated { count, bytes: sum } = all.get();
        all.set(Allocated {
            count: count + 1,
            bytes: sum + bytes as u64,
        });
    });
}

#[expect(
    unsafe_code,
    reason = "an allocator has no safe form; this one hands everything on"
)]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller upholds the same contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above; the freed memory came from there.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Returns the allocations of a task on this thread.
async fn allocated(work: impl Future<Output = ()>) -> Allocated {
    let before = ALLOCATED.get();
    work.await;
    let after = ALLOCATED.get();
    Allocated {
        count: after.count - before.count,
        bytes: after.bytes - before.bytes,
    }
}

/// Starts a model in separate threads that answers one word, and returns a counter with the bytes of its last request.
fn model() -> (String, std::sync::Arc<std::sync::atomic::AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let length = std::sync::Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let sent = std::sync::Arc::clone(&length);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let sent = std::sync::Arc::clone(&sent);
            std::thread::spawn(move || answer(&stream, &sent));
        }
    });
    (url, length)
}

fn answer(
    stream: &std::net::TcpStream,
    sent: &std::sync::atomic::AtomicUsize,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                return Ok(());
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim_end().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        sent.store(length, std::sync::atomic::Ordering::SeqCst);
        let piece = |choice: serde_json::Value| {
            let chunk = json!({ "id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m1", "choices": [choice] });
            format!("data: {chunk}\n\n")
        };
        let text =
            piece(json!({ "index": 0, "delta": { "role": "assistant", "content": "Done." } }))
                + &piece(json!({ "index": 0, "delta": {}, "finish_reason": "stop" }))
                + "data: [DONE]\n\n";
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            text.len()
        );
        let mut stream = stream;
        stream.write_all((head + &text).as_bytes())?;
    }
}

fn call(n: usize) -> ToolPart {
    let call = json!({ "callID": format!("call_{n:0200}"), "tool": "read", "state": { "status": "completed", "input": {}, "output": "x",
        "title": "", "metadata": {}, "time": { "start": 1, "end": 2 } } });
    serde_json::from_value(call).unwrap()
}

/// Returns alternating prompts and answers; answers are text or calls.
fn message(session: &SessionId, n: usize, calls: bool) -> [Event; 2] {
    let id = |n: usize| MessageId(format!("msg_{n:026}"));
    let created = 1_700_000_000_000 + n as u64;
    let time = |completed| MessageTime { created, completed };
    let info = match n % 2 {
        0 => MessageInfo::User(UserMessage {
            id: id(n),
            session_id: session.clone(),
            time: time(None),
            agent: "build".into(),
            model: ModelRef {
                provider_id: "mock".into(),
                model_id: "m1".into(),
                variant: None,
            },
            ..UserMessage::default()
        }),
        _ => MessageInfo::Assistant(AssistantMessage {
            id: id(n),
            session_id: session.clone(),
            parent_id: id(n - 1),
            time: time(Some(created)),
            agent: "build".into(),
            mode: "build".into(),
            provider_id: "mock".into(),
            model_id: "m1".into(),
            finish: Some("stop".into()),
            ..AssistantMessage::default()
        }),
    };
    let text = || TextPart {
        text: format!("{n:<200}"),
        ..TextPart::default()
    };
    let part = Part {
        id: format!("prt_{n:026}").as_str().into(),
        session_id: session.clone(),
        message_id: id(n),
        kind: if calls && n % 2 == 1 {
            PartKind::Tool(call(n))
        } else {
            PartKind::Text(text())
        },
    };
    let session_id = session.clone();
    [
        Event::MessageUpdated {
            session_id: session_id.clone(),
            info: Box::new(info),
        },
        Event::PartUpdated {
            session_id,
            part: Box::new(part),
            time: created,
        },
    ]
}

/// Creates a session with this many messages.
async fn filled(h: &Harness, count: usize, calls: bool) -> String {
    let session = h
        .call("POST", "/session", json!({ "title": "long" }))
        .await
        .1;
    let session = SessionId(session["id"].as_str().unwrap().to_owned());
    let numbered = |(n, event)| {
        let id = format!("evt_{n:026}").as_str().into();
        LogRecord::Event(Box::new(BusEvent { id, event }))
    };
    let events = (0..count).flat_map(|n| message(&session, n, calls));
    let records = events.enumerate().map(numbered).collect();
    h.agent.store().append(0, records).await.unwrap();
    session.0
}

async fn prompted(h: &Harness, session: &str, reply: bool) {
    let body = json!({ "parts": [{ "type": "text", "text": "go on" }], "noReply": !reply });
    let path = format!("/session/{session}/message");
    let (status, answer) = h.call("POST", &path, body).await;
    assert_eq!(status, 200, "{answer}");
}

const SHORT: usize = 10;
const LONG: usize = 3000;

/// Only the agent runs on this thread, so only its work is counted.
#[tokio::test]
async fn turns_and_additions_cost_what_is_new() {
    let (url, sent) = model();
    let models = json!({ "m1": { "limit": { "context": 100_000_000 } } });
    let config = json!({ "snapshot": false, "provider": { "mock": { "options": { "baseURL": url }, "models": models } } });
    let h = Harness::new([], config).await;
    for calls in [false, true] {
        let short = costs(&h, SHORT, calls, &sent).await;
        let long = costs(&h, LONG, calls, &sent).await;
        println!("calls: {calls}, {short:?}, {long:?}");
        long.is_little_more_than(&short);
    }
}

/// The cost of a session.
#[derive(Debug)]
struct Costs {
    /// The first turn after a start, before the session was read.
    first: Allocated,
    turn: Allocated,
    addition: Allocated,
    /// Bytes of the request.
    bytes: u64,
}

/// Returns the costs of a session with this many messages, whose answers are text or calls.
async fn costs(
    h: &Harness,
    count: usize,
    calls: bool,
    sent: &std::sync::atomic::AtomicUsize,
) -> Costs {
    let session = filled(h, count, calls).await;
    // Reads the existing messages, once.
    let first = allocated(prompted(h, &session, true)).await;
    let (mut turn, mut addition) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        turn.push(allocated(prompted(h, &session, true)).await);
        addition.push(allocated(prompted(h, &session, false)).await);
    }
    let least = |all: Vec<Allocated>| all.into_iter().min_by_key(|it| it.count).unwrap();
    Costs {
        first,
        turn: least(turn),
        addition: least(addition),
        bytes: sent.load(std::sync::atomic::Ordering::SeqCst) as u64,
    }
}

impl Costs {
    fn is_little_more_than(&self, short: &Self) {
        assert!(
            self.bytes > short.bytes + 200 * (LONG - SHORT) as u64,
            "all of it was sent"
        );
        // Each message is read, decoded and written into the request once.
        let each = (self.first.count - short.first.count) / (LONG - SHORT) as u64;
        assert!(each < 80, "a first turn makes {each} allocations a message");
        let more = self.turn.count.saturating_sub(short.turn.count);
        assert!(
            more < LONG as u64 / 30,
            "a turn makes {more} allocations more"
        );
        // The body, and the text of the newest messages, which are in no block.
        let more = self.turn.bytes.saturating_sub(short.turn.bytes);
        assert!(more < 2 * self.bytes, "a turn allocates {more} bytes more");
        let more = self.addition.count.saturating_sub(short.addition.count);
        assert!(
            more < LONG as u64 / 10,
            "a message makes {more} allocations more"
        );
        let more = self.addition.bytes.saturating_sub(short.addition.bytes);
        assert!(
            more < self.bytes / 4,
            "a message allocates {more} bytes more"
        );
    }
}
