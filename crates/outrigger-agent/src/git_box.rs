//! The box in which this program runs git. A repository names programs in its own files (filters, monitors, signing), and
//! whoever can write there, a plugin or a command of the model, would have them run by us (issue 5, item 5).

use std::fs;
use std::path::{Path, PathBuf};

use outrigger_sandbox::covers::Kept;
use outrigger_sandbox::{Calls, Policy};

use crate::project::Place;

/// Files of the user's that git reads: they were written by the user, and cannot be changed from in here.
const OF_THE_USER: [&str; 4] = [
    ".gitconfig",
    ".config/git",
    ".gitignore",
    ".gitignore_global",
];

/// What git may touch: the repository and the project, to read and, since filters keep things there, to write; nothing else
/// of the machine but its programs, and no network. `kept` is kept from it besides.
pub(crate) fn policy(place: &Place, home: &Path, kept: Kept) -> Policy {
    let mut policy = Policy::system();
    for folder in [&place.directory, &place.worktree] {
        policy.write.push(folder.clone());
    }
    policy.write.extend(stores(&place.worktree));
    policy.read.extend(OF_THE_USER.map(|name| home.join(name)));
    policy.bind_tcp = Some(Vec::new());
    policy.connect_tcp = Some(Vec::new());
    policy.calls = Some(Calls::default());
    policy.kept = kept;
    policy
}

/// Where a linked worktree or a submodule has its repository: `.git` is a file that names it.
fn stores(worktree: &Path) -> Vec<PathBuf> {
    let Ok(text) = fs::read_to_string(worktree.join(".git")) else {
        return Vec::new();
    };
    let named = text.lines().find_map(|line| line.strip_prefix("gitdir:"));
    let Some(own) = named.and_then(|it| worktree.join(it.trim()).canonicalize().ok()) else {
        return Vec::new();
    };
    // `../main/.git/worktrees/NAME` belongs to `../main/.git`. A name that is not of that form is no store of git's.
    let is_store = |folder: &Path| folder.join("HEAD").is_file() && folder.join("objects").is_dir();
    let all = own.ancestors().take(3).find(|folder| is_store(folder));
    all.map(Path::to_path_buf).into_iter().collect()
}

/// What git is not to do in any repository: start programs that fetch what lies elsewhere, and ask.
pub(crate) const NO_PROGRAMS: [(&str, &str); 2] =
    [("GIT_NO_LAZY_FETCH", "1"), ("GIT_TERMINAL_PROMPT", "0")];

/// Variables that keep git from reading a file of the user's that leads it to others, which it could not open.
pub(crate) fn variables(home: &Path) -> Option<(&'static str, &'static str)> {
    let leads_on = |name: &str| {
        let text = fs::read_to_string(home.join(name)).unwrap_or_default();
        text.to_ascii_lowercase().contains("[include")
    };
    let leads_on = leads_on(".gitconfig") || leads_on(".config/git/config");
    leads_on.then_some(("GIT_CONFIG_GLOBAL", "/dev/null"))
}

#[cfg(test)]
mod tests {
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
            "home",
        ] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        fs::write(at("main/.git/HEAD"), "").unwrap();
        fs::write(at("side/.git"), "gitdir: ../main/.git/worktrees/side\n").unwrap();
        fs::write(at("forged/.git"), "gitdir: ../home\n").unwrap();
        for (worktree, want) in [
            ("side", vec![at("main/.git")]),
            ("main", vec![]),
            ("plain", vec![]),
            ("forged", vec![]),
            ("none", vec![]),
        ] {
            assert_eq!(stores(&at(worktree)), want, "{worktree}");
        }
        assert_eq!(variables(&at("home")), None);
        fs::write(at("home/.gitconfig"), "[includeIf \"x\"]\n").unwrap();
        assert!(variables(&at("home")).is_some());
    }
}
