//! The input of each point, key by key: handlers get what the table states.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use outrigger_kernel::hooks::points::{
    agent_end, bridge, cdp, compaction, execute, hook, llm, run, runtime, session, tool,
};
use outrigger_kernel::hooks::{Context, Empty, HookInput, HookPoint};
use outrigger_protocol::descriptor::Contract;
use outrigger_protocol::id::{CallId, MessageId, PartId, PluginId, SessionId};
use outrigger_protocol::message::{MessageInfo, ModelRef, NamedError, UserMessage};
use outrigger_protocol::model::{ModelInfo, ModelParams, ModelRequest, ProviderInfo, Usage};
use outrigger_protocol::permission::PermissionRequest;
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::turn::HookPayload;
use serde_json::{Value, json};

/// Subjects of points, each named once.
struct Sample {
    session: SessionId,
    message: MessageId,
    part: PartId,
    call: CallId,
    plugin: PluginId,
    model: ModelRef,
    info: ModelInfo,
    provider: ProviderInfo,
    user: MessageInfo,
    error: NamedError,
    args: Value,
    step: llm::before_request::Step,
}

impl Sample {
    fn new() -> Self {
        let (session, message) = (SessionId("ses_1".into()), MessageId("msg_1".into()));
        let model = ModelRef {
            provider_id: "p".into(),
            model_id: "m".into(),
            variant: None,
        };
        Self {
            part: PartId("prt_1".into()),
            call: CallId("call_1".into()),
            plugin: PluginId("acme".into()),
            info: ModelInfo::default(),
            provider: ProviderInfo::default(),
            user: MessageInfo::User(UserMessage::default()),
            error: NamedError::new("E", "e"),
            args: json!({"command": "ls"}),
            step: llm::before_request::Step {
                session_id: session.clone(),
                agent: "build".into(),
                model: model.clone(),
                step: 1,
                message_id: Some(message.clone()),
            },
            session,
            message,
            model,
        }
    }

    fn request(&self) -> llm::RequestInput<'_> {
        llm::RequestInput {
            session_id: &self.session,
            agent: "build",
            model: &self.info,
            provider: &self.provider,
            message: &self.user,
        }
    }

    fn request_for_permission(&self) -> PermissionRequest {
        PermissionRequest {
            id: "per_1".into(),
            session_id: self.session.clone(),
            permission: "bash".into(),
            patterns: Vec::new(),
            always: Vec::new(),
            metadata: json!({}),
            tool: None,
            provenance: Provenance::default(),
            missing_grant: None,
        }
    }

    fn bound(&self) -> runtime::route_after_select::Input<'_> {
        runtime::route_after_select::Input {
            session_id: &self.session,
            agent: "build",
            call_id: &self.call,
            tool: "bash",
            contract: Contract::Exec,
            provider: "box",
            rule: Some(1),
        }
    }

    fn after_step(&self) -> execute::after_step::Input<'_> {
        execute::after_step::Input {
            session_id: &self.session,
            agent: "build",
            model: &self.model,
            message_id: &self.message,
            finish: Some("stop"),
        }
    }

    fn bridge_call(&self) -> bridge::Call<'_> {
        bridge::Call {
            call_id: "1",
            side: bridge::Side::Executes,
            connector: Some("box"),
            connection: Some(1),
            session_id: Some(self.session.0.as_str()),
            tool: "read",
            path: Some("a.txt"),
        }
    }

    /// Returns points before a model is called, and of a request.
    fn requests(&self) -> Vec<(HookPoint, HookPayload)> {
        let session_id = &self.session;
        let request = ModelRequest::default();
        vec![
            runtime::configure::Input.call(&json!({"model": "p/m"})),
            runtime::route_small_model::Input {
                provider: Some(&self.provider),
            }
            .call(&Empty {}),
            run::before_command::Input {
                command: "init",
                session_id,
                arguments: "now",
            }
            .call(&run::before_command::Output { parts: &[] }),
            run::before_start::Input(&json!({
                "sessionID": "ses_1", "agent": "build", "model": {}, "messageID": "msg_1", "variant": "high",
            }))
            .call(&run::before_start::Output {
                message: &self.user,
                parts: &[],
            }),
            llm::tool_definition::Input { tool_id: "bash" }.call(&llm::tool_definition::Output {
                description: "d",
                parameters: &json!({}),
                json_schema: Some(&json!({})),
            }),
            (
                HookPoint::LlmBeforeMessages,
                llm::before_messages::Input::over([json!({})].into_iter().collect()),
            ),
            llm::before_system::Input {
                session_id,
                model: &self.info,
            }
            .call(&llm::before_system::Output { system: ["s"] }),
            llm::before_params::Input(self.request()).call(&ModelParams::default()),
            llm::before_headers::Input(self.request()).call(&llm::before_headers::Output::default()),
            llm::before_request::Input::Step(&self.step).call(&llm::before_request::Output::of(&request)),
            llm::after_text::Input {
                session_id,
                message_id: &self.message,
                part_id: &self.part,
            }
            .call(&llm::after_text::Output { text: "t" }),
            llm::on_error::Input {
                step: &self.step,
                error: &self.error,
            }
            .call(&Context::default()),
            llm::after_response::Input {
                session_id,
                agent: "build",
                model: &self.model,
                reason: "stop",
                usage: &Usage::default(),
            }
            .call(&Empty {}),
        ]
    }

    fn tools(&self) -> Vec<(HookPoint, HookPayload)> {
        let (session_id, call_id) = (&self.session, &self.call);
        vec![
            tool::before_call::Input {
                tool: "bash",
                session_id,
                call_id,
            }
            .call(&tool::before_call::Output { args: &self.args }),
            tool::before_permission::Input(&self.request_for_permission()).call(
                &tool::before_permission::Output {
                    status: tool::before_permission::Status::Ask,
                },
            ),
            execute::before_shell::Input {
                cwd: "/",
                session_id: Some(session_id),
                call_id: Some(call_id),
            }
            .call(&execute::before_shell::Output::default()),
            tool::after_result::Input {
                tool: "bash",
                session_id,
                call_id,
                args: &self.args,
            }
            .call(&json!({"title": "t"})),
            tool::on_error::Input {
                tool: "bash",
                session_id,
                call_id,
                args: &self.args,
                code: "tool.failed",
                message: "m",
                began: true,
            }
            .call(&Context::default()),
            self.bound().call(&Empty {}),
            runtime::route_on_error::Input {
                bound: self.bound(),
                code: "tool.failed",
            }
            .call(&Context::default()),
            bridge::before_invoke::Input(self.bridge_call()).call(&Empty {}),
            bridge::after_invoke::Input(self.bridge_call()).call(&bridge::after_invoke::Output {
                title: "t",
                bytes: 1,
            }),
            bridge::on_error::Input {
                call: self.bridge_call(),
                code: "bridge.path",
                message: "m",
            }
            .call(&Context::default()),
            cdp::before_action::Input(self.browser_action()).call(&Empty {}),
            cdp::after_action::Input(self.browser_action()).call(&Context::default()),
            cdp::after_verify::Input {
                action: self.browser_action(),
                unmet: "",
            }
            .call(&cdp::Verdict {
                status: "verified",
                context: [],
            }),
            cdp::on_error::Input {
                action: self.browser_action(),
                code: "browser.stale",
                message: "m",
            }
            .call(&Context::default()),
        ]
    }

    fn browser_action(&self) -> cdp::Action<'_> {
        cdp::Action {
            session_id: &self.session,
            call_id: &self.call,
            action: "click",
            risk: "submit",
            tab: "t1",
            url: "http://shop/",
            target: "e1 button \"Pay\"",
            field: None,
            to: None,
        }
    }

    /// Returns points of sessions, turns and steps.
    fn turns(&self) -> Vec<(HookPoint, HookPayload)> {
        let (session_id, message_id, model) = (&self.session, &self.message, &self.model);
        let (agent, error) = ("build", &self.error);
        vec![
            compaction::before_start::Input {
                session_id,
                instructions: Some("i"),
            }
            .call(&compaction::before_start::Output::default()),
            compaction::after_finish::Input {
                session_id,
                agent,
                model: &self.info,
                provider: compaction::after_finish::Provider {
                    source: "env",
                    info: &self.provider,
                    options: &self.provider.options,
                },
                message: &self.user,
                overflow: false,
            }
            .call(&compaction::after_finish::Output { enabled: true }),
            agent_end::before_stop::Input {
                session_id,
                agent,
                model,
                message_id: Some(message_id),
                active: false,
                last_message: "l",
            }
            .call(&Empty {}),
            session::after_append_entry::Input {
                session_id,
                message_id,
                role: "user",
                agent,
            }
            .call(&session::after_append_entry::Output {
                message: &self.user,
                parts: &[],
            }),
            session::after_complete_message::Input {
                session_id,
                agent,
                message_id,
                model: session::after_complete_message::Model {
                    provider_id: "p",
                    model_id: "m",
                },
                variant: Some("high"),
            }
            .call(&session::after_complete_message::Output {
                message: &self.user,
                parts: &[],
            }),
            session::before_create::Input {
                parent_id: Some(session_id),
                title: Some("t"),
            }
            .call(&Empty {}),
            session::before_fork::Input {
                session_id,
                message_id: Some(message_id),
            }
            .call(&Empty {}),
            session::on_error::Input { session_id, error }.call(&Context::default()),
            run::after_start::Input {
                session_id,
                agent,
                model,
                message_id,
            }
            .call(&Empty {}),
            run::on_error::Input { session_id, error }.call(&Context::default()),
            execute::before_step::Input {
                session_id,
                agent,
                model,
                step: 1,
            }
            .call(&Empty {}),
            self.after_step()
                .call(&execute::after_step::Output::default()),
            execute::on_error::Input {
                step: self.after_step(),
                error,
            }
            .call(&Context::default()),
            hook::on_error::Input {
                point: "llm.before_params",
                hook: "chat.params",
                plugin: &self.plugin,
                outcome: "error",
                message: Some("m"),
                session_id: Some(session_id),
            }
            .call(&Context::default()),
            runtime::dispose::Input { session_id }.call(&Empty {}),
        ]
    }

    fn all(&self) -> Vec<(HookPoint, HookPayload)> {
        [self.requests(), self.tools(), self.turns()].concat()
    }
}

fn keys(value: &Value) -> String {
    match value {
        Value::Object(fields) if fields.is_empty() => "nothing".to_owned(),
        Value::Object(fields) => fields.keys().cloned().collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    }
}

/// Keys in the order of serialisation: a change here is a change of what plugins read.
#[test]
fn what_points_are_reached_with() {
    let mut all = Sample::new().all();
    all.sort_by_key(|(point, _)| point.name());
    let mut text = String::new();
    for (point, payload) in all {
        // With the conversation where it belongs.
        let payload = json!(payload);
        let (input, output) = (keys(&payload["input"]), keys(&payload["output"]));
        writeln!(text, "{point}: {input} -> {output}").unwrap();
    }
    insta::assert_snapshot!(text);
}

#[test]
fn the_table_names_what_handlers_read() {
    let all = Sample::new().all();
    for point in HookPoint::ALL {
        let found = all.iter().find(|(other, _)| other == point);
        // Events are sent to processes in batches, and are not calls.
        if *point == HookPoint::SessionOnEvent {
            assert!(found.is_none());
            continue;
        }
        let (_, payload) = found.unwrap_or_else(|| panic!("{point}: no sample of its payload"));
        let documented = point.spec().input;
        // The request itself, and the end of each session, which only commands are notified of.
        if documented.starts_with("the ") || *point == HookPoint::RuntimeDispose {
            continue;
        }
        let documented: BTreeSet<&str> = documented
            .split(", ")
            .map(|key| key.trim_end_matches('?'))
            .collect();
        let fields = payload.input.as_object().into_iter().flatten();
        let written: BTreeSet<&str> = fields.map(|(key, _)| key.as_str()).collect();
        let documented: BTreeSet<&str> = documented
            .into_iter()
            .filter(|key| !key.is_empty())
            .collect();
        assert_eq!(written, documented, "{point}");
    }
}

#[test]
fn what_is_left_is_read_field_by_field() {
    let left = json!({"temperature": "hot", "topK": 4, "options": [], "unknown": 1});
    let read = llm::before_params::read(&left);
    assert_eq!((read.temperature, read.top_k), (None, Some(4.0)));
    assert_eq!(
        llm::before_headers::read(&json!({"headers": {"a": "b", "n": 1}})).len(),
        1
    );
    assert_eq!(
        llm::before_system::read(&json!({"system": ["", "s", 1]})),
        ["s"]
    );
    let before = outrigger_protocol::tool::ToolOutput {
        title: "t".into(),
        output: "o".into(),
        metadata: json!({"exit": 0}),
        attachments: None,
    };
    let left =
        tool::after_result::read(json!({"title": 7, "output": null, "metadata": []}), before);
    assert_eq!((left.title.as_str(), left.output.as_str()), ("7", "o"));
    assert_eq!(left.metadata, json!({"exit": 0}));
    assert!(compaction::after_finish::read(Some(
        &json!({"enabled": "no"})
    )));
    assert!(!compaction::after_finish::read(Some(
        &json!({"enabled": false})
    )));
    assert_eq!(
        agent_end::before_stop::read(&json!({"continue": "  "})),
        None
    );
    let chosen = json!({"model": {"providerID": "p", "id": "m"}});
    assert_eq!(
        runtime::route_small_model::read(&chosen).unwrap().model_id,
        "m"
    );
}

#[test]
fn handlers_read_no_header_of_a_model() {
    let mut model = outrigger_protocol::model::ModelInfo::default();
    model.headers.insert("X-H".into(), "hunter2".into());
    let session_id = outrigger_protocol::id::SessionId("s".into());
    let input = outrigger_kernel::hooks::points::llm::before_system::Input {
        session_id: &session_id,
        model: &model,
    };
    let text = serde_json::to_string(&input).unwrap();
    assert!(text.contains("X-H") && !text.contains("hunter2"), "{text}");
}
