//! Walks a folder without what .gitignore, .ignore and git's own lists exclude.
//!
//! The `ignore` crate opens those files itself and reads them whole, and a process that can write to a project can make one
//! of them a pipe or 3 GiB long. So its walker is set to read none of them, and they are read here, within limits. The rules
//! are the same: the files also apply in a folder that is not a repository; those of a folder take precedence over those of
//! the folders above it; and within a folder the order of precedence is `.ignore`, `.gitignore`, `info/exclude`, the user's
//! list.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, RwLock};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use ignore::{DirEntry, Match, WalkBuilder};
use outrigger_files::SETTINGS;
use outrigger_stdx::sync::{read, write};

/// Maximum number of patterns in a list. Each path is matched against all of them.
const MAX_LINES: usize = 10_000;

/// Returns a walk below `root` that includes hidden files and excludes `.git` and ignored files.
pub(crate) fn walk(root: &Path) -> WalkBuilder {
    let rules = Rules::above(root);
    let mut walk = WalkBuilder::new(root);
    walk.standard_filters(false);
    walk.filter_entry(move |entry| entry.depth() == 0 || rules.keeps(entry));
    walk
}

/// Returns the rules of the .gitignore and the .ignore of one folder.
pub(crate) fn of_folder(folder: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    for name in [".gitignore", ".ignore"] {
        add(&mut builder, &folder.join(name));
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}

/// The rules of the folders that a walk has reached. Several threads walk.
struct Rules {
    users: Gitignore,
    /// The root of the walk, and its rules.
    root: (PathBuf, Arc<Level>),
    /// The rules of each folder below.
    known: RwLock<HashMap<OsString, Arc<Level>>>,
}

/// The rules of one folder that has any, in order of precedence.
#[derive(Default)]
struct Level {
    kinds: [Rule; 3],
    above: Option<Arc<Level>>,
}

/// `None` if it excludes nothing.
type Rule = Option<Gitignore>;

impl Rules {
    fn above(root: &Path) -> Self {
        let mut above: Vec<&Path> = root.ancestors().skip(1).collect();
        above.reverse();
        let level = |level, folder: &&Path| Level::of(folder, level);
        let level = above.iter().fold(Arc::default(), level);
        Self {
            users: users(root),
            root: (root.to_owned(), Level::of(root, level)),
            known: RwLock::default(),
        }
    }

    /// Returns the rules of a folder, which the walk reached through the root.
    fn of(&self, folder: &Path) -> Arc<Level> {
        let known = read(&self.known).get(folder.as_os_str()).map(Arc::clone);
        if let Some(known) = known {
            return known;
        }
        let (root, of_root) = &self.root;
        let level = match folder.parent() {
            Some(above) if folder != root => Level::of(folder, self.of(above)),
            _ => Arc::clone(of_root),
        };
        write(&self.known).insert(folder.into(), Arc::clone(&level));
        level
    }

    fn keeps(&self, entry: &DirEntry) -> bool {
        let path = entry.path();
        let Some(folder) = path.parent().filter(|_| entry.file_name() != ".git") else {
            return false;
        };
        let level = self.of(folder);
        let is_folder = entry.file_type().is_some_and(|kind| kind.is_dir());
        let of_kind = |kind: usize| {
            let rules = level
                .upwards()
                .filter_map(|it| it.kinds.get(kind)?.as_ref());
            let mut said = rules.map(|rules| rules.matched(path, is_folder));
            said.find(|said| !said.is_none()).unwrap_or(Match::None)
        };
        let said = of_kind(0).or(of_kind(1)).or(of_kind(2));
        !said.or(self.users.matched(path, is_folder)).is_ignore()
    }
}

impl Level {
    /// Returns the rules of a folder whose parent has the rules `above`.
    fn of(folder: &Path, above: Arc<Self>) -> Arc<Self> {
        let [first, second] = [".ignore", ".gitignore"].map(|name| one(folder, &folder.join(name)));
        let third = exclude(folder).map_or_else(Gitignore::empty, |list| one(folder, &list));
        let kinds = [first, second, third].map(|rules| (!rules.is_empty()).then_some(rules));
        if kinds.iter().all(Option::is_none) {
            above
        } else {
            Arc::new(Self {
                kinds,
                above: Some(above),
            })
        }
    }

    /// Iterates over this level and those above it.
    fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |level| level.above.as_deref())
    }
}

/// Returns a repository's own list, in the folder that it shares with its other worktrees.
fn exclude(folder: &Path) -> Option<PathBuf> {
    let git = folder.join(".git");
    let kind = git.metadata().ok()?;
    if kind.is_dir() {
        return Some(git.join("info/exclude"));
    }
    let said = outrigger_files::read_to_string(&git, SETTINGS).ok()?;
    let own = folder.join(said.lines().next()?.strip_prefix("gitdir:")?.trim());
    let common = outrigger_files::read_to_string(&own.join("commondir"), SETTINGS).ok()?;
    Some(own.join(common.trim()).join("info/exclude"))
}

/// Returns the user's own list, which their git settings name.
fn users(root: &Path) -> Gitignore {
    let of_home = |name: &str| Some(PathBuf::from(std::env::var_os("HOME")?).join(name));
    let named = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let settings = [
        named("GIT_CONFIG_GLOBAL"),
        named("GIT_CONFIG_SYSTEM"),
        of_home(".gitconfig"),
        named("XDG_CONFIG_HOME").map_or_else(
            || of_home(".config/git/config"),
            |folder| Some(folder.join("git/config")),
        ),
        Some("/etc/gitconfig".into()),
    ];
    // The crate reads these whole.
    let fits = |file: &PathBuf| {
        let meta = file.metadata();
        meta.map_or(true, |meta| meta.is_file() && meta.len() <= SETTINGS)
    };
    if !settings.iter().flatten().all(fits) {
        return Gitignore::empty();
    }
    let list = ignore::gitignore::gitconfig_excludes_path();
    list.map_or_else(Gitignore::empty, |list| one(root, &list))
}

fn one(folder: &Path, list: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(folder);
    if add(&mut builder, list) {
        builder.build().unwrap_or_else(|_| Gitignore::empty())
    } else {
        Gitignore::empty()
    }
}

/// Adds the lines of a list, if it exists; a line that cannot be used is skipped, and something that is not a file is taken
/// as empty.
fn add(builder: &mut GitignoreBuilder, list: &Path) -> bool {
    let text = match outrigger_files::read(list, SETTINGS) {
        Ok(text) => text,
        Err(error) => {
            if outrigger_files::FileError::of(&error).is_some() {
                tracing::warn!("[search] {} is not read: {error}", list.display());
            }
            return false;
        }
    };
    let text = String::from_utf8_lossy(&text);
    let lines = text.trim_start_matches('\u{feff}').lines();
    let (mut usable, mut refused) = (0, 0);
    for line in lines.filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        if usable == MAX_LINES || outrigger_files::check_pattern(line).is_err() {
            refused += 1;
            continue;
        }
        usable += 1;
        // Returns the error of a line, if any.
        drop(builder.add_line(Some(list.to_owned()), line));
    }
    if refused > 0 {
        tracing::warn!(
            "[search] {refused} lines of {} are not used: at most {MAX_LINES} are, of at most {} bytes, with braces nested at \
             most {} deep",
            list.display(),
            outrigger_files::MAX_PATTERN,
            outrigger_files::MAX_BRACES,
        );
    }
    true
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::time::{Duration, Instant};

    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    fn make(root: &Path, files: &[(&str, &str)]) {
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn found(walk: &WalkBuilder, root: &Path) -> Vec<String> {
        let entries = walk.build().map(Result::unwrap);
        let files = entries.filter(|entry| entry.file_type().unwrap().is_file());
        let path = |entry: DirEntry| {
            entry
                .path()
                .strip_prefix(root)
                .unwrap()
                .display()
                .to_string()
        };
        let mut all: Vec<String> = files.map(path).collect();
        all.sort();
        all
    }

    /// Excludes exactly what the crate itself excludes.
    #[test]
    fn it_holds_what_the_crate_holds() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        make(
            &root,
            &[
                (
                    ".gitignore",
                    "\u{feff}*.log\n/only-here\nbuild/\n# x\n[\n!kept.log\n",
                ),
                (".ignore", "!shown.log\n"),
                (".git/info/exclude", "private\n"),
                (".git/HEAD", "x"),
                ("a.log", ""),
                ("kept.log", ""),
                ("shown.log", ""),
                ("only-here", ""),
                ("sub/only-here", ""),
                ("sub/private", ""),
                ("sub/build/x", ""),
                ("sub/build2/x", ""),
                ("sub/.gitignore", "!a.log\ninner/*\n!inner/y\n"),
                ("sub/a.log", ""),
                ("sub/deep/a.log", ""),
                ("sub/inner/x", ""),
                ("sub/inner/y", ""),
                ("sub/nested/.git/info/exclude", "z\n"),
                ("sub/nested/z", ""),
                ("sub/nested/b.log", ""),
                ("linked/.git", "gitdir: ../.git/worktrees/l\n"),
                (".git/worktrees/l/commondir", "../..\n"),
                ("linked/private", ""),
                (".hidden", ""),
            ],
        );
        let below = |folder: PathBuf| {
            let mut theirs = WalkBuilder::new(&folder);
            theirs.hidden(false).require_git(false);
            theirs.filter_entry(|entry| entry.depth() == 0 || entry.file_name() != ".git");
            let ours = found(&walk(&folder), &folder);
            assert_eq!(ours, found(&theirs, &folder), "{}", folder.display());
            ours
        };
        assert!(below(root.clone()).contains(&"sub/deep/a.log".to_owned()));
        for folder in ["sub", "sub/deep", "sub/inner", "sub/nested", "linked"] {
            below(root.join(folder));
        }
    }

    #[test]
    fn lines_that_would_overflow_the_stack_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let nested = format!("{}a{}", "{".repeat(100_000), "}".repeat(100_000));
        let list = format!("{nested}\nleft-out\n");
        make(
            dir.path(),
            &[(".gitignore", &list), ("left-out", ""), ("a", "")],
        );
        assert_eq!(found(&walk(dir.path()), dir.path()), [".gitignore", "a"]);
        let many = "x\n".repeat(MAX_LINES) + "kept\n";
        make(dir.path(), &[(".gitignore", &many), ("kept", "")]);
        assert!(found(&walk(dir.path()), dir.path()).contains(&"kept".to_owned()));
    }

    #[test]
    fn a_list_that_is_a_pipe_or_huge_stops_no_search() {
        for name in [
            ".gitignore",
            ".ignore",
            "sub/.gitignore",
            ".git/info/exclude",
            ".git",
        ] {
            for kind in ["pipe", "sparse", "folder", "zero"] {
                let dir = tempfile::tempdir().unwrap();
                make(dir.path(), &[("sub/file", ""), ("file", "")]);
                let at = dir.path().join(name);
                fs::create_dir_all(at.parent().unwrap()).unwrap();
                match kind {
                    "pipe" => mknodat(CWD, &at, FileType::Fifo, Mode::RUSR, 0).unwrap(),
                    "sparse" => File::create(&at).unwrap().set_len(3 << 30).unwrap(),
                    "folder" => fs::create_dir(&at).unwrap(),
                    _ => std::os::unix::fs::symlink("/dev/zero", &at).unwrap(),
                }
                let began = Instant::now();
                let files = found(&walk(dir.path()), dir.path());
                assert!(files.contains(&"sub/file".to_owned()), "{name} {kind}");
                drop(of_folder(dir.path()));
                assert!(began.elapsed() < Duration::from_secs(30), "{name} {kind}");
            }
        }
    }
}
