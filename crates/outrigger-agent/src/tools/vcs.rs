//! Version control for clients, filtered by permission rules.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use outrigger_protocol::provenance::{Actor, Provenance};
use outrigger_sandbox::Spawner;
use outrigger_sandbox::path_masks::CoverWalk;
use outrigger_tools::PermissionAsk;
use outrigger_workspace::ProjectLocation;
use outrigger_workspace::vcs::{Vcs, VcsHost, VisibleFn};

use crate::state::Agent;

impl Agent {
    /// Returns the version control of the agent's folder.
    #[must_use]
    pub fn vcs(&self) -> Vcs {
        Vcs::new(Arc::new(self.clone()))
    }
}

impl VcsHost for Agent {
    fn location(&self) -> &ProjectLocation {
        &self.state.project.location
    }

    fn home(&self) -> &Path {
        &self.state.project.folders.home
    }

    fn spawner(&self) -> &Spawner {
        &self.state.processes.spawner
    }

    fn kept(&self) -> BoxFuture<'_, Result<Option<CoverWalk>, String>> {
        Box::pin(async {
            let kept = self.state.covers_of_helpers().await;
            kept.map_err(|error| error.to_string())
        })
    }

    fn is_trusted(&self) -> bool {
        self.state.config.is_trusted
    }

    fn may(&self, operation: &str, file: &Path) -> bool {
        self.may(operation, file)
    }

    fn visible(&self) -> VisibleFn {
        let view = self.view();
        Box::new(move |file| view.may_read(file))
    }

    fn runs_later(&self, by: &Actor, file: &str) -> Option<(String, &'static str)> {
        let found = self.runs_later(by, [file]).pop()?;
        Some((found.pattern, found.runs))
    }

    /// Returns the missing grant of a plugin whose patch changes files that it could not write itself and for
    /// which it lacks `prompt`.
    fn lacking_grant(&self, by: &Actor, files: &[PathBuf]) -> Option<String> {
        let ask = PermissionAsk {
            permission: "edit".to_owned(),
            patterns: files.iter().map(|it| it.display().to_string()).collect(),
            ..PermissionAsk::default()
        };
        let lacking = |by| (self.state).asked_without_grant(&by, "sent the patch", &ask);
        Some(lacking(Provenance::prompted(by.clone()))?.why)
    }
}
