//! The steps of a turn: hooks, model and tools, from the log.

use std::collections::BTreeMap;

use outrigger_api::{Span, SpanKind, SpanState, Trace, Turn};
use outrigger_protocol::Millis;
use outrigger_protocol::Object;
use outrigger_protocol::event::Event;
use outrigger_protocol::hook::{HookRecord, OutcomeKind};
use outrigger_protocol::id::{CallId, MessageId, SessionId, TurnId};
use outrigger_protocol::log::{LogRecord, ToolRecord, TurnStep};
use outrigger_protocol::message::MessageInfo;
use outrigger_protocol::turn::{EffectId, Input, ModelSignal};
use outrigger_store::{RecordQuery, Scope, StoreError, StoredRecord, TurnInfo};
use serde_json::{Value, json};

use crate::reader::Reader;

impl Reader {
    /// Returns the last turns of a session, newest first.
    ///
    /// # Errors
    /// Those of the store.
    pub fn turns(&self, session: &SessionId, limit: usize) -> Result<Vec<Turn>, StoreError> {
        let turns = self.store().last_turns(session, limit)?;
        turns.into_iter().map(|info| self.turn(info)).collect()
    }

    /// Returns the steps of a turn; `None` if the session has no such turn.
    ///
    /// # Errors
    /// Those of the store.
    pub fn trace(&self, session: &SessionId, turn: &TurnId) -> Result<Option<Trace>, StoreError> {
        let info = self.store().turn(turn)?;
        let Some(info) = info.filter(|info| info.session == *session) else {
            return Ok(None);
        };
        let records = self.store().records(&RecordQuery {
            scope: Some(Scope::Turn(turn)),
            ..RecordQuery::default()
        })?;
        let waits = self.waits(session, &records)?;
        let mut spans = Vec::new();
        let mut requests = Requests::default();
        for stored in records {
            match stored.record {
                LogRecord::Hook(hook) => spans.push(hook_span(&hook)),
                LogRecord::Tool(tool) => spans.push(tool_span(&tool, &waits)),
                LogRecord::TurnStep(step) => spans.extend(requests.on(&step)),
                _ => {}
            }
        }
        spans.extend(requests.running(info.last_at));
        spans.sort_by_key(|span| (span.start, span.kind));
        Ok(Some(Trace {
            turn: self.turn(info)?,
            spans,
        }))
    }

    /// Returns how long calls of a turn waited for answers of the user, by the call, in milliseconds.
    fn waits(
        &self,
        session: &SessionId,
        records: &[StoredRecord],
    ) -> Result<BTreeMap<CallId, Millis>, StoreError> {
        let mut waits = BTreeMap::new();
        let is_asked = |record: &LogRecord| match record {
            LogRecord::Tool(tool) => tool.permissions.iter().any(|it| it.contains("ask")),
            _ => false,
        };
        let (Some(first), Some(last)) = (records.first(), records.last()) else {
            return Ok(waits);
        };
        let (mut after, end) = (first.seq, last.seq);
        if !records.iter().any(|it| is_asked(&it.record)) {
            return Ok(waits);
        }
        let mut open = BTreeMap::new();
        while after < end {
            let events = self.store().records(&RecordQuery {
                scope: Some(Scope::Session(session)),
                kind: Some("event"),
                after,
                limit: Some(EVENTS_AT_ONCE),
            })?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            for stored in events {
                let LogRecord::Event(event) = stored.record else {
                    continue;
                };
                match event.event {
                    Event::PermissionAsked(request) => {
                        let call = request.tool.map(|tool| tool.call_id);
                        open.insert(request.id, (call, stored.at));
                    }
                    Event::PermissionReplied { request_id, .. } => {
                        if let Some((Some(call), asked)) = open.remove(&request_id) {
                            *waits.entry(call).or_default() += stored.at.saturating_sub(asked);
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(waits)
    }

    fn turn(&self, info: TurnInfo) -> Result<Turn, StoreError> {
        let first = self.store().records(&RecordQuery {
            scope: Some(Scope::Turn(&info.turn)),
            kind: Some("turn_step"),
            after: 0,
            limit: Some(1),
        })?;
        let attempt = match first.first() {
            Some(first) => self.attempt(&info.session, first)?,
            None => None,
        };
        Ok(Turn {
            id: info.turn,
            conversation: info.session,
            attempt,
            began: info.began,
            ended: info.last_at,
            open: info.open,
        })
    }
}

/// Number of events after the first step of a turn that must include its prompt.
const FIRST_EVENTS: usize = 50;
/// Number of events read at once.
const EVENTS_AT_ONCE: usize = 1000;

impl Reader {
    /// Returns the prompt that a turn answers, from its first step.
    fn attempt(
        &self,
        session: &SessionId,
        first: &StoredRecord,
    ) -> Result<Option<MessageId>, StoreError> {
        let LogRecord::TurnStep(step) = &first.record else {
            return Ok(None);
        };
        let Input::Begin(begin) = &step.input else {
            return Ok(None);
        };
        if begin.compact.is_some() {
            return Ok(None);
        }
        if begin.stored {
            return Ok(Some(begin.message.id.clone()));
        }
        // It gets its identifier when it is stored.
        let events = self.store().records(&RecordQuery {
            scope: Some(Scope::Session(session)),
            kind: Some("event"),
            after: first.seq,
            limit: Some(FIRST_EVENTS),
        })?;
        Ok(events.into_iter().find_map(|stored| match stored.record {
            LogRecord::Event(event) => match event.event {
                Event::MessageUpdated { info, .. } => match *info {
                    MessageInfo::User(user) => Some(user.id),
                    MessageInfo::Assistant(_) => None,
                },
                _ => None,
            },
            _ => None,
        }))
    }
}

/// Open requests to the model, from the steps.
#[derive(Default)]
struct Requests {
    model: String,
    /// When each effect was requested.
    wanted: BTreeMap<EffectId, Millis>,
    begun: BTreeMap<EffectId, Millis>,
}

impl Requests {
    /// Returns a request that has ended with this step.
    fn on(&mut self, step: &TurnStep) -> Option<Span> {
        let ended = match &step.input {
            Input::Begin(begin) => {
                self.model = format!("{}/{}", begin.model.provider_id, begin.model.model_id);
                None
            }
            Input::Model { effect, signal } => {
                let wanted = self.wanted.get(effect).copied().unwrap_or(step.at);
                let start = *self.begun.entry(*effect).or_insert(wanted);
                let facts = match signal {
                    ModelSignal::Finished { reason, usage } => {
                        Some((SpanState::Ok, json!({ "reason": reason, "tokens": usage })))
                    }
                    ModelSignal::Failed { error } => {
                        Some((SpanState::Error, json!({ "error": error.message() })))
                    }
                    _ => None,
                };
                facts.map(|(state, facts)| {
                    self.begun.remove(effect);
                    self.span(start, step.at, state, facts)
                })
            }
            _ => None,
        };
        let wanted = step.intents.iter().map(|effect| (*effect, step.at));
        self.wanted.extend(wanted);
        ended
    }

    fn running(self, until: Millis) -> Vec<Span> {
        let begun = self.begun.values();
        let span = |start: &Millis| self.span(*start, until, SpanState::Running, json!({}));
        begun.map(span).collect()
    }

    fn span(&self, start: Millis, end: Millis, state: SpanState, facts: Value) -> Span {
        Span {
            kind: SpanKind::Model,
            name: self.model.clone(),
            start,
            duration_ms: as_ms(end.saturating_sub(start)),
            state,
            plugin: None,
            changed: Vec::new(),
            values: Vec::new(),
            more_values: None,
            facts: object(facts),
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "milliseconds are exact for 285000 years"
)]
fn as_ms(millis: Millis) -> f64 {
    millis as f64
}

fn hook_span(hook: &HookRecord) -> Span {
    let state = match hook.outcome {
        OutcomeKind::Skipped | OutcomeKind::Refused => SpanState::Skipped,
        OutcomeKind::Ok => SpanState::Ok,
        _ => SpanState::Error,
    };
    Span {
        kind: SpanKind::Hook,
        name: hook.point.clone(),
        start: hook.at,
        duration_ms: hook.duration_ms,
        state,
        plugin: Some(hook.plugin.to_string()),
        changed: hook.changed.clone(),
        values: hook.values.places.clone(),
        more_values: Some(hook.values.more).filter(|more| *more > 0),
        facts: object(json!({
            "hook": hook.hook, "outcome": hook.outcome, "decision": hook.decision, "bytes": hook.payload_bytes,
            "cpuMs": hook.cpu_ms, "message": hook.message,
        })),
    }
}

fn tool_span(tool: &ToolRecord, waits: &BTreeMap<CallId, Millis>) -> Span {
    let state = match tool.outcome.as_str() {
        "completed" => SpanState::Ok,
        _ => SpanState::Error,
    };
    Span {
        kind: SpanKind::Tool,
        name: tool.call.tool.clone(),
        start: tool.at,
        duration_ms: tool.duration_ms,
        state,
        plugin: tool.provenance.replaced_tool_of().map(|it| it.to_string()),
        changed: Vec::new(),
        values: Vec::new(),
        more_values: None,
        facts: object(json!({
            "call": tool.call.call_id, "outcome": tool.outcome, "permissions": tool.permissions, "retries": tool.retries,
            "waitedMs": waits.get(&tool.call.call_id),
        })),
    }
}

/// Creates an object without unknown fields.
fn object(value: Value) -> Object {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .collect(),
        _ => Object::new(),
    }
}
