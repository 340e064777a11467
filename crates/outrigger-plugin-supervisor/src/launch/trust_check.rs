//! Checks before a start that a plugin is what was trusted.

use std::sync::Arc;

use outrigger_plugin_package::ResolvedPlugin;
use outrigger_plugin_trust::{self as trust, Content};

use super::{Failed, Launch};

/// A plugin as it was right before its start.
pub(super) type Looked = (usize, ResolvedPlugin, Arc<Content>);

impl Launch {
    /// Checks that the plugins are what was trusted; one that is not is to blame.
    pub(super) async fn trusted(&self, members: &[usize]) -> Result<Vec<Looked>, Failed> {
        let mut looked = Vec::with_capacity(members.len());
        for index in members {
            // A hosted plugin is part of its host's package, and was trusted with it.
            let whose = self.registry.host_of(*index).unwrap_or(*index);
            let known = self.registry.with(whose, |plugin| {
                Some((plugin.resolved.clone()?, plugin.verified.clone()?))
            });
            let Some((resolved, verified)) = known.flatten() else {
                continue;
            };
            match trust::still(&resolved, &self.settings.trust, &verified).await {
                Ok(content) => looked.push((*index, resolved, content)),
                Err(error) => return Err(Failed::Culprit(*index, error.into())),
            }
        }
        Ok(looked)
    }

    /// Checks that the sources were not changed while they were loaded.
    pub(super) async fn untouched(&self, looked: Vec<Looked>) -> Result<(), Failed> {
        for (index, resolved, content) in looked {
            if let Err(error) = trust::untouched(&resolved, &self.settings.trust, &content).await {
                return Err(Failed::Culprit(index, error.into()));
            }
        }
        Ok(())
    }
}
