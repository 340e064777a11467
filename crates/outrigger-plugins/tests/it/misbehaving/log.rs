//! Log lines at level WARN and above while a row runs.

use std::fmt::Write as _;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Dispatch, Event, Level, Metadata, Subscriber};

/// The lines so far, without their times.
#[derive(Clone, Default)]
pub(super) struct Captured(Arc<Mutex<Vec<String>>>);

impl Captured {
    pub(super) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Runs this on threads of its own, whose lines come here.
    pub(super) fn run<T>(&self, row: impl Future<Output = T>) -> T {
        let dispatch = Dispatch::new(self.clone());
        let _here = tracing::dispatcher::set_default(&dispatch);
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            // For as long as the thread lives.
            .on_thread_start(move || {
                let _ = ManuallyDrop::new(tracing::dispatcher::set_default(&dispatch));
            })
            .build()
            .unwrap()
            .block_on(row)
    }
}

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        if field.name() == "message" {
            let _ = write!(self.0, "{value:?}");
        }
    }
}

impl Subscriber for Captured {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN || metadata.target() == "plugin"
    }
    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }
    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        self.0.lock().unwrap().push(message.0);
    }
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}
