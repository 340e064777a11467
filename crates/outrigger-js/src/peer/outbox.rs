//! Output to the process: written at once if the socket accepts it, otherwise by the task that waits for it. The first
//! case is the usual one, and saves a hook call a second task.

use std::collections::VecDeque;
use std::io;
use std::sync::{Mutex, OnceLock};

use bytes::{Buf as _, Bytes};
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::Notify;

use super::lock;

/// Frames on their way to a process, in order.
#[derive(Default)]
pub(crate) struct Outbox {
    queue: Mutex<Queue>,
    sink: OnceLock<OwnedWriteHalf>,
    more: Notify,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Bytes>,
    bytes: usize,
}

impl Outbox {
    pub(super) fn push(&self, frame: Bytes) {
        let mut queue = lock(&self.queue);
        queue.bytes += frame.len();
        queue.frames.push_back(frame);
        if queue.frames.len() > 1 {
            return;
        }
        // An error here recurs in the writer and in the reader.
        let done = self
            .sink
            .get()
            .is_some_and(|sink| drain(&mut queue, sink).is_ok());
        if !done || !queue.frames.is_empty() {
            self.more.notify_one();
        }
    }

    /// Returns the number of waiting bytes.
    pub(super) fn waiting(&self) -> usize {
        lock(&self.queue).bytes
    }

    /// Writes what is queued until the channel ends.
    pub(crate) async fn write(&self, sink: OwnedWriteHalf) {
        let sink = self.sink.get_or_init(|| sink);
        loop {
            while !lock(&self.queue).frames.is_empty() {
                if sink.writable().await.is_err() || drain(&mut lock(&self.queue), sink).is_err() {
                    return;
                }
            }
            self.more.notified().await;
        }
    }
}

/// Writes as much as the socket accepts now.
fn drain(queue: &mut Queue, sink: &OwnedWriteHalf) -> io::Result<()> {
    while let Some(frame) = queue.frames.front_mut() {
        match sink.try_write(frame) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(taken) => {
                frame.advance(taken);
                queue.bytes = queue.bytes.saturating_sub(taken);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
        if frame.is_empty() {
            queue.frames.pop_front();
        }
    }
    Ok(())
}
