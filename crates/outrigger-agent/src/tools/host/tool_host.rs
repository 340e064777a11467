//! The session side of a tool call.

use std::fmt::Display;

use outrigger_permissions::workspace_trust;
use outrigger_protocol::diagnose::Diagnose as _;

use super::*;

fn not_started(error: &dyn Display, hint: &str) -> ToolError {
    ToolError::failed(format!("The command was not started: {error} ({hint})"))
}

impl ToolHost for CallHost {
    fn hooks<'a>(&'a self, point: HookPoint, payload: HookPayload) -> BoxFuture<'a, HookVerdict> {
        Box::pin(async move {
            if point == HookPoint::ToolAfterResult {
                self.after_the_model().await;
            }
            // A stopped turn does not wait for plugins.
            if point == HookPoint::ToolOnError && self.cancel.is_cancelled() {
                let about = About::Turn(self.session_id.clone(), self.turn.clone());
                let output = payload.output.clone();
                self.state.notify_payload(point, payload, about);
                return HookVerdict {
                    output,
                    ..HookVerdict::default()
                };
            }
            let fallback = payload.output.clone();
            let payload = self.with_causes(point, payload);
            let result = self
                .state
                .run_hooks(
                    point,
                    vec![payload],
                    Some(&self.session_id),
                    Some(&self.turn),
                    Some(self.cancel.clone()),
                )
                .await;
            // The turn ends after this step, as if the user had denied the call.
            if result.stop.is_some() {
                let _ = self.sender.send(Msg::Input(Input::EndAfterStep));
            }
            let output = result.outputs.into_iter().next();
            let output = self.output_left(point, &fallback, output, &result.records);
            let requires_approval = match (point, &output) {
                (HookPoint::ToolBeforeCall, Some(output)) => {
                    let by_model = matches!(self.made_by, MadeBy::Model | MadeBy::Executor);
                    let model = by_model.then_some(self.model.provider_id.as_str());
                    self.state.approval_reason(
                        &self.call,
                        model,
                        &result.records,
                        &fallback,
                        output,
                    )
                }
                _ => None,
            };
            self.note_changes(point, &result.records);
            let verdict = HookVerdict {
                output: output.unwrap_or(fallback),
                block: result.block,
                requires_approval: requires_approval.is_some()
                    || (point == HookPoint::ToolBeforeCall && self.is_prompted()),
            };
            if point == HookPoint::ToolBeforeCall {
                *lock(&self.requires_approval) = requires_approval;
            }
            verdict
        })
    }

    fn ask<'a>(&'a self, ask: PermissionAsk) -> BoxFuture<'a, Result<String, ToolError>> {
        Box::pin(async move {
            let requires_approval = self.approval_for(&ask);
            if self.is_users() && !matches!(requires_approval, Some(ApprovalReason::Ungranted(_))) {
                return Ok("allow (the user's call)".to_owned());
            }
            let own = self.stored_rules().map_err(ToolError::Denied)?;
            let mut causes = self.causes();
            // The question is in the plugin's words.
            if ask.asked_by.is_some()
                && let Some(plugin) = self.state.tools.owner_of(&self.call.tool)
            {
                causes = causes.by_replaced_tool(&plugin, &self.call.tool);
            }
            let asker = Asker {
                session_id: &self.session_id,
                tool: Some(self.tool.clone()),
                rules: &[&self.agent.permission, &own],
                wanted: self.agent.wanted.as_deref(),
                requires_approval: requires_approval.as_ref(),
                causes: &causes,
                reports: Some(&self.sender),
            };
            let changes_files = ask.permission == "edit";
            let answer = self.state.decide(&asker, ask).await;
            if changes_files {
                // A command that the user let run outside of its sandbox reads them.
                outrigger_sandbox::process_time::thawed().await;
            }
            for actor in answer.iter().flat_map(|it| &it.by) {
                self.caused_by(actor.clone(), Deed::Answered, None);
            }
            answer.map(|it| it.text).map_err(|refusal| match refusal {
                Refusal::Rule(text) => ToolError::Denied(text),
                Refusal::User(text) => ToolError::Rejected(text),
            })
        })
    }

    fn record_intent<'a>(&'a self, input: &'a Value) -> BoxFuture<'a, Result<(), String>> {
        let input_hash = outrigger_plugins::hash(&(&self.call.tool, input));
        *lock(&self.input_hash) = Some(input_hash.clone());
        Box::pin(
            self.state
                .audit_intent(&self.call, self.causes(), &self.turn, input_hash),
        )
    }

    fn started(&self, input: &Value) {
        self.state.permissions.questions.begins(&self.call, input);
        let _ = self.sender.send(Msg::Input(Input::ToolStarted {
            effect: self.effect,
            input: input.clone(),
            provenance: self.causes(),
        }));
    }

    fn progress(&self, title: Option<String>, metadata: Value) {
        // A title change is a fact of the turn; previews of output are frequent, and the result contains all of it.
        let _ = self.sender.send(match title {
            Some(_) => Msg::Input(Input::ToolProgress {
                effect: self.effect,
                title,
                metadata,
            }),
            None => Msg::Preview {
                effect: self.effect,
                metadata,
            },
        });
    }

    fn publish(&self, event: Event) {
        let _ = self.sender.send(Msg::Event(Box::new(event)));
    }

    fn wrote<'a>(
        &'a self,
        file: &'a Path,
        before: Option<&'a [u8]>,
        after: &'a [u8],
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let Some(trust) = self.state.permissions.workspace_trust.clone() else {
                return;
            };
            let before = before.and_then(|it| workspace_trust::digest(file, it));
            let after = workspace_trust::digest(file, after);
            let file = file.to_path_buf();
            // This may read the configuration and wait for another program that holds the notes.
            let count = move || trust.count(&file, before.as_deref(), after.as_deref());
            if let Err(error) = tokio::task::spawn_blocking(count).await {
                tracing::warn!("[config] {error}");
            }
        })
    }

    fn subagent<'a>(
        &'a self,
        request: SubagentRequest,
    ) -> BoxFuture<'a, Result<SubagentAnswer, ToolError>> {
        Box::pin(self.run_subagent(request))
    }

    fn confine<'a>(&'a self) -> BoxFuture<'a, Result<Option<Policy>, ToolError>> {
        Box::pin(async move {
            let own = self.stored_rules().map_err(ToolError::failed)?;
            let rules = [self.agent.permission.clone(), own].concat();
            let session = Some(&self.session_id);
            let confined = self.state.confine(session, rules).await;
            confined.map_err(|it| not_started(&it, &it.hint()))
        })
    }

    fn outside<'a>(
        &'a self,
        command: &'a str,
        why: &'a str,
        printed: &'a str,
    ) -> BoxFuture<'a, Result<Option<Outside>, ToolError>> {
        Box::pin(async move {
            if !self.state.may_leave_sandbox() || !self.state.processes.spawner.has_filters() {
                return Ok(None);
            }
            let own = self.stored_rules().map_err(ToolError::failed)?;
            let causes = self.causes();
            let rules: [&[Rule]; 2] = [&self.agent.permission, &own];
            let asker = self.asker(&rules, &causes);
            let asked = self.state.ask_person_outside(&asker, command, why, printed);
            let Some(freeze) = asked
                .await
                .map_err(|it| not_started(&it, &it.hint().unwrap_or_default()))?
            else {
                return Ok(None);
            };
            let rules = [self.agent.permission.clone(), own].concat();
            let confined = self.state.confine_outside(&self.session_id, rules);
            let policy = confined.await.map_err(|it| not_started(&it, &it.hint()))?;
            Ok(Some(Outside { policy, freeze }))
        })
    }

    fn question<'a>(&'a self, questions: Vec<Question>) -> BoxFuture<'a, Option<Vec<Answer>>> {
        Box::pin(async move {
            self.sender.flushed().await;
            self.state
                .ask_questions(&self.session_id, Some(self.tool.clone()), questions)
                .await
        })
    }

    fn sample<'a>(&'a self, request: SampleRequest) -> BoxFuture<'a, Result<SampleAnswer, String>> {
        Box::pin(async move {
            let own = self.stored_rules()?;
            let causes = self.causes();
            let rules: [&[Rule]; 2] = [&self.agent.permission, &own];
            let asker = self.asker(&rules, &causes);
            if !self.state.ask_person_to_sample(&asker, &request).await {
                return Err("the user refused, or nobody can be asked".to_owned());
            }
            self.state
                .sample(
                    &self.session_id,
                    &self.tool.message_id,
                    &self.model,
                    request,
                )
                .await
        })
    }

    fn skills(&self) -> Vec<SkillEntry> {
        self.state.catalog.skill_entries()
    }

    fn skill_loaded<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Option<String>> {
        Box::pin(async move {
            let skill = self
                .state
                .catalog
                .skills
                .iter()
                .find(|skill| skill.name == name)?;
            start_skill_servers(&host(&self.state), &self.session_id, skill).await
        })
    }

    fn extra(&self) -> Value {
        let model = self.state.models.resolve(&self.model);
        let model = model.ok().map(|resolved| resolved.model_for_hooks());
        serde_json::json!({ "model": model, "bypassAgentCheck": self.is_users() })
    }

    fn agents(&self) -> Vec<AgentEntry> {
        self.state.catalog.agent_entries()
    }

    fn format<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, Formatted> {
        Box::pin(self.state.tools.formatters.format(file))
    }

    fn diagnose<'a>(&'a self, file: &'a Path) -> BoxFuture<'a, BTreeMap<PathBuf, Vec<Value>>> {
        Box::pin(async move {
            self.state.tools.lsp.touch(file).await;
            self.state.tools.lsp.diagnostics()
        })
    }

    fn ask_language<'a>(
        &'a self,
        file: &'a Path,
        method: &'a str,
        params: Value,
    ) -> BoxFuture<'a, Option<Vec<Value>>> {
        Box::pin(async move { self.state.tools.lsp.ask(file, method, &params).await })
    }

    fn symbols<'a>(&'a self, query: &'a str) -> BoxFuture<'a, Vec<Value>> {
        Box::pin(self.state.tools.lsp.symbols(query))
    }

    fn read_rules(&self) -> ReadRules {
        if self.is_users() {
            return Box::new(|_: &Path| Action::Allow);
        }
        let own = self.own_rules();
        let approvals = lock(&self.state.permissions.questions.approvals).clone();
        let access = self.state.permissions.access.clone();
        let rules = access.rules(&[&self.agent.permission, &own]);
        let approvals = access.rules(&[&approvals]);
        let rules = SearchRules::new(rules).with_approvals(approvals);
        // The agent that a plugin's prompt names may read more than the plugin.
        let wide = &self.state.config.config.permission;
        if self.state.is_prompted_without_grant(&self.causes()) {
            Box::new(rules.with_denies(access.rules(&[wide])))
        } else {
            Box::new(rules)
        }
    }

    fn names_address(&self, url: &str) -> bool {
        let approvals = lock(&self.state.permissions.questions.approvals).clone();
        let own = self.own_rules();
        let layers: [&[Rule]; 3] = [&self.agent.permission, &own, &approvals];
        self.is_users() || hosts::is_named(url, &layers)
    }

    fn denies_address(&self, url: &str) -> bool {
        let own = self.own_rules();
        !self.is_users() && hosts::decide(url, &[&self.agent.permission, &own]) == Action::Deny
    }

    fn denies_page(&self, url: &str) -> bool {
        let own = self.own_rules();
        let layers: [&[Rule]; 2] = [&self.agent.permission, &own];
        self.denies_address(url)
            || (!self.is_users()
                && outrigger_kernel::permission::evaluate("browser", url, &layers) == Action::Deny)
    }

    fn opened(&self, file: &Path) {
        self.state.tools.lsp.warm(file);
    }

    /// Returns instructions of folders below the working directory, each shown once in a session.
    fn nearby_instructions(&self, file: &Path) -> Vec<NearbyInstruction> {
        let mut shown = lock(&self.state.sessions.shown_instructions);
        nearby_instruction_files(file, &self.state.project.location.directory)
            .into_iter()
            .filter(|path| shown.insert((self.session_id.clone(), path.clone())))
            .filter_map(|path| {
                let text = self.state.instruction(&path)?;
                Some(NearbyInstruction { path, text })
            })
            .collect()
    }

    fn set_todos<'a>(&'a self, todos: Vec<Todo>) -> BoxFuture<'a, Result<(), ToolError>> {
        Box::pin(async move {
            self.sender.flushed().await;
            let event = Event::TodoUpdated {
                session_id: self.session_id.clone(),
                todos,
            };
            self.state
                .commit(Vec::new(), vec![event])
                .await
                .map_err(|error| ToolError::failed(error.to_string()))
        })
    }
}
