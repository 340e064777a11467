//! A plugin for lists.

use outrigger_kernel::hooks::HookPoint;
use outrigger_protocol::rpc::Problem;

use super::Plugin;
use crate::status::{PluginStatus, SourceOf};

impl Plugin {
    pub(super) fn status(&self) -> PluginStatus {
        let hooks = self.instances.iter().flat_map(|i| i.hooks.iter());
        // For a point that a plugin declares, the name states the plugin.
        let hooks = hooks.filter(|name| HookPoint::parse(name).is_some() || name.contains('/'));
        let tools = self.instances.iter().flat_map(|i| i.tools.iter());
        let auth = self.instances.iter().filter_map(|i| i.auth.as_ref());
        let providers = self.instances.iter().filter_map(|i| i.provider.as_ref());
        PluginStatus {
            id: self.id.clone(),
            spec: self.spec.clone(),
            declared_in: self.declared_in.clone(),
            kind: self.kind,
            entry: self.resolved.as_ref().map(|r| r.file.clone()),
            version: self.version.clone(),
            stage: self.stage,
            state: self.stage.into(),
            cause: self.cause.clone(),
            warnings: self.warnings.clone(),
            notes: self.notes.clone(),
            hooks: each_once(hooks),
            tools: each_once(tools.map(|tool| &tool.name)),
            auth: each_once(auth.map(|auth| &auth.provider)),
            providers: each_once(providers),
            pid: None,
            generation: 0,
            usage: None,
            own_cpu_ms: 0,
            entered: Vec::new(),
            quarantine: self.quarantine.clone(),
            events_missed: 0,
            trust: self.verified.as_ref().map(|it| (&it.trusted).into()),
            manifest: self.manifest.clone(),
            // One that is not started has none.
            grants: self
                .resolved
                .as_ref()
                .map(|_| self.rules.user_grants.clone())
                .unwrap_or_default(),
            host: None,
            breakers: Vec::new(),
            load_ms: self.load_ms,
            source: self
                .resolved
                .as_ref()
                .map(|found| SourceOf::new(&found.file, &found.dir)),
        }
    }
}

// Formats a problem as a warning that follows the plugin's name. Most problems name their subject.
pub(super) fn warning(problem: Problem) -> String {
    match problem.stage.as_str() {
        "server" => format!("one of its functions failed: {}", problem.message),
        _ => problem.message,
    }
}

// A plugin with several hooks objects may have the same hook in each of them.
fn each_once<'a>(names: impl Iterator<Item = &'a String>) -> Vec<String> {
    let mut seen = std::collections::HashSet::new();
    names.filter(|name| seen.insert(*name)).cloned().collect()
}
