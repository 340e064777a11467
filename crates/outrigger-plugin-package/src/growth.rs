//! Progress of an installation: the bytes unpacked into its folder so far.
//!
//! Installers report nothing while they fetch, and their caches and registries are their own; npm unpacks while it
//! fetches, so the folder grows visibly. Bun fetches a whole package before it unpacks any of it, so its progress is a
//! single step at the end.

use std::fs;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

/// Interval between two measurements of the folder.
const POLL_INTERVAL: Duration = Duration::from_millis(400);
/// Maximum number of entries that are measured.
const MAX_FILES: usize = 100_000;

/// Called with the current number of bytes.
pub(crate) type Growing<'a> = &'a mut (dyn FnMut(u64) + Send);

/// Runs the work and reports whenever the folder has changed its size in the meantime.
pub(crate) async fn watched<T>(
    folder: &Path,
    growing: Growing<'_>,
    work: impl Future<Output = T>,
) -> T {
    let mut work = pin!(work);
    let mut reported = 0;
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
        let place = folder.to_owned();
        // Measuring many files blocks, so it runs outside the async runtime.
        let bytes = tokio::task::spawn_blocking(move || size(&place)).await;
        if let Some(bytes) = bytes.ok().filter(|bytes| *bytes != reported) {
            reported = bytes;
            growing(bytes);
        }
    }
}

/// Returns the bytes of the files below a folder; links are not followed. Files that disappear meanwhile are ignored.
fn size(folder: &Path) -> u64 {
    let mut folders = vec![folder.to_owned()];
    let (mut bytes, mut seen) = (0_u64, 0);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            seen += 1;
            if seen > MAX_FILES {
                return bytes;
            }
            match entry.metadata() {
                Ok(meta) if meta.is_dir() => folders.push(entry.path()),
                Ok(meta) if meta.is_file() => bytes = bytes.saturating_add(meta.len()),
                _ => {}
            }
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_tells_of_growth_until_the_work_is_done() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("in");
        fs::create_dir(&folder).unwrap();
        fs::write(root.path().join("outside"), "x".repeat(999)).unwrap();
        std::os::unix::fs::symlink(root.path().join("outside"), folder.join("link")).unwrap();
        let mut reported = Vec::new();
        let work = async {
            for n in 1..4_usize {
                fs::write(folder.join(format!("{n}")), "x".repeat(100)).unwrap();
                tokio::time::sleep(POLL_INTERVAL * 2).await;
            }
            "done"
        };
        let mut growing = |bytes| reported.push(bytes);
        assert_eq!(watched(&folder, &mut growing, work).await, "done");
        assert!(
            reported.is_sorted() && reported.last() == Some(&300),
            "{reported:?}"
        );
        assert_eq!(size(Path::new("/nowhere")), 0);
    }
}
