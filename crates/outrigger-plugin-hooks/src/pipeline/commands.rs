//! Handlers that are commands: all consecutive ones in a chain are called concurrently.

use outrigger_claude_hooks::{Called, Callee, Calls, outcome};
use outrigger_protocol::hook::{HookFailure, HookOutcome};
use outrigger_sandbox::process_time::Instant;

use super::{Drive, Sent, cancelled};

impl Drive<'_> {
    pub(super) async fn call_commands(&mut self, handlers: &[usize]) {
        let host = self.host;
        let Some(commands) = host.commands.as_ref() else {
            return self.skip(handlers, "it is not loaded");
        };
        let informed = handlers
            .first()
            .and_then(|it| self.bound.get(*it))
            .and_then(|bound| self.with_causes(bound));
        let items = informed.as_deref().unwrap_or_else(|| self.items());
        let item = items.first().cloned().unwrap_or_default();
        commands.call_changes(self.point, &item);
        let second_pass = self.second_pass.take();
        match &second_pass {
            Some(second_pass) => commands.changed(&item.input, second_pass),
            None => self.note_asked(handlers, &item),
        }
        // Each command has its own breaker; a file has none, so that one command never disables another.
        let all = self.bound;
        let plugins: Vec<Callee<'_>> = handlers
            .iter()
            .filter_map(|handler| all.get(*handler))
            .map(|bound| Callee {
                plugin: bound.plugin,
                id: &bound.id,
                limit: bound.rules.hook_deadline,
            })
            .collect();
        let turn = self.context.turn.clone();
        let session = self.context.session.clone();
        let session = session.as_ref().map(|id| id.0.as_str());
        let at = (self.host.now)();
        let began = Instant::now();
        let called = tokio::select! {
            biased;
            () = cancelled(self.context.cancel.clone()) => None,
            called = commands.call(Calls {
                point: self.point,
                plugins: &plugins,
                session,
                turn: turn.as_ref(),
                item: &item,
                second_pass: second_pass.as_ref(),
            }) => Some(called),
        };
        self.second_pass = second_pass;
        tracing::trace!("commands at {} took {:?}", self.point, began.elapsed());
        let Some(called) = called else {
            return self.skip(handlers, "cancelled");
        };
        for (handler, called) in handlers.iter().zip(called) {
            self.take_commands(*handler, &called, at, session);
        }
    }

    fn take_commands(&mut self, handler: usize, called: &Called, at: u64, session: Option<&str>) {
        let (host, all) = (self.host, self.bound);
        let (Some(commands), Some(bound)) = (host.commands.as_ref(), all.get(handler)) else {
            return;
        };
        if let Some(place) = self.sent.get_mut(handler) {
            *place = Sent {
                bytes: called.bytes,
                at,
                ..Sent::default()
            };
        }
        self.note_rewrites(&called.rewrites);
        let answer = &called.answer;
        let item = self.items().first().cloned().unwrap_or_default();
        let outcome = outcome(commands, self.point, answer, &item, bound.fail_closed);
        for message in &answer.messages {
            tracing::info!("[plugin:{}] {message}", bound.id);
            commands.report(&bound.id, session, message.clone());
        }
        for message in &answer.ignored {
            tracing::warn!("plugin {}: {message}", bound.id);
            commands.report(&bound.id, session, message.clone());
        }
        // The input of the chain is logged with its record.
        let recorded = matches!(
            outcome,
            HookOutcome::Failed(HookFailure::Lost { .. } | HookFailure::TimedOut { .. })
        );
        for failure in &answer.failures {
            if !recorded {
                tracing::warn!("plugin {}: {failure}", bound.id);
            }
            commands.report(&bound.id, session, failure.clone());
        }
        if let Some(why) = answer.stop.clone() {
            commands.report(&bound.id, session, format!("the turn ends: {why}"));
            self.stop.get_or_insert(why);
        }
        self.feed(handler, outcome, called.ms);
    }
}
