//! What goes to the process: written at once where the socket takes it, else by the task that waits for it. The first is
//! the usual case, and costs a call of a hook no second task.

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
        // What goes wrong here goes wrong for the writer again, and for the reader.
        let done = self
            .sink
            .get()
            .is_some_and(|sink| drain(&mut queue, sink).is_ok());
        if !done || !queue.frames.is_empty() {
            self.more.notify_one();
        }
    }

    /// Bytes that wait.
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

/// Writes as much as the socket takes now.
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
