//! Stable codes of the errors, for programs.

use super::PluginError;
use outrigger_protocol::diagnose::Diagnose;

/// Code of [`PluginError::Process`].
pub const PROCESS: &str = "plugin.process";

impl PluginError {
    pub(super) fn stable_code(&self) -> &'static str {
        match self {
            Self::Package(error) => error.code(),
            Self::Trust(error) => error.code(),
            Self::Pure { .. } => "plugin.pure",
            Self::LeftOut { .. } => "plugin.left_out",
            Self::Overridden { .. } => "plugin.overridden",
            Self::Replaced { .. } => "plugin.replaced",
            Self::Forbidden { .. } => "plugin.forbidden",
            Self::NotAdmitted { .. } => "plugin.not_admitted",
            Self::Required { .. } => "plugin.required",
            Self::NoGuard { .. } => "plugin.no_guard",
            Self::HooksUnreadable { .. } => "plugin.hooks_unreadable",
            Self::Life { .. } => "plugin.life_cycle",
            Self::Disabled { .. } => "plugin.disabled",
            Self::HooksNotAllowed { .. } => "plugin.hooks_not_allowed",
            Self::HostGone { .. } => "plugin.host_gone",
            Self::Requirements { .. } => "plugin.requirements",
            Self::DependsOn { .. } => "plugin.depends_on",
            Self::TooWide { .. } => "plugin.too_wide",
            Self::NoRuntime { .. } => "plugin.no_runtime",
            Self::Process { .. } => PROCESS,
            Self::Load { stage, .. } => match stage.as_str() {
                "import" => "plugin.import",
                "export" => "plugin.export",
                "server" => "plugin.server",
                _ => "plugin.load",
            },
            Self::Hung { .. } => "plugin.hung",
            Self::Crashed { .. } => "plugin.crashed",
            Self::Off { .. } => "plugin.off",
            Self::Tool { code, .. } | Self::Auth { code, .. } => code,
        }
    }
}
