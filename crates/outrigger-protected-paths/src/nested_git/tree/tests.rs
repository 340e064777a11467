//! What is kept is what a walk finds, whatever was done to the folders.

use std::os::unix::fs::symlink;
use std::thread::sleep;
use std::time::Duration;

use super::super::walk::{Extent, walk};
use super::*;

/// What is found: repositories, and files that make something run later.
fn shown(walked: Walked) -> (Vec<PathBuf>, Vec<PathBuf>) {
    let repositories = walked.repositories.into_iter();
    let mut found = (repositories.map(|it| it.folder).collect(), walked.startup);
    let (repositories, startup): &mut (Vec<PathBuf>, Vec<PathBuf>) = &mut found;
    repositories.sort();
    startup.sort();
    found
}

fn project(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    write(&root, files);
    (dir, root)
}

fn write(root: &Path, files: &[&str]) {
    for file in files {
        let path = root.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
}

const FILES: [&str; 9] = [
    ".vscode/tasks.json",
    "a/.vscode/tasks.json",
    "a/b/c/file",
    "a/own/.git/config",
    "bare/HEAD",
    "node_modules/x/package.json",
    "node_modules/x/y/.envrc",
    "other/b/c/.envrc",
    "target/debug/file",
];

/// By reports, and by times.
fn both(root: &Path) -> [Tree; 2] {
    [Some(Watches::new().unwrap()), None]
        .map(|watches| Tree::read_by(root, watches, [MAX_FOLDERS; 2]).ok().unwrap())
}

fn refreshed(tree: &mut Tree, root: &Path) {
    if tree.refresh().is_err() {
        *tree = Tree::read(root).ok().unwrap();
    }
}

type Change = (&'static str, fn(&Path));

const CHANGES: [Change; 15] = [
    ("a file", |root| write(root, &["a/b/.envrc"])),
    ("a folder", |root| {
        write(root, &["new/d/.vscode/tasks.json"])
    }),
    ("one that is moved in with all", |root| {
        write(
            root,
            &[
                "target/debug/deep/x/.envrc",
                "target/debug/deep/x/.git/config",
            ],
        );
        fs::rename(root.join("target/debug/deep"), root.join("a/deep")).unwrap();
    }),
    ("two that change places", |root| {
        let at = |name: &str| root.join(name);
        fs::rename(at("a/b"), at("aside")).unwrap();
        fs::rename(at("other/b"), at("a/b")).unwrap();
        fs::rename(at("aside"), at("other/b")).unwrap();
    }),
    ("one that is moved and changed", |root| {
        fs::rename(root.join("other/b"), root.join("moved")).unwrap();
        write(root, &["moved/c/mise.toml", "moved/q/.git/config"]);
    }),
    ("one that went and came again", |root| {
        fs::remove_dir_all(root.join("other")).unwrap();
        write(root, &["other/b/c/.exrc"]);
    }),
    ("one that is a link now", |root| {
        fs::rename(root.join("a/own"), root.join("elsewhere")).unwrap();
        symlink(root.join("elsewhere"), root.join("a/own")).unwrap();
        symlink("elsewhere", root.join("a/.zed")).unwrap();
    }),
    ("a repository of a package", |root| {
        write(root, &["node_modules/x/.git/config", "target/debug/HEAD"]);
    }),
    ("a link in the root", |root| {
        symlink("a", root.join(".idea")).unwrap()
    }),
    ("many", |root| {
        let all: Vec<String> = (0..300).map(|it| format!("many/{it}/.envrc")).collect();
        write(root, &all.iter().map(String::as_str).collect::<Vec<_>>());
    }),
    ("a time that is set back", |root| {
        let folder = root.join("a/b/c");
        let before = folder.metadata().unwrap().modified().unwrap();
        write(root, &["a/b/c/.nvimrc"]);
        let open = fs::File::open(folder).unwrap();
        open.set_modified(before).unwrap();
    }),
    ("a name of other bytes", |root| {
        use std::os::unix::ffi::OsStrExt as _;
        let name = std::ffi::OsStr::from_bytes(b"\xff\xfe");
        fs::create_dir(root.join("a").join(name)).unwrap();
        fs::write(root.join("a").join(name).join(".envrc"), "").unwrap();
    }),
    ("a folder that nobody may read for a while", |root| {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = |it| fs::set_permissions(root.join("a/b"), fs::Permissions::from_mode(it));
        mode(0o000).unwrap();
        mode(0o755).unwrap();
    }),
    ("one that is gone", |root| {
        fs::remove_dir_all(root.join("a")).unwrap()
    }),
    ("nothing", |_| {}),
];

#[test]
fn every_change_is_found() {
    let (_dir, root) = project(&FILES);
    // What has just changed is read again, whatever its time is.
    sleep(BEHIND + Duration::from_millis(100));
    let [mut reported, mut timed] = both(&root);
    let read = [reported.reads, timed.reads];
    for tree in [&mut reported, &mut timed] {
        refreshed(tree, &root);
    }
    assert_eq!([reported.reads, timed.reads], read, "nothing has changed");
    for (what, change) in CHANGES {
        change(&root);
        let want = shown(walk(&root, Extent::Worked));
        for (by, tree) in [("reports", &mut reported), ("times", &mut timed)] {
            refreshed(tree, &root);
            assert_eq!(shown(tree.found()), want, "{what} by {by}");
        }
    }
}

#[test]
fn reports_that_are_lost_are_made_up_for() {
    let (_dir, root) = project(&FILES);
    let [mut tree, _] = both(&root);
    for number in 0..20_000 {
        let path = root.join(format!("a/{number}"));
        fs::write(&path, "").unwrap();
        fs::remove_file(path).unwrap();
    }
    write(&root, &["other/new/.envrc"]);
    assert_eq!(tree.refresh(), Err(Unfit));
    refreshed(&mut tree, &root);
    let found = shown(tree.found());
    assert_eq!(found, shown(walk(&root, Extent::Worked)));
    assert!(found.1.contains(&PathBuf::from("other/new/.envrc")));
}

#[test]
fn the_project_itself_may_be_another_folder() {
    let (_dir, root) = project(&["p/a/.envrc"]);
    let at = root.join("p");
    assert_eq!(look(&at).unwrap().startup.len(), 1);
    fs::rename(&at, root.join("q")).unwrap();
    write(&root, &["p/b/.envrc", "p/c/.envrc"]);
    assert_eq!(look(&at).unwrap().startup.len(), 2);
}

#[test]
fn a_project_of_very_many_folders_is_walked() {
    let (_dir, root) = project(&FILES);
    let read = |max| Tree::read_by(&root, Some(Watches::new().unwrap()), [max; 2]);
    let folders = read(MAX_FOLDERS).ok().unwrap().folders.len();
    assert!(read(folders).is_ok());
    assert!(read(folders - 1).is_err());
    let mut full = read(folders).ok().unwrap();
    fs::create_dir(root.join("one-more")).unwrap();
    assert_eq!(full.refresh(), Err(Unfit));
}

/// Notes of settings know those of packages, too.
#[test]
fn what_packages_have_is_walked() {
    let (_dir, root) = project(&FILES);
    let mut want = walk(&root, Extent::All).startup;
    let mut found = super::super::startup_below(&root);
    want.sort();
    found.sort();
    assert!(want.contains(&PathBuf::from("node_modules/x/y/.envrc")));
    assert_eq!(found, want);
}

/// Folders that were read before there were watches are read behind them.
#[test]
fn many_folders_are_watched() {
    let (_dir, root) = project(&FILES);
    let mut tree = Tree::read_by(&root, None, [5, MAX_FOLDERS]).ok().unwrap();
    assert!(tree.watches.is_some());
    assert!(tree.folders.values().all(|it| it.watch.is_some()));
    let reads = tree.reads;
    assert_eq!((tree.refresh(), tree.reads), (Ok(()), reads));
    write(&root, &["a/b/c/.envrc", "new/.envrc"]);
    assert_eq!((tree.refresh(), tree.reads), (Ok(()), reads + 3));
    assert_eq!(shown(tree.found()), shown(walk(&root, Extent::Worked)));
}
