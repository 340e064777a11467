//! What programs know errors by.

use super::PluginError;

/// Code of [`PluginError::Process`].
pub(crate) const PROCESS: &str = "plugin.process";

impl PluginError {
    /// A stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Deprecated { .. } => "plugin.deprecated",
            Self::Pure { .. } => "plugin.pure",
            Self::LeftOut { .. } => "plugin.left_out",
            Self::Overridden { .. } => "plugin.overridden",
            Self::Replaced { .. } => "plugin.replaced",
            Self::Forbidden { .. } => "plugin.forbidden",
            Self::NotAdmitted { .. } => "plugin.not_admitted",
            Self::Required { .. } => "plugin.required",
            Self::Life { .. } => "plugin.life_cycle",
            Self::Signature { .. } => "plugin.signature",
            Self::NoServerEntry { .. } => "plugin.no_server_entry",
            Self::Disabled { .. } => "plugin.disabled",
            Self::HooksNotAllowed { .. } => "plugin.hooks_not_allowed",
            Self::Changed { .. } => "plugin.changed",
            Self::HostGone { .. } => "plugin.host_gone",
            Self::OwnManifest { .. } => "plugin.own_manifest",
            Self::Reserved { .. } => "plugin.reserved_id",
            Self::Requirements { .. } => "plugin.requirements",
            Self::DependsOn { .. } => "plugin.depends_on",
            Self::TooWide { .. } => "plugin.too_wide",
            Self::Untrusted { .. } => "plugin.untrusted",
            Self::NotAsPinned { .. } => "plugin.not_pinned",
            Self::WorldWritable { .. } => "plugin.world_writable",
            Self::Unreviewable { .. } => "plugin.unreviewable",
            Self::TrustFile { .. } => "plugin.trust_file",
            Self::Spec { .. } => "plugin.spec",
            Self::NotFound { .. } => "plugin.not_found",
            Self::NoEntry { .. } => "plugin.no_entry",
            Self::EntryMissing { .. } => "plugin.entry_missing",
            Self::EntryOutside { .. } => "plugin.entry_outside",
            Self::Manifest { .. } => "plugin.manifest",
            Self::Incompatible { .. } => "plugin.incompatible",
            Self::NoInstaller { .. } => "plugin.no_installer",
            Self::Install { .. } => "plugin.install",
            Self::NotInstalled { .. } => "plugin.not_installed",
            Self::Cache { .. } => "plugin.cache",
            Self::Bun { .. } => "plugin.bun",
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
            Self::Sandbox { .. } => "plugin.installer",
            Self::Tool { code, .. } | Self::Auth { code, .. } => code,
        }
    }
}
