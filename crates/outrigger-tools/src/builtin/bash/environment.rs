//! The environment variables of shell commands.

use std::ffi::{OsStr, OsString};

use outrigger_protocol::keys;
use outrigger_sandbox::env;
use serde_json::Value;

/// Variables that build tools need, beyond the harmless ones of every process; a trailing `*` matches any rest.
const VARIABLES: &[&str] = &[
    "ANDROID_*",
    "CARGO_HOME",
    "CARGO_TARGET_DIR",
    "CC",
    "CFLAGS",
    "CI",
    "CONDA_*",
    "CPATH",
    "CXX",
    "CXXFLAGS",
    "DBUS_SESSION_BUS_ADDRESS",
    "DEBIAN_FRONTEND",
    "DISPLAY",
    "DOCKER_CONFIG",
    "DOCKER_HOST",
    "EDITOR",
    "GIT_AUTHOR_*",
    "GIT_COMMITTER_*",
    "GIT_SSL_CAINFO",
    "GOCACHE",
    "GOFLAGS",
    "GOMODCACHE",
    "GOPATH",
    "GOPROXY",
    "GOROOT",
    "GPG_TTY",
    "JAVA_HOME",
    "KUBECONFIG",
    "LDFLAGS",
    "LIBRARY_PATH",
    "MAKEFLAGS",
    "NODE_ENV",
    "NODE_EXTRA_CA_CERTS",
    "NODE_PATH",
    "NVM_*",
    "PAGER",
    "PIP_*",
    "PKG_CONFIG_PATH",
    "PNPM_HOME",
    "PYENV_*",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "PYTHONUNBUFFERED",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "RUSTC_WRAPPER",
    "RUSTFLAGS",
    "RUSTUP_*",
    "RUST_*",
    "SDKMAN_DIR",
    "SSH_AUTH_SOCK",
    "UV_*",
    "VIRTUAL_ENV",
    "VOLTA_HOME",
    "WAYLAND_DISPLAY",
    "no_proxy",
    "NO_PROXY",
];
/// Variables that name a proxy.
pub const PROXIES: &[&str] = &[
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
];
/// Variables whose names look like those of secrets and that hold none: public certificates, and the path of a socket.
const NO_SECRETS: &[&str] = &[
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "PIP_CERT",
    "PIP_CLIENT_CERT",
    "SSH_AUTH_SOCK",
];

/// Returns the environment of a shell command: harmless variables and those that build tools need, without secrets;
/// those named in `extra` (a trailing `*` matches any rest), whatever they hold; those that identify an agent; and
/// `added`, which plugins or a client ask for. Variables that make programs load other code are dropped.
#[must_use]
pub fn shell_environment(
    extra: &[String],
    added: Option<&serde_json::Map<String, Value>>,
) -> Vec<(OsString, OsString)> {
    let mut vars = inherited(std::env::vars_os(), extra);
    // Scripts already look for `OPENCODE`.
    for name in ["AGENT", "OPENCODE", "OUTRIGGER"] {
        vars.push((name.into(), "1".into()));
    }
    for (name, value) in added.into_iter().flatten() {
        let value = match value {
            Value::String(text) => text.clone(),
            Value::Null => continue,
            other => other.to_string(),
        };
        let unfit = name.is_empty() || name.contains(['=', '\0']) || value.contains('\0');
        if unfit || env::is_forbidden(name) {
            tracing::warn!(%name, "a plugin's variable is not passed to the shell");
            continue;
        }
        vars.push((name.into(), value.into()));
    }
    vars
}

/// Returns the part of an environment that commands inherit.
fn inherited(
    environment: impl IntoIterator<Item = (OsString, OsString)>,
    extra: &[String],
) -> Vec<(OsString, OsString)> {
    let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
    let names = [VARIABLES, PROXIES, &extra].concat();
    let mut vars = env::allow_list_of(environment, &names);
    vars.retain(|(name, value)| env::is_any(name, &extra) || !holds_secret(name, value));
    vars
}

/// Returns whether a variable is a secret, or an address with a login in it: most downloads of builds need a proxy or
/// an index, but not one with a password.
fn holds_secret(name: &OsStr, value: &OsStr) -> bool {
    let (name, value) = (name.to_string_lossy(), value.to_string_lossy());
    !NO_SECRETS.contains(&&*name) && keys::is_secret_name(&name) || keys::contains_secret(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attempt 1409 of docs/bypass/attempts.toml.
    #[test]
    fn commands_inherit_no_secrets_unless_a_setting_names_them() {
        let environment = [
            ("ANDROID_HOME", "/opt/android", true),
            ("ANDROID_KEYSTORE_PASSWORD", "hunter2", false),
            ("CONDA_TOKEN", "tk-1234-abcdef", false),
            ("NVM_AUTH_HEADER", "Basic dXNlcjpwdw==", false),
            ("UV_PUBLISH_TOKEN", "pypi-abcdef", false),
            ("PIP_INDEX_URL", "https://user:password@host/simple", false),
            ("PIP_CERT", "/etc/ca.pem", true),
            ("UV_INDEX_URL", "https://host/simple", true),
            ("GOPROXY", "https://user:password@host,direct", false),
            ("GOFLAGS", "-mod=mod", true),
            ("HTTPS_PROXY", "http://user:password@proxy:3128", false),
            ("http_proxy", "http://proxy:3128", true),
            ("SSH_AUTH_SOCK", "/tmp/agent.1", true),
            ("RUSTFLAGS", "-C target-cpu=native", true),
            ("RUST_LOG", "info,sqlx=warn", true),
            ("CFLAGS", "-DKEY=ghp_0123456789abcdef0123", false),
            ("GH_TOKEN", "ghp_0123456789abcdef0123", false),
            ("DEPLOY_TOKEN", "ghp_0123456789abcdef0123", true),
            ("DEPLOY_OPTIONS", "https://user:password@host", true),
        ];
        let all = environment.map(|(name, value, _)| (name.into(), value.into()));
        let kept = inherited(all, &["DEPLOY_*".to_owned()]);
        for (name, _, want) in environment {
            assert_eq!(kept.iter().any(|(it, _)| it == name), want, "{name}");
        }
    }
}
