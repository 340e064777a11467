//! `lsp`: asks the language server of a file where something is defined, used or called.

use futures_util::future::BoxFuture;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use serde_json::{Value, json};

use super::files::read::asks_read;
use super::{MAX_SAFE, number, reading, spec, text};
use crate::error::ToolError;
use crate::files::{Located, locate};
use crate::host::{PermissionAsk, ToolContext};
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Queries the language server of a file.

Operations:
- goToDefinition: where the symbol is defined
- findReferences: all uses of it
- hover: its type and documentation
- documentSymbol: all symbols of the file
- workspaceSymbol: symbols of the project whose name matches query
- goToImplementation: the implementations of an interface or abstract method
- prepareCallHierarchy: the function or method at that position, as used by the next two
- incomingCalls: its callers
- outgoingCalls: the functions that it calls

All of them take filePath, line and character (both counted from 1, as editors show them). workspaceSymbol uses the file only to find the server. If no server handles this kind of file, the call fails.
";

/// The operations with their LSP methods, in OpenCode's order.
const OPERATIONS: [(&str, &str); 9] = [
    ("goToDefinition", "textDocument/definition"),
    ("findReferences", "textDocument/references"),
    ("hover", "textDocument/hover"),
    ("documentSymbol", "textDocument/documentSymbol"),
    ("workspaceSymbol", "workspace/symbol"),
    ("goToImplementation", "textDocument/implementation"),
    ("prepareCallHierarchy", "textDocument/prepareCallHierarchy"),
    ("incomingCalls", "callHierarchy/incomingCalls"),
    ("outgoingCalls", "callHierarchy/outgoingCalls"),
];

/// The lsp tool.
pub(super) struct Language {
    spec: ToolSpec,
}

impl Language {
    pub(super) fn new() -> Self {
        let position = json!({"type": "integer", "minimum": 1, "maximum": MAX_SAFE});
        let operations: Vec<&str> = OPERATIONS.iter().map(|(name, _)| *name).collect();
        Self {
            spec: reading(spec(
                "lsp",
                DESCRIPTION,
                json!({
                    "operation": {"type": "string", "enum": operations},
                    "filePath": {"type": "string"},
                    "line": position,
                    "character": position,
                    "query": {"type": "string"},
                }),
                &["operation", "filePath", "line", "character"],
            )),
        }
    }
}

/// A question, parsed from the arguments.
struct Question<'a> {
    operation: &'a str,
    at: Located,
    line: u64,
    character: u64,
}

fn question<'a>(input: &'a Value, ctx: &ToolContext) -> Result<Question<'a>, ToolError> {
    let path = text(input, "filePath");
    if path.is_empty() {
        return Err(ToolError::failed("filePath is required"));
    }
    Ok(Question {
        operation: text(input, "operation"),
        at: locate(ctx, path)?,
        line: number(input, "line").unwrap_or(1),
        character: number(input, "character").unwrap_or(1),
    })
}

impl Question<'_> {
    fn title(&self, ctx: &ToolContext) -> String {
        let (name, file) = (self.operation, self.at.relative(ctx));
        match name {
            "workspaceSymbol" => name.to_owned(),
            "documentSymbol" => format!("{name} {file}"),
            _ => format!("{name} {file}:{}:{}", self.line, self.character),
        }
    }

    fn metadata(&self) -> Value {
        let mut metadata = json!({"operation": self.operation});
        if let Value::Object(fields) = &mut metadata {
            if self.operation != "workspaceSymbol" {
                fields.insert("filePath".to_owned(), json!(self.at.shown));
            }
            if !matches!(self.operation, "workspaceSymbol" | "documentSymbol") {
                fields.insert("line".to_owned(), json!(self.line));
                fields.insert("character".to_owned(), json!(self.character));
            }
        }
        metadata
    }

    // Returns the flattened answers of all servers; `None` if there is no server.
    async fn ask(&self, input: &Value, ctx: &ToolContext) -> Option<Vec<Value>> {
        let position =
            json!({"position": {"line": self.line - 1, "character": self.character - 1}});
        let file = &self.at.real;
        let known = OPERATIONS.iter().find(|(name, _)| *name == self.operation);
        let method = known.map_or("", |(_, method)| *method);
        let ask = |method, params| ctx.host.ask_language(file, method, params);
        match method {
            "workspace/symbol" => Some(ctx.host.symbols(text(input, "query")).await),
            "callHierarchy/incomingCalls" | "callHierarchy/outgoingCalls" => {
                let items = ask("textDocument/prepareCallHierarchy", position).await?;
                match flat(items).into_iter().next() {
                    Some(item) => ask(method, json!({"item": item})).await.map(flat),
                    None => Some(Vec::new()),
                }
            }
            "textDocument/hover" => ask(method, position).await,
            "textDocument/documentSymbol" => ask(method, json!({})).await.map(flat),
            "textDocument/references" => {
                let mut params = position;
                params["context"] = json!({"includeDeclaration": true});
                ask(method, params).await.map(flat)
            }
            _ => ask(method, position).await.map(flat),
        }
    }
}

fn flat(answers: Vec<Value>) -> Vec<Value> {
    answers
        .into_iter()
        .flat_map(|answer| match answer {
            Value::Array(items) => items,
            one => vec![one],
        })
        .filter(|item| !item.is_null())
        .collect()
}

impl Tool for Language {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn place<'a>(&self, input: &'a Value) -> Option<&'a str> {
        input.get("filePath").and_then(Value::as_str)
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let question = question(input, ctx)?;
        // A server's answer reveals the file's content.
        let mut asks = asks_read(&question.at, ctx);
        asks.push(PermissionAsk {
            permission: "lsp".to_owned(),
            patterns: vec!["*".to_owned()],
            always: vec!["*".to_owned()],
            metadata: question.metadata(),
            ..PermissionAsk::default()
        });
        Ok(asks)
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let question = question(&input, ctx)?;
            // The texts are OpenCode's.
            if !question.at.real.exists() {
                let file = question.at.shown.display();
                return Err(ToolError::failed(format!("File not found: {file}")));
            }
            // Servers only know files that they were notified of.
            ctx.host.diagnose(&question.at.real).await;
            let none = || ToolError::failed("No LSP server available for this file type.");
            if question.operation == "workspaceSymbol" {
                // No method: only checks whether there is a server.
                let there = ctx.host.ask_language(&question.at.real, "", json!({}));
                there.await.ok_or_else(none)?;
            }
            let found = question.ask(&input, ctx).await.ok_or_else(none)?;
            let output = if found.is_empty() {
                format!("No results found for {}", question.operation)
            } else {
                serde_json::to_string_pretty(&found).unwrap_or_default()
            };
            Ok(ToolOutput {
                title: question.title(ctx),
                output,
                metadata: json!({"result": found}),
                attachments: None,
            })
        })
    }
}
