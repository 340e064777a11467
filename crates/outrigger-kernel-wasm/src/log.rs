//! The log's hash chain, with the same bytes and hashes as in the store.

use outrigger_protocol::Millis;
use outrigger_protocol::event::BusEvent;
use outrigger_protocol::id::{IdMaker, SessionId};
use outrigger_protocol::log::{LogRecord, LogRow, frame};
use outrigger_stdx::text::hex;
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest as _, Sha256};

use crate::conversations::event;
use crate::turns::Row;
use crate::{Answer, Failure, nothing, text};

/// Operations about the log.
#[derive(Deserialize)]
pub(crate) enum LogOp {
    /// Returns the hashes of rows that follow a row with this hash.
    #[serde(rename = "log.seal")]
    Seal {
        /// 64 hexadecimal digits; empty before the first row.
        before: String,
        /// The rows.
        rows: Vec<GivenRow>,
    },
    /// Returns the rows of an imported session; anything that is not one of the kernel's types is refused.
    #[serde(rename = "log.events")]
    Events(Given),
    /// Verifies a chain of rows: returns the index of the first invalid one, or nothing.
    #[serde(rename = "log.verify")]
    Verify {
        /// As for sealing.
        before: String,
        /// The rows, each with its stored hash.
        rows: Vec<SealedRow>,
    },
}

/// Events of an imported session.
#[derive(Deserialize)]
pub(crate) struct Given {
    at: Millis,
    /// Seed of the identifiers of their records.
    seed: u64,
    session: SessionId,
    /// The events in published form; only those that create a conversation.
    events: Vec<String>,
}

impl Given {
    /// Returns their records.
    ///
    /// # Errors
    /// An event is of another kind, or of another session.
    fn rows(&self) -> Result<Vec<Row>, Failure> {
        let mut ids = IdMaker::new(self.seed);
        let mut row = |(place, body): (usize, &String)| {
            let wrong = |why: &str| {
                Failure::new(
                    "kernel.request",
                    format!("cannot read event {place}: {why}"),
                )
            };
            let event = event(body)
                .map_err(|error| wrong(&error.to_string()))?
                .ok_or_else(|| wrong("it is of another kind"))?;
            let record = LogRecord::Event(Box::new(BusEvent {
                id: ids.event(self.at),
                event,
            }));
            if record.session() == Some(&self.session) {
                Ok(Row::of(self.at, &record))
            } else {
                Err(wrong("it is of another session"))
            }
        };
        self.events.iter().enumerate().map(&mut row).collect()
    }
}

/// A row, as it is stored.
#[derive(Deserialize)]
pub(crate) struct GivenRow {
    at: i64,
    kind: String,
    session: Option<String>,
    turn: Option<String>,
    body: String,
}

/// A row with its hash.
#[derive(Deserialize)]
pub(crate) struct SealedRow {
    at: i64,
    kind: String,
    session: Option<String>,
    turn: Option<String>,
    body: String,
    hash: String,
}

impl SealedRow {
    fn split(self) -> (GivenRow, String) {
        let row = GivenRow {
            at: self.at,
            kind: self.kind,
            session: self.session,
            turn: self.turn,
            body: self.body,
        };
        (row, self.hash)
    }
}

impl GivenRow {
    fn hash(&self, before: &[u8; 32]) -> [u8; 32] {
        let row = LogRow {
            at: self.at,
            kind: &self.kind,
            session: self.session.as_deref(),
            turn: self.turn.as_deref(),
            body: &self.body,
        };
        let mut sha = Sha256::new();
        frame(before, &row, &mut |bytes| sha.update(bytes));
        sha.finalize().into()
    }
}

pub(crate) fn answer(op: LogOp) -> Answer {
    match op {
        LogOp::Seal { before, rows } => {
            let mut before = read(&before)?;
            let seal = |row: &GivenRow| {
                before = row.hash(&before);
                hex(&before)
            };
            Ok(text(&rows.iter().map(seal).collect::<Vec<_>>()))
        }
        LogOp::Events(given) => Ok(text(&given.rows()?)),
        LogOp::Verify { before, rows } => {
            let mut before = read(&before)?;
            for (place, sealed) in rows.into_iter().enumerate() {
                let (row, hash) = sealed.split();
                before = row.hash(&before);
                if hex(&before) != hash {
                    return Ok(json!({ "place": place }).to_string());
                }
            }
            nothing()
        }
    }
}

fn read(text: &str) -> Result<[u8; 32], Failure> {
    let mut hash = [0; 32];
    if text.is_empty() {
        return Ok(hash);
    }
    let wrong = || Failure::new("kernel.request", format!("`{text}` is not a hash"));
    if text.len() != 64 {
        return Err(wrong());
    }
    for (place, byte) in hash.iter_mut().enumerate() {
        let digits = text.get(place * 2..place * 2 + 2).ok_or_else(wrong)?;
        *byte = u8::from_str_radix(digits, 16).map_err(|_| wrong())?;
    }
    Ok(hash)
}
