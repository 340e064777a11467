//! Command hooks of a project among its plugins: listing their files, and which of them may run.

use outrigger_claude_hooks::{CommandFile, CommandHooks, Handler};
use outrigger_config::claude_hooks::Unreadable;
use outrigger_protocol::rpc::Instance;

use outrigger_plugin_registry::access::critical;
use outrigger_plugin_registry::access::settings::PluginSettings;
use outrigger_plugin_registry::error::PluginError;
use outrigger_plugin_registry::{Plugin, Registry};

/// Returns the files as plugins, to be listed after those of the configuration.
pub(crate) fn found(commands: Option<&CommandHooks>) -> Vec<Plugin> {
    let mut taken: Vec<String> = Vec::new();
    let mut named = |file: &CommandFile| {
        let id = file.id();
        let alike = taken.iter().filter(|other| **other == id).count();
        taken.push(id.clone());
        let id = match alike {
            0 => id,
            _ => format!("{id}#{}", alike + 1),
        };
        Plugin::found(id, &file.declared())
    };
    commands
        .iter()
        .flat_map(|commands| &commands.files)
        .map(&mut named)
        .collect()
}

/// Binds the files that may run; `base` is the index of the first one.
pub(crate) fn bind(
    commands: &CommandHooks,
    base: usize,
    registry: &Registry,
    settings: &PluginSettings,
    directory: &std::path::Path,
) -> Vec<Handler> {
    let mut handlers = Vec::new();
    for (index, file) in (base..).zip(&commands.files) {
        let spec = file.hooks.file.display().to_string();
        let id = registry.with(index, |plugin| plugin.id.clone());
        let rules = settings.rules(&id.unwrap_or_default(), &spec, file.declared().scope);
        let is_guard = critical::points(&rules).next().is_some();
        let (handler, wrong) = Handler::new(&file.hooks, directory, is_guard);
        registry.set_rules(index, rules.clone());
        if let Some(Unreadable { why, .. }) = file.hooks.unreadable.clone() {
            registry.fail(index, &PluginError::HooksUnreadable { spec, why });
        } else if !file.allowed {
            registry.fail(index, &PluginError::HooksNotAllowed { spec });
        } else if file.is_pure && !is_guard && !handler.blocks_on_failure() {
            registry.fail(index, &PluginError::Pure { spec });
        } else if rules.is_off(&file.declared()) {
            registry.fail(index, &PluginError::Disabled { spec });
        } else {
            let instance = Instance {
                export: "hooks".to_owned(),
                hooks: handler
                    .points()
                    .into_iter()
                    .map(|point| point.hook().to_owned())
                    .collect(),
                ..Instance::default()
            };
            registry.adopt_commands(index, instance);
            for message in wrong.into_iter().chain(file.hooks.left_out.clone()) {
                registry.warn(index, message);
            }
        }
        handlers.push(handler);
    }
    handlers
}
