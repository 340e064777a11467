//! Finds the messages of an Outrigger export that are already in the stored session.
//!
//! An export has the identifiers of its session, which may exist here: continued here, or imported and then
//! continued. If the session went through another machine, the identifiers differ, and only the texts can be compared.

use std::collections::BTreeMap;

use outrigger_protocol::id::MessageId;
use outrigger_protocol::message::{MessageInfo, MessageWithParts, PartKind};
use serde_json::{Value, json};

use crate::accept::Accepted;
use crate::ids;

/// How messages of a file are found in a session.
pub(crate) enum Alignment {
    /// By the identifiers that follow from their positions.
    Positions,
    /// The file is of the session itself: this many of its messages are here, or were removed here.
    Own(usize),
    /// Another conversation.
    Differs,
}

/// Compares the messages of a file with those of a session.
pub(crate) fn of(stored: &BTreeMap<String, MessageWithParts>, accepted: &Accepted) -> Alignment {
    if accepted.exported.is_empty() || stored.is_empty() {
        return Alignment::Positions;
    }
    let is_stored = |id: &MessageId| stored.contains_key(id.as_str());
    let read = &accepted.messages;
    if let Some(last) = accepted.exported.iter().rposition(is_stored) {
        let after = accepted.exported.get(last).map(MessageId::as_str);
        let here = stored
            .iter()
            .skip_while(|(id, _)| Some(id.as_str()) != after);
        let here: Vec<_> = here.skip(1).map(|(_, it)| it).collect();
        let rest = read.get(last + 1..).unwrap_or_default();
        return Alignment::Own(last + 1 + common(&here, rest).read);
    }
    if read.iter().any(|it| is_stored(it.info.id())) {
        return after_positions(stored, read);
    }
    let here: Vec<_> = stored.values().collect();
    let common = common(&here, read);
    if common.read > 0 && (common.is_all_stored || common.read == read.len()) {
        Alignment::Own(common.read)
    } else {
        Alignment::Differs
    }
}

/// Messages that were imported by position, followed by some that were written here: the file may have those, too.
fn after_positions(
    stored: &BTreeMap<String, MessageWithParts>,
    read: &[MessageWithParts],
) -> Alignment {
    let last = read
        .iter()
        .rposition(|it| stored.contains_key(it.info.id().as_str()));
    let Some(last) = last else {
        return Alignment::Positions;
    };
    let id = read.get(last).map(|it| it.info.id().as_str());
    let here = stored.iter().skip_while(|(it, _)| Some(it.as_str()) != id);
    let here: Vec<_> = here.skip(1).map(|(_, it)| it).collect();
    match common(&here, read.get(last + 1..).unwrap_or_default()).read {
        0 => Alignment::Positions,
        count => Alignment::Own(last + 1 + count),
    }
}

struct Common {
    /// How many messages of the file are the same as stored ones.
    read: usize,
    /// Whether each stored message is in the file.
    is_all_stored: bool,
}

/// Compares what was said. Messages without text, such as steps with calls only, belong to the text before them.
fn common(stored: &[&MessageWithParts], read: &[MessageWithParts]) -> Common {
    let mut here = stored.iter().filter_map(|it| said(it)).peekable();
    let mut count = 0;
    for (n, message) in read.iter().enumerate() {
        let Some(words) = said(message) else {
            if count == n {
                count = n + 1;
            }
            continue;
        };
        if here.next_if(|it| *it == words).is_none() {
            break;
        }
        count = n + 1;
    }
    // Without a common text, steps have nothing that they belong to.
    let is_any = read.iter().take(count).any(|it| said(it).is_some());
    Common {
        read: if is_any { count } else { 0 },
        is_all_stored: here.peek().is_none(),
    }
}

/// Returns the author and the text.
fn said(message: &MessageWithParts) -> Option<(bool, String)> {
    let texts = message.parts.iter().filter_map(|it| match &it.kind {
        PartKind::Text(said) if !said.text.trim().is_empty() => Some(said.text.trim()),
        _ => None,
    });
    let texts: Vec<&str> = texts.collect();
    let is_user = matches!(message.info, MessageInfo::User(_));
    (!texts.is_empty()).then(|| (is_user, texts.join("\n")))
}

/// Returns the messages after the known ones, with identifiers that come after all stored messages.
pub(crate) fn following(
    stored: &BTreeMap<String, MessageWithParts>,
    mut read: Vec<MessageWithParts>,
    known: usize,
) -> Vec<MessageWithParts> {
    let new = read.split_off(known.min(read.len()));
    let Some((last, latest)) = stored.values().next_back().map(|it| {
        let times = stored.values().map(|it| created(&it.info));
        (it.info.id().clone(), times.max().unwrap_or_default())
    }) else {
        return new;
    };
    let prompt = stored.values().rev().find_map(|it| match &it.info {
        MessageInfo::User(user) => Some(user.id.clone()),
        MessageInfo::Assistant(_) => None,
    });
    let mut maker = ids::following(&last);
    let mut renamed: BTreeMap<MessageId, MessageId> = BTreeMap::new();
    let mut at = latest.saturating_add(1);
    let renew = |mut message: MessageWithParts| {
        at = at.max(created(&message.info));
        let id = maker.message(at);
        renamed.insert(message.info.id().clone(), id.clone());
        match &mut message.info {
            MessageInfo::User(user) => user.id = id.clone(),
            MessageInfo::Assistant(answer) => {
                answer.id = id.clone();
                let asked = renamed.get(&answer.parent_id).or(prompt.as_ref());
                answer.parent_id = asked.cloned().unwrap_or_default();
            }
        }
        for part in &mut message.parts {
            part.id = maker.part(at);
            part.message_id = id.clone();
            rename_tail(&mut part.kind, &renamed);
        }
        message
    };
    new.into_iter().map(renew).collect()
}

/// A summary names the message from which on the conversation is kept; one that is not in the file keeps none.
fn rename_tail(kind: &mut PartKind, renamed: &BTreeMap<MessageId, MessageId>) {
    const TAIL: &str = "tail_start_id";
    let PartKind::Compaction(fields) = kind else {
        return;
    };
    let Some(tail) = fields.get(TAIL).and_then(Value::as_str) else {
        return;
    };
    match renamed.get(&MessageId::from(tail)) {
        Some(id) => fields.insert(TAIL.to_owned(), json!(id)),
        None => fields.remove(TAIL),
    };
}

fn created(info: &MessageInfo) -> u64 {
    match info {
        MessageInfo::User(user) => user.time.created,
        MessageInfo::Assistant(answer) => answer.time.created,
    }
}
