//! The project files that a command line names, to notice when one is changed between the user's look at them and the start.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use serde_json::json;

/// Returns the project files that a command line names, each as its name, a blank, and a digest of its content with its identity.
/// `None`: more files than are checked.
pub async fn of(command: &str, project: &Path, home: &Path) -> Option<Vec<String>> {
    let entry = json!({ "command": ["sh", "-c", command] });
    let (project, home) = (project.to_owned(), home.to_owned());
    let look = move || {
        let files = outrigger_config::files_run_by(&entry, &project, &home)?
            .into_iter()
            .map(|file| {
                let path = file.rsplit_once(' ').map_or(file.as_str(), |it| it.0);
                let identity = identity(&project.join(path), &project);
                format!("{file},{identity}")
            });
        Some(files.collect())
    };
    tokio::task::spawn_blocking(look).await.ok().flatten()
}

/// Returns what of a file no other process can put back: its inode and the time of its last change, by its own name and by what a link
/// leads to, and those of the folders on the way. One that is exchanged back and forth has the same content at each look.
fn identity(file: &Path, project: &Path) -> String {
    let way = file
        .ancestors()
        .skip(1)
        .take_while(|it| it.starts_with(project) && *it != project);
    let links = [file].into_iter().chain(way).map(fs::symlink_metadata);
    links
        .chain([fs::metadata(file)])
        .flatten()
        .map(|it| {
            format!(
                "{}:{}:{}.{}",
                it.dev(),
                it.ino(),
                it.ctime(),
                it.ctime_nsec()
            )
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// Returns a file that changed or that only one of the lists contains.
#[must_use]
pub fn first_changed(before: &[String], now: &[String]) -> String {
    let of_now = now.iter().filter(|it| !before.contains(it));
    let of_before = before.iter().filter(|it| !now.contains(it));
    of_now
        .chain(of_before)
        .next()
        .and_then(|it| it.rsplit_once(' '))
        .map(|it| it.0)
        .unwrap_or("a file that it runs")
        .to_owned()
}
