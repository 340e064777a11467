//! Denied files stay hidden from processes that start while their folders are being moved, and held places stay in place.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outrigger_sandbox::path_masks::{self, Cover, CoverWalk, Covers};
use outrigger_sandbox::{CoversFn, Policy};

use outrigger_test_support::skip::skip;

use super::{output, sh, spawner};

const SECRET: &str = "not-for-you";
/// The number of processes started. One takes seconds if a folder is always moving, because it is searched for repeatedly.
const STARTS: usize = 7;

/// Returns `None` if the walk never finds a stable state.
fn kept(root: &Path) -> Option<CoverWalk> {
    let root = root.to_path_buf();
    let again: CoversFn = Arc::new(move || {
        path_masks::find(&root, |path, _| {
            if path.ends_with(".env") {
                Cover::Hidden
            } else {
                Cover::None
            }
        })
    });
    let found = again().ok()?;
    Some(CoverWalk::new(found, again))
}

/// Moves files and folders until it is dropped.
struct Mover(Arc<AtomicBool>, Option<std::thread::JoinHandle<()>>);

impl Mover {
    fn new(step: impl Fn() + Send + 'static) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&over);
        let thread = std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                step();
            }
        });
        Self(over, Some(thread))
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
        let _ = self.1.take().map(std::thread::JoinHandle::join);
    }
}

/// Starts processes that look for the secret under all of its names, while `step` runs repeatedly. None may find it; a process that
/// does not start is fine, too.
async fn looked_for(dir: &Path, step: impl Fn() + Send + 'static, most_refused: usize) {
    let mover = Mover::new(step);
    let mut refused = 0;
    for _ in 0..STARTS {
        let Some(kept) = kept(dir) else {
            refused += 1;
            continue;
        };
        let policy = Policy {
            kept,
            ..Policy::open()
        };
        let script = "for i in 1 2 3 4 5 6 7 8 9; do cat deep/.env d2/.env other/deep/.env in/.env 2>/dev/null; done; echo ran";
        match output(sh(script).cwd(dir).policy(policy)).await {
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stdout);
                assert!(said.contains("ran") && !said.contains(SECRET), "{said}");
            }
            Err(_) => refused += 1,
        }
    }
    drop(mover);
    assert!(refused <= most_refused, "{refused} were not started");
}

fn project() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["deep", "other", "empty"] {
        fs::create_dir(root.join(folder)).unwrap();
    }
    fs::write(root.join("deep/.env"), SECRET).unwrap();
    (dir, root)
}

#[tokio::test]
async fn a_folder_that_is_renamed_all_the_time_shows_nothing() {
    if !spawner().has_views() {
        return skip("processes have no views here");
    }
    let (_dir, root) = project();
    let (one, two) = (root.join("deep"), root.join("d2"));
    let step = move || {
        let _ = fs::rename(&one, &two);
        let _ = fs::rename(&two, &one);
    };
    looked_for(&root, step, STARTS).await;
}

#[tokio::test]
async fn a_folder_that_goes_to_another_and_back_shows_nothing() {
    if !spawner().has_views() {
        return skip("processes have no views here");
    }
    let (_dir, root) = project();
    let (one, two) = (root.join("deep"), root.join("other/deep"));
    let step = move || {
        let _ = fs::rename(&one, &two);
        let _ = fs::rename(&two, &one);
    };
    looked_for(&root, step, STARTS).await;
}

#[tokio::test]
async fn a_link_that_takes_a_folders_place_shows_nothing() {
    if !spawner().has_views() {
        return skip("processes have no views here");
    }
    let (_dir, root) = project();
    let (one, two, empty) = (root.join("deep"), root.join("d2"), root.join("empty"));
    let step = move || {
        let _ = fs::rename(&one, &two);
        let _ = symlink(&empty, &one);
        std::thread::yield_now();
        let _ = fs::remove_file(&one);
        let _ = fs::rename(&two, &one);
    };
    looked_for(&root, step, STARTS).await;
}

/// The control: if nothing moves, all of them start.
#[tokio::test]
async fn nothing_is_refused_where_nothing_moves() {
    if !spawner().has_views() {
        return skip("processes have no views here");
    }
    let (_dir, root) = project();
    let busy = root.join("other/file");
    let step = move || {
        // Files that appear and disappear do not matter.
        let _ = fs::write(&busy, "x");
        let _ = fs::remove_file(&busy);
    };
    looked_for(&root, step, 0).await;
}

#[tokio::test]
async fn what_is_held_stays_and_what_is_closed_takes_nothing_in() {
    if !spawner().has_views() {
        return skip("processes have no views here");
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["config/ours", "data/theirs/hidden", "data/secret"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    let found = Covers {
        hide: vec![root.join("data/theirs/hidden")],
        read_only: vec![root.join("config/ours")],
        held: vec![root.join("config"), root.join("data/theirs")],
        closed: vec![root.join("data")],
        ..Covers::default()
    };
    let again: CoversFn = Arc::new(|| Ok(Covers::default()));
    for (script, allowed) in [
        (
            "mv config away && mkdir -p config/ours && echo x > config/ours/settings",
            false,
        ),
        ("echo x > config/ours/settings", false),
        ("echo x > config/other && rm config/other", true),
        ("mv data away", false),
        ("echo x > data/new", false),
        ("mkdir data/new", false),
        ("mv data/theirs data/new", false),
        ("echo x > data/theirs/new && rm data/theirs/new", true),
        ("echo x > data/secret/new", false),
        ("echo x > data/theirs/hidden/new", false),
        ("test $(ls data) = theirs", true),
        ("echo x > beside && rm beside", true),
    ] {
        let policy = Policy {
            kept: CoverWalk::new(found.clone(), Arc::clone(&again)),
            ..Policy::open()
        };
        let output = output(sh(script).cwd(&root).policy(policy)).await.unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.exit.success(), allowed, "{script}: {err}");
        assert!(!root.join("away").exists(), "{script}");
    }
}

/// Each held folder is one mount: it has no copy of what a closed folder below it shows.
#[tokio::test]
async fn held_folders_in_one_another_copy_no_closed_folder() {
    if !spawner().has_views() {
        return skip("processes have no views here");
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    let data = root.join("a/b/c/data");
    for folder in ["one", "other"] {
        fs::create_dir_all(data.join(folder)).unwrap();
    }
    let shown = vec![data.join("one"), data.join("other")];
    let around: Vec<PathBuf> = ["a", "a/b", "a/b/c"].map(|it| root.join(it)).into();
    let again: CoversFn = Arc::new(|| Ok(Covers::default()));
    let mut mounts = Vec::new();
    for (held, script) in [
        (shown.clone(), "wc -l < /proc/self/mountinfo"),
        (
            [shown, around].concat(),
            "! mv a/b/c a/b/d && ! mv a/b a/d && ! mv a/b/c/data/one a/one && wc -l < /proc/self/mountinfo",
        ),
    ] {
        let found = Covers {
            held,
            closed: vec![data.clone()],
            ..Covers::default()
        };
        let policy = Policy {
            kept: CoverWalk::new(found, Arc::clone(&again)),
            ..Policy::open()
        };
        let output = output(sh(script).cwd(&root).policy(policy)).await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        mounts.push(said.trim().parse::<usize>().ok());
    }
    assert!(mounts[0].is_some(), "{mounts:?}");
    assert_eq!(mounts[1], mounts[0].map(|it| it + 3));
}

/// A process that moves folders delays its own starts, not those elsewhere.
#[tokio::test]
async fn a_long_second_look_holds_up_nobody_else() {
    if !spawner().has_views() {
        return skip("processes have no views here");
    }
    let (_dir, root) = project();
    let found = Covers {
        hide: vec![root.join("was/.env")],
        ..Covers::default()
    };
    let (begins, begun) = std::sync::mpsc::channel();
    let (release, released) = std::sync::mpsc::channel();
    let gate = std::sync::Mutex::new((begins, released));
    let again: CoversFn = Arc::new(move || {
        let (begins, released) = &*gate.lock().unwrap();
        begins.send(()).unwrap();
        released.recv_timeout(super::PLENTY).unwrap();
        Ok(Covers::default())
    });
    let policy = Policy {
        kept: CoverWalk::new(found, again),
        ..Policy::open()
    };
    let slow = tokio::spawn(output(sh("echo slow").policy(policy)));
    tokio::task::spawn_blocking(move || begun.recv().unwrap())
        .await
        .unwrap();
    assert_eq!(output(sh("echo fast")).await.unwrap().stdout, b"fast\n");
    assert!(!slow.is_finished());
    release.send(()).unwrap();
    assert_eq!(slow.await.unwrap().unwrap().stdout, b"slow\n");
}

/// A place that a policy holds stays and is writable.
#[tokio::test]
async fn what_a_policy_holds_stays_where_it_is() {
    if !spawner().has_views() {
        return skip("processes have no views here");
    }
    let (_dir, root) = project();
    for (script, allowed) in [
        ("mv deep away", false),
        ("cp -r deep away && rm -r deep", false),
        ("echo x > deep/new && mv deep/new deep/newer", true),
    ] {
        let policy = Policy {
            held: vec![root.join("deep")],
            ..Policy::open()
        };
        let output = output(sh(script).cwd(&root).policy(policy)).await.unwrap();
        assert_eq!(output.exit.success(), allowed, "{script}");
        assert!(root.join("deep").is_dir(), "{script}");
    }
}

/// No file can be created in a fixed folder under any name; existing ones may be changed, and new ones from others can be read. This
/// holds without views as well.
#[tokio::test]
async fn nothing_new_is_made_in_a_fixed_folder() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for folder in ["home/.config/app", "home/work"] {
        fs::create_dir_all(root.join(folder)).unwrap();
    }
    fs::write(root.join("home/todo"), "").unwrap();
    let found = Covers {
        fixed: ["home", "home/.config"].map(|it| root.join(it)).to_vec(),
        ..Covers::default()
    };
    for (script, allowed) in [
        ("echo x > .bashrc", false),
        ("mkdir .claude", false),
        ("mkdir .config/opencode", false),
        ("ln -s work .zshrc", false),
        ("ln todo .profile", false),
        ("echo x > work/rc && mv work/rc .bashrc", false),
        ("mv work .claude", false),
        ("mv .config old", false),
        (
            "echo x > todo && echo x > .config/app/new && mkdir work/deep",
            true,
        ),
        ("ls -a . .config && cat todo", true),
        ("mv work/rc work/deep/rc", true),
    ] {
        let mut policy = Policy::system().write(root.join("home"));
        policy.kept = CoverWalk::new(found.clone(), Arc::new(|| Ok(Covers::default())));
        let output = output(sh(script).cwd(root.join("home")).policy(policy));
        let output = output.await.unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.exit.success(), allowed, "{script}: {err}");
        for made in [
            ".bashrc",
            ".claude",
            ".zshrc",
            ".profile",
            ".config/opencode",
        ] {
            let made = root.join("home").join(made);
            assert!(
                made.symlink_metadata().is_err(),
                "{script}: {}",
                made.display()
            );
        }
    }
    // The user's own file, created later.
    let mut policy = Policy::system().write(root.join("home"));
    policy.kept = CoverWalk::new(found, Arc::new(|| Ok(Covers::default())));
    let script = "touch work/begun; until [ -e .profile ]; do sleep 0.02; done; cat .profile; echo x > .profile";
    let running = tokio::spawn(output(sh(script).cwd(root.join("home")).policy(policy)));
    while !root.join("home/work/begun").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    fs::write(root.join("home/.profile"), "mine\n").unwrap();
    let output = running.await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "mine\n");
    assert_eq!(fs::read(root.join("home/.profile")).unwrap(), b"mine\n");
}

/// A file that the host puts into a closed folder while a process runs is not visible, under an old name or a new one.
#[tokio::test]
async fn what_comes_into_a_closed_folder_is_not_seen() {
    if !spawner().has_views() {
        return skip("processes have no views here");
    }
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    fs::create_dir_all(root.join("data/theirs")).unwrap();
    fs::write(root.join("data/keys"), "old").unwrap();
    let found = Covers {
        held: vec![root.join("data/theirs")],
        closed: vec![root.join("data")],
        ..Covers::default()
    };
    let policy = Policy {
        kept: CoverWalk::new(found, Arc::new(|| Ok(Covers::default()))),
        ..Policy::open()
    };
    let script = "touch data/theirs/begun; until [ -e data/theirs/over ]; do sleep 0.02; done; cat data/keys data/more; ls data";
    let running = tokio::spawn(output(sh(script).cwd(&root).policy(policy)));
    while !root.join("data/theirs/begun").exists() {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    fs::write(root.join("data/keys.new"), "secret").unwrap();
    fs::rename(root.join("data/keys.new"), root.join("data/keys")).unwrap();
    fs::write(root.join("data/more"), "secret").unwrap();
    fs::write(root.join("data/theirs/over"), "").unwrap();
    let output = running.await.unwrap().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "theirs\n");
}

/// A process with its own terminals can create some, and sees no others.
#[tokio::test]
async fn terminals_are_its_own() {
    if !spawner().has_views() {
        return skip("processes have no views here");
    }
    let dir = tempfile::tempdir().unwrap();
    let policy = Policy {
        own_terminals: true,
        ..Policy::system().read("/proc").write("/dev/ptmx")
    };
    let script = "echo $(ls /dev/pts); (: < /dev/tty) 2>/dev/null && echo controlled; script -qec 'tty' /dev/null || true";
    let output = output(sh(script).cwd(dir.path()).policy(policy))
        .await
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let lines: Vec<&str> = said.lines().map(str::trim).collect();
    assert_eq!(lines.first(), Some(&"ptmx"), "{said}");
    assert!(!said.contains("controlled"), "{said}");
    assert_eq!(
        lines.get(1),
        Some(&"/dev/pts/0"),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
