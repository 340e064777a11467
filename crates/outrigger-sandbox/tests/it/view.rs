//! Hidden files stay hidden and read-only files unchanged, whatever a process tries. Tested as this user and as an
//! unprivileged one.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;

use outrigger_sandbox::{Calls, Level, Policy};

use super::{output, sh, spawner};

const SECRET: &str = "not-for-you";

/// Scripts, and whether they may succeed. None may print the secret or change a read-only file.
const ROWS: &[(&str, bool)] = &[
    // The plain ways.
    ("cat open.txt", true),
    ("echo more >> open.txt", true),
    ("cat .env | grep .", false),
    ("f=.env; cat \"$f\" | grep .", false),
    ("cat ./deep/../.env | grep .", false),
    ("cat $PWD/.env | grep .", false),
    ("cat link | grep .", false),
    ("ls keys | grep .", false),
    ("cat keys/id | grep .", false),
    ("cd keys && cat id | grep .", false),
    ("cat deep/er/.env | grep .", false),
    ("grep -r not-for-you .", false),
    ("tar c . | grep not-for-you", false),
    ("find . -name .env -exec cat {} + | grep .", false),
    // Through /proc.
    ("cat /proc/self/root$PWD/.env | grep .", false),
    ("cat /proc/self/cwd/.env | grep .", false),
    ("cat /proc/$HOST/root$PWD/.env | grep .", false),
    ("cat /proc/$HOST/cwd/.env | grep .", false),
    ("cat /proc/thread-self/cwd/.env | grep .", false),
    // Under another name.
    ("ln .env other && cat other", false),
    ("mv .env other && cat other", false),
    ("mv deep moved && cat moved/er/.env | grep .", false),
    ("cp .env other && grep . other", false),
    ("mv keys moved-keys && cat moved-keys/id", false),
    // Removing the cover.
    ("umount .env && cat .env", false),
    ("umount -l .env && cat .env", false),
    ("mount --bind . deep && cat deep/.env | grep .", false),
    ("unshare -Urm sh -c 'umount .env; cat .env | grep .'", false),
    ("unshare -m sh -c 'umount .env; cat .env | grep .'", false),
    ("nsenter -t $HOST -m cat $PWD/.env | grep .", false),
    ("chroot /proc/$HOST/root cat $PWD/.env | grep .", false),
    ("rm -f .env", false),
    ("echo x > .env", false),
    ("rm -rf keys && ls keys", false),
    // Bypassing the file system.
    (
        "d=$(stat -c %Hd:%Ld .); mknod disk b ${d%:*} ${d#*:} && grep -c not-for-you disk",
        false,
    ),
    // Read-only files.
    ("cat lock", true),
    ("echo x > lock", false),
    ("echo x >> lock", false),
    ("rm -f lock", false),
    ("mv lock other", false),
    ("echo x > new && mv -f new lock", false),
    ("truncate -s 0 lock", false),
    ("chmod 777 lock", false),
    ("touch frozen/new", false),
    ("rm -f frozen/file", false),
    ("ln lock other && echo x > other", false),
    ("cat frozen/file && ls frozen", true),
    ("cat frozen/hidden | grep .", false),
];

fn fill(dir: &Path) {
    for folder in ["keys", "deep", "deep/er", "frozen"] {
        fs::create_dir(dir.join(folder)).unwrap();
    }
    for file in [".env", "keys/id", "deep/er/.env", "frozen/hidden"] {
        fs::write(dir.join(file), format!("{SECRET}\n")).unwrap();
    }
    for file in ["open.txt", "lock", "frozen/file"] {
        fs::write(dir.join(file), "plain\n").unwrap();
    }
    symlink(".env", dir.join("link")).unwrap();
}

fn covered(dir: &Path, policy: Policy) -> Policy {
    let at = |names: &[&str]| names.iter().map(|name| dir.join(name)).collect();
    Policy {
        hide: at(&[".env", "keys", "deep/er/.env", "frozen/hidden", "missing"]),
        read_only: at(&["lock", "frozen"]),
        ..policy
    }
}

async fn rows(policy: impl Fn(&Path) -> Policy) {
    for (script, allowed) in ROWS {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path());
        let spec = sh(script)
            .cwd(dir.path())
            .var("HOST", std::process::id().to_string());
        let output = output(spec.policy(policy(dir.path()))).await.unwrap();
        let (said, err) = (
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr),
        );
        assert!(!said.contains(SECRET), "{script}: {said}");
        assert_eq!(output.exit.success(), *allowed, "{script}: {said}{err}");
        let kept = |file: &str| fs::read_to_string(dir.path().join(file)).unwrap();
        assert_eq!(kept(".env").trim(), SECRET, "{script}");
        assert_eq!(kept("keys/id").trim(), SECRET, "{script}");
        assert_eq!(kept("lock").trim(), "plain", "{script}");
        assert_eq!(kept("frozen/file").trim(), "plain", "{script}");
    }
}

/// Scripts about a file's attributes rather than its contents, and whether they may succeed; `OUT` is read-only.
const MARKS: &[(&str, bool)] = &[
    ("chmod 777 own && touch -d 2001-01-01 own", true),
    ("mkdir new && mv own new/own && rm -r new", true),
    ("chmod 777 $OUT/file", false),
    ("chmod 777 $OUT", false),
    ("touch -d 2001-01-01 $OUT/file", false),
    ("touch -a $OUT/file", false),
    ("chown 1:1 $OUT/file", false),
    ("chmod 777 /proc/self/root$OUT/file", false),
    ("ln -s $OUT/file link && chmod 777 link", false),
    ("exec 5<$OUT/file && chmod 777 /proc/self/fd/5", false),
    (
        "perl -e 'open F, \"<\", shift; chmod(0777, *F) || exit 1' $OUT/file",
        false,
    ),
    ("mount -o remount,rw,bind / ; chmod 777 $OUT/file", false),
    (
        "unshare -Urm sh -c 'mount -o remount,rw,bind /; chmod 777 $OUT/file'",
        false,
    ),
];

#[tokio::test]
async fn marks_of_files_are_changed_where_files_may_be_written() {
    if !has_views() {
        return;
    }
    for (script, allowed) in MARKS {
        let (own, out) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = out.path().join("file");
        fs::write(own.path().join("own"), "").unwrap();
        fs::write(&file, "").unwrap();
        let marks = |path: &Path| {
            let found = path.metadata().unwrap();
            (found.mode(), found.uid(), found.mtime(), found.atime_nsec())
        };
        let before = (marks(&file), marks(out.path()).0);
        let policy = Policy::system().write(own.path()).read(out.path());
        let spec = sh(script).cwd(own.path()).var("OUT", out.path());
        let output = output(spec.policy(policy)).await.unwrap();
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.exit.success(), *allowed, "{script}: {err}");
        assert_eq!((marks(&file), marks(out.path()).0), before, "{script}");
    }
}

fn has_views() -> bool {
    let full = spawner().level() == Level::Full;
    if !full {
        println!("skipped: this machine gives {:?}", spawner().level());
    }
    full
}

/// A process without other restrictions.
#[tokio::test]
async fn an_open_process_sees_what_it_may_see() {
    if has_views() {
        rows(|dir| covered(dir, Policy::open())).await;
    }
}

/// A process that is confined to its folder, with the system call filter.
#[tokio::test]
async fn a_confined_process_sees_what_it_may_see() {
    if has_views() {
        let confined = |dir: &Path| Policy {
            calls: Some(Calls::default()),
            ..Policy::system().write(dir)
        };
        rows(|dir| covered(dir, confined(dir))).await;
    }
}

/// The process keeps its identity, folder, limits and process tree, and the host keeps control of it.
#[tokio::test]
async fn a_view_changes_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let script = "id -u; pwd; cat open.txt; grep -c . /proc/self/status >/dev/null && echo proc";
    let plain = output(sh(script).cwd(dir.path())).await.unwrap();
    let sandboxed = sh(script)
        .cwd(dir.path())
        .policy(covered(dir.path(), Policy::open()));
    let sandboxed = output(sandboxed).await.unwrap();
    assert_eq!(
        String::from_utf8_lossy(&plain.stdout),
        String::from_utf8_lossy(&sandboxed.stdout)
    );
    let sleeper = sh("sleep 1000 & echo $!; wait")
        .cwd(dir.path())
        .policy(covered(dir.path(), Policy::open()));
    let child = spawner().spawn(sleeper).await.unwrap();
    let pid = child.pid();
    child.kill_tree();
    drop(child);
    super::vanishes(pid).await;
}

/// A working directory that is itself hidden would still be the uncovered one.
#[tokio::test]
async fn a_hidden_working_directory_is_left() {
    if !has_views() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let spec = sh("cat id; ls").cwd(dir.path().join("keys"));
    // A user who may not enter the empty folder cannot start at all.
    if let Ok(output) = output(spec.policy(covered(dir.path(), Policy::open()))).await {
        assert!(!String::from_utf8_lossy(&output.stdout).contains(SECRET));
        assert_eq!(String::from_utf8_lossy(&output.stdout), "");
    }
}
