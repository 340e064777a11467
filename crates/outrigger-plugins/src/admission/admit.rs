//! Admission of plugins: from the entries of the configuration to the plugins that may be started. Each is found, installed if
//! necessary, enabled, and trusted in its current state.

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

/// Maximum number of concurrent installations.
const INSTALLING: usize = 4;

/// Lists every plugin of the configuration with its result: ready to start, or the reason why not.
pub(crate) async fn resolve_all(options: &LoadOptions, registry: &Registry, cache: &Cache) {
    let gate = &gate(options);
    // Collected: a lazy iterator with this closure, held over an await, would prevent spawning the whole start as a task.
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
        // Sequential, since the user may be asked.
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
    /// Ids in use.
    taken: Vec<String>,
    /// Plugins that may host others.
    hosts: Vec<Host<'a>>,
}

impl Admission<'_> {
    /// Lists a plugin whose files exist and are trusted: with its rules, or as switched off.
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
        // Two files of the same name are two plugins; the second gets a different id.
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
    let needs: Vec<String> = resolved
        .manifest
        .iter()
        .flat_map(|it| &it.depends_on)
        .cloned()
        .collect();
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

/// Returns why a plugin that no configuration entry names cannot be reloaded.
fn not_listed(registry: &Registry, index: usize) -> String {
    let host = registry.host_of(index);
    let host = host.and_then(|host| registry.with(host, |host| host.id.clone()));
    match host {
        Some(host) => format!("it is loaded again with its host, {host}"),
        None => "nothing of it can be loaded again".to_owned(),
    }
}

/// Checks that the layers of the snapshot (D3) still admit a plugin.
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

/// Returns what a plugin gets; logs what it does not get.
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

/// Returns the gate that decides about trust; fails if the trust store cannot be read.
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

/// Checks a plugin's files. A plugin that is switched off needs no approval.
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

/// Checks a plugin before the user may be asked: its id, its requirements, and the policies.
fn fit(options: &LoadOptions, resolved: &ResolvedPlugin) -> Result<(), PluginError> {
    let (spec, id) = (resolved.spec.clone(), resolved.id.clone());
    if RESERVED_IDS.contains(&resolved.id.as_str()) {
        return Err(PackageError::Reserved { spec, id }.into());
    }
    let Some(manifest) = &resolved.manifest else {
        return Ok(());
    };
    // The id of a package is known only now.
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

/// Returns what a plugin gets of what it requests.
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

/// Fails plugins whose dependencies are missing.
fn lonely(options: &LoadOptions, registry: &Registry) {
    let ready: Vec<(usize, String, Vec<String>)> = (0..registry.count())
        .filter_map(|index| {
            let it = registry.with(index, |plugin| {
                let resolved = plugin.resolved.as_ref().filter(|_| plugin.is_installed())?;
                let needs = resolved
                    .manifest
                    .as_ref()
                    .map(|manifest| manifest.depends_on.clone());
                Some((index, plugin.id.clone(), needs.unwrap_or_default()))
            });
            it.flatten()
        })
        .collect();
    let all: Vec<String> = (0..registry.count())
        .filter_map(|index| registry.with(index, |plugin| plugin.id.clone()))
        .collect();
    let known = all
        .iter()
        .chain(&options.bundled)
        .map(String::as_str)
        .collect();
    // Bundled plugins have no dependencies; their index matches no plugin here.
    let bundled = options
        .bundled
        .iter()
        .map(|id| (usize::MAX, id.as_str(), [].as_slice()));
    let running: Vec<_> = ready
        .iter()
        .map(|(index, id, needs)| (*index, id.as_str(), needs.as_slice()))
        .chain(bundled)
        .collect();
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

/// Keeps the rules of plugins that cannot be loaded: what they guard is refused.
pub(crate) fn absent_with_rules(options: &LoadOptions, registry: &Registry, index: usize) {
    let Some(declared) = options.plugins.get(index) else {
        return;
    };
    registry.set_rules(index, rules_of(options, registry, index, declared));
}

/// Returns the rules of a plugin whose files are not checked: by the path of its file, else by its name.
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
