//! The bus events of a step.

use outrigger_kernel::turn::Effect;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::provenance::Deed;
use outrigger_protocol::session::{Session, SessionModel};
use outrigger_protocol::turn::{Begin, SessionPatch};
use outrigger_workspace::file_changes::Changes;

use crate::error::AgentError;
use crate::state::AgentState;
use outrigger_stdx::clock::now_ms;

/// Returns the bus events of a step's effects, in order. Patches of the session build on each other.
pub(crate) fn events_of(
    state: &AgentState,
    id: &SessionId,
    begin: Option<&Begin>,
    effects: &[Effect],
    changes: &Changes,
) -> Result<Vec<Event>, AgentError> {
    let mut session: Option<Session> = None;
    let mut events = Vec::new();
    for (index, effect) in effects.iter().enumerate() {
        match effect {
            // A turn's first request does not change the session yet (as in OpenCode).
            Effect::PatchSession { patch }
                if *patch == SessionPatch::default()
                    && matches!(effects.get(index + 1), Some(Effect::PrepareTools { .. })) => {}
            Effect::Publish { event } => {
                let mut event = event.clone();
                if let Event::MessageUpdated { info, .. } = &mut event {
                    state.plugins.message_changes.complete(info);
                }
                events.push(event);
            }
            Effect::PatchSession { patch } => {
                let before = match session.take() {
                    Some(session) => session,
                    None => state
                        .store
                        .session(id)?
                        .ok_or_else(|| AgentError::NoSession(id.to_string()))?,
                };
                let mut patched = patched_session(before.clone(), patch);
                if !state.may_leave(begin, &before, &patched) {
                    patched.agent.clone_from(&before.agent);
                }
                if says_nothing_new(patch, &before, &patched) {
                    session = Some(before);
                    continue;
                }
                let SessionPatch { summarize, .. } = patch;
                if *summarize {
                    patched.summary = Some(changes.summary());
                }
                events.push(Event::SessionUpdated {
                    session_id: id.clone(),
                    info: Box::new(patched.clone()),
                });
                if *summarize {
                    events.push(Event::SessionDiff {
                        session_id: id.clone(),
                        diff: changes.list(),
                    });
                }
                session = Some(patched);
            }
            _ => {}
        }
    }
    Ok(events)
}

impl AgentState {
    /// Returns whether the prompt that began a turn may leave the session with the agent that it names.
    fn may_leave(&self, begin: Option<&Begin>, before: &Session, after: &Session) -> bool {
        let (Some(begin), Some(named)) = (begin, &after.agent) else {
            return true;
        };
        // The agent of a session with a parent is a subagent: clients offer the user their own choice there.
        if before.parent_id.is_some() {
            return true;
        }
        let plugins = begin.provenance.plugins_that(Deed::Prompted);
        let usual = before.agent.as_deref();
        usual == Some(named)
            || plugins
                .iter()
                .all(|plugin| self.may_leave_agent(plugin, usual, named))
    }
}

/// Applies a patch of the kernel to the session.
fn patched_session(mut session: Session, patch: &SessionPatch) -> Session {
    if let Some(agent) = &patch.agent {
        session.agent = Some(agent.clone());
    }
    if let Some(model) = &patch.model {
        session.model = Some(SessionModel {
            id: model.model_id.clone(),
            provider_id: model.provider_id.clone(),
            variant: Some(model.variant.clone().unwrap_or_else(|| "default".into())),
        });
    }
    if let Some(usage) = &patch.usage {
        session.tokens.input += usage
            .input
            .saturating_sub(usage.cache_read)
            .saturating_sub(usage.cache_write);
        session.tokens.output += usage.output.saturating_sub(usage.reasoning);
        session.tokens.reasoning += usage.reasoning;
        session.tokens.cache.read += usage.cache_read;
        session.tokens.cache.write += usage.cache_write;
        session.cost += patch.cost;
    }
    session.time.updated = now_ms();
    session
}

/// Returns whether agent and model of a prompt are those of the last one: OpenCode publishes nothing then.
fn says_nothing_new(patch: &SessionPatch, before: &Session, after: &Session) -> bool {
    let names = patch.agent.is_some() || patch.model.is_some();
    let only_names = names && patch.usage.is_none() && !patch.summarize;
    only_names && before.agent == after.agent && before.model == after.model
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::message::ModelRef;
    use outrigger_protocol::model::Usage;

    #[test]
    fn a_prompt_as_the_last_one_says_nothing_new() {
        let model = |id: &str| ModelRef {
            provider_id: "p".into(),
            model_id: id.into(),
            variant: None,
        };
        let named = |agent: &str, id: &str| SessionPatch {
            agent: Some(agent.into()),
            model: Some(model(id)),
            ..SessionPatch::default()
        };
        let before = patched_session(Session::default(), &named("build", "m1"));
        for (patch, nothing) in [
            (named("build", "m1"), true),
            (named("plan", "m1"), false),
            (named("build", "m2"), false),
            (SessionPatch::default(), false),
            (
                SessionPatch {
                    usage: Some(Usage::default()),
                    ..named("build", "m1")
                },
                false,
            ),
        ] {
            let after = patched_session(before.clone(), &patch);
            assert_eq!(
                says_nothing_new(&patch, &before, &after),
                nothing,
                "{patch:?}"
            );
        }
    }
}
