//! What a handler changed, for people who look at its record: the values before and after, without secrets and of bounded size (A2).
//!
//! Made only of an answer that changes something: a handler that changes nothing pays nothing for it.

mod compare;
mod recorded;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use outrigger_protocol::history::{History, MESSAGES};
use outrigger_protocol::hook::{ChangedValue, ChangedValues};
use outrigger_protocol::turn::HookPayload;
use serde_json::Value;

use self::recorded::Room;

/// Takes secrets out of a value. The text is the name of the place where it stands, which may say that all of it is one.
pub type RedactFn = Arc<dyn Fn(&str, &mut Value) + Send + Sync>;

/// Places whose values are kept of one answer.
const MAX_PLACES: usize = 64;

/// The outputs of a call as a handler was given them.
pub(crate) struct Given(Vec<(Value, Option<History>)>);

impl Given {
    pub(crate) fn of(items: &[HookPayload]) -> Self {
        let of = |item: &HookPayload| (item.output.clone(), item.history.clone());
        Self(items.iter().map(of).collect())
    }

    /// What is different of what the handler left.
    pub(crate) fn changes(&self, left: &[HookPayload], redact: &RedactFn) -> ChangedValues {
        let mut found = Found {
            redact,
            room: Room::default(),
            values: ChangedValues::default(),
        };
        let many = self.0.len() > 1;
        for (index, ((output, history), item)) in self.0.iter().zip(left).enumerate() {
            let at = if many {
                format!("/{index}")
            } else {
                String::new()
            };
            found.values(&at, Some(output), Some(&item.output));
            if let (Some(before), Some(after)) = (history, &item.history) {
                found.histories(&format!("{at}/{MESSAGES}"), before, after);
            }
        }
        found.values
    }
}

/// The differences so far.
struct Found<'a> {
    redact: &'a RedactFn,
    room: Room,
    values: ChangedValues,
}

impl Found<'_> {
    fn keep(&mut self, at: &str, before: Option<&Value>, after: Option<&Value>) {
        if self.values.places.len() >= MAX_PLACES {
            self.values.more += 1;
            return;
        }
        let (before, after) = self.room.take(at, before, after, self.redact);
        self.values.places.push(ChangedValue {
            at: at.to_owned(),
            before,
            after,
        });
    }
}
