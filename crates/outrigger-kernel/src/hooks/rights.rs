//! What a plugin may do at a point, within what the point allows (C3).

use super::points::HookPoint;
use super::spec::Phase;

/// What a handler may do besides looking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// Change what the point opens.
    pub patch: bool,
    /// Refuse where the point allows it.
    pub block: bool,
    /// The grant that it would take to change something there, for the message, where only that is missing.
    pub missing: Option<&'static str>,
    /// The grant that it would take to change who pays for a model request and what answers it, where it has not that one.
    pub account: Option<&'static str>,
}

/// C3's list for plugins with a manifest, as the points of today: the chains that make a request are views of
/// `llm.before_request`. What it lets be blocked is for policy plugins only, and those name it in their manifest.
const PATCHED: &[HookPoint] = &[
    HookPoint::LlmToolDefinition,
    HookPoint::LlmBeforeMessages,
    HookPoint::LlmBeforeSystem,
    HookPoint::LlmBeforeParams,
    HookPoint::LlmBeforeHeaders,
    HookPoint::LlmBeforeRequest,
    HookPoint::ToolAfterResult,
    HookPoint::ExecuteAfterStep,
];

impl Rights {
    /// Whatever the point allows: of plugins without a manifest, and where a manifest names the hook.
    pub const ALL: Self = Self {
        patch: true,
        block: true,
        missing: None,
        account: None,
    };

    /// Of a plugin whose manifest names no hooks. In the error phase everybody may add context (C4).
    #[must_use]
    pub fn unnamed(point: HookPoint) -> Self {
        Self {
            patch: PATCHED.contains(&point) || point.spec().phase == Phase::Error,
            block: false,
            missing: None,
            account: None,
        }
    }

    /// Without the right to change anything, which this grant of the user's would give.
    #[must_use]
    pub fn without(self, grant: &'static str) -> Self {
        Self {
            patch: false,
            missing: self.patch.then_some(grant),
            ..self
        }
    }

    /// Without what decides who pays for a model request and what answers it, which this grant of the user's would give.
    #[must_use]
    pub fn without_account(self, grant: &'static str) -> Self {
        Self {
            account: Some(grant),
            ..self
        }
    }
}
