//! The bundled plugins that have no counterpart in OpenCode, through `run` (D5). For Telegram, see
//! `telegram.rs`.

use serde_json::json;

use crate::support::*;

/// Returns the results of tool calls in the last request.
fn results(world: &World) -> String {
    world.plain(&world.mock.last().texts("tool").join("\n---\n"))
}

#[test]
fn tables_and_scripts_are_offered_where_somebody_wants_them() {
    let calls = || {
        turn([
            call(
                "table",
                json!({"path": "a.csv", "where": [{"column": "n", "op": "gt", "value": 1}], "to": "b.xlsx"}),
            ),
            call("python", json!({"script": "print(6 * 7)"})),
        ])
    };
    let world = World::new([
        done(),
        calls(),
        turn([call("table", json!({"path": "b.xlsx"}))]),
        done(),
    ]);
    world.file("a.csv", "name,n\nAda,1\nBo,2\n");
    world.run(&["hi"]).ok();
    let offered = world.mock.last().tools();
    assert!(
        !offered.iter().any(|it| it == "table" || it == "python"),
        "{offered:?}"
    );

    world.config(
        json!({"permission": {"table": "allow"}, "agent": {"build": {"tools": {"python": true}}}}),
    );
    world.run(&["go"]).ok();
    let offered = world.mock.last().tools();
    assert!(
        offered.iter().any(|it| it == "table") && offered.iter().any(|it| it == "python"),
        "{offered:?}"
    );
    let texts = results(&world);
    assert!(
        texts.contains("Wrote 1 rows of 2 columns to") && texts.contains("42"),
        "{texts}"
    );
    assert!(texts.contains("name,n\nBo,2\n"), "{texts}");
    world.verify();
}

#[test]
fn a_bundled_plugin_that_is_switched_off_has_no_tools_and_no_provider() {
    let world = World::new([done(), done()]);
    let provider = json!({"provider": {"openrouter": {"options": {"baseURL": world.mock.url()}, "models": {"some/model": {}}}}});
    world.config(provider);
    let key = [("OPENROUTER_API_KEY", "a-key-of-openrouter")];
    let model = ["--model", "openrouter/some/model", "hi"];
    world.run_with(&key, &model).ok();
    assert_eq!(
        world.mock.last().header("authorization"),
        Some("Bearer a-key-of-openrouter")
    );
    let file = world.home().join(".config/outrigger/outrigger.toml");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    let off = "[plugins.openrouter]\nenabled = false\n[plugins.core-table]\nenabled = false\n[plugins.core-python]\nenabled = true\n";
    std::fs::write(file, off).unwrap();
    let refused = world.run_with(&key, &model);
    assert!(
        refused.code != 0 && refused.stderr.contains("switched off"),
        "{}",
        refused.stderr
    );
    world.config(json!({"permission": {"table": "allow"}}));
    world.run(&["hi"]).ok();
    let offered = world.mock.last().tools();
    assert!(!offered.iter().any(|it| it == "table"), "{offered:?}");
    assert!(offered.iter().any(|it| it == "python"), "{offered:?}");
}

/// Serves a page on this machine.
fn page() -> String {
    use std::io::{Read as _, Write as _};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/page", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let body = "<html><body><h1>Tides</h1><p>High at <b>noon</b>.</p></body></html>";
            let _ = write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            );
        }
    });
    url
}

/// Calls a tool of each of `builtin-tools`, `skill-source-local`, `core-fs`, `core-command` and `core-web` in
/// one turn.
#[test]
fn the_tools_of_each_bundled_plugin_work_in_a_run() {
    let todo = json!({"content": "look", "status": "pending", "priority": "low"});
    let world = World::new([
        turn([
            call("todowrite", json!({ "todos": [todo] })),
            call("skill", json!({"name": "knots"})),
            call("write", json!({"filePath": "new.txt", "content": "made\n"})),
            call(
                "bash",
                json!({"command": "echo $((40 + 2))", "description": "x"}),
            ),
            call("webfetch", json!({"url": page(), "format": "text"})),
        ]),
        done(),
    ]);
    world.file(
        ".opencode/skill/knots/SKILL.md",
        "---\nname: knots\ndescription: How to tie knots.\n---\nOver, under, through.\n",
    );
    world.config(json!({"permission": {"webfetch": {"http://127.0.0.1*": "allow"}}}));
    world.run(&["go"]).ok();
    assert_eq!(world.read("new.txt"), "made\n");
    let texts = results(&world);
    for says in ["look", "Over, under, through.", "42", "High at noon."] {
        assert!(texts.contains(says), "{says}: {texts}");
    }
    world.verify();
}
