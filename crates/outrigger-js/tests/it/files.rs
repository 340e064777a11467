//! Payloads by file: both directions, and the remaining files after any outcome (A10).

use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_js::{ExchangeRoot, HookCall, JsError, JsProcess, Sent, Transfer, Way};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::rpc::{HandlerRef, HookResult};
use outrigger_protocol::turn::HookPayload;
use serde_json::{Value, json};

use crate::support::{LONG, Room, SHORT, anything, handler, runtimes, show};

const PLUGIN: &str = r#"import fs from "node:fs";
const raw = (message) => {
  const text = Buffer.from(JSON.stringify({ jsonrpc: "2.0", ...message }));
  const size = Buffer.alloc(4);
  size.writeUInt32BE(text.length);
  fs.writeSync(3, Buffer.concat([size, text]));
};
export const P = async () => ({
  size: async (i, o) => { o.size = o.text.length; o.last = o.text.at(-1) },
  echo: async (i, o) => { o.text += "!" },
  grow: async (i, o) => { o.text = "y".repeat(o.size); o.odd = "\ud800" },
  throws: async (i, o) => { throw new Error("no") },
  hangs: () => new Promise(() => {}),
  exits: async () => process.exit(3),
  forged: async (i, o) => {
    raw({ method: "hook.result", params: { call: o.call, handler: 0, ms: 1, file: "/etc/passwd" } });
    await new Promise(() => {});
  },
  guessed: async (i, o) => {
    raw({ id: 900, method: "file.open", params: { call: o.call, handler: 0, bytes: 10 } });
    await new Promise((resolve) => setTimeout(resolve, 100));
    raw({ method: "hook.result", params: { call: o.call, handler: 0, ms: 1, file: "00000000000000000000000000000000" } });
    await new Promise(() => {});
  },
});"#;

/// Every file below a folder, but the locks of hosts.
fn files(base: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![base.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_none() {
                found.push(path);
            }
        }
    }
    found
}

async fn start(room: &Room, inline: usize) -> JsProcess {
    let files = ExchangeRoot::open(&room.root.join("files")).unwrap();
    let entry = room.plugin("p", PLUGIN);
    let transfer = Transfer {
        files: Some(files),
        inline,
        mirror: false,
    };
    let process = room.start_as(|options| options.transfer = transfer);
    let process = process.await.unwrap();
    let initialize = room.initialize(vec![entry]);
    let loaded = process.initialize(&initialize, LONG);
    assert_eq!(loaded.await.unwrap().plugins[0].problems, []);
    process
}

/// Runs a hook of the plugin; how its payload went, and what came of it.
async fn call(
    process: &JsProcess,
    hook: &str,
    output: Value,
    deadline: Duration,
) -> (Sent, Result<Vec<HookResult>, JsError>) {
    let handlers: [HandlerRef; 1] = [handler("p")];
    let items = [HookPayload::new(json!({}), output)];
    let call = HookCall {
        hook,
        handlers: &handlers,
        open: &anything(),
        items: &items,
        session: None,
        chain: None,
    };
    let (mut sent, mut results) = (Sent::default(), Vec::new());
    let ended = process
        .hook_call(&call, deadline, &mut sent, |result| results.push(result))
        .await;
    (sent, ended.map(|()| results))
}

#[tokio::test]
async fn what_is_large_goes_by_file_in_both_directions() {
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let process = start(&room, 1000).await;
        let large = "\u{e4}".repeat(400_000) + "z";
        for (hook, output, way, shown) in [
            (
                "size",
                json!({"text": "z"}),
                Way::Inline,
                "size=1 last=\"z\"".to_owned(),
            ),
            (
                "size",
                json!({"text": large}),
                Way::File,
                "size=400001 last=\"z\"".to_owned(),
            ),
            (
                "echo",
                json!({"text": large}),
                Way::File,
                format!("text=\"{large}!\""),
            ),
            (
                "grow",
                json!({"size": 5000}),
                Way::Inline,
                format!("text=\"{}\" odd=\"\u{fffd}\"", "y".repeat(5000)),
            ),
        ] {
            let bytes = serde_json::to_vec(&json!([{"input": {}, "output": output}])).unwrap();
            let (sent, results) = call(&process, hook, output, LONG).await;
            assert_eq!(show(&results.unwrap()[0]), shown, "{hook}");
            assert_eq!(
                (sent.way, sent.payload),
                (way, bytes.len() as u64),
                "{hook}"
            );
            assert_eq!(
                files(&room.root.join("files")),
                Vec::<PathBuf>::new(),
                "{hook}"
            );
        }
    }
}

#[tokio::test]
async fn a_file_is_gone_whatever_the_outcome() {
    let outcomes = [
        ("throws", "ok: ! no"),
        ("hangs", "js.timeout"),
        ("exits", "js.closed"),
        // A path in an answer is nothing that the host made, so it is never opened; the channel ends.
        ("forged", "js.closed"),
        ("guessed", "js.closed"),
    ];
    for runtime in runtimes() {
        for (hook, expected) in outcomes {
            let room = Room::new(&runtime);
            let process = start(&room, 1000).await;
            // The calls of a process are counted: the first one loaded the plugin.
            let output = json!({"text": "x".repeat(9000), "call": 2});
            let deadline = if hook == "hangs" { SHORT } else { LONG };
            let (sent, ended) = call(&process, hook, output, deadline).await;
            let ended = match ended {
                Ok(results) => format!("ok: {}", show(&results[0])),
                Err(error) => error.code().to_owned(),
            };
            assert_eq!((ended.as_str(), sent.way), (expected, Way::File), "{hook}");
            assert_eq!(
                files(&room.root.join("files")),
                Vec::<PathBuf>::new(),
                "{hook}"
            );
        }
    }
}

#[tokio::test]
async fn a_file_of_a_call_that_is_given_up_is_gone() {
    let room = Room::new(&runtimes()[0]);
    let process = start(&room, 1000).await;
    let output = json!({"text": "x".repeat(9000)});
    let given_up = tokio::time::timeout(SHORT, call(&process, "hangs", output, LONG)).await;
    assert!(given_up.is_err());
    assert_eq!(files(&room.root.join("files")), Vec::<PathBuf>::new());
    drop(process);
}
