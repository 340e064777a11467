//! Pruning: the output of old tool calls is removed from later requests (`compaction.prune`, off by default).

use outrigger_prompt::compaction::prune::old_output;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::SessionId;

use crate::error::AgentError;
use crate::state::AgentState;
use outrigger_stdx::clock::now_ms;

impl AgentState {
    /// Marks old tool output of a session as pruned if the configuration enables it. Runs after every turn.
    pub(crate) async fn prune(&self, id: &SessionId) -> Result<(), AgentError> {
        if self.config.config.compaction.prune != Some(true) {
            return Ok(());
        }
        let at = now_ms();
        let parts = old_output(&self.history(id)?, at);
        if parts.is_empty() {
            return Ok(());
        }
        tracing::info!(
            "[compact] {id}: the output of {} tool calls is removed",
            parts.len()
        );
        let event = |part| Event::PartUpdated {
            session_id: id.clone(),
            part: Box::new(part),
            time: at,
        };
        self.commit(Vec::new(), parts.into_iter().map(event).collect())
            .await
    }
}
