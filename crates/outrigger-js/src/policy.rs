//! The sandbox of a plugin process.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use outrigger_sandbox::Policy;

/// Devices that create a terminal, for plugins that start one (`opencode-pty`).
const TERMINALS: [&str; 1] = ["/dev/ptmx"];

/// Returns the sandbox of a plugin process. Readable: system folders, devices, the plugins' folders and the folders
/// with their `node_modules`. Writable: the project and the private folder (its HOME, XDG folders and TMPDIR). It may
/// bind TCP port 0 only, since plugins start servers on loopback; connecting is not restricted.
///
/// `runtime` is the program that runs it, `plugin_folders` are the folders of the entries (or the entries themselves),
/// and the folder of the shared modules, if there is one.
#[must_use]
pub fn default_policy(
    runtime: &Path,
    directory: &Path,
    plugin_folders: &[PathBuf],
    private: &Path,
) -> Policy {
    let mut policy = Policy::system().write(directory).write(private);
    // Only names: the folder also contains the machine's disks and other users' terminals.
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
        // Rules apply to the target of a path, so a linked plugin needs its real path too, with its own modules.
        let real = std::fs::canonicalize(folder)
            .ok()
            .filter(|real| real != folder);
        for place in [Some(folder.clone()), real].into_iter().flatten() {
            // Bun finds a `node_modules` by its name in the listing of the parent folder.
            policy.list.extend(homes_of_modules(&place));
            policy.read.extend(modules_of(&place));
            // It also finds a file by its name in the listing of its folder.
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

/// Returns the `node_modules` folders that serve a module at `place`: those that contain it, and those next to its
/// ancestors. Only the `node_modules` is opened, never the ancestor (which may be the user's home).
fn modules_of(place: &Path) -> Vec<PathBuf> {
    let inside = place
        .ancestors()
        .filter(|folder| folder.file_name() == Some(OsStr::new("node_modules")));
    let beside = place
        .ancestors()
        .map(|folder| folder.join("node_modules"))
        .filter(|modules| modules.is_dir());
    // The package file next to the outermost one marks the root of the plugin's project for a runtime.
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
    // The root and its children are not a package's home, and their names are shared by all.
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
            paths
                .iter()
                .filter_map(|path| path.strip_prefix(&root).ok())
                .map(|path| path.display().to_string())
                .collect()
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
