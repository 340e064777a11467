//! Prompts of MCP servers as slash commands, and the servers' instructions for the system prompt.

use std::fmt::Write as _;

use outrigger_kernel::permission::is_disabled;
use outrigger_mcp::{Listed, McpError, McpServers, sanitize, tool_name};
use outrigger_prompt::command::{CommandInfo, CommandSource};
use outrigger_protocol::permission::Rule;
use outrigger_tools::PermissionAsk;
use serde_json::{Map, Value, json};

/// A server's prompt as a command.
#[derive(Clone, Debug, PartialEq)]
pub struct McpPrompt {
    /// Name of the command, `SERVER:PROMPT`.
    pub name: String,
    /// Description for the user.
    pub description: Option<String>,
    /// Names of its arguments, in order; they are `$1`, `$2` and so on after the command.
    pub arguments: Vec<String>,
    server: String,
    prompt: String,
}

impl McpPrompt {
    fn new(listed: &Listed) -> Self {
        let entry = &listed.entry;
        let prompt = entry["name"].as_str().unwrap_or_default().to_owned();
        let arguments = entry["arguments"].as_array().map_or(&[][..], Vec::as_slice);
        Self {
            name: format!("{}:{}", sanitize(&listed.server), sanitize(&prompt)),
            description: entry["description"].as_str().map(str::to_owned),
            arguments: arguments
                .iter()
                .filter_map(|argument| argument["name"].as_str().map(str::to_owned))
                .collect(),
            server: listed.server.clone(),
            prompt,
        }
    }

    /// Returns the permission question about fetching its text: the one about a tool of that name of the server.
    #[must_use]
    pub fn asks(&self) -> PermissionAsk {
        PermissionAsk {
            permission: tool_name(&self.server, &self.prompt),
            patterns: vec!["*".to_owned()],
            always: vec!["*".to_owned()],
            metadata: json!({"server": self.server, "prompt": self.prompt}),
            ..PermissionAsk::default()
        }
    }

    /// Returns its command, with its text fetched from the server and `$1` and so on for its arguments.
    ///
    /// # Errors
    /// Those of the server.
    pub async fn command(self, servers: &McpServers) -> Result<CommandInfo, McpError> {
        let arguments: Map<String, Value> = self
            .arguments
            .iter()
            .enumerate()
            .map(|(i, argument)| (argument.clone(), format!("${}", i + 1).into()))
            .collect();
        let answer = servers
            .prompt(&self.server, &self.prompt, &json!(arguments))
            .await?;
        Ok(CommandInfo {
            template: text(&answer),
            ..self.described()
        })
    }

    /// Returns its command without the text.
    fn described(self) -> CommandInfo {
        CommandInfo {
            name: self.name,
            description: self.description,
            source: CommandSource::Mcp,
            ..CommandInfo::default()
        }
    }
}

/// Returns the prompts of all servers, by their command names.
pub async fn prompts(servers: &McpServers) -> Vec<McpPrompt> {
    let listed = servers.prompts().await;
    listed.iter().map(McpPrompt::new).collect()
}

/// Returns the prompt with that command name, without its text. If the names of several servers are equal after cleaning, the
/// last one wins, as in OpenCode.
pub async fn find(servers: &McpServers, name: &str) -> Option<McpPrompt> {
    if !name.contains(':') {
        return None;
    }
    let all = prompts(servers).await;
    all.into_iter().rev().find(|prompt| prompt.name == name)
}

/// Returns the description of the command with that name.
pub async fn describe(servers: &McpServers, name: &str) -> Option<CommandInfo> {
    let found = find(servers, name).await?;
    Some(found.described())
}

/// Returns the texts of a prompt's messages.
fn text(answer: &Value) -> String {
    let messages = answer["messages"].as_array().map_or(&[][..], Vec::as_slice);
    let texts: Vec<&str> = messages
        .iter()
        .map(|message| message["content"]["text"].as_str().unwrap_or_default())
        .collect();
    texts.join("\n")
}

/// Returns the servers' own instructions, except for servers whose tools are all denied.
#[must_use]
pub fn instructions(servers: &McpServers, rules: &[&[Rule]]) -> Option<String> {
    let mut all = servers.instructions();
    all.retain(|server| {
        server.tools.is_empty() || server.tools.iter().any(|tool| !is_disabled(tool, rules))
    });
    if all.is_empty() {
        return None;
    }
    let mut out = String::from("<mcp_instructions>");
    for server in all {
        let _ = write!(out, "\n  <server name=\"{}\">", server.server);
        for line in server.text.lines() {
            let _ = write!(out, "\n    {line}");
        }
        out.push_str("\n  </server>");
    }
    out.push_str("\n</mcp_instructions>");
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prompt_is_a_command() {
        let listed = Listed {
            server: "my server".into(),
            entry: json!({"name": "greet me", "arguments": [{"name": "who"}, {"x": 1}]}),
        };
        let prompt = McpPrompt::new(&listed);
        assert_eq!(
            (prompt.name.as_str(), prompt.arguments.as_slice()),
            ("my_server:greet_me", &["who".to_owned()][..])
        );
        let answer = json!({"messages": [{"content": {"type": "text", "text": "a"}}, {"content": {"type": "image"}}, {"content": {"type": "text", "text": "b"}}]});
        assert_eq!(text(&answer), "a\n\nb");
        assert_eq!(text(&json!({})), "");
    }
}
