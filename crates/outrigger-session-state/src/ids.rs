//! The clock and the source of ids outside the kernel.

use std::sync::{LazyLock, Mutex};

use outrigger_protocol::id::{
    EventId, IdMaker, MessageId, PartId, PermissionId, QuestionId, SessionId, TurnId,
};
use outrigger_stdx::clock::now_ms;
use outrigger_stdx::sync::lock;

static MAKER: LazyLock<Mutex<IdMaker>> = LazyLock::new(|| {
    let mut seed = [0_u8; 8];
    // Without the system's randomness the clock is used: ids are not secret.
    let seed = getrandom::fill(&mut seed).map_or_else(|_| now_ms(), |()| u64::from_le_bytes(seed));
    Mutex::new(IdMaker::new(seed ^ u64::from(std::process::id())))
});

fn make<T>(with: impl FnOnce(&mut IdMaker, u64) -> T) -> T {
    with(&mut lock(&MAKER), now_ms())
}

/// Creates an event id.
#[must_use]
pub fn event() -> EventId {
    make(IdMaker::event)
}
/// Creates a session id.
pub fn session() -> SessionId {
    make(IdMaker::session)
}
/// Creates a turn id.
pub fn turn() -> TurnId {
    make(IdMaker::turn)
}
/// Creates a message id.
pub fn message() -> MessageId {
    make(IdMaker::message)
}
/// Creates an id of a permission request.
pub fn permission() -> PermissionId {
    make(IdMaker::permission)
}
/// Creates an id of a question to the user.
pub fn question() -> QuestionId {
    make(IdMaker::question)
}
/// Creates a part id.
pub fn part() -> PartId {
    make(IdMaker::part)
}
/// Creates a name of two words.
#[must_use]
pub fn name() -> String {
    slug(seed())
}
/// Creates a terminal id: they sort by age, like all ids.
pub fn pty() -> String {
    event().0.replacen("evt_", "pty_", 1)
}
/// Creates a name that is unique across processes and calls.
pub fn unique() -> String {
    format!("{}-{:x}", std::process::id(), seed())
}
/// Creates a seed for a turn's own ids.
pub fn seed() -> u64 {
    make(|ids, _| ids.seed())
}

const ADJECTIVES: [&str; 16] = [
    "brave", "calm", "clever", "crisp", "eager", "gentle", "happy", "kind", "lucky", "mighty",
    "nimble", "proud", "quick", "quiet", "swift", "sunny",
];
const NOUNS: [&str; 16] = [
    "canoe", "harbor", "island", "lagoon", "mast", "oar", "otter", "paddle", "reef", "river",
    "sail", "shore", "tide", "wave", "wind", "wolf",
];

/// Returns two words for a number.
pub fn slug(seed: u64) -> String {
    let pick = |words: &[&'static str; 16], n: u64| {
        words
            .get(usize::try_from(n % 16).unwrap_or(0))
            .copied()
            .unwrap_or("sail")
    };
    format!("{}-{}", pick(&ADJECTIVES, seed), pick(&NOUNS, seed >> 8))
}
