//! Plugins that hang, exit or spin, and processes that are not plugin processes.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use outrigger_js::{JsError, JsRuntime, RuntimeKind};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::rpc::EventBatch;
use serde_json::json;

use crate::support::{LONG, Room, SHORT, hook, run, runtimes, show, tool_run};

const GOOD: &str = "export const A = async () => ({ h: async (_, o) => { o.a = 1 }, event() {} });";

#[tokio::test]
async fn a_hang_is_blamed_on_the_handler_that_hangs() {
    let hangs = [
        (
            "waits",
            "export const B = async () => ({ h: () => new Promise(() => {}) });",
        ),
        (
            "spins",
            "export const B = async () => ({ h: () => { for (;;); } });",
        ),
    ];
    for runtime in runtimes() {
        for (how, source) in hangs {
            let room = Room::new(&runtime);
            let (process, _) = room.load(&[("a", GOOD), ("b", source), ("c", GOOD)]).await;
            let mut results = Vec::new();
            let ended = process
                .hook_run(&run("h", &["a", "b", "c"], json!({})), SHORT, |result| {
                    results.push(show(&result))
                })
                .await;
            assert_eq!(results, ["a=1"], "{how}: what came before the hang counts");
            let error = ended.unwrap_err();
            assert!(error.is_fatal());
            assert_eq!(
                error.to_string(),
                "hook.run was not answered within 700 ms, in plugin b (h)",
                "{how}"
            );
            let JsError::CallTimeout {
                handler: Some(handler),
                ..
            } = error
            else {
                panic!("{error}")
            };
            assert_eq!(handler.plugin, "b");
            process.kill();
            process.closed().await;
            assert!(!process.is_alive());
        }
    }
}

#[tokio::test]
async fn a_spin_in_an_event_hook_is_blamed_on_it_and_not_on_the_waiting_call() {
    let spin = "export const B = async () => ({ event: () => { for (;;); } });";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("a", GOOD), ("b", spin)]).await;
        let event =
            serde_json::from_value(json!({"id": "evt_1", "type": "x", "properties": {}})).unwrap();
        process.event_batch(&EventBatch::of(vec![event])).unwrap();
        let error = process
            .hook_run(&run("h", &["a"], json!({})), SHORT, |_| {})
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "hook.run was not answered within 700 ms, in plugin b (event)"
        );
    }
}

#[tokio::test]
async fn a_hang_while_loading_names_the_plugin() {
    let cases = [
        (
            "export const B = () => new Promise(() => {});",
            "in plugin b (server)",
        ),
        ("for (;;);", "in plugin b (import)"),
        ("await new Promise(() => {});", "in plugin b (import)"),
    ];
    for runtime in runtimes() {
        for (source, expected) in cases {
            let room = Room::new(&runtime);
            let entries = vec![room.plugin("b", source)];
            let process = room.start().await.unwrap();
            let error = process
                .initialize(&room.initialize(entries), SHORT)
                .await
                .unwrap_err()
                .to_string();
            assert!(
                error.ends_with(expected),
                "{error} under {:?}",
                runtime.kind
            );
        }
    }
}

#[tokio::test]
async fn a_plugin_that_exits_ends_the_call_with_status_and_last_words() {
    let plugin = "export const P = async () => ({
        h: async (_, o) => { o.a = 1 },
        tool: { exit: { description: '', args: {}, execute: async () => { console.error('last words'); process.exit(3) } } } });";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", plugin)]).await;
        let error = process
            .tool_run(
                &tool_run("p", "exit", json!({})),
                LONG,
                std::future::pending(),
            )
            .await
            .unwrap_err();
        assert_eq!(
            error.to_string(),
            "the plugin process test is gone (exit code 3); its last output: last words"
        );
        let after = process
            .hook_run(&run("h", &["p"], json!({})), LONG, |_| {})
            .await
            .unwrap_err();
        assert_eq!(after.code(), "js.closed");
        assert!(!process.is_alive());
    }
}

#[tokio::test]
async fn shutdown_disposes_in_order_and_ignores_failures() {
    let first = "import fs from 'node:fs'; export const A = async ({ directory }) => ({ dispose: async () => {
        await 0; fs.appendFileSync(directory + '/order', 'a'); throw new Error('no') } });";
    let second = first.replace("'a'", "'b'");
    let stuck = "export const C = async () => ({ dispose: () => new Promise(() => {}) });";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("a", first), ("b", &second)]).await;
        process.shutdown(LONG).await.unwrap();
        assert_eq!(
            fs::read_to_string(room.root.join("project/order")).unwrap(),
            "ab"
        );

        let (process, _) = room.load(&[("c", stuck)]).await;
        let error = process.shutdown(SHORT).await.unwrap_err();
        assert_eq!(
            error.to_string(),
            "shutdown was not answered within 700 ms, in plugin c (dispose)"
        );
        process.closed().await;
    }
}

#[tokio::test]
async fn what_an_event_hook_has_begun_is_finished_at_the_end_but_not_forever() {
    let writes = "import fs from 'node:fs/promises'; export const A = async ({ directory }) => ({ event: async () => {
        for (const part of ['a', 'b', 'c']) {
          await new Promise((go) => setTimeout(go, 20)); await fs.appendFile(directory + '/written', part) } } });";
    let stuck = "export const B = async () => ({ event: () => new Promise(() => {}) });";
    let event = json!({"id": "evt_1", "type": "acme.tick", "properties": {}});
    let batch = EventBatch::of(vec![serde_json::from_value(event).unwrap()]);
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("a", writes), ("b", stuck)]).await;
        process.event_batch(&batch).unwrap();
        process.shutdown(LONG).await.unwrap();
        let written = fs::read_to_string(room.root.join("project/written")).unwrap();
        assert_eq!(written, "abc");
    }
}

#[tokio::test]
async fn the_sandbox_keeps_plugins_in() {
    let plugin = "import fs from 'node:fs'; export const P = async () => ({ h: async (_, o) => {
        const attempt = (action) => { try { action(); return 'done' } catch (error) { return error.code } };
        o.project = attempt(() => fs.writeFileSync('inside', 'x'));
        o.private = attempt(() => fs.writeFileSync(process.env.HOME + '/inside', 'x'));
        o.outside = attempt(() => fs.writeFileSync('../outside', 'x'));
        o.read = attempt(() => fs.readFileSync('../secret'));
        o.environment = Object.keys(process.env).some((name) => name.startsWith('CARGO')) } });";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        room.file("secret", "x");
        let (process, _) = room.load(&[("p", plugin)]).await;
        let shown = show(&hook(&process, &run("h", &["p"], json!({}))).await[0]);
        if outrigger_sandbox::Spawner::new().unwrap().level() == outrigger_sandbox::Level::None {
            eprintln!("NOTE: this kernel has no Landlock");
            continue;
        }
        // What may not be written is mounted read-only, where the system has views.
        assert_eq!(
            shown.replace("EROFS", "EACCES"),
            r#"project="done" private="done" outside="EACCES" read="EACCES" environment=false"#
        );
    }
}

/// A program in place of the runtime. It gets the host script as its last argument and ignores it.
fn fake(room: &Room, text: &str) -> JsRuntime {
    let path = room.file("bin/fake", text);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    JsRuntime::at(RuntimeKind::Bun, path)
}

#[tokio::test]
async fn what_is_no_plugin_process_is_refused_by_name() {
    let frame = |text: &str| {
        let length: String = u32::try_from(text.len())
            .unwrap()
            .to_be_bytes()
            .map(|byte| format!("\\{byte:03o}"))
            .concat();
        format!("#!/bin/sh\nprintf '{length}{text}' >&3\nsleep 60\n")
    };
    let hello = |version: &str| {
        frame(&format!(
            r#"{{"jsonrpc":"2.0","method":"hello","params":{{"protocol":"{version}","runtime":"x","version":"1"}}}}"#
        ))
    };
    let cases = [
        (hello("1.7"), "started"),
        (
            hello("2.0"),
            "the plugin process speaks protocol 2.0, this host speaks 1.0",
        ),
        (
            frame("nonsense"),
            "the plugin process test is gone: the plugin process sent something that is not a JSON-RPC message: expected ident at line 1 column 2",
        ),
        (
            "#!/bin/sh\nprintf '\\377\\377\\377\\377' >&3\nsleep 60\n".to_owned(),
            "the plugin process test is gone: a frame of 4294967295 bytes is over the limit of 67108864",
        ),
        (
            "#!/bin/sh\necho no such option >&2\nexit 4\n".to_owned(),
            "the plugin process test is gone (exit code 4); its last output: no such option",
        ),
        (
            "#!/bin/sh\necho thinking >&2\nsleep 60\n".to_owned(),
            "the plugin process test said nothing within 700 ms of its start; its last output: thinking",
        ),
        (
            "#!/nowhere/sh\n".to_owned(),
            "cannot start the plugin process test: ",
        ),
    ];
    for (text, expected) in cases {
        let room = Room::new(&runtimes()[0]);
        let runtime = fake(&room, &text);
        let short = expected.contains("700 ms");
        let started = room
            .start_as(|options| {
                options.runtime = runtime;
                options.deadline = if short {
                    SHORT
                } else {
                    Duration::from_secs(20)
                };
            })
            .await;
        let shown = started.map_or_else(|error| error.to_string(), |_| "started".to_owned());
        assert!(
            shown == expected || (expected.ends_with(": ") && shown.starts_with(expected)),
            "{shown}\n{expected}"
        );
    }
}
