//! Unknown keys of opencode.json: mostly typos, by which a setting is silently lost.

use outrigger_schema::child;
use serde_json::Value;

use super::keys::CONFIG;
use crate::opencode::unmatched;
use crate::origin::{Positions, position_of};
use crate::suggest::nearest;
use crate::{ConfigError, ConfigProblem};

/// OpenCode's keys that have no meaning here.
const OF_OPENCODE: [&str; 9] = [
    "attachment",
    "enterprise",
    "keybinds",
    "layout",
    "reference",
    "references",
    "server",
    "theme",
    "tui",
];
/// Where an agent may have rules.
const AGENTS: [&str; 2] = ["agent", "mode"];

/// The keys of a document that nothing reads, with their lines. Below the first level, where OpenCode and plugins take what they like, only
/// those that are near to one that is read.
///
/// # Errors
/// `config.unknown_setting` for one by which rules are lost: `permissions`, `permission.edti`.
pub(crate) fn keys(
    document: &Value,
    file: &str,
    positions: &Positions,
) -> Result<Vec<ConfigProblem>, ConfigError> {
    let misspelt = |pointer: &str, meant: &str| {
        let at = position_of(positions, pointer);
        ConfigError::UnknownSetting {
            file: file.to_owned(),
            line: at.line,
            column: at.column,
            key: dotted(pointer),
            suggestion: Some(meant.to_owned()),
            known: Vec::new(),
        }
    };
    if let Some((pointer, meant)) = misspelt_permission(document) {
        return Err(misspelt(&pointer, meant));
    }
    let mut problems = Vec::new();
    for unknown in CONFIG.unknown(document) {
        let mut names = unknown.fields.iter().map(|field| field.name);
        let near = nearest(unknown.key, names.clone())
            .or_else(|| names.find(|it| it.eq_ignore_ascii_case(unknown.key)));
        let message = match near {
            Some("permission") => return Err(misspelt(&unknown.pointer, "permission")),
            Some(near) => format!("unknown key, which nothing reads: did you mean `{near}`?"),
            None if is_odd(document, unknown.key, &unknown.pointer) => {
                "unknown key, which nothing reads".to_owned()
            }
            None => continue,
        };
        let at = position_of(positions, &unknown.pointer);
        problems.push(ConfigProblem {
            file: format!("{file}:{}:{}", at.line, at.column),
            pointer: Some(unknown.pointer),
            message,
        });
    }
    Ok(problems)
}

/// Returns whether a top-level key is unknown to OpenCode too.
fn is_odd(document: &Value, key: &str, pointer: &str) -> bool {
    document.get(key).is_some() && pointer == child("", key) && !OF_OPENCODE.contains(&key)
}

/// Returns the first misspelt permission name.
fn misspelt_permission(document: &Value) -> Option<(String, &'static str)> {
    let of = |object: &Value, pointer: String| {
        let rules = object.get("permission")?.as_object()?;
        let pointer = child(&pointer, "permission");
        rules
            .keys()
            .find_map(|name| Some((child(&pointer, name), unmatched::misspelt(name)?)))
    };
    let agents = AGENTS.into_iter().flat_map(|section| {
        document
            .get(section)
            .and_then(Value::as_object)
            .into_iter()
            .flatten()
            .map(move |(name, agent)| (child(&child("", section), name), agent))
    });
    of(document, String::new()).or_else(|| {
        let mut agents = agents;
        agents.find_map(|(pointer, agent)| of(agent, pointer))
    })
}

/// Formats a pointer for display.
fn dotted(pointer: &str) -> String {
    let parts: Vec<String> = pointer
        .trim_start_matches('/')
        .split('/')
        .map(|part| part.replace("~1", "/").replace("~0", "~"))
        .collect();
    parts.join(".")
}

#[cfg(test)]
mod tests {
    use outrigger_protocol::diagnose::Diagnose;
    use serde_json::json;

    use super::*;
    use crate::opencode::jsonc;

    #[test]
    fn slips_are_named_with_their_line_and_the_likely_word() {
        let mut seen = String::new();
        for value in [
            json!({"modle": "a/b"}),
            json!({"somthing": 1, "server": {"port": 1}, "theme": "x"}),
            json!({"agent": {"a": {"modle": "a/b", "reasoningEffort": "high"}}}),
            json!({"provider": {"p": {"options": {"baseUrl": "x", "region": "y"}, "models": {"m": {"limits": {}}}}}}),
            json!({"mcp": {"m": {"type": "local", "comand": ["x"], "oauth": false}}}),
            json!({"compaction": {"autos": true}, "experimental": {"batch_tols": true, "other": 1}}),
            json!({"permissions": {"bash": "deny"}}),
            json!({"permission": {"edti": "deny"}}),
            json!({"permission": {"lint": "ask", "tasks": "ask", "mcp_x": "deny", "write": "deny"}}),
            json!({"agent": {"a/b": {"permission": {"Bash": "deny"}}}}),
            json!({"agent": {"a": {"permision": {"bash": "deny"}}}}),
            json!({"mode": {"m": {"permission": {"web_fetch": "deny"}}}}),
        ] {
            let text = format!("\n{value}");
            let document = jsonc::parse(&text, "f").unwrap();
            seen += &match keys(&document.value, "f", &document.positions) {
                Ok(problems) => problems.iter().map(|it| format!("{it}\n")).collect(),
                Err(error) => format!("{error}; {}\n", error.hint().unwrap()),
            };
        }
        insta::assert_snapshot!(seen, @r#"
        f:2:10: /modle: unknown key, which nothing reads: did you mean `model`?
        f:2:13: /somthing: unknown key, which nothing reads
        f:2:24: /agent/a/modle: unknown key, which nothing reads: did you mean `model`?
        f:2:40: /provider/p/options/baseUrl: unknown key, which nothing reads: did you mean `baseURL`?
        f:2:82: /provider/p/models/m/limits: unknown key, which nothing reads: did you mean `limit`?
        f:2:38: /mcp/m/comand: unknown key, which nothing reads: did you mean `command`?
        f:2:24: /compaction/autos: unknown key, which nothing reads: did you mean `auto`?
        f:2:59: /experimental/batch_tols: unknown key, which nothing reads: did you mean `batch_tool`?
        f:2:16: unknown setting `permissions`; did you mean `permission`?
        f:2:23: unknown setting `permission.edti`; did you mean `edit`?
        f:2:39: unknown setting `agent.a/b.permission.Bash`; did you mean `bash`?
        f:2:28: unknown setting `agent.a.permision`; did you mean `permission`?
        f:2:41: unknown setting `mode.m.permission.web_fetch`; did you mean `webfetch`?
        "#);
    }
}
