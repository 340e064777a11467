//! What of a project's files counts before a person trusts the folder (issue 18).
//!
//! Until then a repository counts as written by others: what of its settings starts something, reads or sends
//! elsewhere, or loosens a rule is ignored, and the harmless rest counts. What is not known here to be harmless is
//! ignored, too.

pub(crate) mod asks;
pub(crate) mod chosen_providers;
pub(crate) mod command_words;
mod executed;
mod file_digest;
pub(crate) mod hook_programs;
pub(crate) mod named_files;
mod own_programs;
mod packages;
mod patterns;
mod plugin_files;
pub(crate) mod provider_choice;
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

/// The variable that trusts the folder that is started in, for automation.
pub const TRUST_PROJECT: &str = "OUTRIGGER_TRUST_PROJECT";

/// How much of a project's files counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ProjectConfig {
    /// All of it.
    #[default]
    All,
    /// All of it where it asks for nothing but this, which a person let count; else, or where nobody did, what is harmless.
    Trusted(Option<Vec<Asked>>),
}

/// Something in a project's files that takes trust.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Asked {
    /// The file, or the folder of a plugin or tool file.
    pub file: String,
    /// What: a JSON pointer, or the kind of file.
    pub what: String,
    /// SHA-256 of the value as it is written, in hexadecimal.
    pub hash: String,
    /// The whole value as it is written, for the question, and not kept.
    #[serde(skip)]
    pub shown: String,
    /// The whole value as it is written, while the settings are read.
    #[serde(skip)]
    pub(crate) value: Value,
}

/// Most rules of a project that count before it is trusted.
const MAX_RULES: usize = 500;

impl Asked {
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

    /// Whether it is the same, as it is. What has no hash cannot be known.
    pub(crate) fn is(&self, other: &Self) -> bool {
        !self.hash.is_empty()
            && (&self.file, &self.what, &self.hash) == (&other.file, &other.what, &other.hash)
    }
}

/// Most files that one value may take texts from.
const MAX_TEXTS: usize = 100;

/// A value as it is written, with what the files say that it takes texts from (`{file:…}`).
fn with_files(file: &Path, text: &str) -> Vec<u8> {
    let folder = file.parent().unwrap_or(file);
    let mut whole = text.as_bytes().to_vec();
    let named = text.split("{file:").skip(1);
    let named: BTreeSet<&str> = named
        .filter_map(|rest| Some(rest.split_once('}')?.0))
        .take(MAX_TEXTS)
        .collect();
    for path in named {
        let read = outrigger_files::read(&folder.join(path), outrigger_files::SETTINGS);
        whole.extend(digest(&read.unwrap_or_default()).into_bytes());
    }
    whole
}

/// SHA-256 in hexadecimal.
pub(crate) fn digest(bytes: &[u8]) -> String {
    outrigger_protocol::text::hex(&Sha256::digest(bytes))
}

/// What of `asks` is not among what is known.
#[must_use]
pub fn unknown<'a>(asks: &'a [Asked], known: &[Asked]) -> Vec<&'a Asked> {
    let is_new = |ask: &&Asked| !known.iter().any(|it| it.is(ask));
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
/// Keys of which an object, even an empty one, switches on what is built in, as `true` does.
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
/// What says of an agent whether it answers.
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
/// The same of a command.
const HARMLESS_OF_COMMANDS: &[&str] = &[
    "description",
    "model",
    "name",
    "subtask",
    "template",
    "variant",
];
/// Endings of files that a project may name by a relative path: texts for the model, which lie in no `.env` and which no rule of the user's
/// keeps from it.
const TEXTS: [&str; 3] = ["md", "mdc", "txt"];

/// Looks through a document of a project.
pub(crate) struct Sieve<'a> {
    /// The file that it is in.
    pub(crate) file: &'a Path,
    /// The folder of the project, from which nothing may lead out.
    pub(crate) project: &'a Path,
    /// Whether the user's rules let a file be read unasked.
    pub(crate) may_read: &'a dyn Fn(&Path) -> bool,
    /// Whether a model is of a provider that the user has chosen.
    pub(crate) may_choose: &'a dyn Fn(&Value) -> bool,
    /// Only look, and take nothing out.
    pub(crate) keep: bool,
    /// What was found.
    pub(crate) asks: Vec<Asked>,
}

impl Sieve<'_> {
    /// Takes out of the document what takes trust.
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
            // One by one: a list that is taken away as a whole hides what changed in it.
            ("mcp" | "provider" | "lsp" | "formatter", Value::Object(entries)) => {
                // One without entries switches on those that are built in.
                let is_switch = entries.is_empty() && SWITCHES.contains(&key);
                sieve.members(entries, &format!("/{key}"), |_, _, _| true);
                is_switch
            }
            ("plugin", Value::Array(list)) => sieve.elements(list, "/plugin", |_, _| true),
            ("instructions", Value::Array(list)) => {
                sieve.elements(list, "/instructions", |sieve, it| {
                    // What a file says is put into it names another one, or an address.
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

    /// Asks `takes` about each member, and takes those that it says yes to. `false`: the object itself stays.
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
                let ask = Asked::new(self.file, format!("{at}/{name}"), value);
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
        let asked = asks.iter().map(|it| Asked::new(self.file, at, it));
        let asked: Vec<Asked> = asked.map(|it| self.with_texts(it)).collect();
        self.asks.extend(asked);
        if !self.keep {
            *list = kept;
        }
        false
    }

    /// Rules that deny or ask narrow; others do not. Nobody writes more than [`MAX_RULES`] by hand, and each is held against each
    /// rule of the user's.
    fn rules(&mut self, value: &mut Value, at: &str) -> bool {
        if count(value) > MAX_RULES {
            return true;
        }
        let narrows = |value: &Value| value == "deny" || value == "ask";
        // The order counts, and so do rules that narrow what another one allows: what is let count is all of them.
        if loosens(value) && value.is_object() {
            self.asks.push(Asked::new(self.file, at, value));
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
            // As agents in files of their own have it that say nothing of the kind.
            ("options", Value::Object(options)) if options.is_empty() => false,
            (key, value) => !HARMLESS_OF_AGENTS.contains(&key) || sieve.leads_out(value),
        })
    }

    /// Takes out which agent a command is for, as it switches the user into that one, and a model of a provider that the user did not
    /// choose. The command stays.
    fn command_choices(&mut self, name: &str, command: &mut Value) -> bool {
        let Value::Object(fields) = command else {
            return false;
        };
        self.members(fields, &format!("/command/{name}"), |sieve, key, value| {
            key == "agent" || key == "model" && !(sieve.may_choose)(value)
        })
    }

    /// A template that runs nothing.
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

    /// Whether a text in it names a variable, or a file that is no text of the project.
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
        let named = text.split("{file:").skip(1);
        let mut named = named.filter_map(|rest| Some(rest.split_once('}')?.0));
        text.contains("{env:") || named.any(|path| !self.is_own_text(path))
    }

    /// A text with those of the project in it that it takes from files: what it says is decided by both.
    fn filled<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.filled_from(text, |path| match self.is_own_text(path) {
            true => self.content(path),
            false => String::new(),
        })
    }

    /// What is asked about with the texts of the project's files in it, as it will be read. What lies elsewhere is not shown, nor what
    /// rules of the user's keep.
    fn with_texts(&self, mut ask: Asked) -> Asked {
        if ask.shown.contains("{file:") {
            self.put_texts(&mut ask.value);
            ask.shown = ask.value.to_string();
        }
        ask
    }

    fn put_texts(&self, value: &mut Value) {
        match value {
            Value::String(text) => {
                let filled = self.filled_from(text, |path| match self.is_own(path, &[]) {
                    true => self.content(path),
                    false => format!("{{file:{path}}}"),
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

    /// What a file that is named holds.
    fn content(&self, path: &str) -> String {
        let path = self.file.parent().unwrap_or(self.file).join(path);
        let content = outrigger_files::read_to_string(&path, outrigger_files::SETTINGS);
        content.unwrap_or_default().trim().to_owned()
    }

    /// A relative path, perhaps a pattern, of texts that lie in the project.
    fn is_own_text(&self, path: &str) -> bool {
        self.is_own(path, &TEXTS)
    }

    /// The same of files with these endings; of all, where there are none.
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

/// How many rules there are in it.
fn count(rules: &Value) -> usize {
    match rules {
        Value::Object(rules) => rules.values().map(count).sum(),
        _ => 1,
    }
}

/// Whether a rule in it does not deny or ask.
fn loosens(rules: &Value) -> bool {
    match rules {
        Value::Object(rules) => rules.values().any(loosens),
        rule => rule != "deny" && rule != "ask",
    }
}
