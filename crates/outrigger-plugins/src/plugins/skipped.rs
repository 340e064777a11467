//! Entries that are not loaded: what that is called, and whether they are missed.

use outrigger_config::{SkipReason, SkippedPlugin};

use crate::error::PluginError;

/// Whether what an entry was to guard is refused without it: not when everything was left out together, nor when another
/// entry for the same plugin counts.
pub(super) fn guards(reason: &SkipReason) -> bool {
    match reason {
        SkipReason::Pure
        | SkipReason::LeftOut
        | SkipReason::Overridden { .. }
        | SkipReason::Replaced => false,
        SkipReason::NotAdmitted { reason, .. } => reason != "LeftOut",
        SkipReason::Policy { .. } => true,
    }
}

pub(super) fn why_skipped(skipped: &SkippedPlugin) -> PluginError {
    let spec = skipped.plugin.spec.clone();
    match &skipped.reason {
        SkipReason::Pure => PluginError::Pure { spec },
        SkipReason::LeftOut => PluginError::LeftOut { spec },
        SkipReason::Policy { file } => PluginError::Forbidden {
            spec,
            file: file.clone(),
        },
        SkipReason::Replaced => PluginError::Replaced { spec },
        SkipReason::NotAdmitted {
            id,
            reason,
            why,
            remedy,
        } => PluginError::NotAdmitted {
            id: id.clone(),
            reason: reason.clone(),
            why: why.clone(),
            remedy: remedy.clone(),
        },
        SkipReason::Overridden {
            spec: other,
            declared_in,
        } => PluginError::Overridden {
            spec,
            other: other.clone(),
            declared_in: declared_in.clone(),
        },
    }
}
