//! Systems without user namespaces, such as Ubuntu 24.04 for programs it does not know: nothing can be covered, so what is hidden
//! is not allowed instead.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use outrigger_sandbox::Policy;
use outrigger_sandbox::path_masks::{CoverWalk, Covers};
use outrigger_test_support::process::alive;

use super::{eventually, helper, output, sh, spawner};

#[tokio::test]
async fn what_is_hidden_is_not_read_without_user_namespaces() {
    if !helper::is_without_namespaces() {
        let test = "no_views::what_is_hidden_is_not_read_without_user_namespaces";
        let Some(spec) = helper::without_namespaces(test).await else {
            return;
        };
        let output = output(spec).await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.exit.success(), "{said}{errors}");
        assert!(said.contains("held without views"), "{said}");
        return;
    }
    assert!(!spawner().has_views());
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    for file in [
        ".ssh/id",
        ".config/gh/hosts",
        ".config/git/x",
        "work/x",
        "a",
        "data/keys",
        "data/shown/x",
    ] {
        let path = home.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "content").unwrap();
    }
    let hide = [".ssh", ".config/gh"].map(|it| home.join(it)).to_vec();
    let policy = || Policy {
        read: vec!["/".into()],
        hide: hide.clone(),
        kept: CoverWalk::new(
            Covers {
                held: vec![home.join("data/shown")],
                closed: vec![home.join("data")],
                ..Covers::default()
            },
            Arc::new(|| Ok(Covers::default())),
        ),
        ..Policy::system()
    };
    for (script, works) in [
        ("cat a work/x .config/git/x", true),
        (
            "ls . .config && grep -r root /etc/passwd && test -e /proc/self",
            true,
        ),
        ("cat data/shown/x && ls data", true),
        ("cat data/keys", false),
        ("cat .ssh/id", false),
        ("cat .config/gh/hosts", false),
        ("cp -r .ssh /dev/null", false),
        (
            "ln -s .ssh/id work/link; cat work/link || cat $(readlink -f .ssh)/id",
            false,
        ),
        ("cat /proc/self/cwd/.ssh/id", false),
    ] {
        let spec = sh(script)
            .cwd(&home)
            .policy(policy().write(home.join("work")));
        let output = output(spec).await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.exit.success(), works, "{script}: {said}");
    }
    what_is_kept_in_a_project(&home).await;
    nothing_outlives_it(&home).await;
    println!("held without views");
}

/// Checks that denied files are not read and read-only ones not written, and that nothing new appears next to them. What is
/// restored may be changed.
async fn what_is_kept_in_a_project(home: &Path) {
    let project = home.join("project");
    for file in [
        "x",
        "sub/y",
        "fixed",
        "back",
        ".env",
        "deep/conf/.env",
        "deep/z",
    ] {
        let path = project.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "content").unwrap();
    }
    let kept = Covers {
        hide: [".env", "deep/conf/.env"]
            .map(|it| project.join(it))
            .to_vec(),
        ..Covers::default()
    };
    let policy = Policy {
        read: vec!["/".into()],
        read_only: ["fixed", "back"].map(|it| project.join(it)).to_vec(),
        restored: vec![project.join("back")],
        kept: CoverWalk::new(kept.clone(), Arc::new(move || Ok(kept.clone()))),
        ..Policy::system().write(&project)
    };
    for (script, works) in [
        ("echo a >> x && echo a >> sub/y && echo a > sub/new", true),
        ("echo a >> deep/z && mv sub/new sub/other", true),
        ("cat fixed back && echo a >> back", true),
        ("ls . deep deep/conf", true),
        ("cat .env", false),
        ("cat deep/conf/.env", false),
        ("echo a >> .env", false),
        ("mv .env sub/x", false),
        ("ln .env sub/x", false),
        ("mv deep/conf sub/conf", false),
        ("rm .env", false),
        ("echo a >> fixed", false),
        ("rm fixed", false),
        ("mv fixed sub/fixed", false),
        ("echo a > new", false),
        ("echo a > deep/conf/new", false),
    ] {
        let spec = sh(script).cwd(&project).policy(policy.clone());
        let output = output(spec).await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.exit.success(), works, "{script}: {said}");
    }
}

/// Checks that a daemon that changed its session, its group and its parent ends with the command that started it.
async fn nothing_outlives_it(home: &Path) {
    let script = "(setsid sh -c 'echo $$ > daemon; exec sleep 1000' >/dev/null 2>&1 &); sleep 0.3";
    let policy = Policy::system().write(home).read("/");
    let mut child = spawner()
        .spawn(sh(script).cwd(home).policy(policy))
        .await
        .unwrap();
    assert!(child.wait().await.unwrap().success());
    let daemon = fs::read_to_string(home.join("daemon"))
        .unwrap()
        .trim()
        .parse()
        .unwrap();
    assert!(alive(daemon));
    drop(child);
    eventually("it is gone", || !alive(daemon)).await;
}
