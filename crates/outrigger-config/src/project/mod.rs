//! Which project settings take effect before the user trusts the folder.
//!
//! Until then a repository counts as written by others: settings that start something, read or send data elsewhere, or loosen a
//! rule are ignored, and harmless ones take effect. A setting that is not known to be harmless is ignored too.

pub(crate) mod asks;
pub(crate) mod chosen_providers;
pub(crate) mod command_words;
pub(crate) mod executed;
mod file_digest;
pub(crate) mod hook_programs;
pub(crate) mod named_files;
mod own_programs;
mod packages;
mod patterns;
mod plugin_files;
pub(crate) mod provider_choice;
mod recipes;
pub(crate) mod secrets;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

use crate::opencode::substitute;
use crate::paths;

/// The variable that trusts the working directory, for automation.
pub const TRUST_PROJECT: &str = "OUTRIGGER_TRUST_PROJECT";

/// Which project settings take effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProjectConfig {
    /// All of them.
    #[default]
    All,
    /// All of them if the user accepted everything that they request; otherwise, or if nothing was accepted, only harmless ones.
    Trusted(Option<Vec<TrustRequest>>),
}

/// A request of project files that needs trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrustRequest {
    /// The file, or the folder of a plugin or tool file.
    pub file: String,
    /// A JSON pointer, or the kind of file.
    pub what: String,
    /// SHA-256 of the value as written, in hexadecimal.
    pub hash: String,
    /// The whole value as written, for the question; not stored.
    #[serde(skip)]
    pub shown: String,
    /// The whole value as written, while the settings are read.
    #[serde(skip)]
    pub(crate) value: Value,
}

/// Maximum number of a project's rules that take effect before it is trusted.
const MAX_RULES: usize = 500;

impl TrustRequest {
    pub(crate) fn new(file: &Path, what: impl Into<String>, value: &Value) -> Self {
        let text = value.to_string();
        Self {
            file: file.display().to_string(),
            what: what.into(),
            hash: digest(&with_files(file, &text)),
            shown: text,
            value: value.clone(),
        }
    }

    /// Returns whether both are the same request in the same state. One without a hash never equals another.
    pub(crate) fn is(&self, other: &Self) -> bool {
        !self.hash.is_empty()
            && (&self.file, &self.what, &self.hash) == (&other.file, &other.what, &other.hash)
    }
}

/// Maximum number of files that one value may take texts from.
const MAX_TEXTS: usize = 100;

/// Returns a value as written, with the content of the files that it takes texts from (`{file:…}`).
fn with_files(file: &Path, text: &str) -> Vec<u8> {
    let folder = file.parent().unwrap_or(file);
    let mut whole = text.as_bytes().to_vec();
    let named: BTreeSet<&str> = text
        .split("{file:")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once('}')?.0))
        .take(MAX_TEXTS)
        .collect();
    for path in named {
        let read = outrigger_files::read(&folder.join(path), outrigger_files::SETTINGS);
        whole.extend(digest(&read.unwrap_or_default()).into_bytes());
    }
    whole
}

/// Returns SHA-256 in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    outrigger_stdx::text::hex(&Sha256::digest(bytes))
}

/// Returns those of `asks` that are not known.
#[must_use]
pub fn unknown<'a>(asks: &'a [TrustRequest], known: &[TrustRequest]) -> Vec<&'a TrustRequest> {
    let is_new = |ask: &&TrustRequest| !known.iter().any(|it| it.is(ask));
    asks.iter().filter(is_new).collect()
}

/// Keys that start nothing, read nothing, send nothing elsewhere and loosen nothing: they choose among what the user has.
const HARMLESS: &[&str] = &[
    "$schema",
    "autoupdate",
    "compaction",
    "disabled_providers",
    "enabled_providers",
    "keybinds",
    "layout",
    "logLevel",
    "model",
    "small_model",
    "snapshot",
    "theme",
    "tui",
    "username",
    "watcher",
];
/// Keys for which an object, even an empty one, enables the built-in entries, as `true` does.
const SWITCHES: [&str; 2] = ["formatter", "lsp"];
/// Agents that come with the program. Where one of them is no longer there to be chosen, another one answers.
const BUILT_IN_AGENTS: [&str; 7] = [
    "build",
    "compaction",
    "explore",
    "general",
    "plan",
    "summary",
    "title",
];
/// Keys that determine whether an agent answers.
const CHOICE: [&str; 3] = ["disable", "hidden", "mode"];
/// The same of an agent.
const HARMLESS_OF_AGENTS: &[&str] = &[
    "color",
    "description",
    "disable",
    "hidden",
    "maxSteps",
    "mode",
    "model",
    "name",
    "prompt",
    "steps",
    "temperature",
    "top_p",
    "variant",
];
/// Harmless keys of a command.
const HARMLESS_OF_COMMANDS: &[&str] = &[
    "description",
    "model",
    "name",
    "subtask",
    "template",
    "variant",
];
/// Extensions of files that a project may name by a relative path: texts for the model, not in an `.env` and not denied by the
/// user's rules.
const TEXTS: [&str; 3] = ["md", "mdc", "txt"];

/// Filters a document of a project.
pub(crate) struct Sieve<'a> {
    /// Its file.
    pub(crate) file: &'a Path,
    /// The folder of the project; nothing may point outside it.
    pub(crate) project: &'a Path,
    /// Whether the user's rules let a file be read without approval.
    pub(crate) may_read: &'a dyn Fn(&Path) -> bool,
    /// Whether a model belongs to a provider that the user has chosen.
    pub(crate) may_choose: &'a dyn Fn(&Value) -> bool,
    /// Only report, and remove nothing.
    pub(crate) keep: bool,
    /// What was found.
    pub(crate) asks: Vec<TrustRequest>,
}

impl Sieve<'_> {
    /// Removes from the document what needs trust.
    pub(crate) fn document(&mut self, document: &mut Value) {
        let Value::Object(fields) = document else {
            return;
        };
        self.members(fields, "", |sieve, key, value| match (key, value) {
            ("permission", value) => sieve.rules(value, "/permission"),
            ("tools", Value::Object(tools)) => sieve.tools(tools, "/tools"),
            ("agent" | "mode", Value::Object(agents)) => {
                let at = format!("/{key}");
                sieve.members(agents, &at, |sieve, name, agent| {
                    sieve.agent(agent, &format!("{at}/{name}"))
                })
            }
            ("command", Value::Object(commands)) => {
                sieve.members(commands, "/command", |sieve, name, command| {
                    !sieve.is_harmless_command(command) || sieve.command_choices(name, command)
                })
            }
            // One by one: removing a list as a whole would hide what changed in it.
            ("mcp" | "provider" | "lsp" | "formatter", Value::Object(entries)) => {
                // An empty one enables the built-in entries.
                let is_switch = entries.is_empty() && SWITCHES.contains(&key);
                sieve.members(entries, &format!("/{key}"), |_, _, _| true);
                is_switch
            }
            ("plugin", Value::Array(list)) => sieve.elements(list, "/plugin", |_, _| true),
            ("instructions", Value::Array(list)) => {
                sieve.elements(list, "/instructions", |sieve, it| {
                    // A file name that is inserted from elsewhere could be any file or URL.
                    let is_own = |it: &str| !it.contains("{file:") && sieve.is_own_text(it);
                    !it.as_str().is_some_and(is_own)
                })
            }
            ("lsp" | "formatter", value) => *value != false,
            ("model" | "small_model", value) => {
                sieve.leads_out(value) || !(sieve.may_choose)(value)
            }
            ("share", Value::String(value)) => sieve.filled(value) == "auto",
            ("autoshare", value) => *value == true,
            (key, value) => !HARMLESS.contains(&key) || sieve.leads_out(value),
        });
        let is_empty = |it: &Value| it.as_object().is_some_and(Map::is_empty);
        for key in SWITCHES {
            if !self.keep && fields.get(key).is_some_and(is_empty) {
                fields.shift_remove(key);
            }
        }
    }

    /// Asks `takes` about each member, and removes those that it selects. `false`: the object itself stays.
    fn members(
        &mut self,
        fields: &mut Map<String, Value>,
        at: &str,
        takes: impl Fn(&mut Self, &str, &mut Value) -> bool,
    ) -> bool {
        let names: Vec<String> = fields.keys().cloned().collect();
        for name in names {
            let Some(value) = fields.get_mut(&name) else {
                continue;
            };
            if takes(self, &name, value) || name.contains("{env:") || name.contains("{file:") {
                let ask = TrustRequest::new(self.file, format!("{at}/{name}"), value);
                let ask = self.with_texts(ask);
                self.asks.push(ask);
                if !self.keep {
                    fields.shift_remove(&name);
                }
            }
        }
        false
    }

    fn elements(
        &mut self,
        list: &mut Vec<Value>,
        at: &str,
        takes: impl Fn(&Self, &Value) -> bool,
    ) -> bool {
        let (asks, kept): (Vec<Value>, Vec<Value>) =
            list.iter().cloned().partition(|it| takes(self, it));
        let asked: Vec<TrustRequest> = asks
            .iter()
            .map(|it| TrustRequest::new(self.file, at, it))
            .map(|it| self.with_texts(it))
            .collect();
        self.asks.extend(asked);
        if !self.keep {
            *list = kept;
        }
        false
    }

    /// Filters rules: those that deny or ask restrict; others do not. Nobody writes more than [`MAX_RULES`] by hand, and each is
    /// compared with each of the user's rules.
    fn rules(&mut self, value: &mut Value, at: &str) -> bool {
        if count(value) > MAX_RULES {
            return true;
        }
        let narrows = |value: &Value| value == "deny" || value == "ask";
        // The order matters, and so do rules that restrict what another one allows: all of them are accepted together.
        if loosens(value) && value.is_object() {
            self.asks.push(TrustRequest::new(self.file, at, value));
        }
        let Value::Object(rules) = value else {
            return !narrows(value);
        };
        self.members(rules, at, |sieve, name, rule| match rule {
            Value::Object(patterns) => {
                sieve.members(patterns, &format!("{at}/{name}"), |_, _, it| !narrows(it))
            }
            rule => !narrows(rule),
        })
    }

    fn tools(&mut self, tools: &mut Map<String, Value>, at: &str) -> bool {
        self.members(tools, at, |_, _, on| *on != false)
    }

    fn agent(&mut self, agent: &mut Value, at: &str) -> bool {
        let Value::Object(fields) = agent else {
            return true;
        };
        let name = at.rsplit('/').next().unwrap_or_default();
        let is_built_in = BUILT_IN_AGENTS.contains(&name);
        self.members(fields, at, |sieve, key, value| match (key, value) {
            (key, _) if is_built_in && CHOICE.contains(&key) => true,
            ("permission", value) => sieve.rules(value, &format!("{at}/permission")),
            ("tools", Value::Object(tools)) => sieve.tools(tools, &format!("{at}/tools")),
            ("model", value) => sieve.leads_out(value) || !(sieve.may_choose)(value),
            // The same as in agent files without such keys.
            ("options", Value::Object(options)) if options.is_empty() => false,
            (key, value) => !HARMLESS_OF_AGENTS.contains(&key) || sieve.leads_out(value),
        })
    }

    /// Removes the agent of a command, since it would switch the user to that one, and a model of a provider that the user did
    /// not choose. The command stays.
    fn command_choices(&mut self, name: &str, command: &mut Value) -> bool {
        let Value::Object(fields) = command else {
            return false;
        };
        self.members(fields, &format!("/command/{name}"), |sieve, key, value| {
            key == "agent" || key == "model" && !(sieve.may_choose)(value)
        })
    }

    /// Returns whether the template runs nothing.
    fn is_harmless_command(&self, command: &Value) -> bool {
        let Value::Object(fields) = command else {
            return false;
        };
        let template = fields.get("template").and_then(Value::as_str);
        template.is_none_or(|text| !self.filled(text).contains("!`"))
            && fields
                .keys()
                .all(|key| key == "agent" || HARMLESS_OF_COMMANDS.contains(&key.as_str()))
            && !fields.values().any(|value| self.leads_out(value))
    }

    /// Returns whether a text in it names a variable, or a file that is not a text of the project.
    fn leads_out(&self, value: &Value) -> bool {
        match value {
            Value::String(text) => self.text_leads_out(text),
            Value::Array(items) => items.iter().any(|it| self.leads_out(it)),
            Value::Object(fields) => fields
                .iter()
                .any(|(key, it)| self.text_leads_out(key) || self.leads_out(it)),
            _ => false,
        }
    }

    fn text_leads_out(&self, text: &str) -> bool {
        let mut named = text
            .split("{file:")
            .skip(1)
            .filter_map(|rest| Some(rest.split_once('}')?.0));
        text.contains("{env:") || named.any(|path| !self.is_own_text(path))
    }

    /// Returns a text with the project's texts inserted that it takes from files: both determine its meaning.
    fn filled<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.filled_from(text, |path| {
            if self.is_own_text(path) {
                self.content(path)
            } else {
                String::new()
            }
        })
    }

    /// Inserts the texts of the project's files into a request, as it will be read. Files elsewhere are not shown, nor those that
    /// the user's rules deny.
    fn with_texts(&self, mut ask: TrustRequest) -> TrustRequest {
        if ask.shown.contains("{file:") {
            self.put_texts(&mut ask.value);
            ask.shown = ask.value.to_string();
        }
        ask
    }

    fn put_texts(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let filled = self.filled_from(text, |path| {
                    if self.is_own(path, &[]) {
                        self.content(path)
                    } else {
                        format!("{{file:{path}}}")
                    }
                });
                *text = filled.into_owned();
            }
            Value::Array(items) => items.iter_mut().for_each(|it| self.put_texts(it)),
            Value::Object(fields) => fields.values_mut().for_each(|it| self.put_texts(it)),
            _ => {}
        }
    }

    fn filled_from<'t>(&self, text: &'t str, content: impl Fn(&str) -> String) -> Cow<'t, str> {
        if !text.contains("{file:") {
            return Cow::Borrowed(text);
        }
        let filled = substitute::expand(text, "{file:", |path| Ok(content(path)));
        filled.map_or(Cow::Borrowed(text), Cow::Owned)
    }

    /// Returns the content of a named file.
    fn content(&self, path: &str) -> String {
        let path = self.file.parent().unwrap_or(self.file).join(path);
        let content = outrigger_files::read_to_string(&path, outrigger_files::SETTINGS);
        content.unwrap_or_default().trim().to_owned()
    }

    /// Returns whether it is a relative path, perhaps a pattern, of texts in the project.
    fn is_own_text(&self, path: &str) -> bool {
        self.is_own(path, &TEXTS)
    }

    /// Like [`Self::is_own_text`], for files with these extensions; all, if empty.
    fn is_own(&self, path: &str, endings: &[&str]) -> bool {
        let fits = |path: &Path| endings.is_empty() || paths::has_extension(path, endings);
        let relative = Path::new(path);
        let plain = !path.contains("://") && !path.starts_with('~') && relative.is_relative();
        if !plain || path.split('/').any(|step| step == "..") {
            return false;
        }
        let folder = self.file.parent().unwrap_or(self.file);
        let real = folder.join(relative).canonicalize();
        let stays = |real: std::path::PathBuf| {
            real.starts_with(self.project) && fits(&real) && (self.may_read)(&real)
        };
        fits(relative) && real.map_or(true, stays)
    }
}

/// Returns the number of rules in it.
fn count(rules: &Value) -> usize {
    match rules {
        Value::Object(rules) => rules.values().map(count).sum(),
        _ => 1,
    }
}

/// Returns whether a rule in it does not deny or ask.
fn loosens(rules: &Value) -> bool {
    match rules {
        Value::Object(rules) => rules.values().any(loosens),
        rule => rule != "deny" && rule != "ask",
    }
}
