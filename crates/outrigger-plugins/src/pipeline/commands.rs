//! Handlers whose code is a command: those of all files that follow each other in a chain are called at the same time.

use std::time::Instant;

use outrigger_protocol::hook::HandlerOutcome;

use super::{Drive, Sent, cancelled};
use crate::breakers::Ended;
use crate::commands::{Called, Calls, effect};

impl Drive<'_> {
    pub(super) async fn call_commands(&mut self, handlers: &[usize]) {
        let inner = self.inner;
        let Some(commands) = inner.commands.as_ref() else {
            return self.skip(handlers, "it is not loaded");
        };
        let item = self.items().first().cloned().unwrap_or_default();
        commands.call_changes(self.point.name, &item);
        let admitted: Vec<Result<(), String>> = handlers
            .iter()
            .map(|handler| self.admit(*handler))
            .collect();
        let plugins: Vec<_> = handlers
            .iter()
            .zip(&admitted)
            .filter(|(_, admitted)| admitted.is_ok())
            .filter_map(|(handler, _)| self.bound.get(*handler))
            .map(|bound| (bound.plugin, bound.rules.hook_deadline))
            .collect();
        let session = self.context.session.clone();
        let session = session.as_ref().map(|id| id.0.as_str());
        let at = (self.inner.now)();
        let began = Instant::now();
        let called = tokio::select! {
            biased;
            () = cancelled(self.context.cancel.clone()) => None,
            called = commands.call(Calls {
                point: self.point.name,
                plugins: &plugins,
                session,
                item: &item,
            }) => Some(called),
        };
        tracing::trace!("commands at {} took {:?}", self.point.name, began.elapsed());
        let Some(called) = called else {
            for handler in handlers {
                self.settle(*handler, Ended::Unclear);
            }
            return self.skip(handlers, "cancelled");
        };
        let mut called = called.into_iter();
        for (handler, admitted) in handlers.iter().zip(admitted) {
            match admitted {
                Err(why) => self.skip(&[*handler], &why),
                Ok(()) => {
                    let called = called.next().unwrap_or_default();
                    self.take_commands(*handler, &called, at, session);
                }
            }
        }
    }

    fn take_commands(&mut self, handler: usize, called: &Called, at: u64, session: Option<&str>) {
        let (inner, all) = (self.inner, self.bound);
        let (Some(commands), Some(bound)) = (inner.commands.as_ref(), all.get(handler)) else {
            return;
        };
        if let Some(place) = self.sent.get_mut(handler) {
            *place = Sent {
                bytes: called.bytes,
                at,
                ..Sent::default()
            };
        }
        let answer = &called.answer;
        let ended = match answer.timed_out {
            Some(_) => Ended::TimedOut,
            None => Ended::Answered,
        };
        self.settle(handler, ended);
        let item = self.items().first().cloned().unwrap_or_default();
        let effect = effect(commands, self.point.name, answer, &item, bound.fail_closed);
        for message in &answer.messages {
            tracing::info!("[plugin:{}] {message}", bound.id);
            commands.tell(&bound.id, session, message.clone());
        }
        // What the chain is told is logged with its record.
        let told = matches!(
            effect.outcome,
            HandlerOutcome::Lost { .. } | HandlerOutcome::TimedOut { .. }
        );
        for failure in &answer.failures {
            if !told {
                tracing::warn!("plugin {}: {failure}", bound.id);
            }
            commands.tell(&bound.id, session, failure.clone());
        }
        if let Some(why) = effect.stop {
            commands.tell(&bound.id, session, format!("the turn ends: {why}"));
            self.stop.get_or_insert(why);
        }
        self.feed(handler, effect.outcome, called.ms);
    }
}
