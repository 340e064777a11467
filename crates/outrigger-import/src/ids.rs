//! Identifiers of imported sessions: the same for the same session, whenever and however often it is imported.

use outrigger_protocol::Millis;
use outrigger_protocol::id::{IdMaker, MessageId, PartId, SessionId};
use sha2::{Digest as _, Sha256};

use crate::program::Program;

/// Digits after the prefix.
const DIGITS: usize = 26;

/// Returns the session's identifier. Our own exports keep theirs.
pub(crate) fn session(program: Program, id: &str, created: Millis) -> SessionId {
    if program == Program::Outrigger && is_session(id) {
        return id.into();
    }
    IdMaker::new(seed(program.name(), id)).session(created)
}

/// Creates identifiers of a session's messages and parts. Times in a file do not affect their order: later messages come after all of
/// them.
pub(crate) struct Numbered {
    maker: IdMaker,
    n: u64,
}

impl Numbered {
    pub(crate) fn of(session: &SessionId) -> Self {
        Self {
            maker: IdMaker::new(seed("messages", session.as_str())),
            n: 0,
        }
    }

    pub(crate) fn message(&mut self) -> MessageId {
        self.n += 1;
        self.maker.message(self.n)
    }

    pub(crate) fn part(&mut self) -> PartId {
        self.maker.part(self.n)
    }
}

/// Returns a maker for messages of a file that follow those of a session which was continued here.
pub(crate) fn following(last: &MessageId) -> IdMaker {
    IdMaker::new(seed("following", last.as_str()))
}

fn is_session(id: &str) -> bool {
    id.strip_prefix("ses_")
        .is_some_and(|it| it.len() == DIGITS && it.bytes().all(|c| c.is_ascii_alphanumeric()))
}

fn seed(kind: &str, id: &str) -> u64 {
    let digest = Sha256::new()
        .chain_update(kind.as_bytes())
        .chain_update([0])
        .chain_update(id.as_bytes())
        .finalize();
    digest
        .iter()
        .take(8)
        .fold(0, |seed, byte| seed << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_session_has_the_same_identifier_and_others_have_others() {
        let of = |program, id| session(program, id, 1_700_000_000_000);
        let one = of(Program::Claude, "a");
        assert_eq!(one, of(Program::Claude, "a"));
        assert_ne!(one, of(Program::Claude, "b"));
        assert_ne!(one, of(Program::Codex, "a"));
        assert!(is_session(one.as_str()), "{one}");
        let own = "ses_e0021b1d4ffeO44iN37LlQ5HLf";
        assert_eq!(of(Program::Outrigger, own).as_str(), own);
        // Anything but one of our identifiers is replaced.
        for id in ["", "x", "ses_../../x", "ses_e0021b1d4ffeO44iN37LlQ5HL/"] {
            assert!(is_session(of(Program::Outrigger, id).as_str()), "{id}");
            assert_ne!(of(Program::Outrigger, id).as_str(), id);
        }
    }

    #[test]
    fn messages_ascend_and_stand_before_what_is_said_later() {
        let mut ids = Numbered::of(&"ses_1".into());
        let first = ids.message();
        let parts: Vec<_> = (0..5000).map(|_| ids.part()).collect();
        let second = ids.message();
        assert!(first < second && parts.is_sorted());
        // The time in an identifier wraps every two years: at any time in the next thirty it is later than these.
        let span = 1_u64 << 36;
        for at in (0..16).map(|n| 1_764_000_000_000 + n * span / 16) {
            assert!(second < IdMaker::new(1).message(at), "{at}");
        }
    }
}
