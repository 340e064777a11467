//! `outrigger plugin grant`: what a plugin may do on behalf of the user, in the user's own
//! `outrigger.toml`.

use std::path::Path;

use outrigger_plugins::{Grant, SnapshotEntry};

use crate::args::{Global, GrantArgs};
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{one_line, out};

/// Runs the command: writes the settings, or shows the current grants if none is named. No plugin is
/// started.
pub(crate) fn run(global: &Global, args: &GrantArgs) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let name = key(&boot, &args.name)?;
    let grants = args.grants.iter().map(|word| {
        Grant::of_key(word).ok_or_else(|| {
            let known: Vec<&str> = Grant::ALL.into_iter().map(Grant::key).collect();
            Failure::usage(
                format!("there is no grant called `{word}`"),
                Some(format!("one of {}", known.join(", "))),
            )
        })
    });
    for grant in grants.collect::<Result<Vec<_>, _>>()? {
        let file = boot.folders.settings();
        outrigger_config::write_grant(&file, &name, grant.key(), !args.revoke)
            .map_err(|error| Failure::of(&error))?;
        let done = if args.revoke {
            "taken from"
        } else {
            "given to"
        };
        out(&one_line(format_args!(
            "`{}` is {done} {name}, in {}",
            grant.key(),
            file.display()
        )));
    }
    out(&list(&boot, &name)?);
    Ok(0)
}

/// Returns the grants of a plugin in the user's settings.
fn list(boot: &outrigger_agent::Boot, name: &str) -> Result<String, Failure> {
    let config = boot.load(&outrigger_agent::ProjectLocation::find(&boot.directory))?;
    let rules = config.settings.plugins.get(name);
    let has = |grant: &Grant| {
        rules.is_some_and(|rules| match grant {
            Grant::Approve => rules.approve,
            Grant::Rewrite => rules.rewrite,
            Grant::Model => rules.model,
            Grant::Prompt => rules.prompt,
        })
    };
    let given: Vec<&str> = Grant::ALL.into_iter().filter(has).map(Grant::key).collect();
    Ok(if given.is_empty() {
        one_line(format_args!("{name} has no grants"))
    } else {
        one_line(format_args!("{name} has {}", given.join(", ")))
    })
}

/// Returns the NAME of `[plugins.NAME]` with the plugin's grants: its npm package, or the path of its
/// file.
fn key(boot: &outrigger_agent::Boot, name: &str) -> Result<String, Failure> {
    let snapshot = outrigger_agent::plugin_snapshot(boot)?;
    // As typed in the current folder.
    let path = Path::new(name).canonicalize().ok();
    let is_meant = |it: &&SnapshotEntry| {
        let key = it.grant_key();
        let is_file = |key: &String| path.is_some() && Path::new(key).canonicalize().ok() == path;
        it.id == name
            || it.place == name
            || key.as_deref() == Some(name)
            || key.is_some_and(|key| is_file(&key))
    };
    let mut named: Vec<String> = snapshot
        .entries
        .iter()
        .filter(is_meant)
        .filter_map(SnapshotEntry::grant_key)
        .collect();
    named.dedup();
    match named.as_slice() {
        [one] => Ok(one.clone()),
        [] => Err(Failure::usage(
            format!("no plugin `{name}` that accepts grants"),
            Some(
                "`outrigger plugin snapshot` lists plugins; only npm packages and files accept grants"
                    .into(),
            ),
        )),
        several => Err(Failure::usage(
            format!("the name `{name}` is ambiguous"),
            Some(format!("use one of {}", several.join(", "))),
        )),
    }
}
