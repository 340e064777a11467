//! Keeps tool output small for the model: long output is truncated, and all of it is kept in a file that the
//! model can read.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use outrigger_stdx::text::{ceil_char_boundary, floor_char_boundary};

use crate::host::Limits;

/// Text within the limits, and where the rest is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cut {
    pub(crate) text: String,
    pub(crate) truncated: bool,
    pub(crate) path: Option<PathBuf>,
}

/// Truncates `text` to the limits, keeping its start.
pub(crate) fn limit(text: String, limits: &Limits, artifacts: &Path, call: &str) -> Cut {
    let lines = text.matches('\n').count() + 1;
    if lines <= limits.max_lines && text.len() <= limits.max_bytes {
        return Cut {
            text,
            truncated: false,
            path: None,
        };
    }
    let kept = head(&text, limits);
    let left_lines = lines.saturating_sub(kept.matches('\n').count() + 1);
    let left = if left_lines > 0 && !kept.is_empty() {
        format!("...{left_lines} lines truncated...")
    } else {
        format!("...{} bytes truncated...", text.len() - kept.len())
    };
    let (note, path) = match keep(text.as_bytes(), limits, artifacts, call) {
        Ok(path) => (
            format!(
                "The tool call succeeded but its output was too long. All of it is saved in: {}\nSearch that file with grep, or read parts of it with read (offset and limit), instead of reading it whole.",
                path.display()
            ),
            Some(path),
        ),
        Err(error) => (
            format!(
                "The tool call succeeded but its output was too long, and the rest could not be saved: {error}"
            ),
            None,
        ),
    };
    Cut {
        text: format!("{kept}\n\n{left}\n\n{note}"),
        truncated: true,
        path,
    }
}

fn head<'a>(text: &'a str, limits: &Limits) -> &'a str {
    let end = text
        .match_indices('\n')
        .nth(limits.max_lines.saturating_sub(1))
        .map_or(text.len(), |(at, _)| at);
    if end <= limits.max_bytes {
        return &text[..end];
    }
    let fits = &text[..floor_char_boundary(text, limits.max_bytes)];
    // Whole lines, unless the first one alone is too long.
    fits.rfind('\n').map_or(fits, |at| &fits[..at])
}

/// Returns the last lines of `text` that fit.
pub(crate) fn tail<'a>(text: &'a str, limits: &Limits) -> &'a str {
    let start = text
        .rmatch_indices('\n')
        .nth(limits.max_lines.saturating_sub(1))
        .map_or(0, |(at, _)| at + 1);
    let by_lines = &text[start..];
    if by_lines.len() <= limits.max_bytes {
        return by_lines;
    }
    let from = ceil_char_boundary(by_lines, by_lines.len() - limits.max_bytes);
    let fits = &by_lines[from..];
    match fits.find('\n') {
        Some(at) if at + 1 < fits.len() => &fits[at + 1..],
        _ => fits,
    }
}

fn keep(
    bytes: &[u8],
    limits: &Limits,
    artifacts: &Path,
    call: &str,
) -> Result<PathBuf, std::io::Error> {
    let (mut file, path) = create(artifacts, call)?;
    let most = usize::try_from(limits.artifact_bytes).unwrap_or(usize::MAX);
    file.write_all(&bytes[..bytes.len().min(most)])?;
    Ok(path)
}

/// Creates a file in the artifact folder, readable only by its owner. Its name starts as in OpenCode.
pub(crate) fn create(artifacts: &Path, call: &str) -> Result<(File, PathBuf), std::io::Error> {
    use std::os::unix::fs::OpenOptionsExt;
    static NEXT: AtomicU64 = AtomicU64::new(0);
    std::fs::create_dir_all(artifacts)?;
    let call: String = call
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-'))
        .take(60)
        .collect();
    loop {
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = artifacts.join(format!("tool_{call}_{}_{n}.txt", std::process::id()));
        let opened = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path);
        match opened {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            other => return other.map(|file| (file, path)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn limits(max_lines: usize, max_bytes: usize) -> Limits {
        Limits {
            max_lines,
            max_bytes,
            ..Limits::default()
        }
    }

    #[test]
    fn a_short_text_is_left_alone_and_makes_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let cut = limit("a\nb".into(), &limits(2, 100), dir.path(), "c");
        assert_eq!((cut.text.as_str(), cut.truncated), ("a\nb", false));
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_long_text_keeps_its_head_and_all_of_it_is_in_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let text: String = (0..10).map(|n| format!("line {n}\n")).collect();
        let cut = limit(text.clone(), &limits(3, 1000), dir.path(), "call/../x");
        let path = cut.path.unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert!(path.starts_with(dir.path()), "{path:?}");
        assert!(
            cut.text
                .starts_with("line 0\nline 1\nline 2\n\n...8 lines truncated...\n\n"),
            "{}",
            cut.text
        );
    }

    #[test]
    fn a_line_longer_than_the_limit_is_cut_inside() {
        let dir = tempfile::tempdir().unwrap();
        let cut = limit("ä".repeat(60), &limits(10, 25), dir.path(), "c");
        assert!(
            cut.text
                .starts_with(&format!("{}\n\n...96 bytes truncated...", "ä".repeat(12))),
            "{}",
            cut.text
        );
    }

    #[test]
    fn a_folder_that_cannot_be_written_loses_the_rest_and_says_so() {
        let cut = limit(
            "a\nb\nc".into(),
            &limits(1, 100),
            Path::new("/proc/nope"),
            "c",
        );
        assert!(cut.truncated && cut.path.is_none());
        assert!(cut.text.contains("could not be saved"), "{}", cut.text);
    }

    proptest! {
        #[test]
        fn head_and_tail_keep_the_limits(text in "[a-zä\n]{0,200}", lines in 1usize..8, bytes in 4usize..60) {
            let limits = limits(lines, bytes);
            for part in [head(&text, &limits), tail(&text, &limits)] {
                prop_assert!(part.len() <= bytes);
                prop_assert!(part.matches('\n').count() < lines);
            }
            prop_assert!(text.starts_with(head(&text, &limits)));
            prop_assert!(text.ends_with(tail(&text, &limits)));
        }
    }
}
