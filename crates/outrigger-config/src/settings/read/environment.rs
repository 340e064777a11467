//! Settings as environment variables: `js.runtime` is `OUTRIGGER_JS_RUNTIME`.

use outrigger_schema::Schema;

use super::SettingsLoaded;
use crate::settings::sections::{PLUGIN_KEYS, SECTIONS};
use crate::settings::toml_file::Found;
use crate::settings::{keys, values};
use crate::suggest;
use crate::{ConfigError, ConfigProblem, LoadOptions, Origin};

impl SettingsLoaded {
    /// Reads every variable that names a setting.
    pub(super) fn environment(&mut self, options: &LoadOptions) -> Result<(), ConfigError> {
        for (variable, text) in options
            .env
            .iter()
            .filter(|(name, text)| name.starts_with("OUTRIGGER_") && !text.is_empty())
        {
            let (name, plugin, schema) = match self.named(variable) {
                Named::Key(name, schema) => (name.to_owned(), None, schema),
                Named::Plugin(id, key, schema) => (
                    keys::dotted(&keys::dotted("plugins", &id), key),
                    Some((id, key.to_owned())),
                    schema,
                ),
                Named::Unknown(near) => {
                    self.problems.push(unknown(variable, near));
                    continue;
                }
                Named::NotOurs => continue,
            };
            let value = values::of_variable(schema, text).ok_or_else(|| ConfigError::Setting {
                file: variable.clone(),
                line: 0,
                column: 0,
                key: name.clone(),
                expected: schema.expected(),
                found: format!("{:?}", text.chars().take(30).collect::<String>()),
            })?;
            let value = values::absolute(schema, value, &options.directory, &options.home);
            let found = Found {
                name,
                plugin,
                value,
                at: crate::origin::Position::default(),
            };
            self.apply(
                &found,
                Origin::Env {
                    name: variable.clone(),
                },
            );
        }
        Ok(())
    }

    /// Returns what a variable names.
    fn named(&self, variable: &str) -> Named {
        // The short names are those in the documentation of the runtime search.
        let variable = match variable {
            "OUTRIGGER_BUN" => "OUTRIGGER_JS_BUN",
            "OUTRIGGER_NODE" => "OUTRIGGER_JS_NODE",
            other => other,
        };
        if let Some(key) = keys::all().find(|key| of_key(key.name) == variable) {
            return Named::Key(key.name, &key.schema);
        }
        if let Some(rest) = variable.strip_prefix("OUTRIGGER_PLUGINS_") {
            let fits = |key: &str| {
                rest.strip_suffix(&key.to_uppercase())
                    .and_then(|id| id.strip_suffix('_'))
            };
            if let Some((key, id)) = PLUGIN_KEYS
                .iter()
                .find_map(|key| Some((key, fits(key.name)?)))
            {
                let of_project = self
                    .of_project
                    .iter()
                    .filter_map(|(found, _)| found.plugin.as_ref());
                let mut names = self.settings.plugins.keys();
                let names = names.by_ref().chain(of_project.map(|(name, _)| name));
                let known = names.into_iter().find(|known| upper(known) == id).cloned();
                let id = known.unwrap_or_else(|| id.to_lowercase().replace('_', "-"));
                return Named::Plugin(id, key.name, &key.schema);
            }
            return Named::Unknown(None);
        }
        let ours = SECTIONS
            .iter()
            .any(|section| variable.starts_with(&format!("OUTRIGGER_{}_", upper(section.name))));
        if !ours || variable == crate::TRUST_PROJECT {
            return Named::NotOurs;
        }
        let names: Vec<String> = keys::all()
            .map(|key| of_key(key.name).to_lowercase())
            .collect();
        let near = suggest::nearest(variable, names.iter().map(String::as_str));
        Named::Unknown(near.map(str::to_uppercase))
    }
}

enum Named {
    Key(&'static str, &'static Schema),
    Plugin(String, &'static str, &'static Schema),
    /// It begins like a section but names nothing; with a suggestion.
    Unknown(Option<String>),
    /// Another part of the program may read it.
    NotOurs,
}

fn unknown(variable: &str, near: Option<String>) -> ConfigProblem {
    let message = match near {
        Some(near) => format!("no setting has this variable; did you mean {near}?"),
        None => "no setting has this variable".into(),
    };
    ConfigProblem {
        file: variable.into(),
        pointer: None,
        message,
    }
}

/// Returns the variable of a setting: `js.runtime` is `OUTRIGGER_JS_RUNTIME`.
pub(super) fn of_key(name: &str) -> String {
    format!("OUTRIGGER_{}", upper(name))
}

fn upper(name: &str) -> String {
    name.chars()
        .map(|c| {
            if c.is_ascii_alphanumeric() {
                c.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect()
}
