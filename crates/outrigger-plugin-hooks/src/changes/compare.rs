//! Where two outputs differ.

use std::collections::BTreeMap;
use std::sync::Arc;

use outrigger_protocol::history::{History, HistoryMessage};
use serde_json::Value;

use super::Found;

/// A message, with its index.
type Numbered<'a> = (usize, &'a Arc<HistoryMessage>);

impl Found<'_> {
    pub(super) fn values(&mut self, at: &str, before: Option<&Value>, after: Option<&Value>) {
        match (before, after) {
            (Some(before), Some(after)) if before == after => {}
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                for (key, value) in before {
                    self.values(&below(at, key), Some(value), after.get(key));
                }
                for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
                    self.values(&below(at, key), None, Some(value));
                }
            }
            (Some(Value::Array(before)), Some(Value::Array(after))) => {
                self.lists(at, before, after);
            }
            _ => self.keep(at, before, after),
        }
    }

    /// What both begin and end with is none of it, so that one item more is one difference wherever it stands.
    fn lists(&mut self, at: &str, before: &[Value], after: &[Value]) {
        let same = |(a, b): &(&Value, &Value)| a == b;
        let begin = before.iter().zip(after).take_while(same).count();
        let rest = |of: &[Value]| of.len() - begin;
        let ends = before.iter().rev().zip(after.iter().rev());
        let end = ends
            .take(rest(before).min(rest(after)))
            .take_while(same)
            .count();
        let (old, new) = (before.len() - end, after.len() - end);
        for index in begin..old.max(new) {
            let before = before.get(index).filter(|_| index < old);
            let after = after.get(index).filter(|_| index < new);
            self.values(&format!("{at}/{index}"), before, after);
        }
    }

    pub(super) fn histories(&mut self, at: &str, before: &History, after: &History) {
        let first = first_difference(before, after);
        let (old, new) = (numbered(before, first), numbered(after, first));
        if ids(&old) == ids(&new) {
            for ((index, before), (_, after)) in old.into_iter().zip(new) {
                self.messages(&format!("{at}/{index}"), before, after);
            }
            return;
        }
        let (was, is) = (by_id(&old), by_id(&new));
        let gone = old.iter().filter(|it| found(&is, it).is_none());
        for (index, message) in gone {
            self.keep(&format!("{at}/{index}"), Some(&message.to_value()), None);
        }
        for one in &new {
            let place = format!("{at}/{}", one.0);
            match found(&was, one) {
                Some(before) => self.messages(&place, before, one.1),
                None => self.keep(&place, None, Some(&one.1.to_value())),
            }
        }
        let kept = |all: &[Numbered<'_>], in_other: &BTreeMap<&str, &Arc<HistoryMessage>>| {
            let kept = all.iter().filter(|it| found(in_other, it).is_some());
            Value::from_iter(kept.filter_map(|(_, it)| it.id()))
        };
        let (order, new_order) = (kept(&old, &is), kept(&new, &was));
        if order != new_order {
            self.keep(at, Some(&order), Some(&new_order));
        }
    }

    fn messages(&mut self, at: &str, before: &Arc<HistoryMessage>, after: &Arc<HistoryMessage>) {
        if !before.is_same(after) {
            self.values(at, Some(&before.to_value()), Some(&after.to_value()));
        }
    }
}

fn below(at: &str, key: &str) -> String {
    format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// The first message that both do not share.
fn first_difference(before: &History, after: &History) -> usize {
    let mut index = 0;
    while index < before.len().min(after.len()) {
        let shared = before.shared_from(after, index);
        let same = match (before.get(index), after.get(index)) {
            (Some(before), Some(after)) => Arc::ptr_eq(before, after),
            _ => false,
        };
        if shared == 0 && !same {
            break;
        }
        index += shared.max(1);
    }
    index
}

fn numbered(history: &History, first: usize) -> Vec<Numbered<'_>> {
    (first..).zip(history.iter_from(first)).collect()
}

fn ids<'a>(of: &[Numbered<'a>]) -> Vec<Option<&'a str>> {
    of.iter().map(|(_, message)| message.id()).collect()
}

fn by_id<'a>(of: &[Numbered<'a>]) -> BTreeMap<&'a str, &'a Arc<HistoryMessage>> {
    of.iter()
        .filter_map(|(_, it)| Some((it.id()?, *it)))
        .collect()
}

fn found<'a>(
    all: &BTreeMap<&str, &'a Arc<HistoryMessage>>,
    one: &Numbered<'_>,
) -> Option<&'a Arc<HistoryMessage>> {
    all.get(one.1.id()?).copied()
}
