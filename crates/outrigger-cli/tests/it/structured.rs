//! An answer in the form of a JSON Schema, after a kill. The form is part of the message, where a plugin may set it, too.

use serde_json::json;

use crate::support::*;

const FORMS: &str = "
export const Forms = async () => ({
  'chat.message': async (input, output) => {
    const schema = { type: 'object', properties: { answer: { type: 'number' } }, required: ['answer'] }
    output.message.format = { type: 'json_schema', schema }
  },
})";

#[test]
fn a_turn_that_is_gone_on_with_still_wants_its_form() {
    if bun_or_skip().is_none() {
        return;
    }
    for point in [
        "model.before_call:1",
        "model.before_call:2",
        "tool.after_run:1",
    ] {
        let look = turn([call("read", json!({ "filePath": "hello.txt" }))]);
        let answer = turn([call("StructuredOutput", json!({ "answer": 4 }))]);
        let world = World::with(Mock::new([look, answer]).by_results());
        world.plugin("forms", FORMS);
        let killed = world.run_with(&[("OUTRIGGER_FAULT", point)], &["two and two"]);
        killed.exited(137);
        world.run(&["-c"]).ok();
        let messages = world.export()["messages"].clone();
        let last = messages.as_array().unwrap().last().unwrap()["info"].clone();
        assert_eq!(last["structured"], json!({ "answer": 4 }), "{point}");
        for request in world.mock.requests() {
            assert_eq!(request.body["tool_choice"], "required", "{point}");
        }
        world.verify();
    }
}
