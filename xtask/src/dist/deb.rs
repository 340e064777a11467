//! The Debian package.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::{Release, copy, create, empty, write_file};
use crate::sh::{self, check, command};
use crate::{Result, failed};

const DESCRIPTION: &str = "coding agent that runs OpenCode's plugins in sandboxed processes
 Outrigger reads an OpenCode project as it is, runs its plugins unmodified in
 processes of their own, runs shell commands in a sandbox, and records every
 step before it is taken.";

/// Debian's locations for the staged folders: the folder, its location, and the names of its files there.
const PLACES: [(&str, &str, &str); 4] = [
    (
        "completions/outrigger.bash",
        "usr/share/bash-completion/completions",
        "outrigger",
    ),
    (
        "completions/_outrigger",
        "usr/share/zsh/vendor-completions",
        "_outrigger",
    ),
    (
        "completions/outrigger.fish",
        "usr/share/fish/vendor_completions.d",
        "outrigger.fish",
    ),
    ("README.md", "usr/share/doc/outrigger", "README.md"),
];

fn write_control(release: &Release, root: &Path) -> Result {
    let control = root.join("DEBIAN");
    create(&control)?;
    write_file(
        &control.join("control"),
        &format!(
            "Package: outrigger\nVersion: {}\nArchitecture: {}\nMaintainer: Outrigger\nSection: devel\nPriority: optional\n\
             Depends: libc6 (>= {}), libgcc-s1\nSuggests: nodejs\nDescription: {DESCRIPTION}\n",
            release.version, release.debian_arch, release.glibc
        ),
    )
}

pub(super) fn write(release: &Release, staged: &Path, out: &Path) -> Result<PathBuf> {
    let root = empty("deb")?;
    write_control(release, &root)?;
    let put = |from: &Path, folder: &str, name: &str| {
        let folder = root.join(folder);
        create(&folder)?;
        copy(from, &folder.join(name))
    };
    put(&staged.join("outrigger"), "usr/bin", "outrigger")?;
    for (from, folder, name) in PLACES {
        put(&staged.join(from), folder, name)?;
    }
    copyright(&root)?;
    let pages = fs::read_dir(staged.join("man"))
        .or_else(|error| failed(format!("{}: {error}", staged.display())))?;
    for page in pages.flatten() {
        let name = page.file_name().to_string_lossy().into_owned();
        put(&page.path(), "usr/share/man/man1", &name)?;
    }
    let man = root.join("usr/share/man/man1");
    check(
        command("sh")
            .args(["-c", "gzip -9n \"$1\"/*", "sh"])
            .arg(man),
    )?;
    set_modes(&root)?;
    let path = out.join(format!(
        "outrigger_{}_{}.deb",
        release.version, release.debian_arch
    ));
    let mut build = command("dpkg-deb");
    build
        .env("SOURCE_DATE_EPOCH", &release.epoch)
        .args(["--root-owner-group", "-Zxz", "-z3", "--build"])
        .args([&root, &path]);
    sh::output(&mut build)?;
    Ok(path)
}

fn copyright(root: &Path) -> Result {
    let text = sh::read(&sh::root().join("LICENSE-MIT"))?;
    let text = format!("Outrigger is licensed under MIT or Apache-2.0, as you choose.\n\n{text}");
    write_file(&root.join("usr/share/doc/outrigger/copyright"), &text)
}

/// Sets folders and the program to 755, files to 644, independent of the umask.
fn set_modes(folder: &Path) -> Result {
    let set = |path: &Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode))
            .or_else(|error| failed(format!("{}: {error}", path.display())))
    };
    set(folder, 0o755)?;
    let entries =
        fs::read_dir(folder).or_else(|error| failed(format!("{}: {error}", folder.display())))?;
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            set_modes(&path)?;
        } else {
            let is_program = folder.ends_with("usr/bin");
            set(&path, if is_program { 0o755 } else { 0o644 })?;
        }
    }
    Ok(())
}

/// Returns the newest glibc version of a symbol.
///
/// # Errors
/// `objdump` cannot read the program, or it does not use glibc.
pub(super) fn glibc(binary: &Path) -> Result<String> {
    let symbols = sh::output(command("objdump").arg("-T").arg(binary))?;
    newest_glibc(&symbols).map_or_else(
        || failed(format!("{} needs no glibc", binary.display())),
        |(major, minor)| Ok(format!("{major}.{minor}")),
    )
}

fn newest_glibc(symbols: &str) -> Option<(u32, u32)> {
    symbols
        .split("GLIBC_")
        .skip(1)
        .filter_map(|rest| {
            let version = rest
                .split(|it: char| it != '.' && !it.is_ascii_digit())
                .next()?;
            let mut numbers = version.split('.').map(str::parse);
            Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
        })
        .max()
}

#[test]
fn the_newest_version_of_a_symbol_counts() {
    let symbols = "0 DF *UND* 0 (GLIBC_2.9) a\n0 DF *UND* 0 (GLIBC_2.34) b\n0 DF *UND* 0 (GLIBC_2.2.5) c\n0 DF *UND* 0 (GCC_3.0) d";
    assert_eq!(newest_glibc(symbols), Some((2, 34)));
    assert_eq!(newest_glibc("0 DF *UND* 0 (GCC_3.0) d"), None);
}
