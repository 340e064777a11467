//! OpenCode's final steps on the merged document: defaults, modes as agents, `tools` as permissions, environment
//! switches.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use outrigger_schema::child;
use serde_json::{Map, Value, json};

use crate::load::layers;
use crate::load::loaded::Loaded;
use crate::load::loader::Loader;
use crate::load::plugins::PluginSelection;
use crate::opencode::check;
use crate::opencode::merge::Layered;
use crate::opencode::normalize;
use crate::opencode::permission::{self, SwitchedTool};
use crate::opencode::plugin_list::PluginSpec;
use crate::opencode::unmatched;
use crate::opencode::username;
use crate::origin::Positions;
use crate::origin::nearest;
use crate::project::chosen_providers::ChosenProviders;
use crate::{ConfigError, ConfigProblem, OpenCodeConfig, Origin, PolicyFile, Settings, settings};

/// Value that OpenCode writes into a file without `$schema`.
const SCHEMA: &str = "https://opencode.ai/config.json";

/// Returns plugins that refuse on failure.
fn guards(settings: &Settings, policies: &[PolicyFile]) -> BTreeSet<String> {
    let plugins = settings.plugins.iter();
    let closed = plugins.filter(|(_, it)| !it.fail_closed.is_empty());
    let required = policies
        .iter()
        .flat_map(|it| it.policy.plugins.require.keys());
    closed
        .map(|(name, _)| name)
        .chain(required)
        .cloned()
        .collect()
}

/// Sorts secrets so that one that contains another is removed from texts first.
pub(crate) fn longest_first(secrets: BTreeSet<String>) -> Vec<String> {
    let mut secrets: Vec<String> = secrets.into_iter().collect();
    secrets.sort_by_key(|it| std::cmp::Reverse(it.len()));
    secrets
}

impl Loader<'_> {
    /// The last steps.
    pub(crate) fn finish(mut self, config_dirs: Vec<PathBuf>) -> Result<Loaded, ConfigError> {
        self.default("$schema", SCHEMA.into());
        for key in ["agent", "mode", "command"] {
            self.default(key, Value::Object(Map::new()));
        }
        self.write_plugins();
        self.modes_to_agents();
        self.permission_variable()?;
        self.tools_to_permission();
        self.switches();
        let name = self
            .options
            .username
            .clone()
            .unwrap_or_else(|| username::of_process(&self.options.env));
        self.default("username", name.into());
        let mut settings = settings::load(self.options)?;
        let policies = std::mem::take(&mut self.policies);
        let PluginSelection {
            mut plugins,
            mut tool_files,
            mut skipped,
        } = self.take_selection();
        for policy in &policies {
            let reported = policy.apply(&mut settings.settings);
            self.problems.extend(reported);
            skipped.extend(policy.filter(&mut tool_files));
            skipped.extend(policy.filter(&mut plugins));
        }
        settings.settings.guards = guards(&settings.settings, &policies);
        settings.project();
        self.files.extend(settings.files);
        self.problems.extend(settings.problems);
        let unmatched = unmatched::problems(&self.merged.value, &self.merged.origins);
        self.problems.extend(unmatched);
        self.ask_of_files(&settings.settings);
        let (left_out, is_trusted) = self.counts();
        Ok(Loaded {
            chosen: ChosenProviders::default(),
            chosen_with_project: ChosenProviders::default(),
            asks: self.asks,
            left_out,
            is_trusted,
            secrets: longest_first(self.secrets.into_inner()),
            users: None,
            config: OpenCodeConfig::from_value(self.merged.value.clone(), &self.options.home)?,
            value: self.merged.value,
            origins: self.merged.origins,
            plugins,
            tool_files,
            skipped,
            policies,
            config_dirs,
            settings: settings.settings,
            settings_origins: settings.origins,
            files: self.files,
            problems: self.problems,
            options: self.options.clone(),
        })
    }

    /// Sets a key that no layer set. An empty text counts as unset, as in JavaScript.
    fn default(&mut self, key: &str, value: Value) {
        if matches!(self.merged.value.get(key), None | Some(Value::Null))
            || self.merged.value[key] == ""
        {
            self.merged.set(key, value, Origin::Default);
        }
    }

    fn write_plugins(&mut self) {
        let values: Vec<Value> = self.plugins.iter().map(PluginSpec::to_value).collect();
        self.merged
            .set("plugin", Value::Array(values), Origin::Default);
        if !self.plugins.is_empty() {
            self.merged.origins.remove("/plugin");
            let dir = layers::global_dir(self.options);
            let origins = self
                .plugins
                .iter()
                .map(|plugin| plugin.to_origin(&dir))
                .collect();
            self.merged
                .set("plugin_origins", Value::Array(origins), Origin::Default);
        }
        for (index, plugin) in self.plugins.iter().enumerate() {
            let origin = if plugin.declared_in == Path::new("OPENCODE_CONFIG_CONTENT") {
                Origin::Env {
                    name: "OPENCODE_CONFIG_CONTENT".into(),
                }
            } else {
                Origin::File {
                    path: plugin.declared_in.clone(),
                    line: 0,
                    column: 0,
                }
            };
            self.merged
                .origins
                .insert(format!("/plugin/{index}"), origin);
        }
    }

    /// Converts each entry of `mode` to a primary agent.
    fn modes_to_agents(&mut self) {
        let Some(Value::Object(modes)) = self.merged.value.get("mode").cloned() else {
            return;
        };
        let origins = self.merged.origins.clone();
        for (name, mut mode) in modes {
            if let Value::Object(entry) = &mut mode {
                entry.insert("mode".into(), "primary".into());
            }
            self.merged
                .absorb(json!({ "agent": { name.clone(): mode } }), &|pointer| {
                    {
                        let source = pointer.replacen("/agent", "/mode", 1);
                        match nearest(&origins, &source) {
                            // `mode: primary` is not written anywhere; it comes with the entry.
                            Origin::Default => nearest(&origins, &child("/mode", &name)),
                            origin => origin,
                        }
                    }
                });
        }
    }

    fn permission_variable(&mut self) -> Result<(), ConfigError> {
        const NAME: &str = "OPENCODE_PERMISSION";
        let Some(text) = self.options.env.get(NAME).filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            // OpenCode warns and continues. A rule that the user believes to be in force must at least be reported.
            let message = "not valid JSON; skipped".into();
            self.problems.push(ConfigProblem {
                file: NAME.into(),
                pointer: None,
                message,
            });
            return Ok(());
        };
        let mut layer = json!({ "permission": value });
        if let Some(wrong) = check::document(&layer).into_iter().next() {
            return Err(wrong.error(NAME, &Positions::new()));
        }
        normalize::file(&mut layer, &mut Positions::new());
        self.merged
            .absorb(layer, &|_| Origin::Env { name: NAME.into() });
        Ok(())
    }

    /// Adds the document's `tools` before its `permission`, which thereby has precedence.
    fn tools_to_permission(&mut self) {
        let Some(Value::Object(tools)) = self.merged.value.get("tools").cloned() else {
            return;
        };
        let mut together = Layered::new();
        let origins = std::mem::take(&mut self.merged.origins);
        for SwitchedTool {
            permission: name,
            action,
            tool,
        } in permission::from_tools(&tools)
        {
            let origin = nearest(&origins, &child("/tools", &tool));
            together.absorb(json!({ "permission": { name: action } }), &|_| {
                origin.clone()
            });
        }
        if let Some(own) = self.merged.value.get("permission") {
            together.absorb(json!({ "permission": own }), &|pointer| {
                nearest(&origins, pointer)
            });
        }
        self.merged.origins = origins
            .into_iter()
            .filter(|(at, _)| !at.starts_with("/permission"))
            .collect();
        if let (Some(map), Some(value)) = (
            self.merged.value.as_object_mut(),
            together.value.get("permission"),
        ) {
            map.insert("permission".into(), value.clone());
            self.merged.origins.extend(together.origins);
        }
    }

    /// Applies old keys and environment switches.
    fn switches(&mut self) {
        if self.merged.value.get("autoshare") == Some(&Value::Bool(true))
            && self.merged.value.get("share").is_none()
        {
            let origin = nearest(&self.merged.origins, "/autoshare");
            self.merged.set("share", "auto".into(), origin);
        }
        for (name, key) in [
            ("OPENCODE_DISABLE_AUTOCOMPACT", "auto"),
            ("OPENCODE_DISABLE_PRUNE", "prune"),
        ] {
            if layers::switch(self.options, name) {
                let layer = json!({ "compaction": { key: false } });
                self.merged
                    .absorb(layer, &|_| Origin::Env { name: name.into() });
            }
        }
    }
}
