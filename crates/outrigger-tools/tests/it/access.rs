//! Every bundled tool and its way to files: a tool missing in the table has not been reviewed.

use outrigger_tools::ToolRuntime;
use outrigger_tools::builtin::{Options, register_all};
use serde_json::{Value, json};

use crate::support::Room;

/// A tool's way to files.
enum Way {
    /// It asks with this permission for the file in these arguments.
    Asks(&'static str, Value),
    /// It reads many files and skips those the rules deny (`ToolHost::read_rules`).
    Searches,
    /// In a process, whose sandbox denies the same files (`ToolHost::confine`).
    InASandbox,
    /// It names no file.
    None,
}

fn way(tool: &str) -> Option<Way> {
    let file = "sub/a.csv";
    let patch = |head: &str| format!("*** Begin Patch\n{head}\n@@\n-a,b\n+a,c\n*** End Patch");
    Some(match tool {
        "read" => Way::Asks("read", json!({ "filePath": file })),
        "lsp" => Way::Asks(
            "read",
            json!({ "filePath": file, "operation": "hover", "line": 1, "character": 1 }),
        ),
        "table" => Way::Asks("read", json!({ "path": file })),
        "write" => Way::Asks("edit", json!({ "filePath": file, "content": "x" })),
        "edit" => Way::Asks(
            "edit",
            json!({ "filePath": file, "oldString": "a,b", "newString": "a,c" }),
        ),
        "apply_patch" => Way::Asks(
            "edit",
            json!({ "patchText": patch(&format!("*** Update File: {file}")) }),
        ),
        "grep" | "glob" => Way::Searches,
        "bash" | "python" => Way::InASandbox,
        "invalid" | "question" | "task" | "todowrite" | "skill" | "webfetch" | "websearch" => {
            Way::None
        }
        _ => return None,
    })
}

fn every_tool() -> ToolRuntime {
    let runtime = ToolRuntime::new();
    let options = Options {
        lsp: true,
        search: Some(crate::web::service("http://127.0.0.1:1")),
        ..Options::default()
    };
    register_all(&runtime, &options).unwrap();
    runtime
}

#[tokio::test]
async fn every_tool_that_names_a_file_asks_for_it() {
    for spec in every_tool().specs() {
        let tool = spec.name;
        let way = way(&tool).unwrap_or_else(|| {
            panic!("{tool} is not in the table: say how the rules about files hold for it")
        });
        let Way::Asks(permission, input) = way else {
            continue;
        };
        let mut room = Room::new();
        room.runtime = every_tool();
        room.file("sub/a.csv", "a,b\n");
        room.file("link.csv", "");
        std::fs::remove_file(room.project().join("link.csv")).unwrap();
        std::os::unix::fs::symlink("sub/a.csv", room.project().join("link.csv")).unwrap();
        // By its name, through `..`, and by a link, which is requested under its own name: rules resolve it.
        for (named, asked) in [
            ("sub/a.csv", "sub/a.csv"),
            ("./sub/../sub/a.csv", "sub/a.csv"),
            ("link.csv", "link.csv"),
        ] {
            let text = input.to_string().replace("sub/a.csv", named);
            let input: Value = serde_json::from_str(&text).unwrap();
            room.execute(&tool, input).await;
            room.file("sub/a.csv", "a,b\n");
            let asks = room.asked();
            let has = |ask: &String| ask.starts_with(permission) && ask.contains(asked);
            assert!(asks.iter().any(has), "{tool} {named}: {asks:?}");
        }
    }
}
