//! Loading everything: the layers in their order, then OpenCode's steps on the merged document.

pub(crate) mod discovery;
pub(crate) mod layers;
pub(crate) mod links;
pub(crate) mod loaded;
pub(crate) mod loader;
pub(crate) mod options;
pub(crate) mod plugin_folders;
pub(crate) mod plugins;

use std::cell::OnceCell;
use std::path::PathBuf;

use outrigger_schema::child;
use serde_json::Value;

use links::USERS_COUNTS;
use loaded::Loaded;
use loader::{Extent, Loader};
use options::LoadOptions;

use crate::origin::nearest;
use crate::project::chosen_providers::ChosenProviders;
use crate::{
    ConfigError, ConfigProblem, OpenCodeConfig, ProjectConfig, Settings, narrow_providers, unknown,
};

/// Reads the whole configuration. Nothing is written and no folder is made.
///
/// # Errors
/// A file that cannot be read or parsed, a known key of the wrong type, a `{file:…}` that is not there, an unknown
/// setting in outrigger.toml: a [`ConfigError`], which names the file and the place.
pub fn load(options: &LoadOptions) -> Result<Loaded, ConfigError> {
    let mut loaded = match &options.project {
        ProjectConfig::All => load_as(options, Extent::Everything)?,
        ProjectConfig::Trusted(None) => load_as(options, Extent::Harmless)?,
        ProjectConfig::Trusted(Some(known)) => {
            let mut harmless = load_as(options, Extent::Harmless)?;
            if !unknown(&harmless.asks, known).is_empty() {
                harmless
            } else if harmless.asks.is_empty() {
                harmless.is_trusted = true;
                harmless
            } else {
                let whole = load_as(options, Extent::Everything)?;
                // A file may have changed meanwhile.
                if unknown(&whole.asks, known).is_empty() {
                    whole
                } else {
                    harmless
                }
            }
        }
    };
    let has_project = |file: &PathBuf| layers::is_project_folder(options, file.parent());
    loaded.chosen = ChosenProviders::new(options, &loaded.value);
    if loaded.files.iter().any(has_project) {
        let users = load_as(options, Extent::Nothing)?;
        loaded.chosen = ChosenProviders::new(options, &users.value);
        let narrowed = narrow_providers(&mut loaded.value, &users.value);
        if !loaded.is_trusted {
            let left_out = keep_users(&mut loaded.value, &users.value).into_iter();
            loaded
                .problems
                .extend(left_out.map(|pointer| ConfigProblem {
                    file: nearest(&loaded.origins, &pointer).to_string(),
                    pointer: Some(pointer),
                    message: USERS_COUNTS.to_owned(),
                }));
        }
        if !loaded.is_trusted || !narrowed.is_empty() {
            loaded.config = OpenCodeConfig::from_value(loaded.value.clone(), &options.home)?;
        }
        loaded.users = Some(Box::new(users.config));
    }
    loaded.chosen_with_project = ChosenProviders::new(options, &loaded.value);
    Ok(loaded)
}

/// Restores the user's own agents and commands if an untrusted project redefines them: of its definitions only restricting rules
/// of an agent take effect. Returns where something was ignored.
fn keep_users(value: &mut Value, users: &Value) -> Vec<String> {
    let mut left_out = Vec::new();
    for section in ["agent", "command", "mode"] {
        let own = users.get(section).and_then(Value::as_object);
        for (name, own) in own.into_iter().flatten() {
            let entry = value.get_mut(section).and_then(|it| it.get_mut(name));
            let Some(entry) = entry.filter(|it| *it != own) else {
                continue;
            };
            let rules = entry.get_mut("permission").map(Value::take);
            let mut before = std::mem::replace(entry, own.clone());
            if let (Value::Object(fields), Some(rules)) = (&mut *entry, rules) {
                fields.insert("permission".to_owned(), rules.clone());
                before["permission"] = rules;
            }
            if *entry != before && section != "mode" {
                left_out.push(child(&child("", section), name));
            }
        }
    }
    left_out
}

fn load_as(options: &LoadOptions, extent: Extent) -> Result<Loaded, ConfigError> {
    // Computed only when a project chooses a model, which does not happen if only the user's files are read.
    let chosen = OnceCell::new();
    let may_choose = move |model: &Value| {
        let chosen = chosen.get_or_init(|| chosen_providers(options));
        chosen.have(model)
    };
    let mut loader = Loader::new(options, extent, may_choose)?;
    loader.global()?;
    if let Some(path) = layers::path_variable(options, "OPENCODE_CONFIG") {
        if !path.exists() {
            // Silent in OpenCode, which makes a mistyped path hard to find.
            let message = format!("{} does not exist", path.display());
            loader.problems.push(ConfigProblem {
                file: "OPENCODE_CONFIG".into(),
                pointer: None,
                message,
            });
        }
        loader.file(&path)?;
    }
    for dir in layers::project_dirs(options) {
        loader.within(&dir, |loader| loader.files_of(&dir))?;
    }
    let config_dirs = layers::config_dirs(options);
    for dir in &config_dirs {
        loader.within(dir, |loader| loader.config_dir(dir))?;
    }
    loader.content_variable()?;
    if let Some(dir) = &options.managed {
        loader.files_of(dir)?;
    }
    loader.finish(config_dirs)
}

/// Returns the providers of models that the user has chosen, ignoring the project's settings.
fn chosen_providers(options: &LoadOptions) -> ChosenProviders {
    // Unreadable files fail the start shortly after.
    let users = load_as(options, Extent::Nothing).map(|it| it.value);
    ChosenProviders::new(options, &users.unwrap_or_default())
}

/// Reads `outrigger.toml` and the environment alone.
///
/// # Errors
/// As [`load`].
pub fn load_settings(options: &LoadOptions) -> Result<Settings, ConfigError> {
    crate::settings::load(options).map(|it| it.settings)
}

/// What the user's own files say, merged, in OpenCode's form.
///
/// # Errors
/// As [`load`].
pub fn load_global(options: &LoadOptions) -> Result<Value, ConfigError> {
    Ok(global_with_secrets(options)?.0)
}

/// The same without its secrets.
///
/// # Errors
/// As [`load`].
pub fn load_global_redacted(options: &LoadOptions) -> Result<Value, ConfigError> {
    let (value, secrets) = global_with_secrets(options)?;
    Ok(crate::redact::without(&value, &secrets))
}

fn global_with_secrets(options: &LoadOptions) -> Result<(Value, Vec<String>), ConfigError> {
    let mut loader = Loader::new(options, Extent::Everything, |_| true)?;
    let dir = layers::global_dir(options);
    let mut merged = Value::Object(serde_json::Map::new());
    for name in layers::GLOBAL_FILES {
        if let Some(document) = loader.read(&dir.join(name))? {
            crate::merge(&mut merged, document.value);
        }
    }
    let secrets = crate::opencode::finish::longest_first(loader.secrets.into_inner());
    Ok((merged, secrets))
}
