//! Command hooks of sessions that end with the process.

use outrigger_kernel::hooks::points::runtime::dispose;
use outrigger_kernel::hooks::{Empty, HookInput, HookPoint};
use outrigger_protocol::hook::HookRecord;
use outrigger_protocol::id::SessionId;

use super::{Pipeline, PipelineContext};
use outrigger_plugin_registry::{Bound, COMMAND_GROUP};

impl Pipeline {
    /// Notifies the command hooks of each session of its end (`SessionEnd`), concurrently. JavaScript plugins are notified in
    /// their processes.
    pub async fn end_sessions(&self) -> Vec<HookRecord> {
        let point = HookPoint::RuntimeDispose;
        let (Some(bound), Some(commands)) = (self.0.registry.bound(point), &self.0.commands) else {
            return Vec::new();
        };
        let bound: Vec<Bound> = bound
            .iter()
            .filter(|bound| bound.group == COMMAND_GROUP)
            .cloned()
            .collect();
        let one = async |session: String| {
            let session = SessionId(session);
            let input = dispose::Input {
                session_id: &session,
            };
            let item = input.payload(&Empty {});
            let context = PipelineContext {
                session: Some(session),
                ..PipelineContext::default()
            };
            self.passes(point, None, &bound, vec![item], &context).await
        };
        let all = futures_util::future::join_all(commands.begun().into_iter().map(one)).await;
        all.into_iter().flat_map(|one| one.records).collect()
    }
}
