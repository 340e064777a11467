//! Random model output and hook refusals of a simulated turn.

use outrigger_protocol::compaction::{AutoCompact, CompactRequest};
use outrigger_protocol::turn::Begin;
use proptest::prelude::*;
use serde_json::json;

use crate::drive::begin;

#[derive(Clone, Debug)]
pub(crate) enum Say {
    Text {
        text: String,
        open: bool,
    },
    Thought {
        text: String,
        open: bool,
    },
    Call {
        id: String,
        tool: String,
        raw: String,
        unfinished: bool,
    },
}

#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) says: Vec<Say>,
    pub(crate) fails: bool,
    /// Too long for the model.
    pub(crate) overflows: bool,
    /// Tokens of the request.
    pub(crate) sent: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) begin: Begin,
    pub(crate) requests: Vec<Request>,
    /// A hook at this point refuses, the nth time it is reached.
    pub(crate) block: Option<(&'static str, usize)>,
    /// Tools and the model report at once when they are stopped.
    pub(crate) obeys: bool,
    /// Numbers of reports after which a prompt arrives.
    pub(crate) joins: Vec<usize>,
}

/// Returns a prompt whose message is stored already.
pub(crate) fn joined(begin: &Begin, id: &str) -> Begin {
    let mut joined = Begin {
        stored: true,
        no_reply: false,
        compact: None,
        ..begin.clone()
    };
    joined.message.id = id.into();
    joined.parts.clear();
    joined
}

fn say() -> impl Strategy<Value = Say> {
    let tool = prop::sample::select(vec![
        "read",
        "glob",
        "bash",
        "write",
        "Bash",
        "nosuch",
        "StructuredOutput",
    ]);
    let id = prop::sample::select(vec!["", "a", "b", "c", "d", "used"]);
    let raw = prop::sample::select(vec![
        "{}",
        "",
        "{broken",
        r#"{"n":1}"#,
        r#"{"n":2}"#,
        r#"{"n":3,"x":[1.5]}"#,
    ]);
    prop_oneof![
        2 => ("[a-z]{0,4} ?", prop::bool::weighted(0.1)).prop_map(|(text, open)| Say::Text { text, open }),
        1 => ("[a-z]{0,4}", prop::bool::weighted(0.1)).prop_map(|(text, open)| Say::Thought { text, open }),
        3 => (id, tool, raw, prop::bool::weighted(0.1)).prop_map(|(id, tool, raw, unfinished)| Say::Call {
            id: id.to_owned(), tool: tool.to_owned(), raw: raw.to_owned(), unfinished,
        }),
    ]
}

pub(crate) fn script() -> impl Strategy<Value = Script> {
    let request = (
        prop::collection::vec(say(), 0..5),
        prop::bool::weighted(0.08),
        prop::bool::weighted(0.1),
        prop::sample::select(vec![10, 20, 500]),
    )
        .prop_map(|(says, fails, overflows, sent)| Request {
            says,
            fails,
            overflows,
            sent,
        });
    let points = vec![
        "run.before_command",
        "run.before_start",
        "llm.before_messages",
        "llm.before_headers",
        "llm.after_text",
    ];
    let block = prop::option::weighted(0.15, (prop::sample::select(points), 0..3_usize));
    let flags = (
        any::<bool>(),
        prop::bool::weighted(0.05),
        any::<bool>(),
        1..9_u32,
        any::<u64>(),
        prop::option::of((
            prop::option::of(Just(400_u64)),
            prop::sample::select(vec![0_u64, 500]),
        )),
        prop::option::weighted(0.2, any::<bool>()),
    );
    (
        prop::collection::vec(request, 1..7),
        block,
        any::<bool>(),
        flags,
        prop::collection::vec(0..40_usize, 0..3),
    )
        .prop_map(|(requests, block, obeys, flags, joins)| {
            let (title, no_reply, command, max_steps, seed, auto, compact) = flags;
            let command = command.then(|| outrigger_protocol::turn::CommandCall {
                name: "c".into(),
                arguments: "x".into(),
            });
            let begin = Begin {
                seed,
                no_reply,
                wants_title: title,
                command,
                max_steps,
                snapshots: seed % 2 == 0,
                asks_loops: seed % 3 == 0,
                auto_compact: auto.map(|(limit, used)| AutoCompact { limit, used }),
                compact: compact.map(|auto| CompactRequest {
                    auto,
                    instructions: None,
                }),
                ..begin()
            };
            let mut begin = begin;
            if seed % 5 == 0 {
                let form = json!({ "type": "json_schema", "schema": {}, "retryCount": seed % 2 });
                begin.message.format = serde_json::from_value(form).ok();
            }
            Script {
                begin,
                requests,
                block,
                obeys,
                joins,
            }
        })
}
