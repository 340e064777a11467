//! What is not merged: starts and results without a partner, and starts that wait too long (E4).

use outrigger_kernel::merge::{Limits, Merger, bundled, from_agent, merge_all};
use outrigger_protocol::merged::{AgentOutput, ConversationMessage};
use serde_json::json;

use crate::merge::{result, start};

fn ids(messages: &[ConversationMessage]) -> Vec<&str> {
    messages.iter().map(|message| message.id.as_str()).collect()
}

/// E4: whatever cannot be paired passes as it is.
#[test]
fn what_has_no_partner_passes_as_it_is() {
    let text = from_agent(
        "t",
        AgentOutput::Text {
            text: "hi".into(),
            timestamp: 1000,
        },
    );
    let alone = result("a", "read", "o", json!(null), false);
    let early = [
        result("b", "read", "o", json!(null), false),
        start("b", "read", json!({})),
    ];
    let mut unreadable = start("x", "read", json!({}));
    unreadable.metadata.insert("tool_use_id".into(), json!(7));
    let mut nameless = result("y", "read", "o", json!(null), false);
    nameless.metadata.shift_remove("tool_use_id");
    let other = ConversationMessage {
        message_type: "tool_execution".into(),
        ..start("z", "read", json!({}))
    };
    let all: Vec<_> = [text, alone]
        .into_iter()
        .chain(early)
        .chain([unreadable, nameless, other])
        .collect();
    let mut want = all.clone();
    // A start waits for its result to the end.
    let waiting = want.remove(3);
    want.push(waiting);
    assert_eq!(merge_all(all), want);
}

#[test]
fn a_second_start_lets_the_first_go_and_a_second_result_passes() {
    let mut second = start("c", "read", json!({"filePath": "b"}));
    second.id = "second".into();
    let mut again = result("c", "read", "o", json!(null), false);
    again.id = "again".into();
    let all = [
        start("c", "read", json!({"filePath": "a"})),
        second,
        result("c", "read", "o", json!(null), false),
        again,
    ];
    let out = merge_all(all);
    assert_eq!(ids(&out), ["c-start", "second-merged", "again"]);
    assert_eq!(out[1].content, "Read b");
}

#[test]
fn starts_are_let_go_by_age_and_by_number() {
    let limits = Limits {
        max_wait_ms: 100,
        max_waiting: 2,
    };
    let mut merger = Merger::new(bundled(), limits);
    let at = |id: &str, timestamp| ConversationMessage {
        timestamp,
        ..start(id, "bash", json!({}))
    };
    assert!(merger.push(at("a", 1000)).is_empty());
    assert!(merger.push(at("b", 1010)).is_empty());
    assert_eq!(
        ids(&merger.push(at("c", 1020))),
        ["a-start"],
        "more than two wait"
    );
    assert_eq!(
        ids(&merger.expire(1110)),
        Vec::<&str>::new(),
        "a wait of exactly the limit is none too long"
    );
    assert_eq!(ids(&merger.expire(1111)), ["b-start"]);
    let text = from_agent(
        "t",
        AgentOutput::Text {
            text: "hi".into(),
            timestamp: 1121,
        },
    );
    assert_eq!(
        ids(&merger.push(text)),
        ["c-start", "t"],
        "what was let go comes before what let it go"
    );
    assert!(merger.push(at("d", 1200)).is_empty());
    assert_eq!(ids(&merger.finish()), ["d-start"]);
    assert_eq!((merger.waiting(), merger.finish().len()), (0, 0));
    let mut none = Merger::new(
        bundled(),
        Limits {
            max_wait_ms: 100,
            max_waiting: 0,
        },
    );
    assert_eq!(ids(&none.push(at("a", 1000))), ["a-start"]);
}

/// A command that ran longer than the limit and that nothing else waited behind: its own result still finds it.
#[test]
fn a_late_result_is_merged_when_nothing_came_between() {
    let mut merger = Merger::new(
        bundled(),
        Limits {
            max_wait_ms: 100,
            max_waiting: 2,
        },
    );
    assert!(merger.push(start("c", "bash", json!({}))).is_empty());
    let out = merger.push(result("c", "bash", "o", json!(null), false));
    assert_eq!(ids(&out), ["c-start-merged"]);
    assert_eq!(out[0].metadata["duration_ms"], 250);
}
