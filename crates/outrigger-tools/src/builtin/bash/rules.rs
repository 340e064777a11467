//! What needs approval before a shell command runs: every program that it runs, and every folder outside the project that
//! it touches.

use outrigger_protocol::permission_names::EXTERNAL_DIRECTORY;
use std::path::{Path, PathBuf};

use outrigger_shell_parse::Command;
use serde_json::{Value, json};

use outrigger_sandbox::{is_of_system, which};

use super::paths::Paths;
use super::{locate, mentions, text};
use crate::error::ToolError;
use crate::files::{Located, always_in};
use crate::host::{PermissionAsk, ToolContext};
use crate::shell::command_line;
use crate::shell::command_line::line_folders::LineFolders;
use crate::shell::command_line::redirections::ask_for_redirections;

// Commands whose arguments are paths. OpenCode's list, and a few more that write.
pub(super) const FILES: &[&str] = &[
    "cat", "cd", "chdir", "chmod", "chown", "cp", "head", "ln", "mkdir", "mv", "pushd", "rm",
    "rmdir", "tail", "tee", "touch",
];

pub(super) fn workdir(input: &Value, ctx: &ToolContext) -> Result<Located, ToolError> {
    match text(input, "workdir") {
        "" => locate(ctx, "."),
        path => locate(ctx, path),
    }
}

pub(super) fn asks(
    input: &Value,
    shell: &Path,
    ctx: &ToolContext,
) -> Result<Vec<PermissionAsk>, ToolError> {
    let command = text(input, "command");
    if command.contains('\0') {
        return Err(ToolError::failed("The command has a NUL byte in it."));
    }
    let cwd = workdir(input, ctx)?;
    let mut folders: Vec<PathBuf> = Vec::new();
    if !cwd.inside {
        folders.push(cwd.real.clone());
    }
    let line = outrigger_shell_parse::read(command);
    let paths = Paths::new(&line, &cwd.shown);
    for simple in &line.commands {
        allowed(simple, ctx)?;
        outside(simple, &paths, ctx, &mut folders)?;
    }
    mentions::outside(&line, &paths, ctx, &mut folders)?;
    let mut asks = Vec::new();
    if !folders.is_empty() {
        let globs: Vec<String> = folders
            .iter()
            .map(|folder| folder.join("*").display().to_string())
            .collect();
        asks.push(PermissionAsk {
            permission: EXTERNAL_DIRECTORY.to_owned(),
            patterns: globs.clone(),
            always: folders.iter().filter_map(|it| always_in(it)).collect(),
            metadata: json!({"command": command, "directories": folders, "patterns": globs}),
            ..PermissionAsk::default()
        });
    }
    let place = LineFolders {
        session: &ctx.directory,
        begins: &cwd.shown,
    };
    let mut ask = command_line::ask_for(command, &line, &place);
    // Others, such as fish, quote differently.
    let name = shell.file_name().and_then(|name| name.to_str());
    if !name.is_some_and(|name| super::SHELLS.contains(&name)) {
        ask = ask.of_unknown_shell(command, &place, shell);
    }
    ask.unread |= line.missed_by_sh && !matches!(name, Some("bash" | "zsh"));
    let programs = programs(&line.commands, &cwd.shown, ctx);
    if !programs.is_empty() {
        ask.metadata["programs"] = json!(programs);
    }
    if !ask.patterns.is_empty() {
        asks.push(ask);
    }
    asks.extend(ask_for_redirections(command, &line, &cwd.shown, ctx)?);
    Ok(asks)
}

// Returns programs that do not belong to the system, with links resolved: the question shows them, since the name alone
// does not show that `git` comes from the project, from `~/bin` or from `/tmp`. Programs after a `cd` are looked up in the
// folder in which the line starts; the line shows the `cd`.
fn programs(commands: &[Command], cwd: &Path, ctx: &ToolContext) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in commands.iter().filter_map(Command::program) {
        let path = if name.contains('/') {
            Some(cwd.join(name)).filter(|path| path.is_file())
        } else {
            which(name, std::env::var_os("PATH").unwrap_or_default())
        };
        let real = path.and_then(|path| path.canonicalize().ok());
        let Some(real) = real.filter(|it| is_of_project(it, ctx) || !is_of_system(it)) else {
            continue;
        };
        let line = format!("{name} is {}", real.display());
        if !found.contains(&line) {
            found.push(line);
        }
    }
    found
}

fn is_of_project(real: &Path, ctx: &ToolContext) -> bool {
    let mut roots = [&ctx.worktree, &ctx.directory]
        .into_iter()
        .filter(|root| root.parent().is_some());
    roots.any(|root| {
        let root = root.canonicalize();
        root.is_ok_and(|root| real.starts_with(root))
    })
}

// The sandbox blocks a forbidden program however the command names it; this check provides the message.
fn allowed(simple: &Command, ctx: &ToolContext) -> Result<(), ToolError> {
    let name = simple.program();
    let (Some(name), Some(forbids)) = (name, ctx.spawner.forbids()) else {
        return Ok(());
    };
    match forbids.program(Path::new(name)) {
        Some(pattern) => Err(ToolError::Forbidden {
            what: format!("the program {name}"),
            pattern,
        }),
        None => Ok(()),
    }
}

// Returns folders outside the project that a command's arguments or redirections name, or may name.
fn outside(
    simple: &Command,
    paths: &Paths<'_>,
    ctx: &ToolContext,
    folders: &mut Vec<PathBuf>,
) -> Result<(), ToolError> {
    // `/bin/cat` is `cat`.
    let name = simple.program().and_then(|it| it.rsplit('/').next());
    let arguments = match name {
        Some(name) if FILES.contains(&name) => simple.words.get(1..).unwrap_or_default(),
        _ => &[],
    };
    let files = simple.files.iter().map(|file| &file.name);
    let is_mode = |path: &str| name == Some("chmod") && path.starts_with('+');
    let named = arguments.iter().chain(files);
    for path in named.flat_map(|word| paths.of(word)) {
        if path.starts_with('-') || is_mode(&path) {
            continue;
        }
        let at = match locate(ctx, &paths.absolute(&path).to_string_lossy()) {
            Ok(at) => at,
            Err(error @ ToolError::Forbidden { .. }) => return Err(error),
            Err(_) => continue,
        };
        if at.shown.starts_with("/dev") || at.inside || at.is_lent(ctx) && !simple.writes() {
            continue;
        }
        let folder = at.into_folder();
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    Ok(())
}
