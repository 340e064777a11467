//! The sandbox of a plugin process (architecture, section 5).

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use outrigger_sandbox::Policy;

/// What makes a terminal, for plugins that start one (`opencode-pty`).
const TERMINALS: [&str; 1] = ["/dev/ptmx"];

/// What a plugin process may touch: system folders, devices, the plugins' folders and the folders that hold their
/// `node_modules` are read; the project and the private folder (its HOME, XDG folders and TMPDIR) are written. It may
/// bind TCP port 0 only, since plugins open servers of their own on loopback; connecting is not restricted.
///
/// `runtime` is the program that runs it, `plugin_folders` are the folders of the entries (or the entries themselves),
/// and the folder of the shared modules, when there is one.
#[must_use]
pub fn default_policy(
    runtime: &Path,
    directory: &Path,
    plugin_folders: &[PathBuf],
    private: &Path,
) -> Policy {
    let mut policy = Policy::system().write(directory).write(private);
    // Their names; what stands there is the machine's disks and the terminals of others, too.
    policy.list.push(PathBuf::from("/dev"));
    policy.own_terminals = true;
    policy.bind_tcp = Some(vec![0]);
    policy.write.extend(TERMINALS.map(PathBuf::from));
    let real = std::fs::canonicalize(runtime).ok();
    let programs = [Some(runtime), real.as_deref()];
    policy.read.extend(
        programs
            .into_iter()
            .flatten()
            .filter_map(Path::parent)
            .map(Path::to_path_buf),
    );
    for folder in plugin_folders {
        // Rules are about what a path leads to, so a linked plugin needs its real place too, with its own modules.
        let real = std::fs::canonicalize(folder)
            .ok()
            .filter(|real| real != folder);
        for place in [Some(folder.clone()), real].into_iter().flatten() {
            // Bun finds a `node_modules` by its name in the listing of the folder around it.
            policy.list.extend(homes_of_modules(&place));
            policy.read.extend(modules_of(&place));
            // It finds a file by its name in the listing of its folder, too.
            if place.is_file() {
                policy.list.extend(place.parent().map(Path::to_path_buf));
            }
            policy.read.push(place);
        }
    }
    policy.list.sort();
    policy.list.dedup();
    policy.read.sort();
    policy.read.dedup();
    policy
}

/// The folders whose `node_modules` serve a module at `place`: those it lies in, and those that stand beside its
/// ancestors. Only the `node_modules` is opened, never the ancestor (which may be the user's home).
fn modules_of(place: &Path) -> Vec<PathBuf> {
    let inside = place
        .ancestors()
        .filter(|folder| folder.file_name() == Some(OsStr::new("node_modules")));
    let beside = place
        .ancestors()
        .map(|folder| folder.join("node_modules"))
        .filter(|modules| modules.is_dir());
    // The package file beside the outermost one tells a runtime where the project of the plugin begins.
    let manifest = place
        .ancestors()
        .map(|folder| folder.join("package.json"))
        .filter(|file| file.is_file());
    inside
        .map(Path::to_path_buf)
        .chain(beside)
        .chain(manifest)
        .collect()
}

fn homes_of_modules(place: &Path) -> impl Iterator<Item = PathBuf> {
    // The root and its children are no package's home, and the names below them are everybody's.
    let home =
        |folder: &&Path| folder.components().count() > 2 && folder.join("node_modules").is_dir();
    place.ancestors().filter(home).map(Path::to_path_buf)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_a_plugin_may_touch() {
        let root = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(root.path()).unwrap();
        let plugin = root.join("cache/node_modules/acme");
        let local = root.join("home/.opencode/plugin");
        for folder in [
            &plugin,
            &local,
            &root.join("home/.opencode/node_modules"),
            &root.join("bin"),
            &root.join("real"),
        ] {
            fs::create_dir_all(folder).unwrap();
        }
        fs::write(root.join("real/bun"), "").unwrap();
        std::os::unix::fs::symlink(root.join("real/bun"), root.join("bin/bun")).unwrap();

        let (project, private) = (root.join("project"), root.join("private"));
        let policy = default_policy(&root.join("bin/bun"), &project, &[plugin, local], &private);
        let under_root = |paths: &[PathBuf]| -> Vec<String> {
            let inside = paths
                .iter()
                .filter_map(|path| path.strip_prefix(&root).ok());
            inside.map(|path| path.display().to_string()).collect()
        };
        insta::assert_snapshot!(under_root(&policy.read).join("\n"), @r"
        bin
        cache/node_modules
        cache/node_modules/acme
        home/.opencode/node_modules
        home/.opencode/plugin
        real
        ");
        assert_eq!(under_root(&policy.write), ["project", "private"]);
        assert_eq!((policy.bind_tcp, policy.connect_tcp), (Some(vec![0]), None));
    }
}
