//! Permission questions: the rules decide first, then plugins, then the user.

mod answers;
mod call;
mod outside;
mod plugin_rules;
mod question;
mod startup;
mod user;

use std::sync::Arc;

use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::tool::before_permission::{self, Status};
use outrigger_permissions::access::ask_rules;
use outrigger_permissions::approval::{ApprovalReason, UngrantedAction};
use outrigger_plugins::Grant;
use outrigger_protocol::id::{PluginId, SessionId};
use outrigger_protocol::permission::{Action, PermissionRequest, Rule, ToolRef};
use outrigger_protocol::provenance::{Actor, Deed, Provenance};
use outrigger_stdx::sync::lock;
use outrigger_tools::PermissionAsk;

use self::question::{Question, with_reason};
use crate::permission::answering::Answering;
use crate::permission::audit::{Decided, who_allowed};
use crate::state::{AgentState, PermissionServices};
use outrigger_session_state::turn_channel::Outbox;

/// Permission to do something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// Text for the record of the call.
    pub(crate) text: String,
    /// Who answered the question; empty if a rule did.
    pub(crate) by: Vec<Actor>,
}

impl Allowed {
    fn by_rule() -> Self {
        Self {
            text: "allow".to_owned(),
            by: Vec::new(),
        }
    }
}

/// Record text of a call that the user answered with "always".
const ALWAYS: &str = "ask -> always";

/// Why a tool may not run.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A rule denies it, or the user does and suggests an alternative; the turn continues.
    Rule(String),
    /// The user denies it, or there is no user to ask; the turn ends after this step, as in OpenCode.
    User(String),
}

impl Refusal {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Rule(text) | Self::User(text) => text,
        }
    }
}

/// The result of the `permission.ask` hooks.
enum HookAnswer {
    /// All plugins that changed the answer may approve.
    Allow(Vec<PluginId>),
    /// A plugin that changed the answer lacks a grant: the reason and the missing grant.
    AllowUngranted(Box<UngrantedAction>),
    Deny,
    None,
}

/// Context of a question.
#[derive(Clone)]
pub(crate) struct Asker<'a> {
    pub(crate) session_id: &'a SessionId,
    pub(crate) tool: Option<ToolRef>,
    pub(crate) rules: &'a [&'a [Rule]],
    /// Like the first rule set, but with the wider rules of plugins that lack the grant for them.
    pub(crate) wanted: Option<&'a [Rule]>,
    /// Why the user is asked regardless of the rules.
    pub(crate) requires_approval: Option<&'a ApprovalReason>,
    /// Who caused the call.
    pub(crate) causes: &'a Provenance,
    /// Where the call reports its progress: clients see the call first, then the question about it.
    pub(crate) reports: Option<&'a Outbox>,
}

impl Asker<'_> {
    /// Returns once clients have received what the call reported so far.
    async fn reported(&self) {
        if let Some(reports) = self.reports {
            reports.flushed().await;
        }
    }
}

impl AgentState {
    /// Decides a question; the text is for the record of the call. The decision is in the audit, as an entry or in a count,
    /// before anyone acts on it (the intent of the call is stored after it).
    pub(crate) async fn decide(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        ask: PermissionAsk,
    ) -> Result<Allowed, Refusal> {
        let (permission, patterns) = (ask.permission.clone(), ask.patterns.clone());
        let granted = self.rules_of_granted(asker);
        let in_force = Asker {
            rules: granted.as_deref().unwrap_or(asker.rules),
            ..asker.clone()
        };
        let answer = self.answer_of(&in_force, ask).await;
        let mut causes = asker.causes.clone();
        for actor in answer.iter().flat_map(|it| &it.by) {
            causes = causes.with(actor.clone(), Deed::Answered, None);
        }
        let (decision, by) = match &answer {
            Ok(it) => ("allow", who_allowed(&it.text, self.permissions.answering)),
            Err(Refusal::Rule(text)) => ("deny", text.as_str()),
            Err(Refusal::User(_)) if self.permissions.answering == Answering::Ask => {
                ("deny", "the user")
            }
            Err(Refusal::User(_)) => ("deny", "nobody: no user is available"),
        };
        self.audit_decision(Decided {
            session: asker.session_id,
            call: asker.tool.as_ref().map(|tool| tool.call_id.as_str()),
            permission: &permission,
            patterns: &patterns,
            decision,
            by,
            causes,
        });
        answer
    }

    async fn answer_of(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        ask: PermissionAsk,
    ) -> Result<Allowed, Refusal> {
        let tool_as = self.tools.mcp_tool_as(&ask.permission);
        let is_changed = self
            .permissions
            .questions
            .take_back_changed(&ask.permission, tool_as.as_deref());
        let approvals = self.permissions.questions.approvals_for(&ask);
        let mut layers: Vec<&[Rule]> = asker.rules.to_vec();
        layers.push(&approvals);
        let patterns = if ask.patterns.is_empty() {
            vec!["*".to_owned()]
        } else {
            ask.patterns.clone()
        };
        let actions = self
            .permissions
            .actions(asker, &ask, &patterns, &approvals)
            .await;
        if actions.contains(&Action::Deny) {
            let what = patterns.join(", ");
            return Err(Refusal::Rule(format!(
                "The user has specified a rule that denies {} for {what}. Do not try to do the same by other means.",
                ask.permission
            )));
        }
        let later = self.runs_later(asker, &ask, &patterns).await;
        let evaluate = |layers: &[&[Rule]]| self.permissions.access.action(&ask, layers);
        let by_rule = outrigger_permissions::agents::asked_by_the_user(evaluate, &layers);
        let is_allowed = actions.iter().all(|action| *action == Action::Allow);
        let wider = if is_allowed {
            None
        } else {
            self.wider_rules_of(asker, &ask)
        };
        let may_pass = !is_allowed && ask_rules::may_pass_a_deny(&ask, &layers);
        let question = Question {
            unread: may_pass.then_some(ApprovalReason::Unread),
            asker,
            ask,
            patterns,
            later,
            by_rule,
            tool_as,
            is_changed,
            wider,
        };
        if is_allowed && question.requires_approval().is_none() {
            return Ok(Allowed::by_rule());
        }
        self.ask_about(&question).await
    }

    /// Asks plugins, then the user.
    async fn ask_about(self: &Arc<Self>, question: &Question<'_>) -> Result<Allowed, Refusal> {
        let mut request = question.request();
        request.metadata =
            self.permissions
                .with_call(request.metadata, &request.permission, question.asker);
        let _firm = question
            .firmness()
            .map(|firmness| self.permissions.questions.hold_firm(&request.id, firmness));
        let mut ungranted = question.grantable().map(|it| it.why.clone());
        match self.ask_plugins(&request).await? {
            HookAnswer::Deny => {
                return Err(Refusal::Rule(format!(
                    "A plugin denies {} for {}.",
                    request.permission,
                    request.patterns.join(", ")
                )));
            }
            // A plugin may not allow what needs the user's approval.
            _ if question.requires_approval().is_some() => {}
            HookAnswer::Allow(plugins) => {
                return Ok(Allowed {
                    text: "allow (plugin)".to_owned(),
                    by: plugins.iter().map(Actor::plugin).collect(),
                });
            }
            HookAnswer::AllowUngranted(it) => {
                request.metadata = with_reason(request.metadata, Some(&it.why));
                request.missing_grant = it.missing().map(Box::new);
                ungranted = Some(it.why);
            }
            HookAnswer::None => {}
        }
        let answering = question.answering(self.permissions.answering);
        let alone = question.requires_approval().is_some();
        let asker = question.asker;
        asker.reported().await;
        let asked = self.ask_user(
            request,
            question.ask.clone(),
            alone,
            asker.rules,
            answering,
            None,
        );
        match asked.await {
            Err(Refusal::User(text)) if answering == Answering::Refuse => Err(Refusal::User(
                text + &question.how_to_allow(ungranted.as_deref()),
            )),
            answer => {
                if answer.as_ref().is_ok_and(|it| it.text == ALWAYS) {
                    self.remember(question);
                }
                answer
            }
        }
    }

    /// Stores a permanent approval that rules cannot express.
    fn remember(&self, question: &Question<'_>) {
        if let Some(it) = question.lacking() {
            self.grant_for_now(it.plugin.clone(), it.grant);
        }
        lock(&self.permissions.questions.startup).extend(question.files_that_run_later());
        if let Some(tool_as) = &question.tool_as {
            self.permissions
                .allowed_as(&question.ask.permission, tool_as);
        }
    }

    /// Returns why an approval by this plugin does not count and which grant it needs; `None` if it counts.
    fn may_not_approve(&self, plugin: &PluginId) -> Option<String> {
        let lacking = self.lacks(plugin, Grant::Approve, "may not approve it");
        lacking.map(|it| it.why)
    }

    /// Calls `permission.ask`, which OpenCode declares but never calls (B3).
    async fn ask_plugins(&self, request: &PermissionRequest) -> Result<HookAnswer, Refusal> {
        let (point, payload) = before_permission::Input(request).call(&before_permission::Output {
            status: Status::Ask,
        });
        let result = self
            .run_hooks(point, vec![payload], Some(&request.session_id), None, None)
            .await;
        // A security-critical plugin that did not see the question has not allowed it (C5).
        if let Some(block) = result.block {
            return Err(Refusal::Rule(format!("{} ({})", block.message, block.code)));
        }
        // The turn ends after this step, as if the user had denied the call.
        if let Some(why) = result.stop {
            return Err(Refusal::User(format!(
                "A hook denies {} for {} and ends the turn: {why}",
                request.permission,
                request.patterns.join(", ")
            )));
        }
        let status = result.outputs.first().map(before_permission::read);
        Ok(match status {
            Some(Status::Allow) => {
                // Every plugin that changed the answer needs the grant: a granted one that agrees does not vouch for another.
                let changed = result.changed_by();
                let lacks = |plugin| self.lacks(plugin, Grant::Approve, "may not approve it");
                let lacking = changed.iter().find_map(lacks);
                match lacking.or_else(|| self.approved_beyond(&changed, request)) {
                    Some(lacking) => HookAnswer::AllowUngranted(Box::new(lacking)),
                    None => HookAnswer::Allow(changed),
                }
            }
            Some(Status::Deny) => HookAnswer::Deny,
            Some(Status::Ask) | None => HookAnswer::None,
        })
    }
}

impl PermissionServices {
    /// Returns what the rules say about each pattern and about the line as written.
    async fn actions(
        &self,
        asker: &Asker<'_>,
        ask: &PermissionAsk,
        patterns: &[String],
        approvals: &[Rule],
    ) -> Vec<Action> {
        let mut actions = self.access.actions(ask, patterns, asker.rules).await;
        // "Always" answers the question; it does not lift a deny.
        let approved = |pattern: &str| self.access.is_approved(ask, pattern, approvals);
        for (pattern, action) in patterns.iter().zip(&mut actions) {
            if *action == Action::Ask && approved(pattern) {
                *action = Action::Allow;
            }
        }
        let spelled = ask_rules::by_spelling_approved(ask, asker.rules, approvals);
        actions.extend(spelled);
        actions
    }
}
