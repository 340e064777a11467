//! One `outrigger.toml`: its values with their places, checked against the table.

use std::path::Path;

use toml::de::{DeTable, DeValue};

use super::keys::{self, KEYS, Kind, Leaf, PLUGIN_KEYS};
use crate::ConfigError;
use crate::origin::Position;
use crate::suggest;

/// A setting of a file.
#[derive(Debug)]
pub(crate) struct Found {
    /// Dotted name.
    pub(crate) name: String,
    /// The plugin it is for, and the name of its setting.
    pub(crate) plugin: Option<(String, String)>,
    /// Checked value.
    pub(crate) leaf: Leaf,
    /// Where it stands.
    pub(crate) at: Position,
}

/// Reads a file's text.
///
/// # Errors
/// `config.syntax`, `config.unknown_setting` with a suggestion, `config.setting`; each with line and column.
pub(crate) fn parse(text: &str, path: &Path) -> Result<Vec<Found>, ConfigError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let file = path.display().to_string();
    let document = DeTable::parse(text).map_err(|error| {
        let at = Position::at(text, error.span().map_or(0, |span| span.start));
        ConfigError::Syntax {
            file: file.clone(),
            line: at.line,
            column: at.column,
            language: "TOML",
            message: error.message().lines().next().unwrap_or_default().into(),
            hint: "correct the text at this place; text values stand in double quotes".into(),
        }
    })?;
    let mut reader = Reader {
        text,
        file,
        found: Vec::new(),
    };
    reader.table("", document.get_ref())?;
    Ok(reader.found)
}

struct Reader<'a> {
    text: &'a str,
    file: String,
    found: Vec<Found>,
}

impl Reader<'_> {
    fn table(&mut self, section: &str, table: &DeTable<'_>) -> Result<(), ConfigError> {
        for (key, value) in table {
            let name = if section.is_empty() {
                key.get_ref().to_string()
            } else {
                keys::dotted(section, key.get_ref())
            };
            let is_section = KEYS
                .iter()
                .any(|known| known.name.split('.').next() == Some(&name) && known.name != name);
            let at = Position::at(self.text, value.span().start);
            if section.is_empty() && super::hands::SECTIONS.contains(&name.as_str()) {
                continue;
            }
            match value.get_ref() {
                DeValue::Table(inner) if section.is_empty() && name == "plugins" => {
                    self.plugins(inner)?
                }
                DeValue::Table(inner) if section.is_empty() && is_section => {
                    self.table(&name, inner)?
                }
                other if section.is_empty() && (is_section || name == "plugins") => {
                    return Err(self.wrong(&name, at, format!("a table `[{name}]`"), other));
                }
                other => match KEYS.iter().find(|known| known.name == name) {
                    Some(known) => {
                        let leaf = self.leaf(&name, known.kind, at, other)?;
                        self.found.push(Found {
                            name,
                            plugin: None,
                            leaf,
                            at,
                        });
                    }
                    None => {
                        return Err(self.unknown(
                            section,
                            &name,
                            Position::at(self.text, key.span().start),
                        ));
                    }
                },
            }
        }
        Ok(())
    }

    fn plugins(&mut self, table: &DeTable<'_>) -> Result<(), ConfigError> {
        for (id, value) in table {
            let section = keys::dotted("plugins", id.get_ref());
            let DeValue::Table(inner) = value.get_ref() else {
                let at = Position::at(self.text, value.span().start);
                return Err(self.wrong(
                    &section,
                    at,
                    format!("a table `[{section}]`"),
                    value.get_ref(),
                ));
            };
            for (key, value) in inner {
                let key_name = keys::plugin_key(key.get_ref());
                let name = keys::dotted(&section, key_name);
                let Some(known) = PLUGIN_KEYS.iter().find(|known| known.name == key_name) else {
                    return Err(self.unknown(
                        &section,
                        &name,
                        Position::at(self.text, key.span().start),
                    ));
                };
                let at = Position::at(self.text, value.span().start);
                let leaf = self.leaf(&name, known.kind, at, value.get_ref())?;
                let plugin = Some((id.get_ref().to_string(), known.name.to_owned()));
                self.found.push(Found {
                    name,
                    plugin,
                    leaf,
                    at,
                });
            }
        }
        Ok(())
    }

    fn leaf(
        &self,
        name: &str,
        kind: Kind,
        at: Position,
        value: &DeValue<'_>,
    ) -> Result<Leaf, ConfigError> {
        let leaf = match value {
            DeValue::Boolean(boolean) => Some(Leaf::Bool(*boolean)),
            DeValue::String(text) => Some(Leaf::Text(text.to_string())),
            DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
                .ok()
                .map(Leaf::Whole),
            DeValue::Array(items) => items
                .iter()
                .map(|item| list_item(item.get_ref()))
                .collect::<Option<_>>()
                .map(Leaf::List),
            _ => None,
        };
        leaf.and_then(|leaf| kind.accept(leaf))
            .ok_or_else(|| self.wrong(name, at, kind.expected(), value))
    }

    fn wrong(&self, key: &str, at: Position, expected: String, value: &DeValue<'_>) -> ConfigError {
        let found = match value {
            DeValue::String(text) => format!("{:?}", text.chars().take(30).collect::<String>()),
            DeValue::Integer(number) => number.as_str().to_owned(),
            DeValue::Boolean(boolean) => boolean.to_string(),
            DeValue::Float(_) => "a fraction".into(),
            DeValue::Datetime(_) => "a date".into(),
            DeValue::Array(_) => "a list".into(),
            DeValue::Table(_) => "a table".into(),
        };
        ConfigError::Setting {
            file: self.file.clone(),
            line: at.line,
            column: at.column,
            key: key.into(),
            expected,
            found,
        }
    }

    fn unknown(&self, section: &str, name: &str, at: Position) -> ConfigError {
        let (suggestion, known) = suggestion(section, name);
        ConfigError::UnknownSetting {
            file: self.file.clone(),
            line: at.line,
            column: at.column,
            key: name.into(),
            suggestion,
            known,
        }
    }
}

/// Lists hold texts and numbers, which the key's kind tells apart.
fn list_item(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .ok()
            .map(|number| number.to_string()),
        _ => None,
    }
}

/// The known setting nearest to an unknown one, and what is known in its section.
fn suggestion(section: &str, name: &str) -> (Option<String>, Vec<String>) {
    let written = name.rsplit('.').next().unwrap_or(name);
    if section.starts_with("plugins") {
        let known: Vec<String> = PLUGIN_KEYS.iter().map(|key| key.name.to_owned()).collect();
        return (
            suggest::nearest(written, known.iter().map(String::as_str)).map(str::to_owned),
            known,
        );
    }
    let mut known: Vec<String> = Vec::new();
    for key in KEYS {
        let here = match (section, key.name.split_once('.')) {
            ("", Some((table, _))) => Some(table),
            ("", None) => Some(key.name),
            (_, Some((table, rest))) if table == section => Some(rest),
            _ => None,
        };
        known.extend(
            here.filter(|here| !known.iter().any(|known| known == here))
                .map(str::to_owned),
        );
    }
    if section.is_empty() {
        known.push("plugins".into());
        known.extend(super::hands::SECTIONS.map(str::to_owned));
    }
    let near = suggest::nearest(written, known.iter().map(String::as_str)).map(str::to_owned);
    // The right key in the wrong section is as common as a slip of the pen.
    let elsewhere = || {
        let last = |key: &'static str| key.rsplit('.').next().unwrap_or(key);
        KEYS.iter()
            .find(|key| last(key.name) == written)
            .map(|key| key.name.to_owned())
    };
    (near.or_else(elsewhere), known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_the_place_and_the_way_out() {
        let mut seen = String::new();
        for text in [
            "sandbox = \"maybe\"",
            "sandbx = \"on\"",
            "[js]\nruntme = \"bun\"",
            "[js]\nruntime = 3",
            "[jss]\nruntime = \"bun\"",
            "[js]\nmax_steps = 3",
            "[tools]\n  output_bytes = -1",
            "[deadlines]\nfast_ms = 0.5",
            "js = true",
            "[plugins]\nfoo = 1",
            "[plugins.foo]\nprority = 1",
            "[plugins.\"@a/b\"]\nwhatever = 1",
            "[plugins.foo]\nenv = \"A_KEY\"",
            "[plugins.foo]\nenv = [\"A_*\"]",
            "[plugins.foo]\nports = [0]",
            "[plugins.guard]\nfail_closed = [\"chat.params\", 1]",
            "[flags]\nplugin_seq_hooks = \"yes\"",
            "nonsense_of_a_key = 1",
            "sandbox = on",
            "[js\n",
            "[js]\n[js]\n",
        ] {
            let error = parse(text, Path::new("outrigger.toml")).unwrap_err();
            seen += &format!("{error}\n  {}\n", error.hint().unwrap());
        }
        insta::assert_snapshot!(seen, @r#"
        outrigger.toml:1:11: setting `sandbox`: expected "on" or "off" or "strict", found "maybe"
          set `sandbox` to "on" or "off" or "strict", or remove it
        outrigger.toml:1:1: unknown setting `sandbx`
          did you mean `sandbox`?
        outrigger.toml:2:1: unknown setting `js.runtme`
          did you mean `runtime`?
        outrigger.toml:2:11: setting `js.runtime`: expected "auto" or "bun" or "node", found 3
          set `js.runtime` to "auto" or "bun" or "node", or remove it
        outrigger.toml:1:2: unknown setting `jss`
          did you mean `js`?
        outrigger.toml:2:1: unknown setting `js.max_steps`
          did you mean `agent.max_steps`?
        outrigger.toml:2:18: setting `tools.output_bytes`: expected a whole number from 1, found -1
          set `tools.output_bytes` to a whole number from 1, or remove it
        outrigger.toml:2:11: setting `deadlines.fast_ms`: expected a whole number from 1, found a fraction
          set `deadlines.fast_ms` to a whole number from 1, or remove it
        outrigger.toml:1:6: setting `js`: expected a table `[js]`, found true
          set `js` to a table `[js]`, or remove it
        outrigger.toml:2:7: setting `plugins.foo`: expected a table `[plugins.foo]`, found 1
          set `plugins.foo` to a table `[plugins.foo]`, or remove it
        outrigger.toml:2:1: unknown setting `plugins.foo.prority`
          did you mean `priority`?
        outrigger.toml:2:1: unknown setting `plugins."@a/b".whatever`
          known here: isolation, priority, chat_message, timeout_ms, unix_sockets, approve, rewrite, model, prompt, fail_closed, disabled, enabled, env, read, write, processes, hosts, ports
        outrigger.toml:2:7: setting `plugins.foo.env`: expected a list of names of variables as text, found "A_KEY"
          set `plugins.foo.env` to a list of names of variables as text, or remove it
        outrigger.toml:2:7: setting `plugins.foo.env`: expected a list of names of variables as text, found a list
          set `plugins.foo.env` to a list of names of variables as text, or remove it
        outrigger.toml:2:9: setting `plugins.foo.ports`: expected a list of port numbers from 1 to 65535, found a list
          set `plugins.foo.ports` to a list of port numbers from 1 to 65535, or remove it
        outrigger.toml:2:15: setting `plugins.guard.fail_closed`: expected a list of names, found a list
          set `plugins.guard.fail_closed` to a list of names, or remove it
        outrigger.toml:2:20: setting `flags.plugin_seq_hooks`: expected true or false, found "yes"
          set `flags.plugin_seq_hooks` to true or false, or remove it
        outrigger.toml:1:1: unknown setting `nonsense_of_a_key`
          known here: sandbox, strict_plugins, trust, discovery, telegram, js, deadlines, models, tools, agent, log, limits, claude, network, audit, flags, plugins, connectors, routes, capabilities, tool_limits, mcp
        outrigger.toml:1:11: not valid TOML: string values must be quoted, expected literal string
          correct the text at this place; text values stand in double quotes
        outrigger.toml:1:4: not valid TOML: unclosed table, expected `]`
          correct the text at this place; text values stand in double quotes
        outrigger.toml:2:2: not valid TOML: duplicate key
          correct the text at this place; text values stand in double quotes
        "#);
    }

    #[test]
    fn values() {
        let text = "sandbox = \"off\"\n[models]\nmax_retries = 0x10\n[plugins.\"@a/b\"]\nchatMessage = \"assistant\"\nfail_closed = [\"tool.execute.before\", \"permission.ask\"]\n";
        let found = parse(text, Path::new("f")).unwrap();
        let seen: Vec<String> = found
            .iter()
            .map(|f| format!("{} {:?} {}:{}", f.name, f.leaf, f.at.line, f.at.column))
            .collect();
        insta::assert_snapshot!(seen.join("\n"), @r#"
        models.max_retries Whole(16) 3:15
        plugins."@a/b".chat_message Text("assistant") 5:15
        plugins."@a/b".fail_closed List(["tool.execute.before", "permission.ask"]) 6:15
        sandbox Text("off") 1:11
        "#);
    }
}
