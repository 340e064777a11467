//! Who is called at which point.

use std::collections::HashMap;
use std::sync::Arc;

use outrigger_kernel::hooks;

use super::{Bound, Inner};
use crate::critical;
use crate::status::Stage;

impl Inner {
    // Every change of a plugin makes the table anew: that is seldom, and looking up is what has to be cheap.
    pub(super) fn bind(&mut self) {
        let mut table: HashMap<&'static str, Vec<Bound>> = HashMap::new();
        let declared = self.declared();
        for (index, plugin) in self.plugins.iter().enumerate() {
            for bound in plugin.absent(index) {
                table.entry(bound.0).or_default().push(bound.1);
            }
            let (Some(group), false) = (plugin.group, plugin.stage == Stage::Suspended) else {
                continue;
            };
            for (number, instance) in plugin.instances.iter().enumerate() {
                for hook in &instance.hooks {
                    let own = || declared.get(hook.as_str()).copied();
                    let Some(point) = hooks::by_hook(hook).or_else(own) else {
                        continue;
                    };
                    // A4: the option moves the plugin's `chat.message` to the completed messages of the assistant.
                    let point = match (point.hook, plugin.rules.completed_messages) {
                        ("chat.message", true) => {
                            hooks::by_hook("message.completed").unwrap_or(point)
                        }
                        _ => point,
                    };
                    // Both spellings on one object are one handler, under the reference's name.
                    if hook != point.hook && instance.hooks.iter().any(|other| other == point.hook)
                    {
                        continue;
                    }
                    table.entry(point.name).or_default().push(Bound {
                        plugin: index,
                        id: plugin.id.clone(),
                        instance: number,
                        hook: hook.clone(),
                        group,
                        rules: plugin.rules.clone(),
                        fail_closed: critical::at(&plugin.rules, point),
                        absent: None,
                    });
                }
            }
        }
        self.table = table
            .into_iter()
            .map(|(point, mut bound)| {
                // The chain's own order, so that its indexes are ours.
                bound.sort_by(|a, b| {
                    b.rules
                        .priority
                        .cmp(&a.rules.priority)
                        .then(a.plugin.cmp(&b.plugin))
                        .then(a.instance.cmp(&b.instance))
                });
                (point, Arc::from(bound))
            })
            .collect();
    }
}
