//! Prompts that arrive while a turn runs. Their messages are stored at once, so that every client sees them. The turn
//! takes them in ([`crate::turn::queue::steering`]); if it cannot, they are answered one after the other.

use std::time::Duration;

use outrigger_protocol::event::Event;
use outrigger_protocol::id::{MessageId, SessionId};
use outrigger_protocol::turn::Input;
use tokio::sync::watch;

use crate::error::AgentError;
use crate::state::Agent;
use crate::turn::drive::Driver;
use crate::turn::start::Prompt;
use outrigger_session_state::prompt_queue::InQueue;

impl Agent {
    /// Stores the message of a prompt whose turn comes later: its hooks run now, as in OpenCode. Returns the queued
    /// prompt.
    pub(crate) async fn announce(
        &self,
        place: &InQueue<'_>,
        mut prompt: Prompt,
        cancelled: watch::Receiver<bool>,
    ) -> Result<Prompt, AgentError> {
        let id = place.session();
        let given = prompt.input.message_id.clone();
        let message = given.unwrap_or_else(outrigger_session_state::ids::message);
        // Before it is stored, so that the running turn never reads it.
        place.holds(&message);
        let mut session = self.session(id)?;
        let conversation = self.state.conversation(id)?;
        let mut begin = self.begin(&session, &conversation, prompt.clone())?;
        begin.no_reply = true;
        begin.message.id = message.clone();
        // Chosen once: the later turn uses what the message states.
        prompt.input.agent = Some(begin.agent.clone());
        prompt.input.model = Some(begin.model.clone());
        let changes = conversation.facts.changes.changes();
        let driver = Driver::new(
            std::sync::Arc::clone(&self.state),
            begin.turn.clone(),
            id.clone(),
            changes,
            cancelled,
        );
        driver.run(Input::Begin(Box::new(begin))).await?;
        let input = &prompt.input;
        self.switch_tools(&mut session, input.tools.as_ref(), &input.provenance)
            .await?;
        prompt.input.message_id = Some(message);
        Ok(prompt)
    }

    /// Removes the message of a prompt that is refused after all.
    pub(crate) async fn retract(
        &self,
        id: &SessionId,
        message: &MessageId,
    ) -> Result<(), AgentError> {
        let event = Event::MessageRemoved {
            session_id: id.clone(),
            message_id: message.clone(),
        };
        self.state.commit(Vec::new(), vec![event]).await
    }

    /// Waits until no plugin is active for the session: a prompt sent from a hook would run the same hook again.
    pub(crate) async fn free_of_plugins(&self, id: &SessionId) {
        while self.state.sessions.turns.is_with_plugins(id) {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}
