//! Lists every candidate that the configuration names or the roots contain.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outrigger_config::{
    Loaded, PluginScope, PluginSource, PluginSpec, SkipReason, plugin_folders, skills,
};
use outrigger_kernel::admission::{self, BUNDLED, Candidate, Reason, Source};
use outrigger_plugin_package::{
    PackageError, ResolvedPlugin, Source as Spec, file_url, manifest_file, name_of, resolve_path,
};
use outrigger_plugin_trust::signature;
use outrigger_protocol::manifest::{Manifest, PluginKind};

use super::facts;

/// A candidate plus data that the admission rules do not use.
pub(super) struct DiscoveredPlugin {
    pub(super) candidate: Candidate,
    pub(super) plugin: Option<PluginSpec>,
    pub(super) kind: PluginKind,
    pub(super) version: Option<String>,
    pub(super) manifest: bool,
    pub(super) switched_on: Option<String>,
}

/// Returns what OpenCode's own rules list, in their order.
pub(super) fn listed(config: &Loaded) -> Vec<DiscoveredPlugin> {
    let loaded = config
        .tool_files
        .iter()
        .chain(&config.plugins)
        .map(|plugin| (plugin, None));
    let skipped = config
        .skipped
        .iter()
        .map(|it| (&it.plugin, Some(&it.reason)));
    loaded
        .chain(skipped)
        .enumerate()
        .map(|(order, (plugin, skip))| {
            let mut known = entry(config, plugin);
            let it = &mut known.candidate;
            it.order = order;
            it.listed = true;
            it.excluded = skip.map(said);
            known
        })
        .collect()
}

/// Returns the reason for which an entry was removed from the list.
fn said(skip: &SkipReason) -> Reason {
    let by = match skip {
        SkipReason::Policy { file } => {
            return Reason::ForbiddenByManagedPolicy {
                file: file.display().to_string(),
            };
        }
        SkipReason::Pure => "--pure".to_owned(),
        SkipReason::LeftOut => "`outrigger plugin bisect`".to_owned(),
        SkipReason::Overridden { spec, declared_in } => {
            format!("the later entry {spec} in {}", declared_in.display())
        }
        SkipReason::Replaced => "the list of a later file of the global folder".to_owned(),
        SkipReason::NotAdmitted { why, .. } => why.clone(),
    };
    Reason::LeftOut { by }
}

/// Returns an entry of the plugin list.
fn entry(config: &Loaded, plugin: &PluginSpec) -> DiscoveredPlugin {
    let source = match (plugin.source, plugin.scope) {
        (PluginSource::Config, _) => Source::ConfigPath,
        (_, PluginScope::Local) => Source::WorkspaceRoot,
        (_, PluginScope::Global) => Source::UserRoot,
    };
    let label = name_of(plugin);
    let mut it = Candidate::new(&label, source, &plugin.spec);
    it.has_own_id = false;
    it.of_project = plugin.scope == PluginScope::Local;
    let mut known = DiscoveredPlugin {
        plugin: Some(plugin.clone()),
        kind: PluginKind::Capability,
        version: None,
        manifest: false,
        switched_on: None,
        candidate: it,
    };
    // A package from npm is inspected when it is installed.
    let Ok(Spec::Path(path)) = Spec::parse(&plugin.spec, &plugin.declared_in) else {
        return known;
    };
    let world_writable = config.settings.trust.world_writable;
    match resolve_path(&plugin.spec, &label, &path) {
        Ok(resolved) => {
            let root = if path.is_dir() {
                path.as_path()
            } else {
                path.parent().unwrap_or(&path)
            };
            let mut files = match &resolved.manifest {
                Some(_) => facts::files(root, root, world_writable),
                None => Default::default(),
            };
            let real = resolved.file.canonicalize().ok();
            if let (None, Some(real), false) = (&files.world_writable, real, world_writable) {
                files.world_writable =
                    facts::open_to_all(&real).map(|path| path.display().to_string());
            }
            files.signature = signature::problem_of(&resolved, &config.policies);
            describe(&mut known, &resolved);
            known.candidate.files = Some(files);
            denied(config, &mut known.candidate);
        }
        Err(error) => known.candidate.unsupported = Some(error.to_string()),
    }
    known
}

/// Adds the data of the manifest, if there is one.
fn describe(known: &mut DiscoveredPlugin, resolved: &ResolvedPlugin) {
    known.version.clone_from(&resolved.version);
    known.candidate.id.clone_from(&resolved.id);
    if let Some(manifest) = &resolved.manifest {
        known.kind = manifest.kind;
        known.manifest = true;
        known.candidate.has_own_id = true;
        asks(&mut known.candidate, manifest);
    }
}

fn asks(it: &mut Candidate, manifest: &Manifest) {
    it.enabled_by_default = manifest.enabled_by_default != Some(false);
    it.side_effects = manifest.has_side_effects();
    it.depends_on.clone_from(&manifest.depends_on);
    it.env.clone_from(&manifest.requirements.env);
    it.env_any.clone_from(&manifest.requirements.env_any);
    it.external_bins
        .clone_from(&manifest.requirements.external_bins);
}

/// Returns the plugins below the roots.
pub(super) fn found(config: &Loaded, problems: &mut Vec<String>) -> Vec<DiscoveredPlugin> {
    let roots = config.plugin_roots();
    let sources = [
        (Source::ConfigPath, roots.config, true),
        (Source::EnvRoot, roots.env, true),
        (Source::WorkspaceRoot, roots.workspace, false),
        (Source::UserRoot, roots.user, false),
    ];
    let mut all = Vec::new();
    // A folder reached from two roots belongs to the first.
    let mut seen: BTreeSet<PathBuf> = BTreeSet::new();
    for (source, roots, named) in sources {
        for (order, root) in roots.iter().enumerate() {
            if named && !root.is_dir() {
                problems.push(format!("{}: no such folder", root.display()));
            }
            let below = plugin_folders(root);
            problems.extend(below.problem);
            for folder in below.folders {
                if seen.insert(folder.canonicalize().unwrap_or_else(|_| folder.clone())) {
                    let mut known = manifest(config, source, root, &folder);
                    // After the entries that OpenCode's own rules list.
                    known.candidate.order = config.plugins.len() + config.tool_files.len() + order;
                    all.push(known);
                }
            }
        }
    }
    all
}

/// Reads a folder with a manifest.
fn manifest(config: &Loaded, source: Source, root: &Path, folder: &Path) -> DiscoveredPlugin {
    let spec = PluginSpec {
        spec: file_url(folder),
        options: None,
        declared_in: root.to_owned(),
        source: PluginSource::Manifest,
        scope: match source {
            Source::WorkspaceRoot => PluginScope::Local,
            _ => PluginScope::Global,
        },
    };
    let label = name_of(&spec);
    let mut it = Candidate::new(&label, source, &folder.display().to_string());
    it.has_own_id = false;
    it.of_project = spec.scope == PluginScope::Local;
    it.files = Some(facts::files(
        root,
        folder,
        config.settings.trust.world_writable,
    ));
    it.excluded = excluded(config, &spec);
    if it.of_project && it.excluded.is_none() && !config.lets_plugin(root, folder) {
        it.excluded = Some(Reason::FolderNotTrusted);
    }
    let mut known = DiscoveredPlugin {
        kind: PluginKind::Capability,
        version: None,
        manifest: true,
        switched_on: None,
        candidate: it,
        plugin: Some(spec.clone()),
    };
    match resolve_path(&spec.spec, &label, folder) {
        Ok(resolved) => {
            if let Some(files) = &mut known.candidate.files {
                files.signature = signature::problem_of(&resolved, &config.policies);
            }
            describe(&mut known, &resolved);
            known.candidate.unsupported = facts::unsupported(&resolved.file);
        }
        Err(PackageError::Reserved { id, .. }) => known.candidate.id = id,
        Err(error) => {
            describe_unresolved(&mut known, &spec.spec, folder);
            known.candidate.unsupported = Some(error.to_string());
        }
    }
    denied(config, &mut known.candidate);
    known
}

/// Returns what excludes a folder from the list: a flag or a policy of the machine.
fn excluded(config: &Loaded, spec: &PluginSpec) -> Option<Reason> {
    if let Some(by) = config.left_out(&spec.key()) {
        return Some(Reason::LeftOut { by: by.to_owned() });
    }
    let file = config.policies.iter().find(|file| file.forbids(spec))?;
    Some(Reason::ForbiddenByManagedPolicy {
        file: file.path.display().to_string(),
    })
}

/// Reads what it can of a broken plugin, so that `fail_closed` still finds it by name.
fn describe_unresolved(known: &mut DiscoveredPlugin, spec: &str, folder: &Path) {
    if let Some(id) = manifest_file::named(folder) {
        known.candidate.id = id;
    }
    if let Ok(Some(manifest)) = manifest_file::read(spec, folder) {
        known.candidate.id.clone_from(&manifest.id);
        known.candidate.has_own_id = true;
        known.kind = manifest.kind;
        known.version = Some(manifest.version.clone());
        asks(&mut known.candidate, &manifest);
    }
}

/// A policy denies by the id in the manifest, which is known only after reading it.
fn denied(config: &Loaded, it: &mut Candidate) {
    let mut policies = config.policies.iter();
    let denies = policies.find(|file| it.has_own_id && file.denies(&it.id));
    if let (None, Some(file)) = (&it.excluded, denies) {
        it.excluded = Some(Reason::ForbiddenByManagedPolicy {
            file: file.path.display().to_string(),
        });
    }
}

/// Returns the bundled plugins; `others` are the other candidates.
pub(super) fn bundled(
    config: &Loaded,
    data: &Path,
    others: &[DiscoveredPlugin],
) -> Vec<DiscoveredPlugin> {
    let mcp = mcp_user(config, others);
    let key = openrouter_key(config, data);
    let row = |row: &admission::Bundled| {
        let mut candidate = row.candidate();
        if row.id == "openrouter" && key.is_some() {
            candidate.env.clear();
        }
        let denies = config.policies.iter().find(|file| file.denies(row.id));
        candidate.excluded = denies.map(|file| Reason::ForbiddenByManagedPolicy {
            file: file.path.display().to_string(),
        });
        DiscoveredPlugin {
            candidate,
            plugin: None,
            kind: row.kind,
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            manifest: true,
            // A feature in use is enabled: OpenCode's configuration has no profiles.
            switched_on: match row.id {
                "mcp" => mcp.clone(),
                "openrouter" => key.clone(),
                _ => None,
            },
        }
    };
    BUNDLED.iter().map(row).collect()
}

/// Returns who uses MCP servers, as far as that is known before anything runs.
fn mcp_user(config: &Loaded, others: &[DiscoveredPlugin]) -> Option<String> {
    let off = |server: &serde_json::Value| server.get("enabled") == Some(&false.into());
    let servers = config.config.mcp.values().filter(|it| !off(it)).count();
    if servers > 0 {
        return Some(format!("`mcp` of the configuration, which names {servers}"));
    }
    let of_claude = config.claude_servers().0.len();
    if of_claude > 0 {
        return Some(format!("the project's .mcp.json, which names {of_claude}"));
    }
    let needs = |it: &&DiscoveredPlugin| {
        it.candidate.excluded.is_none() && it.candidate.depends_on.iter().any(|id| id == "mcp")
    };
    if let Some(plugin) = others.iter().find(needs) {
        let id = &plugin.candidate.id;
        return Some(format!("the plugin {id}, which depends on it"));
    }
    let (skills, _) = skills::discover(&config.skill_search(&config.config));
    let brings = |it: &&skills::Skill| !config.skill_servers(it).0.is_empty();
    let skill = skills.iter().find(brings)?;
    Some(format!("the skill {}", skill.name))
}

/// Returns where a key for OpenRouter is, if not in the variable that the bundled plugin names.
fn openrouter_key(config: &Loaded, data: &Path) -> Option<String> {
    const ID: &str = "openrouter";
    let provider = config.config.provider.get(ID);
    let key = provider.and_then(|it| it.pointer("/options/apiKey")?.as_str());
    if key.is_some_and(|key| !key.is_empty()) {
        return Some("`provider.openrouter` of the configuration, which has a key".to_owned());
    }
    let opencode = data.parent().map(|it| it.join("opencode/auth.json"));
    let mut files = [Some(data.join("auth.json")), opencode]
        .into_iter()
        .flatten();
    let has_key = |file: &PathBuf| {
        outrigger_files::read(file, outrigger_files::SETTINGS)
            .ok()
            .and_then(|it| serde_json::from_slice::<serde_json::Value>(&it).ok())
            .is_some_and(|it| it.get(ID).is_some())
    };
    let file = files.find(has_key)?;
    Some(format!("a key that is stored in {}", file.display()))
}
