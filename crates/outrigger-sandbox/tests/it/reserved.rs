//! Reserved names: the process gives them to nothing, and others do.

use std::fs;
use std::path::Path;

use outrigger_sandbox::Policy;

use super::{sh, spawner, text};

/// Returns what a script prints that runs in a folder with reserved names.
async fn run_in(dir: &Path, script: &str) -> String {
    let reserved = [".vscode/tasks.json", ".idea", ".envrc"];
    let policy = Policy {
        reserved: reserved.map(|name| dir.join(name)).to_vec(),
        ..Policy::system().write(dir)
    };
    text(
        sh(&format!("{{ {script}; }} 2>&1; true"))
            .policy(policy)
            .cwd(dir),
    )
    .await
}

#[tokio::test]
async fn no_call_gives_a_reserved_name_to_anything() {
    if !spawner().has_connects() {
        return println!("skipped: the host cannot decide about calls here");
    }
    for script in [
        "mkdir -p .vscode && echo x > .vscode/tasks.json",
        "mkdir -p .vscode && cd .vscode && echo x > tasks.json",
        "mkdir .idea && echo x > .idea/workspace.xml",
        "echo x > .envrc",
        "echo x >> $PWD/sub/../.envrc",
        "cd sub && echo x > ../.envrc",
        "cd / && echo x > $OLDPWD/.envrc",
        "mv plain .envrc",
        "cp plain .envrc",
        "ln plain .envrc",
        "ln -s plain .envrc",
        "ln -s .envrc door && echo x > door",
        "ln -s sub/.. around && echo x > around/.envrc",
        "ln -s far near && ln -s .envrc far && echo x > near",
        "echo x > sub/tasks.json && mv sub .vscode",
        "echo x > sub/tasks.json && ln -s sub .vscode",
        "mkdir -p .vscode && mv plain .vscode/tasks.json",
        "mv sub .idea",
        "mkfifo .envrc",
    ] {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        fs::create_dir(root.join("sub")).unwrap();
        fs::write(root.join("plain"), "x").unwrap();
        let said = run_in(&root, script).await;
        assert!(said.contains("Read-only file system"), "{script}: {said}");
        for name in [".vscode/tasks.json", ".idea/workspace.xml", ".envrc"] {
            let made = fs::symlink_metadata(root.join(name)).is_ok();
            assert!(!made, "{script} made {name}: {said}");
        }
    }
}

#[tokio::test]
async fn other_names_are_free_and_others_give_reserved_ones() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let script = "mkdir .vscode && echo x > .vscode/extensions.json && echo x > a && mv a b && ln b c && ln -s b d && echo y >> d && \
                  mkdir -p deep/.vscode && echo x > deep/.vscode/tasks.json && cat b && echo > /dev/null && echo end";
    assert_eq!(run_in(&root, script).await, "x\ny\nend\n");
    // The user's editor makes one while the process runs, which reads it and does not change it.
    let made = root.join(".envrc");
    let script = "until [ -e go ]; do sleep 0.01; done; cat .envrc; echo evil >> .envrc; sed -i s/mine/evil/ .envrc; cat .envrc";
    let running = run_in(&root, script);
    let write = async {
        fs::write(&made, "mine\n").unwrap();
        fs::write(root.join("go"), "").unwrap();
    };
    let (said, ()) = tokio::join!(running, write);
    assert!(
        said.starts_with("mine\n") && said.ends_with("mine\n"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(made).unwrap(), "mine\n");
}
