//! Paths from plugins, models and clients: what is answered lies in a root, and is where the kernel would go.
//!
//! A tree of folders and links is made once; the input's bytes are names of it, and others.
#![no_main]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Component, Path, PathBuf};
use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use outrigger_sandbox::paths::{Roots, open_resolved, resolve};

static BASE: LazyLock<PathBuf> = LazyLock::new(|| {
    let base = fs::canonicalize(tempfile::tempdir().unwrap().keep()).unwrap();
    for folder in ["p/src/deep", "p2", "secret"] {
        fs::create_dir_all(base.join(folder)).unwrap();
    }
    for file in ["p/a", "p/src/b", "secret/key", "p2/c"] {
        fs::write(base.join(file), file).unwrap();
    }
    for (link, target) in [
        ("p/in", "src"),
        ("p/out", "../secret"),
        ("p/outf", "../secret/key"),
        ("p/dang", "../secret/new"),
        ("p/dangin", "src/new"),
        ("p/l1", "l2"),
        ("p/l2", "l1"),
        ("p/self", "."),
        ("p/up", ".."),
        ("p/dl", "src/deep"),
        ("lp", "p"),
        ("p/root", "/"),
        ("p/proc", "/proc/self/root"),
        ("p/cwd", "/proc/self/cwd"),
        ("p/fd", "/proc/self/fd/0"),
        ("p/slash", "src/"),
        ("p/dots", "src/../../secret"),
    ] {
        symlink(target, base.join(link)).unwrap();
    }
    base
});

const NAMES: [&str; 28] = [
    "..", ".", "p", "p2", "secret", "src", "deep", "in", "out", "self", "dl", "a", "b", "key", "lp",
    "dang", "dangin", "l1", "new", "outf", "up", "root", "proc", "cwd", "fd", "slash", "dots", "",
];

/// A path of known names (bytes below 0x80 pick one) and of what else stands there.
fn path(data: &[u8]) -> PathBuf {
    let mut path = BASE.as_os_str().as_bytes().to_vec();
    for part in data.chunks(1).take(24) {
        path.push(b'/');
        match usize::from(part[0]) {
            pick @ 0..0x80 => path.extend_from_slice(NAMES[pick % NAMES.len()].as_bytes()),
            _ => path.extend_from_slice(part),
        }
    }
    PathBuf::from(OsStr::from_bytes(&path))
}

fn check(path: &Path) {
    let project = BASE.join("p");
    let text = resolve(&project, path);
    assert!(text.is_absolute() && !text.components().any(|it| it == Component::ParentDir));
    let Ok(inside) = Roots::new([&project]).contains(path) else {
        return;
    };
    assert!(inside.starts_with(&project), "{}", inside.display());
    assert!(!inside.components().any(|it| it == Component::ParentDir));
    // Where nothing exists we go on and the kernel does not; where it goes, we go.
    if let Ok(real) = fs::canonicalize(path) {
        assert_eq!(real, inside, "{}", path.display());
    }
    if let Ok(real) = fs::canonicalize(&inside) {
        assert_eq!(real, inside);
        if real.is_file() {
            assert!(open_resolved(&inside, false, false).is_ok());
        }
    }
}

fuzz_target!(|data: &[u8]| {
    check(&path(data));
    // As it is, too: a path of somebody's own.
    check(&BASE.join("p").join(OsStr::from_bytes(data)));
});
