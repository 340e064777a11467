//! `outrigger plugin allow-hooks`: command hooks of a project run only after the user has approved their current content.

use outrigger_agent::{AllowedHooks, ProjectLocation};
use outrigger_config::claude_hooks::{HookFile, HookScope};

use crate::args::Global;
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{entry, err, one_line, out};

/// Runs the command. Shows what the hooks run.
pub(crate) fn allow_hooks(global: &Global, list: bool, revoke: bool) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let config = boot.load(&ProjectLocation::find(&boot.directory))?;
    let (files, problems) = config.claude_hooks();
    for problem in problems {
        err(&entry(&format!("warning: {problem}")));
    }
    let files: Vec<HookFile> = files
        .into_iter()
        .filter(|file| file.unreadable.is_none())
        .collect();
    if files.is_empty() {
        out("no hooks in a .claude/settings.json of this project or of yours\n");
    }
    let allowed = AllowedHooks::new(&boot.folders);
    let failed = |error: std::io::Error| {
        Failure::new("hooks.allow", format!("it cannot be kept: {error}"), None)
    };
    for file in &files {
        let own = file.scope == HookScope::User;
        if !own && !list {
            if revoke {
                allowed.revoke(file).map_err(failed)?;
            } else {
                allowed.allow(file).map_err(failed)?
            }
        }
        out(&shown(file, allowed.holds(file) || config.lets_hooks(file)));
    }
    Ok(0)
}

fn shown(file: &HookFile, holds: bool) -> String {
    let word = match (file.scope, holds) {
        (HookScope::User, _) => "yours",
        (_, true) => "allowed",
        (_, false) => "not allowed",
    };
    let mut text = one_line(format_args!("{word:<12} {}", file.file.display()));
    for hook in &file.hooks {
        let matcher = match hook.matcher.as_str() {
            "" => String::new(),
            matcher => format!("({matcher})"),
        };
        text.push_str(&one_line(format_args!(
            "             {}{matcher}: {}",
            hook.event.name(),
            hook.line()
        )));
    }
    text
}
