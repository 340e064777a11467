//! `cargo xtask generate`: files that are made from the code, so that they cannot say anything else.
//!
//! `docs/hooks.md` is the table of hook points (C1: every hook of OpenCode is a view of one of ours).
//! `docs/plugin-manifest.schema.json` is for editors of `outrigger.plugin.toml`, `docs/opencode.schema.json` and
//! `docs/outrigger.schema.json` for those of `opencode.json` and `outrigger.toml`. The tables in `docs/configuration/outrigger-toml.md` are those of the settings.
//! `docs/api.schema.json` and `web/src/api.ts` are what our own HTTP API takes and answers.
//! The pages in `docs/bypass` are the tables of `docs/bypass/attempts.toml`, `docs/requirements.md` is made of
//! `docs/requirements/rows.toml`.

pub(crate) mod attempts;
pub(crate) mod models;
pub(crate) mod requirements;
mod schema;
mod settings;

use std::fmt::Write as _;
use std::fs;

use outrigger_kernel::hooks::{ALIASES, Failure, Field, HookPoint, Kind, Phase, PointSpec};

use crate::sh::{self, Arguments};
use crate::{Result, failed, usage};

/// Returns every generated file with its text; `read` returns the text of a source file.
fn files<'t>(
    read: impl Fn(&str) -> Option<&'t str>,
) -> std::result::Result<Vec<(String, String)>, String> {
    let mut files = vec![
        ("docs/hooks.md".to_owned(), hooks()),
        (
            "docs/plugin-manifest.schema.json".to_owned(),
            schema::manifest(),
        ),
        ("docs/opencode.schema.json".to_owned(), schema::opencode()),
        ("docs/outrigger.schema.json".to_owned(), schema::settings()),
        ("docs/api.schema.json".to_owned(), outrigger_api::schema()),
        ("web/src/api.ts".to_owned(), outrigger_api::typescript()),
    ];
    let source = |path: &str| read(path).ok_or_else(|| format!("{path} is missing"));
    let page = settings::page(source(settings::PAGE)?)?;
    files.push((settings::PAGE.to_owned(), page));
    let requirements = requirements::parse(source(requirements::FILE)?)?;
    files.push((requirements::PAGE.to_owned(), requirements.markdown()));
    let attempts = attempts::parse(source(attempts::FILE)?)?;
    files.extend(
        attempts
            .page
            .iter()
            .map(|page| (page.path(), page.markdown())),
    );
    Ok(files)
}

/// Writes the files.
pub(crate) fn run(arguments: &[String]) -> Result {
    if let Some(word) = Arguments::new(arguments).next() {
        return usage(format!("generate takes no `{word}`"));
    }
    let sources = [attempts::FILE, requirements::FILE, settings::PAGE].map(|path| {
        let text = fs::read_to_string(sh::root().join(path));
        (path, text.ok())
    });
    let read = |path: &str| {
        let mut sources = sources.iter();
        sources.find(|(name, _)| *name == path)?.1.as_deref()
    };
    for (path, text) in files(read).or_else(failed)? {
        fs::write(sh::root().join(&path), text)
            .or_else(|error| failed(format!("{path}: {error}")))?;
        println!("generate: {path}");
    }
    Ok(())
}

/// Returns files whose committed text differs from the generated one; `committed` returns a file's text.
pub(crate) fn stale<'t>(committed: impl Fn(&str) -> Option<&'t str>) -> Vec<String> {
    let files = match files(&committed) {
        Ok(files) => files,
        Err(error) => return vec![error],
    };
    files
        .iter()
        .filter(|(path, text)| committed(path) != Some(text.as_str()))
        .map(|(path, _)| format!("{path} is stale: run `cargo xtask generate`"))
        .collect()
}

fn hooks() -> String {
    let mut out = String::from(
        "# Hook points\n\n\
         Made by `cargo xtask generate` from `crates/outrigger-kernel/src/hooks/points/`. CI fails if they differ.\n\n\
         A plugin provides a handler under the name in the column \"Hook\". The name is OpenCode's if OpenCode has the hook.\n\
         Spellings without `experimental.` and the names of the points are accepted too.\n\n\
         | Point | Hook | Reached | Input | May change in `output` | May refuse | A throw | Deadline |\n\
         |---|---|---|---|---|---|---|---|\n",
    );
    rows(&mut out);
    out.push_str(
        "<!-- shown by: (each row) crates/outrigger-cli/tests/it/points_all.rs::every_point_fires_from_its_place, \
         crates/outrigger-kernel/tests/it/guarded.rs::every_point_and_field_takes_what_it_allows_and_nothing_else, \
         crates/outrigger-kernel/tests/it/chain.rs::failures_by_table -->\n",
    );
    further_names(&mut out);
    for point in HookPoint::ALL.iter().copied().map(HookPoint::spec) {
        let _ = writeln!(
            out,
            "- `{}` (`{}`): {}",
            point.name, point.hook, point.about
        );
    }
    out.push_str(
        "<!-- shown by: (each row) crates/outrigger-cli/tests/it/points_all.rs::every_point_fires_from_its_place, \
         crates/outrigger-cli/tests/it/points.rs::each_is_reached_as_often_as_it_happens, \
         crates/outrigger-cli/tests/it/permission.rs::no_plugin_allows_without_a_grant, \
         crates/outrigger-cli/tests/it/command_hooks.rs::a_turn_is_kept_from_ending_so_many_times_at_most -->\n",
    );
    out.push_str(HOOK_RULES);
    out
}

/// Writes the table of the hook points.
fn rows(out: &mut String) {
    for point in HookPoint::ALL.iter().copied().map(HookPoint::spec) {
        let _ = writeln!(
            out,
            "| `{}` | `{}` | {} | {} | {} | {} | {} | {} |",
            point.name,
            point.hook,
            phase(point.phase),
            or_dash(point.input),
            patch(point.patch),
            if point.block { "yes" } else { "no" },
            throw(point),
            seconds(point.deadline.default_ms()),
        );
    }
}

/// Writes the aliases of the points.
fn further_names(out: &mut String) {
    out.push_str("\nFurther names of points, which are accepted too:");
    for (n, (alias, name)) in ALIASES.iter().enumerate() {
        let _ = write!(
            out,
            "{} `{alias}` is `{name}`",
            if n > 0 { "," } else { "" }
        );
    }
    out.push_str(
        ". A handler under each of these names is called, in addition to\n\
         one under the point's own name; two spellings of one of OpenCode's names are one handler. `llm.after_response_raw` gets\n\
         the same as `llm.after_response_parsed`, the reason and the tokens: the bytes of an answer are not stored, and its content\n\
         is in the message (`message.completed`).\n\n## What each point is for\n\n",
    );
}

/// What holds at each of the points.
const HOOK_RULES: &str = "\nA field marked `?` may be absent. A change of a field that is not listed is recorded and has no effect; the rest of the\n\
         answer is used. If a required field is missing afterwards, or has another type, the whole answer is dropped. A handler\n\
         that misses its deadline is skipped, and its process is restarted. No handler is called twice.\n\n\
         Notifications, including errors, are sent in the order of events, one after the other for each session and each\n\
         connection of the bridge. Nothing waits for them, except at `llm.on_error` and `tool.on_error`, which collect context,\n\
         and at `session.before_create` and `session.before_fork`, which come before their event. If 256 notifications wait for\n\
         slow handlers, further ones are dropped until there is room; the log names the first and their number. Texts in\n\
         `context` of `llm.on_error` and `tool.on_error` are appended to the error (C4). At the other points the error has already\n\
         been reported: their context is logged, stored and published as `outrigger.error.context`.\n\
         <!-- shown by: crates/outrigger-cli/tests/it/points.rs::notify_only_points_come_in_order_and_hold_nothing_up, \
         crates/outrigger-session-state/src/notifications.rs::a_line_is_in_order_and_has_an_end, \
         crates/outrigger-session-state/src/notifications.rs::MAX_PENDING = 256, \
         crates/outrigger-cli/tests/it/points.rs::context_stands_behind_the_error_of_a_request -->\n\n\
         At points that allow a refusal, a command hook refuses with its answer ([command-hooks.md](command-hooks.md)). A plugin\n\
         refuses with an error named `HookBlock`, with any throw if a throw becomes an error there, and with any failure if\n\
         `fail_closed` names the hook. The plugin's manifest lists what it may do ([plugins.md](plugins/writing.md#refusing)).\n\n\
         `tool`, `auth` and `provider` are registrations, not calls. They are read once, when the plugin is loaded.\n";

fn phase(phase: Phase) -> &'static str {
    match phase {
        Phase::Before => "before",
        Phase::After => "after",
        Phase::Error => "on error",
        Phase::Observe => "notified",
    }
}

fn or_dash(text: &str) -> &str {
    if text.is_empty() { "-" } else { text }
}

fn patch(fields: &[Field]) -> String {
    if fields.is_empty() {
        return "nothing".to_owned();
    }
    let field = |field: &Field| {
        let kind = match field.kind {
            Kind::Any => "",
            Kind::String => ": text",
            Kind::Number => ": number",
            Kind::Bool => ": boolean",
            Kind::Array => ": list",
            Kind::Object => ": object",
        };
        let name = if field.key == "*" {
            "any key"
        } else {
            field.key
        };
        format!(
            "{name}{}{kind}",
            if field.required || field.key == "*" {
                ""
            } else {
                "?"
            }
        )
    };
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn throw(point: &PointSpec) -> &'static str {
    match (point.phase, point.failure) {
        (Phase::Observe, _) => "is logged",
        (_, Failure::ThrowBlocks) => "becomes the tool's error",
        (_, Failure::Open) => "costs this handler's change only",
    }
}

fn seconds(ms: u64) -> String {
    if ms.is_multiple_of(1000) {
        format!("{} s", ms / 1000)
    } else {
        format!("{ms} ms")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_just_made_is_not_stale_and_anything_else_is() {
        let attempts = "[[page]]\nname = \"files\"\ntitle = \"Files\"\nsection = []\n";
        let page = fs::read_to_string(sh::root().join(settings::PAGE)).unwrap();
        let with = |path: &str| match path {
            attempts::FILE => Some(attempts),
            requirements::FILE => Some("section = []\n"),
            settings::PAGE => Some(page.as_str()),
            _ => None,
        };
        let made = files(with).unwrap();
        let now = |wanted: &str| {
            made.iter()
                .find(|(path, _)| path == wanted)
                .map_or_else(|| with(wanted), |(_, text)| Some(text.as_str()))
        };
        assert!(stale(now).is_empty());
        assert_eq!(stale(with).len(), made.len() - 1, "the page is there");
        assert_eq!(stale(|_| None).len(), 1);
    }
}
