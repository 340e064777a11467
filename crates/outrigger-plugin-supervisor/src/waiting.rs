//! Queue of events for a process that is restarting or reads too slowly.
//!
//! The queue is limited by number and bytes. When it is long, chunks of a streamed text are merged and a newer state of a
//! part replaces the older one. Dropped events are counted, and the plugin is notified of the number first.

use std::collections::VecDeque;

use outrigger_protocol::Object;
use outrigger_protocol::event::{BusEvent, CustomEvent, Event};
use outrigger_protocol::history::json_size;
use serde_json::json;

/// Maximum number of events.
const MAX_EVENTS: usize = 10_000;
/// Maximum bytes, as JSON; half a frame, so that everything fits into one.
const MAX_BYTES: u64 = 32 << 20;
/// Length from which chunks are merged.
const LONG: usize = 1_000;
/// Number of events that are searched backwards for the part.
const BACK: usize = 256;
/// Event that reports `{count}` lost events, sent first. Streams of events use the same.
const DROPPED: &str = "outrigger.events.dropped";

/// The queue of one process.
#[derive(Clone, Debug)]
pub(crate) struct EventQueue {
    max_bytes: u64,
    events: VecDeque<(BusEvent, u64)>,
    bytes: u64,
    /// Number lost since the last notification.
    missed: u64,
    /// Limit that was hit since the queue was empty.
    hit: Option<&'static str>,
}

impl Default for EventQueue {
    fn default() -> Self {
        Self {
            max_bytes: MAX_BYTES,
            events: VecDeque::new(),
            bytes: 0,
            missed: 0,
            hit: None,
        }
    }
}

impl EventQueue {
    /// Returns whether there is nothing to send. Lost events are reported with the next event, not separately: otherwise the
    /// report would wake a hook that hangs at every event.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Counts events that were lost.
    pub(crate) fn lost(&mut self, count: u64) {
        self.missed += count;
    }

    /// Adds an event; returns how many older ones were dropped for it, and a description of the limit the first time it is
    /// hit.
    pub(crate) fn push(&mut self, event: &BusEvent) -> (u64, Option<String>) {
        if self.events.len() >= LONG && self.joined(event) {
            return (0, None);
        }
        let bytes = json_size(event);
        self.bytes += bytes;
        self.events.push_back((event.clone(), bytes));
        let mut dropped = 0;
        let mut hit = None;
        while self.events.len() > MAX_EVENTS || self.bytes > self.max_bytes {
            let limit = if self.bytes > self.max_bytes {
                "bytes"
            } else {
                "events"
            };
            let Some((_, bytes)) = self.events.pop_front() else {
                break;
            };
            self.bytes -= bytes;
            dropped += 1;
            hit = Some(limit);
        }
        self.missed += dropped;
        let warning = hit
            .filter(|limit| self.hit.replace(limit) != Some(*limit))
            .map(|limit| match limit {
                "bytes" => format!("more than {} MiB of events wait", self.max_bytes >> 20),
                _ => format!("more than {MAX_EVENTS} events wait"),
            });
        (dropped, warning)
    }

    // Whether it was merged into a waiting event.
    fn joined(&mut self, event: &BusEvent) -> bool {
        let from = self.events.len().saturating_sub(BACK);
        match &event.event {
            Event::PartDelta {
                part_id,
                field,
                delta,
                ..
            } => {
                // After a whole state of the part, a chunk starts a new event.
                let last = self
                    .events
                    .range_mut(from..)
                    .rev()
                    .find(|(event, _)| part_of(&event.event) == Some(part_id.as_str()));
                let Some((
                    BusEvent {
                        event:
                            Event::PartDelta {
                                field: at,
                                delta: text,
                                ..
                            },
                        ..
                    },
                    bytes,
                )) = last
                else {
                    return false;
                };
                let more = json_size(delta).saturating_sub(2);
                if at != field || self.bytes + more > self.max_bytes {
                    return false;
                }
                text.push_str(delta);
                *bytes += more;
                self.bytes += more;
                true
            }
            Event::PartUpdated { part, .. } => {
                // The newer state contains everything of the older ones and the chunks. It takes its own position.
                let id = part.id.as_str();
                let mut at = self.events.len();
                while at > from {
                    at -= 1;
                    let same = self
                        .events
                        .get(at)
                        .is_some_and(|(event, _)| part_of(&event.event) == Some(id));
                    if same && let Some((_, bytes)) = self.events.remove(at) {
                        self.bytes -= bytes;
                    }
                }
                false
            }
            _ => false,
        }
    }

    /// Puts back what could not be sent, to go first the next time. Nothing was added meanwhile.
    pub(crate) fn put_back(&mut self, events: Vec<BusEvent>) {
        for event in events {
            if is_word(&event) {
                self.missed += stands_for(&event);
            } else {
                let bytes = json_size(&event);
                self.bytes += bytes;
                self.events.push_back((event, bytes));
            }
        }
    }

    /// Takes all events to send. The first reports how many are lost.
    pub(crate) fn take(&mut self) -> Vec<BusEvent> {
        let missed = std::mem::take(&mut self.missed);
        let notice = (missed > 0).then(|| dropped(missed));
        let events = std::mem::take(&mut self.events);
        self.bytes = 0;
        self.hit = None;
        notice
            .into_iter()
            .chain(events.into_iter().map(|(event, _)| event))
            .collect()
    }
}

fn part_of(event: &Event) -> Option<&str> {
    match event {
        Event::PartDelta { part_id, .. } => Some(part_id.as_str()),
        Event::PartUpdated { part, .. } => Some(part.id.as_str()),
        _ => None,
    }
}

/// Returns how many events an event stands for: a report of lost events stands for them.
pub(crate) fn stands_for(event: &BusEvent) -> u64 {
    match &event.event {
        Event::Custom(custom) if is_word(event) => custom
            .properties
            .get("count")
            .and_then(serde_json::Value::as_u64)
            .unwrap_or(1),
        _ => 1,
    }
}

fn is_word(event: &BusEvent) -> bool {
    matches!(&event.event, Event::Custom(custom) if custom.kind == DROPPED)
}

fn dropped(count: u64) -> BusEvent {
    let mut properties = Object::new();
    properties.insert("count".to_owned(), json!(count));
    BusEvent {
        id: "evt_dropped".into(),
        event: Event::Custom(CustomEvent {
            depth: 0,
            kind: DROPPED.to_owned(),
            properties,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(value: serde_json::Value) -> BusEvent {
        serde_json::from_value(value).unwrap()
    }

    fn idle(n: usize) -> BusEvent {
        event(
            json!({"id": format!("evt_{n}"), "type": "session.idle", "properties": {"sessionID": "ses_1"}}),
        )
    }

    fn delta(part: &str, text: &str) -> BusEvent {
        event(
            json!({"id": "evt_d", "type": "message.part.delta", "properties": {
            "sessionID": "ses_1", "messageID": "msg_1", "partID": part, "field": "text", "delta": text}}),
        )
    }

    fn updated(part: &str, text: &str) -> BusEvent {
        event(
            json!({"id": "evt_u", "type": "message.part.updated", "properties": {
            "sessionID": "ses_1", "time": 1, "part": {
                "id": part, "sessionID": "ses_1", "messageID": "msg_1", "type": "text", "text": text}}}),
        )
    }

    fn shown(events: &[BusEvent]) -> String {
        let one = |event: &BusEvent| match &event.event {
            Event::PartDelta { part_id, delta, .. } => format!("{part_id}+{delta}"),
            Event::PartUpdated { part, .. } => {
                let part = json!(part);
                format!(
                    "{}={}",
                    part["id"].as_str().unwrap(),
                    part["text"].as_str().unwrap()
                )
            }
            Event::Custom(custom) => format!("{} {}", custom.kind, custom.properties["count"]),
            other => other.kind().to_owned(),
        };
        events.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_short_queue_keeps_every_piece() {
        let mut waiting = EventQueue::default();
        for event in [
            delta("prt_a", "x"),
            delta("prt_a", "y"),
            updated("prt_a", "xy"),
            updated("prt_a", "xyz"),
        ] {
            assert_eq!(waiting.push(&event), (0, None));
        }
        assert_eq!(shown(&waiting.take()), "prt_a+x prt_a+y prt_a=xy prt_a=xyz");
        assert!(waiting.is_empty());
    }

    #[test]
    fn in_a_long_queue_pieces_of_a_part_become_one() {
        let mut waiting = EventQueue::default();
        for n in 0..LONG {
            waiting.push(&idle(n));
        }
        for event in [
            updated("prt_a", ""),
            delta("prt_a", "x"),
            delta("prt_b", "1"),
            delta("prt_a", "y"),
            delta("prt_b", "2"),
            updated("prt_a", "xy"),
            delta("prt_a", "z"),
            delta("prt_a", "!"),
        ] {
            assert_eq!(waiting.push(&event), (0, None));
        }
        let bytes = waiting.bytes;
        let events = waiting.take();
        assert_eq!(shown(&events[LONG..]), "prt_b+12 prt_a=xy prt_a+z!");
        assert_eq!(bytes, events.iter().map(json_size).sum::<u64>());
    }

    #[test]
    fn limits_name_themselves_once_and_the_plugin_is_notified_what_it_missed() {
        let mut waiting = EventQueue::default();
        let mut said = Vec::new();
        for n in 0..MAX_EVENTS + 3 {
            said.extend(waiting.push(&idle(n)).1);
        }
        assert_eq!(said, ["more than 10000 events wait"]);
        let events = waiting.take();
        waiting.put_back(events.clone());
        assert_eq!(waiting.take(), events);
        assert_eq!(events.len(), MAX_EVENTS + 1);
        assert_eq!(
            shown(&events[..2]),
            "outrigger.events.dropped 3 session.idle"
        );
        assert_eq!((stands_for(&events[0]), stands_for(&events[1])), (3, 1));
        assert_eq!(events[1].id.as_str(), "evt_3");

        waiting.max_bytes = 1 << 20;
        let large = "x".repeat(300 << 10);
        let said: Vec<_> = (0..5)
            .map(|n| waiting.push(&updated(&format!("prt_{n}"), &large)))
            .collect();
        assert_eq!(said[2], (0, None));
        assert_eq!(
            said[3],
            (1, Some("more than 1 MiB of events wait".to_owned()))
        );
        assert_eq!(said[4], (1, None));
        waiting.lost(2);
        assert!(shown(&waiting.take()[..1]) == "outrigger.events.dropped 4");
    }
}
