//! What processes reveal of a file: commands in the sandbox, those that name it to git, and git itself when it lists changes.

use std::time::Duration;

use serde_json::json;

use super::probes::bash;
use super::{Faults, Location, Matrix, Victim, routes};
use outrigger_test_support::model::{call, turn};

pub(super) async fn commands(matrix: &Matrix, faults: &mut Faults) {
    let mut script = String::from("exec > \"$1\" 2>&1\n");
    let mut rows = Vec::new();
    for (at, victim) in matrix.victims.iter().enumerate() {
        for (kind, name) in &victim.names {
            for (by, line) in [
                ("cat", format!("cat '{name}'")),
                ("head <", format!("head -c 200 < '{name}'")),
                ("cp", format!("cp '{name}' taken; cat taken; rm -f taken")),
                ("read", format!("read line < '{name}'; echo \"$line\"")),
            ] {
                script.push_str(&format!("echo '=== {}'\n{line}\n", rows.len()));
                rows.push((at, *kind, by));
            }
        }
    }
    let all = rows.len();
    script.push_str(&format!(
        "echo '=== {all}'\ngrep -rh --exclude='of-*' canary . ../beside ../home\n"
    ));
    script.push_str(&format!(
        "echo '=== {}'\ntar cf - --exclude='./of-*' --exclude=probe.sh . ../beside ../home\n",
        all + 1
    ));
    std::fs::write(matrix.harness.path("probe.sh"), script).unwrap();
    matrix.call(vec![bash("sh probe.sh of-model.txt")]).await;
    let text = std::fs::read(matrix.harness.path("of-model.txt")).unwrap_or_default();
    let text = String::from_utf8_lossy(&text).into_owned();
    std::fs::remove_file(matrix.harness.path("of-model.txt")).unwrap();
    let found: Vec<&str> = text.split("=== ").skip(1).collect();
    assert_eq!(found.len(), all + 2, "{text:.2000}");
    for ((at, kind, by), answer) in rows.iter().zip(&found) {
        let victim = &matrix.victims[*at];
        let is_kept = matrix.keeps(victim);
        if is_kept || *kind != "slash at the end" {
            faults.hold(victim, &format!("{by}, {kind}"), is_kept, answer);
        }
    }
    for victim in &matrix.victims {
        for (by, answer) in ["grep -r", "tar"].iter().zip(found.iter().skip(all)) {
            faults.hold(victim, by, matrix.keeps(victim), answer);
        }
    }
    std::fs::remove_file(matrix.harness.path("probe.sh")).unwrap();
    let names: Vec<&str> = matrix.victims.iter().map(Victim::name).collect();
    let code = format!(
        "for name in {}:\n    try:\n        print(open(name).read())\n    except OSError:\n        pass\n",
        json!(names)
    );
    let answers = matrix
        .call(vec![call("python", json!({ "script": code }))])
        .await;
    for victim in &matrix.victims {
        faults.hold(victim, "python", matrix.keeps(victim), &answers[&0]);
    }
}

pub(super) async fn of_git(matrix: &Matrix, faults: &mut Faults) {
    let (mut made, mut rows) = (Vec::new(), Vec::new());
    for (at, victim) in matrix.victims.iter().enumerate() {
        if victim.place != Location::Project {
            continue;
        }
        for (kind, name) in &victim.names {
            let committed = matches!(*kind, "relative" | "hard link");
            if !committed && *kind != "linked folder" {
                continue;
            }
            let mut lines = vec![format!("git diff --no-index /dev/null '{name}'")];
            if committed {
                lines.extend([
                    format!("git show ':{name}'"),
                    format!("git show 'HEAD:{name}'"),
                    format!("git cat-file -p 'HEAD:./{name}'"),
                    format!("git log -p -- '{name}'"),
                    format!("git grep -h head -- '{name}'"),
                ]);
            }
            for line in lines {
                rows.push((at, line.clone()));
                made.push(bash(&line));
            }
        }
    }
    let answers = matrix.call(made).await;
    for (n, (at, line)) in rows.iter().enumerate() {
        let victim = &matrix.victims[*at];
        // A command that shows committed contents is asked about if a denied file is among them.
        if matrix.keeps(victim) {
            faults.hold(victim, line, true, &answers[&n]);
        }
    }
}

pub(super) async fn differences(matrix: &Matrix, faults: &mut Faults) {
    let harness = &matrix.harness;
    // Files that change while a turn runs.
    let waits = "touch of-model-begun; until [ -e of-model-go ]; do sleep 0.02; done; rm of-model-begun of-model-go; grep -rh --exclude='of-*' canary .; seq 20000";
    harness.mock.when("wait a little", turn([bash(waits)]));
    let session = harness.session().await;
    let change = async {
        while !harness.path("of-model-begun").exists() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        for victim in &matrix.victims {
            std::fs::write(&victim.path, format!("{}more\n", victim.text())).unwrap();
        }
        std::fs::write(harness.path("of-model-go"), "").unwrap();
    };
    tokio::join!(harness.prompt(&session, "wait a little"), change);
    let mut answers = Vec::new();
    let messages = harness.messages(&session).await;
    let user = messages[0]["info"]["id"].as_str().unwrap().to_owned();
    for path in [
        format!("/session/{session}/diff?messageID={user}"),
        "/vcs/diff?mode=git".to_owned(),
        "/vcs/diff/raw".to_owned(),
    ] {
        let text = harness.text("GET", &path).await;
        answers.push((path, text));
    }
    let messages = json!(messages).to_string();
    for victim in matrix
        .victims
        .iter()
        .filter(|it| it.place == Location::Project)
    {
        let is_kept = matrix.keeps(victim);
        for (by, text) in &answers {
            faults.hold(victim, by, is_kept, text);
        }
        faults.hold(victim, "the messages of the turn", is_kept, &messages);
    }
    routes::every_get(matrix, faults, &session).await;
    routes::what_becomes_of_it(matrix, faults, &session).await;
}
