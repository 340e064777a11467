//! Identifiers in OpenCode's form: a prefix, twelve hex digits made from the time and a counter, and fourteen random
//! base-62 digits. Plugins sort by them, so messages and parts ascend with time and sessions descend.

use serde::{Deserialize, Serialize};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident = $prefix:literal),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub String);

        impl $name {
            /// What every identifier of this kind starts with.
            pub const PREFIX: &'static str = $prefix;

            /// Returns the identifier as text.
            #[must_use]
            pub fn as_str(&self) -> &str { &self.0 }
        }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { f.write_str(&self.0) }
        }
        impl From<String> for $name { fn from(s: String) -> Self { Self(s) } }
        impl From<&str> for $name { fn from(s: &str) -> Self { Self(s.to_owned()) } }
    )*};
}

ids! {
    /// A conversation.
    SessionId = "ses",
    /// A user or assistant message.
    MessageId = "msg",
    /// A part of a message.
    PartId = "prt",
    /// A bus event.
    EventId = "evt",
    /// A question put to the user before something is done.
    PermissionId = "per",
    /// A question that the model puts to the user.
    QuestionId = "que",
    /// One run of the turn machine: from a prompt to idle.
    TurnId = "trn",
    /// A tool call, as the model named it.
    CallId = "call",
    /// A plugin, as listed and logged.
    PluginId = "plg",
}

impl PluginId {
    /// Splits it into the top-level plugin and, if that one hosts it, its id below (C8).
    #[must_use]
    pub fn split(&self) -> (Self, Option<Self>) {
        match self.0.split_once('>') {
            Some((top, sub)) => (Self(top.to_owned()), Some(Self(sub.to_owned()))),
            None => (self.clone(), None),
        }
    }
}

/// Creates identifiers from a time and a seed, without its own clock or randomness, so that the kernel can use it and a
/// replay creates the same ones.
///
/// ```
/// use outrigger_protocol::id::IdMaker;
///
/// let now = 1_764_000_000_000;
/// let (mut ids, mut replay) = (IdMaker::new(7), IdMaker::new(7));
/// let (first, second) = (ids.message(now), ids.message(now));
/// assert!(first < second && first.as_str().starts_with("msg_"));
/// assert_eq!([first, second], [replay.message(now), replay.message(now)]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdMaker {
    state: u64,
    last_ms: u64,
    counter: u64,
}

impl IdMaker {
    /// Creates a maker whose random digits follow from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self {
            state: seed,
            last_ms: 0,
            counter: 0,
        }
    }

    // splitmix64: small, well mixed, and the same on every platform.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn make(&mut self, prefix: &str, now: u64, descending: bool) -> String {
        const DIGITS: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
        // A clock that stands still or steps back must not break the order.
        let now = now.max(self.last_ms);
        if now == self.last_ms {
            self.counter += 1;
        } else {
            self.last_ms = now;
            self.counter = 1;
        }
        let mut stamp = now.wrapping_mul(0x1000).wrapping_add(self.counter);
        if descending {
            stamp = !stamp;
        }
        let mut out = format!("{prefix}_{:012x}", stamp & 0xFFFF_FFFF_FFFF);
        for _ in 0..14 {
            let digit = usize::try_from(self.next() % 62).unwrap_or(0);
            out.push(DIGITS.get(digit).copied().map_or('0', char::from));
        }
        out
    }

    /// Returns a message identifier.
    pub fn message(&mut self, now: u64) -> MessageId {
        MessageId(self.make(MessageId::PREFIX, now, false))
    }
    /// Returns a part identifier.
    pub fn part(&mut self, now: u64) -> PartId {
        PartId(self.make(PartId::PREFIX, now, false))
    }
    /// Returns a session identifier; these descend with time, as in OpenCode.
    pub fn session(&mut self, now: u64) -> SessionId {
        SessionId(self.make(SessionId::PREFIX, now, true))
    }
    /// Returns an event identifier.
    pub fn event(&mut self, now: u64) -> EventId {
        EventId(self.make(EventId::PREFIX, now, false))
    }
    /// Returns a permission request identifier.
    pub fn permission(&mut self, now: u64) -> PermissionId {
        PermissionId(self.make(PermissionId::PREFIX, now, false))
    }
    /// Returns an identifier of a question to the user.
    pub fn question(&mut self, now: u64) -> QuestionId {
        QuestionId(self.make(QuestionId::PREFIX, now, false))
    }
    /// Returns a turn identifier.
    pub fn turn(&mut self, now: u64) -> TurnId {
        TurnId(self.make(TurnId::PREFIX, now, false))
    }
    /// Returns a tool call identifier, for models that send none or a used one.
    pub fn call(&mut self, now: u64) -> CallId {
        CallId(self.make(CallId::PREFIX, now, false))
    }
    /// Returns a seed for another maker.
    pub fn seed(&mut self) -> u64 {
        self.next()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_ascend_and_sessions_descend_even_when_the_clock_steps_back() {
        let mut ids = IdMaker::new(7);
        let (a, b, c) = (ids.message(1_000), ids.message(1_000), ids.message(900));
        assert!(a < b && b < c, "{a} {b} {c}");
        let (a, b) = (ids.session(2_000), ids.session(3_000));
        assert!(a > b);
        assert_eq!(a.as_str().len(), "ses_e0021b1d4ffeO44iN37LlQ5HLf".len());
    }

    #[test]
    fn the_same_seed_makes_the_same_ids() {
        let (mut a, mut b) = (IdMaker::new(1), IdMaker::new(1));
        assert_eq!(a.part(5), b.part(5));
        assert_ne!(a.part(5), IdMaker::new(2).part(5));
    }
}
