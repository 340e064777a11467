//! Paths: `~`, relative ones, parent folders, files below a folder, `file://` URLs. Read-only.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outrigger_stdx::path::normalize;

/// Maximum depth of files below a config folder. Real ones have three or four levels.
const MAX_DEPTH: usize = 32;
/// Maximum number of folders read below one of them: a link to `/proc` or `/` would include the whole machine.
const MAX_FOLDERS: usize = 1000;

/// Returns an absolute path: `~` is the home folder, a relative one starts at `folder`; `.` and `..` are resolved
/// lexically.
pub(crate) fn expand(path: &str, folder: &Path, home: &Path) -> PathBuf {
    if path == "~" {
        return home.to_owned();
    }
    match path.strip_prefix("~/") {
        Some(rest) => normalize(&home.join(rest)),
        None => normalize(&folder.join(path)),
    }
}

/// Returns `start` and the folders above it, up to and including `stop`; up to the root if `stop` is not above it.
pub(crate) fn upwards(start: &Path, stop: &Path) -> Vec<PathBuf> {
    let mut out = Vec::new();
    for folder in start.ancestors() {
        out.push(folder.to_owned());
        if folder == stop {
            break;
        }
    }
    out
}

/// Returns the `file://` URL of an absolute path, escaped as `pathToFileURL` of Node and Bun does.
pub(crate) fn file_url(path: &Path) -> String {
    let mut url = String::from("file://");
    for byte in path.as_os_str().as_encoded_bytes() {
        // The URL standard's path set, plus the `%` and `\` that Node and Bun escape.
        let escaped = matches!(
            byte,
            b'"' | b'#' | b'<' | b'>' | b'?' | b'`' | b'{' | b'}' | b'^' | b'%' | b'\\'
        );
        if byte.is_ascii_graphic() && !escaped {
            url.push(char::from(*byte));
        } else {
            url.push_str(&format!("%{byte:02X}"));
        }
    }
    url
}

/// Returns the path of a `file://` URL, if it is a local one.
pub(crate) fn from_file_url(url: &str) -> Option<PathBuf> {
    let rest = url.strip_prefix("file://")?;
    let rest = rest.strip_prefix("localhost").unwrap_or(rest);
    if !rest.starts_with('/') {
        return None;
    }
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let bytes: Vec<u8> = percent_encoding::percent_decode_str(rest).collect();
    String::from_utf8(bytes).ok().map(PathBuf::from)
}

/// Returns files below `root` that `wanted` accepts, sorted by path. Symbolic links are followed, cycles are not. A
/// missing or unreadable folder has no files, as in OpenCode.
pub(crate) fn files_below(
    root: &Path,
    recursive: bool,
    wanted: &dyn Fn(&Path) -> bool,
) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut seen = BTreeSet::new();
    collect(
        root,
        if recursive { MAX_DEPTH } else { 0 },
        wanted,
        &mut seen,
        &mut found,
    );
    found.sort();
    found
}

fn collect(
    folder: &Path,
    depth: usize,
    wanted: &dyn Fn(&Path) -> bool,
    seen: &mut BTreeSet<PathBuf>,
    found: &mut Vec<PathBuf>,
) {
    let Ok(canonical) = folder.canonicalize() else {
        return;
    };
    if seen.len() >= MAX_FOLDERS || !seen.insert(canonical) {
        return;
    }
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        let Ok(meta) = std::fs::metadata(&path) else {
            continue;
        };
        if meta.is_dir() && depth > 0 {
            collect(&path, depth - 1, wanted, seen, found);
        } else if meta.is_file() && wanted(&path) {
            found.push(path);
        }
    }
}

/// Returns whether the file's name ends in one of these extensions, compared as written.
pub(crate) fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .and_then(|e| e.to_str())
        .is_some_and(|e| extensions.contains(&e))
}

/// Returns the text of an operating system error, without its number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".into(),
        std::io::ErrorKind::PermissionDenied => "permission denied".into(),
        std::io::ErrorKind::IsADirectory => "it is a folder".into(),
        std::io::ErrorKind::InvalidData => "it is not UTF-8 text".into(),
        _ => error.to_string(),
    }
}

/// Reads a file; `None` when there is none.
///
/// # Errors
/// `config.read` when it is there but cannot be read, or is not a regular file of at most [`outrigger_files::SETTINGS`].
pub(crate) fn read(path: &Path) -> Result<Option<String>, crate::ConfigError> {
    text(path).map_err(|error| unreadable(path, &error))
}

/// Reads a file that keeps nobody from starting: one that is a pipe, a device or a folder, or is too large, is reported
/// and counts as missing.
///
/// # Errors
/// `config.read` when it is a file of a fitting size and cannot be read.
pub(crate) fn read_if_fit(
    path: &Path,
    problems: &mut Vec<crate::ConfigProblem>,
) -> Result<Option<String>, crate::ConfigError> {
    match text(path) {
        Err(error)
            if error.kind() == std::io::ErrorKind::IsADirectory
                || outrigger_files::FileError::of(&error).is_some() =>
        {
            problems.push(crate::ConfigProblem {
                file: path.display().to_string(),
                pointer: None,
                message: format!("left out: {}", reason(&error)),
            });
            Ok(None)
        }
        Ok(text) => Ok(text),
        Err(error) => Err(unreadable(path, &error)),
    }
}

fn unreadable(path: &Path, error: &std::io::Error) -> crate::ConfigError {
    crate::ConfigError::Read {
        file: path.display().to_string(),
        reason: reason(error),
    }
}

fn text(path: &Path) -> std::io::Result<Option<String>> {
    match outrigger_files::read_to_string(path, outrigger_files::SETTINGS) {
        Ok(text) => Ok(Some(text)),
        // A file in place of a folder (`NotADirectory`) counts as a missing file.
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory
            ) =>
        {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expands() {
        for (path, expected) in [
            ("x", "/f/x"),
            ("./x", "/f/x"),
            ("../x", "/x"),
            ("/a/./b/../c", "/a/c"),
            ("~/x", "/h/x"),
            ("~", "/h"),
            ("~x", "/f/~x"),
        ] {
            assert_eq!(
                expand(path, Path::new("/f"), Path::new("/h")),
                Path::new(expected),
                "{path}"
            );
        }
    }

    #[test]
    fn goes_upwards() {
        let up = |start: &str, stop: &str| upwards(Path::new(start), Path::new(stop));
        assert_eq!(
            up("/a/b/c", "/a"),
            ["/a/b/c", "/a/b", "/a"].map(PathBuf::from)
        );
        assert_eq!(up("/a", "/a"), [PathBuf::from("/a")]);
        assert_eq!(up("/a/b", "/x"), ["/a/b", "/a", "/"].map(PathBuf::from));
    }

    #[test]
    fn urls_round_trip() {
        for path in [
            "/a/b.ts",
            "/a b/c#d?.ts",
            "/\u{e4}/x%20y",
            "/a/~x+@v1.2/{p}",
        ] {
            let url = file_url(Path::new(path));
            assert_eq!(
                from_file_url(&url).as_deref(),
                Some(Path::new(path)),
                "{url}"
            );
        }
        assert_eq!(
            file_url(Path::new("/a b/\u{e4}#.ts")),
            "file:///a%20b/%C3%A4%23.ts"
        );
        assert_eq!(from_file_url("file://server/x"), None);
        assert_eq!(from_file_url("npm"), None);
        let odd = from_file_url("file:///%+1%2");
        assert_eq!(odd.as_deref(), Some(Path::new("/%+1%2")));
    }

    #[test]
    fn circles_end() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("a/b")).unwrap();
        std::fs::write(dir.path().join("a/b/x.md"), "").unwrap();
        std::os::unix::fs::symlink(dir.path(), dir.path().join("a/loop")).unwrap();
        let found = files_below(dir.path(), true, &|path| has_extension(path, &["md"]));
        assert_eq!(found, [dir.path().join("a/b/x.md")]);
        assert!(files_below(dir.path(), false, &|_| true).is_empty());
    }
}
