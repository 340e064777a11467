//! `write`: writes text to a file.

use futures_util::future::BoxFuture;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use serde_json::{Value, json};

use super::changed::{diagnose, format_and_publish};
use super::target::{ask_edit, ask_edit_elsewhere, target};
use crate::builtin::{spec, text};
use crate::edits::diff::diff;
use crate::error::ToolError;
use crate::files::{Kind, Text, WRITING, hold, read_text, write_text};
use crate::host::{PermissionAsk, ToolContext, lock};
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Writes a whole file. An existing file is replaced; missing folders are created.

- Read a file before you replace it. To change part of a file use edit, which sends less and loses nothing.
- filePath is an absolute path, or relative to the working directory.
- Do not write README files or other documents unless asked to.
";

/// The write tool.
pub(in crate::builtin) struct Write {
    spec: ToolSpec,
}

impl Write {
    pub(in crate::builtin) fn new() -> Self {
        Self {
            spec: spec(
                "write",
                DESCRIPTION,
                json!({"content": {"type": "string"}, "filePath": {"type": "string"}}),
                &["content", "filePath"],
            ),
        }
    }
}

/// Returns the new content, with the byte order mark of the existing file.
fn planned(old: Option<&Text>, content: &str) -> Text {
    let mut new = Text::parse(content.to_owned());
    new.bom |= old.is_some_and(|old| old.bom);
    new
}

impl Tool for Write {
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
        // Nothing of a file outside is shown before the question about it is answered.
        let old = match read_text(&at) {
            Err(error) if at.shows_errors(ctx) => return Err(error),
            other => other.ok().flatten(),
        };
        let before = old.as_ref().map_or("", |old| old.text.as_str());
        let change = diff(
            &at.shown,
            before,
            &planned(old.as_ref(), text(input, "content")).text,
        );
        asks.push(ask_edit(&at, Some(&change), ctx));
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
            let at = target(&input, ctx)?;
            let held = hold(&at.real).await;
            let (old, new) = {
                let _writing = lock(&WRITING);
                let old = read_text(&at)?;
                let new = planned(old.as_ref(), text(&input, "content"));
                write_text(&at, &new)?;
                (old, new)
            };
            let (new, note) = format_and_publish(&at, old.as_ref(), new, ctx).await;
            drop(held);
            let diagnosis = diagnose(&at, true, ctx).await;
            let before = old.as_ref().map_or("", |old| old.text.as_str());
            let change = diff(&at.shown, before, &new.text);
            Ok(ToolOutput {
                title: at.relative(ctx),
                output: format!("Wrote file successfully.{note}{}", diagnosis.text),
                metadata: json!({
                    "diagnostics": diagnosis.metadata,
                    "filepath": at.shown,
                    "exists": old.is_some(),
                    "filediff": change.filediff(&at.shown, before, &new.text),
                }),
                attachments: None,
            })
        })
    }
}
