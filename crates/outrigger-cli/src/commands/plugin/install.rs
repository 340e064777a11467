//! `outrigger plugin install` and `remove`: the `plugin` list of an `opencode.json`.

use outrigger_agent::Agent;
use outrigger_plugins::Stage;
use serde_json::{Value, json};

use super::listing::{listing, table};
use crate::args::Global;
use crate::commands::settings_file::SettingsFile;
use crate::exit;
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{one_line, out};

/// Adds a plugin to the list, loads it and shows the result.
pub(super) async fn install(global: &Global, spec: &str, of_user: bool) -> Result<u8, Failure> {
    if spec.trim().is_empty() {
        let hint = "outrigger plugin install NAME".to_owned();
        return Err(Failure::usage("there is no plugin to install", Some(hint)));
    }
    let boot = crate::boot::boot(global, &Line::new())?;
    let mut file = SettingsFile::load(&boot, of_user)?;
    // A path is relative to this folder, wherever the file is that lists it.
    let path = boot.directory.join(spec);
    let item = match spec.starts_with(['.', '/']) {
        true if !path.exists() => {
            let message = format!("{} does not exist", path.display());
            return Err(Failure::new("plugin.not_found", message, None));
        }
        true => path.canonicalize().unwrap_or(path).display().to_string(),
        false => spec.to_owned(),
    };
    if file.add_item("plugin", &json!(item))? {
        file.write(&boot)?;
        out(&one_line(format_args!("added {item} to {}", file.name())));
    } else {
        out(&one_line(format_args!(
            "{item} is in {} already",
            file.name()
        )))
    }
    let agent = Agent::boot(listing(global)?).await?;
    let mut plugins = agent.plugins();
    agent.shutdown().await;
    plugins
        .retain(|plugin| plugin.spec == item || plugin.spec.strip_prefix("file://") == Some(&item));
    if plugins.is_empty() {
        return Ok(0);
    }
    out(&table(&plugins));
    let failed = plugins.iter().any(|it| it.stage == Stage::Failed);
    Ok(if failed { exit::PLUGINS } else { 0 })
}

/// Removes a plugin from the project's list, or from the user's if the project's does not have it.
pub(super) fn remove(global: &Global, spec: &str) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let path = boot.directory.join(spec);
    let path = path.canonicalize().unwrap_or(path).display().to_string();
    for of_user in [false, true] {
        let mut file = SettingsFile::load(&boot, of_user)?;
        if file.remove_items("plugin", |item| names(item, spec) || names(item, &path))? {
            file.write(&boot)?;
            out(&one_line(format_args!(
                "removed {spec} from {}",
                file.name()
            )));
            return Ok(0);
        }
    }
    Err(Failure::new(
        "plugin.unknown",
        format!("no opencode.json here lists a plugin `{spec}`"),
        Some("`outrigger plugin snapshot` shows where each comes from; `plugin disable` switches one off".to_owned()),
    ))
}

/// Returns whether an entry of the list, with or without options, is this plugin, in any version.
fn names(item: &Value, spec: &str) -> bool {
    let entry = match item {
        Value::Array(pair) => pair.first().and_then(Value::as_str),
        item => item.as_str(),
    };
    let entry = entry.unwrap_or_default();
    let entry = entry.strip_prefix("file://").unwrap_or(entry);
    let version = entry
        .strip_prefix(spec)
        .and_then(|rest| rest.strip_prefix('@'));
    entry == spec || version.is_some_and(|version| !version.contains('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_is_named_in_whatever_version() {
        for (item, spec, fits) in [
            (json!("a"), "a", true),
            (json!("a@1.2"), "a", true),
            (json!("a@1.2"), "a@1.2", true),
            (json!("a@1.2"), "a@1", false),
            (json!(["@s/a@latest", {}]), "@s/a", true),
            (json!("@s/a"), "", false),
            (json!("ab"), "a", false),
            (json!("file:///p/x.js"), "/p/x.js", true),
            (json!(5), "5", false),
        ] {
            assert_eq!(names(&item, spec), fits, "{item} {spec}");
        }
    }
}
