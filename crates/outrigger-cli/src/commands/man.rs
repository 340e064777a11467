//! Man pages, generated from the command line's definition.

use std::fs::{self, File};
use std::path::Path;

use clap::CommandFactory as _;
use clap_mangen::Man;

use crate::failure::Failure;
use crate::terminal::out;

/// Prints the page of a command, or writes those of all commands to a folder, which is created if missing.
pub(crate) fn man(command: &[String], folder: Option<&Path>) -> Result<u8, Failure> {
    let mut root = crate::args::Cli::command().disable_help_subcommand(true);
    // Sets the full names of subcommands (`outrigger-session-show`).
    root.build();
    if let Some(folder) = folder {
        fs::create_dir_all(folder).map_err(|error| not_written(folder, &error))?;
        write_all(&root, folder)?;
        return Ok(0);
    }
    let mut found = &root;
    for name in command {
        found = found.find_subcommand(name).ok_or_else(|| {
            let hint = "outrigger --help lists the commands";
            Failure::usage(
                format!("there is no command `{}`", command.join(" ")),
                Some(hint.to_owned()),
            )
        })?;
    }
    let mut page = Vec::new();
    page_of(found)
        .render(&mut page)
        .map_err(|error| Failure::new("cli.man", error.to_string(), None))?;
    out(&String::from_utf8_lossy(&page));
    Ok(0)
}

/// Writes the page of a command, and those of its subcommands.
fn write_all(command: &clap::Command, folder: &Path) -> Result<(), Failure> {
    let name = name(command);
    let path = folder.join(format!("{name}.1"));
    File::create(&path)
        .and_then(|mut file| page_of(command).render(&mut file))
        .map_err(|error| not_written(&path, &error))?;
    command
        .get_subcommands()
        .filter(|it| !it.is_hide_set())
        .filter(|it| it.get_name() != "help")
        .try_for_each(|it| write_all(it, folder))
}

fn page_of(command: &clap::Command) -> Man {
    Man::new(command.clone()).title(name(command).to_uppercase())
}

/// Returns the name with those of its parent commands: `outrigger-session-show`.
fn name(command: &clap::Command) -> &str {
    command.get_display_name().unwrap_or(command.get_name())
}

fn not_written(path: &Path, error: &std::io::Error) -> Failure {
    let hint = "name a folder that you can write";
    Failure::new(
        "cli.man",
        format!("cannot write {}: {error}", path.display()),
        Some(hint.to_owned()),
    )
}
