//! `SHA256SUMS` of all packages, and its signature in OpenSSH's form, which `ssh-keygen -Y verify` checks.

use std::fs;
use std::path::{Path, PathBuf};

use super::write_file;
use crate::sh::{self, check as run, command};
use crate::{Result, failed};

/// The purpose of the signature; it is part of the signed data, so that a signature for another purpose is invalid.
const NAMESPACE: &str = "outrigger-release";

pub(super) fn write(out: &Path) -> Result<PathBuf> {
    let entries =
        fs::read_dir(out).or_else(|error| failed(format!("{}: {error}", out.display())))?;
    let mut names: Vec<String> = entries
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("outrigger"))
        .collect();
    names.sort();
    let sums = sh::output(command("sha256sum").current_dir(out).arg("--").args(&names))?;
    let path = out.join("SHA256SUMS");
    write_file(&path, &sums)?;
    Ok(path)
}

/// Writes `SHA256SUMS.sig`.
pub(super) fn sign(sums: &Path, key: &Path) -> Result {
    let mut sign = command("ssh-keygen");
    sign.args(["-q", "-Y", "sign", "-n", NAMESPACE, "-f"])
        .args([key, sums]);
    sh::output(&mut sign).map(drop)
}

/// Checks the sums, and that a signature of a key created for this is valid only for its purpose.
pub(super) fn check(out: &Path) -> Result {
    run(command("sha256sum")
        .current_dir(out)
        .args(["--check", "--quiet", "SHA256SUMS"]))?;
    let folder = super::empty("signature")?;
    let (key, sums) = (folder.join("key"), folder.join("SHA256SUMS"));
    super::copy(&out.join("SHA256SUMS"), &sums)?;
    let mut made = command("ssh-keygen");
    made.args(["-q", "-t", "ed25519", "-N", "", "-C", "test", "-f"])
        .arg(&key);
    sh::output(&mut made)?;
    sign(&sums, &key)?;
    let public = sh::read(&folder.join("key.pub"))?;
    write_file(&folder.join("signers"), &format!("outrigger {public}"))?;
    verify(&folder, "SHA256SUMS")?;
    write_file(&folder.join("changed"), "0000  outrigger.tar.gz\n")?;
    match verify(&folder, "changed") {
        Err(_) => Ok(()),
        Ok(()) => failed("a signature passes for other checksums"),
    }
}

fn verify(folder: &Path, name: &str) -> Result {
    // ssh-keygen reads the signed data from standard input.
    let script = format!(
        "ssh-keygen -Y verify -n {NAMESPACE} -I outrigger -f signers -s SHA256SUMS.sig < \"$1\""
    );
    let mut shell = command("sh");
    shell.current_dir(folder).args(["-c", &script, "sh", name]);
    sh::output(&mut shell).map(drop)
}
