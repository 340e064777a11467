//! The event bus: what was told to a client is in the store first (invariant 6).

use std::sync::Arc;

use outrigger_protocol::event::{BusEvent, Event};
use tokio::sync::broadcast;

/// How many events a slow listener may fall behind before it misses some; it is told how many.
const CAPACITY: usize = 4096;

/// Takes each event in the order in which they are told. It must not wait.
pub type Sink = Arc<dyn Fn(&Arc<BusEvent>) + Send + Sync>;

/// Hands events to every listener. A listener that is slow, or gone, disturbs nobody (C15): sending never waits.
#[derive(Clone)]
pub struct Bus {
    sender: broadcast::Sender<Arc<BusEvent>>,
    sink: Option<Sink>,
}

impl Bus {
    /// A bus that tells this sink, too.
    #[must_use]
    pub fn new(sink: Option<Sink>) -> Self {
        Self {
            sender: broadcast::channel(CAPACITY).0,
            sink,
        }
    }

    /// Listens from now on.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Arc<BusEvent>> {
        self.sender.subscribe()
    }

    /// Tells everyone. The caller has stored the event unless it is transient.
    pub fn tell(&self, event: Arc<BusEvent>) {
        if let Some(sink) = &self.sink {
            sink(&event);
        }
        // No listener is no error.
        let _ = self.sender.send(event);
    }
}

/// A new identifier for an event.
pub(crate) fn numbered(event: Event) -> BusEvent {
    BusEvent {
        id: crate::ids::event(),
        event,
    }
}
