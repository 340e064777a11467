//! The history of a session as a turn reads it: ordered, and without summarised messages.

use std::collections::BTreeSet;
use std::sync::Arc;

use outrigger_protocol::history::{History, HistoryMessage};
use outrigger_protocol::id::MessageId;
use outrigger_protocol::message::MessageWithParts;

use super::active::{Role, pinned, roles};
use super::order::in_order;

/// Returns the messages of a request. `current` is the answer that is being written, `waiting` has the messages that another
/// turn will answer, `own` is the prompt of this turn. The messages are shared with the stored history.
#[must_use]
pub fn as_read(
    stored: &History,
    current: Option<&MessageId>,
    waiting: &BTreeSet<MessageId>,
    own: &MessageId,
) -> History {
    let (shared, messages): (Vec<&Arc<HistoryMessage>>, Vec<&MessageWithParts>) = stored
        .iter()
        .filter_map(|shared| Some((shared, shared.stored()?)))
        .filter(|(_, message)| Some(message.info.id()) != current)
        .unzip();
    let order = in_order(&messages, waiting, own);
    let place = |place: &usize| Some((*shared.get(*place)?, *messages.get(*place)?));
    let (shared, messages): (Vec<_>, Vec<_>) = order.iter().filter_map(place).unzip();
    let (mut compaction, mut held, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for ((shared, message), role) in shared.into_iter().zip(&messages).zip(roles(&messages)) {
        match role {
            Role::Compaction => compaction.push(Arc::clone(shared)),
            Role::Summarised => {
                let pinned = pinned(MessageWithParts::clone(message));
                held.extend(pinned.map(|it| Arc::new(it.into())));
            }
            Role::Rest => rest.push(Arc::clone(shared)),
            Role::Dropped => {}
        }
    }
    compaction.append(&mut held);
    compaction.append(&mut rest);
    let mut history = History::of(compaction);
    history.share(stored);
    history
}
