//! Repositories in `modules` of git's own folder. `git submodule update` takes one that is there under a submodule's name as it is, with its
//! settings and hooks, whether the index named it before or not.

use std::collections::{BTreeSet, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};

use super::repository::{Repository, common};
use super::walk::MAX_NAMES;

/// Linked worktrees whose submodules are looked at.
const MAX_WORKTREES: usize = 200;

/// What was found, and whether it is all.
pub(super) struct Modules {
    pub(super) repositories: Vec<Repository>,
    pub(super) is_whole: bool,
}

/// Those of repositories that lie in these folders, and of their linked worktrees. Their names may have slashes in them, and they may
/// lie in each other. Blocking.
pub(super) fn modules<'a>(worktree: &Path, stores: impl Iterator<Item = &'a PathBuf>) -> Modules {
    let mut waiting = VecDeque::new();
    for git in stores {
        waiting.push_back(git.join("modules"));
        let linked = fs::read_dir(git.join("worktrees"))
            .into_iter()
            .flatten()
            .flatten()
            .take(MAX_WORKTREES);
        waiting.extend(linked.map(|it| it.path().join("modules")));
    }
    let mut found = Modules {
        repositories: Vec::new(),
        is_whole: true,
    };
    let mut left = MAX_NAMES;
    while let Some(folder) = waiting.pop_front() {
        let is_link = folder.is_symlink();
        let is_repository = folder.join("HEAD").symlink_metadata().is_ok();
        if is_repository {
            found.repositories.extend(module(worktree, &folder));
        }
        // What git would find behind a link lies in the project, where it is found, or is moved aside with the link.
        let entries = fs::read_dir(&folder).into_iter().filter(|_| !is_link);
        for entry in entries.flatten().flatten() {
            if left == 0 {
                found.is_whole = false;
                return found;
            }
            left -= 1;
            let path = entry.path();
            let is_folder = entry
                .file_type()
                .is_ok_and(|it| it.is_dir() || it.is_symlink());
            if is_folder && !holds_objects(&path) {
                waiting.push_back(path);
            }
        }
    }
    found
}

/// `objects/ab` and `objects/pack`, as git makes them: many, and with no folders in them.
fn holds_objects(folder: &Path) -> bool {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let is_named = name == "pack" || name.len() == 2 && name.chars().all(|c| c.is_ascii_hexdigit());
    let lies_there = folder.parent().is_some_and(|it| it.ends_with("objects"));
    is_named && lies_there && folder.join("HEAD").symlink_metadata().is_err()
}

fn module(worktree: &Path, folder: &Path) -> Option<Repository> {
    let own = folder.canonicalize().ok()?;
    let mut stores: BTreeSet<PathBuf> = common(&own).into_iter().collect();
    stores.insert(own);
    let below = folder.strip_prefix(worktree).unwrap_or(folder);
    Some(Repository {
        folder: below.to_owned(),
        entry: folder.to_owned(),
        stores,
    })
}

#[cfg(test)]
mod tests {
    use super::super::NestedGit;
    use super::super::tests::{World, commit, git, set};
    use super::*;

    /// A repository under a submodule's name, whole or as a link, that runs something as soon as git looks into it.
    fn plant(world: &World, modules: &Path, name: &str) {
        let made = world.project.join("made");
        commit(&made);
        set(&made, "core.fsmonitor", &world.ran);
        let hook = made.join(".git/hooks/post-checkout");
        fs::create_dir_all(hook.parent().unwrap()).unwrap();
        fs::write(&hook, format!("#!/bin/sh\ntouch {}\n", world.ran.display())).unwrap();
        fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let _ = fs::remove_file(&world.ran);
        let head = git(&made, &["rev-parse", "HEAD"]);
        let at = modules.join(name);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        fs::rename(made.join(".git"), &at).unwrap();
        fs::remove_dir_all(&made).unwrap();
        let listed = format!("[submodule \"{name}\"]\n\tpath = evil\n\turl = ./nothing\n");
        fs::write(world.project.join(".gitmodules"), listed).unwrap();
        let link = format!("160000,{},evil", head.trim());
        git(
            &world.project,
            &["update-index", "--add", "--cacheinfo", &link],
        );
    }

    #[test]
    fn a_repository_in_the_place_of_a_submodules_runs_nothing() {
        let names = ["evil", "a/b/c", "a/modules/b", "a/objects/ab"];
        for (name, world) in names.into_iter().zip(World::several::<4>()) {
            let nested = NestedGit::before(&world.project).for_command();
            plant(&world, &world.project.join(".git/modules"), name);
            let report = nested.clear(true);
            assert!(
                report.iter().any(|it| it.contains(name)),
                "{name}: {report:?}"
            );
            git(&world.project, &["submodule", "update", "--init", "evil"]);
            git(&world.project, &["status"]);
            assert!(
                world.project.join("evil/.git").exists(),
                "{name}: git did not take it"
            );
            assert!(!world.ran.exists(), "{name}: {report:?}");
            assert_eq!(nested.clear(true), [""; 0], "{name}");
        }
    }

    /// Of a linked worktree, whose repository lies elsewhere, and by a link that leads out of the project.
    #[test]
    fn nor_does_one_of_a_linked_worktree_or_behind_a_link() {
        let [linked, link] = World::several::<2>();
        let tree = linked.project.parent().unwrap().join("tree");
        git(
            &linked.project,
            &["worktree", "add", "-q", &tree.display().to_string()],
        );
        for modules in ["modules", "worktrees/tree/modules"] {
            let nested = NestedGit::before(&tree).for_command();
            plant(&linked, &linked.project.join(".git").join(modules), "evil");
            let report = nested.clear(true);
            assert_eq!(report.len(), 2, "{modules}: {report:?}");
            let config = linked
                .project
                .join(".git")
                .join(modules)
                .join("evil/config");
            assert!(
                !fs::read_to_string(config).unwrap().contains("fsmonitor"),
                "{modules}"
            );
        }
        let nested = NestedGit::before(&link.project).for_command();
        let outside = link.project.parent().unwrap().join("outside");
        plant(&link, &outside, "evil");
        let modules = link.project.join(".git/modules");
        fs::create_dir_all(&modules).unwrap();
        std::os::unix::fs::symlink(outside.join("evil"), modules.join("evil")).unwrap();
        let report = nested.clear(true);
        assert!(
            report
                .iter()
                .any(|it| it.contains("leads out of the project")),
            "{report:?}"
        );
        assert!(!modules.join("evil").exists());
    }

    /// What the user has there, and what git makes of a submodule, stays.
    #[test]
    fn a_submodule_is_left_alone() {
        let [world] = World::several::<1>();
        let from = world.project.parent().unwrap().join("from");
        commit(&from);
        let nested = NestedGit::before(&world.project).for_command();
        let address = from.display().to_string();
        git(
            &world.project,
            &["submodule", "add", "--name", "x/y", &address, "sub"],
        );
        let config = world.project.join(".git/modules/x/y/config");
        let made = fs::read(&config).unwrap();
        assert_eq!(nested.clear(true), [""; 0]);
        assert_eq!(fs::read(&config).unwrap(), made);
        set(&world.project.join("sub"), "alias.mine", &world.ran);
        super::super::tests::settle();
        let nested = NestedGit::before(&world.project).for_command();
        let mine = fs::read(&config).unwrap();
        assert_eq!(nested.clear(true), [""; 0]);
        assert_eq!(fs::read(&config).unwrap(), mine);
    }
}
