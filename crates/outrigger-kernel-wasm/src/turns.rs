//! Turns: stepping, and replay of stored steps when the host restarts.

use outrigger_kernel::digest;
use outrigger_kernel::turn::{Effect, Turn, step};
use outrigger_protocol::Millis;
use outrigger_protocol::buffer::Buffer;
use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::id::{IdMaker, SessionId, TurnId};
use outrigger_protocol::log::{LogRecord, TurnStep};
use outrigger_protocol::turn::Input;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::open::Open;
use crate::{Answer, Empty, Failure, nothing, text};

/// Beginning of a step's body: the kind of a record is written first.
const STEP: &[u8] = b"{\"record\":\"turn_step\",";

/// Operations about turns.
#[derive(Deserialize)]
pub(crate) enum TurnOp {
    /// Opens a turn from its stored steps, the lines of the request; without any it waits for its first input.
    #[serde(rename = "turn.open")]
    Open(Empty),
    /// Takes an input.
    #[serde(rename = "turn.step")]
    Step {
        /// Number.
        turn: u32,
        /// Time.
        at: Millis,
        /// Input.
        input: Box<Input>,
    },
    /// Closes it.
    #[serde(rename = "turn.close")]
    Close {
        /// Number.
        turn: u32,
    },
}

/// A log row for the host to store: its text must not be parsed and written again.
#[derive(Serialize)]
pub(crate) struct Row {
    at: Millis,
    kind: &'static str,
    session: Option<String>,
    turn: Option<String>,
    body: String,
}

impl Row {
    pub(crate) fn of(at: Millis, record: &LogRecord) -> Self {
        Self {
            at,
            kind: record.kind(),
            session: record.session().map(|it| it.0.clone()),
            turn: record.turn().map(|it| it.0.clone()),
            // Records are plain data with string keys.
            body: serde_json::to_string(record).unwrap_or_default(),
        }
    }
}

/// Result of a step.
#[derive(Serialize)]
struct Stepped<'a> {
    effects: &'a [Effect],
    rows: &'a [Row],
    done: bool,
}

/// A stored step. Other kinds of records are not parsed here.
fn stored(body: &[u8]) -> Result<TurnStep, serde_json::Error> {
    use serde::de::Error as _;
    if body.starts_with(STEP) {
        let step: Buffer<'_> = serde_json::from_slice(body)?;
        TurnStep::deserialize(step)
    } else {
        Err(serde_json::Error::custom("it is of another kind"))
    }
}

/// A turn and the seed of its record identifiers.
#[derive(Default)]
struct OpenTurn {
    turn: Option<Turn>,
    id: TurnId,
    session: SessionId,
    /// Number of steps so far.
    count: u64,
    /// Identifiers of its events.
    events: Option<IdMaker>,
}

/// All turns of a host.
#[derive(Default)]
pub(crate) struct Turns {
    open: Open<OpenTurn>,
}

impl Turns {
    pub(crate) fn answer(&mut self, op: TurnOp, lines: &[u8]) -> Answer {
        match op {
            TurnOp::Open(Empty {}) => {
                let open = OpenTurn::replayed(lines)?;
                let step = open.turn.as_ref().map_or(0, Turn::current_step);
                let (steps, done) = (open.count, open.is_done());
                let turn = self.open.insert(open);
                Ok(json!({ "turn": turn, "steps": steps, "step": step, "done": done }).to_string())
            }
            TurnOp::Step { turn, at, input } => {
                let open = self.open.get_mut(turn);
                let open = open.ok_or_else(|| Failure::number("turn", turn))?;
                let (effects, rows) = open.step(at, *input);
                let done = open.is_done();
                Ok(text(&Stepped {
                    effects: &effects,
                    rows: &rows,
                    done,
                }))
            }
            TurnOp::Close { turn } => {
                self.open.close(turn);
                nothing()
            }
        }
    }
}

impl OpenTurn {
    /// Replays a turn from its stored inputs.
    ///
    /// # Errors
    /// A text is not a step of a turn, a step was abandoned, or its result differs from what was stored.
    fn replayed(lines: &[u8]) -> Result<Self, Failure> {
        let mut open = Self::default();
        let bodies = lines.split(|byte| *byte == b'\n');
        for (n, body) in bodies.filter(|it| !it.is_empty()).enumerate() {
            let stored = stored(body).map_err(|error| {
                let message = format!("record {n} is not a step of a turn: {error}");
                Failure::new("kernel.replay", message)
            })?;
            if let Some(why) = stored.abandoned {
                return Err(Failure::new("kernel.abandoned", why));
            }
            let wanted = stored.digest;
            let effects = open.take(stored.at, stored.input);
            let digest = digest::effects(&effects);
            if digest != wanted {
                let message = format!(
                    "step {n} leads to other effects than the stored ones ({digest}, not {wanted})"
                );
                return Err(Failure::new("kernel.replay", message));
            }
            open.count_events(stored.at, &effects);
        }
        Ok(open)
    }

    fn is_done(&self) -> bool {
        self.turn.as_ref().is_some_and(Turn::is_done)
    }

    /// Performs a step; returns its records: the step itself, then the published events.
    fn step(&mut self, at: Millis, input: Input) -> (Vec<Effect>, Vec<Row>) {
        let n = self.count;
        let kept = input.clone();
        let effects = self.take(at, input);
        let record = LogRecord::TurnStep(Box::new(TurnStep {
            turn: self.id.clone(),
            session_id: self.session.clone(),
            n,
            at,
            input: kept,
            intents: digest::intents(&effects),
            digest: digest::effects(&effects),
            last: self.is_done(),
            abandoned: None,
        }));
        let mut rows = vec![Row::of(at, &record)];
        let events = self.events_of(at, &effects);
        rows.extend(events.iter().map(|it| Row::of(at, it)));
        (effects, rows)
    }

    fn take(&mut self, at: Millis, input: Input) -> Vec<Effect> {
        if let (None, Input::Begin(begin)) = (&self.turn, &input) {
            self.id = begin.turn.clone();
            self.session = begin.session_id.clone();
            // Identifiers from the turn's seed but different from its own, so that a replay creates the same ones.
            self.events = Some(IdMaker::new(!begin.seed));
        }
        self.count += 1;
        step(&mut self.turn, at, input)
    }

    /// Advances the identifiers like [`Self::events_of`].
    fn count_events(&mut self, at: Millis, effects: &[Effect]) {
        if let Some(ids) = &mut self.events {
            let published = effects
                .iter()
                .filter(|it| matches!(it, Effect::Publish { .. }));
            published.for_each(|_| drop(ids.event(at)));
        }
    }

    fn events_of(&mut self, at: Millis, effects: &[Effect]) -> Vec<LogRecord> {
        let Some(ids) = &mut self.events else {
            return Vec::new();
        };
        let published = effects.iter().filter_map(|effect| match effect {
            Effect::Publish { event } => Some(event),
            _ => None,
        });
        let mut record = |event: &Event| {
            LogRecord::Event(Box::new(BusEvent {
                id: ids.event(at),
                event: event.clone(),
            }))
        };
        published.map(&mut record).collect()
    }
}
