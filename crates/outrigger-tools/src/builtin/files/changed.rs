//! Steps after `edit`, `write` or `apply_patch` has written a file: formatters, events, and diagnostics of language servers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use outrigger_protocol::event::Event;
use serde_json::{Value, json};

use crate::files::{Located, Text, read_text};
use crate::host::ToolContext;

/// Maximum number of errors shown for one file (OpenCode's figure).
const MAX_ERRORS: usize = 20;
/// Maximum number of other files whose errors are shown after a whole file was written (OpenCode's figure).
const MAX_OTHERS: usize = 5;

/// Publishes that a file changed, as OpenCode does.
pub(in crate::builtin) fn publish_change(at: &Located, existed: bool, ctx: &ToolContext) {
    let file = at.shown.display().to_string();
    ctx.host.publish(Event::FileEdited { file: file.clone() });
    let event = if existed { "change" } else { "add" }.to_owned();
    ctx.host.publish(Event::FileWatcherUpdated { file, event });
}

/// Runs formatters on the file and publishes its change. Returns the current content, which later edits, the diff and language
/// servers use, and a note for the model that follows the output; usually empty.
pub(in crate::builtin) async fn format_and_publish(
    at: &Located,
    old: Option<&Text>,
    written: Text,
    ctx: &ToolContext,
) -> (Text, String) {
    let formatted = format(at, old, written, ctx).await;
    publish_change(at, old.is_some(), ctx);
    formatted
}

/// Runs the formatters alone.
pub(in crate::builtin) async fn format(
    at: &Located,
    old: Option<&Text>,
    written: Text,
    ctx: &ToolContext,
) -> (Text, String) {
    let (before, now) = (old.map(Text::bytes), written.bytes());
    ctx.host.wrote(&at.shown, before.as_deref(), &now).await;
    let formatted = ctx.host.format(&at.real).await;
    // A formatter that left no text did something else than formatting, and the next read will show it.
    let left = if formatted.ran {
        read_text(at).ok().flatten()
    } else {
        None
    };
    // Another process may have written in the meantime: formatters change only white space.
    let laid_out = left.as_ref().filter(|left| **left != written);
    if let Some(left) = laid_out.filter(|left| is_same_but_blanks(left, &written)) {
        ctx.host.wrote(&at.shown, Some(&now), &left.bytes()).await;
    }
    let note = formatted.ended.iter().fold(String::new(), |note, (name, seconds)| {
        format!(
            "{note}\n\nThe formatter {name} did not end within {seconds} s and was stopped; read the file before you edit it again."
        )
    });
    (left.unwrap_or(written), note)
}

fn is_same_but_blanks(one: &Text, other: &Text) -> bool {
    fn signs(it: &Text) -> impl Iterator<Item = char> {
        it.text.chars().filter(|sign| !sign.is_whitespace())
    }
    signs(one).eq(signs(other))
}

/// Diagnostics of language servers after a change.
pub(in crate::builtin) struct Diagnosis {
    /// For `metadata.diagnostics`: every file with known diagnostics.
    pub(in crate::builtin) metadata: Value,
    /// For the model, after the output; empty if there is nothing to fix.
    pub(in crate::builtin) text: String,
}

/// Asks the language servers about a file that was changed. With `others`, errors in other files are reported too.
pub(in crate::builtin) async fn diagnose(
    at: &Located,
    others: bool,
    ctx: &ToolContext,
) -> Diagnosis {
    let all = ctx.host.diagnose(&at.real).await;
    Diagnosis {
        text: reported(&all, &at.real, &at.shown, others),
        metadata: json!(all),
    }
}

/// Like [`diagnose`], after a patch: only the errors of the files that it changed, each under its name in the project. The last
/// answer of the language servers has them all.
pub(in crate::builtin) async fn diagnose_patched(
    files: &[&Located],
    ctx: &ToolContext,
) -> Diagnosis {
    let mut all = BTreeMap::new();
    for at in files {
        all = ctx.host.diagnose(&at.real).await;
    }
    let mut text = String::new();
    for at in files {
        if let Some(errors) = all.get(&at.real).and_then(|list| report(&at.shown, list)) {
            let name = at.relative(ctx);
            text.push_str(&format!(
                "\n\nLSP errors detected in {name}, please fix:\n{errors}"
            ));
        }
    }
    Diagnosis {
        metadata: json!(all),
        text,
    }
}

/// The texts are OpenCode's.
fn reported(
    all: &BTreeMap<PathBuf, Vec<Value>>,
    real: &Path,
    shown: &Path,
    others: bool,
) -> String {
    let mut text = String::new();
    if let Some(errors) = all.get(real).and_then(|list| report(shown, list)) {
        text.push_str("\n\nLSP errors detected in this file, please fix:\n");
        text.push_str(&errors);
    }
    let elsewhere = all
        .iter()
        .filter(|(path, _)| others && path.as_path() != real)
        .filter_map(|(path, list)| report(path, list));
    for errors in elsewhere.take(MAX_OTHERS) {
        text.push_str("\n\nLSP errors detected in other files:\n");
        text.push_str(&errors);
    }
    text
}

/// Returns the errors (severity 1) of a file; `None` if there are none.
fn report(file: &Path, diagnostics: &[Value]) -> Option<String> {
    let errors: Vec<&Value> = diagnostics
        .iter()
        .filter(|diagnostic| diagnostic["severity"] == 1)
        .collect();
    if errors.is_empty() {
        return None;
    }
    let line = |diagnostic: &&Value| {
        let at = |key: &str| diagnostic["range"]["start"][key].as_u64().unwrap_or(0) + 1;
        let message = diagnostic["message"].as_str().unwrap_or_default();
        format!("ERROR [{}:{}] {message}", at("line"), at("character"))
    };
    let lines: Vec<String> = errors.iter().take(MAX_ERRORS).map(line).collect();
    let more = match errors.len().saturating_sub(MAX_ERRORS) {
        0 => String::new(),
        more => format!("\n... and {more} more"),
    };
    Some(format!(
        "<diagnostics file=\"{}\">\n{}{more}\n</diagnostics>",
        file.display(),
        lines.join("\n")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diagnostic(severity: u64, line: u64, message: &str) -> Value {
        json!({"severity": severity, "message": message, "range": {"start": {"line": line, "character": 4}}})
    }

    #[test]
    fn errors_are_reported_and_warnings_are_not() {
        let mut all = BTreeMap::new();
        let own = vec![diagnostic(1, 0, "no such name"), diagnostic(2, 1, "unused")];
        all.insert(PathBuf::from("/r/a.ts"), own);
        all.insert("/r/b.ts".into(), vec![diagnostic(2, 1, "unused")]);
        all.insert("/r/c.ts".into(), vec![diagnostic(1, 9, "broken")]);
        let (real, shown) = (Path::new("/r/a.ts"), Path::new("/link/a.ts"));
        insta::assert_snapshot!(reported(&all, real, shown, true), @r#"

        LSP errors detected in this file, please fix:
        <diagnostics file="/link/a.ts">
        ERROR [1:5] no such name
        </diagnostics>

        LSP errors detected in other files:
        <diagnostics file="/r/c.ts">
        ERROR [10:5] broken
        </diagnostics>
        "#);
        assert!(!reported(&all, real, shown, false).contains("other files"));
        assert_eq!(reported(&all, Path::new("/r/b.ts"), shown, false), "");
    }

    #[test]
    fn many_are_cut() {
        let list: Vec<Value> = (0..25).map(|n| diagnostic(1, n, "x")).collect();
        let text = report(Path::new("/a"), &list).unwrap();
        assert!(
            text.contains("ERROR [20:5] x\n... and 5 more\n</diagnostics>")
                && !text.contains("[21:")
        );
        let files: BTreeMap<PathBuf, Vec<Value>> = (0..9)
            .map(|n| (PathBuf::from(format!("/{n}")), vec![diagnostic(1, n, "x")]))
            .collect();
        let text = reported(&files, Path::new("/0"), Path::new("/0"), true);
        assert_eq!(text.matches("in other files").count(), MAX_OTHERS);
    }
}
