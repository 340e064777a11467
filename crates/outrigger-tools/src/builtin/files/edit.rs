//! `edit`: replaces text in a file.

use futures_util::future::BoxFuture;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use serde_json::{Value, json};

use super::changed::{diagnose, format_and_publish};
use super::target::{ask_edit, ask_edit_elsewhere, target};
use crate::builtin::{spec, text};
use crate::edits::diff::diff;
use crate::edits::matching::replace;
use crate::error::ToolError;
use crate::files::{Kind, Located, Text, WRITING, hold, read_text, write_text};
use crate::host::{PermissionAsk, ToolContext, lock};
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Replaces text in a file.

- oldString must match the file exactly, including indentation, without the line numbers (`12: `) that read adds.
- It must match exactly once. If it matches more often, include more surrounding lines, or set replaceAll to replace every match (for example, to rename something).
- newString is inserted verbatim, so write it with the right indentation.
- An empty oldString creates a new file with newString as its content.
- filePath is an absolute path, or relative to the working directory.
";

/// The edit tool.
pub(in crate::builtin) struct Edit {
    spec: ToolSpec,
}

impl Edit {
    pub(in crate::builtin) fn new() -> Self {
        let string = json!({"type": "string"});
        Self {
            spec: spec(
                "edit",
                DESCRIPTION,
                json!({"filePath": string, "oldString": string, "newString": string, "replaceAll": {"type": "boolean"}}),
                &["filePath", "oldString", "newString"],
            ),
        }
    }
}

// The planned new content; the texts are OpenCode's.
struct Plan {
    at: Located,
    old: Option<Text>,
    new: Text,
}

fn plan(input: &Value, ctx: &ToolContext) -> Result<Plan, ToolError> {
    let at = target(input, ctx)?;
    let (from, to) = (text(input, "oldString"), text(input, "newString"));
    if from == to {
        return Err(ToolError::failed(
            "No changes to apply: oldString and newString are identical.",
        ));
    }
    let old = read_text(&at)?;
    let new = match &old {
        None if from.is_empty() => Text::parse(to.to_owned()),
        None => {
            return Err(ToolError::failed(format!(
                "File {} not found",
                at.shown.display()
            )));
        }
        Some(_) if from.is_empty() => {
            return Err(ToolError::failed(
                "oldString cannot be empty when editing an existing file. Provide the exact text to replace, or use write for an intentional full-file replacement.",
            ));
        }
        Some(old) => {
            let everywhere = input.get("replaceAll").and_then(Value::as_bool) == Some(true);
            let text = replace(&old.text, from, to, everywhere)
                .map_err(|e| ToolError::failed(e.to_string()))?;
            Text { text, bom: old.bom }
        }
    };
    Ok(Plan { at, old, new })
}

impl Tool for Edit {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let at = target(input, ctx)?;
        let mut asks: Vec<PermissionAsk> = at.ask_outside(Kind::File).into_iter().collect();
        // An error about a file outside would reveal its content, so the question about the folder comes first.
        let change = match plan(input, ctx) {
            Ok(plan) => {
                let before = plan.old.map(|old| old.text).unwrap_or_default();
                Some(diff(&at.shown, &before, &plan.new.text))
            }
            Err(error) if at.shows_errors(ctx) => return Err(error),
            Err(_) => None,
        };
        asks.push(ask_edit(&at, change.as_ref(), ctx));
        Ok(asks)
    }

    fn permissions_elsewhere(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        Ok(ask_edit_elsewhere(&target(input, ctx)?, ctx))
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let held = hold(&target(&input, ctx)?.real).await;
            let context = ctx.clone();
            let written = tokio::task::spawn_blocking(move || -> Result<Plan, ToolError> {
                let _writing = lock(&WRITING);
                let plan = plan(&input, &context)?;
                if context.cancel.is_cancelled() {
                    return Err(ToolError::Cancelled);
                }
                write_text(&plan.at, &plan.new)?;
                Ok(plan)
            });
            let Plan { at, old, new } = written
                .await
                .map_err(|error| ToolError::failed(error.to_string()))??;
            let (new, note) = format_and_publish(&at, old.as_ref(), new, ctx).await;
            drop(held);
            let before = old.map(|old| old.text).unwrap_or_default();
            let change = diff(&at.shown, &before, &new.text);
            let mut metadata = json!({
                "diagnostics": {},
                "diff": change.patch,
                "filediff": change.filediff(&at.shown, &before, &new.text),
            });
            // OpenCode reports the change before the call ends, so that clients can show it.
            ctx.progress(None, metadata.clone());
            let diagnosis = diagnose(&at, false, ctx).await;
            metadata["diagnostics"] = diagnosis.metadata;
            Ok(ToolOutput {
                title: at.relative(ctx),
                output: format!("Edit applied successfully.{note}{}", diagnosis.text),
                metadata,
                attachments: None,
            })
        })
    }
}
