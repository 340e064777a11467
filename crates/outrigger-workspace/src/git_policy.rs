//! The sandbox in which this program runs git. A repository names programs in its own files (filters, monitors, signing). A plugin or a
//! command of the model that can write there could otherwise make us run them.

mod pipes;

use std::path::{Path, PathBuf};

use outrigger_sandbox::path_masks::CoverWalk;
use outrigger_sandbox::{Calls, Policy};

pub use self::pipes::watched;
use crate::project_location::ProjectLocation;

/// Files of the user that git reads: the user wrote them, and they cannot be changed from inside the sandbox.
const OF_THE_USER: [&str; 4] = [
    ".gitconfig",
    ".config/git",
    ".gitignore",
    ".gitignore_global",
];

/// Maximum bytes read of a repository's file.
const MAX_FILE_BYTES: u64 = 64 * 1024;

/// Git commands that change the project or its repository.
const WRITING: [&str; 3] = ["apply", "checkout", "init"];
/// Where git-lfs's filter stores data, in a repository's folder.
const KEPT_BY_FILTERS: &str = "lfs";

/// Git settings that keep it from starting the monitor, hooks, pager and `ssh` named in the files of a repository. They override
/// the repository's settings. Filters, external diffs, text conversions, merge drivers, aliases, editors, signing and credential
/// helpers have names of their own and are not covered.
const WITHOUT_PROGRAMS: [(&str, &str); 5] = [
    ("core.fsmonitor", "false"),
    ("core.hooksPath", "/dev/null"),
    ("core.pager", "cat"),
    ("core.sshCommand", "ssh"),
    ("safe.bareRepository", "explicit"),
];

/// Returns environment variables with which git starts none of the programs that a repository names as its monitor, hooks, pager
/// or `ssh`.
pub fn without_programs() -> impl Iterator<Item = (String, String)> {
    let count = WITHOUT_PROGRAMS.len().to_string();
    let count = [("GIT_CONFIG_COUNT".to_owned(), count)];
    let pairs = WITHOUT_PROGRAMS.iter().enumerate();
    let pairs = pairs.flat_map(|(at, (key, value))| {
        [
            (format!("GIT_CONFIG_KEY_{at}"), (*key).to_owned()),
            (format!("GIT_CONFIG_VALUE_{at}"), (*value).to_owned()),
        ]
    });
    let more = [("GIT_PAGER".to_owned(), "cat".to_owned())];
    count.into_iter().chain(pairs).chain(more)
}

/// Returns the sandbox for a git `command`: the repository and the project, writable if the command writes; otherwise only programs of
/// the machine, and no network. A filter that the repository names also runs in it, and may be a script of the project: it cannot change
/// what commands of the model cannot change (`.git/config`, hooks, `.envrc`). `kept` is masked in addition.
pub fn policy(location: &ProjectLocation, home: &Path, kept: CoverWalk, command: &str) -> Policy {
    let mut policy = Policy::system();
    let mut folders = stores(&location.worktree);
    let repositories = folders
        .iter()
        .cloned()
        .chain([location.worktree.join(".git")]);
    let by_filters: Vec<PathBuf> = repositories.map(|it| it.join(KEPT_BY_FILTERS)).collect();
    folders.extend([&location.directory, &location.worktree].map(Clone::clone));
    if WRITING.contains(&command) {
        policy.write.extend(folders)
    } else {
        policy.read.extend(folders);
        policy.write.extend(by_filters);
    }
    policy.read.extend(OF_THE_USER.map(|name| home.join(name)));
    policy.bind_tcp = Some(Vec::new());
    policy.connect_tcp = Some(Vec::new());
    policy.calls = Some(Calls::default());
    policy.kept = kept;
    policy
}

/// Returns what git reads outside a project: the user's settings, and the repository if it is elsewhere. Reads the disk.
pub fn reads(location: &ProjectLocation, home: &Path) -> impl Iterator<Item = PathBuf> {
    let users = OF_THE_USER.map(|name| home.join(name));
    stores(&location.worktree).into_iter().chain(users)
}

/// Returns the repository of a linked worktree or a submodule: `.git` is a file that names it.
pub fn stores(worktree: &Path) -> Vec<PathBuf> {
    let text = small(&worktree.join(".git"));
    let named = text.lines().find_map(|line| line.strip_prefix("gitdir:"));
    let Some(own) = named.and_then(|it| worktree.join(it.trim()).canonicalize().ok()) else {
        return Vec::new();
    };
    if !knows(&own, worktree) {
        return Vec::new();
    }
    // `../main/.git/worktrees/NAME` belongs to `../main/.git`. A name of another form is not a git repository.
    let is_store = |folder: &Path| folder.join("HEAD").is_file() && folder.join("objects").is_dir();
    own.ancestors()
        .take(3)
        .find(|folder| is_store(folder))
        .map(Path::to_path_buf)
        .into_iter()
        .collect()
}

/// Files of a repository that git always reads.
const READ_BY_GIT: [&str; 13] = [
    "HEAD",
    "config",
    "config.worktree",
    "commondir",
    "index",
    "packed-refs",
    "info/exclude",
    "info/attributes",
    "shallow",
    "objects/info/alternates",
    "objects/info/commit-graph",
    "objects/info/commit-graphs/commit-graph-chain",
    "objects/pack/multi-pack-index",
];

/// Files of the project itself that git reads.
const OF_THE_PROJECT: [&str; 3] = [".gitignore", ".gitattributes", ".gitmodules"];

/// Returns why git is not started in a worktree: a pipe or a device has replaced one of the repository's files, and git would wait for it
/// or read forever. Reads the disk.
pub fn unfit(worktree: &Path) -> Option<String> {
    let mut folders = stores(worktree);
    folders.push(worktree.join(".git"));
    let all = folders
        .iter()
        .flat_map(|git| READ_BY_GIT.map(|name| git.join(name)));
    let of_project = OF_THE_PROJECT.map(|name| worktree.join(name));
    let mut unfit = all.chain(of_project).filter_map(|path| {
        let error = outrigger_files::open(&path).err()?;
        let why = outrigger_files::FileError::of(&error)?.to_string();
        Some(format!("git is not started for {}: {why}", path.display()))
    });
    let known = || pipes::known(worktree).map(|pipe| pipes::waits_for(&pipe));
    unfit.next().or_else(known)
}

/// Returns whether the repository itself names this as its worktree. A process that can only write to the project cannot make the user's
/// other repositories do so.
fn knows(own: &Path, worktree: &Path) -> bool {
    let is = |named: &str, path: &Path| {
        let named = own.join(named.trim()).canonicalize();
        named.is_ok_and(|named| path.canonicalize().is_ok_and(|path| named == path))
    };
    let (linked, config) = (small(&own.join("gitdir")), small(&own.join("config")));
    let mut settings = config.lines().filter_map(|line| line.split_once('='));
    is(&linked, &worktree.join(".git"))
        || settings.any(|(name, value)| name.trim() == "worktree" && is(value, worktree))
}

/// Returns the content of a small regular file; empty for anything else. A process that can write to the project may have put a pipe
/// there, which must not block.
pub fn small(path: &Path) -> String {
    outrigger_files::read_to_string(path, MAX_FILE_BYTES).unwrap_or_default()
}

/// Settings that keep git from starting programs that fetch from elsewhere, and from asking.
pub const NO_PROGRAMS: [(&str, &str); 2] =
    [("GIT_NO_LAZY_FETCH", "1"), ("GIT_TERMINAL_PROMPT", "0")];

/// Returns variables that keep git from reading a user's file that refers to others, which it could not open.
pub fn variables(home: &Path) -> Option<(&'static str, &'static str)> {
    let leads_on = |name: &str| {
        let text = outrigger_files::read_to_string(&home.join(name), outrigger_files::SETTINGS)
            .unwrap_or_default();
        text.to_ascii_lowercase().contains("[include")
    };
    let leads_on = leads_on(".gitconfig") || leads_on(".config/git/config");
    leads_on.then_some(("GIT_CONFIG_GLOBAL", "/dev/null"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rustix::fs::Mode;

    use super::*;

    #[test]
    fn the_store_of_a_linked_worktree() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for folder in [
            "main/.git/objects",
            "main/.git/worktrees/side",
            "side",
            "plain/.git",
            "forged",
            "thief",
            "super/.git/modules/sub/objects",
            "super/sub",
            "home",
        ] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("main/.git/HEAD"), "").unwrap();
        fs::write(at("side/.git"), "gitdir: ../main/.git/worktrees/side\n").unwrap();
        let back = at("side/.git").display().to_string();
        for (file, text) in [
            ("main/.git/worktrees/side/gitdir", back.as_str()),
            ("forged/.git", "gitdir: ../home\n"),
            // The user's own, and unrelated to this folder.
            ("thief/.git", "gitdir: ../main/.git/worktrees/side\n"),
            ("super/.git/modules/sub/HEAD", ""),
            (
                "super/.git/modules/sub/config",
                "[core]\n\tworktree = ../../../sub\n",
            ),
            ("super/sub/.git", "gitdir: ../.git/modules/sub\n"),
        ] {
            fs::write(at(file), text).unwrap();
        }
        // Opening one of them for reading would wait for a writer.
        for (worktree, pipe) in [("waits", "evil/gitdir"), ("waits-too", "evil-too/config")] {
            let pipe = at(pipe);
            fs::create_dir_all(pipe.parent().unwrap()).unwrap();
            rustix::fs::mkfifoat(rustix::fs::CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
            fs::create_dir(at(worktree)).unwrap();
            let named = format!("gitdir: {}\n", pipe.parent().unwrap().display());
            fs::write(at(worktree).join(".git"), named).unwrap();
        }
        for (worktree, want) in [
            ("waits", vec![]),
            ("waits-too", vec![]),
            ("side", vec![at("main/.git")]),
            ("main", vec![]),
            ("plain", vec![]),
            ("forged", vec![]),
            ("thief", vec![]),
            ("super/sub", vec![at("super/.git/modules/sub")]),
            ("none", vec![]),
        ] {
            assert_eq!(stores(&at(worktree)), want, "{worktree}");
        }
        assert_eq!(variables(&at("home")), None);
        fs::write(at("home/.gitconfig"), "[includeIf \"x\"]\n").unwrap();
        assert!(variables(&at("home")).is_some());
    }
}
