//! `cargo xtask dist`: release packages for users without a compiler: a tarball, a Debian package, npm packages, their checksums and
//! a signature of these.
//!
//! Two runs on the same commit and binary write the same bytes: times are that of the commit, owners are root.

mod checksums;
mod clean_root;
mod deb;
mod npm;
mod staging;
mod tarball;

use std::fs;
use std::path::{Path, PathBuf};

use crate::sh::{self, Arguments, check, command, work};
use crate::{Result, failed, parity, usage};

/// The options of the command line.
#[derive(Debug, Default)]
struct Options {
    bin: Option<PathBuf>,
    out: Option<PathBuf>,
    key: Option<PathBuf>,
    check: bool,
}

/// A release, and its platform.
#[derive(Debug)]
struct Release {
    /// Of the workspace, and so of the program.
    version: String,
    /// Debian's name of the architecture.
    debian_arch: &'static str,
    /// npm's.
    npm_arch: &'static str,
    /// Rust's.
    target: String,
    /// The minimum glibc version with every symbol that the program needs.
    glibc: String,
    /// Seconds since 1970 of the commit: the time of all files.
    epoch: String,
}

/// Maximum size of the program with everything in it, in bytes (issue 21).
const MAX_SIZE: u64 = 40_000_000;

impl Release {
    fn of(binary: &Path) -> Result<Self> {
        let (debian_arch, npm_arch) = match std::env::consts::ARCH {
            "x86_64" => ("amd64", "x64"),
            "aarch64" => ("arm64", "arm64"),
            other => return failed(format!("there is no package for {other}")),
        };
        let text = sh::output(command(binary).arg("--version"))?;
        let Some(version) = text.split_whitespace().nth(1) else {
            return failed(format!("{} tells no version", binary.display()));
        };
        let epoch = match std::env::var("SOURCE_DATE_EPOCH") {
            Ok(epoch) => epoch,
            Err(_) => sh::output(command("git").args(["log", "-1", "--format=%ct"]))?,
        };
        Ok(Self {
            version: version.to_owned(),
            debian_arch,
            npm_arch,
            target: format!("{}-unknown-linux-gnu", std::env::consts::ARCH),
            glibc: deb::glibc(binary)?,
            epoch: epoch.trim().to_owned(),
        })
    }
}

/// Writes the packages; with `--check`, installs and runs each in a clean system.
pub(crate) fn run(arguments: &[String]) -> Result {
    let options = options(arguments)?;
    let binary = options.bin.map_or_else(dist_binary, Ok)?;
    let out = options.out.unwrap_or_else(|| work("dist"));
    let release = Release::of(&binary)?;
    if out.is_dir() {
        remove_old(&out)?;
    }
    create(&out)?;
    let staged = staging::stage(&binary)?;
    let tarball = tarball::write(&release, &staged, &out)?;
    let deb = deb::write(&release, &staged, &out)?;
    let npm = npm::write(&release, &staged, &out)?;
    let sums = checksums::write(&out)?;
    if let Some(key) = &options.key {
        checksums::sign(&sums, key)?;
    }
    for path in [&tarball, &deb].into_iter().chain(&npm).chain([&sums]) {
        let size = fs::metadata(path).map_or(0, |it| it.len());
        #[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
        let megabytes = size as f64 / 1e6;
        println!("{megabytes:7.1} MB  {}", path.display());
    }
    if options.key.is_none() {
        println!("not signed: --key PATH names an SSH key (Ed25519) that signs SHA256SUMS");
    }
    if !options.check {
        return Ok(());
    }
    checksums::check(&out)?;
    clean_root::check(&release, &tarball, &deb, &npm)
}

fn options(arguments: &[String]) -> Result<Options> {
    let mut arguments = Arguments::new(arguments);
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        match argument {
            "--bin" => options.bin = Some(parity::absolute(arguments.value(argument)?)?),
            "--out" => options.out = Some(PathBuf::from(arguments.value(argument)?)),
            "--key" => options.key = Some(parity::absolute(arguments.value(argument)?)?),
            "--check" => options.check = true,
            other => return usage(format!("dist takes no `{other}`")),
        }
    }
    Ok(options)
}

/// Returns the release program, linked with LTO (docs/decisions/0006-size-of-the-program.md).
fn dist_binary() -> Result<PathBuf> {
    crate::web::stage()?;
    check(&mut sh::cargo(&[
        "build",
        "--profile",
        "dist",
        "--package",
        "outrigger-cli",
        "--bin",
        "outrigger",
    ]))?;
    let binary = parity::target_folder()?.join("dist/outrigger");
    let size = fs::metadata(&binary).map_or(0, |it| it.len());
    if size > MAX_SIZE {
        return failed(format!(
            "{}: {size} bytes, at most {MAX_SIZE} may be",
            binary.display()
        ));
    }
    Ok(binary)
}

/// Removes the results of an earlier run, so that the checksums contain nothing old.
fn remove_old(out: &Path) -> Result {
    let ours = |name: &str| name.starts_with("outrigger") || name.starts_with("SHA256SUMS");
    let entries =
        fs::read_dir(out).or_else(|error| failed(format!("{}: {error}", out.display())))?;
    for entry in entries.flatten() {
        if entry.file_name().to_str().is_some_and(ours) && entry.path().is_file() {
            fs::remove_file(entry.path())
                .or_else(|error| failed(format!("{}: {error}", entry.path().display())))?;
        }
    }
    Ok(())
}

fn create(folder: &Path) -> Result {
    fs::create_dir_all(folder).or_else(|error| failed(format!("{}: {error}", folder.display())))
}

fn copy(from: &Path, to: &Path) -> Result {
    fs::copy(from, to)
        .map(drop)
        .or_else(|error| failed(format!("{} to {}: {error}", from.display(), to.display())))
}

fn write_file(path: &Path, text: &str) -> Result {
    fs::write(path, text).or_else(|error| failed(format!("{}: {error}", path.display())))
}

/// Creates an empty folder for the parts of a package.
fn empty(name: &str) -> Result<PathBuf> {
    let folder = work("dist-parts").join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder)
            .or_else(|error| failed(format!("{}: {error}", folder.display())))?;
    }
    create(&folder)?;
    Ok(folder)
}
