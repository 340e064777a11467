//! `outrigger plugin review`: shows changes of plugins since they were trusted, and trusts them. `outrigger plugin
//! show`: shows a plugin's manifest.

use outrigger_agent::Agent;
use outrigger_plugins::{ManifestShown, PluginStatus, Review, Reviewed, accept, review};

use crate::args::{Global, ReviewArgs};
use crate::exit;
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{name, one_line, out};
use outrigger_terminal::{Frame, Size};

/// Runs the command; no plugin is started. Exits with the code for plugins if one of them is still not trusted.
pub(crate) async fn run(global: &Global, args: ReviewArgs) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let ignored = outrigger_agent::why_ignored(&boot)?;
    let options = outrigger_agent::review_options(&boot)?;
    let only = args.name.as_deref();
    let mut found = review(&options, only).await;
    if let (Some(name), true) = (only, found.is_empty()) {
        return Err(Failure::unknown_plugin(
            name,
            "`outrigger plugin review` without a name lists them",
        ));
    }
    if args.accept || args.pin {
        if !args.json {
            // It is trusted as shown.
            out(&table(&found, true, ignored.as_deref()));
        }
        accept(&options, &found, args.pin, outrigger_stdx::clock::now_ms())
            .await
            .map_err(|error| Failure::of(&error))?;
        found = review(&options, only).await;
    }
    out(&if args.json {
        format!(
            "{}\n",
            serde_json::to_string_pretty(&found).unwrap_or_default()
        )
    } else {
        table(&found, args.all, ignored.as_deref())
    });
    // A plugin of ignored settings is not trusted.
    if found.is_empty() && ignored.is_some() {
        return Ok(exit::PLUGINS);
    }
    let trusted = |review: &Review| review.state == Reviewed::Trusted && review.reason.is_none();
    Ok(if found.iter().all(trusted) {
        0
    } else {
        exit::PLUGINS
    })
}

/// Maximum rows of a change without `--all`.
const MAX_ROWS: usize = 120;

fn table(found: &[Review], all: bool, ignored: Option<&str>) -> String {
    if found.is_empty() {
        return super::listing::none(ignored);
    }
    found.iter().map(|review| entry(review, all)).collect()
}

fn entry(review: &Review, all: bool) -> String {
    let state = match review.state {
        Reviewed::Trusted => "trusted",
        Reviewed::Changed => "changed",
        Reviewed::New => "new",
        Reviewed::Refused => "refused",
    };
    let (id, spec) = (name(&review.id), name(&review.spec));
    let mut text = one_line(format_args!("{state:<8} {id}  ({spec})"));
    if let Some(reason) = &review.reason {
        text.push_str(&one_line(format_args!("  {}", name(reason))));
    }
    if let Some(trusted) = &review.trusted {
        text.push_str(&one_line(format_args!(
            "  trusted by {}: {} files, {}",
            trusted.by, trusted.files, trusted.hash
        )));
    }
    if let (Some(hash), false) = (&review.hash, review.state == Reviewed::Trusted) {
        text.push_str(&one_line(format_args!("  now {hash}")));
    }
    let size = Size {
        rows: MAX_ROWS,
        ..crate::terminal::out_size()
    };
    let frame = Frame::new().with("", review.changes.text());
    text.push_str(&if all {
        frame.whole(size.columns)
    } else {
        frame.bounded(size, "; --all shows them").text
    });
    text
}

/// Loads the plugins and shows one of them.
pub(crate) async fn show(global: &Global, name: &str, json: bool) -> Result<u8, Failure> {
    let agent = Agent::boot(super::listing::listing(global)?).await?;
    let plugins = agent.plugins();
    agent.shutdown().await;
    let Some(plugin) = plugins
        .iter()
        .find(|plugin| plugin.id == name || plugin.spec == name)
    else {
        return Err(Failure::unknown_plugin(
            name,
            "`outrigger plugin list` lists them",
        ));
    };
    out(&if json {
        format!(
            "{}\n",
            serde_json::to_string_pretty(plugin).unwrap_or_default()
        )
    } else {
        shown(plugin)
    });
    Ok(0)
}

fn shown(plugin: &PluginStatus) -> String {
    let mut text = super::listing::table(std::slice::from_ref(plugin));
    if let Some(trust) = &plugin.trust {
        text.push_str(&one_line(format_args!(
            "             trust  by {}: {} files, {}",
            trust.by, trust.files, trust.hash
        )));
    }
    if let Some(manifest) = &plugin.manifest {
        text.push_str(&granted(manifest));
    }
    text
}

/// Formats its requests by key, with those that are denied.
fn granted(shown: &ManifestShown) -> String {
    let from = if shown.declared {
        "its own outrigger.plugin.toml"
    } else {
        "none; this is what such a plugin is given"
    };
    let mut text = one_line(format_args!("             manifest  {from}"));
    let value = serde_json::to_value(&shown.manifest).unwrap_or_default();
    for (key, value) in value.as_object().into_iter().flatten() {
        if value.as_object().is_none_or(|inner| !inner.is_empty()) {
            text.push_str(&one_line(format_args!("               {key} = {value}")));
        }
    }
    text.push_str(&one_line(format_args!(
        "             hooks  {}",
        shown.hooks
    )));
    let hosts = if shown.hosts.is_empty() {
        "none".to_owned()
    } else {
        shown.hosts.join(", ")
    };
    text.push_str(&one_line(format_args!(
        "             may connect to  {hosts}"
    )));
    for (word, lines) in [("not given", &shown.withheld), ("policy", &shown.forbidden)] {
        for line in lines {
            text.push_str(&one_line(format_args!("             {word}  {line}")));
        }
    }
    text
}
