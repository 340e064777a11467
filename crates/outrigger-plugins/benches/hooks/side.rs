//! One way to hand a history over, and what it costs.

use std::time::{Duration, Instant};

use outrigger_protocol::history::History;

use crate::history::Conversation;
use crate::peak::{self, Peak};
use crate::room::{self, Room};
use crate::{Way, at};

/// What one way costs for a history, each call.
pub(crate) struct Cost {
    pub(crate) js_ms: f64,
    pub(crate) host_ms: f64,
    pub(crate) latency_ms: f64,
    /// How long the plugin process kept a core busy for one call, in the middle.
    pub(crate) peak_ms: f64,
}

/// A plugin and a history that grows by one message with each call of `messages.transform`, as it does in a turn with tools.
pub(crate) struct Side {
    pub(crate) room: Room,
    history: Conversation,
    size: usize,
    times: Vec<Duration>,
    peaks: Vec<Duration>,
    js: f64,
    host: f64,
}

impl Side {
    pub(crate) async fn new(way: Way, messages: usize, size: usize) -> Self {
        let mut side = Self {
            room: Room::new(way).await,
            history: Conversation::new(messages, size),
            size,
            times: Vec::new(),
            peaks: Vec::new(),
            js: 0.0,
            host: 0.0,
        };
        for _ in 0..3 {
            side.room.transform(side.history.next()).await;
        }
        side
    }

    /// Returns how long one took, and the host's CPU time for one in milliseconds, in the mean.
    pub(crate) async fn calls(&mut self, calls: u32) -> (Duration, f64) {
        let (before, host_before) = (self.times.len(), self.host);
        // What is new is made outside of what is measured, and not all at once.
        let batch = ((200 << 20) / self.size).min(100);
        let mut left = calls as usize;
        while left > 0 {
            let now = left.min(batch.max(1));
            left -= now;
            let next: Vec<History> = (0..now).map(|_| self.history.next()).collect();
            let (js_before, host_before) = (self.room.js_cpu().await, room::host_cpu());
            for messages in next {
                let began = Instant::now();
                self.room.transform(messages).await;
                self.times.push(began.elapsed());
            }
            self.host += room::host_cpu() - host_before;
            self.js += self.room.js_cpu().await - js_before;
        }
        let took: Duration = self.times[before..].iter().sum();
        (took / calls, (self.host - host_before) / f64::from(calls))
    }

    /// The same call some times more, each behind a rest, as in a turn, where the model speaks in between: how long the process is
    /// busy for it.
    async fn peaks(&mut self) {
        const CALLS: usize = 9;
        const REST: Duration = Duration::from_millis(30);
        let pid = peak::process(&self.room.runtime.path);
        for _ in 0..CALLS {
            let messages = self.history.next();
            tokio::time::sleep(REST).await;
            let peak = Peak::of(pid);
            self.room.transform(messages).await;
            // What is done behind the answer is part of it.
            tokio::time::sleep(REST).await;
            self.peaks.push(peak.end());
        }
    }

    pub(crate) async fn end(mut self) -> Cost {
        self.room.end().await;
        self.times.sort_unstable();
        self.peaks.sort_unstable();
        #[expect(clippy::cast_precision_loss, reason = "a small count")]
        let calls = self.times.len() as f64;
        Cost {
            js_ms: self.js / calls,
            host_ms: self.host / calls,
            latency_ms: at(&self.times, 0.5) / 1000.0,
            peak_ms: if self.peaks.is_empty() {
                0.0
            } else {
                at(&self.peaks, 0.5) / 1000.0
            },
        }
    }
}

pub(crate) async fn measure(way: Way, messages: usize, size: usize, calls: u32) -> Cost {
    let mut side = Side::new(way, messages, size).await;
    side.calls(calls).await;
    side.peaks().await;
    side.end().await
}
