//! The table of handlers at each point.

use std::collections::HashMap;
use std::sync::Arc;

use outrigger_kernel::hooks::{HookPoint, is_alias};
use outrigger_plugin_status::Stage;

use super::{Bound, Plugin, RegistryState};
use crate::access::critical;

impl RegistryState {
    // Every change of a plugin rebuilds the table: changes are rare, and lookups must be cheap.
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
                    // Both spellings on one object are one handler, under OpenCode's name. Names of the Browser Brain
                    // Loop are separate: a plugin with several of them is called under each.
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
                // The chain's own order, so that both have the same indexes.
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

    /// Returns each plugin's position in load order, by index, with hosted plugins right after their host.
    fn places(&self) -> HashMap<usize, u32> {
        let plugins = self.plugins.iter().enumerate();
        let mut places: Vec<(usize, usize)> = plugins
            .map(|(index, plugin)| (plugin.host.unwrap_or(index), index))
            .collect();
        places.sort_unstable();
        places
            .into_iter()
            .map(|(_, index)| index)
            .zip(0..)
            .collect()
    }

    /// Returns whether an excluded guard is covered by the plugin of its name that took precedence and guards the same. A
    /// project's plugin does not cover for any other.
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
    /// Returns the hooks that are refused because it has ended or lacks the hook that it guards by.
    pub(super) fn guards(&self) -> Vec<String> {
        let points = critical::points(&self.rules)
            .filter(|point| self.has_ended() || self.lacks(*point).is_some());
        let misnamed = self.misnamed().map(|(point, _)| point);
        let mut all: Vec<String> = Vec::new();
        for point in points.chain(misnamed) {
            if !all.iter().any(|it| it == point.hook()) {
                all.push(point.hook().to_owned());
            }
        }
        all
    }

    /// Returns entries for guards that cannot act: the plugin is missing, or lacks the hook that `fail_closed` names.
    fn absent<'a>(
        &'a self,
        index: usize,
        order: u32,
        declared: &'a HashMap<&'static str, HookPoint>,
    ) -> impl Iterator<Item = (&'static str, Bound)> + 'a {
        let why = match (&self.cause, self.stage) {
            (_, Stage::Suspended) => Some("it can be resumed".to_owned()),
            (Some(cause), _) if self.has_ended() => {
                let hint = cause.hint.iter().map(|hint| format!("; {hint}"));
                Some(format!("{}{}", cause.message, hint.collect::<String>()))
            }
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
        let own = self
            .rules
            .fail_closed
            .iter()
            .filter_map(|name| declared.get(name.as_str()).copied())
            .filter(|point| point.fails_closed());
        critical::points(&self.rules)
            .chain(own)
            .filter_map(move |point| {
                let why = why.clone().or_else(|| self.lacks(point));
                Some((point, why?))
            })
            .chain(self.misnamed())
            .map(bound)
    }

    /// Returns the reason if a running plugin lacks the hook that it guards by.
    fn lacks(&self, point: HookPoint) -> Option<String> {
        let mut hooks = self.instances.iter().flat_map(|it| &it.hooks);
        let brings =
            hooks.any(|hook| hook == point.name() || HookPoint::parse(hook) == Some(point));
        let mut required = self.rules.required.iter();
        let by = if required.any(|name| HookPoint::parse(name) == Some(point)) {
            "the policy requires"
        } else {
            "`fail_closed` names: correct that, or the plugin"
        };
        (self.is_there() && !brings).then(|| format!("it brings no {}, which {by}", point.hook()))
    }

    /// Returns an unknown hook that `fail_closed` names: it is unclear what it was to guard, so no tool is called.
    fn misnamed(&self) -> Option<(HookPoint, String)> {
        let name = critical::misnamed(&self.rules).filter(|_| self.is_there())?;
        let why = format!("`fail_closed` names {name}, which is not a hook: correct the name");
        Some((HookPoint::ToolBeforeCall, why))
    }

    fn is_there(&self) -> bool {
        matches!(self.stage, Stage::Active | Stage::Initialised)
    }
}
