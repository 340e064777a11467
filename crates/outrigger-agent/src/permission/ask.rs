//! Permission questions: rules first, then plugins, then the user.

mod answers;
mod outside;
mod startup;

use std::sync::Arc;

use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::tool::before_permission::{self, Status};
use outrigger_kernel::permission::evaluate_unclear;
use outrigger_permissions::access::ask_rules;
use outrigger_permissions::access::hosts;
use outrigger_permissions::access::startup::RunsLater;
use outrigger_permissions::approval::{ApprovalReason, UngrantedAction};
use outrigger_plugins::Grant;
use outrigger_protocol::event::Event;
use outrigger_protocol::hook::Decision;
use outrigger_protocol::id::{PermissionId, PluginId, SessionId};
use outrigger_protocol::permission::{
    Action, HOOK_REASON, PermissionRequest, Reply, Rule, ToolRef,
};
use outrigger_protocol::provenance::{Actor, Deed, Provenance};
use outrigger_tools::PermissionAsk;
use outrigger_workspace::sync::lock;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::error::AgentError;
use crate::ids;
use crate::permission::answering::Answering;
use crate::state::questions::{Firmness, OpenQuestion};
use crate::state::{Agent, Inner};

/// That something may be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Allowed {
    /// For the record of the call.
    pub(crate) text: String,
    /// Whoever answered the question; nobody, where a rule did.
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

/// The permission of a command that runs outside of its sandbox.
const OUTSIDE: &str = "sandbox";

/// Why a tool may not do what it wants.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// A rule says so, or the user does and says what to do instead; the turn goes on.
    Rule(String),
    /// The user says so, or nobody is there to say otherwise; the turn ends behind this step, as in OpenCode.
    User(String),
}

impl Refusal {
    pub(crate) fn text(self) -> String {
        match self {
            Self::Rule(text) | Self::User(text) => text,
        }
    }
}

/// The answer of `permission.ask` hooks.
enum HookAnswer {
    /// All that changed the answer may approve: these.
    Allow(Vec<PluginId>),
    /// One of them may not: why, with the grant that is missing.
    AllowUngranted(Box<UngrantedAction>),
    Deny,
    None,
}

/// What a question is about, beside the question itself.
pub(crate) struct Asker<'a> {
    pub(crate) session_id: &'a SessionId,
    pub(crate) tool: Option<ToolRef>,
    pub(crate) rules: &'a [&'a [Rule]],
    /// Why the user is asked whatever the rules allow.
    pub(crate) requires_approval: Option<&'a ApprovalReason>,
    /// Who wants it.
    pub(crate) causes: &'a Provenance,
}

impl Inner {
    /// Decides a question; the text is for the call's record. The decision is in the audit, listed or counted, before anybody
    /// acts on it (the intent of the call waits behind it).
    pub(crate) async fn decide(
        self: &Arc<Self>,
        asker: &Asker<'_>,
        ask: PermissionAsk,
    ) -> Result<Allowed, Refusal> {
        let (permission, patterns) = (ask.permission.clone(), ask.patterns.clone());
        let answer = self.answer_of(asker, ask).await;
        let mut causes = asker.causes.clone();
        for actor in answer.iter().flat_map(|it| &it.by) {
            causes = causes.with(actor.clone(), Deed::Answered, None);
        }
        let (decision, by) = match &answer {
            Ok(it) => (
                "allow",
                crate::permission::audit::who_allowed(&it.text, self.answering),
            ),
            Err(Refusal::Rule(text)) => ("deny", text.as_str()),
            Err(Refusal::User(_)) if self.answering == Answering::Ask => ("deny", "the user"),
            Err(Refusal::User(_)) => ("deny", "nobody: there is nobody to ask"),
        };
        self.audit_decision(crate::permission::audit::Decided {
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
        let approvals = lock(&self.questions.approvals).clone();
        let mut layers: Vec<&[Rule]> = asker.rules.to_vec();
        layers.push(&approvals);
        let patterns = if ask.patterns.is_empty() {
            vec!["*".to_owned()]
        } else {
            ask.patterns.clone()
        };
        let mut actions = self.access.actions(&ask, &patterns, asker.rules).await;
        // "Always" answers what is asked about; it lifts no deny.
        for (pattern, action) in patterns.iter().zip(&mut actions) {
            let approved = |pattern| {
                let approved = match ask.unclear {
                    None => self
                        .access
                        .evaluate(&ask.permission, pattern, &[&approvals]),
                    Some(_) => evaluate_unclear(&ask.permission, pattern, &[&approvals]),
                };
                approved == Action::Allow
            };
            if *action == Action::Ask && approved(pattern) {
                *action = Action::Allow;
            }
        }
        actions.extend(match ask_rules::by_spelling(&ask, asker.rules) {
            Some(Action::Ask) => ask_rules::by_spelling(&ask, &layers),
            other => other,
        });
        if actions.contains(&Action::Deny) {
            let what = patterns.join(", ");
            return Err(Refusal::Rule(format!(
                "The user has specified a rule that denies {} for {what}. Do not try to do the same by other means.",
                ask.permission
            )));
        }
        let allowed = |action: &Action| *action == Action::Allow;
        let later = self.runs_later(asker, &ask.permission, &patterns).await;
        let requires_approval = match asker.requires_approval {
            Some(ApprovalReason::Ungranted(_)) => asker.requires_approval,
            other => later.as_ref().or(other),
        };
        if requires_approval.is_none() && actions.iter().all(allowed) {
            return Ok(Allowed::by_rule());
        }
        let evaluate = |layers: &[&[Rule]]| self.access.action(&ask, layers);
        let by_rule = outrigger_permissions::agents::asked_by_the_user(evaluate, &layers);
        let local = ask.permission == hosts::WEB && patterns.iter().any(|it| hosts::is_local(it));
        let (asked, unclear) = (ask.clone(), ask.unclear);
        let metadata = with_doubt(ask.metadata, unclear.as_deref());
        let reasons = [asker.requires_approval, later.as_ref()]
            .into_iter()
            .flatten();
        let reasons: Vec<String> = reasons.map(ApprovalReason::shown).collect();
        let reason = (!reasons.is_empty()).then(|| reasons.join("; "));
        // "Always" is about these files: one for all would not count for them.
        let always = match later {
            Some(_) => patterns.clone(),
            None => ask.always,
        };
        let mut request = PermissionRequest {
            id: ids::permission(),
            session_id: asker.session_id.clone(),
            permission: ask.permission,
            patterns,
            always,
            metadata: with_reason(metadata, reason.as_deref()),
            tool: asker.tool.clone(),
            provenance: asker.causes.clone(),
            missing_grant: None,
        };
        let firmness = match requires_approval {
            Some(ApprovalReason::Ungranted(_)) => Some(Firmness::Person),
            Some(ApprovalReason::RunsLater(_)) => Some(Firmness::Startup),
            Some(ApprovalReason::Hook(_)) => Some(Firmness::Asked),
            None => by_rule.then_some(Firmness::Asked),
        };
        let _firm = firmness.map(|firmness| self.questions.hold_firm(&request.id, firmness));
        let lacking = match requires_approval {
            Some(ApprovalReason::Ungranted(lacking)) => Some(lacking),
            _ => None,
        };
        let mut ungranted = lacking.map(|it| it.why.clone());
        request.missing_grant = lacking.and_then(UngrantedAction::missing).map(Box::new);
        match self.ask_plugins(&request).await? {
            HookAnswer::Allow(plugins) if requires_approval.is_none() => {
                return Ok(Allowed {
                    text: "allow (plugin)".to_owned(),
                    by: plugins.iter().map(Actor::plugin).collect(),
                });
            }
            HookAnswer::AllowUngranted(it) if requires_approval.is_none() => {
                request.metadata = with_reason(request.metadata, Some(&it.why));
                request.missing_grant = it.missing().map(Box::new);
                ungranted = Some(it.why);
            }
            HookAnswer::Allow(_) | HookAnswer::AllowUngranted(_) | HookAnswer::None => {}
            HookAnswer::Deny => {
                return Err(Refusal::Rule(format!(
                    "A plugin denies {} for {}.",
                    request.permission,
                    request.patterns.join(", ")
                )));
            }
        }
        // `--auto` is the user's word for the model's calls, not for a plugin's, nor for what runs later.
        let answering = match self.answering {
            Answering::Allow if lacking.is_some() || later.is_some() => Answering::Refuse,
            answering => answering,
        };
        let named = later
            .as_ref()
            .map(ApprovalReason::named)
            .unwrap_or_default();
        let alone = later.is_some();
        match self.ask_user(request, (asked, alone), answering).await {
            Err(Refusal::User(text)) if answering == Answering::Refuse => {
                let way = match lacking {
                    Some(_) => String::new(),
                    None if alone => format!(
                        " ({}. A rule under `permission` in opencode.json that names it allows it: {}.)",
                        reasons.join("; "),
                        startup::rule(&named)
                    ),
                    None if local => {
                        " (It is an address of this machine or its network, which a rule under `permission.webfetch` in \
                         opencode.json allows by name: \"http://localhost:3000/*\": \"allow\".)"
                            .to_owned()
                    }
                    None => " (Allow it under `permission` in opencode.json, or run with --auto.)"
                        .to_owned(),
                };
                let more = ungranted.map(|why| format!(" {why}.")).unwrap_or_default();
                let unclear = unclear.map(|why| {
                    format!(" What it runs is not certain: it has {why}; plainer commands are held against the rules one by one.")
                });
                Err(Refusal::User(
                    text + &way + &more + &unclear.unwrap_or_default(),
                ))
            }
            answer => {
                let text = answer.as_ref().map(|it| it.text.as_str());
                if let (Some(it), Ok("ask -> always")) = (lacking, text) {
                    lock(&self.questions.granted).insert((it.plugin.clone(), it.grant));
                }
                if text == Ok("ask -> always") {
                    lock(&self.questions.startup).extend(named);
                }
                answer
            }
        }
    }

    /// Why an approval by this plugin does not count, and what grants it; `None` where it counts.
    fn may_not_approve(&self, plugin: &PluginId) -> Option<String> {
        let lacking = self.lacks(plugin, Grant::Approve, "may not approve it");
        lacking.map(|it| it.why)
    }

    /// `permission.ask`, which OpenCode declares and never calls (B3).
    async fn ask_plugins(&self, request: &PermissionRequest) -> Result<HookAnswer, Refusal> {
        let (point, payload) = before_permission::Input(request).call(&before_permission::Output {
            status: Status::Ask,
        });
        let result = self
            .run_hooks(point, vec![payload], Some(&request.session_id), None, None)
            .await;
        // A security-critical plugin that could not look at it has not allowed it (C5).
        if let Some(block) = result.block {
            return Err(Refusal::Rule(format!("{} ({})", block.message, block.code)));
        }
        // The turn ends behind this step, as where the user says no.
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
                let changed = result.records.into_iter();
                let changed = changed.filter(|it| it.decision == Decision::Patch);
                let changed: Vec<PluginId> = changed.map(|it| it.plugin).collect();
                let lacks = |plugin| self.lacks(plugin, Grant::Approve, "may not approve it");
                match changed.iter().find_map(lacks) {
                    Some(lacking) => HookAnswer::AllowUngranted(Box::new(lacking)),
                    None => HookAnswer::Allow(changed),
                }
            }
            Some(Status::Deny) => HookAnswer::Deny,
            Some(Status::Ask) | None => HookAnswer::None,
        })
    }

    async fn ask_user(
        self: &Arc<Self>,
        request: PermissionRequest,
        (ask, alone): (PermissionAsk, bool),
        answering: Answering,
    ) -> Result<Allowed, Refusal> {
        let (sender, receiver) = oneshot::channel();
        let text = format!("{} ({})", request.permission, request.patterns.join(", "));
        let waiting = OpenQuestion {
            request: request.clone(),
            ask,
            alone,
            answer: sender,
        };
        lock(&self.questions.open).insert(request.id.clone(), waiting);
        let mut open = Withdrawal {
            inner: self,
            request: Some(request.clone()),
        };
        self.commit_whole(vec![Event::PermissionAsked(request.clone())])
            .await;
        let (reply, message, by) = match answering {
            Answering::Refuse => (Reply::Reject, None, Actor::User),
            Answering::Allow => (Reply::Once, None, Actor::User),
            Answering::Ask => {
                let answered = receiver.await;
                answered.unwrap_or((Reply::Reject, None, Actor::User))
            }
        };
        let allowed = |text: &str| Allowed {
            text: text.to_owned(),
            by: vec![by.clone()],
        };
        // A plugin's word is not to be read as the user's.
        let who = match &by {
            Actor::Plugin { .. } => format!("The {by}"),
            _ => "The user".to_owned(),
        };
        open.request = None;
        lock(&self.questions.open).remove(&request.id);
        let event = replied(&request, reply, by.clone());
        self.commit_whole(vec![event]).await;
        match (reply, message) {
            (Reply::Once, _) => Ok(allowed("ask -> once")),
            (Reply::Always, _) => Ok(allowed("ask -> always")),
            (Reply::Reject, _) if answering == Answering::Refuse => Err(Refusal::User(format!(
                "Permission was not given: {text} has to be asked for, and there is nobody to ask."
            ))),
            (Reply::Reject, Some(message)) => Err(Refusal::Rule(format!(
                "{who} rejected permission for this tool call ({text}) with the following feedback: {message}"
            ))),
            (Reply::Reject, None) => Err(Refusal::User(format!(
                "{who} rejected permission for this tool call: {text}."
            ))),
        }
    }

    /// Stores and tells events to the end, even when the caller for it is cancelled: an event that is in the store
    /// and was not told would be missed by every client.
    pub(crate) async fn commit_whole(self: &Arc<Self>, events: Vec<Event>) {
        let inner = Arc::clone(self);
        let task = tokio::spawn(async move { inner.commit(Vec::new(), events).await });
        match task.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::error!("{error}"),
            Err(error) => tracing::error!("[events] {error}"),
        }
    }

    /// What an answer means for the other questions of its session: "always" answers those that it covers, a refusal
    /// refuses them all, as in OpenCode.
    fn answer_others(&self, answered: &PermissionRequest, reply: Reply, by: &Actor) {
        if reply == Reply::Always {
            self.audit_grant(&answered.session_id, &answered.permission, &answered.always);
            let rules = answered.always.iter().map(|pattern| Rule {
                permission: answered.permission.clone(),
                pattern: pattern.clone(),
                action: Action::Allow,
            });
            lock(&self.questions.approvals).extend(rules);
        }
        let approvals = lock(&self.questions.approvals).clone();
        let covered = |OpenQuestion { ask, alone, .. }: &OpenQuestion| match reply {
            Reply::Once => false,
            Reply::Reject => true,
            Reply::Always => !alone && self.access.action(ask, &[&approvals]) == Action::Allow,
        };
        let mut open = lock(&self.questions.open);
        let others: Vec<PermissionId> = open
            .iter()
            .filter(|(_, it)| it.request.session_id == answered.session_id && covered(it))
            .map(|(id, _)| id.clone())
            .collect();
        for id in others {
            if let Some(waiting) = open.remove(&id) {
                let _ = waiting.answer.send((reply, None, by.clone()));
            }
        }
    }
}

impl Inner {
    /// Stores and tells events without anybody waiting, from where nobody can wait; the end of the program waits for it.
    pub(crate) fn commit_beside(self: &Arc<Self>, events: Vec<Event>) {
        // Without a runtime the process is ending, and the log is closed.
        if tokio::runtime::Handle::try_current().is_err() {
            return;
        }
        let inner = Arc::clone(self);
        self.background
            .spawn(async move { inner.commit_whole(events).await });
    }
}

/// Why a hook requires approval, beside what is shown. A tool, which may be a plugin's, says nothing in its place.
fn with_reason(mut metadata: Value, requires_approval: Option<&str>) -> Value {
    if let Value::Object(fields) = &mut metadata {
        fields.remove(HOOK_REASON);
    }
    match (metadata, requires_approval) {
        (Value::Object(mut fields), Some(why)) => {
            fields.insert(HOOK_REASON.to_owned(), json!(why));
            Value::Object(fields)
        }
        (Value::Null, Some(why)) => json!({ HOOK_REASON: why }),
        (metadata, _) => metadata,
    }
}

/// Why the line is shown as a whole, for who is asked.
fn with_doubt(mut metadata: Value, unclear: Option<&str>) -> Value {
    if let (Value::Object(fields), Some(why)) = (&mut metadata, unclear) {
        fields.insert("unclear".to_owned(), json!(why));
    }
    metadata
}

fn replied(request: &PermissionRequest, reply: Reply, by: Actor) -> Event {
    Event::PermissionReplied {
        session_id: request.session_id.clone(),
        request_id: request.id.clone(),
        reply,
        provenance: Provenance::default().with(by, Deed::Answered, None),
    }
}

/// A question whose call was cancelled is taken back, and whoever shows it is told: behind the question itself, since
/// storing and telling are done one after the other.
struct Withdrawal<'a> {
    inner: &'a Arc<Inner>,
    request: Option<PermissionRequest>,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else {
            return;
        };
        lock(&self.inner.questions.open).remove(&request.id);
        self.inner
            .commit_beside(vec![replied(&request, Reply::Reject, Actor::User)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The user reads what a hook says as that hook's word; a tool brings its own metadata.
    #[test]
    fn a_tool_does_not_speak_as_a_hook() {
        let own = json!({"reason": "mine", HOOK_REASON: "safe, say yes"});
        for (metadata, requires_approval, want) in [
            (own.clone(), None, json!({"reason": "mine"})),
            (
                own,
                Some("why"),
                json!({"reason": "mine", HOOK_REASON: "why"}),
            ),
            (Value::Null, Some("why"), json!({HOOK_REASON: "why"})),
            (Value::Null, None, Value::Null),
        ] {
            assert_eq!(with_reason(metadata, requires_approval), want);
        }
    }
}
