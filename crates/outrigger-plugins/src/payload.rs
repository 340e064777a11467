//! What goes to a process with a call of hooks, and what its answer says.

use outrigger_kernel::hooks::{Field, Phase, Point};
use outrigger_protocol::hook::HandlerOutcome;
use outrigger_protocol::rpc::{Enter, HookResult, OpenField};
use serde::Serialize;

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

/// What became of a handler that has answered.
pub(crate) fn outcome(result: &HookResult) -> HandlerOutcome {
    match &result.error {
        Some(message) => HandlerOutcome::Threw {
            message: message.clone(),
        },
        None => HandlerOutcome::Answered {
            items: result.items.clone(),
        },
    }
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
        let items = vec![HookPayload {
            input: json!({"a": "é"}),
            output: json!([1, null]),
        }];
        assert_eq!(
            size(&items),
            serde_json::to_vec(&items).unwrap().len() as u64
        );
    }
}
