//! State changes of a running plugin: suspend, resume, reload (C7).

use std::sync::Arc;
use std::time::Duration;

use outrigger_plugin_package::Source;
use outrigger_plugin_status::{LifeState, Notice, Stage};

use crate::admission::admit::again;
use crate::admission::hosted::{self, Host, HostedDecl};
use crate::options::LoadOptions;
use crate::plugins::{Plugins, late_launch};
use outrigger_plugin_registry::Fresh;
use outrigger_plugin_registry::error::{PROCESS, PluginError};
use outrigger_plugin_supervisor::group::Group;

/// Time that a process may take to dispose of its resources after all its plugins moved elsewhere.
const DISPOSE: Duration = Duration::from_secs(5);

impl Plugins {
    /// Takes a plugin out of the run graph and keeps its process with all that it holds. Calls in flight end; none begins. A
    /// hook of it that refuses when it fails refuses meanwhile.
    ///
    /// # Errors
    /// `plugin.life_cycle` when it is not active, or when others that are need it.
    pub async fn suspend(&self, id: &str) -> Result<(), PluginError> {
        self.set(id, true).await
    }

    /// Brings a suspended plugin back.
    ///
    /// # Errors
    /// `plugin.life_cycle` when it is not suspended, `plugin.depends_on` when what it needs is not active.
    pub async fn resume(&self, id: &str) -> Result<(), PluginError> {
        self.set(id, false).await
    }

    /// Returns the suspended plugins in an order in which they can be suspended: dependents first.
    #[must_use]
    pub fn suspended(&self) -> Vec<String> {
        self.0.registry.suspended()
    }

    /// Returns the plugins whose process could not be started, for which a retry may help.
    #[must_use]
    pub fn unstarted(&self) -> Vec<String> {
        self.list()
            .into_iter()
            .filter(|it| {
                let cause = it.cause.as_ref().map(|cause| cause.code.as_str());
                it.stage == Stage::Failed && it.host.is_none() && cause == Some(PROCESS)
            })
            .map(|it| it.id)
            .collect()
    }

    async fn set(&self, id: &str, suspend: bool) -> Result<(), PluginError> {
        let _one = self.0.loading.changing.lock().await;
        let index = self.index(id)?;
        let action = if suspend { "suspend" } else { "resume" };
        let result = self.change(id, index, suspend);
        self.report(id, index, action, result.as_ref().err());
        result
    }

    fn change(&self, id: &str, index: usize, suspend: bool) -> Result<(), PluginError> {
        let registry = &self.0.registry;
        let dependents = registry.dependents(index);
        if suspend && !dependents.is_empty() {
            return Err(PluginError::Life {
                id: id.to_owned(),
                why: format!(
                    "suspend is not possible: {} need it; suspend these first",
                    dependents.join(", ")
                ),
            });
        }
        let needs = registry.with(index, |plugin| plugin.depends_on().to_vec());
        let bundled = self
            .0
            .loading
            .options
            .as_ref()
            .map(|options| &options.bundled)
            .map_or(&[][..], Vec::as_slice);
        if let (false, Some((needs, _))) =
            (suspend, registry.lacks(&needs.unwrap_or_default(), bundled))
        {
            let id = id.to_owned();
            return Err(PluginError::DependsOn { id, needs });
        }
        let action = if suspend { "suspend" } else { "resume" };
        if !registry.suspend(index, suspend) {
            return Err(self.not(id, index, action));
        }
        // Hosted plugins follow the state of their host.
        for hosted in registry.hosted_by(index) {
            registry.suspend(hosted, suspend);
        }
        Ok(())
    }

    /// Loads a plugin anew, in a process beside the one that it has: what changed of its files and its manifest counts, when the
    /// layers of the snapshot (D3) still have it and it is trusted. When the new process answers, calls go to it; those in flight
    /// end in the old one. Plugins that share its process are started again with it, as they are now, and those that it hosts by
    /// its manifest of now. One that had failed or is off is started. Answers the new generation.
    ///
    /// # Errors
    /// Why the new one is of no use. The old one runs on then.
    pub async fn reload(&self, id: &str) -> Result<u64, PluginError> {
        let _one = self.0.loading.changing.lock().await;
        let index = self.index(id)?;
        let result = self.renew(id, index).await;
        self.report(id, index, "reload", result.as_ref().err());
        result
    }

    async fn renew(&self, id: &str, index: usize) -> Result<u64, PluginError> {
        let registry = &self.0.registry;
        let stage = registry.stage_now(index);
        let group = self.group_of(index);
        let Some(options) = &self.0.loading.options else {
            return Err(self.not(id, index, "reload"));
        };
        match (group, stage) {
            (Some(group), Some(Stage::Active | Stage::Suspended)) => {
                let members = group.members().await;
                let generation = self.exchange(options, id, index, &group).await?;
                for member in members {
                    self.renew_hosted(options, member).await;
                }
                Ok(generation)
            }
            (_, Some(Stage::Failed | Stage::Off | Stage::Skipped)) => {
                let fresh = again(options, registry, index, id).await?;
                registry.revive(index, fresh);
                let generation = self.start_alone(options, id, index).await?;
                self.renew_hosted(options, index).await;
                Ok(generation)
            }
            _ => Err(self.not(id, index, "reload")),
        }
    }

    /// Starts the next generation of a process, with the current state of all its plugins. A plugin that now requires its own
    /// process gets one.
    async fn exchange(
        &self,
        options: &LoadOptions,
        id: &str,
        index: usize,
        group: &Arc<Group>,
    ) -> Result<u64, PluginError> {
        let registry = &self.0.registry;
        let members = group.members().await;
        let fresh = self.look_again(options, id, index, &members).await?;
        let mut leaving: Vec<usize> = fresh
            .iter()
            .filter(|(_, looked)| looked.rules.alone())
            .map(|(member, _)| *member)
            .collect();
        // The last one has the process to itself.
        if leaving.len() == members.len() {
            leaving.pop();
        }
        let mut before: Vec<(usize, Option<Fresh>)> = fresh
            .into_iter()
            .map(|(member, fresh)| (member, registry.exchange(member, fresh)))
            .collect();
        let (moved, mut renewed) = self.move_all_out(group, leaving).await;
        before.retain(|(member, _)| !moved.iter().any(|(it, _)| it == member));
        let mut put_back = || {
            for (member, before) in before.drain(..) {
                before.map(|before| registry.exchange(member, before));
            }
        };
        // The remaining plugins get nothing of what was granted to one that could not move out.
        if renewed.is_err() {
            put_back();
        }
        let gone: Vec<usize> = moved.iter().map(|(member, _)| *member).collect();
        group.remove(&gone).await;
        if renewed.is_ok() || !gone.is_empty() {
            let rest = group.renew().await;
            renewed = renewed.and(rest);
        }
        if renewed.is_err() {
            put_back();
        }
        match (moved.iter().find(|(member, _)| *member == index), renewed) {
            (None, renewed) => renewed,
            (Some((_, generation)), Ok(_)) => Ok(*generation),
            (Some((_, generation)), Err(error)) => {
                tracing::warn!(
                    "plugin {id}: it has a process of its own now; those that it shared one with run on as they were: {error}"
                );
                Ok(*generation)
            }
        }
    }

    /// The plugins of a process as they are now.
    ///
    /// # Errors
    /// Why one of them cannot be loaded again; `index` is the one that was asked for.
    async fn look_again(
        &self,
        options: &LoadOptions,
        id: &str,
        index: usize,
        members: &[usize],
    ) -> Result<Vec<(usize, Fresh)>, PluginError> {
        let registry = &self.0.registry;
        let mut fresh = Vec::new();
        for member in members {
            // A package stays as installed: by exact version, in Outrigger's folder.
            let declared = options.plugins.get(*member);
            let source = declared.map(|it| Source::parse(&it.spec, &it.declared_in));
            if matches!(source, Some(Ok(Source::Npm { .. }))) {
                continue;
            }
            let name = registry
                .with(*member, |plugin| plugin.id.clone())
                .unwrap_or_default();
            let looked = again(options, registry, *member, &name)
                .await
                .map_err(|error| {
                    if *member == index {
                        error
                    } else {
                        life(
                            id,
                            format!(
                                "{name} shares its process and cannot be loaded again: {error}"
                            ),
                        )
                    }
                })?;
            fresh.push((*member, looked));
        }
        Ok(fresh)
    }

    /// Moves these plugins out of a shared process, each into its own, up to the first failure. Returns those that moved with the
    /// generations of their processes, and the reason for stopping.
    async fn move_all_out(
        &self,
        group: &Group,
        leaving: Vec<usize>,
    ) -> (Vec<(usize, u64)>, Result<u64, PluginError>) {
        let mut moved = Vec::new();
        for member in leaving {
            match self.move_out(group, member).await {
                Ok(generation) => moved.push((member, generation)),
                Err(error) => return (moved, Err(error)),
            }
        }
        (moved, Ok(0))
    }

    /// Moves a plugin of a shared process into its own, alongside it. Calls go there once it answers.
    async fn move_out(&self, group: &Group, member: usize) -> Result<u64, PluginError> {
        let apart = group.split_off(self.0.processes.key(), member);
        let ready = || {
            self.0.processes.add(&apart);
            self.0.registry.assign(member, apart.key);
        };
        apart.renew_when(ready).await
    }

    /// Starts a plugin that has no process, in its own.
    async fn start_alone(
        &self,
        options: &LoadOptions,
        id: &str,
        index: usize,
    ) -> Result<u64, PluginError> {
        let registry = &self.0.registry;
        let launch = late_launch(options, &self.0)
            .await
            .inspect_err(|error| registry.fail(index, error))?;
        let (key, table) = (self.0.processes.key(), Arc::downgrade(&self.0.processes));
        let group = Group::new(key, id.to_owned(), launch, vec![index], table);
        let before = self.group_of(index);
        registry.assign(index, group.key);
        self.0.processes.add(&group);
        // Another plugin may still run there.
        if let Some(before) = before.filter(|before| !registry.lives_in(before.key)) {
            before.close(DISPOSE).await;
            self.0.processes.remove(before.key);
        }
        let started = group.live().await;
        match (started, registry.stage_now(index)) {
            (Ok(live), Some(Stage::Active)) => Ok(live.generation),
            (started, _) => {
                let cause = registry.with(index, outrigger_plugin_registry::Plugin::why);
                let why = cause.flatten().or(started.err());
                Err(life(
                    id,
                    why.unwrap_or_else(|| "it did not start".to_owned()),
                ))
            }
        }
    }

    /// Applies a host's current manifest to the plugins that it hosts (C8): those in it are reloaded with the permissions that
    /// both allow, new ones are started, and removed ones end.
    async fn renew_hosted(&self, options: &LoadOptions, index: usize) {
        let registry = &self.0.registry;
        let Some(host) = self.host(options, index) else {
            return;
        };
        let manifest = host.resolved.manifest.clone();
        let named: Vec<HostedDecl<'_>> = manifest
            .iter()
            .flat_map(|manifest| {
                manifest
                    .subplugins
                    .iter()
                    .map(|decl| HostedDecl { manifest, decl })
            })
            .collect();
        let there = registry.hosted_by(index);
        let name = |hosted: &usize| registry.hosted_as(*hosted).map(|(_, name)| name);
        for hosted in &there {
            let name = name(hosted);
            let mut named = named.iter().copied();
            let declared = named.find(|it| name.as_ref() == Some(&it.decl.id));
            self.reload_hosted(options, &host, *hosted, declared).await;
        }
        for declared in named {
            let is = |hosted| name(hosted).as_ref() == Some(&declared.decl.id);
            if !there.iter().any(is) {
                self.start_hosted(options, &host, declared).await;
            }
        }
    }

    /// Returns a plugin as the host of those that its manifest names.
    fn host<'o>(&self, options: &'o LoadOptions, index: usize) -> Option<Host<'o>> {
        let declared = options.plugins.get(index)?;
        self.0.registry.with(index, |plugin| {
            Some(Host {
                index,
                declared,
                resolved: plugin.resolved.clone()?,
                rules: plugin.rules.clone(),
                verified: plugin.verified.clone(),
            })
        })?
    }

    /// Reloads a hosted plugin as its host's manifest declares it now; a plugin that is no longer in it ends.
    async fn reload_hosted(
        &self,
        options: &LoadOptions,
        host: &Host<'_>,
        hosted: usize,
        declared: Option<HostedDecl<'_>>,
    ) {
        let registry = &self.0.registry;
        let id = registry
            .with(hosted, |plugin| plugin.id.clone())
            .unwrap_or_default();
        let renewed = match declared {
            Some(declared) => {
                let fresh = hosted::fresh(options, host, declared);
                self.renew_one(options, &id, hosted, fresh).await
            }
            None => Err(life(
                &id,
                format!("{} does not host it any more", host.resolved.id),
            )),
        };
        // It may have had more than its host has now, so it must not keep that.
        if let Err(error) = &renewed
            && registry.with(hosted, outrigger_plugin_registry::Plugin::has_ended) == Some(false)
        {
            registry.off(hosted, error);
        }
        self.report(&id, hosted, "reload", renewed.as_ref().err());
    }

    /// Lists a plugin that is new in its host's manifest, and starts it.
    async fn start_hosted(&self, options: &LoadOptions, host: &Host<'_>, declared: HostedDecl<'_>) {
        let registry = &self.0.registry;
        let hosted = hosted::list(options, registry, host, declared);
        let id = registry.with(hosted, |plugin| plugin.id.clone());
        if registry.with(hosted, outrigger_plugin_registry::Plugin::is_installed) == Some(true) {
            let id = id.unwrap_or_default();
            let started = self.start_alone(options, &id, hosted).await;
            self.report(&id, hosted, "reload", started.err().as_ref());
        }
    }

    async fn renew_one(
        &self,
        options: &LoadOptions,
        id: &str,
        index: usize,
        fresh: Result<Fresh, PluginError>,
    ) -> Result<(), PluginError> {
        let registry = &self.0.registry;
        let fresh = fresh?;
        let ended =
            registry.with(index, outrigger_plugin_registry::Plugin::has_ended) != Some(false);
        match self.group_of(index).filter(|_| !ended) {
            Some(group) => {
                registry.exchange(index, fresh);
                group.renew().await?;
            }
            None => {
                registry.revive(index, fresh);
                self.start_alone(options, id, index).await?;
            }
        }
        Ok(())
    }

    fn group_of(&self, index: usize) -> Option<Arc<Group>> {
        let key = self.0.registry.with(index, |plugin| plugin.group)??;
        self.0.processes.get(key)
    }

    fn index(&self, id: &str) -> Result<usize, PluginError> {
        let index = self.0.registry.index_of(id);
        index.ok_or_else(|| life(id, "no such plugin".to_owned()))
    }

    fn not(&self, id: &str, index: usize, action: &str) -> PluginError {
        let stage = self.0.registry.stage_now(index).unwrap_or(Stage::Found);
        life(id, format!("{action} is not possible: it is {stage}"))
    }

    fn report(&self, id: &str, index: usize, action: &str, error: Option<&PluginError>) {
        let group = self.group_of(index);
        let stage = self.0.registry.stage_now(index).unwrap_or(Stage::Found);
        let state: LifeState = stage.into();
        match (error, state) {
            (Some(error), LifeState::Active | LifeState::Suspended) => {
                tracing::warn!("plugin {id}: {action}: {error}; what ran before runs on")
            }
            (Some(error), _) => tracing::warn!("plugin {id}: {action}: {error}"),
            (None, _) => tracing::info!("plugin {id}: {action}"),
        }
        if let Some(options) = &self.0.loading.options {
            (options.notice)(Notice::State {
                plugin: id.to_owned(),
                state,
                action: action.to_owned(),
                generation: group.map_or(0, |group| group.current().1),
                error: error.map(ToString::to_string),
            });
        }
    }
}

fn life(id: &str, why: String) -> PluginError {
    PluginError::Life {
        id: id.to_owned(),
        why,
    }
}
