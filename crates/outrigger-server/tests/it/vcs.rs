//! Version control, against a real git.

use serde_json::{Value, json};

use crate::support::{World, git};

#[tokio::test]
async fn the_branch_and_the_changes_are_reported() {
    let world = World::git().await;
    let info = world.get("/vcs").await.ok();
    assert_eq!(info, json!({"branch": "main", "default_branch": "main"}));
    world.write("hello.txt", "hello\nworld\nmore\n");
    world.write("a new.txt", "new\n");
    std::fs::remove_file(world.project().join("src/main.rs")).unwrap();
    let status = world.get("/vcs/status").await.ok();
    assert_eq!(
        status,
        json!([
            {"file": "a new.txt", "additions": 1, "deletions": 0, "status": "added"},
            {"file": "hello.txt", "additions": 1, "deletions": 0, "status": "modified"},
            {"file": "opencode.json", "additions": 1, "deletions": 0, "status": "added"},
            {"file": "src/main.rs", "additions": 0, "deletions": 1, "status": "deleted"},
        ])
    );
    let diff = world.get("/vcs/diff?mode=git").await.ok();
    let patches: Vec<&str> = diff
        .as_array()
        .unwrap()
        .iter()
        .map(|change| change["patch"].as_str().unwrap())
        .collect();
    assert!(patches[0].contains("+++ b/a new.txt"), "{}", patches[0]);
    assert!(
        patches[1].contains(" hello\n world\n+more\n"),
        "{}",
        patches[1]
    );
    assert!(patches[3].contains("deleted file mode"), "{}", patches[3]);
    let narrow = world.get("/vcs/diff?mode=git&context=0").await.ok();
    assert!(!narrow[1]["patch"].as_str().unwrap().contains(" hello"));
    assert_eq!(world.get("/vcs/diff?mode=branch").await.ok(), json!([]));
    for path in [
        "/vcs/diff",
        "/vcs/diff?mode=x",
        "/vcs/diff?mode=git&context=-1",
    ] {
        assert_eq!(world.get(path).await.error().0, 400, "{path}");
    }
}

#[tokio::test]
async fn a_branch_is_compared_with_where_it_began() {
    let world = World::git().await;
    git(&world.project(), &["checkout", "-qb", "side"]);
    world.write("side.txt", "side\n");
    git(&world.project(), &["add", "side.txt"]);
    git(&world.project(), &["commit", "-qm", "side"]);
    let info = world.get("/vcs").await.ok();
    assert_eq!(info, json!({"branch": "side", "default_branch": "main"}));
    let diff = world.get("/vcs/diff?mode=branch").await.ok();
    let files: Vec<&Value> = diff
        .as_array()
        .unwrap()
        .iter()
        .map(|c| &c["file"])
        .collect();
    assert_eq!(files, ["opencode.json", "side.txt"]);
}

#[tokio::test]
async fn the_raw_patch_makes_the_change_again() {
    let world = World::git().await;
    world.write("hello.txt", "hello\nall\n");
    world.write("new.txt", "new\n");
    let raw = world.get("/vcs/diff/raw").await;
    assert_eq!(raw.headers["content-type"], "text/x-diff; charset=utf-8");
    git(&world.project(), &["checkout", "-q", "hello.txt"]);
    for file in ["new.txt", "opencode.json"] {
        std::fs::remove_file(world.project().join(file)).unwrap();
    }
    let applied = world
        .post("/vcs/apply", json!({"patch": raw.text}))
        .await
        .ok();
    assert_eq!(applied, json!({"applied": true}));
    for (file, want) in [("hello.txt", "hello\nall\n"), ("new.txt", "new\n")] {
        let text = std::fs::read_to_string(world.project().join(file)).unwrap();
        assert_eq!(text, want, "{file}");
    }
}

/// A filter named by the user's repository runs for us, and may be a script of the project that commands can write
/// to.
#[tokio::test]
async fn a_filter_writes_nothing_of_the_project() {
    let world = World::git().await;
    let project = world.project();
    let read = |name: &str| std::fs::read_to_string(project.join(name)).ok();
    std::fs::create_dir_all(project.join(".git/lfs")).unwrap();
    let names = [".git/config", ".git/hooks/post-checkout", ".envrc", "new"];
    let writes = names.map(|name| format!("echo '# evil' >> {name}\n"));
    world.write(
        "clean.sh",
        &format!(
            "mkdir -p .git/hooks\n{}touch .git/lfs/ran\ncat\n",
            writes.concat()
        ),
    );
    git(&project, &["config", "filter.x.clean", "sh ./clean.sh"]);
    world.write(".gitattributes", "*.txt filter=x\n");
    world.write("hello.txt", "changed\n");
    let before = names.map(read);
    world.get("/vcs/status").await.ok();
    world.get("/vcs/diff/raw").await;
    assert!(project.join(".git/lfs/ran").exists());
    assert_eq!(names.map(read), before);
}

#[tokio::test]
async fn patches_that_do_not_fit_or_lead_out_change_nothing() {
    let world = World::git().await;
    let outside = "diff --git a/../out b/../out\nnew file mode 100644\n--- /dev/null\n+++ b/../out\n@@ -0,0 +1 @@\n+hi\n";
    for patch in ["nonsense", outside] {
        let answer = world.post("/vcs/apply", json!({"patch": patch})).await;
        assert_eq!(answer.error(), (400, "VcsApplyError".to_owned()));
        assert_eq!(answer.json()["data"]["reason"], "not-clean");
    }
    assert!(!world.project().join("../out").exists());
}

/// git decides which file a patch refers to, from the form of the patch and the folder.
#[tokio::test]
async fn a_patch_names_denied_files_in_no_form() {
    let rules = json!({ "permission": {
        "read": { "*.env": "deny", "keys.txt": "deny" },
        "edit": { "project/locked/*": "deny" },
    } });
    let one = "@@ -1 +1 @@\n-a\n+b\n";
    let new = "@@ -0,0 +1 @@\n+b\n";
    let time = "2010-07-05 19:41:17 +0200";
    let root = [
        format!("--- /dev/null\n+++ new.env\n{new}"),
        format!("--- .env\n+++ .env\n{one}"),
        format!("--- .env {time}\n+++ .env {time}\n{one}"),
        format!("--- a/.env {time}\n+++ b/.env {time}\n{one}"),
        format!("diff --git a/.env b/y\n--- a/.env\n+++ b/y\n{one}"),
    ];
    let below = [
        format!("--- /dev/null\n+++ b/locked/new\n{new}"),
        format!("--- /dev/null\n+++ b/project/locked/new\n{new}"),
        format!("diff --git a/project/locked/new b/project/locked/new\nnew file mode 100644\n--- /dev/null\n+++ b/project/locked/new\n{new}"),
        "diff --git a/keys.txt b/project/x\nsimilarity index 100%\nrename from keys.txt\nrename to project/x\n".to_owned(),
    ];
    for (subfolder, patches) in [(false, root.as_slice()), (true, below.as_slice())] {
        let world = World::with(&rules, |project| {
            let top = if subfolder {
                project.parent().unwrap()
            } else {
                project
            };
            git(top, &["init", "-q", "-b", "main"]);
            for file in [".env", "keys.txt"] {
                std::fs::write(top.join(file), "a\n").unwrap();
            }
        })
        .await;
        for patch in patches {
            let answer = world.post("/vcs/apply", json!({"patch": patch})).await;
            assert_eq!(answer.status, 403, "{patch}: {}", answer.text);
        }
        let fine = format!("--- /dev/null\n+++ b/fine.txt\n{new}");
        let applied = world.post("/vcs/apply", json!({"patch": fine})).await;
        assert_eq!(applied.ok(), json!({"applied": true}));
        assert!(world.project().join("fine.txt").exists());
    }
}

#[tokio::test]
async fn a_repository_runs_no_programs_of_its_own() {
    let world = World::git().await;
    let trap = world.project().join("trap");
    let run = format!("touch {}; cat", trap.display());
    for key in ["diff.external", "diff.t.textconv", "core.fsmonitor"] {
        git(&world.project(), &["config", key, &run]);
    }
    world.write(".gitattributes", "* diff=t\n");
    world.write("hello.txt", "other\n");
    for path in ["/vcs", "/vcs/status", "/vcs/diff?mode=git", "/vcs/diff/raw"] {
        assert_eq!(world.get(path).await.status, 200, "{path}");
    }
    assert!(!trap.exists());
}

#[tokio::test]
async fn without_git_there_is_nothing_to_tell() {
    let world = World::plain().await;
    let cases = [
        ("/vcs", json!({})),
        ("/vcs/status", json!([])),
        ("/vcs/diff?mode=git", json!([])),
    ];
    for (path, want) in cases {
        assert_eq!(world.get(path).await.ok(), want, "{path}");
    }
    assert_eq!(world.get("/vcs/diff/raw").await.text, "");
    let answer = world.post("/vcs/apply", json!({"patch": "x"})).await;
    assert_eq!(answer.json()["data"]["reason"], "non-git");
}

#[tokio::test]
async fn a_repository_without_a_commit_has_only_new_files() {
    let world = World::with(&json!({}), |project| {
        git(project, &["init", "-q", "-b", "main"]);
        std::fs::write(project.join("staged"), "1\n2\n").unwrap();
        git(project, &["add", "staged"]);
    })
    .await;
    let diff = world.get("/vcs/diff?mode=git").await.ok();
    let shown: Vec<String> = diff
        .as_array()
        .unwrap()
        .iter()
        .map(|c| format!("{} {} {}", c["file"], c["status"], c["additions"]))
        .collect();
    assert_eq!(
        shown,
        [r#""opencode.json" "added" 1"#, r#""staged" "added" 2"#]
    );
}
