//! The agents that plugins' requests reach and start (C9): in folders of the plugin's own project that are there, and few at a
//! time. Each agent has processes of its own, so a plugin that could start any number of them would fill the machine.

use std::path::Path;

use axum::extract::Request;
use axum::http::StatusCode;
use outrigger_protocol::message::NamedError;

use crate::access::scope::{Scope, Target, absent};
use crate::error::ApiError;
use crate::hosting::hub::{Hub, Instance, StartedAgent};

/// The most agents of one project that run because a plugin named their folder.
const MAX_STARTED: usize = 4;

impl Hub {
    pub(crate) fn target(&self, request: &Request) -> Target {
        Target {
            directory: self.folder_of(request),
            scope: request.extensions().get().cloned(),
        }
    }

    /// Like [`Hub::instance`], but a plugin reaches only an agent that is in its own project.
    ///
    /// # Errors
    /// Those of [`Hub::instance`] and [`Scope::admit`]; 404 for a folder that is not there, 429 if too many agents run because
    /// plugins of the project named their folders.
    pub(crate) async fn instance_for(&self, target: &Target) -> Result<Instance, ApiError> {
        let Some(scope) = &target.scope else {
            return Ok(self.instance(&target.directory).await?);
        };
        let instance = match self.running(&target.directory).await {
            Some(instance) => instance,
            None if target.directory == scope.directory() => {
                self.instance(&target.directory).await?
            }
            None => self.start_for_plugin(scope, &target.directory).await?,
        };
        scope.admit(&instance.agent)?;
        Ok(instance)
    }

    async fn start_for_plugin(&self, scope: &Scope, folder: &Path) -> Result<Instance, ApiError> {
        if !folder.is_dir() {
            return Err(absent(folder));
        }
        self.reserve(scope.worktree(), folder).await?;
        let (hub, project, folder) = (self.clone(), scope.worktree().to_owned(), folder.to_owned());
        // The reservation ends even if the plugin does not wait for the answer.
        let task = tokio::spawn(async move {
            let instance = hub.instance(&folder).await;
            let mut projects = hub.by_plugins().lock().await;
            for started in projects.entry(project).or_default() {
                started.pending &= started.folder != folder;
            }
            instance
        });
        let instance = task
            .await
            .map_err(|lost| ApiError::internal(lost.to_string()))?;
        Ok(instance?)
    }

    /// Makes room for the agent of a folder, if necessary by ending the oldest one that nothing runs in.
    async fn reserve(&self, project: &Path, folder: &Path) -> Result<(), ApiError> {
        let mut projects = self.by_plugins().lock().await;
        let started = projects.entry(project.to_owned()).or_default();
        started.retain(|it| it.pending || self.knows(&it.folder));
        if started.iter().any(|it| it.folder == folder) {
            return Ok(());
        }
        let mut at = 0;
        while started.len() >= MAX_STARTED && at < started.len() {
            let oldest = &started[at];
            if !oldest.pending && self.dispose_idle(&oldest.folder).await.is_some() {
                started.remove(at);
            } else {
                at += 1;
            }
        }
        if started.len() >= MAX_STARTED {
            return Err(ApiError::named(
                StatusCode::TOO_MANY_REQUESTS,
                NamedError::new(
                    "TooManyAgents",
                    format!(
                        "plugins already run agents in {MAX_STARTED} folders of this project; {} gets one when \
                         one of them is idle",
                        folder.display()
                    ),
                ),
            ));
        }
        started.push(StartedAgent {
            folder: folder.to_owned(),
            pending: true,
        });
        Ok(())
    }
}
