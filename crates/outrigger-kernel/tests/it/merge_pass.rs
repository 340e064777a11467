//! Unmerged messages: starts and results without a partner, from other agents (E1, E4).

use outrigger_kernel::merge::{AgentParts, Converter, Form};
use outrigger_protocol::merged::{AgentOutput, EntryState, Placed};
use serde_json::{Value, json};

use crate::agent_parts::{Written, result_of, use_of};

fn shown(written: &Written, form: Form) -> Vec<(String, EntryState)> {
    let all = written.placed(&Converter::default(), form);
    all.into_iter()
        .map(|it| (it.message.message_type, it.state))
        .collect()
}

fn kinds(written: &Written, form: Form) -> Vec<String> {
    shown(written, form)
        .into_iter()
        .map(|(kind, _)| kind)
        .collect()
}

fn text(text: &str) -> AgentOutput {
    AgentOutput::Text {
        text: text.into(),
        timestamp: 1000,
    }
}

/// E4: whatever cannot be paired is passed through unchanged, and everything keeps its order.
#[test]
fn what_has_no_partner_passes_as_it_is() {
    let mut written = Written::default();
    let mut parts = AgentParts::default();
    for output in [
        text("hi"),
        result_of("a", 1010),
        result_of("b", 1020),
        use_of("b", 1030),
        AgentOutput::Other {
            text: "{\"type\":\"new\"}".into(),
            timestamp: 1040,
        },
    ] {
        written.take(parts.on(output));
    }
    let done = EntryState::Done;
    let want = |last| -> Vec<(String, EntryState)> {
        [
            ("text", done),
            ("tool_result", done),
            ("tool_result", done),
            ("tool_use", last),
            ("text", done),
        ]
        .map(|(kind, state)| (kind.to_owned(), state))
        .into()
    };
    for form in [Form::Merged, Form::Apart] {
        assert_eq!(shown(&written, form), want(EntryState::Running));
    }
    // The end of the agent: nothing is lost, and nothing is running.
    written.take(parts.finish());
    for form in [Form::Merged, Form::Apart] {
        assert_eq!(shown(&written, form), want(done));
    }
    let all = written.placed(&Converter::default(), Form::Merged);
    let field = |at: usize, key: &str| all[at].message.metadata.get(key).cloned();
    assert_eq!(field(1, "tool_use_id"), Some(json!("a")));
    assert_eq!(field(1, "output"), Some(json!("o")));
    assert_eq!(field(3, "input"), Some(json!({ "filePath": "b" })));
    assert_eq!(all[4].message.content, "{\"type\":\"new\"}");
}

#[test]
fn a_second_start_lets_the_first_go_and_a_second_result_passes() {
    let mut written = Written::default();
    let mut parts = AgentParts::default();
    for output in [
        use_of("c", 1000),
        use_of("c", 1010),
        result_of("c", 1020),
        result_of("c", 1030),
    ] {
        written.take(parts.on(output));
    }
    assert_eq!(
        kinds(&written, Form::Merged),
        ["tool_use", "tool_execution", "tool_result"]
    );
    let all: Vec<Placed> = written.placed(&Converter::default(), Form::Merged);
    let took: Option<&Value> = all[1].message.metadata.get("duration_ms");
    assert_eq!(took, Some(&json!(10)), "from its own start");
}

/// Open calls are limited: beyond the limit, the oldest is released, and its result is passed through separately.
#[test]
fn the_oldest_of_too_many_open_calls_is_released() {
    let mut written = Written::default();
    let mut parts = AgentParts::with_limit(2);
    for call in ["a", "b", "c"] {
        written.take(parts.on(use_of(call, 1000)));
        assert!(parts.open() <= 2);
    }
    for call in ["a", "b", "c"] {
        written.take(parts.on(result_of(call, 1100)));
    }
    assert_eq!(parts.open(), 0);
    assert!(parts.finish().is_empty());
    assert_eq!(
        kinds(&written, Form::Merged),
        [
            "tool_use",
            "tool_execution",
            "tool_execution",
            "tool_result"
        ]
    );
    let mut none = AgentParts::with_limit(0);
    assert_eq!(
        none.on(use_of("a", 1000)).len(),
        2,
        "a start, and its release"
    );
}

/// A call may take longer than any limit: its result replaces its start whenever it comes.
#[test]
fn a_late_result_is_merged_whatever_came_between() {
    let mut written = Written::default();
    let mut parts = AgentParts::default();
    let hours = 5 * 3_600_000;
    written.take(parts.on(use_of("c", 1000)));
    written.take(parts.on(text("still at it")));
    assert_eq!(kinds(&written, Form::Merged), ["tool_use", "text"]);
    written.take(parts.on(result_of("c", 1000 + hours)));
    assert_eq!(kinds(&written, Form::Merged), ["tool_execution", "text"]);
    let all = written.placed(&Converter::default(), Form::Merged);
    assert_eq!(all[0].message.metadata["duration_ms"], hours);
}
