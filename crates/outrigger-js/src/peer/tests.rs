//! A process that asks for more than it may have is told which limit it met, and the rest of its requests goes on.

use futures_util::StreamExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::net::UnixStream;

use super::*;

/// Answers nothing, but streams without end.
struct Endless;

impl HostHandler for Endless {
    fn sdk(&self, request: SdkRequest) -> BoxFuture<'_, SdkAnswer> {
        Box::pin(async move {
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
    let (host, mut process) = UnixStream::pair().unwrap();
    let peer = Peer::new("p".to_owned(), Arc::new(Endless), None);
    let (source, sink) = host.into_split();
    let writer = tokio::spawn(Arc::clone(&peer).write(sink));
    let reader = tokio::spawn(Arc::clone(&peer).read(source));
    for id in 1..=count {
        let request = json!({"jsonrpc": "2.0", "id": id, "method": process::SDK_REQUEST,
            "params": {"method": "GET", "path": path}});
        process.write_all(&encode(&request).unwrap()).await.unwrap();
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
    writer.abort();
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
