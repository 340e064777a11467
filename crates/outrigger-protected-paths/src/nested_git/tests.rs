//! Repositories created by a command, against real git.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;

use super::*;

#[expect(clippy::disallowed_methods, reason = "the user's own git")]
pub(super) fn git(folder: &Path, args: &[&str]) -> String {
    let output = std::process::Command::new("git")
        .args([
            "-c",
            "user.name=me",
            "-c",
            "user.email=me@x",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
}

pub(super) fn commit(folder: &Path) {
    fs::create_dir_all(folder).unwrap();
    git(folder, &["init", "-q"]);
    git(folder, &["commit", "-q", "--allow-empty", "-m", "one"]);
}

pub(super) fn set(folder: &Path, key: &str, ran: &Path) {
    git(
        folder,
        &["config", key, &format!("touch {}; false", ran.display())],
    );
}

pub(super) struct World {
    pub(super) project: PathBuf,
    pub(super) ran: PathBuf,
    _dir: tempfile::TempDir,
}

/// Waits until what is there is older than what a command makes from now on.
pub(super) fn settle() {
    std::thread::sleep(BEHIND + Duration::from_millis(1100));
}

impl World {
    fn new() -> Self {
        let world = Self::fresh();
        settle();
        world
    }

    /// Several, which settle together.
    pub(super) fn several<const N: usize>() -> [Self; N] {
        let worlds = std::array::from_fn(|_| Self::fresh());
        settle();
        worlds
    }

    fn fresh() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let project = root.join("project");
        commit(&project);
        // What the user has there already stays as it is.
        let ran = root.join("ran");
        commit(&project.join("users"));
        set(&project.join("users"), "alias.mine", &ran);
        git(&project, &["add", "users"]);
        Self {
            project,
            ran,
            _dir: dir,
        }
    }
}

/// What a command makes, by name.
type Case = (&'static str, fn(&World));

/// git writes the files of a work tree, wherever it is.
#[test]
fn a_work_tree_outside_of_the_project_is_taken_out() {
    let world = World::new();
    let nested = NestedGit::before(&world.project);
    for (name, to) in [("out", "../../home"), ("whole", ".."), ("in", "../in")] {
        let sub = world.project.join(name);
        commit(&sub);
        fs::create_dir_all(sub.join(".git").join(to)).unwrap();
        git(&sub, &["config", "core.worktree", &format!("../{to}")]);
    }
    nested.clear(true);
    let left = ["out", "whole", "in"].map(|name| {
        let config = fs::read_to_string(world.project.join(name).join(".git/config")).unwrap();
        config.contains("worktree")
    });
    assert_eq!(left, [false, false, true]);
}

/// What a command makes of a repository in the project does not run when the user looks.
#[test]
fn what_a_repository_of_a_command_runs_is_taken_out() {
    let makes: [Case; 9] = [
        ("a new one that is added", |it| {
            let sub = it.project.join("sub");
            commit(&sub);
            set(&sub, "core.fsmonitor", &it.ran);
            git(&it.project, &["add", "sub"]);
        }),
        ("settings that are included", |it| {
            let sub = it.project.join("sub");
            commit(&sub);
            set(&sub, "core.fsmonitor", &it.ran);
            fs::rename(sub.join(".git/config"), sub.join("more")).unwrap();
            fs::write(sub.join(".git/config"), "[include] path = ../more\n").unwrap();
            git(&it.project, &["add", "sub"]);
        }),
        ("a hook", |it| {
            let sub = it.project.join("sub");
            commit(&sub);
            let hook = sub.join(".git/hooks/post-index-change");
            fs::create_dir_all(hook.parent().unwrap()).unwrap();
            let text = format!("#!/bin/sh\ntouch {}\n", it.ran.display());
            let mut options = fs::OpenOptions::new();
            let file = options.write(true).create(true).truncate(true).mode(0o755);
            file.open(&hook)
                .unwrap()
                .write_all(text.as_bytes())
                .unwrap();
            git(&it.project, &["add", "sub"]);
            fs::write(sub.join("f"), "").unwrap();
            git(&sub, &["add", "f"]);
            let _ = fs::remove_file(&it.ran);
        }),
        ("a file that names it", |it| {
            let (sub, other) = (it.project.join("sub"), it.project.join("deep/a/b/c/other"));
            commit(&other);
            set(&other, "core.fsmonitor", &it.ran);
            commit(&sub);
            git(&it.project, &["add", "sub"]);
            fs::rename(sub.join(".git"), it.project.join("gone")).unwrap();
            fs::write(sub.join(".git"), "gitdir: ../deep/a/b/c/other/.git\n").unwrap();
        }),
        ("a link to it", |it| {
            let (sub, other) = (it.project.join("sub"), it.project.join("deep/a/b/c/other"));
            commit(&other);
            set(&other, "core.fsmonitor", &it.ran);
            fs::create_dir_all(&sub).unwrap();
            std::os::unix::fs::symlink(other.join(".git"), sub.join(".git")).unwrap();
            git(&it.project, &["add", "sub"]);
        }),
        ("settings elsewhere", |it| {
            let (sub, other) = (it.project.join("sub"), it.project.join("deep/a/b/c/other"));
            commit(&other);
            set(&other, "core.fsmonitor", &it.ran);
            commit(&sub);
            git(&it.project, &["add", "sub"]);
            fs::write(sub.join(".git/commondir"), "../../deep/a/b/c/other/.git\n").unwrap();
        }),
        ("one in another", |it| {
            let inner = it.project.join("sub/inner");
            commit(&it.project.join("sub"));
            commit(&inner);
            set(&inner, "core.fsmonitor", &it.ran);
            git(&it.project.join("sub"), &["add", "inner"]);
            git(&it.project, &["add", "sub"]);
        }),
        ("settings of a worktree", |it| {
            let sub = it.project.join("sub");
            commit(&sub);
            git(&sub, &["config", "extensions.worktreeConfig", "true"]);
            let line = format!("[core]\n\tfsmonitor = touch {}; false\n", it.ran.display());
            fs::write(sub.join(".git/config.worktree"), line).unwrap();
            git(&it.project, &["add", "sub"]);
        }),
        ("an index that is split", |it| {
            let sub = it.project.join("sub");
            commit(&sub);
            set(&sub, "core.fsmonitor", &it.ran);
            git(&it.project, &["add", "sub"]);
            git(&it.project, &["update-index", "--split-index"]);
        }),
    ];
    for ((what, make), world) in makes.into_iter().zip(World::several::<9>()) {
        let nested = NestedGit::before(&world.project);
        let mine = world.project.join("users/.git/config");
        let before = fs::read(&mine).unwrap();
        make(&world);
        let report = nested.clear(true);
        assert!(
            report.iter().any(|it| it.contains("sub")),
            "{what}: {report:?}"
        );
        assert!(!world.ran.exists(), "{what}");
        for args in [&["status"][..], &["diff"], &["submodule", "status"]] {
            git(&world.project, args);
        }
        git(&world.project.join("sub"), &["status"]);
        assert!(!world.ran.exists(), "{what}: {report:?}");
        assert_eq!(fs::read(&mine).unwrap(), before, "{what}");
        assert!(
            nested.clear(true).is_empty() || what == "a file that names it",
            "{what}"
        );
    }
}

/// One that is not added, and one that leads out of the project.
#[test]
fn repositories_that_appear_are_looked_at_too() {
    let world = World::new();
    let nested = NestedGit::before(&world.project);
    let (near, out) = (world.project.join("a/b/near"), world.project.join("out"));
    commit(&near);
    set(&near, "core.fsmonitor", &world.ran);
    let users = world.project.parent().unwrap().join("other");
    commit(&users);
    set(&users, "alias.x", &world.ran);
    let settings = fs::read(users.join(".git/config")).unwrap();
    fs::create_dir(&out).unwrap();
    fs::write(
        out.join(".git"),
        format!("gitdir: {}\n", users.join(".git").display()),
    )
    .unwrap();
    let report = nested.clear(true);
    assert_eq!(report.len(), 2, "{report:?}");
    git(&near, &["status"]);
    assert!(!world.ran.exists());
    assert!(!out.join(".git").exists());
    assert_eq!(fs::read(users.join(".git/config")).unwrap(), settings);
}

/// Repositories without a work tree, and those in folders that hold very many files: what git would run there when somebody works in them.
#[test]
fn bare_repositories_and_those_of_packages_are_looked_at_too() {
    let hand_made = |folder: &Path| {
        for name in ["objects", "refs"] {
            fs::create_dir_all(folder.join(name)).unwrap();
        }
        fs::write(folder.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        let config = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = ..\n";
        fs::write(folder.join("config"), config).unwrap();
    };
    let work_tree = |folder: &Path| {
        git(folder, &["config", "core.bare", "false"]);
        git(folder, &["config", "core.worktree", ".."]);
    };
    let places = [
        ("made.git", true),
        ("by/hand", true),
        ("node_modules/q", false),
        ("target/q", false),
        (".venv/q", false),
        ("node_modules/q", true),
    ];
    let [around, worlds @ ..] = World::several::<7>();
    for ((at, is_bare), world) in places.into_iter().zip(worlds) {
        let nested = NestedGit::before(&world.project);
        let folder = world.project.join(at);
        fs::create_dir_all(&folder).unwrap();
        match is_bare {
            true if at == "by/hand" => hand_made(&folder),
            true => {
                git(&folder, &["init", "-q", "--bare"]);
                work_tree(&folder);
            }
            false => commit(&folder),
        }
        set(&folder, "core.fsmonitor", &world.ran);
        let report = nested.clear(true);
        git(&folder, &["status"]);
        assert!(!world.ran.exists(), "{at}: {report:?}");
        assert!(report.iter().any(|it| it.contains(at)), "{at}: {report:?}");
        assert!(nested.clear(true).is_empty(), "{at}");
    }
    // The marks of a repository hide none that lies in it.
    let world = around;
    let nested = NestedGit::before(&world.project);
    let (decoy, sub) = (world.project.join("decoy"), world.project.join("decoy/sub"));
    hand_made(&decoy);
    commit(&sub);
    set(&sub, "core.fsmonitor", &world.ran);
    let report = nested.clear(true);
    git(&sub, &["status"]);
    assert!(!world.ran.exists(), "{report:?}");
    // One of the user's stays as it is.
    let world = World::fresh();
    let mirror = world.project.join("mirror.git");
    fs::create_dir(&mirror).unwrap();
    git(&mirror, &["init", "-q", "--bare"]);
    set(&mirror, "alias.mine", &world.ran);
    settle();
    let before = fs::read(mirror.join("config")).unwrap();
    let nested = NestedGit::before(&world.project);
    assert_eq!(nested.clear(true), Vec::<String>::new());
    assert_eq!(fs::read(mirror.join("config")).unwrap(), before);
}

/// Ordinary work with repositories in a project changes nothing.
#[test]
fn clones_and_submodules_are_left_alone() {
    let world = World::new();
    let from = world.project.parent().unwrap().join("from");
    commit(&from);
    let nested = NestedGit::before(&world.project);
    let address = from.display().to_string();
    git(&world.project, &["clone", "-q", &address, "cloned"]);
    git(&world.project, &["submodule", "add", &address, "sub"]);
    git(
        &world.project.join("cloned"),
        &["checkout", "-q", "-b", "side"],
    );
    git(
        &world.project.join("cloned"),
        &["config", "user.name", "me"],
    );
    git(&world.project, &["worktree", "add", "-q", "tree"]);
    let before = fs::read(world.project.join("cloned/.git/config")).unwrap();
    assert_eq!(nested.clear(true), [""; 0]);
    assert_eq!(
        fs::read(world.project.join("cloned/.git/config")).unwrap(),
        before
    );
    // What was there is kept from the next command.
    let (kept, _) = NestedGit::before(&world.project).kept();
    assert!(kept.contains(&world.project.join(".git/modules/sub/config")));
    assert!(kept.contains(&world.project.join("sub/.git")));
    assert!(!kept.contains(&world.project.join("users/.git")));
}

/// What is left of a refused `git config`.
#[test]
fn a_lock_of_settings_is_removed_and_explained() {
    let world = World::new();
    let nested = NestedGit::before(&world.project);
    let lock = world.project.join(".git/config.lock");
    fs::write(&lock, "").unwrap();
    assert!(nested.clear(false).is_empty() && lock.exists());
    let report = nested.clear(true);
    assert!(
        report[0].contains("outside of the sandbox") && !lock.exists(),
        "{report:?}"
    );
    fs::write(&lock, "").unwrap();
    assert!(NestedGit::before(&world.project).clear(true).is_empty());
    assert!(lock.exists());
}

/// Repositories of the user's that the index does not name are the user's, whatever is done in them meanwhile.
#[test]
fn a_repository_of_the_users_stays_as_it_is() {
    let world = World::new();
    let own = world.project.join("own");
    commit(&own);
    set(&own, "filter.lfs.process", &world.ran);
    set(&own, "core.hooksPath", &world.ran);
    fs::write(own.join(".git/hooks/pre-push"), "#!/bin/sh\n").unwrap();
    let nested = NestedGit::before(&world.project);
    // A command pushes, or the user does in a terminal.
    git(&own, &["config", "branch.main.remote", "origin"]);
    git(&own, &["worktree", "add", "-q", "../own-fix"]);
    fs::write(own.join(".git/hooks/pre-commit"), "#!/bin/sh\n").unwrap();
    let config = fs::read_to_string(own.join(".git/config")).unwrap();
    assert_eq!(nested.clear(true), [""; 0]);
    assert_eq!(fs::read_to_string(own.join(".git/config")).unwrap(), config);
    assert!(own.join(".git/hooks/pre-push").exists() && own.join(".git/hooks/pre-commit").exists());
    // The user's git in one that the index names, which no command can change.
    let users = world.project.join("users");
    git(&users, &["config", "alias.other", "!true"]);
    assert_eq!(nested.clear(true), [""; 0]);
    assert!(
        fs::read_to_string(users.join(".git/config"))
            .unwrap()
            .contains("other")
    );
}

/// What a command does to a repository that was there, at any depth: what starts programs is as it was when it has ended.
#[test]
fn what_a_command_changes_in_a_repository_that_was_there_comes_back() {
    for at in ["own", "deep/a/b/c/own"] {
        let world = World::fresh();
        let own = world.project.join(at);
        commit(&own);
        set(&own, "alias.mine", &world.ran);
        let hooks = own.join(".git/hooks");
        fs::create_dir_all(&hooks).unwrap();
        fs::write(hooks.join("pre-push"), "mine").unwrap();
        let other = world.project.join(format!("{at}-clone"));
        let made = NestedGit::before(&world.project).for_command();
        commit(&other);
        assert_eq!(made.clear(true), [""; 0], "{at}");
        drop(made);
        let nested = NestedGit::before(&world.project).for_command();
        for folder in [&own, &other] {
            set(folder, "core.fsmonitor", &world.ran);
            git(folder, &["config", "branch.main.remote", "origin"]);
            fs::write(folder.join(".git/hooks/post-checkout"), "evil").unwrap();
        }
        fs::write(hooks.join("pre-push"), "evil").unwrap();
        let report = nested.clear(true);
        assert_eq!(report.len(), 5, "{report:?}");
        let _ = fs::remove_file(&world.ran);
        for folder in [&own, &other] {
            git(folder, &["status"]);
            let config = fs::read_to_string(folder.join(".git/config")).unwrap();
            assert!(config.contains("origin") && !config.contains("fsmonitor"));
            assert_eq!(config.contains("mine"), *folder == own, "{config}");
            assert!(!folder.join(".git/hooks/post-checkout").exists());
        }
        assert!(!world.ran.exists(), "{at}");
        assert_eq!(fs::read_to_string(hooks.join("pre-push")).unwrap(), "mine");
        assert_eq!(nested.clear(true), [""; 0], "{at}");
    }
}

/// The project's own `.git` may be a link.
#[test]
fn where_the_projects_git_leads_comes_back() {
    let world = World::fresh();
    let entry = world.project.join(".git");
    fs::create_dir(world.project.join("s")).unwrap();
    fs::rename(&entry, world.project.join("s/g")).unwrap();
    std::os::unix::fs::symlink("s/g", &entry).unwrap();
    let nested = NestedGit::before(&world.project).for_command();
    assert_eq!(nested.clear(true), [""; 0]);
    fs::remove_file(&entry).unwrap();
    commit(&world.project);
    assert_eq!(nested.clear(true).len(), 1);
    assert_eq!(fs::read_link(&entry).unwrap(), Path::new("s/g"));
}

/// A repository that one command made where nobody looks, and another moved to where somebody works.
#[test]
fn a_repository_that_is_moved_in_is_looked_at() {
    let world = World::fresh();
    let at = |name: &str| world.project.join(name);
    commit(&at("own"));
    set(&at("own"), "alias.mine", &world.ran);
    let first = NestedGit::before(&world.project).for_command();
    commit(&at("target/a/b/made"));
    set(&at("target/a/b/made"), "core.fsmonitor", &world.ran);
    assert_eq!(first.clear(true), [""; 0]);
    drop(first);
    settle();
    let second = NestedGit::before(&world.project).for_command();
    fs::create_dir(at("deep")).unwrap();
    fs::rename(at("target/a/b/made"), at("deep/made")).unwrap();
    fs::rename(at("own"), at("deep/own")).unwrap();
    let report = second.clear(true);
    assert_eq!(report.len(), 1, "{report:?}");
    git(&at("deep/made"), &["status"]);
    assert!(!world.ran.exists(), "{report:?}");
    // The user's is as it was.
    let config = fs::read_to_string(at("deep/own/.git/config")).unwrap();
    assert!(config.contains("mine"), "{config}");
}

/// A command costs a look at what changed, not a walk of the project.
#[test]
fn what_has_not_changed_is_not_read_again() {
    let world = World::fresh();
    for number in 0..300 {
        fs::create_dir_all(world.project.join(format!("a/{}/{number}", number % 20))).unwrap();
    }
    let command = |change: &dyn Fn()| {
        let before = tree::reads(&world.project).unwrap_or_default();
        let nested = NestedGit::before(&world.project).for_command();
        let began = tree::reads(&world.project).unwrap();
        change();
        assert_eq!(nested.clear(true), [""; 0]);
        (began - before, tree::reads(&world.project).unwrap() - began)
    };
    // The root, `users`, `a` and what is in it; some of them twice.
    let (first, after) = command(&|| {});
    assert!((323..646).contains(&first), "{first}");
    assert_eq!(after, 0);
    assert_eq!(command(&|| {}), (0, 0));
    let file = world.project.join("a/3/23/new");
    assert_eq!(command(&|| fs::write(&file, "").unwrap()), (0, 1));
    assert_eq!(command(&|| fs::write(&file, "other").unwrap()), (0, 0));
    let folder = world.project.join("a/3/x/y");
    assert_eq!(command(&|| fs::create_dir_all(&folder).unwrap()), (0, 3));
    fs::remove_dir_all(folder.parent().unwrap()).unwrap();
    assert_eq!(command(&|| {}), (1, 0));
}
