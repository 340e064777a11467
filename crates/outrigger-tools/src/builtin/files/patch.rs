//! `apply_patch`: changes several files with one patch. GPT models get it instead of `edit` and `write`.

mod plan;

use futures_util::future::BoxFuture;
use outrigger_protocol::event::Event;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use serde_json::{Value, json};
use tokio::sync::OwnedMutexGuard;

use super::changed::{diagnose_patched, format};
use crate::builtin::{spec, text};
use crate::edits::patch::{Section, is_empty, parse};
use crate::error::ToolError;
use crate::files::{Kind, Located, WRITING, hold};
use crate::host::{PermissionAsk, ToolContext, lock};
use crate::tool::Tool;
use plan::{Change, Plan, plan};

const DESCRIPTION: &str = r#"
Applies a patch that adds, deletes, changes and moves files. Nothing is changed unless the whole patch applies.

A patch starts and ends with a marker line and has one section per file:

*** Begin Patch
*** Add File: notes.txt
+first line of the new file
+second line
*** Update File: src/app.py
*** Move to: src/main.py
@@ def greet():
     name = "you"
-    print("Hi")
+    print("Hello", name)
*** Delete File: old.txt
*** End Patch

- Every line of a new file starts with `+`. A section that deletes a file has no lines.
- In a section that updates a file, each hunk starts with `@@`, optionally followed by an earlier line of the file (for example, a function's signature). Its lines start with a space (unchanged), `-` (removed) or `+` (added). Include about three unchanged lines around a change, exactly as in the file.
- Hunks are in the order of the file.
- `Move to` is optional and directly follows `Update File`.
- Paths are relative to the working directory, or absolute.
"#;

/// Maximum number of paths of one patch; no model writes a larger one.
const MAX_SECTIONS: usize = 1000;

/// The apply_patch tool.
pub(in crate::builtin) struct ApplyPatch {
    spec: ToolSpec,
}

impl ApplyPatch {
    pub(in crate::builtin) fn new() -> Self {
        Self {
            spec: spec(
                "apply_patch",
                DESCRIPTION,
                json!({"patchText": {"type": "string"}}),
                &["patchText"],
            ),
        }
    }
}

fn refused(reason: impl std::fmt::Display) -> ToolError {
    ToolError::failed(format!("apply_patch verification failed: {reason}"))
}

// The texts are OpenCode's, which puts the kind of the error before those that it throws.
fn sections(input: &Value) -> Result<Vec<Section>, ToolError> {
    let patch = text(input, "patchText");
    if patch.is_empty() {
        return Err(ToolError::failed("patchText is required"));
    }
    let sections = parse(patch).map_err(|error| refused(format!("Error: {error}")))?;
    if sections.is_empty() {
        return Err(if is_empty(patch) {
            ToolError::failed("patch rejected: empty patch")
        } else {
            refused("no hunks found")
        });
    }
    if sections.len() > MAX_SECTIONS {
        return Err(refused(format!(
            "it has more than {MAX_SECTIONS} sections; send it in parts"
        )));
    }
    Ok(sections)
}

fn ask_edit(named: &[Located], plan: Option<&Plan>, ctx: &ToolContext) -> PermissionAsk {
    let shown: Vec<String> = named.iter().map(|at| at.relative(ctx)).collect();
    PermissionAsk {
        permission: "edit".to_owned(),
        metadata: json!({
            "filepath": shown.join(", "),
            "diff": plan.map_or_else(String::new, Plan::diff),
            "files": plan.map_or_else(|| json!([]), |plan| plan.files(ctx)),
        }),
        patterns: named.iter().flat_map(|at| at.patterns(ctx)).collect(),
        always: vec!["*".to_owned()],
        ..PermissionAsk::default()
    }
}

impl Tool for ApplyPatch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let sections = sections(input)?;
        let named = plan::named(&sections, ctx)?;
        let mut asks: Vec<PermissionAsk> = Vec::new();
        let links = plan::links(&named, ctx)?;
        let all = named.iter().chain(&links);
        for ask in all.filter_map(|at| at.ask_outside(Kind::File)) {
            if asks.iter().all(|asked| asked.patterns != ask.patterns) {
                asks.push(ask);
            }
        }
        // An error about a file outside would reveal its content, so the question about the folder comes first.
        let plan = match plan(&sections, ctx) {
            Ok(plan) => Some(plan),
            Err(error) if asks.is_empty() && named.iter().all(|at| at.shows_errors(ctx)) => {
                return Err(error);
            }
            Err(_) => None,
        };
        // Under another name everyone might be allowed to read the file.
        for source in plan::moved(&sections, ctx)? {
            asks.extend(super::read::asks_read(&source, ctx));
        }
        asks.push(ask_edit(&named, plan.as_ref(), ctx));
        Ok(asks)
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let sections = sections(&input)?;
            let held = hold_all(&plan::named(&sections, ctx)?).await;
            let mut plan = {
                let _writing = lock(&WRITING);
                let plan = plan(&sections, ctx)?;
                plan.carry_out(ctx)?;
                plan
            };
            let mut notes = String::new();
            for change in &mut plan.changes {
                notes.push_str(&format_and_publish(change, ctx).await);
            }
            drop(held);
            plan.changes.iter().for_each(|change| watched(change, ctx));
            let mut metadata = json!({
                "diff": plan.diff(), "files": plan.files(ctx), "diagnostics": {},
            });
            ctx.progress(None, metadata.clone());
            let left: Vec<&Located> = plan.changes.iter().filter_map(Change::left_at).collect();
            let diagnosis = diagnose_patched(&left, ctx).await;
            metadata["diagnostics"] = diagnosis.metadata;
            let lines: Vec<String> = plan.changes.iter().map(|c| c.line(ctx)).collect();
            let output = format!(
                "Success. Updated the following files:\n{}{notes}{}",
                lines.join("\n"),
                diagnosis.text
            );
            Ok(ToolOutput {
                // OpenCode's title is the whole output.
                title: output.clone(),
                output,
                metadata,
                attachments: None,
            })
        })
    }
}

// Locks in the order of the paths: two patches that lock each other's files would wait forever.
async fn hold_all(named: &[Located]) -> Vec<OwnedMutexGuard<()>> {
    let paths: std::collections::BTreeSet<_> = named.iter().map(|at| &at.real).collect();
    let mut held = Vec::new();
    for path in paths {
        held.push(hold(path).await);
    }
    held
}

// Formats a written file and publishes it; returns the note for the model.
async fn format_and_publish(change: &mut Change, ctx: &ToolContext) -> String {
    // A later section may have removed it again.
    let left = change.left_at().filter(|at| at.real.exists());
    let Some(at) = left.cloned() else {
        return String::new();
    };
    let written = change.new.take().unwrap_or_default();
    let (text, note) = format(&at, change.replaced(), written, ctx).await;
    change.formatted(text);
    let file = at.shown.display().to_string();
    ctx.host.publish(Event::FileEdited { file });
    note
}

fn watched(change: &Change, ctx: &ToolContext) {
    for (at, event) in change.watched() {
        ctx.host.publish(Event::FileWatcherUpdated {
            file: at.shown.display().to_string(),
            event: event.to_owned(),
        });
    }
}
