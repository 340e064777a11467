//! Events on their way to a process.

use outrigger_js::JsError;
use outrigger_protocol::event::BusEvent;
use outrigger_protocol::rpc::EventBatch;

use super::{Group, Live, Slot};
use crate::waiting::stands_for;

impl Group {
    /// Sends events, in order; they reach the process before any later call. While it restarts or does not read, they
    /// wait.
    pub fn events(&self, events: &[BusEvent]) {
        let mut slot = self.slot();
        if slot.closed {
            return;
        }
        for event in events {
            let (dropped, limit) = slot.pending.push(event);
            slot.missed += dropped;
            if let Some(limit) = limit {
                tracing::warn!(
                    "plugin process {}: {limit} for it; the oldest are dropped, and its plugins are notified how many",
                    self.name
                );
            }
        }
        if let Some(live) = slot.live.clone().filter(|live| live.process.is_alive()) {
            self.flush(&mut slot, &live);
        }
    }

    /// Returns how many events its plugins never saw, since the start.
    pub fn missed(&self) -> u64 {
        self.slot().missed
    }

    // Sends all waiting events or none: what cannot be sent now goes first the next time.
    pub(super) fn flush(&self, slot: &mut Slot, live: &Live) {
        if slot.pending.is_empty() {
            return;
        }
        let batch = EventBatch::of(slot.pending.take());
        let lost = match live.process.event_batch(&batch) {
            Ok(()) => return,
            Err(JsError::Backlog { .. } | JsError::Closed { .. }) => {
                slot.pending.put_back(batch.events);
                return;
            }
            // Too large for one frame: send them one by one; an event that is too large alone is lost.
            Err(error) => {
                let one = |event: &&BusEvent| {
                    let one = EventBatch::of(vec![(*event).clone()]);
                    live.process.event_batch(&one).is_err()
                };
                let lost = batch.events.iter().filter(one).map(stands_for).sum::<u64>();
                tracing::warn!("plugin process {}: {lost} events: {error}", self.name);
                lost
            }
        };
        slot.pending.lost(lost);
        slot.missed += lost;
    }
}
