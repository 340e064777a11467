//! Skill folders contributed by plugins (D9).

use std::path::{Path, PathBuf};

use outrigger_plugin_status::Stage;
use outrigger_protocol::id::PluginId;

use crate::plugins::Plugins;

impl Plugins {
    /// Returns the folders of running plugins' packages that their manifests name under `provides.skill_sources`. An entry that
    /// is not a folder or is outside the package is reported and skipped.
    #[must_use]
    pub fn skill_folders(&self) -> Vec<PathBuf> {
        let mut folders = Vec::new();
        for status in self.list() {
            let declared = status.manifest.as_ref().filter(|shown| shown.declared);
            let (Some(shown), Some(source)) = (declared, &status.source) else {
                continue;
            };
            if status.stage != Stage::Active {
                continue;
            }
            let kind = shown.manifest.kind;
            if !kind.brings_skills() && !shown.manifest.provides.skill_sources.is_empty() {
                tracing::warn!(
                    "[plugin] {}: the skills of `provides.skill_sources` are skipped: its manifest says that it is of the kind \"{}\", which does not bring them",
                    status.id,
                    kind.name()
                );
                continue;
            }
            for name in &shown.manifest.provides.skill_sources {
                let place = source.dir.join(name).canonicalize().ok();
                let root = source.dir.canonicalize().unwrap_or_default();
                match place.filter(|place| place.is_dir() && place.starts_with(&root)) {
                    Some(place) => folders.push(place),
                    None => tracing::warn!(
                        "[plugin] {}: the skills of `provides.skill_sources` in {name} are skipped: that is not a folder of its package",
                        status.id
                    ),
                }
            }
        }
        folders
    }

    /// Returns the plugin in whose folder a skill lies. `others` are folders in which more than a plugin lies: a plugin's folder with
    /// one of them in it is not its own alone.
    #[must_use]
    pub fn plugin_around(&self, skill: &Path, others: &[PathBuf]) -> Option<PluginId> {
        let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        let skill = real(skill);
        let others: Vec<PathBuf> = others.iter().map(|it| real(it)).collect();
        let around = self.list().into_iter().filter_map(|status| {
            let folder = real(&status.source?.dir);
            let is_own = !others.iter().any(|other| other.starts_with(&folder));
            (is_own && skill.starts_with(&folder)).then_some((folder, status.id))
        });
        let nearest = around.max_by_key(|(folder, _)| folder.components().count());
        nearest.map(|(_, id)| PluginId(id))
    }
}
