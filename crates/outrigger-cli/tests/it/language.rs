//! Language servers and formatters after an edit: the model's input, and the file's content.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::*;

/// Returns what looks like a language server: it reports each line that contains `error`.
fn server(world: &World, mode: &str) -> Value {
    let script = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../outrigger-lsp/tests/it/server.py"
    );
    let log = world.path("lsp.log");
    json!({ "command": ["python3", script, mode, log], "extensions": [".txt"] })
}

fn program(world: &World, name: &str, script: &str) -> String {
    let path = world.root().join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.display().to_string()
}

fn write(file: &str, content: &str) -> Value {
    call("write", json!({ "filePath": file, "content": content }))
}

fn edit(file: &str, old: &str, new: &str) -> Value {
    call(
        "edit",
        json!({ "filePath": file, "oldString": old, "newString": new }),
    )
}

#[test]
fn the_model_reads_the_errors_behind_an_edit() {
    let world = World::new([
        turn([write("a.txt", "one\nan error\n")]),
        turn([edit("a.txt", "an error", "a warning")]),
        turn([write("b.txt", "fine\n")]),
        turn([write("a.txt", "error again\n")]),
        turn([write("b.txt", "better\n")]),
        done(),
    ]);
    world.config(json!({ "lsp": { "scripted": server(&world, "push") } }));
    world.run(&["hi"]).ok();
    let results: Vec<String> = world
        .mock
        .last()
        .texts("tool")
        .iter()
        .map(|t| world.plain(t))
        .collect();
    insta::assert_snapshot!(results.join("\n---\n"), @r#"
    Wrote file successfully.

    LSP errors detected in this file, please fix:
    <diagnostics file="PROJECT/a.txt">
    ERROR [2:4] found: an error
    </diagnostics>
    ---
    Edit applied successfully.
    ---
    Wrote file successfully.
    ---
    Wrote file successfully.

    LSP errors detected in this file, please fix:
    <diagnostics file="PROJECT/a.txt">
    ERROR [1:1] found: error again
    </diagnostics>
    ---
    Wrote file successfully.

    LSP errors detected in other files:
    <diagnostics file="PROJECT/a.txt">
    ERROR [1:1] found: error again
    </diagnostics>
    "#);
    let tools = world.parts("tool");
    let diagnostics = &tools[1]["state"]["metadata"]["diagnostics"];
    let path = world.path("a.txt").display().to_string();
    assert_eq!(diagnostics[&path][0]["severity"], 2, "{diagnostics}");
    let log = fs::read_to_string(world.path("lsp.log")).unwrap();
    assert!(
        log.ends_with("exit\n") && log.matches("start\n").count() == 1,
        "{log}"
    );
}

#[test]
fn a_server_that_fails_costs_nothing() {
    for mode in ["exit", "garbage", "dies"] {
        let world = World::new([
            turn([write("a.txt", "error\n")]),
            turn([write("a.txt", "x\n")]),
            done(),
        ]);
        world.config(json!({ "lsp": { "scripted": server(&world, mode) } }));
        let began = Instant::now();
        world.run(&["hi"]).ok();
        assert!(began.elapsed() < Duration::from_secs(25), "{mode}");
        assert_eq!(world.read("a.txt"), "x\n");
        assert!(world.mock.last().texts("tool")[1].starts_with("Wrote file successfully."));
    }
}

#[test]
fn what_a_formatter_left_is_what_later_edits_see() {
    let world = World::new([
        turn([write("a.txt", "one\ntwo\n")]),
        turn([edit("a.txt", "ONE\n", "three\n")]),
        turn([write("b.md", "as it is\n")]),
        done(),
    ]);
    let upper = program(
        &world,
        "upper",
        "tr a-z A-Z < \"$2\" > \"$2.new\" && mv \"$2.new\" \"$2\"; echo $WORD >> log.out",
    );
    world.config(json!({ "formatter": {
        "upper": { "command": [upper, "-w", "$FILE"], "extensions": [".txt"], "environment": { "WORD": "ran" } },
        "bad": { "command": [program(&world, "bad", "echo no >&2; exit 3"), "$FILE"], "extensions": [".txt"] },
        "gone": { "command": ["/nowhere/gone", "$FILE"], "extensions": [".txt"] },
    } }));
    world.plugin("watch", "import { appendFileSync } from 'node:fs'; export const Watch = async ({ directory }) => ({
      event: async ({ event }) => { if (event.type.startsWith('file.')) appendFileSync(directory + '/events.out', event.type + ' ' + (event.properties.event ?? '') + '\\n') } })");
    let run = world.run(&["hi"]).ok();
    assert_eq!(world.read("a.txt"), "THREE\nTWO\n");
    assert_eq!(world.read("b.md"), "as it is\n");
    assert_eq!(world.lines("log.out"), ["ran", "ran"]);
    for said in ["[formatter:bad]", "exit code 3", "[formatter:gone]"] {
        assert!(run.stderr.contains(said), "{said} is not in {}", run.stderr);
    }
    let tools = world.parts("tool");
    let patch = tools[1]["state"]["metadata"]["diff"].as_str().unwrap();
    assert!(patch.contains("-ONE\n+THREE\n"), "{patch}");
    assert_eq!(
        world.lines("events.out"),
        [
            "file.edited ",
            "file.watcher.updated add",
            "file.edited ",
            "file.watcher.updated change",
            "file.edited ",
            "file.watcher.updated add"
        ]
    );
}

/// Two edits of one file in the same answer: the formatter of the first does not undo the second.
#[test]
fn edits_of_one_answer_and_their_formatters_do_not_cross() {
    let edits = (0..4).map(|n| edit("a.txt", &format!("old{n}"), &format!("new{n}")));
    let world = World::new([turn(edits), done()]);
    world.file("a.txt", "old0\nold1\nold2\nold3\n");
    let slow = program(
        &world,
        "slow",
        "text=$(cat \"$1\"); sleep 0.2; echo \"$text\" > \"$1\"",
    );
    world.config(
        json!({ "formatter": { "slow": { "command": [slow, "$FILE"], "extensions": [".txt"] } } }),
    );
    world.run(&["hi"]).ok();
    assert_eq!(world.read("a.txt"), "new0\nnew1\nnew2\nnew3\n");
}

#[test]
fn the_lsp_tool_asks_the_server_of_a_file() {
    let ask = |operation: &str, file: &str| {
        let args = json!({ "operation": operation, "filePath": file, "line": 3, "character": 5, "query": "x" });
        call("lsp", args)
    };
    let world = World::new([
        turn([ask("goToDefinition", "a.txt")]),
        turn([ask("findReferences", "a.txt")]),
        turn([ask("incomingCalls", "a.txt")]),
        turn([ask("hover", "a.txt"), ask("documentSymbol", "a.txt")]),
        turn([ask("workspaceSymbol", "a.txt")]),
        turn([ask("goToImplementation", "a.txt")]),
        turn([ask("hover", "gone.txt"), ask("hover", "b.md")]),
        done(),
    ]);
    world.file("a.txt", "one\n");
    world.file("b.md", "one\n");
    world.config(json!({ "lsp": { "scripted": server(&world, "push") } }));
    world
        .run_with(&[("OPENCODE_EXPERIMENTAL_LSP_TOOL", "true")], &["hi"])
        .ok();
    let said = world.mock.last();
    assert!(said.tools().contains(&"lsp".to_owned()));
    let files: Vec<String> = said
        .texts("tool")
        .iter()
        .map(|t| {
            world
                .plain(t)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" ")
        })
        .map(|t| t.chars().take(150).collect())
        .collect();
    insta::assert_snapshot!(files.join("\n"), @r#"
    [ { "uri": "file://PROJECT/a.txt", "position": { "line": 2, "character": 4 }, "context": null } ]
    [ { "uri": "file://PROJECT/a.txt", "position": { "line": 2, "character": 4 }, "context": { "includeDeclaration": true } }, { "uri": "file://PROJECT/a.
    [ { "from": { "name": "main" } } ]
    No results found for hover
    No results found for documentSymbol
    [ { "name": "s12", "kind": 12, "location": { "uri": "file:///x", "range": { "start": { "line": 0, "character": 0 }, "end": { "line": 0, "character": 1
    No results found for goToImplementation
    File not found: PROJECT/gone.txt
    No LSP server available for this file type.
    "#);
    let tools = world.parts("tool");
    let state = &tools[0]["state"];
    assert_eq!(state["title"], "goToDefinition a.txt:3:5");
    assert_eq!(
        state["metadata"]["result"][0]["position"],
        json!({"line": 2, "character": 4})
    );
    assert_eq!(
        tools[1]["state"]["metadata"]["result"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(tools[4]["state"]["title"], "documentSymbol a.txt");
    assert_eq!(tools[5]["state"]["title"], "workspaceSymbol");
}

#[test]
fn tools_are_behind_opencodes_switches() {
    let searches = |variables: &[(&str, &str)]| {
        let world = World::new([done()]);
        world.run_with(variables, &["hi"]).ok();
        let tools = world.mock.last().tools();
        tools.contains(&"websearch".to_owned())
    };
    assert!(searches(&[("OPENCODE_ENABLE_EXA", "1")]));
    for (variables, there) in [
        (vec![], false),
        (vec![("OPENCODE_EXPERIMENTAL", "1")], true),
        (
            vec![
                ("OPENCODE_EXPERIMENTAL", "1"),
                ("OPENCODE_EXPERIMENTAL_LSP_TOOL", "0"),
            ],
            false,
        ),
    ] {
        let world = World::new([done()]);
        world.run_with(&variables, &["hi"]).ok();
        let tools = world.mock.last().tools();
        let is_there = |tool: &str| tools.contains(&tool.to_owned());
        assert_eq!(is_there("lsp"), there, "{variables:?}");
        // Only its own switch enables queries to a service.
        assert!(!is_there("websearch"), "{variables:?}");
    }
}

#[test]
fn errors_after_a_patch_are_reported_for_each_of_its_files() {
    let patch = "*** Begin Patch\n*** Add File: a.txt\n+an error\n*** Add File: b.txt\n+fine\n*** Update File: hello.txt\n*** Move to: c.txt\n@@\n hi there\n+error too\n*** End Patch";
    let world = World::new([
        turn([call("apply_patch", json!({ "patchText": patch }))]),
        done(),
    ]);
    let upper = program(
        &world,
        "upper",
        "tr f F < \"$1\" > \"$1.new\" && mv \"$1.new\" \"$1\"",
    );
    world.config(json!({
        "provider": { "mock": { "models": { "m1": { "id": "gpt-5" } } } },
        "lsp": { "scripted": server(&world, "push") },
        "formatter": { "upper": { "command": [upper, "$FILE"], "extensions": [".txt"] } },
    }));
    world.run(&["hi"]).ok();
    let result = world.plain(&world.mock.last().texts("tool").join("\n"));
    insta::assert_snapshot!(result, @r#"
    Success. Updated the following files:
    A a.txt
    A b.txt
    M c.txt

    LSP errors detected in a.txt, please fix:
    <diagnostics file="PROJECT/a.txt">
    ERROR [1:4] found: an error
    </diagnostics>

    LSP errors detected in c.txt, please fix:
    <diagnostics file="PROJECT/c.txt">
    ERROR [2:1] found: error too
    </diagnostics>
    "#);
    assert_eq!(world.read("b.txt"), "Fine\n");
    let part = &world.parts("tool")[0]["state"]["metadata"];
    assert!(
        part["files"][1]["patch"]
            .as_str()
            .unwrap()
            .contains("+Fine")
    );
    let path = world.path("c.txt").display().to_string();
    assert_eq!(part["diagnostics"][&path][0]["severity"], 1, "{part}");
}
