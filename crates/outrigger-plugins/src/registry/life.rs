//! What changes of a plugin while it runs (C7).

use outrigger_protocol::rpc::LoadedPlugin;

use super::Registry;
use crate::admit::Fresh;
use crate::error::PluginError;
use crate::status::Stage;

impl Registry {
    /// How far it is.
    pub(crate) fn stage_now(&self, index: usize) -> Option<Stage> {
        self.with(index, |plugin| plugin.stage)
    }

    /// It is called no more, or again; its process stays. False when it is not in the state to do so.
    pub(crate) fn suspend(&self, index: usize, suspend: bool) -> bool {
        let (from, to) = match suspend {
            true => (Stage::Active, Stage::Suspended),
            false => (Stage::Suspended, Stage::Active),
        };
        let fits = self.with(index, |plugin| plugin.stage) == Some(from);
        if fits {
            self.stage(index, to);
        }
        fits
    }

    /// Puts files and rules in the place of those that it has, and answers those.
    pub(crate) fn exchange(&self, index: usize, fresh: Fresh) -> Option<Fresh> {
        let mut before = None;
        self.change(index, |plugin| {
            let resolved = plugin.resolved.replace(fresh.resolved);
            plugin.version = plugin.resolved.as_ref().and_then(|it| it.version.clone());
            let rules = std::mem::replace(&mut plugin.rules, fresh.rules);
            let verified = std::mem::replace(&mut plugin.verified, fresh.verified);
            let shown = std::mem::replace(&mut plugin.manifest, fresh.shown);
            before = resolved.map(|resolved| Fresh {
                resolved,
                rules,
                verified,
                shown,
            });
        });
        before
    }

    /// Why what a plugin answered is of no use; nothing of it is taken then.
    pub(crate) fn refuses(&self, index: usize, loaded: &LoadedPlugin) -> Option<PluginError> {
        let problem = loaded.problems.first()?;
        loaded.instances.is_empty().then(|| PluginError::Load {
            plugin: self
                .with(index, |plugin| plugin.id.clone())
                .unwrap_or_default(),
            stage: problem.stage.clone(),
            message: problem.message.clone(),
        })
    }
}
