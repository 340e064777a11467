//! Boxes of single processes of a [`crate::Spawner`] whose other processes are in a wider one: what a plugin brings runs
//! beside what the user configured, and gets no more than the plugin.

use std::any::Any;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::sync::{Arc, RwLock};

use outrigger_files::sync;
use outrigger_network_proxy::ProxyRedirect;

use crate::policy::Policy;

/// The sandbox of a process that is not that of its spawner.
#[derive(Clone)]
pub struct SandboxOverride {
    /// What it may touch. What the handle keeps from all of its processes is kept from it besides.
    pub policy: Policy,
    /// Variables behind those that the process is started with.
    pub variables: Vec<(OsString, OsString)>,
    /// Where its connections are redirected that know of no proxy ([`crate::Spec::proxy_redirect`]).
    pub proxy_redirect: Option<ProxyRedirect>,
    /// What lasts as long as the sandbox.
    pub held: Arc<dyn Any + Send + Sync>,
}

impl SandboxOverride {
    /// The address of its proxy, by which the host asks for it what its process would ask for itself. `None`: it connects to
    /// nothing.
    #[must_use]
    pub fn proxy(&self) -> Option<String> {
        let mut variables = self.variables.iter();
        let found = variables.find(|(name, _)| name == "HTTP_PROXY");
        found
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

/// Sandboxes by the label of the process ([`crate::Spec::label`]). Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct SandboxOverrides(Arc<RwLock<BTreeMap<String, SandboxOverride>>>);

impl SandboxOverrides {
    /// Processes with this label are started in this sandbox from now on.
    pub fn set(&self, label: impl Into<String>, own: SandboxOverride) {
        let mut overrides = sync::write(&self.0);
        overrides.insert(label.into(), own);
    }

    /// The sandbox of processes with this label, where they have one.
    #[must_use]
    pub fn of(&self, label: &str) -> Option<SandboxOverride> {
        let overrides = sync::read(&self.0);
        overrides.get(label).cloned()
    }
}
