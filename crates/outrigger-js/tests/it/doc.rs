//! The document and the source agree.

use std::fs;
use std::future::pending;
use std::path::Path;

use outrigger_protocol::rpc::HookRun;
use outrigger_protocol::turn::HookPayload;
use serde_json::{Value, json};

use crate::load::summary;
use crate::support::{LONG, Room, hook, run, runtimes, show, tool_run};

/// Returns the string constants inside modules of a file, in the order of the file.
fn constants(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.starts_with("    pub const ") && line.contains(": &str"))
        .filter_map(|line| line.split('"').nth(1))
        .collect()
}

#[test]
fn every_method_is_in_the_document_and_in_the_host_script() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let rpc =
        fs::read_to_string(root.join("crates/outrigger-protocol/src/plugin/rpc/mod.rs")).unwrap();
    let document = fs::read_to_string(root.join("docs/plugin-protocol.md")).unwrap();
    let files = [
        "auth",
        "blame",
        "custom_points",
        "file",
        "host",
        "load",
        "run",
        "sdk",
        "wire",
    ];
    let script: String = files
        .map(|name| {
            fs::read_to_string(root.join(format!("crates/outrigger-js/host/{name}.mjs"))).unwrap()
        })
        .concat();
    let names = constants(&rpc);
    assert!(names.len() > 12, "{names:?}");
    for name in names {
        assert!(
            document.contains(&format!("`{name}`")),
            "docs/plugin-protocol.md does not name {name}"
        );
        assert!(
            script.contains(&format!("\"{name}\"")),
            "the host script does not name {name}"
        );
    }
}

/// Returns the blocks of JavaScript of a page.
fn examples(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    let text = fs::read_to_string(path).unwrap();
    let blocks = text.split("```js\n").skip(1);
    let code = blocks.filter_map(|block| block.split_once("\n```"));
    code.map(|(code, _)| code.to_owned()).collect()
}

fn called(hook: &str, plugin: &str, input: Value, output: Value) -> HookRun {
    HookRun {
        items: vec![HookPayload::new(input, output)],
        ..run(hook, &[plugin], Value::Null)
    }
}

/// The plugins printed on the pages are valid.
#[tokio::test]
async fn the_plugins_of_the_pages_work() {
    let writing = examples("plugins/writing.md");
    let provider = examples("models.md");
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        room.file("project/notes.txt", "one\ntwo\n");
        let (process, loaded) = room
            .load(&[
                ("rules", &writing[0]),
                ("keys", &writing[1]),
                ("acme", &provider[0]),
                ("rates", &examples("tools.md")[0]),
            ])
            .await;
        let provider = &loaded.plugins[2].instances[0];
        assert_eq!(provider.extras, ["provider"]);
        let declared = &loaded.plugins[3].instances[0].tools[0];
        assert_eq!(declared.name, "rates");
        let listed: Vec<String> = loaded.plugins.iter().map(summary).collect();
        let command = |command: &str| {
            let input = json!({"tool": "bash"});
            let output = json!({"args": {"command": command}});
            called("tool.execute.before", "rules", input, output)
        };
        let prompt = |text: &str| {
            let output = json!({"message": {}, "parts": [{"type": "text", "text": text}]});
            called("chat.message", "keys", json!({}), output)
        };
        let mut seen = vec![listed.join(", ")];
        for run in [
            command("npm test"),
            command("git push origin"),
            command("ls"),
            prompt("hello"),
            prompt("-----BEGIN PRIVATE KEY-----"),
        ] {
            seen.push(show(&hook(&process, &run).await[0]));
        }
        let counts = tool_run("rules", "count_lines", json!({"path": "notes.txt"}));
        let ran = process.tool_run(&counts, LONG, pending()).await.unwrap();
        seen.push(ran.output);
        insta::allow_duplicates! { insta::assert_snapshot!(seen.join("\n"), @r#"
        HouseRules(tool.execute.before), NoKeys(chat.message), Acme(), Rates()
        args.command="CI=1 npm test"
        ! House rule: "git push" is for people to do.
        unchanged
        unchanged
        ! acme.private_key: The prompt holds a private key. {"rule":7}
        notes.txt has 2 lines
        "#); }
    }
}
