//! Creating, changing and listing sessions.

use outrigger_kernel::hooks::points::session::before_create;
use outrigger_kernel::hooks::{Empty, HookInput};
use outrigger_protocol::Object;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::message::Tokens;
use outrigger_protocol::permission::Rule;
use outrigger_protocol::provenance::Actor;
use outrigger_protocol::session::{PluginRule, Session, SessionModel, SessionTime};
use outrigger_store::Store;

use crate::error::AgentError;
use crate::session::owner::{Owner, own};
use crate::state::Agent;
use outrigger_session_state::bus::numbered;
use outrigger_session_state::ids;
use outrigger_stdx::clock::now_ms;

/// Options of a new session.
#[derive(Clone, Debug, Default)]
pub struct NewSession {
    /// Session of the parent agent.
    pub parent: Option<SessionId>,
    /// Title; if `None`, the model generates one.
    pub title: Option<String>,
    /// Rules of the session.
    pub permission: Option<Vec<Rule>>,
    /// The rules of `permission` that plugins set.
    pub plugin_rules: Vec<PluginRule>,
    /// Agent of the first turn.
    pub agent: Option<String>,
    /// Model of the first turn.
    pub model: Option<SessionModel>,
    /// Data stored for clients.
    pub metadata: Option<Object>,
    /// Workspace named by a client; only stored.
    pub workspace: Option<String>,
}

/// Returns whether a title is a placeholder that a model may replace.
pub(crate) fn is_placeholder(title: &str) -> bool {
    title.starts_with("New session - ") || title.starts_with("Child session - ")
}

impl Agent {
    /// Makes a session, stores and publishes it.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn create_session(&self, new: NewSession) -> Result<Session, AgentError> {
        let about = before_create::Input {
            parent_id: new.parent.as_ref(),
            title: new.title.as_deref(),
        };
        self.notify_before(&about).await;
        let at = now_ms();
        let stamp = jiff::Timestamp::from_millisecond(i64::try_from(at).unwrap_or(0))
            .map(|t| t.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
            .unwrap_or_default();
        let kind = if new.parent.is_some() {
            "Child session - "
        } else {
            "New session - "
        };
        let location = &self.state.project.location;
        let session = Session {
            id: ids::session(),
            slug: ids::slug(ids::seed()),
            project_id: self.state.project.info.id.clone(),
            directory: location.directory.to_string_lossy().into_owned(),
            path: location.relative(),
            parent_id: new.parent,
            title: new
                .title
                .filter(|t| !t.is_empty())
                .unwrap_or_else(|| format!("{kind}{stamp}")),
            version: env!("CARGO_PKG_VERSION").into(),
            tokens: Tokens::default(),
            permission: new.permission,
            plugin_rules: new.plugin_rules,
            agent: new.agent,
            model: new.model,
            metadata: new.metadata,
            workspace_id: new.workspace,
            time: SessionTime {
                created: at,
                updated: at,
                ..SessionTime::default()
            },
            ..Session::default()
        };
        let event = Event::SessionCreated {
            session_id: session.id.clone(),
            info: Box::new(session.clone()),
        };
        self.state.commit(Vec::new(), vec![event]).await?;
        Ok(session)
    }

    /// Changes a session with `change`, stores and publishes it.
    ///
    /// # Errors
    /// [`AgentError::NoSession`] and those of the store.
    pub async fn update_session(
        &self,
        id: &SessionId,
        change: impl FnOnce(&mut Session) + Send,
    ) -> Result<Session, AgentError> {
        let mut changed = None;
        self.state
            .commit_with(Vec::new(), || {
                let mut session = self.session(id)?;
                change(&mut session);
                session.time.updated = now_ms();
                changed = Some(session.clone());
                Ok(vec![Event::SessionUpdated {
                    session_id: id.clone(),
                    info: Box::new(session),
                }])
            })
            .await?;
        changed.ok_or_else(|| AgentError::NoSession(id.to_string()))
    }

    /// Has a session go on in this agent's folder. Its child sessions stay where they worked, as in OpenCode.
    ///
    /// # Errors
    /// [`AgentError::NoSession`], [`AgentError::Working`] or [`AgentError::Busy`] while a turn runs in it, and those of the
    /// store.
    pub async fn move_here(&self, id: &SessionId) -> Result<Session, AgentError> {
        self.session(id)?;
        let _owner = self.at_rest(id)?;
        let location = &self.state.project.location;
        self.update_session(id, |session| {
            session.directory = location.directory.to_string_lossy().into_owned();
            session.path = location.relative();
            session.workspace_id = None;
        })
        .await
    }

    /// Deletes a session with its child sessions. The log keeps what happened. A plugin deletes sessions without messages of
    /// others.
    ///
    /// # Errors
    /// [`AgentError::NoSession`], [`AgentError::NotGranted`], [`AgentError::Busy`] while a turn runs in any of them, and those of the store.
    pub async fn delete_session(&self, id: &SessionId, by: &Actor) -> Result<(), AgentError> {
        let events = doomed(&self.state.store, id)?;
        let _owners = hold(&self.state.project.folders.data, &events)?;
        for id in events.iter().filter_map(Event::session_id) {
            self.may_remove(by, &self.state.store.messages(id)?)?;
        }
        let gone: Vec<SessionId> = events
            .iter()
            .filter_map(Event::session_id)
            .cloned()
            .collect();
        self.state.commit(Vec::new(), events).await?;
        for id in &gone {
            self.state.tools.skill_servers.forget(id).await;
        }
        Ok(())
    }

    /// Notifies plugins of an upcoming action; they cannot change it.
    pub(crate) async fn notify_before<I: HookInput<Output = Empty>>(&self, input: &I) {
        if self.state.plugins.host.pipeline().has(I::POINT) {
            let payload = input.payload(&Empty {});
            self.state
                .run_hooks(I::POINT, vec![payload], None, None, None)
                .await;
        }
    }
}

/// Deletes a session with its child sessions from a store that no agent of this process has open; `data` is the data folder.
/// A turn that a dead process left open is no hindrance: it goes with its session.
///
/// # Errors
/// [`AgentError::NoSession`], [`AgentError::Busy`] while a living process works in any of the sessions, and those of the
/// store.
pub async fn delete_session(
    store: &Store,
    data: &std::path::Path,
    id: &SessionId,
) -> Result<(), AgentError> {
    let events = doomed(store, id)?;
    let owners = hold(data, &events)?;
    let records = events
        .into_iter()
        .map(|event| LogRecord::Event(Box::new(numbered(event))));
    store.append(now_ms(), records.collect()).await?;
    store.flush(true).await?;
    drop(owners);
    Ok(())
}

/// Locks the sessions until they are deleted, so that no turn begins in between.
fn hold(data: &std::path::Path, events: &[Event]) -> Result<Vec<Owner>, AgentError> {
    events
        .iter()
        .filter_map(Event::session_id)
        .map(|id| own(data, id))
        .collect()
}

/// Returns the events that delete a session and its descendants, children first.
fn doomed(store: &Store, id: &SessionId) -> Result<Vec<Event>, AgentError> {
    let session = store
        .session(id)?
        .ok_or_else(|| AgentError::NoSession(id.to_string()))?;
    let mut sessions = vec![session];
    let mut next = 0;
    while let Some(parent) = sessions.get(next).map(|s| s.id.clone()) {
        sessions.extend(store.children(&parent)?);
        next += 1;
    }
    let deleted = |s: Session| Event::SessionDeleted {
        session_id: s.id.clone(),
        info: Box::new(s),
    };
    Ok(sessions.into_iter().rev().map(deleted).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_and_names_are_not() {
        for (title, want) in [
            ("New session - 2026-01-01T00:00:00.000Z", true),
            ("Child session - x", true),
            ("Fix the tests", false),
        ] {
            assert_eq!(is_placeholder(title), want);
        }
        assert!(ids::slug(77).contains('-'));
    }
}
