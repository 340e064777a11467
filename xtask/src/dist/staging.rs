//! The common content of all packages in one folder: the program, and the files that it generates.

use std::path::{Path, PathBuf};

use super::{copy, create, empty, write_file};
use crate::Result;
use crate::sh::{self, check, command};

/// A shell, and the file name of its completion script.
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "outrigger.bash"),
    ("zsh", "_outrigger"),
    ("fish", "outrigger.fish"),
];

/// Texts next to the program.
const TEXTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT"];

/// Creates the folder with `outrigger`, the texts, `completions/` and `man/`.
pub(super) fn stage(binary: &Path) -> Result<PathBuf> {
    let folder = empty("staged")?;
    copy(binary, &folder.join("outrigger"))?;
    for text in TEXTS {
        copy(&sh::root().join(text), &folder.join(text))?;
    }
    let completions = folder.join("completions");
    create(&completions)?;
    for (shell, name) in COMPLETIONS {
        let script = sh::output(command(binary).args(["completions", shell]))?;
        write_file(&completions.join(name), &script)?;
    }
    let man = folder.join("man");
    create(&man)?;
    check(command(binary).args(["man", "--out"]).arg(&man))?;
    Ok(folder)
}
