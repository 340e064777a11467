//! Sandboxes of single processes of a [`crate::Spawner`] whose other processes have a wider one: what a plugin contributes
//! runs next to what the user configured, and gets no more access than the plugin.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::{Arc, RwLock};

use outrigger_network_proxy::ProxyRedirect;
use outrigger_stdx::sync;

use crate::policy::Policy;

/// A sandbox that replaces the spawner's for one process.
#[derive(Clone)]
pub struct SandboxOverride {
    /// What it may access. Whatever the handle masks from all its processes stays masked.
    pub policy: Policy,
    /// Variables that follow those given for the process.
    pub variables: Vec<(OsString, OsString)>,
    /// Where connections of programs without proxy support are redirected ([`crate::Spec::proxy_redirect`]).
    pub proxy_redirect: Option<ProxyRedirect>,
    /// Values that live as long as the sandbox.
    pub held: Arc<dyn Any + Send + Sync>,
}

impl SandboxOverride {
    /// Returns the address of its proxy, which the host uses for requests on behalf of the process. `None`: it may not
    /// connect to anything.
    #[must_use]
    pub fn proxy(&self) -> Option<String> {
        let mut variables = self.variables.iter();
        variables
            .find(|(name, _)| name == "HTTP_PROXY")
            .and_then(|(_, address)| address.to_str())
            .map(str::to_owned)
    }
}

impl fmt::Debug for SandboxOverride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxOverride")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// Sandboxes by the label of the process ([`crate::Spec::label`]). Clones share one list.
#[derive(Clone, Debug, Default)]
pub struct SandboxOverrides(Arc<RwLock<BTreeMap<String, SandboxOverride>>>);

impl SandboxOverrides {
    /// Starts processes with this label in this sandbox from now on.
    pub fn set(&self, label: impl Into<String>, own: SandboxOverride) {
        let mut overrides = sync::write(&self.0);
        overrides.insert(label.into(), own);
    }

    /// Returns the sandbox of processes with this label, if they have their own.
    #[must_use]
    pub fn of(&self, label: &str) -> Option<SandboxOverride> {
        let overrides = sync::read(&self.0);
        overrides.get(label).cloned()
    }
}
