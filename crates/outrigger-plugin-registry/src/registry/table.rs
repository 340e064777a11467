//! Who is called at which point.

use std::collections::HashMap;
use std::sync::Arc;

use outrigger_kernel::hooks::{HookPoint, is_alias};
use outrigger_plugin_status::Stage;

use super::{Bound, Inner, Plugin};
use crate::access::critical;

impl Inner {
    // Every change of a plugin makes the table anew: that is seldom, and looking up is what has to be cheap.
    pub(super) fn bind(&mut self) {
        let mut table: HashMap<&'static str, Vec<Bound>> = HashMap::new();
        let declared = self.declared();
        let places = self.places();
        for (index, plugin) in self.plugins.iter().enumerate() {
            let order = places.get(&index).copied().unwrap_or(u32::MAX);
            let absent = plugin.absent(index, order, &declared);
            for bound in absent.filter(|it| !self.has_another(index, it)) {
                table.entry(bound.0).or_default().push(bound.1);
            }
            let (Some(group), false) = (plugin.group, plugin.stage == Stage::Suspended) else {
                continue;
            };
            for (number, instance) in plugin.instances.iter().enumerate() {
                for hook in &instance.hooks {
                    let own = || declared.get(hook.as_str()).copied();
                    let Some(point) = HookPoint::parse(hook).or_else(own) else {
                        continue;
                    };
                    // A4: the option moves the plugin's `chat.message` to the completed messages of the assistant.
                    let point = match (point, plugin.rules.completed_messages) {
                        (HookPoint::RunBeforeStart, true) => HookPoint::SessionAfterCompleteMessage,
                        _ => point,
                    };
                    // Both spellings on one object are one handler, under OpenCode's name. Names of the Browser
                    // Brain Loop are none of them: who brings several is called under each.
                    let spelling = hook != point.hook() && !is_alias(hook);
                    if spelling && instance.hooks.iter().any(|other| other == point.hook()) {
                        continue;
                    }
                    table.entry(point.name()).or_default().push(Bound {
                        plugin: index,
                        order,
                        id: plugin.id.clone(),
                        instance: number,
                        hook: hook.clone(),
                        group,
                        rules: plugin.rules.clone(),
                        fail_closed: critical::at(&plugin.rules, point),
                        rights: plugin.rules.rights(point),
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
                    a.fail_closed
                        .cmp(&b.fail_closed)
                        .then(b.rules.priority.cmp(&a.rules.priority))
                        .then(a.order.cmp(&b.order))
                        .then(a.instance.cmp(&b.instance))
                });
                (point, Arc::from(bound))
            })
            .collect();
    }

    /// Each plugin's place in load order, by index; those that another one hosts right behind it.
    fn places(&self) -> HashMap<usize, u32> {
        let plugins = self.plugins.iter().enumerate();
        let mut places: Vec<(usize, usize)> = plugins
            .map(|(index, plugin)| (plugin.host.unwrap_or(index), index))
            .collect();
        places.sort_unstable();
        let indexes = places.into_iter().map(|(_, index)| index);
        indexes.zip(0..).collect()
    }

    /// It was not admitted, and another plugin of its name is there and guards the same: the one that went before it. A
    /// project's does not stand for one that is none.
    fn has_another(&self, index: usize, (point, bound): &(&'static str, Bound)) -> bool {
        let Some(this) = self.plugins.get(index) else {
            return false;
        };
        let cause = this.cause.as_ref();
        if cause.is_none_or(|cause| cause.code != "plugin.not_admitted") {
            return false;
        }
        let mut others = self.plugins.iter().enumerate();
        others.any(|(at, other)| {
            let mut hooks = other.instances.iter().flat_map(|it| &it.hooks);
            at != index
                && other.id == bound.id
                && (this.local || !other.local)
                && other.stage == Stage::Active
                && critical::points(&other.rules).any(|critical| critical.name() == *point)
                && hooks.any(|hook| HookPoint::parse(hook).is_some_and(|it| it.name() == *point))
        })
    }
}

impl Plugin {
    /// What is refused while it is not there, where it has ended.
    pub(super) fn guards(&self) -> Vec<String> {
        let points = critical::points(&self.rules).filter(|_| self.has_ended());
        points.map(|point| point.hook().to_owned()).collect()
    }

    /// Where it was to guard and cannot: it is not there, or does not bring what a policy requires of it. One that was left out
    /// together with all others (`--pure`) has no rules but those of a policy.
    fn absent<'a>(
        &'a self,
        index: usize,
        order: u32,
        declared: &'a HashMap<&'static str, HookPoint>,
    ) -> impl Iterator<Item = (&'static str, Bound)> + 'a {
        let why = match (&self.cause, self.stage) {
            (_, Stage::Suspended) => Some("it can be resumed".to_owned()),
            (Some(cause), _) if self.has_ended() => Some(cause.message.clone()),
            _ => None,
        };
        let bound = move |(point, why): (HookPoint, String)| {
            let bound = Bound {
                plugin: index,
                order,
                id: self.id.clone(),
                instance: 0,
                hook: point.hook().to_owned(),
                group: 0,
                rules: self.rules.clone(),
                fail_closed: true,
                rights: self.rules.rights(point),
                absent: Some(format!("{} is {}: {why}", self.id, self.stage)),
            };
            (point.name(), bound)
        };
        let own = self.rules.fail_closed.iter();
        let own = own.filter_map(|name| declared.get(name.as_str()).copied());
        let own = own.filter(|point| point.fails_closed());
        let points = critical::points(&self.rules).chain(own);
        points
            .filter_map(move |point| {
                let why = why.clone().or_else(|| self.lacks(point));
                Some((point, why?))
            })
            .map(bound)
    }

    /// What a policy requires of it and it does not bring, once it is there.
    fn lacks(&self, point: HookPoint) -> Option<String> {
        let named = |names: &[String]| {
            let mut names = names.iter();
            names.any(|name| HookPoint::parse(name) == Some(point))
        };
        let there = matches!(self.stage, Stage::Active | Stage::Initialised);
        let mut hooks = self.instances.iter().flat_map(|it| &it.hooks);
        let brings = hooks.any(|hook| HookPoint::parse(hook) == Some(point));
        (there && !brings && named(&self.rules.required))
            .then(|| format!("it brings no {}, which the policy requires", point.hook()))
    }
}
