//! Effects for snapshots of files and for questions about repeated calls.

use std::sync::Arc;

use outrigger_protocol::permission::{Rule, ToolRef};
use outrigger_protocol::permission_names::DOOM_LOOP;
use outrigger_protocol::tool::ToolCall;
use outrigger_protocol::turn::{EffectId, Input};
use outrigger_tools::PermissionAsk;
use outrigger_workspace::snapshot::{FileDiff, SnapshotError};
use serde_json::json;

use crate::permission::ask::Asker;
use crate::state::{AgentState, ProjectContext};

impl AgentState {
    /// Creates a snapshot and returns the changes since another one. A failure loses the snapshot but never fails
    /// the turn.
    pub(crate) async fn track_files(
        &self,
        effect: EffectId,
        since: Option<String>,
        first: Option<String>,
    ) -> Input {
        let tree = match self.project.snapshots.track().await {
            Ok(tree) => Some(tree),
            Err(error) => {
                tracing::warn!("[snapshot] {error}");
                None
            }
        };
        let (mut changed, mut diffs) = (Vec::new(), None);
        if let (Some(tree), Some(since)) = (&tree, &since)
            && tree != since
        {
            match self
                .project
                .changes_between(since, first.as_ref(), tree)
                .await
            {
                Ok(found) => (changed, diffs) = (found.0, Some(found.1)),
                Err(error) => tracing::warn!("[snapshot] {error}"),
            }
        }
        Input::FilesTracked {
            effect,
            tree,
            changed,
            diffs: diffs.map(|diffs| diffs.iter().map(FileDiff::to_wire).collect()),
        }
    }

    /// Asks whether a repeated call may run: permission `doom_loop`, as in OpenCode.
    pub(crate) async fn ask_about_loop(
        self: &Arc<Self>,
        call: &ToolCall,
        rules: &[Rule],
    ) -> Result<String, String> {
        let own = self.session_rules(&call.session_id);
        let own = own.map_err(|error| error.to_string())?;
        let asker = Asker {
            session_id: &call.session_id,
            tool: Some(ToolRef {
                message_id: call.message_id.clone(),
                call_id: call.call_id.clone(),
            }),
            rules: &[rules, &own],
            wanted: None,
            requires_approval: None,
            causes: &call.provenance,
            reports: None,
        };
        let ask = PermissionAsk {
            permission: DOOM_LOOP.into(),
            patterns: vec![call.tool.clone()],
            always: vec![call.tool.clone()],
            metadata: json!({ "tool": call.tool, "input": call.input }),
            ..PermissionAsk::default()
        };
        let answer = self.decide(&asker, ask).await;
        answer
            .map(|it| it.text)
            .map_err(crate::permission::ask::Refusal::text)
    }
}

impl ProjectContext {
    /// Returns the files that a step changed and those that the turn changed so far.
    async fn changes_between(
        &self,
        since: &str,
        first: Option<&String>,
        tree: &str,
    ) -> Result<(Vec<String>, Vec<FileDiff>), SnapshotError> {
        let from = first.map_or(since, String::as_str);
        let diffs = self.snapshots.diff(from, tree).await?;
        let changed = if from == since {
            diffs.iter().map(|diff| diff.file.clone()).collect()
        } else {
            self.snapshots.changed(since, tree).await?
        };
        let absolute = changed
            .iter()
            .map(|file| self.snapshots.absolute(file).display().to_string());
        Ok((absolute.collect(), diffs))
    }
}
