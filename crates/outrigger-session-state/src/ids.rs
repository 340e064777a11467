//! The clock and the source of identifiers outside the kernel.

use std::sync::{LazyLock, Mutex};

use outrigger_files::sync::lock;
use outrigger_protocol::id::{
    EventId, IdMaker, MessageId, PartId, PermissionId, QuestionId, SessionId, TurnId,
};
pub use outrigger_workspace::sync::now;

static MAKER: LazyLock<Mutex<IdMaker>> = LazyLock::new(|| {
    let mut seed = [0_u8; 8];
    // Without the system's randomness the clock must do: identifiers are no secrets.
    let seed = getrandom::fill(&mut seed).map_or_else(|_| now(), |()| u64::from_le_bytes(seed));
    Mutex::new(IdMaker::new(seed ^ u64::from(std::process::id())))
});

fn make<T>(with: impl FnOnce(&mut IdMaker, u64) -> T) -> T {
    with(&mut lock(&MAKER), now())
}

/// A new event identifier.
#[must_use]
pub fn event() -> EventId {
    make(IdMaker::event)
}
/// A new session identifier.
pub fn session() -> SessionId {
    make(IdMaker::session)
}
/// A new turn identifier.
pub fn turn() -> TurnId {
    make(IdMaker::turn)
}
/// A new message identifier.
pub fn message() -> MessageId {
    make(IdMaker::message)
}
/// A new permission request identifier.
pub fn permission() -> PermissionId {
    make(IdMaker::permission)
}
/// A new identifier of a question to the user.
pub fn question() -> QuestionId {
    make(IdMaker::question)
}
/// A new part identifier.
pub fn part() -> PartId {
    make(IdMaker::part)
}
/// A name of two words for what has none.
#[must_use]
pub fn name() -> String {
    slug(seed())
}
/// A new terminal identifier: they sort by their age, as all others do.
pub fn pty() -> String {
    event().0.replacen("evt_", "pty_", 1)
}
/// A name that no other process and no other call has.
pub fn unique() -> String {
    format!("{}-{:x}", std::process::id(), seed())
}
/// A seed for a turn's own identifiers.
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

/// Two words for a number.
pub fn slug(seed: u64) -> String {
    let pick = |words: &[&'static str; 16], n: u64| {
        words
            .get(usize::try_from(n % 16).unwrap_or(0))
            .copied()
            .unwrap_or("sail")
    };
    format!("{}-{}", pick(&ADJECTIVES, seed), pick(&NOUNS, seed >> 8))
}
