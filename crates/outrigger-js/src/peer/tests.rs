//! A process that asks for more than it may have is shown which limit it met, and the rest of its requests goes on.

use futures_util::StreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

use super::reverse::{MAX_REVERSE, MAX_STREAMS, OVERLOADED};
use super::*;
use crate::host_handler::HostHandler;
use crate::output::OutputLog;
use crate::sdk::SdkAnswer;
use futures_util::future::BoxFuture;
use outrigger_protocol::rpc::{SdkRequest, Stage, ToolAsk, ToolMetadata};

const LARGE: usize = 1 << 20;
/// What may wait, in these tests.
const BACKLOG: usize = 8 << 20;

/// Answers nothing, but streams without end.
struct Endless;

impl HostHandler for Endless {
    fn sdk(&self, request: SdkRequest) -> BoxFuture<'_, SdkAnswer> {
        Box::pin(async move {
            if request.path == "/large" {
                let body = "x".repeat(LARGE);
                let (status, headers, stream) = (200, Vec::new(), false);
                let answer = outrigger_protocol::rpc::SdkResponse {
                    status,
                    headers,
                    body,
                    stream,
                };
                return answer.into();
            }
            if request.path != "/stream" {
                std::future::pending::<()>().await;
            }
            let body = futures_util::stream::repeat(Bytes::from_static(b"data\n"));
            SdkAnswer::streamed(200, Vec::new(), body.boxed())
        })
    }
    fn ask(&self, _: ToolAsk) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(std::future::pending())
    }
    fn metadata(&self, _: ToolMetadata) {}
    fn stage(&self, _: Stage) {}
    fn log(&self, _: &str, _: Log) {}
}

/// Sends so many requests at once; what the first refusal says, and how many heads of answers came before it.
async fn refusal(path: &str, count: usize) -> (u64, String, usize) {
    let (peer, mut process, reader) = start();
    for id in 1..=count {
        ask(&mut process, id, path).await;
    }
    let (mut decoder, mut heads) = (Decoder::default(), 0);
    let refused = loop {
        assert!(process.read_buf(decoder.buffer()).await.unwrap() > 0);
        let mut refused = None;
        while let Some(frame) = decoder.next_frame().unwrap() {
            let message: Message = serde_json::from_slice(&frame).unwrap();
            if let (Some(id), Some(error)) = (message.id, message.error) {
                assert_eq!(error.code, OVERLOADED);
                refused = Some((id, error.message));
            } else if message.id.is_some() {
                heads += 1;
            }
        }
        if let Some(refused) = refused {
            break refused;
        }
    };
    assert!(!reader.is_finished());
    peer.close(Closed::default());
    reader.abort();
    (refused.0, refused.1, heads)
}

#[tokio::test]
async fn one_request_more_than_may_be_in_flight_is_refused() {
    let (id, message, heads) = refusal("/never", MAX_REVERSE + 1).await;
    assert_eq!(
        (id, message.as_str(), heads),
        (1025, "more than 1024 requests are in flight", 0)
    );
}

#[tokio::test]
async fn one_stream_more_than_may_be_open_is_refused() {
    let (_, message, heads) = refusal("/stream", MAX_STREAMS + 1).await;
    assert_eq!(
        (message.as_str(), heads),
        ("more than 256 streams are open: close some", MAX_STREAMS)
    );
}

fn start() -> (
    Arc<Peer>,
    UnixStream,
    tokio::task::JoinHandle<Option<String>>,
) {
    let (host, process) = UnixStream::pair().unwrap();
    let lines = Lines::new("p".to_owned(), OutputLog::default());
    let mut peer = Peer::new(lines, Arc::new(Endless), None);
    Arc::get_mut(&mut peer).unwrap().backlog = BACKLOG;
    let (source, sink) = host.into_split();
    tokio::spawn(Arc::clone(&peer).write(sink));
    let reader = tokio::spawn(Arc::clone(&peer).read(source));
    (peer, process, reader)
}

async fn ask(process: &mut UnixStream, id: usize, path: &str) {
    let request = json!({"jsonrpc": "2.0", "id": id, "method": process::SDK_REQUEST,
        "params": {"method": "GET", "path": path}});
    process.write_all(&encode(&request).unwrap()).await.unwrap();
}

/// Large answers to a process that reads none of them: what waits is bounded, and the process learns why it gets no more.
#[tokio::test]
async fn answers_that_nobody_reads_are_bounded() {
    let (peer, mut process, reader) = start();
    for id in 1..=60 {
        ask(&mut process, id, "/large").await;
    }
    let mut most = 0;
    while !lock(&peer.open).reverse.is_empty() {
        most = most.max(peer.outbox.waiting());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    most = most.max(peer.outbox.waiting());
    assert!(most <= BACKLOG + 2 * LARGE, "{most}");
    let (mut decoder, mut whole, mut refused) = (Decoder::default(), 0, String::new());
    for _ in 0..60 {
        let frame = loop {
            if let Some(frame) = decoder.next_frame().unwrap() {
                break frame;
            }
            assert!(process.read_buf(decoder.buffer()).await.unwrap() > 0);
        };
        let message: Message = serde_json::from_slice(&frame).unwrap();
        match message.error {
            Some(error) => refused = error.message,
            None => whole += 1,
        }
    }
    assert!((BACKLOG / LARGE..60).contains(&whole), "{whole}");
    assert!(refused.contains("to read them"), "{refused}");
    assert!(!reader.is_finished());
}

#[tokio::test]
async fn a_request_with_the_number_of_another_ends_the_channel() {
    let (_peer, mut process, reader) = start();
    ask(&mut process, 7, "/never").await;
    ask(&mut process, 7, "/never").await;
    assert_eq!(
        reader.await.unwrap().unwrap(),
        "the plugin process sent something that is not a JSON-RPC message: request 7 has the number of one that is in work"
    );
}

/// Code of a plugin that writes to the channel by itself answers nobody's call.
#[tokio::test]
async fn an_answer_that_the_host_script_does_not_send_ends_the_channel() {
    let ends = [
        (2, "an answer to call 2, which was not made"),
        (0, "an answer to call 0, which was not made"),
        (1, "a call of a hook was answered without any result"),
    ];
    for (id, reason) in ends {
        let (peer, mut process, reader) = start();
        let (results, _) = mpsc::unbounded_channel();
        let mut call = peer.call_hooks(host::HOOK_RUN, &[b"{}"], results).unwrap();
        lock(&peer.entered).enter(Enter {
            plugin: "p".to_owned(),
            what: "chat.params".to_owned(),
            call: Some(1),
        });
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": {}});
        process.write_all(&encode(&answer).unwrap()).await.unwrap();
        let broke = reader.await.unwrap().unwrap();
        assert!(broke.ends_with(reason), "{broke}");
        assert_eq!(peer.entered().suspects()[0].plugin, "p");
        peer.close(Closed::default());
        assert!(matches!(call.answer().await, Err(JsError::Closed { .. })));
    }
    for (method, reason) in [
        (
            host::TOOL_RUN,
            "a call of a tool was answered without its output",
        ),
        (host::INITIALIZE, "loading was answered without the plugins"),
    ] {
        let (peer, mut process, reader) = start();
        let _call = peer.call(method, &json!({})).unwrap();
        let answer = json!({"jsonrpc": "2.0", "id": 1, "result": {}});
        process.write_all(&encode(&answer).unwrap()).await.unwrap();
        let broke = reader.await.unwrap().unwrap();
        assert!(broke.ends_with(reason), "{broke}");
    }
}
