//! The address and the permitted origins of `serve`: the command line, then `server` of the user's own configuration.

use serde_json::Value;

use crate::args::ServeArgs;

/// The default: this machine only.
const LOOPBACK: &str = "127.0.0.1";

/// The network settings of the server.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Network {
    pub(crate) hostname: String,
    /// `None`: the default port if it is free.
    pub(crate) port: Option<u16>,
    /// Origins of the configuration, then those of the command line.
    pub(crate) cors: Vec<String>,
}

impl Network {
    /// Combines both: the command line wins; origins are joined. Only the user's own files are used, as in OpenCode:
    /// a project's configuration must not open a port to the network. `mdns` and `mdnsDomain` have no effect
    /// (docs/compatibility.md).
    pub(crate) fn of(args: &ServeArgs, global: &Value) -> Self {
        let text = |pointer: &str| {
            global
                .pointer(pointer)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        let port = global.pointer("/server/port").and_then(Value::as_u64);
        let origins = global
            .pointer("/server/cors")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(Value::as_str);
        Self {
            hostname: (args.hostname.clone())
                .or_else(|| text("/server/hostname"))
                .unwrap_or_else(|| LOOPBACK.to_owned()),
            port: (args.port).or_else(|| port.and_then(|port| u16::try_from(port).ok())),
            cors: origins
                .map(str::to_owned)
                .chain(args.cors.iter().cloned())
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_command_line_wins_and_origins_add_up() {
        let said = |hostname: Option<&str>, port, cors: &[&str]| ServeArgs {
            port,
            hostname: hostname.map(str::to_owned),
            no_auth: false,
            cors: cors.iter().map(|&origin| origin.to_owned()).collect(),
            allow_host: Vec::new(),
        };
        let server =
            json!({"hostname": "localhost", "port": 5000, "cors": ["http://a", 5], "mdns": true});
        for (args, server, want) in [
            (said(None, None, &[]), json!(null), (LOOPBACK, None, vec![])),
            (
                said(None, None, &["http://b"]),
                server.clone(),
                ("localhost", Some(5000), vec!["http://a", "http://b"]),
            ),
            (
                said(Some("::1"), Some(0), &[]),
                server,
                ("::1", Some(0), vec!["http://a"]),
            ),
            (
                said(None, None, &[]),
                json!({"hostname": "", "port": 70_000, "cors": "x"}),
                (LOOPBACK, None, vec![]),
            ),
        ] {
            let network = Network::of(&args, &json!({ "server": server }));
            let cors: Vec<&str> = network.cors.iter().map(String::as_str).collect();
            assert_eq!((network.hostname.as_str(), network.port, cors), want);
        }
    }
}
