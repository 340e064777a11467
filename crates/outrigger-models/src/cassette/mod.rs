//! Cassettes: recorded conversations with a model, and their replay.
//!
//! A cassette is a text file with one JSON document per line. The first line is the format version; each further
//! line is a request (with the working directory written as `{DIR}`) and the events of its response. Keys, headers
//! and URLs are not recorded. Lines may be edited by hand.

mod diff;
mod normal;
mod player;
mod recorder;

use outrigger_protocol::model::{ModelRequest, StreamEvent};
use serde::{Deserialize, Serialize};

pub(crate) use player::Player;
pub(crate) use recorder::Recorder;

/// The format that this version writes and reads.
const FORM: u32 = 1;

/// The first line.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Head {
    cassette: u32,
    #[serde(default)]
    program: String,
    /// Also compare system texts. Off by default, because they contain the date, the platform and a wording that may
    /// change.
    #[serde(default)]
    compare_system: bool,
}

/// Any other line.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Entry {
    /// The `provider/model` that answered; for readers.
    #[serde(default)]
    model: String,
    request: ModelRequest,
    events: Vec<StreamEvent>,
}

impl Entry {
    // Requests without tools (titles) are made concurrently with the turn, so their order is not fixed.
    fn is_aside(&self) -> bool {
        self.request.tools.is_empty()
    }
}
