//! A control group that limits the memory of a process tree, if this user may create one. It stops growth that is too
//! fast for polling; everywhere else polling must do.
//!
//! Version 2: next to our own group (a systemd session is delegated this way) or below it. Version 1: below our own. Nothing
//! here is an error: if no group can be created, usage is not limited.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Prefix of our groups.
const PREFIX: &str = "outrigger-";
/// How often removing an empty group is tried: the kernel needs a moment after the last process.
const TRIES: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(50);

/// A group; removed after it is dropped, as soon as its processes are gone.
#[derive(Debug)]
pub struct Cgroup {
    dir: PathBuf,
    /// Where the kernel counts processes killed for lack of memory.
    kills: &'static str,
}

/// Where groups can be created, and which files limit memory there.
struct Version {
    parents: Vec<PathBuf>,
    limit: &'static str,
    kills: &'static str,
    /// Further files, written if they exist.
    also: &'static [(&'static str, &'static str)],
}

impl Cgroup {
    /// Creates a group limited to `memory` bytes; `None` if none can be created. Removes empty groups that dead hosts left.
    #[must_use]
    pub fn new(memory: u64) -> Option<Self> {
        let own = fs::read_to_string("/proc/self/cgroup").ok()?;
        let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
        versions(&own, &mounts)
            .iter()
            .find_map(|version| Self::make(version, memory))
    }

    fn make(version: &Version, memory: u64) -> Option<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        version.parents.iter().find_map(|parent| {
            remove_stale(parent);
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let dir = parent.join(format!("{PREFIX}{}-{number}", std::process::id()));
            fs::create_dir(&dir).ok()?;
            // From here on it is removed again if it is unusable.
            let group = Self {
                dir,
                kills: version.kills,
            };
            let limit = group.dir.join(version.limit);
            // Without the controller there is no such file, and it must not be created.
            let limited = limit.is_file() && fs::write(limit, memory.to_string()).is_ok();
            for (name, value) in version.also {
                let file = group.dir.join(name);
                if file.is_file() {
                    let _ = fs::write(file, value);
                }
            }
            limited.then_some(group)
        })
    }

    /// Puts a process into it; whatever it starts from now on is in it as well.
    ///
    /// # Errors
    /// The system refuses: the process has ended, or may not be moved.
    pub fn enter(&self, pid: u32) -> io::Result<()> {
        let procs = self.dir.join("cgroup.procs");
        fs::write(&procs, pid.to_string())?;
        // For a namespace this is init, and the command is already running.
        for child in crate::processes::usage::children(pid) {
            fs::write(&procs, child.to_string())?;
        }
        Ok(())
    }

    /// Returns how many of its processes the kernel has killed because they exceeded the memory limit.
    #[must_use]
    pub fn killed(&self) -> u64 {
        let text = fs::read_to_string(self.dir.join(self.kills)).unwrap_or_default();
        text.lines()
            .find_map(|line| line.strip_prefix("oom_kill "))
            .and_then(|n| n.trim().parse().ok())
            .unwrap_or(0)
    }
}

/// Removal takes a moment after the last process has gone: a thread waits, not the dropper.
impl Drop for Cgroup {
    fn drop(&mut self) {
        let dir = std::mem::take(&mut self.dir);
        if fs::remove_dir(&dir).is_ok() {
            return;
        }
        // If no thread can be started, the next start removes it.
        let _ = std::thread::Builder::new()
            .name("cgroup".into())
            .spawn(move || {
                for _ in 0..TRIES {
                    std::thread::sleep(BETWEEN);
                    if fs::remove_dir(&dir).is_ok() {
                        return;
                    }
                }
            });
    }
}

/// Removes empty groups only; a group with processes cannot be removed, and groups of living hosts are left alone.
fn remove_stale(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let host = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .and_then(|rest| rest.split('-').next()?.parse::<u32>().ok());
        if host.is_some_and(|host| !Path::new(&format!("/proc/{host}")).exists()) {
            let _ = fs::remove_dir(entry.path());
        }
    }
}

/// Returns the mounted versions, from `/proc/self/cgroup` and `/proc/self/mountinfo`.
fn versions(own: &str, mounts: &str) -> Vec<Version> {
    let mut found = Vec::new();
    for line in own.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else {
            continue;
        };
        if controllers.is_empty()
            && let Some(dir) = place(mounts, "cgroup2", None, path)
        {
            let beside = dir.parent().filter(|_| path != "/").map(Path::to_path_buf);
            found.push(Version {
                parents: beside.into_iter().chain([dir]).collect(),
                limit: "memory.max",
                kills: "memory.events",
                // Kill all processes or none: half a tree is useless.
                also: &[("memory.oom.group", "1")],
            });
        } else if controllers.split(',').any(|name| name == "memory")
            && let Some(dir) = place(mounts, "cgroup", Some("memory"), path)
        {
            found.push(Version {
                parents: vec![dir],
                limit: "memory.limit_in_bytes",
                kills: "memory.oom_control",
                also: &[],
            });
        }
    }
    found
}

/// Returns the folder of a group: under the mount of its hierarchy, which may show only a part of it.
fn place(mounts: &str, kind: &str, controller: Option<&str>, path: &str) -> Option<PathBuf> {
    mounts.lines().find_map(|line| {
        let (left, right) = line.split_once(" - ")?;
        let mut right = right.split(' ');
        if right.next()? != kind {
            return None;
        }
        let options = right.nth(1).unwrap_or_default();
        if controller.is_some_and(|wanted| !options.split(',').any(|name| name == wanted)) {
            return None;
        }
        let mut left = left.split(' ').skip(3);
        let (root, point) = (left.next()?, left.next()?);
        let below = path
            .strip_prefix(root.trim_end_matches('/'))?
            .trim_start_matches('/');
        // A namespace shows what is outside of it as `/..`.
        (!below.split('/').any(|part| part == "..")).then(|| Path::new(point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Spawner, Spec};

    #[test]
    fn the_folder_of_our_group_under_each_kind_of_mount() {
        let two = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
        let part = "29 23 0:26 /box /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
        let one = "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                   36 31 0:33 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu";
        for (own, mounts, expected) in [
            (
                "0::/user.slice/app.scope",
                two,
                "/sys/fs/cgroup/user.slice /sys/fs/cgroup/user.slice/app.scope",
            ),
            ("0::/", two, "/sys/fs/cgroup/"),
            ("0::/box/a", part, "/sys/fs/cgroup /sys/fs/cgroup/a"),
            ("0::/../a", two, ""),
            ("0::/elsewhere", part, ""),
            ("4:memory:/a/b\n1:cpu:/c", one, "/sys/fs/cgroup/memory/a/b"),
            ("1:cpu:/c", one, ""),
            ("", two, ""),
            ("nonsense", "nonsense", ""),
        ] {
            let found: Vec<String> = versions(own, mounts)
                .iter()
                .flat_map(|version| &version.parents)
                .map(|dir| dir.display().to_string())
                .collect();
            assert_eq!(found.join(" "), expected, "{own}");
        }
    }

    #[test]
    fn where_the_controller_is_not_there_nothing_is_left() {
        let root = tempfile::tempdir().unwrap();
        let version = Version {
            parents: vec![root.path().to_path_buf(), root.path().join("gone")],
            limit: "memory.max",
            kills: "memory.events",
            also: &[],
        };
        assert!(Cgroup::make(&version, 1 << 20).is_none());
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
    }

    #[test]
    fn empty_groups_of_dead_hosts_go_and_others_stay() {
        let root = tempfile::tempdir().unwrap();
        let dead = format!("{PREFIX}{}-0", u32::MAX);
        let alive = format!("{PREFIX}{}-0", std::process::id());
        for name in [dead.as_str(), alive.as_str(), "other-1-0"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        remove_stale(root.path());
        let mut left: Vec<String> = fs::read_dir(root.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left, ["other-1-0".to_owned(), alive]);
    }

    #[tokio::test]
    async fn what_takes_more_is_killed_and_counted() {
        let Some(group) = Cgroup::new(64 << 20) else {
            eprintln!("no control group can be made here");
            return;
        };
        let dir = group.dir.clone();
        // It waits until it is in, then takes four times as much as it may.
        let script = "read _; x=$(head -c 268435456 /dev/zero | tr '\\0' x); sleep 100";
        let spec = Spec::new("/bin/sh")
            .args(["-c", script])
            .var("PATH", "/usr/bin:/bin")
            .piped();
        let mut child = Spawner::new().unwrap().spawn(spec).await.unwrap();
        group.enter(child.pid()).unwrap();
        let mut stdin = child.stdin.take().unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stdin, b"\n")
            .await
            .unwrap();
        let wait = async {
            while group.killed() == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), wait)
            .await
            .expect("it was not killed");
        drop(child);
        drop(group);
        let gone = async {
            while dir.exists() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), gone)
            .await
            .expect("the group is left");
    }
}
