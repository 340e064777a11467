//! The event bus: an event is in the store before a client sees it (invariant 6).

use std::sync::Arc;

use outrigger_protocol::event::{BusEvent, Event};
use tokio::sync::broadcast;

/// Number of events that a slow listener may lag before it misses some; it learns how many.
const CAPACITY: usize = 4096;

/// Receives each event in the order of publication. It must not wait.
pub type Sink = Arc<dyn Fn(&Arc<BusEvent>) + Send + Sync>;

/// Delivers events to every listener. A slow or closed listener affects no other (C15): sending never waits.
#[derive(Clone)]
pub struct Bus {
    sender: broadcast::Sender<Arc<BusEvent>>,
    sink: Option<Sink>,
}

impl Bus {
    /// Creates a bus that also publishes to this sink.
    #[must_use]
    pub fn new(sink: Option<Sink>) -> Self {
        Self {
            sender: broadcast::channel(CAPACITY).0,
            sink,
        }
    }

    /// Subscribes from now on.
    #[must_use]
    pub fn listen(&self) -> broadcast::Receiver<Arc<BusEvent>> {
        self.sender.subscribe()
    }

    /// Publishes an event. The caller has stored the event unless it is transient.
    pub fn publish(&self, event: Arc<BusEvent>) {
        if let Some(sink) = &self.sink {
            // Whatever fails in it, the publishing turn and the other listeners continue.
            let called = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| sink(&event)));
            if called.is_err() {
                tracing::error!(event = %event.id, "a listener of the bus failed on this event");
            }
        }
        // Having no listener is not an error.
        let _ = self.sender.send(event);
    }
}

/// Assigns a new id to an event.
pub fn numbered(event: Event) -> BusEvent {
    BusEvent {
        id: crate::ids::event(),
        event,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::time::Duration;

    use outrigger_protocol::event::Event;
    use tokio::sync::broadcast::error::{RecvError, TryRecvError};

    fn event(number: usize) -> Arc<BusEvent> {
        Arc::new(numbered(Event::FileEdited {
            file: number.to_string(),
        }))
    }

    fn file(event: &BusEvent) -> String {
        match &event.event {
            Event::FileEdited { file } => file.clone(),
            other => format!("{other:?}"),
        }
    }

    /// C15: one listener throws at every event, one never reads, one lags, one is closed; the working one misses nothing,
    /// in order, and the publisher waits for none of them.
    #[tokio::test]
    async fn a_listener_that_throws_blocks_or_falls_behind_disturbs_no_one_else() {
        let thrown = Arc::new(Mutex::new(0));
        let count = Arc::clone(&thrown);
        let bus = Bus::new(Some(Arc::new(move |_| {
            *count.lock().unwrap() += 1;
            std::panic::resume_unwind(Box::new("a listener that throws"));
        })));
        let blocked = bus.listen();
        let mut slow = bus.listen();
        drop(bus.listen());
        let mut good = bus.listen();
        let listening = tokio::spawn(async move {
            let mut heard = Vec::new();
            while let Ok(event) = good.recv().await {
                heard.push(file(&event));
            }
            heard
        });
        let most = CAPACITY * 2;
        for number in 0..most {
            bus.publish(event(number));
            // The listeners of a server have separate tasks; here they share a thread with the publisher.
            if number % 100 == 0 {
                tokio::task::yield_now().await;
            }
        }
        let lost = match slow.recv().await {
            Err(RecvError::Lagged(lost)) => usize::try_from(lost).unwrap(),
            other => panic!("{other:?}"),
        };
        assert_eq!(lost, most - CAPACITY);
        assert_eq!(file(&slow.recv().await.unwrap()), lost.to_string());
        assert_eq!(*thrown.lock().unwrap(), most);
        drop(bus);
        let heard = tokio::time::timeout(Duration::from_secs(60), listening)
            .await
            .unwrap()
            .unwrap();
        let all: Vec<String> = (0..most).map(|number| number.to_string()).collect();
        assert_eq!(heard, all);
        drop(blocked);
    }

    #[test]
    fn nobody_listening_is_no_error() {
        let bus = Bus::new(None);
        bus.publish(event(1));
        assert!(matches!(bus.listen().try_recv(), Err(TryRecvError::Empty)));
    }
}
