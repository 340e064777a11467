//! Endless answers to a plugin's client: sent as fast as the process accepts them.

use std::fmt;
use std::sync::atomic::{AtomicI64, Ordering};

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use outrigger_protocol::rpc::{SdkChunk, SdkResponse};
use tokio::sync::Notify;

/// A streamed body, in chunks of UTF-8 text. The next chunk is requested only when the process has accepted enough, and
/// the stream is dropped when the plugin no longer wants it.
pub type SdkBody = BoxStream<'static, Bytes>;

/// The answer to a request of a plugin's client (A11).
pub struct SdkAnswer {
    /// Status and headers, and the body if it is not streamed.
    pub response: SdkResponse,
    /// The streamed body, if it is.
    pub body: Option<SdkBody>,
}

impl SdkAnswer {
    /// Creates an answer with a streamed body.
    #[must_use]
    pub fn streamed(status: u16, headers: Vec<(String, String)>, body: SdkBody) -> Self {
        let response = SdkResponse {
            status,
            headers,
            body: String::new(),
            stream: true,
        };
        Self {
            response,
            body: Some(body),
        }
    }
}

impl From<SdkResponse> for SdkAnswer {
    fn from(response: SdkResponse) -> Self {
        Self {
            response,
            body: None,
        }
    }
}

impl fmt::Debug for SdkAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SdkAnswer")
            .field("response", &self.response)
            .finish_non_exhaustive()
    }
}

/// Remaining bytes that a process accepts. A chunk is sent whole once there is any credit, so the value may become
/// negative.
#[derive(Default)]
pub(crate) struct Credit {
    bytes: AtomicI64,
    granted: Notify,
}

impl Credit {
    pub(crate) fn grant(&self, bytes: u64) {
        let more = i64::try_from(bytes).unwrap_or(i64::MAX);
        let _ = self
            .bytes
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |have| {
                Some(have.saturating_add(more))
            });
        self.granted.notify_one();
    }

    fn spend(&self, bytes: usize) {
        let less = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.bytes.fetch_sub(less, Ordering::AcqRel);
    }

    async fn any(&self) {
        while self.bytes.load(Ordering::Acquire) <= 0 {
            self.granted.notified().await;
        }
    }
}

/// Sends the chunks of a body, and its end. Ends early if a chunk cannot be sent.
pub(crate) async fn pump<E>(
    request: u64,
    mut body: SdkBody,
    credit: &Credit,
    send: impl Fn(SdkChunk) -> Result<(), E>,
) -> Result<(), E> {
    let chunk = |data| SdkChunk {
        request,
        data,
        end: false,
        error: None,
    };
    loop {
        credit.any().await;
        let Some(piece) = body.next().await else {
            break send(SdkChunk {
                end: true,
                ..chunk(None)
            });
        };
        let Ok(text) = std::str::from_utf8(&piece) else {
            break send(SdkChunk::broken(
                request,
                "the answer is not text".to_owned(),
            ));
        };
        credit.spend(text.len());
        send(chunk(Some(text.to_owned())))?;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    use futures_util::FutureExt as _;

    use super::*;

    /// No chunk is taken from the source before there is room for it, however much the source has.
    #[test]
    fn nothing_is_taken_that_nobody_has_room_for() {
        let taken = std::sync::Arc::new(AtomicUsize::new(0));
        let counted = std::sync::Arc::clone(&taken);
        let body = futures_util::stream::iter(0..10).map(move |_| {
            counted.fetch_add(1, Ordering::SeqCst);
            Bytes::from_static(b"12345678")
        });
        let (credit, sent) = (Credit::default(), Mutex::new(Vec::new()));
        let send = |chunk: SdkChunk| {
            sent.lock().unwrap().push(chunk);
            Ok::<(), ()>(())
        };
        let mut pumping = Box::pin(pump(7, body.boxed(), &credit, send));
        let mut seen = Vec::new();
        for grant in [0, 1, 7, 1, 16, 0, u64::MAX] {
            credit.grant(grant);
            let over = (&mut pumping).now_or_never().is_some();
            seen.push((grant, taken.load(Ordering::SeqCst), over));
        }
        assert_eq!(
            seen,
            [
                (0, 0, false),
                (1, 1, false),
                (7, 1, false),
                (1, 2, false),
                (16, 4, false),
                (0, 4, false),
                (u64::MAX, 10, true)
            ]
        );
        let sent = sent.lock().unwrap();
        assert_eq!(sent.len(), 11);
        assert!(
            sent[..10]
                .iter()
                .all(|chunk| !chunk.end && chunk.request == 7)
        );
        assert!(sent[10].end && sent[10].error.is_none());
    }

    #[test]
    fn what_is_no_text_ends_it_with_a_reason() {
        let (credit, sent) = (Credit::default(), Mutex::new(Vec::new()));
        credit.grant(100);
        let body =
            futures_util::stream::iter([Bytes::from_static(b"a"), Bytes::from_static(b"\xff")]);
        let send = |chunk: SdkChunk| {
            sent.lock().unwrap().push(chunk.error);
            Ok::<(), ()>(())
        };
        let over = pump(1, body.boxed(), &credit, send).now_or_never();
        assert_eq!(over, Some(Ok(())));
        assert_eq!(
            *sent.lock().unwrap(),
            [None, Some("the answer is not text".to_owned())]
        );
    }
}
