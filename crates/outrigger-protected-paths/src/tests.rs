//! Protected files of a project.

use super::*;
use outrigger_protocol::diagnose::Diagnose;

fn keep(
    policy: &mut Policy,
    folders: [&Path; 2],
    granted: &[PathBuf],
    process: Process,
) -> Result<(), SandboxError> {
    super::keep(policy, folders, granted, process, &mut Lookups::default())
}

fn made(root: &Path, files: &[&str]) {
    for file in files {
        fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
        fs::write(root.join(file), "").unwrap();
    }
}

fn sorted(root: &Path, names: &[&str]) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> = names.iter().map(|name| root.join(name)).collect();
    all.sort();
    all
}

#[test]
fn what_is_there_is_kept_unless_it_is_granted() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    made(
        root,
        &[
            "opencode.json",
            ".git/config",
            ".git/hooks/x",
            ".opencode/command/a.md",
        ],
    );
    let all = ["opencode.json", ".opencode", ".git/config", ".git/hooks"];
    for (granted, want) in [
        (vec![], &all[..]),
        (vec![""], &all[..]),
        (vec![".git"], &all[..2]),
        (vec![".opencode", ".git"], &all[..1]),
        (vec!["opencode.json"], &all[1..]),
    ] {
        let granted: Vec<PathBuf> = granted.iter().map(|name| root.join(name)).collect();
        let mut policy = Policy::default();
        keep(&mut policy, [root, root], &granted, Process::Plugin).unwrap();
        let want: Vec<PathBuf> = want.iter().map(|name| root.join(name)).collect();
        assert_eq!(policy.read_only, want, "{granted:?}");
    }
}

#[test]
fn what_an_envrc_loads_is_kept_too() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    made(root, &["sub/.env.local", "sub/.env.example"]);
    fs::write(root.join(".envrc"), "dotenv\nsource_env ~/x\n").unwrap();
    fs::write(root.join("sub/.envrc"), "dotenv .env.local\n").unwrap();
    let want = sorted(root, &["sub/.envrc", "sub/.env.local", ".envrc"]);
    for (process, absent) in [
        (Process::Command, vec![root.join(".env")]),
        (Process::Plugin, vec![]),
    ] {
        let mut policy = Policy::default();
        keep(&mut policy, [&root.join("sub"), root], &[], process).unwrap();
        policy.read_only.sort();
        assert_eq!(policy.read_only, want, "{process:?}");
        policy.absent.retain(|it| it.ends_with(".env"));
        policy.absent.dedup();
        assert_eq!(policy.absent, absent, "{process:?}");
    }
}

#[test]
fn what_git_reads_of_others_is_kept_too() {
    let root = tempfile::tempdir().unwrap();
    let root = root.path();
    let deep = "main/.git/modules/third_party/a/b/c/d/e";
    made(
        root,
        &[
            "main/.git/modules/a/b/HEAD",
            "main/.git/modules/a/b/config",
            "main/.git/modules/a/b/hooks/x",
            "main/.git/modules/a/b/modules/c/HEAD",
            "main/.git/modules/a/b/modules/c/config",
            // Made by a plugin, so that what lies below is not looked at.
            "main/.git/modules/third_party/HEAD",
            &format!("{deep}/HEAD"),
            &format!("{deep}/config"),
            "main/sub/opencode.json",
            "side/.git",
        ],
    );
    for (folder, worktree, want) in [
        (
            "main/sub/deep",
            "main",
            vec![
                "main/sub/opencode.json",
                "main/.git/modules/a/b/config",
                "main/.git/modules/a/b/hooks",
                "main/.git/modules/a/b/modules/c/config",
                &format!("{deep}/config"),
            ],
        ),
        ("side", "side", vec!["side/.git"]),
    ] {
        let mut policy = Policy::default();
        keep(
            &mut policy,
            [&root.join(folder), &root.join(worktree)],
            &[],
            Process::Plugin,
        )
        .unwrap();
        policy.read_only.sort();
        assert_eq!(policy.read_only, sorted(root, &want), "{folder}");
    }
}

/// A bare clone with worktrees beside it, `git init --separate-git-dir`, a link.
#[test]
fn a_repository_elsewhere_in_the_project_is_kept() {
    for is_link in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let root = &root.path().canonicalize().unwrap();
        made(
            root,
            &["store/g/HEAD", "store/g/objects/x", "store/g/refs/x"],
        );
        made(root, &["store/g/config", "store/g/hooks/x"]);
        if is_link {
            std::os::unix::fs::symlink("store/g", root.join(".git")).unwrap()
        } else {
            fs::write(root.join(".git"), "gitdir: ./store/g\n").unwrap()
        }
        let mut policy = Policy {
            write: vec![root.clone()],
            ..Policy::default()
        };
        keep(&mut policy, [root, root], &[], Process::Command).unwrap();
        for name in ["store/g/config", "store/g/hooks"] {
            assert!(policy.read_only.contains(&root.join(name)), "{name}");
        }
        assert!(policy.absent.contains(&root.join("store/g/commondir")));
        assert!(
            policy.held.contains(&root.join("store")),
            "{:?}",
            policy.held
        );
    }
}

/// By a `.git` that is a folder, and by the common one of a linked worktree, which lies elsewhere.
#[test]
fn what_settings_of_git_name_is_kept() {
    for is_linked in [false, true] {
        let root = tempfile::tempdir().unwrap();
        let root = &root.path().canonicalize().unwrap();
        let project = root.join("project");
        made(
            &project,
            &["scripts/pc.sh", "scripts/fsm.sh", "src/main.rs"],
        );
        let store = if is_linked {
            root.join("main/.git")
        } else {
            project.join(".git")
        };
        made(&store, &["HEAD", "objects/x", "refs/x", "hooks/own"]);
        let config =
            "[core]\n\tfsmonitor = ./scripts/fsm.sh\n[diff \"x\"]\n\tcommand = ./scripts/new.sh\n";
        std::fs::write(store.join("config"), config).unwrap();
        std::os::unix::fs::symlink(
            project.join("scripts/pc.sh"),
            store.join("hooks/pre-commit"),
        )
        .unwrap();
        if is_linked {
            made(&store, &["worktrees/w/HEAD"]);
            std::fs::write(store.join("worktrees/w/commondir"), "../..\n").unwrap();
            let named = format!("gitdir: {}\n", store.join("worktrees/w").display());
            std::fs::write(project.join(".git"), named).unwrap();
        }
        for process in [Process::Command, Process::Plugin] {
            let mut policy = Policy {
                write: vec![project.clone()],
                ..Policy::default()
            };
            keep(&mut policy, [&project, &project], &[], process).unwrap();
            for name in ["scripts/pc.sh", "scripts/fsm.sh"] {
                assert!(
                    policy.read_only.contains(&project.join(name)),
                    "{name} {is_linked}"
                );
            }
            assert!(!policy.read_only.contains(&project.join("src/main.rs")));
            assert!(policy.held.contains(&project.join("scripts")));
            let is_absent = policy.absent.contains(&project.join("scripts/new.sh"));
            assert_eq!(is_absent, process == Process::Command);
        }
    }
}

#[test]
fn folders_that_could_be_moved_away_are_held() {
    let root = tempfile::tempdir().unwrap();
    let root = &root.path().canonicalize().unwrap();
    made(
        root,
        &[
            "main/sub/opencode.json",
            "main/.claude/settings.json",
            "main/.git/config",
            "main/.git/modules/a/b/HEAD",
            "main/.git/modules/a/b/config",
        ],
    );
    let within = [
        "main/sub",
        "main/.claude",
        "main/.git",
        "main/.git/modules",
        "main/.git/modules/a",
        "main/.git/modules/a/b",
    ];
    for (write, want) in [
        (vec!["main"], sorted(root, &within)),
        (vec![""], sorted(root, &[&within[..], &["main"]].concat())),
        (vec!["main/sub"], vec![]),
        (vec!["main/.git"], sorted(root, &within[3..])),
    ] {
        let write = write.iter().map(|name| root.join(name)).collect();
        let mut policy = Policy {
            write,
            ..Policy::default()
        };
        keep(
            &mut policy,
            [&root.join("main/sub"), &root.join("main")],
            &[],
            Process::Plugin,
        )
        .unwrap();
        assert_eq!(policy.held, want, "{:?}", policy.write);
    }
}

#[test]
fn what_repositories_below_run_is_kept_from_plugins() {
    let root = tempfile::tempdir().unwrap();
    let root = &root.path().canonicalize().unwrap();
    for name in ["HEAD", "objects/x", "refs/x", "config", "hooks/x"] {
        made(root, &[&format!("a/b/own/.git/{name}")]);
    }
    let mut policy = Policy::default();
    keep(&mut policy, [root, root], &[], Process::Plugin).unwrap();
    for name in ["config", "hooks"] {
        let path = root.join("a/b/own/.git").join(name);
        assert!(policy.read_only.contains(&path), "{name}");
    }
    assert!(!policy.read_only.contains(&root.join("a/b/own/.git")));
}

#[test]
fn what_cannot_be_walked_to_its_end_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let modules = root.path().join(".git/modules");
    for number in 0..=MAX_COVERS {
        made(
            &modules,
            &[&format!("{number}/HEAD"), &format!("{number}/config")],
        );
    }
    let kept = keep(
        &mut Policy::default(),
        [root.path(), root.path()],
        &[],
        Process::Plugin,
    );
    assert_eq!(kept.unwrap_err().code(), "spawn.too_many");
}
