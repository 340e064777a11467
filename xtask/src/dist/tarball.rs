//! The tarball: a folder that can be unpacked anywhere.

use std::path::{Path, PathBuf};

use super::Release;
use crate::Result;
use crate::sh::{check, command};

pub(super) fn write(release: &Release, staged: &Path, out: &Path) -> Result<PathBuf> {
    let name = format!("outrigger-{}-{}", release.version, release.target);
    let path = out.join(format!("{name}.tar.gz"));
    let mut tar = command("tar");
    tar.args([
        "--create",
        "--sort=name",
        "--owner=root:0",
        "--group=root:0",
        "--mode=u+rwX,go+rX,go-w",
    ])
    .arg(format!("--mtime=@{}", release.epoch))
    .arg(format!("--transform=s,^\\.,{name},"))
    // -n: no time in the header.
    .arg("--use-compress-program=gzip -n")
    .arg("--file")
    .arg(&path)
    .arg("--directory")
    .arg(staged)
    .arg(".");
    check(&mut tar)?;
    Ok(path)
}
