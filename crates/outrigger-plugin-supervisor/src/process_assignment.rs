//! Assigns plugins to processes.

use std::sync::Arc;

use crate::group::Group;
use crate::launch::Launch;
use crate::processes::Processes;
use outrigger_plugin_registry::Registry;

/// Name of the shared process.
pub(crate) const SHARED: &str = "shared";

/// Name of the shared process of a project's plugins, if the user's plugins share one too.
pub(crate) const SHARED_OF_PROJECT: &str = "shared-project";

/// Names of processes and the plugins in them.
pub(crate) type Divided = Vec<(String, Vec<usize>)>;

/// Divides plugins into processes. All share one, except those that request their own, are security-critical, or have a grant. A
/// project's plugins do not share with the user's, whose memory they could change. Load order is kept within a process.
pub fn divide(registry: &Registry, members: &[usize]) -> Divided {
    let (mut of_user, mut of_project) = (Vec::new(), Vec::new());
    let mut own = Vec::new();
    for &index in members {
        let ready = registry.with(index, |plugin| {
            let place = (plugin.rules.alone(), plugin.local);
            plugin.resolved.as_ref().map(|_| (plugin.id.clone(), place))
        });
        match ready.flatten() {
            Some((id, (true, _))) => own.push((id, vec![index])),
            Some((_, (false, true))) => of_project.push(index),
            Some((_, (false, false))) => of_user.push(index),
            None => {}
        }
    }
    let of_project_name = if of_user.is_empty() {
        SHARED
    } else {
        SHARED_OF_PROJECT
    };
    [(SHARED, of_user), (of_project_name, of_project)]
        .into_iter()
        .filter(|(_, them)| !them.is_empty())
        .map(|(name, them)| (name.to_owned(), them))
        .chain(own)
        .collect()
}

/// Returns their processes, not started yet.
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
