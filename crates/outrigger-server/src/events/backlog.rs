//! Queued events for a client that reads a stream.
//!
//! A client that does not read must not use unbounded memory: events carry whole tool calls, which can be of any size.
//! So the queue is bounded in bytes, more tightly for a client that reads nothing at all.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use outrigger_stdx::sync::lock;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Bytes passed on at once: a connection that nothing reads holds little.
const PIECE: usize = 64 * 1024;

/// How far a client may fall behind.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Maximum bytes queued for a client that reads.
    pub(crate) reading: usize,
    /// Maximum bytes queued for a client that has read nothing for `stall_timeout`.
    pub(crate) stalled: usize,
    /// See `stalled`.
    pub(crate) stall_timeout: Duration,
}

/// The figures of docs/compatibility.md and docs/plugins/writing.md.
pub(crate) const LIMITS: Limits = Limits {
    reading: 64 << 20,
    stalled: 4 << 20,
    stall_timeout: Duration::from_secs(30),
};

/// Texts on their way from one task to another.
#[derive(Debug)]
pub(crate) struct Backlog {
    limits: Limits,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    texts: VecDeque<Bytes>,
    bytes: usize,
    taken: Instant,
    ended: bool,
}

impl Backlog {
    pub(crate) fn new(limits: Limits) -> Self {
        let state = State {
            texts: VecDeque::new(),
            bytes: 0,
            taken: Instant::now(),
            ended: false,
        };
        Self {
            limits,
            state: Mutex::new(state),
            changed: Notify::new(),
        }
    }

    /// Returns whether another text may be queued. A single text may have any size.
    pub(crate) fn has_room(&self) -> bool {
        let state = self.lock();
        let stalled = state.taken.elapsed() >= self.limits.stall_timeout;
        let most = if stalled {
            self.limits.stalled
        } else {
            self.limits.reading
        };
        state.bytes <= most
    }

    pub(crate) fn push(&self, text: Bytes) {
        let mut state = self.lock();
        if state.texts.is_empty() {
            // A client with nothing to read is not stalled.
            state.taken = Instant::now();
        }
        state.bytes += text.len();
        state.texts.push_back(text);
        drop(state);
        self.changed.notify_one();
    }

    /// Ends the queue; what is queued is still passed on.
    pub(crate) fn end(&self) {
        self.lock().ended = true;
        self.changed.notify_one();
    }

    /// Ends the queue and drops its contents.
    pub(crate) fn cut(&self) {
        let mut state = self.lock();
        state.ended = true;
        state.bytes = 0;
        state.texts = VecDeque::new();
        drop(state);
        self.changed.notify_one();
    }

    /// Returns the next piece; `None` at the end. For one reader.
    pub(crate) async fn next(&self) -> Option<Bytes> {
        loop {
            {
                let mut state = self.lock();
                if let Some(piece) = state.take() {
                    return Some(piece);
                }
                if state.ended {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    fn take(&mut self) -> Option<Bytes> {
        let first = self.texts.front_mut()?;
        let piece = if first.len() > PIECE {
            // A copy: a slice would keep the whole text alive.
            let piece = Bytes::copy_from_slice(first.get(..PIECE)?);
            first.advance(PIECE);
            piece
        } else {
            self.texts.pop_front()?
        };
        self.bytes -= piece.len();
        self.taken = Instant::now();
        Some(piece)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FEW: Limits = Limits {
        reading: 1_000,
        stalled: 100,
        stall_timeout: Duration::from_secs(3_600),
    };

    fn text() -> Bytes {
        Bytes::from(vec![b'x'; 200])
    }

    #[tokio::test]
    async fn what_waits_is_bounded_and_handed_on_at_the_end() {
        let backlog = Backlog::new(FEW);
        for _ in 0..6 {
            assert!(backlog.has_room(), "no more than 1,000 bytes wait");
            backlog.push(text());
        }
        assert!(!backlog.has_room());
        assert_eq!(backlog.next().await, Some(text()));
        assert!(backlog.has_room());
        backlog.end();
        let mut left = 0;
        while let Some(text) = backlog.next().await {
            left += text.len();
        }
        assert_eq!(left, 1_000);
    }

    #[tokio::test]
    async fn less_may_wait_for_one_that_reads_nothing() {
        let backlog = Backlog::new(Limits {
            stall_timeout: Duration::from_millis(20),
            ..FEW
        });
        backlog.push(text());
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert!(!backlog.has_room(), "200 bytes wait for too long");
        assert_eq!(backlog.next().await, Some(text()));
        tokio::time::sleep(Duration::from_millis(30)).await;
        assert!(backlog.has_room(), "nothing waits");
    }

    #[tokio::test]
    async fn one_text_of_any_size_goes_through_in_pieces() {
        let backlog = Backlog::new(FEW);
        let text: Vec<u8> = (0..PIECE * 3 + 17).map(|n| n as u8).collect();
        backlog.push(Bytes::from(text.clone()));
        backlog.end();
        let mut got = Vec::new();
        while let Some(piece) = backlog.next().await {
            assert!(piece.len() <= PIECE);
            got.extend_from_slice(&piece);
        }
        assert!(got == text);
    }

    #[tokio::test]
    async fn what_is_cut_is_forgotten() {
        let backlog = Backlog::new(FEW);
        backlog.push(Bytes::from_static(b"x"));
        backlog.cut();
        assert_eq!(backlog.next().await, None);
    }
}
