//! Cost of a call: how its payload was sent, and the CPU time of its process.

use std::time::Duration;

use outrigger_js::Way;
use outrigger_protocol::hook::{Carried, CarriedBy};
use outrigger_protocol::rpc::HookResult;

use super::Drive;
use super::request::Target;

/// For a call longer than this the CPU time of its process is read; shorter ones are left to the watch.
const LONG: Duration = Duration::from_millis(100);

/// Returns the record of the transfer; `None` if nothing was sent.
pub(super) fn carried(sent: &outrigger_js::Sent) -> Option<Carried> {
    let way = match sent.way {
        Way::Inline => CarriedBy::Inline,
        Way::File => CarriedBy::File,
        Way::Mirror => CarriedBy::Mirror,
    };
    (sent.call > 0).then_some(Carried {
        way,
        bytes: sent.bytes,
    })
}

impl Drive<'_> {
    /// Attributes CPU time. Called before a process ends, since the figures disappear with it.
    pub(super) fn charge(
        &mut self,
        handlers: &[usize],
        target: &Target,
        results: &[HookResult],
        took: Duration,
    ) {
        let charges = &self.host.processes.charges;
        if took > LONG {
            let longest = results.iter().max_by(|a, b| a.ms.total_cmp(&b.ms));
            // With no other call open, the time used since the last reading belongs to the call that took most of
            // it.
            let longest = longest
                .filter(|it| {
                    !target.live.process.is_working() && it.ms > took.as_secs_f64() * 800.0
                })
                .and_then(|it| self.bound.get(*handlers.get(it.handler)?));
            charges.look(
                &target.group,
                &target.live,
                longest.map(|bound| bound.plugin),
            );
        }
        for handler in handlers {
            let Some(bound) = self.bound.get(*handler) else {
                continue;
            };
            if let Some(place) = self.sent.get_mut(*handler) {
                place.cpu_ms = charges.take(bound.plugin);
            }
        }
    }
}
