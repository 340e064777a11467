//! Rights of a plugin at a point, within what the point allows (C3).

use super::points::HookPoint;
use super::spec::Phase;

/// Rights of a handler besides reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// May change the open fields.
    pub patch: bool,
    /// May refuse, if the point allows it.
    pub block: bool,
    /// The grant needed to change something there, for the message, if only that is missing.
    pub missing: Option<&'static str>,
    /// The missing grant needed to change who pays for a model request and what answers it.
    pub account: Option<&'static str>,
}

/// C3's list for plugins with a manifest, as today's points: the chains that build a request are views of
/// `llm.before_request`. Points that it allows to be blocked are for policy plugins only, which name them in their
/// manifest.
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
    /// Everything that the point allows: for plugins without a manifest, and for hooks that a manifest names.
    pub const ALL: Self = Self {
        patch: true,
        block: true,
        missing: None,
        account: None,
    };

    /// Returns the rights of a plugin whose manifest names no hooks. In the error phase every plugin may add context (C4).
    #[must_use]
    pub fn unnamed(point: HookPoint) -> Self {
        Self {
            patch: PATCHED.contains(&point) || point.spec().phase == Phase::Error,
            block: false,
            missing: None,
            account: None,
        }
    }

    /// Removes the right to change anything; the user's grant `grant` would give it.
    #[must_use]
    pub fn without(self, grant: &'static str) -> Self {
        Self {
            patch: false,
            missing: self.patch.then_some(grant),
            ..self
        }
    }

    /// Removes the right to change who pays for a model request and what answers it; the user's grant `grant` would give
    /// it.
    #[must_use]
    pub fn without_account(self, grant: &'static str) -> Self {
        Self {
            account: Some(grant),
            ..self
        }
    }
}
