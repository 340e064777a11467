//! What a call cost: how its payload travelled, and whose the CPU time of its process was.

use std::time::Duration;

use outrigger_js::Way;
use outrigger_protocol::hook::{Carried, CarriedBy};
use outrigger_protocol::rpc::HookResult;

use super::Drive;
use super::request::Target;

/// A call that took longer is worth a look at what its process used; the others are left to the watch.
const LONG: Duration = Duration::from_millis(100);

/// As it is written down; none where nothing left.
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
    /// Before anything is ended: what the process used is gone with it.
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
            // With no other call open, what was used since the last look is of the one that took most of the time.
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
