//! What goes to a process with a call of hooks, and what its answer says.

use outrigger_kernel::hooks::{Field, Phase, Point};
use outrigger_protocol::hook::{Change, HandlerOutcome, Key};
use outrigger_protocol::rpc::{Enter, HookResult, OpenField};
use outrigger_protocol::transfer::Piece;
use outrigger_protocol::turn::HookPayload;
use serde::Serialize;
use serde_json::Value;

/// Whose code is entered: `a (event)`, `a (tool:x) or b (event)`.
pub(crate) fn named(entered: &[Enter]) -> String {
    if entered.is_empty() {
        return "code that no call entered (a timer, say)".to_owned();
    }
    // A plugin once, by what it was entered for: that it ended the process in there is said by the cause.
    let first = |(at, enter): &(usize, &Enter)| {
        let mut before = entered.iter().take(*at);
        before.all(|other| other.plugin != enter.plugin)
    };
    let names = entered
        .iter()
        .enumerate()
        .filter(first)
        .map(|(_, enter)| format!("{} ({})", enter.plugin, enter.what));
    names.collect::<Vec<_>>().join(" or ")
}

/// What handlers may change there, as the process needs it to know when one goes too far.
pub(crate) fn open(point: &Point) -> Vec<OpenField> {
    if point.phase == Phase::Observe {
        return Vec::new();
    }
    let field = |field: &Field| OpenField {
        key: field.key.to_owned(),
        kind: field.kind.name().to_owned(),
        required: field.required,
    };
    point.patch.iter().map(field).collect()
}

/// What became of a handler that has answered; `before` is what it was given.
pub(crate) fn outcome(result: &HookResult, before: &[HookPayload]) -> HandlerOutcome {
    if let Some(message) = &result.error {
        return HandlerOutcome::Threw {
            message: message.clone(),
        };
    }
    let Some(order) = &result.order else {
        return HandlerOutcome::Answered {
            items: result.items.clone(),
        };
    };
    let messages = before
        .first()
        .and_then(|item| item.output.get("messages")?.as_array());
    match reordered(order, messages.map_or(&[], Vec::as_slice)) {
        Ok(messages) => {
            let whole = Change {
                path: vec![Key::Name("messages".to_owned())],
                value: Some(Value::Array(messages)),
            };
            let changes = result.items.first().cloned().unwrap_or_default();
            HandlerOutcome::Answered {
                items: vec![std::iter::once(whole).chain(changes).collect()],
            }
        }
        Err(why) => HandlerOutcome::Lost { message: why },
    }
}

/// The list that is told by an earlier one. Each message of that may be in it once: so it is never much larger than what
/// was sent.
fn reordered(order: &[Piece], before: &[Value]) -> Result<Vec<Value>, String> {
    let mut messages = Vec::with_capacity(before.len());
    let mut kept = 0;
    for piece in order {
        match piece {
            Piece::New { value } => messages.push(value.clone()),
            Piece::Kept(from, count) => {
                kept += count;
                let run = from
                    .checked_add(*count)
                    .and_then(|end| before.get(*from..end))
                    .filter(|_| kept <= before.len());
                let run = run.ok_or("its answer names messages that there are not")?;
                messages.extend_from_slice(run);
            }
        }
    }
    Ok(messages)
}

/// Bytes of a value as JSON. Counted without being kept: the frame itself is made by the peer.
pub(crate) fn size<T: Serialize + ?Sized>(value: &T) -> u64 {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // A value always serialises, and counting cannot fail.
    let _ = serde_json::to_writer(&mut count, value);
    count.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::turn::HookPayload;
    use serde_json::json;

    #[test]
    fn a_plugin_is_named_once() {
        let enter = |plugin: &str, what: &str| Enter {
            plugin: plugin.into(),
            what: what.into(),
            call: None,
        };
        let entered = [
            enter("a", "chat.message"),
            enter("b", "event"),
            enter("a", "process.exit"),
        ];
        assert_eq!(named(&entered), "a (chat.message) or b (event)");
        assert!(named(&[]).contains("a timer"));
    }

    #[test]
    fn the_size_is_that_of_the_json() {
        let value = json!({"a": "\u{e9}", "b": [1, null]});
        assert_eq!(
            size(&value),
            serde_json::to_vec(&value).unwrap().len() as u64
        );
    }

    #[test]
    fn an_order_is_told_by_the_messages_before() {
        let before = [HookPayload {
            input: json!({}),
            output: json!({"messages": ["a", "b", "c"]}),
        }];
        let lost = "its answer names messages that there are not";
        for (order, told) in [
            (json!([[1, 2], [0, 1]]), Ok(json!(["b", "c", "a"]))),
            (json!([{"value": 1}, [2, 1]]), Ok(json!([1, "c"]))),
            (json!([]), Ok(json!([]))),
            (json!([[2, 2]]), Err(lost)),
            (json!([[0, 2], [0, 2]]), Err(lost)),
            (json!([[usize::MAX, 1]]), Err(lost)),
        ] {
            let result = HookResult {
                order: Some(serde_json::from_value(order.clone()).unwrap()),
                items: vec![vec![Change {
                    path: vec![Key::Name("messages".into()), Key::Index(0)],
                    value: Some(json!("z")),
                }]],
                ..HookResult::default()
            };
            match (outcome(&result, &before), told) {
                (HandlerOutcome::Answered { items }, Ok(told)) => {
                    assert_eq!(items[0][0].value, Some(told), "{order}");
                    assert_eq!(items[0].len(), 2);
                }
                (HandlerOutcome::Lost { message }, Err(told)) => assert_eq!(message, told),
                (outcome, told) => panic!("{order}: {outcome:?}, not {told:?}"),
            }
        }
    }
}
