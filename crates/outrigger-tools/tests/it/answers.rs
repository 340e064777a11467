//! Tools whose hooks see the answer in the tool's own form, like those of MCP servers.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_tools::{Tool, ToolContext, ToolError};
use serde_json::{Value, json};

use crate::support::Room;

struct Own(ToolSpec, Value);

impl Own {
    fn add_to(room: &Room) {
        let spec = ToolSpec {
            name: "own".into(),
            description: String::new(),
            input_schema: json!({"type": "object", "properties": {}, "additionalProperties": false}),
            read_only: false,
            hidden: false,
            source: "mcp:m".into(),
        };
        let checked = json!({"type": "object", "required": ["n"]});
        room.runtime
            .register(Arc::new(Self(spec, checked)))
            .unwrap();
    }
}

impl Tool for Own {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    fn argument_schema(&self) -> &Value {
        &self.1
    }
    fn read(&self, answer: &Value) -> Option<ToolOutput> {
        Some(ToolOutput {
            output: answer["content"].as_str()?.to_owned(),
            ..ToolOutput::default()
        })
    }
    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        let answer = json!({"content": format!("n is {}", input["n"]), "extra": [1]});
        Box::pin(async move {
            ctx.answered(answer.clone());
            Ok(self.read(&answer).unwrap_or_default())
        })
    }
}

#[tokio::test]
async fn hooks_get_the_answer_in_the_tools_own_form_and_may_change_it() {
    let room = Room::new();
    Own::add_to(&room);
    let unchanged = room.output("own", json!({"n": 1})).await;
    assert_eq!(unchanged.output, "n is 1");
    assert!(
        room.host
            .lines()
            .ends_with(r#"-> {"content":"n is 1","extra":[1]}"#),
        "{}",
        room.host.lines()
    );

    room.host.hook(HookPoint::ToolAfterResult, |mut answer| {
        answer["content"] = json!("changed");
        Ok(answer)
    });
    let changed = room.output("own", json!({"n": 1})).await;
    assert_eq!(
        (changed.output.as_str(), changed.metadata),
        ("changed", json!({"truncated": false}))
    );

    // An unreadable answer leaves the output unchanged.
    for left in [json!({"content": 5}), json!(null), json!("text")] {
        room.host
            .hook(HookPoint::ToolAfterResult, move |_| Ok(left));
        assert_eq!(room.output("own", json!({"n": 2})).await.output, "n is 2");
    }
}

#[tokio::test]
async fn a_hook_does_not_get_around_the_limits_in_that_form() {
    let room = Room::new();
    Own::add_to(&room);
    room.host.hook(HookPoint::ToolAfterResult, |_| {
        Ok(json!({"content": "x\n".repeat(500_000)}))
    });
    let output = room.output("own", json!({"n": 1})).await;
    assert!(output.output.len() < 128 * 1024);
    assert_eq!(output.metadata["truncated"], true);
}

#[tokio::test]
async fn arguments_are_checked_against_the_schema_that_is_meant_for_it() {
    let room = Room::new();
    Own::add_to(&room);
    // More than the schema that the model gets.
    room.output("own", json!({"n": 1, "more": 2})).await;
    assert_eq!(
        room.failure("own", json!({"more": 2})).await.0,
        "tool.invalid_input"
    );
}
