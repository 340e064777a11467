//! Tools that plugins contribute.

use std::sync::{Arc, Weak};

use outrigger_contributions::tool_names;
use outrigger_plugins::{PluginError, ToolRunner};
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::history::History;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_tools::{FnTool, ToolContext, ToolError};
use serde_json::{Value, json};

use crate::state::AgentState;
use outrigger_store::Store;

/// Maximum size in bytes of the history sent with a call of a plugin's tool (`ctx.messages`). Few tools read it, and the client
/// can fetch all of it.
const MAX_HISTORY: usize = 4 * 1024 * 1024;

/// Registers the tools of plugins with the runtime. A tool with a bundled tool's name replaces it, where its name
/// permits (see [`tool_names`]).
pub(crate) fn register(state: &Arc<AgentState>) {
    let plugins = state.plugins.host.list();
    let sandboxed = state.config.settings.sandbox != outrigger_config::settings::Sandbox::Off;
    let tools = state.plugins.host.tools();
    let refused = tool_names::refused(&tools, &state.tools.runtime);
    for (index, entry) in tools.into_iter().enumerate() {
        // A tool that executes for a connector is not offered to the model.
        if crate::plugin_api::connector::is_executor(&state.config, &entry) {
            continue;
        }
        if let Some((_, why)) = refused.iter().find(|(it, _)| *it == index) {
            report_skipped(&state.store, &entry.spec, why);
            continue;
        }
        let id = crate::permission::audit::owner(Some(&entry.spec));
        let plugin = plugins
            .iter()
            .find(|it| Some(&it.id) == id.as_ref().map(|id| &id.0));
        let grant = plugin.and_then(outrigger_contributions::grants::grant_of_plugin);
        let undeclared = entry
            .declares
            .as_ref()
            .is_none_or(|declares| declares.get("capabilities").is_none());
        let declared = match outrigger_contributions::grants::declared(entry.declares, sandboxed) {
            Ok(declared) => declared,
            Err(error) => {
                let why = format!("invalid declaration: {error}");
                report_skipped(&state.store, &entry.spec, &why);
                continue;
            }
        };
        // The tool itself cannot tell which of its failures are transient.
        let again = declared.constraints.max_retries > 0;
        let (owner, runner) = (Arc::downgrade(state), entry.runner);
        let run = move |input: Value, ctx: ToolContext| {
            let (owner, runner) = (owner.clone(), runner.clone());
            async move {
                match call(&owner, &runner, input, &ctx).await {
                    // The model reads the plugin's message as in OpenCode, without additions.
                    Err(PluginError::Tool { message, .. })
                        if again && !ctx.cancel.is_cancelled() =>
                    {
                        Err(ToolError::Unavailable(message))
                    }
                    answer => answer.map_err(|error| error_of(error, &ctx)),
                }
            }
        };
        let schema = lenient(entry.spec.input_schema.clone());
        let tool = FnTool::new(entry.spec, run)
            .checked_by(schema)
            .declaring(declared)
            .undeclared(undeclared)
            .owned(grant);
        let spec = outrigger_tools::Tool::spec(&tool).clone();
        if let Err(error) = state.tools.runtime.register(Arc::new(tool)) {
            report_skipped(&state.store, &spec, &error.to_string());
        }
    }
}

/// Calls a plugin's tool with the same context as in OpenCode.
pub(crate) async fn call(
    owner: &Weak<AgentState>,
    runner: &ToolRunner,
    input: Value,
    ctx: &ToolContext,
) -> Result<ToolOutput, PluginError> {
    let host = owner.upgrade();
    let history = host
        .as_ref()
        .and_then(|state| state.history(&ctx.call.session_id).ok());
    let history = newest(&history.unwrap_or_default(), MAX_HISTORY);
    let context = json!({
        "sessionID": ctx.call.session_id, "messageID": ctx.call.message_id, "callID": ctx.call.call_id,
        "agent": ctx.call.agent, "directory": ctx.directory, "worktree": ctx.worktree,
        "extra": ctx.host.extra(), "messages": history,
    });
    let context = context.as_object().cloned().unwrap_or_default();
    let _open = host
        .as_deref()
        .map(|state| state.sessions.turns.enter_plugins(&ctx.call.session_id));
    let mut entered = None;
    let calls = host.as_ref().map(|state| Arc::clone(&state.plugins.calls));
    let on_call = |number| entered = calls.map(|calls| calls.enter(number, ctx.clone()));
    let answer = runner
        .run(input, context, Some(ctx.cancel.receiver()), on_call)
        .await;
    drop(entered);
    answer
}

/// Returns the error text for the model.
pub(crate) fn error_of(error: PluginError, ctx: &ToolContext) -> ToolError {
    match error {
        _ if ctx.cancel.is_cancelled() => ToolError::Cancelled,
        PluginError::Tool { message, .. } => ToolError::failed(message),
        error => ToolError::failed(error.to_string()),
    }
}

/// Logs and records that a plugin's tool is not registered.
fn report_skipped(store: &Store, spec: &ToolSpec, why: &str) {
    tracing::warn!(
        "[plugin] the tool `{}` of {} is skipped: {why}",
        spec.name.escape_debug(),
        spec.source
    );
    let record = AuditRecord {
        plugin_id: crate::permission::audit::owner(Some(spec)),
        subject: Some(format!("tool {}", spec.name.escape_debug())),
        errored: true,
        policy_check_result: "refused: descriptor".to_owned(),
        detail: Some(why.to_owned()),
        ..AuditRecord::new(
            AuditKind::LifeCycle,
            outrigger_stdx::clock::now_ms(),
            "tool left out",
        )
    };
    store.audit_lazily(outrigger_stdx::clock::now_ms(), vec![record]);
}

/// Returns the schema without its restriction on additional keys. OpenCode validates arguments with the plugin's zod schema,
/// which ignores unknown keys whatever the derived JSON Schema states; if it does not, the plugin's process refuses the call.
fn lenient(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(fields) => {
            if fields.get("additionalProperties") == Some(&Value::Bool(false)) {
                fields.remove("additionalProperties");
            }
            for value in fields.values_mut() {
                *value = lenient(value.take());
            }
        }
        Value::Array(items) => {
            for item in items {
                *item = lenient(item.take());
            }
        }
        _ => {}
    }
    schema
}

/// Returns the newest messages that fit into `most` bytes, in order.
fn newest(history: &History, most: usize) -> Vec<Value> {
    let mut left = most;
    let mut kept: Vec<Value> = history
        .iter()
        .rev()
        .map_while(|message| {
            left = left.checked_sub(usize::try_from(message.size()).ok()?)?;
            Some(message.to_value())
        })
        .collect();
    kept.reverse();
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_a_schema_does_not_know_are_left_to_the_plugin() {
        let strict = json!({ "type": "object", "additionalProperties": false, "properties": {
            "a": { "anyOf": [{ "type": "string" }, { "type": "object", "additionalProperties": false }] },
            "b": { "type": "object", "additionalProperties": { "type": "number" } },
        } });
        assert_eq!(
            lenient(strict),
            json!({ "type": "object", "properties": {
                "a": { "anyOf": [{ "type": "string" }, { "type": "object" }] },
                "b": { "type": "object", "additionalProperties": { "type": "number" } },
            } })
        );
    }

    #[test]
    fn the_newest_messages_are_kept() {
        let message = |id: &str| -> outrigger_protocol::message::MessageWithParts {
            serde_json::from_value(json!({"info": {"role":"user","id":id,"sessionID":"s","time":{"created":1},"agent":"a",
                "model":{"providerID":"p","modelID":"m"}}, "parts": []}))
            .unwrap()
        };
        let history: History = ["msg_1", "msg_2", "msg_3"]
            .map(message)
            .into_iter()
            .collect();
        let size = json!(message("msg_1")).to_string().len();
        let ids = |most| -> Vec<String> {
            let kept = newest(&history, most);
            kept.iter()
                .filter_map(|m| Some(m.pointer("/info/id")?.as_str()?.to_owned()))
                .collect()
        };
        assert_eq!(ids(usize::MAX), ["msg_1", "msg_2", "msg_3"]);
        assert_eq!(ids(2 * size), ["msg_2", "msg_3"]);
        assert!(ids(0).is_empty());
    }
}
