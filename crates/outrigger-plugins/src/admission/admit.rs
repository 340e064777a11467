//! From the entries of the configuration to the plugins that may be started: found, installed where they must be, switched on,
//! and trusted as they are.

use std::path::Path;
use std::sync::Arc;

use futures_util::stream::{self, StreamExt as _};
use outrigger_config::{PluginScope, PluginSpec};
use outrigger_kernel::admission::Reason;
use outrigger_plugin_package::{Cache, PackageError, ResolvedPlugin, Source, resolve};
use outrigger_plugin_status::Stage;
use outrigger_plugin_trust::{Candidate, Gate, TrustError, Verified, project_of, signature};
use outrigger_protocol::manifest::{Manifest, RESERVED_IDS};

use crate::admission::hosted::{self, Host};
use crate::options::LoadOptions;
use outrigger_plugin_registry::access::manifest::{self, ManifestShown};
use outrigger_plugin_registry::access::settings::PluginRules;
use outrigger_plugin_registry::error::PluginError;
use outrigger_plugin_registry::{Fresh, Registry};

/// How many plugins are installed at once.
const INSTALLING: usize = 4;

/// Lists every plugin of the configuration with what it came to: ready to be started, or why not.
pub(crate) async fn resolve_all(options: &LoadOptions, registry: &Registry, cache: &Cache) {
    let gate = &gate(options);
    // Collected: a lazy iterator with this closure, held over an await, keeps the whole start from being spawned as a task.
    let work: Vec<_> = options
        .plugins
        .iter()
        .enumerate()
        .map(|(index, plugin)| async move {
            let resolved = resolve(plugin, cache, |grown| match grown {
                None => registry.stage(index, Stage::Installing),
                Some(bytes) => registry.fetched(index, bytes),
            })
            .await;
            match resolved {
                Ok(resolved) => (index, looked(options, gate, plugin, resolved).await),
                Err(error) => (index, Err(error.into())),
            }
        })
        .collect();
    let done: Vec<_> = stream::iter(work).buffered(INSTALLING).collect().await;
    let mut admission = Admission {
        options,
        registry,
        taken: Vec::new(),
        hosts: Vec::new(),
    };
    for (index, result) in done {
        // One after the other: a person may be asked.
        let result = match (result, gate) {
            (Ok((resolved, Some(found))), Ok(gate)) => {
                let verified = gate.check(found).await.map_err(PluginError::from);
                verified.map(|verified| (resolved, Some(verified)))
            }
            (result, _) => result.map(|(resolved, _)| (resolved, None)),
        };
        match result {
            Ok((resolved, verified)) => admission.list(index, resolved, verified),
            Err(error) => {
                absent_with_rules(options, registry, index);
                registry.fail(index, &error);
            }
        }
    }
    lonely(options, registry);
    for host in &admission.hosts {
        hosted::admit(options, registry, host);
    }
}

/// The plugins of a project while they are listed, in load order.
struct Admission<'a> {
    options: &'a LoadOptions,
    registry: &'a Registry,
    /// Ids that are in use.
    taken: Vec<String>,
    /// Those that may host others.
    hosts: Vec<Host<'a>>,
}

impl Admission<'_> {
    /// Lists a plugin whose files are there and trusted: with its rules, or as switched off.
    fn list(&mut self, index: usize, mut resolved: ResolvedPlugin, verified: Option<Verified>) {
        let (options, registry) = (self.options, self.registry);
        let declared = options.plugins.get(index);
        let source = declared.and_then(|it| Source::parse(&it.spec, &it.declared_in).ok());
        let scope = declared.map_or(PluginScope::Global, |it| it.scope);
        let (mut rules, withheld) =
            options
                .settings
                .rules_for(&resolved.id, &resolved.spec, source.as_ref(), scope);
        let shown = granted(options, &resolved, &mut rules, withheld);
        let host = |resolved: &ResolvedPlugin, verified: Option<&Verified>| {
            declared.map(|declared| Host {
                index,
                declared,
                resolved: resolved.clone(),
                rules: rules.clone(),
                verified: verified.cloned(),
            })
        };
        if declared.is_some_and(|it| rules.is_off(it)) {
            self.hosts.extend(host(&resolved, None));
            registry.set_rules(index, rules);
            let spec = resolved.spec;
            registry.fail(index, &PluginError::Disabled { spec });
            return;
        }
        // Two files of the same name are two plugins; the second gets a name of its own.
        let alike = self.taken.iter().filter(|id| **id == resolved.id).count();
        self.taken.push(resolved.id.clone());
        if alike > 0 {
            resolved.id = format!("{}#{}", resolved.id, alike + 1);
        }
        self.hosts.extend(host(&resolved, verified.as_ref()));
        registry.resolved(index, resolved, rules);
        registry.verified(index, verified);
        registry.manifest(index, shown);
    }
}

/// Looks at a plugin anew, for a reload: the three layers (D3), its files, what it requires and needs, whether it is trusted as it
/// is now.
///
/// # Errors
/// What speaks against starting it.
pub(crate) async fn again(
    options: &LoadOptions,
    registry: &Registry,
    index: usize,
    id: &str,
) -> Result<Fresh, PluginError> {
    let life = |why: String| PluginError::Life {
        id: id.to_owned(),
        why,
    };
    let Some(declared) = options.plugins.get(index) else {
        return Err(life(not_listed(registry, index)));
    };
    still_admitted(options, declared, id).await?;
    let cache = Cache::new(&options.cache, None, options.spawner.clone());
    let resolved = resolve(declared, &cache, |_| {}).await?;
    let source = Source::parse(&declared.spec, &declared.declared_in).ok();
    let (mut rules, withheld) = options.settings.rules_for(
        &resolved.id,
        &resolved.spec,
        source.as_ref(),
        declared.scope,
    );
    if rules.is_off(declared) {
        return Err(PluginError::Disabled {
            spec: resolved.spec,
        });
    }
    let gate = gate(options);
    let (mut resolved, found) = looked(options, &gate, declared, resolved).await?;
    let verified = match (found, &gate) {
        (Some(found), Ok(gate)) => Some(gate.check(found).await?),
        _ => None,
    };
    let own = id.split('#').next().unwrap_or(id);
    if resolved.id != own {
        return Err(life(format!("it is called {} now", resolved.id)));
    }
    let needs = resolved.manifest.iter().flat_map(|it| &it.depends_on);
    let needs: Vec<String> = needs.cloned().collect();
    if let Some((needs, _)) = registry.lacks(&needs, &options.bundled) {
        return Err(PluginError::DependsOn {
            id: id.to_owned(),
            needs,
        });
    }
    let shown = granted(options, &resolved, &mut rules, withheld);
    id.clone_into(&mut resolved.id);
    Ok(Fresh {
        resolved,
        rules,
        verified,
        shown: Some(shown),
    })
}

/// Why a plugin that no entry of the configuration names cannot be loaded again.
fn not_listed(registry: &Registry, index: usize) -> String {
    let host = registry.host_of(index);
    let host = host.and_then(|host| registry.with(host, |host| host.id.clone()));
    match host {
        Some(host) => format!("it is loaded again with its host, {host}"),
        None => "nothing of it can be loaded again".to_owned(),
    }
}

/// Whether the layers of the snapshot (D3) still have a plugin.
async fn still_admitted(
    options: &LoadOptions,
    declared: &PluginSpec,
    id: &str,
) -> Result<(), PluginError> {
    let Some(admits) = &options.admits else {
        return Ok(());
    };
    let (admits, declared) = (Arc::clone(admits), declared.clone());
    let asked = tokio::task::spawn_blocking(move || admits(&declared)).await;
    asked.map_err(|error| PluginError::Life {
        id: id.to_owned(),
        why: error.to_string(),
    })?
}

/// What a plugin gets; what it does not get is logged.
fn granted(
    options: &LoadOptions,
    resolved: &ResolvedPlugin,
    rules: &mut PluginRules,
    withheld: Option<String>,
) -> ManifestShown {
    let mut shown = admitted(options, resolved, rules);
    shown.hosts = outrigger_plugin_registry::access::network::hosts(rules, &options.settings);
    for file in &options.settings.policies {
        shown.forbidden.extend(file.forbidden());
        let forbidden = |name: &String| {
            let pattern = file.policy.forbid.program(Path::new(name))?;
            Some(format!(
                "the program {name}, which the policy of this machine forbids (`{pattern}`)"
            ))
        };
        let granted = rules.processes.iter_mut();
        for program in granted.flat_map(|list| list.extract_if(.., |it| forbidden(it).is_some())) {
            shown.withheld.extend(forbidden(&program));
        }
    }
    let problems = outrigger_plugin_registry::access::network::problem(rules)
        .into_iter()
        .chain(withheld);
    for problem in problems {
        tracing::warn!("plugin {}: {problem}", resolved.id);
    }
    shown
}

/// Who decides about trust; why nobody can where what is trusted cannot be read.
fn gate(options: &LoadOptions) -> Result<Gate, PluginError> {
    let project = project_of(&options.directory, &options.worktree);
    Ok(Gate {
        rules: options.settings.trust.clone(),
        data: options.data.clone(),
        fresh: Gate::is_fresh(&options.data, &project, &options.plugins)?,
        project,
        ask: options.trust.clone(),
        now: (options.now)(),
        let_count: options.let_count.clone(),
    })
}

/// A plugin's files, looked at. One that is switched off is not asked about.
async fn looked(
    options: &LoadOptions,
    gate: &Result<Gate, PluginError>,
    declared: &PluginSpec,
    resolved: ResolvedPlugin,
) -> Result<(ResolvedPlugin, Option<Candidate>), PluginError> {
    let source = Source::parse(&declared.spec, &declared.declared_in).ok();
    let (rules, _) = options.settings.rules_for(
        &resolved.id,
        &resolved.spec,
        source.as_ref(),
        declared.scope,
    );
    if rules.is_off(declared) {
        return Ok((resolved, None));
    }
    fit(options, &resolved)?;
    match gate {
        Ok(gate) => {
            let found = gate.look(declared, &resolved).await?;
            signature::check(&resolved, &found.content, &options.settings.policies)?;
            Ok((resolved, Some(found)))
        }
        Err(error) => Err(TrustError::Unreviewable {
            spec: declared.spec.clone(),
            reason: error.to_string(),
        }
        .into()),
    }
}

/// What speaks against a plugin before anybody must be asked: its id, what it requires, what the policy forbids.
fn fit(options: &LoadOptions, resolved: &ResolvedPlugin) -> Result<(), PluginError> {
    let (spec, id) = (resolved.spec.clone(), resolved.id.clone());
    if RESERVED_IDS.contains(&resolved.id.as_str()) {
        return Err(PackageError::Reserved { spec, id }.into());
    }
    let Some(manifest) = &resolved.manifest else {
        return Ok(());
    };
    // Of a package the id is known only now.
    let mut policies = options.settings.policies.iter();
    if let Some(file) = policies.find(|file| file.denies(&resolved.id)) {
        let file = file.path.clone();
        return Err(PluginError::Forbidden { spec, file });
    }
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let missing = manifest::missing(manifest, &options.runtimes.path, &is_set);
    if !missing.is_empty() {
        return Err(PluginError::Requirements { spec, id, missing });
    }
    match manifest::too_wide(manifest, &options.settings.policies) {
        Some((what, file)) => Err(PluginError::TooWide { id, what, file }),
        None => Ok(()),
    }
}

/// What a plugin gets of what it asks for.
fn admitted(
    options: &LoadOptions,
    resolved: &ResolvedPlugin,
    rules: &mut PluginRules,
) -> ManifestShown {
    let Some(manifest) = &resolved.manifest else {
        return ManifestShown {
            declared: false,
            manifest: Manifest::inferred(&resolved.id, resolved.version.as_deref()),
            hooks: "all, each as its point allows".to_owned(),
            withheld: Vec::new(),
            hosts: Vec::new(),
            forbidden: Vec::new(),
        };
    };
    let shown = manifest::apply(manifest, &options.directory, rules);
    for withheld in &shown.withheld {
        tracing::warn!("plugin {}: it is not given {withheld}", resolved.id);
    }
    shown
}

/// Plugins whose companions are not there.
fn lonely(options: &LoadOptions, registry: &Registry) {
    let ready = (0..registry.count()).filter_map(|index| {
        let it = registry.with(index, |plugin| {
            let resolved = plugin.resolved.as_ref().filter(|_| plugin.is_installed())?;
            let needs = resolved
                .manifest
                .as_ref()
                .map(|manifest| manifest.depends_on.clone());
            Some((index, plugin.id.clone(), needs.unwrap_or_default()))
        });
        it.flatten()
    });
    let ready: Vec<(usize, String, Vec<String>)> = ready.collect();
    let all =
        (0..registry.count()).filter_map(|index| registry.with(index, |plugin| plugin.id.clone()));
    let all: Vec<String> = all.collect();
    let known = all.iter().chain(&options.bundled);
    let known = known.map(String::as_str).collect();
    // Bundled ones need nobody; their number is that of no plugin here.
    let bundled = options.bundled.iter();
    let bundled = bundled.map(|id| (usize::MAX, id.as_str(), [].as_slice()));
    let running = ready
        .iter()
        .map(|(index, id, needs)| (*index, id.as_str(), needs.as_slice()));
    let running: Vec<_> = running.chain(bundled).collect();
    for (index, reason) in outrigger_kernel::admission::unmet(&running, &known) {
        let id = registry
            .with(index, |plugin| plugin.id.clone())
            .unwrap_or_default();
        let error = match reason {
            Reason::MissingDependency { id: needs } | Reason::DependencyDisabled { id: needs } => {
                PluginError::DependsOn { id, needs }
            }
            reason => PluginError::NotAdmitted {
                reason: reason.name().to_owned(),
                why: reason.text(),
                remedy: reason.remedy(&id),
                id,
            },
        };
        registry.unresolved(index);
        registry.fail(index, &error);
    }
}

/// One that cannot be loaded keeps its rules: what it was to guard is refused.
pub(crate) fn absent_with_rules(options: &LoadOptions, registry: &Registry, index: usize) {
    let Some(declared) = options.plugins.get(index) else {
        return;
    };
    registry.set_rules(index, rules_of(options, registry, index, declared));
}

/// The rules of a plugin whose files are not looked at: by the path of its file, else by what it goes by.
pub(crate) fn rules_of(
    options: &LoadOptions,
    registry: &Registry,
    index: usize,
    declared: &PluginSpec,
) -> PluginRules {
    let source = Source::parse(&declared.spec, &declared.declared_in).ok();
    let rules = registry.with(index, |plugin| {
        options
            .settings
            .rules_for(&plugin.id, &plugin.spec, source.as_ref(), declared.scope)
            .0
    });
    rules.unwrap_or_default()
}
