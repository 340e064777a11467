//! `outrigger config`.

use std::path::PathBuf;

use outrigger_agent::ProjectLocation;

use crate::args::{ConfigCommand, Global};
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{entry, err, one_line, out};

/// Runs the command. No plugin is started, so this is the configuration before `config` hooks.
pub(crate) fn config(global: &Global, command: ConfigCommand) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let ConfigCommand::Show { json } = command else {
        let counted = outrigger_agent::allow_settings(&boot)?;
        if counted.is_empty() {
            out("the settings of this project are unchanged\n")
        } else {
            out(&one_line(format_args!("accepted: {}", counted.join(", "))))
        }
        return Ok(0);
    };
    let loaded = boot.load(&ProjectLocation::find(&boot.directory))?;
    if json {
        let text = serde_json::to_string_pretty(&loaded.redacted()).unwrap_or_default();
        out(&format!("{text}\n"));
        return Ok(0);
    }
    for shown in loaded.show().into_iter().chain(loaded.show_settings()) {
        out(&one_line(format_args!(
            "{} = {}  ({})",
            shown.name, shown.value, shown.origin
        )));
    }
    for problem in &loaded.problems {
        err(&entry(&format!("warning: {problem}")));
    }
    Ok(0)
}

/// `outrigger trust`.
pub(crate) fn trust(
    mut global: Global,
    path: Option<PathBuf>,
    revoke: bool,
) -> Result<u8, Failure> {
    global.dir = path.or(global.dir);
    // Shows what is requested even if it is trusted.
    global.trust = false;
    let mut boot = crate::boot::boot(&global, &Line::new())?;
    boot.env.remove(outrigger_agent::TRUST_PROJECT);
    let folder = boot.directory.display().to_string();
    if revoke {
        let text = if outrigger_agent::distrust_folder(&boot)? {
            "is no longer trusted"
        } else {
            "was not trusted"
        };
        out(&one_line(format_args!("{folder} {text}")));
        return Ok(0);
    }
    let asks = outrigger_agent::trust_folder(&boot)?;
    let frame = crate::consent::folder_details(&asks);
    if asks.sections.is_empty() {
        out(&one_line(format_args!("nothing in {folder} needs trust")))
    } else {
        out(&format!(
            "{}{folder} is trusted until its settings change\n",
            frame.whole(crate::terminal::out_size().columns)
        ))
    }
    Ok(0)
}
