//! Questions that the model asks the user through the `question` tool (B7).

use std::sync::Arc;

use outrigger_protocol::event::Event;
use outrigger_protocol::id::{QuestionId, SessionId};
use outrigger_protocol::permission::ToolRef;
use outrigger_protocol::question::{Answer, Question, QuestionRequest};
use outrigger_stdx::sync::lock;
use tokio::sync::oneshot;

use crate::permission::answering::Answering;
use crate::state::{Agent, AgentState, PermissionServices};
use outrigger_session_state::ids;

impl AgentState {
    /// Asks the user and waits. Returns `None` if the questions are dismissed or there is no user to ask.
    pub(crate) async fn ask_questions(
        self: &Arc<Self>,
        session_id: &SessionId,
        tool: Option<ToolRef>,
        questions: Vec<Question>,
    ) -> Option<Vec<Answer>> {
        if !self.permissions.can_ask_questions() {
            return None;
        }
        let request = QuestionRequest {
            id: ids::question(),
            session_id: session_id.clone(),
            questions,
            tool,
        };
        let (sender, receiver) = oneshot::channel();
        lock(&self.permissions.user_questions.open)
            .insert(request.id.clone(), (request.clone(), sender));
        let mut open = PendingQuestion {
            state: self,
            request: Some(request.clone()),
        };
        self.commit_whole(vec![Event::QuestionAsked(request.clone())])
            .await;
        let answered = receiver.await.unwrap_or_default();
        open.request = None;
        let event = match answered.clone() {
            Some(answers) => Event::QuestionReplied {
                session_id: request.session_id,
                request_id: request.id,
                answers,
            },
            None => rejected(&request),
        };
        self.commit_whole(vec![event]).await;
        answered
    }
}

impl PermissionServices {
    /// Returns whether the user can be asked; only then is the tool offered to the model. Otherwise a run would wait
    /// forever, or each call would fail.
    pub(crate) fn can_ask_questions(&self) -> bool {
        self.answering == Answering::Ask
    }
}

fn rejected(request: &QuestionRequest) -> Event {
    Event::QuestionRejected {
        session_id: request.session_id.clone(),
        request_id: request.id.clone(),
    }
}

/// Withdraws a question whose call was cancelled and notifies the clients that show it.
struct PendingQuestion<'a> {
    state: &'a Arc<AgentState>,
    request: Option<QuestionRequest>,
}

impl Drop for PendingQuestion<'_> {
    fn drop(&mut self) {
        let Some(request) = self.request.take() else {
            return;
        };
        lock(&self.state.permissions.user_questions.open).remove(&request.id);
        self.state.commit_beside(vec![rejected(&request)]);
    }
}

impl Agent {
    /// Returns the model's questions that wait for the user.
    #[must_use]
    pub fn user_questions(&self) -> Vec<QuestionRequest> {
        lock(&self.state.permissions.user_questions.open)
            .values()
            .map(|(request, _)| request.clone())
            .collect()
    }

    /// Answers a question of the model, or dismisses it (`None`); returns false if there is no open question with that id.
    #[must_use]
    pub fn answer_question(&self, id: &QuestionId, answers: Option<Vec<Answer>>) -> bool {
        lock(&self.state.permissions.user_questions.open)
            .remove(id)
            .is_some_and(|(_, sender)| sender.send(answers).is_ok())
    }
}
