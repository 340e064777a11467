//! The sources of conversations: the agents of a server, or a single agent without a server.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use axum::Extension;
use outrigger_agent::{Agent, AgentError};
use outrigger_api::{Conversation, Waiting};
use outrigger_conversation::{Feed, Live, Reader};
use outrigger_protocol::id::SessionId;
use outrigger_protocol::session::{Session, SessionStatus};
use outrigger_store::Store;

use crate::access::scope::{Scope, in_scope};
use crate::error::ApiError;
use crate::hosting::hub::Hub;

/// The agents behind the routes.
#[derive(Clone)]
pub(crate) enum Source {
    Hub(Hub),
    Agent(Agent, Feed),
}

impl Source {
    pub(crate) fn feed(&self) -> Result<Feed, ApiError> {
        match self {
            Self::Hub(hub) => Ok(hub.feed()?),
            Self::Agent(_, feed) => Ok(feed.clone()),
        }
    }

    pub(crate) fn reader(&self) -> Result<Arc<Reader>, ApiError> {
        Ok(Arc::clone(self.feed()?.reader()))
    }

    /// Returns the running agents; for a plugin only that of its own folder, because its grants are valid
    /// for that folder.
    pub(crate) fn agents(&self, own: Option<&Path>) -> Vec<Agent> {
        let all = match self {
            Self::Hub(hub) => hub.running_now(),
            Self::Agent(agent, _) => return vec![agent.clone()],
        };
        all.into_iter()
            .filter(|(folder, _)| own.is_none_or(|own| own == folder))
            .map(|(_, instance)| instance.agent)
            .collect()
    }

    /// Finds a session that the caller may see.
    pub(crate) fn find(
        &self,
        id: &SessionId,
        scope: Option<&Extension<Scope>>,
    ) -> Result<(Session, Conversation), ApiError> {
        let found = self
            .reader()?
            .find(id)?
            .ok_or_else(|| AgentError::NoSession(id.to_string()))?;
        if in_scope(scope, &found.0) {
            return Ok(found);
        }
        Err(ApiError::forbidden(format!(
            "{id} is a session of another project: a plugin's client reaches those of its own project only"
        )))
    }
}

/// Live data of a server's agents.
struct OfHub(std::sync::Weak<crate::hosting::hub::HubState>);

impl OfHub {
    fn agents(&self) -> Vec<Agent> {
        let hub = self.0.upgrade().map(Hub::of);
        let running = hub.map(|hub| hub.running_now()).unwrap_or_default();
        running
            .into_iter()
            .map(|(_, instance)| instance.agent)
            .collect()
    }
}

impl Live for OfHub {
    fn statuses(&self) -> BTreeMap<SessionId, SessionStatus> {
        self.agents().iter().flat_map(Agent::statuses).collect()
    }
    fn waiting(&self) -> Vec<Waiting> {
        self.agents().iter().flat_map(waiting_of).collect()
    }
}

struct OfAgent(Agent);

impl Live for OfAgent {
    fn statuses(&self) -> BTreeMap<SessionId, SessionStatus> {
        self.0.statuses()
    }
    fn waiting(&self) -> Vec<Waiting> {
        waiting_of(&self.0)
    }
}

/// Returns the open questions of an agent.
pub(crate) fn waiting_of(agent: &Agent) -> Vec<Waiting> {
    let permissions = agent.questions().into_iter().map(Waiting::permission);
    let questions = agent
        .user_questions()
        .into_iter()
        .map(|request| Waiting::Question { request });
    permissions.chain(questions).collect()
}

/// Returns the feed of a server, which its agents notify.
pub(crate) fn feed_of_hub(store: Store, hub: &Hub) -> Feed {
    Feed::new(Arc::new(Reader::new(store, Arc::new(OfHub(hub.weak())))))
}

/// Returns the feed of one agent; subscribers forward the agent's events.
pub(crate) fn feed_of_agent(agent: &Agent) -> Feed {
    let live = Arc::new(OfAgent(agent.clone()));
    Feed::new(Arc::new(Reader::new(agent.store().clone(), live)))
}
