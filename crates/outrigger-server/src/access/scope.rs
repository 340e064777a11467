//! The folders that a plugin's client may access: those of its own project (C9).
//!
//! A server has agents in many folders. A plugin that could name any of them would act in all of them and prompt agents whose user
//! never installed it. The named folder is resolved here once, and the routes use that path.

use std::path::{Path, PathBuf};

use axum::Extension;
use axum::extract::Request;
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use outrigger_agent::{Agent, ProjectLocation};
use outrigger_protocol::session::Session;

use crate::access::marks::FromPlugin;
use crate::error::ApiError;
use crate::request::directory_of;

/// The project of a plugin: its working directory, the root of its repository, and the worktrees of that repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scope {
    directory: PathBuf,
    worktree: PathBuf,
}

/// The folder of a plugin's request, resolved and found to be its own.
#[derive(Clone, Debug)]
pub(crate) struct Within(pub(crate) PathBuf);

/// The folder that a request is for, and who may reach it.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) directory: PathBuf,
    /// Of a plugin's request.
    pub(crate) scope: Option<Scope>,
}

impl Scope {
    pub(crate) fn of(agent: &Agent) -> Self {
        let ProjectLocation {
            directory,
            worktree,
            ..
        } = agent.location().clone();
        Self {
            directory,
            worktree,
        }
    }

    /// Creates a project with only this folder.
    #[cfg(test)]
    pub(crate) fn only(folder: &Path) -> Self {
        Self {
            directory: folder.to_path_buf(),
            worktree: folder.to_path_buf(),
        }
    }

    /// Returns the plugin's own folder.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the root of its repository.
    pub(crate) fn worktree(&self) -> &Path {
        &self.worktree
    }

    /// Refuses an agent that the plugin must not reach. The name of the folder was checked before the agent was started; what
    /// counts is the folder that the agent is in.
    ///
    /// # Errors
    /// 403 for an agent in another project, 404 for one in a folder that was not there when it was started: nothing holds that
    /// name, and a link may have it by now.
    pub(crate) fn admit(&self, agent: &Agent) -> Result<(), ApiError> {
        let folder = &agent.location().directory;
        if !self.holds(folder) {
            return Err(self.foreign(folder));
        }
        if *folder != self.directory && agent.folder()?.is_none() {
            return Err(absent(folder));
        }
        Ok(())
    }

    fn foreign(&self, folder: &Path) -> ApiError {
        ApiError::forbidden(format!(
            "{} is not in the project of this plugin ({}): a plugin's client reaches its own project only",
            folder.display(),
            self.worktree.display()
        ))
    }

    /// Returns whether a folder belongs to the project. The path is absolute and without links.
    pub(crate) fn holds(&self, folder: &Path) -> bool {
        folder.starts_with(&self.directory)
            || folder.starts_with(&self.worktree)
            || self.is_linked(folder)
    }

    /// Returns whether it is a worktree that `git worktree add` created from this repository: its `.git` is a file that names a
    /// folder in ours. That file lies outside the plugin's sandbox, so the plugin cannot have written it.
    fn is_linked(&self, folder: &Path) -> bool {
        let root = ProjectLocation::find(folder).worktree;
        let Ok(text) =
            outrigger_files::read_to_string(&root.join(".git"), outrigger_files::SETTINGS)
        else {
            return false;
        };
        let named = text.strip_prefix("gitdir:").map(str::trim);
        named
            .and_then(|named| root.join(named).canonicalize().ok())
            .is_some_and(|named| named.starts_with(self.worktree.join(".git/worktrees")))
    }

    /// Adds the folder to the request; the default is the plugin's own. `resolve` resolves a name that is not below the plugin's own
    /// folder.
    ///
    /// # Errors
    /// 403 for the folder of another project.
    pub(crate) fn enclose(
        &self,
        mut request: Request,
        resolve: Option<&dyn Fn(&str) -> PathBuf>,
    ) -> Result<Request, ApiError> {
        let folder = match (directory_of(&request), resolve) {
            (None, _) => self.directory.clone(),
            (Some(named), Some(resolve)) => resolve(&named),
            (Some(named), None) => {
                let path = self.directory.join(named);
                path.canonicalize().unwrap_or(path)
            }
        };
        if !self.holds(&folder) {
            return Err(self.foreign(&folder));
        }
        request.extensions_mut().insert(Within(folder));
        request.extensions_mut().insert(self.clone());
        Ok(request)
    }
}

/// Creates the error for a folder that is not there, which a plugin's client does not reach.
pub(crate) fn absent(folder: &Path) -> ApiError {
    ApiError::missing(format!(
        "There is no folder {}: a plugin's client can only use folders that exist",
        folder.display()
    ))
}

/// Returns whether the caller may see a session: a plugin sees those of its own project.
pub(crate) fn in_scope(scope: Option<&Extension<Scope>>, session: &Session) -> bool {
    scope.is_none_or(|scope| scope.holds(session.directory.as_ref()))
}

/// Restricts routes whose processes run outside the plugin's sandbox without a permission question: a plugin may neither start such
/// processes nor access those of others. It may read.
pub(crate) async fn unsandboxed_only(request: Request, next: Next) -> Response {
    let from_plugin = request.extensions().get::<FromPlugin>().is_some();
    let looks = request.method() == Method::GET && !request.uri().path().ends_with("/connect");
    if from_plugin && !looks {
        return ApiError::forbidden(
            "plugin clients cannot use terminals or shell commands, which run outside the plugin sandbox; \
             start the process from a plugin tool",
        )
        .into_response();
    }
    next.run(request).await
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn folders_of_a_project_and_others() {
        let dir = tempfile::tempdir().unwrap();
        let base = dir.path().canonicalize().unwrap();
        let make = |name: &str| {
            let path = base.join(name);
            fs::create_dir_all(&path).unwrap();
            path
        };
        let own = make("own/packages/a");
        for folder in [
            "own/.git/worktrees/side",
            "own/packages/b",
            "owner",
            "other/.git/worktrees/side",
            "side/deep",
            "forged",
        ] {
            make(folder);
        }
        let link = |name: &str, to: &str| {
            fs::write(base.join(name).join(".git"), format!("gitdir: {to}\n")).unwrap();
        };
        link(
            "side",
            &base.join("own/.git/worktrees/side").to_string_lossy(),
        );
        link(
            "forged",
            &base.join("other/.git/worktrees/side").to_string_lossy(),
        );
        let scope = Scope {
            directory: own,
            worktree: base.join("own"),
        };
        for (folder, want) in [
            ("own", true),
            ("own/packages/a", true),
            ("own/packages/a/deep", true),
            ("own/packages/b", true),
            ("own/not/there", true),
            ("side", true),
            ("side/deep", true),
            ("owner", false),
            ("other", false),
            ("forged", false),
            ("", false),
            ("nowhere", false),
        ] {
            assert_eq!(scope.holds(&base.join(folder)), want, "{folder}");
        }
    }
}
