//! One `outrigger.toml`: its values with their positions, checked against the table.

use std::path::Path;

use outrigger_schema::Schema;
use serde_json::Value;
use toml::de::{DeTable, DeValue};

use super::sections::{PLUGIN_KEYS, SECTIONS};
use super::{keys, tool_execution, values};
use crate::ConfigError;
use crate::origin::{Lines, Position};
use crate::suggest;

/// A setting of a file.
#[derive(Debug)]
pub(crate) struct Found {
    /// Dotted name.
    pub(crate) name: String,
    /// The plugin, and the name of its setting.
    pub(crate) plugin: Option<(String, String)>,
    /// Checked value.
    pub(crate) value: Value,
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
        lines: Lines::of(text),
        file,
        found: Vec::new(),
    };
    reader.table("", document.get_ref())?;
    Ok(reader.found)
}

struct Reader<'a> {
    lines: Lines<'a>,
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
            let is_section = SECTIONS.iter().any(|section| section.name == name);
            let at = self.lines.at(value.span().start);
            if section.is_empty() && tool_execution::names().any(|it| it == name) {
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
                other => match keys::find(&name) {
                    Some(known) => {
                        let value = self.value(&name, &known.schema, at, other)?;
                        self.found.push(Found {
                            name,
                            plugin: None,
                            value,
                            at,
                        });
                    }
                    None => {
                        return Err(self.unknown(section, &name, self.lines.at(key.span().start)));
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
                let at = self.lines.at(value.span().start);
                return Err(self.wrong(
                    &section,
                    at,
                    format!("a table `[{section}]`"),
                    value.get_ref(),
                ));
            };
            for (key, value) in inner {
                let Some(known) = keys::find_for_plugin(key.get_ref()) else {
                    return Err(self.unknown(
                        &section,
                        &keys::dotted(&section, key.get_ref()),
                        self.lines.at(key.span().start),
                    ));
                };
                let name = keys::dotted(&section, known.name);
                let at = self.lines.at(value.span().start);
                let value = self.value(&name, &known.schema, at, value.get_ref())?;
                let plugin = Some((id.get_ref().to_string(), known.name.to_owned()));
                self.found.push(Found {
                    name,
                    plugin,
                    value,
                    at,
                });
            }
        }
        Ok(())
    }

    fn value(
        &self,
        name: &str,
        schema: &Schema,
        at: Position,
        value: &DeValue<'_>,
    ) -> Result<Value, ConfigError> {
        values::of_toml(schema, value).ok_or_else(|| self.wrong(name, at, schema.expected(), value))
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

/// Returns the known setting nearest to an unknown one, and the known ones in its section.
fn suggestion(section: &str, name: &str) -> (Option<String>, Vec<String>) {
    let written = name.rsplit('.').next().unwrap_or(name);
    if section.starts_with("plugins") {
        let known: Vec<String> = PLUGIN_KEYS.iter().map(|key| key.name.to_owned()).collect();
        return (
            suggest::nearest(written, known.iter().map(String::as_str)).map(str::to_owned),
            known,
        );
    }
    let last = |name: &'static str| name.rsplit('.').next().unwrap_or(name);
    let known: Vec<&str> = if section.is_empty() {
        let top = super::sections::TOP.iter().map(|key| key.name);
        let sections = SECTIONS.iter().map(|section| section.name);
        top.chain(sections)
            .chain(["plugins"])
            .chain(tool_execution::names())
            .collect()
    } else {
        SECTIONS
            .iter()
            .filter(|known| known.name == section)
            .flat_map(|section| section.keys)
            .map(|key| last(key.name))
            .collect()
    };
    let known: Vec<String> = known.into_iter().map(str::to_owned).collect();
    let near = suggest::nearest(written, known.iter().map(String::as_str)).map(str::to_owned);
    // The right key in the wrong section is as common as a typo.
    let elsewhere = || {
        keys::all()
            .find(|key| last(key.name) == written)
            .map(|key| key.name.to_owned())
    };
    (near.or_else(elsewhere), known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::diagnose::Diagnose;

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
            "[tui]\nkeys = { session_new = 3 }",
            "[tui.keys]\nsession_new = [\"ctrl+n\"]",
            "nonsense_of_a_key = 1",
            "sandbox = on",
            "[js\n",
            "[js]\n[js]\n",
        ] {
            let error = parse(text, Path::new("outrigger.toml")).unwrap_err();
            seen += &format!("{error}\n  {}\n", error.hint().unwrap());
        }
        insta::assert_snapshot!(seen, @r#"
        outrigger.toml:1:11: setting `sandbox`: expected "on", "off" or "strict", found "maybe"
          set `sandbox` to "on", "off" or "strict", or remove it
        outrigger.toml:1:1: unknown setting `sandbx`
          did you mean `sandbox`?
        outrigger.toml:2:1: unknown setting `js.runtme`
          did you mean `runtime`?
        outrigger.toml:2:11: setting `js.runtime`: expected "auto", "bun" or "node", found 3
          set `js.runtime` to "auto", "bun" or "node", or remove it
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
        outrigger.toml:2:8: setting `tui.keys`: expected a table of names with keys as text, such as `session_new = "ctrl+n"`, found a table
          set `tui.keys` to a table of names with keys as text, such as `session_new = "ctrl+n"`, or remove it
        outrigger.toml:1:1: setting `tui.keys`: expected a table of names with keys as text, such as `session_new = "ctrl+n"`, found a table
          set `tui.keys` to a table of names with keys as text, such as `session_new = "ctrl+n"`, or remove it
        outrigger.toml:1:1: unknown setting `nonsense_of_a_key`
          known here: sandbox, strict_plugins, trust, discovery, telegram, js, deadlines, models, tools, browser, agent, budget, log, limits, claude, network, audit, flags, tui, plugins, connectors, routes, capabilities, tool_limits, mcp
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
            .map(|f| format!("{} {} {}:{}", f.name, f.value, f.at.line, f.at.column))
            .collect();
        insta::assert_snapshot!(seen.join("\n"), @r#"
        models.max_retries 16 3:15
        plugins."@a/b".chat_message "assistant" 5:15
        plugins."@a/b".fail_closed ["tool.execute.before","permission.ask"] 6:15
        sandbox "off" 1:11
        "#);
    }
}
