//! Changes of a file: tools, commands in the sandbox, and clients with a patch.

use serde_json::{Value, json};

use super::probes::{bash, patch};
use super::{Faults, Location, Matrix, Victim};
use outrigger_test_support::model::call;

/// Returns calls that change a writable file, with the tool and the name it used.
fn calls(victim: &Victim, name: &str) -> Vec<(&'static str, Value)> {
    let (line, number) = (victim.text(), victim.number());
    let line = line.trim_end();
    let edit = json!({ "filePath": name, "oldString": line, "newString": "x" });
    let rows = json!({ "rows": [{ "a": 1 }], "to": name });
    vec![
        ("edit", call("edit", edit)),
        (
            "write",
            call("write", json!({ "filePath": name, "content": "x" })),
        ),
        ("table", call("table", rows)),
        (
            "patch",
            patch(&format!("*** Update File: {name}\n@@\n-{line}\n+x")),
        ),
        (
            "patch, moved",
            patch(&format!(
                "*** Update File: {name}\n*** Move to: moved-{number}\n@@\n-{line}\n+x"
            )),
        ),
        ("patch, deleted", patch(&format!("*** Delete File: {name}"))),
        ("patch, added", patch(&format!("*** Add File: {name}\n+x"))),
    ]
}

pub(super) async fn by_tools(matrix: &Matrix, faults: &mut Faults) {
    // Tools replace the file at the given name, so its other names stay unchanged.
    let held = || {
        matrix
            .victims
            .iter()
            .filter(|it| it.pattern.is_some() && it.what != "hard link")
    };
    let mut all = Vec::new();
    for victim in held() {
        for (kind, name) in &victim.names {
            let ways = if matches!(*kind, "relative" | "link") {
                usize::MAX
            } else {
                1
            };
            all.extend(
                calls(victim, name)
                    .into_iter()
                    .take(ways)
                    .map(|(_, call)| call),
            );
        }
    }
    matrix.call(all).await;
    for victim in held() {
        faults.hold_content(victim, "a tool", true);
    }
    for victim in matrix.victims.iter().filter(|it| it.pattern.is_none()) {
        for (by, call) in calls(victim, victim.name()) {
            matrix.call(vec![call]).await;
            faults.hold_content(victim, by, false);
        }
    }
}

pub(super) async fn by_commands(matrix: &Matrix, faults: &mut Faults) {
    // Programs have files outside of the project, which a pattern without a location does not deny.
    let nowhere = ["outside, any folder", "outside, extension"];
    let held = || {
        matrix
            .victims
            .iter()
            .filter(|it| !nowhere.contains(&it.what))
    };
    for line in [
        "echo x >> 'NAME'",
        "cp opencode.json 'NAME'",
        "truncate -s 1 'NAME'",
        "sed -i s/head/x/ 'NAME'",
        "mv 'NAME' moved",
        "rm -f 'NAME'",
    ] {
        let mut script = String::new();
        for victim in held() {
            // With another name, that name is removed or becomes another file.
            let takes_away = ["sed", "mv", "rm"].iter().any(|it| line.starts_with(it));
            let names = victim.names.iter().filter(|(kind, _)| {
                if takes_away {
                    matches!(*kind, "relative" | "dots" | "linked folder")
                } else {
                    !kind.contains("slash")
                }
            });
            for (_, name) in names {
                script.push_str(&line.replace("NAME", name));
                script.push('\n');
            }
        }
        std::fs::write(matrix.harness.path("probe.sh"), script).unwrap();
        matrix
            .call(vec![bash("sh probe.sh > /dev/null 2>&1")])
            .await;
        for victim in held() {
            faults.hold_content(victim, line, victim.pattern.is_some());
        }
    }
}

/// Sends a patch as a client, in git's format.
pub(super) async fn by_clients(matrix: &Matrix, faults: &mut Faults) {
    for victim in matrix
        .victims
        .iter()
        .filter(|it| it.place == Location::Project)
    {
        let (name, line) = (victim.name(), victim.text());
        let patch = format!(
            "diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-{line}+x\n"
        );
        let body = json!({ "patch": patch });
        matrix.harness.call("POST", "/vcs/apply", body).await;
        // Names beyond ASCII are quoted in patches.
        if victim.pattern.is_some() || victim.name().is_ascii() {
            faults.hold_content(victim, "/vcs/apply", victim.pattern.is_some());
        }
    }
}
