//! Files outside the project that the words of any program may name: `grep . FILE`, `--file=FILE`, `dd of=FILE`, `-I/folder`.
//! No program's options are known here: what a word may name counts if something exists there.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Component, Path, PathBuf};

use outrigger_shell_parse::{Command, Line, UNKNOWN, Word};

use super::locate;
use super::paths::{Paths, without_wildcard};
use super::rules::FILES;
use crate::error::ToolError;
use crate::files::Located;
use crate::host::ToolContext;
use crate::shell::command_line::expanded;
use crate::shell::command_line::redirections;

/// Separators before and after a path within a word.
const SEPARATORS: [char; 4] = ['=', ':', ',', '@'];
/// Maximum length of the letters before a path in the word of an option (`-xzfFILE`).
const MAX_LETTERS: usize = 10;
/// Maximum length of a path.
const MAX_PATH: usize = 4096;
/// Folders in which everybody has files: a new name there, which patterns such as `/tmp/d` may be, is none of the user's.
const COMMON: [&str; 5] = ["/", "/home", "/tmp", "/var/tmp", "/proc"];
/// Names in `/proc/self` that lead to files.
const OF_FILES: [&str; 6] = ["cwd", "exe", "fd", "map_files", "root", "task"];
/// Folders of the system. What belongs to it there and everybody may read is no user's data.
const SYSTEM: [&str; 13] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/etc",
    "/nix/store",
    "/gnu/store",
    "/System",
    "/Library",
    "/private/etc",
];
/// Programs for which a `/` alone separates fields, or is about the machine.
const OF_SLASHES: [&str; 13] = [
    "awk", "gawk", "mawk", "cut", "tr", "sed", "echo", "printf", "paste", "column", "sort", "df",
    "docker",
];
/// Programs whose first words are patterns.
const OF_PATTERNS: [&str; 5] = ["grep", "egrep", "fgrep", "rg", "ag"];

/// Adds folders outside the project that the words of a line name.
pub(super) fn outside(
    line: &Line,
    paths: &Paths<'_>,
    ctx: &ToolContext,
    folders: &mut Vec<PathBuf>,
) -> Result<(), ToolError> {
    let programs: Vec<&str> = line.commands.iter().filter_map(Command::program).collect();
    let of_lists = Command::default();
    let mut look = |command: &Command, word: &Word| -> Result<(), ToolError> {
        for text in paths.texts(word) {
            for piece in pieces(&text) {
                let is_root = piece == "/" && (text != "/" || !reads_root(command, word));
                if is_root || piece.len() > MAX_PATH || piece.contains(UNKNOWN) {
                    continue;
                }
                let piece = without_wildcard(&expanded(piece));
                for path in redirections::paths(command, &piece, paths.begins()) {
                    named(&path, &piece, ctx, folders)?;
                }
            }
        }
        Ok(())
    };
    for command in &line.commands {
        let name = command.program().and_then(|it| it.rsplit('/').next());
        // Rules of their own, as OpenCode has them, apply to their plain arguments.
        let is_known = name.is_some_and(|it| FILES.contains(&it));
        let arguments = match command.words.get(1..) {
            Some(words) if !command.inert => words,
            _ => &[],
        };
        for word in command.assigned.iter().chain(arguments) {
            let is_plain = word.known().is_some_and(|it| !it.starts_with('-'));
            let is_program = command.wraps && word.known().is_some_and(|it| programs.contains(&it));
            if !(is_known && is_plain || is_program) {
                look(command, word)?;
            }
        }
    }
    line.lists.iter().try_for_each(|word| look(&of_lists, word))
}

/// Returns the parts of a word that may be paths.
fn pieces(text: &str) -> Vec<&str> {
    let text = match text.find("://") {
        Some(_) if text.contains("file://") => text.rsplit("file://").next().unwrap_or(text),
        Some(at) => {
            let before = text.get(..at).unwrap_or_default();
            before.trim_end_matches(|c: char| c.is_ascii_alphanumeric() || "+-.".contains(c))
        }
        None => text,
    };
    let starts = text.match_indices(SEPARATORS).map(|(at, _)| at + 1);
    let mut pieces = Vec::new();
    for start in std::iter::once(0).chain(starts) {
        let rest = text.get(start..).unwrap_or_default();
        let end = rest.find(SEPARATORS).unwrap_or(rest.len());
        pieces.extend([Some(rest), rest.get(..end)].into_iter().flatten());
    }
    if text.starts_with('-') && !text.starts_with("--") {
        let letters = text.find('/').unwrap_or(text.len()).min(MAX_LETTERS);
        pieces.extend((2..=letters).filter_map(|at| text.get(at..)));
    }
    pieces.retain(|it| !it.is_empty());
    pieces
}

/// Returns whether a `/` among the words of a command is the root folder.
fn reads_root(command: &Command, word: &Word) -> bool {
    let name = command.program().and_then(|it| it.rsplit('/').next());
    let is = |list: &[&str]| name.is_some_and(|it| list.contains(&it));
    name.is_some() && !is(&OF_SLASHES) && (!is(&OF_PATTERNS) || command.words.last() == Some(word))
}

/// Adds the folder of a path, if the path is outside and names something.
fn named(
    path: &Path,
    piece: &str,
    ctx: &ToolContext,
    folders: &mut Vec<PathBuf>,
) -> Result<(), ToolError> {
    let mut parts = Path::new(piece).components();
    let is_place = parts.any(|it| matches!(it, Component::RootDir | Component::ParentDir));
    let lexical = outrigger_sandbox::paths::resolve(Path::new("/"), path);
    if is_of_own_process(&lexical) {
        return Ok(());
    }
    // `..` after a link leads elsewhere than its text says.
    let followed = path.canonicalize().ok();
    for target in std::iter::once(lexical).chain(followed) {
        let exists = target.symlink_metadata().is_ok();
        if !(exists || is_place && may_be_created(&target)) {
            continue;
        }
        let at = match locate(ctx, &target.to_string_lossy()) {
            Ok(at) => at,
            Err(error @ ToolError::Forbidden { .. }) if exists => return Err(error),
            Err(_) => continue,
        };
        if at.inside || at.is_lent(ctx) || is_of_everybody(&at) {
            continue;
        }
        let folder = at.into_folder();
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    Ok(())
}

/// Returns whether it tells a process about itself, and leads nowhere else, as `/proc/self/cwd` does.
fn is_of_own_process(path: &Path) -> bool {
    let name = path.strip_prefix("/proc/self").ok();
    let name = name.and_then(|it| it.iter().next());
    name.is_some_and(|it| !OF_FILES.iter().any(|link| it == *link))
}

/// Returns whether a program may create the file: its folder exists, and is not one in which everybody has files.
fn may_be_created(path: &Path) -> bool {
    let parent = path.parent().filter(|it| it.is_dir());
    parent.is_some_and(|it| {
        let is_common = COMMON.iter().any(|common| it == Path::new(common));
        let is_runtime = ["/run", "/var/run"].iter().any(|run| it.starts_with(run));
        !is_common && !is_runtime && it != std::env::temp_dir()
    })
}

/// Returns whether a file belongs to the system and everybody may read it, or is a device.
fn is_of_everybody(at: &Located) -> bool {
    let below = |folders: &[&str], path: &Path| folders.iter().any(|it| path.starts_with(it));
    if below(&["/dev"], &at.shown) && !below(&["/dev/shm", "/dev/mqueue"], &at.shown) {
        let kind = fs::metadata(&at.real).map(|meta| meta.file_type());
        return !kind.is_ok_and(|kind| kind.is_block_device());
    }
    if let Ok(rest) = at.shown.strip_prefix("/proc") {
        // Not those of processes, which lead to files, environments and memory.
        let first = rest.components().next();
        let first = first.map(|it| it.as_os_str().to_string_lossy().into_owned());
        return first.is_some_and(|it| {
            !it.starts_with(|c: char| c.is_ascii_digit()) && !it.ends_with("self")
        });
    }
    if below(&["/sys"], &at.real) {
        return true;
    }
    below(&SYSTEM, &at.real) && is_readable_by_all(&at.real)
}

fn is_readable_by_all(path: &Path) -> bool {
    path.ancestors().enumerate().all(|(at, path)| {
        let Ok(meta) = fs::metadata(path) else {
            // A file to be created.
            return at == 0;
        };
        let mode = meta.mode();
        let is_open = at > 0 || mode & 0o004 != 0;
        meta.uid() == 0 && is_open && (!meta.is_dir() || mode & 0o001 != 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_words_that_may_be_paths() {
        for (word, found, not) in [
            ("--file=/a/b", &["/a/b"][..], &["a/b"][..]),
            ("if=../x", &["../x"], &[]),
            ("-I/usr/x", &["/usr/x"], &[]),
            ("-qf../x", &["../x"], &[]),
            ("/a:/b", &["/a", "/b", "/a:/b"], &[]),
            ("https://x/y", &[], &["/x/y", "x/y"]),
            ("--url=file:///a/b", &["/a/b"], &[]),
            ("F=/a:http://x/y", &["/a"], &["/y"]),
            ("file=@/a", &["/a"], &[]),
        ] {
            let pieces = pieces(word);
            let is_in = |it: &&str| pieces.contains(it);
            assert!(found.iter().all(is_in), "{word}: {pieces:?}");
            assert!(!not.iter().any(is_in), "{word}: {pieces:?}");
        }
    }
}
