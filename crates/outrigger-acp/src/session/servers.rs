//! MCP servers provided by the editor.
//!
//! The editor is the user's own program and acts for the user, so these servers are the user's: they start where, and in the sandbox
//! in which, the user's own servers start (`outrigger_mcp_tools::launch`), independent of whether the folder is trusted. They cannot
//! replace a server of the configuration, whose name rules may refer to.

use outrigger_client::{ClientError, Connection};
use outrigger_jsonrpc::RpcError;
use serde_json::{Map, Value, json};

/// A server in the configuration's form.
#[derive(Debug, PartialEq)]
pub(crate) struct Handed {
    pub(crate) name: String,
    pub(crate) entry: Value,
}

/// Reads the list of a request.
pub(crate) fn read(params: &Value) -> Result<Vec<Handed>, RpcError> {
    let list = params["mcpServers"].as_array();
    list.into_iter().flatten().map(one).collect()
}

fn one(server: &Value) -> Result<Handed, RpcError> {
    let missing = |key: &str| RpcError::params(format!("an MCP server lacks `{key}`"));
    let text = |key: &'static str| server[key].as_str().ok_or_else(|| missing(key));
    let name = text("name")?.to_owned();
    let pairs = |key: &str| {
        server[key]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|it| {
                let value = it["value"].as_str()?;
                Some((it["name"].as_str()?.to_owned(), json!(value)))
            })
            .collect::<Map<String, Value>>()
    };
    let entry = match server["type"].as_str() {
        Some("http" | "sse") => {
            json!({ "type": "remote", "url": text("url")?, "headers": pairs("headers") })
        }
        Some("stdio") | None => {
            let arguments = server["args"].as_array().into_iter().flatten();
            let command: Vec<&str> = std::iter::once(text("command")?)
                .chain(arguments.filter_map(Value::as_str))
                .collect();
            json!({ "type": "local", "command": command, "environment": pairs("env") })
        }
        Some(other) => {
            return Err(RpcError::params(format!(
                "MCP servers of the kind `{other}` are not supported"
            )));
        }
    };
    Ok(Handed { name, entry })
}

/// Starts them. A problem with one is reported to the user, and does not prevent the session. `known`: those that the editor
/// provided before, and their definitions.
pub(crate) async fn start(
    connection: &Connection,
    handed: Vec<Handed>,
    known: &mut Vec<Handed>,
) -> Result<Vec<String>, ClientError> {
    if handed.is_empty() {
        return Ok(Vec::new());
    }
    let running: Value = connection.get("/mcp").await?;
    let mut notices = Vec::new();
    for server in handed {
        let name = server.name.clone();
        // A failed server is retried: what it lacked may be available now.
        let runs = running[&name]["status"] == "connected";
        if runs && known.contains(&server) {
            continue;
        }
        let is_ours = known.iter().any(|it| it.name == name);
        if running.get(&name).is_some() && !is_ours {
            notices.push(format!(
                "MCP server {name}: the one of the configuration stays, the editor's is skipped"
            ));
            continue;
        }
        let body = json!({ "name": name, "config": server.entry });
        match connection.post::<Value>("/mcp", &body).await {
            Ok(all) => {
                let why = all[&name]["error"].as_str();
                notices.extend(why.map(|why| format!("MCP server {name}: {why}")));
                known.retain(|it| it.name != name);
                known.push(server);
            }
            Err(error) => notices.push(format!("MCP server {name}: {}", error.message())),
        }
    }
    Ok(notices)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_as_the_configuration_has_them() {
        let handed = read(&json!({ "mcpServers": [
            { "name": "a", "command": "/bin/a", "args": ["-x"], "env": [{ "name": "K", "value": "v" }] },
            { "type": "http", "name": "b", "url": "https://b.test", "headers": [{ "name": "H", "value": "w" }] },
            { "type": "sse", "name": "c", "url": "https://c.test", "headers": [] },
        ] }));
        let entries: Vec<String> = handed
            .unwrap()
            .iter()
            .map(|it| it.entry.to_string())
            .collect();
        insta::assert_snapshot!(entries.join("\n"), @r#"
        {"type":"local","command":["/bin/a","-x"],"environment":{"K":"v"}}
        {"type":"remote","url":"https://b.test","headers":{"H":"w"}}
        {"type":"remote","url":"https://c.test","headers":{}}
        "#);
        for bad in [
            json!({ "mcpServers": [{ "name": "a" }] }),
            json!({ "mcpServers": [{ "type": "acp", "name": "a", "id": "x" }] }),
        ] {
            assert_eq!(
                read(&bad).unwrap_err().code,
                RpcError::INVALID_PARAMS,
                "{bad}"
            );
        }
    }
}
