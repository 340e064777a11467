//! Checks paths that come from a plugin, a model or a client (invariant 11).
//!
//! [`resolve`] makes a path absolute. [`Roots::contains`] follows its symbolic links as the kernel would and returns the path
//! to open, or refuses. Open the *result*, never the input: what was checked is what is opened. Where a hostile process could
//! swap a folder for a link in between, open it with [`open_resolved`].

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Component, Path, PathBuf};

use outrigger_protocol::diagnose::Diagnose;
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat2};

/// The number of links that Linux follows before it returns `ELOOP`.
const MAX_LINKS: usize = 40;

/// A path that must not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PathError {
    /// The path points outside the roots.
    #[error("{} is outside the allowed folders{}", path.display(), via(path, resolved))]
    Outside {
        /// The path as given.
        path: PathBuf,
        /// The path it resolves to.
        resolved: PathBuf,
    },
    /// The path is not absolute.
    #[error("{} is not an absolute path", path.display())]
    Relative {
        /// The path as given.
        path: PathBuf,
    },
    /// The path contains a NUL byte.
    #[error("{} holds a NUL byte", path.display())]
    Nul {
        /// The path as given.
        path: PathBuf,
    },
    /// Too many symbolic links, most likely a cycle.
    #[error("{} has more than 40 symbolic links", path.display())]
    Loop {
        /// The path as given.
        path: PathBuf,
    },
    /// A folder on the way cannot be read, or is a file.
    #[error("cannot follow {} at {}: {source}", path.display(), at.display())]
    Io {
        /// The path as given.
        path: PathBuf,
        /// How far it could be followed.
        at: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

fn via(path: &Path, resolved: &Path) -> String {
    if path == resolved {
        String::new()
    } else {
        format!(" (it leads to {})", resolved.display())
    }
}

impl Diagnose for PathError {
    fn code(&self) -> &'static str {
        match self {
            Self::Outside { .. } => "path.outside",
            Self::Relative { .. } => "path.relative",
            Self::Nul { .. } => "path.nul",
            Self::Loop { .. } => "path.loop",
            Self::Io { .. } => "path.io",
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Outside { resolved, .. } => Some(format!(
                "allow {} or a folder above it, or use a path inside the project",
                resolved.display()
            )),
            Self::Relative { .. } => Some("give an absolute path".to_owned()),
            Self::Loop { .. } => Some("remove the circle of symbolic links".to_owned()),
            Self::Nul { .. } | Self::Io { .. } => None,
        }
    }
}

/// Makes `path` absolute relative to the folder `base` and removes `.` and `..`, by its text alone: links are not followed
/// and nothing needs to exist. For display and for matching rules; before anything is opened, [`Roots::contains`] decides.
#[must_use]
pub fn resolve(base: &Path, path: &Path) -> PathBuf {
    let mut resolved = PathBuf::from("/");
    for component in base.components().chain(path.components()) {
        match component {
            Component::RootDir => resolved = PathBuf::from("/"),
            Component::Normal(name) => resolved.push(name),
            Component::ParentDir => drop(resolved.pop()),
            Component::CurDir | Component::Prefix(_) => {}
        }
    }
    resolved
}

/// The folders (or files) that may be accessed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Roots(Vec<PathBuf>);

impl Roots {
    /// Resolves the links of the roots now. A root that does not exist yet is allowed under its future name; one that cannot
    /// be resolved at all allows nothing.
    pub fn new<I, P>(roots: I) -> Self
    where
        I: IntoIterator<Item = P>,
        P: AsRef<Path>,
    {
        Self(
            roots
                .into_iter()
                .filter_map(|root| follow(root.as_ref()).ok())
                .collect(),
        )
    }

    /// Takes roots that were found to have no links. A root that has become a link since is a different place and is not
    /// followed.
    pub fn found<I, P>(roots: I) -> Self
    where
        I: IntoIterator<Item = P>,
        P: AsRef<Path>,
    {
        Self(roots.into_iter().map(|it| it.as_ref().to_owned()).collect())
    }

    /// Returns the resolved roots.
    #[must_use]
    pub fn as_slice(&self) -> &[PathBuf] {
        &self.0
    }

    /// Returns the path to open for `path`, with all symbolic links followed and no `..` left, if it lies in one of the
    /// roots. If the path does not exist yet, the existing part is followed and the rest is kept unchanged. `..` after a link
    /// leaves the link's target, as in the kernel. A dangling link resolves to its target.
    ///
    /// # Errors
    /// A [`PathError`] if the path points elsewhere, is not absolute, or cannot be followed.
    pub fn contains(&self, path: impl AsRef<Path>) -> Result<PathBuf, PathError> {
        let path = path.as_ref();
        let resolved = follow(path)?;
        // Path::starts_with compares whole components: `/work` does not contain `/workshop`.
        if self.0.iter().any(|root| resolved.starts_with(root)) {
            Ok(resolved)
        } else {
            Err(PathError::Outside {
                path: path.to_owned(),
                resolved,
            })
        }
    }
}

/// Opens a path that [`Roots::contains`] returned and fails with `ELOOP` if a link has been put into it since. `create`
/// creates a missing file, not folders, with mode 0666 less the umask.
///
/// # Errors
/// The error of `openat2`.
pub fn open_resolved(path: &Path, write: bool, create: bool) -> io::Result<File> {
    let mut flags = if write { OFlags::RDWR } else { OFlags::RDONLY };
    // Do not wait for the writer of a pipe that replaced a file.
    flags |= OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    let mut mode = Mode::empty();
    if create {
        flags |= OFlags::CREATE;
        mode = Mode::from_raw_mode(0o666);
    }
    let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    Ok(File::from(openat2(CWD, path, flags, mode, links)?))
}

/// Returns whether something exists at a path without a link on the way.
#[must_use]
pub fn stands(path: &Path) -> bool {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let links = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    openat2(CWD, path, flags, Mode::empty(), links).is_ok()
}

/// Resolves an absolute path: follows its links name by name, as the kernel does, and keeps what does not exist unchanged.
/// Does not check who may access it; see [`Roots::contains`].
///
/// # Errors
/// A [`PathError`] if it is not absolute or cannot be followed.
pub fn follow(path: &Path) -> Result<PathBuf, PathError> {
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(PathError::Nul {
            path: path.to_owned(),
        });
    }
    if !path.is_absolute() {
        return Err(PathError::Relative {
            path: path.to_owned(),
        });
    }
    let mut ahead: VecDeque<OsString> = VecDeque::new();
    queue(&mut ahead, path);
    let mut reached = PathBuf::from("/");
    let mut links = 0;
    while let Some(name) = ahead.pop_front() {
        if name == ".." {
            reached.pop();
            continue;
        }
        let next = reached.join(&name);
        let io = |source| PathError::Io {
            path: path.to_owned(),
            at: next.clone(),
            source,
        };
        match fs::symlink_metadata(&next) {
            Ok(meta) if meta.is_symlink() => {
                links += 1;
                if links > MAX_LINKS {
                    return Err(PathError::Loop {
                        path: path.to_owned(),
                    });
                }
                let target = fs::read_link(&next).map_err(io)?;
                if target.is_absolute() {
                    reached = PathBuf::from("/");
                }
                queue(&mut ahead, &target);
            }
            Ok(_) => reached = next,
            Err(error) if error.kind() == io::ErrorKind::NotFound => reached = next,
            Err(error) => return Err(io(error)),
        }
    }
    Ok(reached)
}

/// Puts the components of `path` before those still to be processed.
fn queue(ahead: &mut VecDeque<OsString>, path: &Path) {
    for component in path.components().rev() {
        match component {
            Component::Normal(name) => ahead.push_front(name.to_owned()),
            Component::ParentDir => ahead.push_front("..".into()),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn resolve_is_lexical() {
        let cases = [
            ("/work", "a.txt", "/work/a.txt"),
            ("/work", "/etc/passwd", "/etc/passwd"),
            ("/work", "../etc/./passwd", "/etc/passwd"),
            ("/work/sub", "..", "/work"),
            ("/work", "../../../..", "/"),
            ("/work//a/", "./b//c/.", "/work/a/b/c"),
            ("/work", "", "/work"),
            ("work", "a", "/work/a"),
        ];
        for (base, path, expected) in cases {
            assert_eq!(
                resolve(Path::new(base), Path::new(path)),
                Path::new(expected),
                "{base} {path}"
            );
        }
    }

    /// `project` (the root) and `secret` next to it, with links of every kind.
    fn fixture() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        for folder in ["project/src/deep", "project-two", "secret"] {
            fs::create_dir_all(base.join(folder)).unwrap();
        }
        for file in [
            "project/a.txt",
            "project/src/b.txt",
            "secret/key",
            "project-two/c.txt",
        ] {
            fs::write(base.join(file), file).unwrap();
        }
        let links = [
            ("project/inner", "src"),
            ("project/out", "../secret"),
            ("project/out-file", "../secret/key"),
            ("project/dangling-out", "../secret/new"),
            ("project/dangling-in", "src/new"),
            ("project/loop-a", "loop-b"),
            ("project/loop-b", "loop-a"),
            ("project/self", "."),
            ("project/deep-link", "src/deep"),
            ("link-to-project", "project"),
        ];
        for (link, target) in links {
            symlink(target, base.join(link)).unwrap();
        }
        symlink(base.join("secret"), base.join("project/absolute-out")).unwrap();
        (dir, base)
    }

    #[test]
    fn contains_follows_links_and_refuses_what_leads_out() {
        let (_dir, base) = fixture();
        let roots = Roots::new([base.join("project")]);
        let cases = [
            ("project", Ok("project")),
            ("project/a.txt", Ok("project/a.txt")),
            ("project/./src/../a.txt", Ok("project/a.txt")),
            ("project/inner/b.txt", Ok("project/src/b.txt")),
            ("project/inner/new/file", Ok("project/src/new/file")),
            ("project/self/self/src", Ok("project/src")),
            ("project/dangling-in", Ok("project/src/new")),
            ("project/deep-link/../b.txt", Ok("project/src/b.txt")),
            ("project/new/../a.txt", Ok("project/a.txt")),
            ("link-to-project/a.txt", Ok("project/a.txt")),
            ("secret/../project/a.txt", Ok("project/a.txt")),
            ("project/../secret/key", Err("path.outside")),
            ("project/new/../../secret/key", Err("path.outside")),
            ("project-two/c.txt", Err("path.outside")),
            ("project/..", Err("path.outside")),
            ("project/out", Err("path.outside")),
            ("project/out/key", Err("path.outside")),
            ("project/out/new", Err("path.outside")),
            ("project/out-file", Err("path.outside")),
            ("project/dangling-out", Err("path.outside")),
            ("project/absolute-out/key", Err("path.outside")),
            ("project/inner/../../secret/key", Err("path.outside")),
            ("project/deep-link/../../../secret/key", Err("path.outside")),
            ("project/loop-a/x", Err("path.loop")),
            ("project/a.txt/x", Err("path.io")),
            ("project/nul\0", Err("path.nul")),
        ];
        for (path, expected) in cases {
            let found = roots
                .contains(base.join(path))
                .map_err(|error| error.code());
            assert_eq!(found, expected.map(|path| base.join(path)), "{path:?}");
        }
        assert_eq!(
            roots
                .contains("project/a.txt")
                .map_err(|error| error.code()),
            Err("path.relative")
        );
        assert_eq!(
            Roots::default()
                .contains(base.join("project"))
                .map_err(|e| e.code()),
            Err("path.outside")
        );
        assert!(Roots::new(["/"]).contains(base.join("secret")).is_ok());
    }

    #[test]
    fn a_root_is_taken_as_it_really_is() {
        let (_dir, base) = fixture();
        let roots = Roots::new([base.join("link-to-project"), base.join("later/on")]);
        assert_eq!(
            roots.as_slice(),
            [base.join("project"), base.join("later/on")]
        );
        assert!(roots.contains(base.join("later/on/file")).is_ok());
        assert!(roots.contains(base.join("later/file")).is_err());
    }

    #[test]
    fn the_message_says_where_a_link_leads() {
        let (_dir, base) = fixture();
        let error = Roots::new([base.join("project")])
            .contains(base.join("project/out/key"))
            .unwrap_err();
        let text = format!("{error}; {}", error.hint().unwrap())
            .replace(&base.display().to_string(), "BASE");
        assert_eq!(
            text,
            "BASE/project/out/key is outside the allowed folders (it leads to BASE/secret/key); \
             allow BASE/secret/key or a folder above it, or use a path inside the project"
        );
    }

    #[test]
    fn an_opened_path_has_no_links() {
        let (_dir, base) = fixture();
        let open = |path: &str| open_resolved(&base.join(path), false, false);
        assert!(open("project/a.txt").is_ok());
        for path in ["project/inner/b.txt", "project/out-file"] {
            assert_eq!(
                open(path).unwrap_err().raw_os_error(),
                Some(libc::ELOOP),
                "{path}"
            );
        }
        let new = base.join("project/new.txt");
        assert!(open_resolved(&new, true, false).is_err());
        assert!(open_resolved(&new, true, true).is_ok() && new.exists());
    }

    proptest! {
        /// The law: whatever the kernel can follow, we resolve to the same place, and a result is always in a root.
        #[test]
        fn agrees_with_the_kernel(names in prop::collection::vec(
            prop::sample::select(vec![
                "..", ".", "project", "project-two", "secret", "src", "deep", "inner", "out", "self", "deep-link", "a.txt",
                "b.txt", "key", "absolute-out", "link-to-project", "dangling-in", "loop-a", "new", "out-file",
            ]), 0..8,
        )) {
            let (_dir, base) = fixture();
            let path = names.iter().fold(base.clone(), |path, name| path.join(name));
            if let Ok(expected) = fs::canonicalize(&path) {
                prop_assert_eq!(follow(&path).unwrap(), expected);
            }
            if let Ok(inside) = Roots::new([base.join("project")]).contains(&path) {
                prop_assert!(inside.starts_with(base.join("project")));
                prop_assert!(!inside.components().any(|part| part == Component::ParentDir));
                if let Ok(real) = fs::canonicalize(&inside) {
                    prop_assert_eq!(real, inside);
                }
            }
        }
    }
}
