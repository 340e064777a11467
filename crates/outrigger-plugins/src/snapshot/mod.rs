//! The snapshot of plugins (D2): every candidate of every source, whether it should run, and why not.
//!
//! Built synchronously before anything is started; it holds no process and no connection. It determines what is loaded
//! ([`Snapshot::to_load`]). The kernel has the rules ([`outrigger_kernel::admission`]); this module collects their input:
//! files, permissions, variables, programs, settings.

mod candidates;
mod facts;
mod untrusted;

use candidates::{DiscoveredPlugin, bundled, found, listed};
use std::collections::BTreeSet;
use std::path::Path;

use outrigger_config::settings::PluginProfile;
use outrigger_config::{
    ConfigProblem, Loaded, PluginScope, PluginSpec, PolicyFile, SkipReason, SkippedPlugin,
};
use outrigger_kernel::admission::{
    self, BUNDLED, Entry, Layer, Machine, Profile, Reason, Rules, Source, Switch,
};
use outrigger_plugin_package::Source as Spec;
use outrigger_protocol::manifest::PluginKind;
use outrigger_sandbox::which;
use serde::Serialize;
use untrusted::untrusted;

use outrigger_plugin_registry::access::settings::PluginSettings;
use outrigger_plugin_registry::access::user_grants::names_of;
use outrigger_plugin_registry::error::PluginError;

/// The plugins that should run, and those that should not.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Snapshot {
    /// Profile of bundled plugins.
    pub profile: Profile,
    /// Every candidate, sorted by id and precedence.
    pub entries: Vec<SnapshotEntry>,
    /// Paths that the machine policy hides from every plugin.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forbidden: Vec<String>,
    /// Paths that could not be read, and settings that have no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// One candidate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SnapshotEntry {
    /// What it is called.
    pub id: String,
    /// Source of the candidate.
    pub source: Source,
    /// 0 (highest) to 4.
    pub precedence: u8,
    /// Folder, file or entry.
    pub place: String,
    /// Kind of plugin.
    pub kind: PluginKind,
    /// Version, if known before installation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Whether it has a manifest; otherwise the defaults apply.
    pub manifest: bool,
    /// Whether it should run.
    pub enabled: bool,
    /// It runs, but a model is offered its tools only if a permission rule or an agent names them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
    /// The layer that excluded it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layer: Option<Layer>,
    /// Why it should not run, with details.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// Reason as text; for a running plugin, why it runs.
    pub why: String,
    /// How to change that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
    /// Its entry in the plugin list; bundled ones have none.
    #[serde(skip)]
    plugin: Option<PluginSpec>,
    /// It was on that list already.
    #[serde(skip)]
    listed: bool,
    /// Position within its source.
    #[serde(skip)]
    order: usize,
    /// From a project: it can be switched on by its path only.
    #[serde(skip)]
    pub of_project: bool,
}

impl SnapshotEntry {
    /// Returns the NAME of the `[plugins.NAME]` that grants it something; `None` if it cannot get grants.
    #[must_use]
    pub fn grant_key(&self) -> Option<String> {
        let plugin = self.plugin.as_ref()?;
        let source =
            outrigger_plugin_package::Source::parse(&plugin.spec, &plugin.declared_in).ok();
        outrigger_plugin_registry::access::user_grants::grant_key(source.as_ref())
            .map(str::to_owned)
    }
}

impl Snapshot {
    /// Collects everything that the configuration names and that the roots contain; the trust store is in `data`.
    #[must_use]
    pub fn of(config: &Loaded, data: &Path) -> Self {
        let mut problems = Vec::new();
        let mut known: Vec<DiscoveredPlugin> = listed(config);
        known.extend(found(config, &mut problems));
        let own = bundled(config, data, &known);
        known.extend(own);
        problems.extend(of_projects(config, &known));
        let mut rules = Rules {
            profile: match config.settings.discovery.profile {
                PluginProfile::Minimal => Profile::Minimal,
                PluginProfile::Messaging => Profile::Messaging,
                PluginProfile::Full => Profile::Full,
            },
            allow: config.settings.discovery.allow.clone(),
            deny: config.settings.discovery.deny.clone(),
            ..Rules::default()
        };
        rules.kept = config.ruled_ids();
        for it in &mut known {
            switches(config, it, &mut rules);
        }
        untrusted(config, data, &mut known);
        let machine = machine(config, &known);
        let decided = admission::decide(
            known.iter().map(|it| it.candidate.clone()).collect(),
            &rules,
            &machine,
        );
        let entries = decided.into_iter().filter_map(|entry| {
            let at = known
                .iter()
                .position(|it| it.candidate == entry.candidate)?;
            Some(shown(entry, known.swap_remove(at)))
        });
        Self {
            profile: rules.profile,
            entries: entries.collect(),
            forbidden: config
                .policies
                .iter()
                .flat_map(PolicyFile::forbidden)
                .collect(),
            problems,
        }
    }

    /// Returns whether the bundled plugin of that id should run.
    #[must_use]
    pub fn has_bundled(&self, id: &str) -> bool {
        self.bundled(id).is_some_and(|entry| entry.enabled)
    }

    /// Returns the bundled plugin of that id.
    #[must_use]
    pub fn bundled(&self, id: &str) -> Option<&SnapshotEntry> {
        let mut entries = self.entries.iter();
        entries.find(|entry| entry.id == id && entry.source == Source::Bundled)
    }

    /// Enables a bundled plugin that only the profile excludes: it is in use.
    #[must_use]
    pub fn with_in_use(mut self, id: &str, by: &str) -> Self {
        let left_out = |it: &&mut SnapshotEntry| {
            let by_profile = matches!(it.reason, Some(Reason::NotInProfile { .. }));
            it.id == id && it.source == Source::Bundled && by_profile
        };
        if let Some(entry) = self.entries.iter_mut().find(left_out) {
            entry.enabled = true;
            (entry.layer, entry.reason, entry.remedy) = (None, None, None);
            entry.why = format!("switched on by {by}");
        }
        self
    }

    /// Returns whether an entry of the list should run, and why not; `None` if it is not a candidate.
    #[must_use]
    pub fn verdict(&self, plugin: &PluginSpec) -> Option<Result<(), PluginError>> {
        let is = |it: &&SnapshotEntry| {
            it.plugin
                .as_ref()
                .is_some_and(|it| it.spec == plugin.spec && it.declared_in == plugin.declared_in)
        };
        let entry = self.entries.iter().find(is)?;
        Some(if entry.enabled {
            Ok(())
        } else {
            Err(PluginError::NotAdmitted {
                id: entry.id.clone(),
                reason: entry.reason.as_ref().map_or("", Reason::name).to_owned(),
                why: entry.why.clone(),
                remedy: entry.remedy.clone().unwrap_or_default(),
            })
        })
    }

    /// Returns the ids of the bundled plugins that should run.
    #[must_use]
    pub fn running_bundled(&self) -> Vec<String> {
        self.entries
            .iter()
            .filter(|entry| entry.source == Source::Bundled && entry.enabled)
            .map(|entry| entry.id.clone())
            .collect()
    }

    /// Returns the bundled tools that are unavailable because their plugin does not run.
    #[must_use]
    pub fn tools_off(&self) -> Vec<&'static str> {
        BUNDLED
            .iter()
            .filter(|it| !self.has_bundled(it.id))
            .flat_map(|it| it.tools)
            .copied()
            .collect()
    }

    /// Returns what is loaded and what is not: OpenCode's entries in their own order, then what was found, by precedence. An
    /// OpenCode entry with broken files or missing dependencies is included: loading it reports the same problem with its own
    /// code.
    #[must_use]
    pub fn to_load(&self, config: &Loaded) -> (Vec<PluginSpec>, Vec<SkippedPlugin>) {
        let mut plugins = [config.tool_files.as_slice(), config.plugins.as_slice()].concat();
        let mut skipped = config.skipped.clone();
        for entry in self.entries.iter().filter(|entry| entry.listed) {
            if let (Some(Layer::Identity | Layer::Policy), Some(spec)) =
                (entry.layer, &entry.plugin)
                && !is_reported_later(entry)
                && let Some(at) = plugins.iter().position(|it| it == spec)
            {
                skipped.push(entry.skipped(plugins.remove(at)));
            }
        }
        let mut found: Vec<&SnapshotEntry> =
            self.entries.iter().filter(|entry| !entry.listed).collect();
        found.sort_by_key(|entry| (entry.precedence, entry.order, &entry.place));
        for entry in found {
            match &entry.plugin {
                Some(spec) if entry.enabled => plugins.push(spec.clone()),
                Some(spec) => skipped.push(entry.skipped(spec.clone())),
                None => {}
            }
        }
        (plugins, skipped)
    }
}

/// Returns the project settings about plugins that have no effect.
fn of_projects(config: &Loaded, known: &[DiscoveredPlugin]) -> BTreeSet<String> {
    let about = |it: &&ConfigProblem| {
        let key = it.pointer.as_deref();
        key.is_some_and(|key| key.starts_with("plugins."))
    };
    let named = config.problems.iter().filter(about);
    let settings = PluginSettings::from(&config.settings);
    let by_another_name = known.iter().filter_map(|it| {
        let plugin = it.plugin.as_ref();
        let source = plugin.and_then(|it| Spec::parse(&it.spec, &it.declared_in).ok());
        let spec = plugin.map_or("", |it| it.spec.as_str());
        let names = names_of(&it.candidate.id, spec, source.as_ref());
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let scope = plugin.map_or(PluginScope::Global, |it| it.scope);
        settings.refused_of_project(&names, scope)
    });
    named
        .map(ToString::to_string)
        .chain(by_another_name)
        .collect()
}

/// Collects the switches of a candidate, by its path and by its id.
fn switches(config: &Loaded, it: &mut DiscoveredPlugin, rules: &mut Rules) {
    let candidate = &it.candidate;
    let by_place = it.plugin.as_ref().and_then(|it| config.switch_by_place(it));
    let by_name = config.switch_by_name(&candidate.id, it.plugin.as_ref());
    // A project may switch only its own plugins, by path.
    let bound = |it: &outrigger_config::Switched| !it.on && candidate.of_project;
    let (place, name) = match (by_place, by_name) {
        (None, Some(name)) if bound(&name) => (Some(name), None),
        both => both,
    };
    let counts = name.as_ref().filter(|it| !(it.on && candidate.of_project));
    it.switched_on = match place.as_ref().or(counts) {
        Some(switch) => switch.on.then(|| switch.by.clone()),
        None => it.switched_on.clone(),
    };
    let mut put = |key: &str, on: bool, by: String| {
        rules.switches.insert(key.to_owned(), Switch { on, by });
    };
    match (place, name) {
        (None, None) => {
            if let Some(by) = it.switched_on.clone() {
                put(&candidate.id, true, by);
            }
        }
        (place, name) => {
            if let Some(place) = place {
                put(&candidate.place, place.on, place.by);
            }
            if let Some(name) = name {
                put(&candidate.id, name.on, name.by);
            }
        }
    }
}

/// OpenCode's entries have their own codes for these.
fn is_reported_later(entry: &SnapshotEntry) -> bool {
    matches!(
        entry.reason,
        Some(
            Reason::LeftOut { .. }
                | Reason::ForbiddenByManagedPolicy { .. }
                | Reason::SwitchedOff { .. }
                | Reason::ReservedBundledPluginId
        )
    )
}

impl SnapshotEntry {
    fn skipped(&self, plugin: PluginSpec) -> SkippedPlugin {
        SkippedPlugin {
            plugin,
            reason: SkipReason::NotAdmitted {
                id: self.id.clone(),
                reason: self.reason.as_ref().map_or("", Reason::name).to_owned(),
                why: self.why.clone(),
                remedy: self.remedy.clone().unwrap_or_default(),
            },
        }
    }
}

/// Returns the requirements of candidates that the machine meets.
fn machine(config: &Loaded, known: &[DiscoveredPlugin]) -> Machine {
    let env = config.env();
    let set = env.iter().filter(|(_, value)| !value.is_empty());
    let path: std::ffi::OsString = env.get("PATH").cloned().unwrap_or_default().into();
    let asked: BTreeSet<&String> = known
        .iter()
        .flat_map(|it| &it.candidate.external_bins)
        .collect();
    let there = asked
        .into_iter()
        .filter(|name| which(name, &path).is_some());
    Machine {
        env: set.map(|(name, _)| name.clone()).collect(),
        bins: there.cloned().collect(),
    }
}

fn shown(entry: Entry, known: DiscoveredPlugin) -> SnapshotEntry {
    let (layer, it) = (entry.layer(), entry.candidate);
    let enabled = entry.disabled.is_none();
    let optional = admission::bundled(&it.id).filter(|own| {
        own.optional && enabled && it.source == Source::Bundled && known.switched_on.is_none()
    });
    let why = match (&entry.disabled, &known.switched_on) {
        (Some(reason), _) => reason.text(),
        (None, _) if it.required => "required".to_owned(),
        (None, Some(by)) => format!("switched on by {by}"),
        (None, None) if it.profile.is_some() => match optional {
            Some(own) => format!(
                "in the profile; `{}` is offered where a permission rule or an agent names it",
                own.tools.join("`, `")
            ),
            None => "in the profile".to_owned(),
        },
        (None, None) if it.listed => "listed by OpenCode's configuration".to_owned(),
        (None, None) => "found; no rule excludes it".to_owned(),
    };
    SnapshotEntry {
        precedence: it.source.precedence(),
        source: it.source,
        place: it.place,
        kind: known.kind,
        version: known.version,
        manifest: known.manifest,
        enabled,
        optional: optional.is_some(),
        layer,
        remedy: entry.disabled.as_ref().map(|reason| reason.remedy(&it.id)),
        reason: entry.disabled,
        why,
        plugin: known.plugin,
        listed: it.listed,
        of_project: it.of_project,
        order: it.order,
        id: it.id,
    }
}
