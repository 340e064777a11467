//! What a handler may change where (C3): anything else is refused, recorded, and has no effect.

use outrigger_kernel::hooks::{Chain, HookPoint, Phase};
use outrigger_protocol::hook::{Change, Decision, HookOutcome};
use serde_json::{Value, json};

use crate::chain::{at, folded, handler, payload};

/// One handler answers `changes` (as on the wire) at a point whose output was `before`.
fn answer(
    point: &str,
    before: &Value,
    changes: Value,
) -> (Value, Decision, Vec<String>, Option<String>) {
    let changes: Vec<Change> = serde_json::from_value(changes).unwrap();
    let mut chain = Chain::new(
        at(point),
        vec![handler(0, 1)],
        vec![payload(before.clone())],
    );
    chain.feed(0, HookOutcome::patch(vec![changes]), 1.0);
    let mut end = folded(&chain);
    assert_eq!(end.block, None);
    let run = end.runs.remove(0);
    (
        end.outputs.remove(0),
        run.decision,
        run.changed,
        run.message,
    )
}

#[test]
fn refused_answers_have_no_effect() {
    let params = json!({"temperature": 0.5, "options": {"a": 1}, "extra": true});
    let messages = json!({"messages": [{"parts": []}]});
    let call = json!({"args": {"command": "ls"}});
    let definition = json!({"description": "d", "parameters": {}});
    for (point, before, changes, message) in [
        (
            "llm.before_params",
            &params,
            json!([{"path":["model"],"value":"other"}]),
            "/model may not be changed at llm.before_params",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":["extra"]}]),
            "/extra may not be changed at llm.before_params",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":["temperature"],"value":"hot"}]),
            "temperature is a text now",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":["options"],"value":null}]),
            "options is null now",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":["options"]}]),
            "options is gone",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":["options","a","b"],"value":1}]),
            "the output has no place /options/a/b",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":[0],"value":1}]),
            "/0 may not be changed at llm.before_params",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":[],"value":[]}]),
            "the whole output may not be changed at llm.before_params",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":[],"value":"x"}]),
            "the whole output may not be changed at llm.before_params",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":[]}]),
            "the whole output may not be changed at llm.before_params",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":[],"value":{"options":{"a":1},"temperature":0.5}}]),
            "/extra may not be changed at llm.before_params",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":[],"value":{"options":{"a":1},"extra":true,"more":1}}]),
            "/more may not be changed at llm.before_params",
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":[],"value":{"extra":true}}]),
            "options is gone",
        ),
        (
            "llm.before_messages",
            &messages,
            json!([{"path":["messages"],"value":{}}]),
            "messages is an object now",
        ),
        (
            "llm.before_messages",
            &messages,
            json!([{"path":["messages",7],"value":{}}]),
            "the output has no place /messages/7",
        ),
        (
            "llm.before_system",
            &json!({"system": ["a"]}),
            json!([{"path":["system"],"value":"b"}]),
            "system is a text now",
        ),
        (
            "llm.before_headers",
            &json!({"headers": {}}),
            json!([{"path":["headers"],"value":[]}]),
            "headers is a list now",
        ),
        (
            "llm.after_text",
            &json!({"text": "t"}),
            json!([{"path":["text"],"value":7}]),
            "text is a number now",
        ),
        (
            "llm.tool_definition",
            &definition,
            json!([{"path":["toolID"],"value":"other"}]),
            "/toolID may not be changed at llm.tool_definition",
        ),
        (
            "llm.tool_definition",
            &definition,
            json!([{"path":["description"]}]),
            "description is gone",
        ),
        (
            "tool.before_call",
            &call,
            json!([{"path":["args"],"value":"rm"}]),
            "args is a text now",
        ),
        (
            "tool.before_call",
            &call,
            json!([{"path":["tool"],"value":"bash"}]),
            "/tool may not be changed at tool.before_call",
        ),
        (
            "tool.before_permission",
            &json!({"status": "ask"}),
            json!([{"path":["status"],"value":true}]),
            "status is a boolean now",
        ),
        (
            "execute.before_shell",
            &json!({"env": {}}),
            json!([{"path":["env"]}]),
            "env is gone",
        ),
        (
            "tool.after_result",
            &json!({"output": "o", "title": "t"}),
            json!([{"path":["title"],"value":{}}]),
            "title is an object now",
        ),
        (
            "tool.after_result",
            &json!({"output": "o"}),
            json!([{"path":[],"value":"o"}]),
            "the whole output may not be changed at tool.after_result",
        ),
        (
            "compaction.after_finish",
            &json!({"enabled": true}),
            json!([{"path":["enabled"],"value":"no"}]),
            "enabled is a text now",
        ),
        (
            "run.before_start",
            &json!({"message": {}, "parts": []}),
            json!([{"path":["parts"],"value":null}]),
            "parts is null now",
        ),
        (
            "session.on_event",
            &json!({"event": {}}),
            json!([{"path":["event","x"],"value":1}]),
            "/event/x may not be changed at session.on_event",
        ),
        (
            "session.on_event",
            &json!({"event": {}}),
            json!([{"path":[],"value":{}}]),
            "/event may not be changed at session.on_event",
        ),
        (
            "runtime.dispose",
            &json!({}),
            json!([{"path":["x"],"value":1}]),
            "/x may not be changed at runtime.dispose",
        ),
        (
            "runtime.configure",
            &json!({"model": "m"}),
            json!([{"path":[],"value":[1]}]),
            "the whole output may not be changed at runtime.configure",
        ),
    ] {
        let (output, decision, changed, got) = answer(point, before, changes.clone());
        assert_eq!(output, *before, "{point} {changes}");
        assert_eq!(
            (decision, changed.as_slice(), got.as_deref()),
            (Decision::Refused, &[][..], Some(message)),
            "{point} {changes}"
        );
    }
}

#[test]
fn allowed_answers_take_effect() {
    let params = json!({"temperature": 0.5, "options": {}, "extra": true});
    for (point, before, changes, after, changed) in [
        (
            "llm.before_params",
            &params,
            json!([{"path":["options","seed"],"value":7},{"path":["temperature"]}]),
            json!({"options": {"seed": 7}, "extra": true}),
            vec!["/options/seed", "/temperature"],
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":["temperature"],"value":null}]),
            json!({"temperature": null, "options": {}, "extra": true}),
            vec!["/temperature"],
        ),
        (
            "llm.before_params",
            &params,
            json!([{"path":[],"value":{"temperature":1,"options":{},"extra":true}}]),
            json!({"temperature": 1, "options": {}, "extra": true}),
            vec![""],
        ),
        (
            "tool.before_call",
            &json!({"args": {}}),
            json!([{"path":["args"],"value":{"command":"pwd"}}]),
            json!({"args": {"command": "pwd"}}),
            vec!["/args"],
        ),
        (
            "tool.after_result",
            &json!({"title": "t", "output": "o"}),
            json!([{"path":["mine"],"value":1},{"path":["output"],"value":null}]),
            json!({"title": "t", "output": null, "mine": 1}),
            vec!["/mine", "/output"],
        ),
        (
            "runtime.configure",
            &json!({"model": "m"}),
            json!([{"path":[],"value":{"agent":{}}}]),
            json!({"agent": {}}),
            vec![""],
        ),
        // A field that had another type before is not the handler's fault.
        (
            "llm.before_params",
            &json!({"temperature": "warm", "options": {}}),
            json!([{"path":["options","a"],"value":1}]),
            json!({"temperature": "warm", "options": {"a": 1}}),
            vec!["/options/a"],
        ),
    ] {
        let (output, decision, got, message) = answer(point, before, changes.clone());
        assert_eq!(output, after, "{point} {changes}");
        assert_eq!(
            (decision, got, message),
            (
                Decision::Patch,
                changed.iter().map(ToString::to_string).collect(),
                None
            ),
            "{point} {changes}"
        );
    }
}

#[test]
fn what_is_allowed_of_an_answer_is_taken_and_the_rest_is_recorded() {
    let before = json!({"temperature": 0.5, "options": {}});
    let (output, decision, changed, message) = answer(
        "llm.before_params",
        &before,
        json!([{"path":["topP"],"value":0.9},{"path":["model"],"value":"x"}]),
    );
    assert_eq!(
        output,
        json!({"temperature": 0.5, "options": {}, "topP": 0.9})
    );
    assert_eq!(
        (decision, changed),
        (Decision::Patch, vec!["/topP".to_owned()])
    );
    assert_eq!(
        message.as_deref(),
        Some("/model may not be changed at llm.before_params")
    );
}

#[test]
fn answers_without_changes_are_no_patch() {
    for changes in [json!([]), json!([{"path":["temperature"]}])] {
        let (output, decision, _, message) = answer(
            "llm.before_params",
            &json!({"options": {}}),
            changes.clone(),
        );
        assert_eq!(output, json!({"options": {}}));
        assert_eq!(message, None);
        assert_eq!(
            decision,
            if changes == json!([]) {
                Decision::Continue
            } else {
                Decision::Patch
            }
        );
    }
}

#[test]
fn items_of_a_batch_are_guarded_one_by_one() {
    let point = at("llm.tool_definition");
    let items = vec![
        payload(json!({"description": "a", "parameters": {}})),
        payload(json!({"description": "b", "parameters": {}})),
    ];
    let mut chain = Chain::new(point, vec![handler(0, 1)], items);
    let answers = json!([[{"path":["description"],"value":7}], [{"path":["description"],"value":"B"}], [{"path":["x"],"value":1}]]);
    chain.feed(
        0,
        HookOutcome::patch(serde_json::from_value(answers).unwrap()),
        1.0,
    );
    let end = folded(&chain);
    assert_eq!(
        end.outputs,
        [
            json!({"description": "a", "parameters": {}}),
            json!({"description": "B", "parameters": {}})
        ]
    );
    assert_eq!(end.runs[0].changed, ["/1/description"]);
    assert_eq!(
        end.runs[0].message.as_deref(),
        Some("description is a number now; there is no item 2")
    );
}

/// The table of points itself: notification points open nothing, and the names of open fields are unique.
#[test]
fn the_table_of_points_is_sound() {
    for point in HookPoint::ALL.iter().copied() {
        if point.spec().phase == Phase::Observe {
            assert!(
                point.spec().patch.is_empty() && !point.spec().block,
                "{}",
                point.name()
            );
        }
        for (i, field) in point.spec().patch.iter().enumerate() {
            assert!(
                point
                    .spec()
                    .patch
                    .iter()
                    .skip(i + 1)
                    .all(|other| other.key != field.key),
                "{}",
                point.name()
            );
        }
    }
}
