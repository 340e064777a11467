//! Frames of every size, split at every position: a peer that takes a part of one for the whole hangs at 64 KB.

use outrigger_protocol::rpc::MAX_FRAME;
use outrigger_sandbox::{Spawner, Spec};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use crate::support::{LONG, Room, hook, items, run, runtimes, show, tool_run};

#[tokio::test]
async fn the_largest_frames_go_both_ways() {
    let plugin = "export const P = async () => ({
        size: async (input, output) => { output.size = output.text.length; output.last = output.text.at(-1) },
        grow: async (input, output) => { output.text = 'y'.repeat(output.size) } });";
    // What is around the text in its frame.
    let envelope = 1024;
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", plugin)]).await;
        let size = MAX_FRAME - envelope;
        let text = "x".repeat(size - 1) + "z";
        let results = hook(&process, &run("size", &["p"], json!({"text": text}))).await;
        assert_eq!(show(&results[0]), format!("size={size} last=\"z\""));
        let results = hook(&process, &run("grow", &["p"], json!({"size": size}))).await;
        let grown = items(&results[0])[0][0].value.as_ref().unwrap();
        assert_eq!(grown.as_str().unwrap().len(), size);
    }
}

/// The process neither waits nor loses anything: while the host does not read, the plugin's own code runs on, and what comes
/// behind the large answer comes in its order.
#[tokio::test(flavor = "multi_thread")]
async fn sixteen_megabytes_at_once_wait_for_a_host_that_does_not_read() {
    let plugin = "import { writeFileSync } from 'node:fs';
    export const P = async () => ({ tool: { act: { description: '', args: {}, execute: async ({ file }, context) => {
        context.metadata({ title: 'first', metadata: { hold: file } });
        // So that the host has taken that, and nothing behind it.
        await new Promise((done) => setTimeout(done, 100));
        context.metadata({ title: 'large', metadata: { text: 'x'.repeat(16 << 20) } });
        await new Promise((done) => setTimeout(done, 1));
        context.metadata({ title: 'last' });
        writeFileSync(file, '');
        return 'y'.repeat(16 << 20);
    } } } })";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", plugin)]).await;
        let file = room.root.join("project/free");
        let answer = process
            .tool_run(
                &tool_run("p", "act", json!({"file": file})),
                LONG,
                std::future::pending(),
            )
            .await
            .unwrap();
        assert_eq!(answer.output.len(), 16 << 20);
        let reports = room.host.metadata.lock().unwrap();
        let titles: Vec<&str> = reports.iter().filter_map(|r| r.title.as_deref()).collect();
        assert_eq!(titles, ["first", "large", "last"], "{:?}", runtime.kind);
        let text = reports[1].metadata["text"].as_str().unwrap();
        assert_eq!(text.len(), 16 << 20);
    }
}

/// Answers each message with what it got; one without a number ends it.
const ECHO: &str = "
import { open, send } from '@host/wire.mjs';
await open((message) => {
    if (message.id === undefined) process.exit(0);
    send({ jsonrpc: '2.0', id: message.id, result: message.params });
});
";

fn frame(message: &Value) -> Vec<u8> {
    let text = message.to_string();
    let mut frame = u32::try_from(text.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// The process's end, alone: it is handed three frames in two pieces, cut in each place, then byte by byte.
#[tokio::test]
async fn the_process_takes_frames_cut_at_every_byte() {
    let host = concat!(env!("CARGO_MANIFEST_DIR"), "/host");
    let params = [
        json!({"a": "x"}),
        json!([]),
        json!({"b": "\u{1f600}\u{e4}"}),
    ];
    for runtime in runtimes() {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("echo.mjs");
        std::fs::write(&script, ECHO.replace("@host", host)).unwrap();
        let spec = Spec::new(&runtime.path)
            .args([script.as_os_str()])
            .channel();
        let mut child = Spawner::new().unwrap().spawn(spec).await.unwrap();
        let mut channel = child.channel.take().unwrap();
        let mut id = 0;
        let mut three = || {
            let bytes: Vec<u8> = params
                .iter()
                .flat_map(|params| {
                    id += 1;
                    frame(&json!({"jsonrpc": "2.0", "id": 1000 + id, "method": "echo", "params": params}))
                })
                .collect();
            bytes
        };
        let length = three().len();
        let mut pieces: Vec<Vec<usize>> = (0..=length).map(|cut| vec![cut]).collect();
        pieces.push((1..length).collect());
        for cuts in pieces {
            let bytes = three();
            let mut from = 0;
            for cut in cuts.iter().copied().chain([length]) {
                channel.write_all(&bytes[from..cut]).await.unwrap();
                channel.flush().await.unwrap();
                // So that each piece is one read.
                tokio::time::sleep(std::time::Duration::from_micros(500)).await;
                from = cut;
            }
            for want in &params {
                let size = channel.read_u32().await.unwrap();
                let mut text = vec![0; usize::try_from(size).unwrap()];
                channel.read_exact(&mut text).await.unwrap();
                let answer: Value = serde_json::from_slice(&text).unwrap();
                assert_eq!(answer["result"], *want, "cut at {cuts:?}");
            }
        }
        let end = frame(&json!({"jsonrpc": "2.0", "method": "end"}));
        channel.write_all(&end).await.unwrap();
        assert!(child.wait().await.unwrap().success());
    }
}
