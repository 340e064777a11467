//! Nested repositories in an index (submodules, `git add` of another repository). git enters each of them at `git status`, with
//! its settings.

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use outrigger_stdx::sync::lock;

use crate::git_config;

/// Maximum number of bytes read of an index; one of 400,000 files is smaller.
const MAX_BYTES: u64 = 64 * 1024 * 1024;
/// File mode of a nested repository.
const LINK: u32 = 0o160_000;
/// Size of an entry before its checksum: times, device, inode, mode, owner and size. The mode is the seventh number.
const FIXED: usize = 40;
const MODE: usize = 24;
/// Flags: the length of the name, and whether more flags follow.
const LENGTH: u16 = 0x0fff;
const MORE: u16 = 0x4000;
/// Number of cached indexes.
const KNOWN: usize = 64;

/// Metadata of a file when it was read.
type Stamp = (u64, u64, i64, i64);
type Cache = HashMap<PathBuf, (Stamp, Arc<Vec<PathBuf>>)>;

/// Links of indexes that were read and have not changed.
static CACHE: Mutex<Option<Cache>> = Mutex::new(None);

/// Returns the links of the repository in this folder, relative to its work tree. Blocking.
pub(super) fn links(git: &Path) -> Vec<PathBuf> {
    let shared = fs::read_dir(git).into_iter().flatten().flatten();
    // A split index has its shared part in another file.
    let shared = shared.filter(|it| it.file_name().as_bytes().starts_with(b"sharedindex."));
    let all = [git.join("index")].into_iter();
    let mut found: Vec<PathBuf> = Vec::new();
    for index in all.chain(shared.map(|it| it.path())) {
        found.extend(of_index(git, &index).iter().cloned());
    }
    found.sort();
    found.dedup();
    found
}

fn of_index(git: &Path, index: &Path) -> Arc<Vec<PathBuf>> {
    let Ok(meta) = fs::metadata(index) else {
        return Arc::default();
    };
    let stamp = (meta.ino(), meta.size(), meta.ctime(), meta.ctime_nsec());
    let mut cache = lock(&CACHE);
    let cache = cache.get_or_insert_default();
    match cache.get(index) {
        Some((was, links)) if *was == stamp => return Arc::clone(links),
        _ => {}
    }
    let bytes = outrigger_files::read(index, MAX_BYTES).unwrap_or_default();
    let settings = git_config::read(&git.join("config"));
    let is_long = |it: &git_config::Setting| {
        it.key() == "extensions.objectformat" && it.text().eq_ignore_ascii_case("sha256")
    };
    let links = Arc::new(parse(
        &bytes,
        if settings.iter().any(is_long) { 32 } else { 20 },
    ));
    if cache.len() >= KNOWN {
        cache.clear();
    }
    cache.insert(index.to_path_buf(), (stamp, Arc::clone(&links)));
    links
}

/// Returns the links of an index, as far as it can be parsed; `hash`: bytes of a checksum.
fn parse(bytes: &[u8], hash: usize) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut walk = || -> Option<()> {
        let number = |at: usize| -> Option<u32> {
            let four = bytes.get(at..at.checked_add(4)?)?;
            Some(u32::from_be_bytes(four.try_into().ok()?))
        };
        if bytes.get(..4)? != b"DIRC" {
            return None;
        }
        let (version, count) = (number(4)?, number(8)?);
        let mut at = 12;
        let mut name: Vec<u8> = Vec::new();
        for _ in 0..count {
            let begin = at;
            let mode = number(at + MODE)?;
            at += FIXED + hash;
            let flags = u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?);
            at += if flags & MORE == 0 { 2 } else { 4 };
            if version == 4 {
                // The part that differs from the previous name.
                let (dropped, size) = offset(bytes.get(at..)?)?;
                at += size;
                name.truncate(name.len().checked_sub(dropped)?);
                let rest = bytes.get(at..)?;
                let end = rest.iter().position(|it| *it == 0)?;
                name.extend_from_slice(rest.get(..end)?);
                at += end + 1;
            } else {
                let rest = bytes.get(at..)?;
                let length = match flags & LENGTH {
                    LENGTH => rest.iter().position(|it| *it == 0)?,
                    length => usize::from(length),
                };
                name.clear();
                name.extend_from_slice(rest.get(..length)?);
                at += length;
                // At least one zero byte, up to a multiple of eight.
                at = begin + (at - begin + 8) / 8 * 8;
            }
            if mode == LINK {
                found.push(PathBuf::from(std::ffi::OsStr::from_bytes(&name)));
            }
        }
        Some(())
    };
    walk();
    found
}

/// Reads a number in git's variable-length encoding; returns it and its size in bytes.
fn offset(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0_usize;
    for (at, byte) in bytes.iter().enumerate() {
        let low = usize::from(byte & 0x7f);
        value = value.checked_mul(128)?.checked_add(low)?;
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value = value.checked_add(1)?;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(version: u32, mode: u32, name: &str, dropped: u8) -> Vec<u8> {
        let mut bytes = vec![0; MODE];
        bytes.extend(mode.to_be_bytes());
        bytes.resize(FIXED + 20, 0);
        let length = u16::try_from(name.len()).unwrap();
        bytes.extend(length.to_be_bytes());
        if version == 4 {
            bytes.push(dropped);
            bytes.extend(name.as_bytes());
            bytes.push(0);
        } else {
            bytes.extend(name.as_bytes());
            let whole = (bytes.len() + 8) / 8 * 8;
            bytes.resize(whole, 0);
        }
        bytes
    }

    #[test]
    fn links_are_found_in_every_version() {
        for version in [2, 3, 4] {
            let mut bytes = b"DIRC".to_vec();
            bytes.extend(u32::to_be_bytes(version));
            bytes.extend(4_u32.to_be_bytes());
            let second = if version == 4 { "b" } else { "sub/b" };
            for (mode, name, dropped) in [
                (0o100_644, "sub/a", 0),
                (LINK, second, 1),
                (0o100_644, "x", 5),
                (LINK, "yy", 1),
            ] {
                bytes.extend(entry(version, mode, name, dropped));
            }
            let want = [PathBuf::from("sub/b"), PathBuf::from("yy")];
            assert_eq!(parse(&bytes, 20), want, "{version}");
            for end in 0..bytes.len() {
                parse(bytes.get(..end).unwrap(), 20);
            }
        }
        assert!(parse(b"DIRC\0\0\0\x02\xff\xff\xff\xff", 20).is_empty());
    }
}
