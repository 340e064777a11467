//! Shutting down an agent.

use std::time::Duration;

use outrigger_mcp_tools::skill_servers::GRACE;
use outrigger_protocol::log::LogRecord;
use outrigger_stdx::sync::lock;

use crate::state::Agent;

/// Time limit for killed processes to exit: a process that hangs in the kernel is not waited for.
const PROCESSES_END: Duration = Duration::from_secs(2);

impl Agent {
    /// Shuts down: waits briefly for background work, disposes plugins, and flushes the store to disk.
    pub async fn shutdown(&self) {
        self.state.tools.terminals.close();
        self.finish_turns(Duration::from_secs(3)).await;
        let timeout = if self.state.sessions.turns.is_in_hurry() {
            200
        } else {
            5_000
        };
        self.finish_background(Duration::from_millis(timeout)).await;
        self.state.plugins.notifications.close();
        let ended = self.state.plugins.host.end_sessions(Duration::from_secs(5));
        let ended = ended.await.into_iter();
        self.state.note(
            ended
                .map(|record| LogRecord::Hook(Box::new(record)))
                .collect(),
        );
        tokio::join!(
            self.state.plugins.host.dispose(Duration::from_secs(5)),
            self.state.tools.mcp.shutdown(GRACE),
            self.state.tools.skill_servers.shutdown(),
            self.state.tools.lsp.shutdown(GRACE)
        );
        lock(&self.state.plugins.sdk).take();
        // Undo the forbidden changes of ended processes, then compare the settings that they wrote.
        let ended = || outrigger_sandbox::wait_for_dropped(PROCESSES_END);
        let _ = tokio::task::spawn_blocking(ended).await;
        if let Some(workspace_trust) = &self.state.permissions.workspace_trust {
            workspace_trust.end().await;
        }
        self.state.processes.spawner.end();
        if let Err(error) = self.state.store.flush(true).await {
            tracing::error!("[store] {error}");
        }
    }

    /// Waits for titles and other background work, at most `limit`; work that begins meanwhile is included.
    pub async fn finish_background(&self, limit: Duration) {
        self.state.background.finish(limit).await;
    }
}
