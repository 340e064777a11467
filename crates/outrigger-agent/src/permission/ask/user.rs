//! Asking the user, and applying an answer to the other open questions.

use std::sync::Arc;

use outrigger_protocol::event::Event;
use outrigger_protocol::id::PermissionId;
use outrigger_protocol::permission::{Action, PermissionRequest, Reply, Rule};
use outrigger_protocol::provenance::{Actor, Deed, Provenance};
use outrigger_stdx::sync::lock;
use outrigger_tools::PermissionAsk;
use tokio::sync::oneshot;

use super::outside::Frozen;
use super::{ALWAYS, Allowed, Refusal};
use crate::permission::answering::Answering;
use crate::state::{AgentState, PermissionServices};
use outrigger_permissions::access::ask_rules;
use outrigger_permissions::questions::{Answered, OpenQuestion};

impl AgentState {
    /// `freeze`: other processes are frozen from the answer on if it allows, before anybody is notified.
    pub(super) async fn ask_user(
        self: &Arc<Self>,
        request: PermissionRequest,
        ask: PermissionAsk,
        alone: bool,
        rules: &[&[Rule]],
        answering: Answering,
        freeze: Option<&mut Frozen>,
    ) -> Result<Allowed, Refusal> {
        let (sender, receiver) = oneshot::channel();
        let text = format!("{} ({})", request.permission, request.patterns.join(", "));
        let waiting = OpenQuestion {
            request: request.clone(),
            ask,
            rules: rules.iter().map(|it| it.to_vec()).collect(),
            alone,
            answer: sender,
        };
        lock(&self.permissions.questions.open).insert(request.id.clone(), waiting);
        if self.is_covered_by_now(&request.id) {
            return Ok(Allowed::by_rule());
        }
        let mut open = Withdrawal {
            state: self,
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
        if let (Some(freeze), true) = (freeze, reply != Reply::Reject) {
            *freeze = Some(self.processes.spawner.freeze().await);
        }
        open.request = None;
        lock(&self.permissions.questions.open).remove(&request.id);
        let event = replied(&request, reply, by.clone());
        self.commit_whole(vec![event]).await;
        answered((reply, message, by), answering, &text)
    }

    /// Withdraws a question that an "always" covers which was given while plugins were asked about it: [`Self::answer_others`]
    /// answers the open questions, and this one was not open yet.
    fn is_covered_by_now(&self, id: &PermissionId) -> bool {
        let mut open = lock(&self.permissions.questions.open);
        let is_covered = open.get(id).is_some_and(|it| self.permissions.covers(it));
        is_covered && open.remove(id).is_some()
    }

    /// Applies an answer to the other questions of its session: "always" answers those that it covers, a refusal refuses them
    /// all, as in OpenCode. They get its words as well: without them, the turn would end before the model reads any.
    pub(super) fn answer_others(
        &self,
        answered: &PermissionRequest,
        ask: &PermissionAsk,
        answer: &Answered,
    ) {
        let reply = answer.0;
        if reply == Reply::Always {
            self.audit_grant(&answered.session_id, &answered.permission, &answered.always);
            let rules = answered.always.iter().map(|pattern| Rule {
                permission: answered.permission.clone(),
                pattern: pattern.clone(),
                action: Action::Allow,
            });
            self.permissions.questions.approve(ask, rules);
        }
        let covered = |open: &OpenQuestion| match reply {
            Reply::Once => false,
            Reply::Reject => true,
            Reply::Always => self.permissions.covers(open),
        };
        let mut open = lock(&self.permissions.questions.open);
        let others: Vec<PermissionId> = open
            .iter()
            .filter(|(_, it)| it.request.session_id == answered.session_id && covered(it))
            .map(|(id, _)| id.clone())
            .collect();
        for id in others {
            if let Some(waiting) = open.remove(&id) {
                let _ = waiting.answer.send(answer.clone());
            }
        }
    }
}

impl PermissionServices {
    /// Returns whether "always" answers cover the whole question, as they would if it were asked now.
    fn covers(&self, open: &OpenQuestion) -> bool {
        let OpenQuestion {
            ask, rules, alone, ..
        } = open;
        let approvals = &self.questions.approvals_for(ask)[..];
        let everything = ["*".to_owned()];
        let patterns = match ask.patterns.as_slice() {
            [] => &everything[..],
            patterns => patterns,
        };
        let mut patterns = patterns.iter();
        let rules: Vec<&[Rule]> = rules.iter().map(Vec::as_slice).collect();
        let spelled = ask_rules::by_spelling_approved(ask, &rules, approvals);
        !alone
            && patterns.all(|pattern| self.access.is_approved(ask, pattern, approvals))
            && spelled.is_none_or(|action| action == Action::Allow)
    }
}

/// Converts an answer to the result for the caller that asked about `text`.
fn answered(
    (reply, message, by): Answered,
    answering: Answering,
    text: &str,
) -> Result<Allowed, Refusal> {
    let allowed = |text: &str| Allowed {
        text: text.to_owned(),
        by: vec![by.clone()],
    };
    // The model must not take a plugin's words for the user's.
    let who = match &by {
        Actor::Plugin { .. } => format!("The {by}"),
        _ => "The user".to_owned(),
    };
    match (reply, message) {
        (Reply::Once, _) => Ok(allowed("ask -> once")),
        (Reply::Always, _) => Ok(allowed(ALWAYS)),
        (Reply::Reject, _) if answering == Answering::Refuse => Err(Refusal::User(format!(
            "Permission was not given: {text} needs approval, and no user is available."
        ))),
        (Reply::Reject, Some(message)) => Err(Refusal::Rule(format!(
            "{who} rejected permission for this tool call ({text}) with the following feedback: {message}"
        ))),
        (Reply::Reject, None) => Err(Refusal::User(format!(
            "{who} rejected permission for this tool call: {text}."
        ))),
    }
}

fn replied(request: &PermissionRequest, reply: Reply, by: Actor) -> Event {
    Event::PermissionReplied {
        session_id: request.session_id.clone(),
        request_id: request.id.clone(),
        reply,
        provenance: Provenance::default().with(by, Deed::Answered, None),
    }
}

/// Withdraws a question whose call was cancelled and notifies the clients that show it. The notice comes after the question,
/// since storing and publishing run in order.
struct Withdrawal<'a> {
    state: &'a Arc<AgentState>,
    request: Option<PermissionRequest>,
}

impl Drop for Withdrawal<'_> {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else {
            return;
        };
        lock(&self.state.permissions.questions.open).remove(&request.id);
        self.state
            .commit_beside(vec![replied(&request, Reply::Reject, Actor::User)]);
    }
}
