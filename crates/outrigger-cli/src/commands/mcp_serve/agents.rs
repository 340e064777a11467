//! Which agents another agent may prompt. An agent has rules of its own, so who chooses it chooses what is allowed: that is for the
//! user, on the command line, and not for the model at the other end.

use outrigger_agent::{Agent, AgentError};

/// The agents that a client may name.
#[derive(Debug)]
pub(super) struct PermittedAgents {
    default: String,
    names: Vec<String>,
}

impl PermittedAgents {
    /// Permits these agents, or the default one alone if there are none.
    ///
    /// # Errors
    /// [`AgentError::NoAgent`] for one that does not exist.
    pub(super) fn new(agent: &Agent, named: Vec<String>) -> Result<Self, AgentError> {
        let known = agent.agents();
        if let Some(name) = named.iter().find(|name| !known.contains_key(*name)) {
            let shown = known.values().filter(|info| !info.hidden);
            return Err(AgentError::NoAgent {
                name: name.clone(),
                known: shown.map(|info| info.name.clone()).collect(),
            });
        }
        let usual = agent.default_agent();
        Ok(Self::of(usual.unwrap_or_else(|| "build".to_owned()), named))
    }

    fn of(usual: String, named: Vec<String>) -> Self {
        let names = if named.is_empty() {
            vec![usual.clone()]
        } else {
            named
        };
        // Without a name from the client, the user's default answers, if it is permitted.
        let default = if names.contains(&usual) {
            usual
        } else {
            names[0].clone()
        };
        Self { default, names }
    }

    /// Returns the agent for a new session.
    ///
    /// # Errors
    /// Why it is not this one.
    pub(super) fn for_new(&self, asked: Option<&str>) -> Result<String, String> {
        self.permitted(asked.unwrap_or(&self.default))
    }

    /// Returns the agent that answers a prompt in a session, whose agent is `own`. The client changes it in sessions that it
    /// began, and in no others: the user goes on there with the agent that the session has.
    ///
    /// # Errors
    /// Why none answers.
    pub(super) fn for_session(
        &self,
        own: Option<&str>,
        is_clients: bool,
        asked: Option<&str>,
    ) -> Result<String, String> {
        let own = own.unwrap_or(&self.default);
        match asked {
            Some(asked) if asked != own && !is_clients => Err(format!(
                "this session was not begun by you: it keeps its agent {own}. Start one of your own with session_start."
            )),
            asked => self.permitted(asked.unwrap_or(own)),
        }
    }

    fn permitted(&self, name: &str) -> Result<String, String> {
        if self.names.iter().any(|it| it == name) {
            return Ok(name.to_owned());
        }
        Err(format!(
            "the agent {name} is not for other programs; these are: {}. The user permits more with `outrigger mcp serve --agent {name}`.",
            self.names.join(", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_says_which_agents_answer() {
        let permitted = |named: &[&str]| {
            let named = named.iter().map(|it| (*it).to_owned()).collect();
            PermittedAgents::of("build".to_owned(), named)
        };
        for (named, asked, answers) in [
            (&[][..], None, Some("build")),
            (&[], Some("build"), Some("build")),
            (&[], Some("yolo"), None),
            (&["yolo"], None, Some("yolo")),
            (&["yolo"], Some("build"), None),
            (&["yolo", "build"], None, Some("build")),
            (&["yolo", "build"], Some("yolo"), Some("yolo")),
        ] {
            let agent = permitted(named).for_new(asked);
            assert_eq!(agent.ok().as_deref(), answers, "{named:?} {asked:?}");
        }
        for (own, is_clients, asked, answers) in [
            (Some("plan"), false, None, Some("plan")),
            (Some("plan"), false, Some("plan"), Some("plan")),
            (Some("plan"), false, Some("build"), None),
            (Some("plan"), true, Some("build"), Some("build")),
            (Some("yolo"), false, None, None),
            (Some("yolo"), true, None, None),
            (None, false, None, Some("build")),
            (None, false, Some("plan"), None),
        ] {
            let agent = permitted(&["build", "plan"]).for_session(own, is_clients, asked);
            assert_eq!(
                agent.ok().as_deref(),
                answers,
                "{own:?} {is_clients} {asked:?}"
            );
        }
    }
}
