//! The folder in which a server is started: the nearest one above a file that looks like a project's root.

use std::path::{Path, PathBuf};

/// The rule for finding a server's root.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Root {
    /// Always the working directory.
    Directory,
    /// The nearest folder with one of these, otherwise the working directory.
    Nearest(&'static [&'static str]),
    /// Like [`Root::Nearest`], unless one of the second list is found on the way: then the server does not apply.
    Unless(&'static [&'static str], &'static [&'static str]),
    /// The nearest folder with one of these; without one the server does not apply.
    Required(&'static [&'static str]),
    /// The nearest folder with one of the first list, otherwise like [`Root::Nearest`] with the second.
    Either(&'static [&'static str], &'static [&'static str]),
    /// The Cargo workspace, otherwise the crate.
    Cargo,
}

impl Root {
    /// Returns the root for a file; `None` if the server does not apply. The upward search ends at `directory`, as in
    /// OpenCode; a file outside has `directory` as its root.
    pub(crate) fn of(self, file: &Path, directory: &Path, worktree: &Path) -> Option<PathBuf> {
        let nearest = |names: &[&str]| nearest(file, directory, names);
        let here = || directory.to_path_buf();
        match self {
            Self::Directory => Some(here()),
            Self::Nearest(names) => Some(nearest(names).unwrap_or_else(here)),
            Self::Unless(names, not) if nearest(not).is_none() => {
                Some(nearest(names).unwrap_or_else(here))
            }
            Self::Unless(..) => None,
            Self::Required(names) => nearest(names),
            Self::Either(first, second) => Some(
                nearest(first)
                    .or_else(|| nearest(second))
                    .unwrap_or_else(here),
            ),
            Self::Cargo => {
                let package = nearest(&["Cargo.toml", "Cargo.lock"]).unwrap_or_else(here);
                let workspace = package
                    .ancestors()
                    .take_while(|dir| dir.starts_with(worktree))
                    .find(|dir| {
                        outrigger_files::read_to_string(
                            &dir.join("Cargo.toml"),
                            outrigger_files::SETTINGS,
                        )
                        .is_ok_and(|text| text.contains("[workspace]"))
                    })
                    .map(Path::to_path_buf);
                Some(workspace.unwrap_or(package))
            }
        }
    }
}

fn nearest(file: &Path, directory: &Path, names: &[&str]) -> Option<PathBuf> {
    let inside = file.starts_with(directory);
    file.ancestors()
        .skip(1)
        .take_while(|dir| inside && dir.starts_with(directory))
        .find(|dir| names.iter().any(|name| has(dir, name)))
        .map(Path::to_path_buf)
}

// A name, or `*.ext`.
fn has(folder: &Path, name: &str) -> bool {
    let Some(ending) = name.strip_prefix('*') else {
        return folder.join(name).exists();
    };
    std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.file_name())
        .any(|entry| entry.to_string_lossy().ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_by_table() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path();
        for file in [
            "w/package-lock.json",
            "w/app/deno.json",
            "w/app/src/a.ts",
            "w/lib/go.mod",
            "w/lib/deep/b.go",
            "w/rs/Cargo.toml",
            "w/rs/one/Cargo.toml",
            "w/rs/one/src/lib.rs",
            "w/tex/x.cabal",
            "w/tex/y.hs",
            "package.json",
        ] {
            let path = base.join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(
                path,
                if file == "w/rs/Cargo.toml" {
                    "[workspace]"
                } else {
                    ""
                },
            )
            .unwrap();
        }
        for (root, file, want) in [
            (Root::Directory, "w/lib/deep/b.go", Some("w")),
            (Root::Nearest(&["go.mod"]), "w/lib/deep/b.go", Some("w/lib")),
            (Root::Nearest(&["none"]), "w/lib/deep/b.go", Some("w")),
            (
                Root::Nearest(&["package.json"]),
                "w/lib/deep/b.go",
                Some("w"),
            ),
            (
                Root::Unless(&["package-lock.json"], &["deno.json"]),
                "w/app/src/a.ts",
                None,
            ),
            (
                Root::Unless(&["package-lock.json"], &["deno.json"]),
                "w/lib/b.ts",
                Some("w"),
            ),
            (
                Root::Required(&["deno.json"]),
                "w/app/src/a.ts",
                Some("w/app"),
            ),
            (Root::Required(&["deno.json"]), "w/lib/b.ts", None),
            (
                Root::Either(&["go.work"], &["go.mod"]),
                "w/lib/deep/b.go",
                Some("w/lib"),
            ),
            (Root::Cargo, "w/rs/one/src/lib.rs", Some("w/rs")),
            (Root::Nearest(&["*.cabal"]), "w/tex/y.hs", Some("w/tex")),
            (
                Root::Nearest(&["package.json"]),
                "elsewhere/a.ts",
                Some("w"),
            ),
        ] {
            let got = root.of(&base.join(file), &base.join("w"), &base.join("w"));
            assert_eq!(got, want.map(|want| base.join(want)), "{root:?} {file}");
        }
    }
}
