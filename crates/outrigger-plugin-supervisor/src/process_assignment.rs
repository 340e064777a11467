//! Which plugins share a process.

use std::sync::Arc;

use crate::group::Group;
use crate::launch::Launch;
use crate::processes::Processes;
use outrigger_plugin_registry::Registry;

/// Name of the process that plugins share.
pub(crate) const SHARED: &str = "shared";

/// Names of processes and the plugins in them.
pub(crate) type Divided = Vec<(String, Vec<usize>)>;

/// Which plugins share a process: all but those that ask for one of their own, are security-critical, or were granted
/// something (architecture, section 5). Load order is kept within a process.
pub fn divide(registry: &Registry, members: &[usize]) -> Divided {
    let mut shared = Vec::new();
    let mut own = Vec::new();
    for &index in members {
        let ready = registry.with(index, |plugin| {
            let alone = plugin.rules.alone();
            plugin.resolved.as_ref().map(|_| (plugin.id.clone(), alone))
        });
        match ready.flatten() {
            Some((id, true)) => own.push((id, vec![index])),
            Some(_) => shared.push(index),
            None => {}
        }
    }
    if !shared.is_empty() {
        own.insert(0, (SHARED.to_owned(), shared));
    }
    own
}

/// Their processes, none of them started yet.
pub fn groups(
    launch: &Arc<Launch>,
    divided: Divided,
    processes: &Arc<Processes>,
) -> Vec<Arc<Group>> {
    let group = |(name, members): (String, Vec<usize>)| {
        let key = processes.key();
        for index in &members {
            launch.registry.assign(*index, key);
        }
        let table = Arc::downgrade(processes);
        Group::new(key, name, Arc::clone(launch), members, table)
    };
    divided.into_iter().map(group).collect()
}
