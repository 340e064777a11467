//! Data sent to a process with a call of hooks, and the conversion of its answer.

use outrigger_kernel::hooks::{Field, HookPoint, Phase, Rights};
use outrigger_protocol::hook::{Block, HookOutcome};
use outrigger_protocol::rpc::OpenField;
use serde_json::Value;

/// Returns the fields that handlers may change, so that the process can detect a violation.
pub(crate) fn open(point: HookPoint, rights: Rights) -> Vec<OpenField> {
    if point.spec().phase == Phase::Observe || !rights.patch {
        return Vec::new();
    }
    let field = |field: &Field| OpenField {
        key: field.key.to_owned(),
        kind: field.kind.name().to_owned(),
        required: field.required,
    };
    point.spec().patch.iter().map(field).collect()
}

/// Maximum size in bytes of the code, the text, and the JSON details of a plugin's refusal.
const CODE: usize = 64;
const TEXT: usize = 4096;
const DETAILS: usize = 16 * 1024;

/// Returns a refusal as accepted from a plugin: codes that begin with `hook.` are reserved, and values that are too long
/// are truncated or dropped.
fn refusal(block: &Block) -> Block {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let code = block.code.as_str();
    let fits = !code.is_empty() && code.len() <= CODE && code.chars().all(plain);
    let code = if fits && !code.starts_with("hook.") {
        code
    } else {
        "hook.blocked"
    };
    let end = outrigger_stdx::text::floor_char_boundary(&block.message, TEXT);
    let details = if block.details.to_string().len() <= DETAILS {
        block.details.clone()
    } else {
        Value::Null
    };
    Block {
        code: code.to_owned(),
        message: block.message.get(..end).unwrap_or_default().to_owned(),
        details,
        plugin: None,
    }
}

/// Returns a handler's answer as accepted from a process, with its refusal within the limits.
pub(crate) fn taken(outcome: &HookOutcome) -> HookOutcome {
    match outcome {
        HookOutcome::Block(block) => HookOutcome::Block(refusal(block)),
        outcome => outcome.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_is_taken_within_bounds_and_under_no_code_of_ours() {
        let long = "a".repeat(65);
        for (code, taken) in [
            ("policy.secret-1", "policy.secret-1"),
            ("hook.failed_closed", "hook.blocked"),
            ("", "hook.blocked"),
            ("two words", "hook.blocked"),
            (long.as_str(), "hook.blocked"),
        ] {
            let block = Block {
                code: code.into(),
                message: "é".repeat(TEXT),
                details: json!({"rule": 1}),
                plugin: None,
            };
            let taken_as = refusal(&block);
            assert_eq!(
                (taken_as.code.as_str(), taken_as.message.len()),
                (taken, TEXT)
            );
            assert_eq!(taken_as.details, block.details);
        }
        let block = Block {
            code: "a".into(),
            message: String::new(),
            details: json!("x".repeat(DETAILS)),
            plugin: None,
        };
        assert_eq!(refusal(&block).details, json!(null));
    }
}
