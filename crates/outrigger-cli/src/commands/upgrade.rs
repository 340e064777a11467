//! `outrigger upgrade`: shows how to replace the running program by a newer one. It replaces nothing itself: the installer does.

use std::path::Path;

use crate::failure::Failure;
use crate::terminal::{name, out};

/// Prints version, path and command.
pub(super) fn upgrade() -> Result<u8, Failure> {
    let program = std::env::current_exe().map_err(|error| {
        let message = format!("cannot find the path of this executable: {error}");
        Failure::new("cli.upgrade", message, None)
    })?;
    out(&format!(
        "outrigger {} in {}\n{}\n",
        env!("CARGO_PKG_VERSION"),
        name(&program.display().to_string()),
        how(&program)
    ));
    Ok(0)
}

/// Returns the command for the program's location.
fn how(program: &Path) -> &'static str {
    let has = |name: &str| program.components().any(|part| part.as_os_str() == name);
    if has("node_modules") {
        "upgrade it with: npm install -g outrigger@latest"
    } else if program.starts_with("/usr/bin") {
        "upgrade it with a newer package: apt install ./outrigger_VERSION.deb"
    } else if has("target") {
        "upgrade it in its source folder: git pull && cargo build --release"
    } else {
        "upgrade it by putting a newer `outrigger` in its place; sessions and settings stay"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_is_that_of_the_installation() {
        for (program, word) in [
            (
                "/usr/lib/node_modules/outrigger-linux-x64/bin/outrigger",
                "npm",
            ),
            ("/usr/bin/outrigger", "apt"),
            ("/home/me/outrigger/target/release/outrigger", "cargo"),
            ("/home/me/.local/bin/outrigger", "putting"),
        ] {
            assert!(how(Path::new(program)).contains(word), "{program}");
        }
    }
}
