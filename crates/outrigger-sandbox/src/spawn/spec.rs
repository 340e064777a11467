//! The complete specification of a process.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use outrigger_network_proxy::ProxyRedirect;

use crate::policy::Policy;
use crate::spawn::terminal::Size;

/// What a standard stream of the process is connected to. There is no "inherit": the host's terminal belongs to the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stdio {
    /// `/dev/null`.
    #[default]
    Null,
    /// A pipe whose other end is in the [`crate::Child`].
    Pipe,
}

/// Resource limits (soft and hard alike, clamped to the host's own hard limit). Core dumps are always off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limits {
    /// `RLIMIT_DATA`: bytes of private writable memory; `None` leaves the host's limit.
    pub data: Option<u64>,
    /// `RLIMIT_NOFILE`: one more than the highest file descriptor; `None` leaves the host's limit.
    pub nofile: Option<u64>,
}

/// Everything about a process to start. Nothing that is not named here reaches it: no variable of the host's environment,
/// no open file.
#[derive(Clone)]
pub struct Spec {
    /// An absolute path, a path relative to `cwd` (with a slash), or a bare name that is searched in the `PATH` of `env`.
    pub program: PathBuf,
    /// Arguments after the program's name.
    pub args: Vec<OsString>,
    /// Working directory; `/` unless given.
    pub cwd: PathBuf,
    /// The complete environment. A later entry of the same name wins.
    pub env: Vec<(OsString, OsString)>,
    /// Standard input.
    pub stdin: Stdio,
    /// Standard output.
    pub stdout: Stdio,
    /// Standard error.
    pub stderr: Stdio,
    /// Requests a socket pair whose far end is file descriptor 3 of the process.
    pub channel: bool,
    /// A terminal of this size for all three streams, with its own session; [`Spec::stdin`] and the other streams are
    /// then ignored. For a user's shell.
    pub terminal: Option<Size>,
    /// Landlock rules; `None` leaves the process unconfined.
    pub policy: Option<Policy>,
    /// Where connections that [`Policy::connect_tcp`] does not allow are redirected; without it they are refused.
    pub proxy_redirect: Option<ProxyRedirect>,
    /// Resource limits.
    pub limits: Limits,
    /// `PR_SET_NO_NEW_PRIVS`: setuid programs (`sudo`) gain nothing. On unless switched off; always on with a policy,
    /// since Landlock requires it.
    pub no_new_privs: bool,
    /// A description of the process for the ledger and the log; if empty, the program's file name is used.
    pub label: String,
    /// It is started and runs while the others are frozen ([`crate::Spawner::freeze`]): the user's own, and ours.
    pub never_frozen: bool,
}

/// Omits the values of the environment: they contain keys, and this may end up in a log (invariant 10).
impl fmt::Debug for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let env: Vec<&OsString> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("Spec")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("cwd", &self.cwd)
            .field("env", &env)
            .field("channel", &self.channel)
            .field("policy", &self.policy)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}

impl Spec {
    /// Creates a process with no arguments, no environment, working directory `/`, all streams at `/dev/null`, no limits
    /// and no policy.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            cwd: PathBuf::from("/"),
            env: Vec::new(),
            stdin: Stdio::Null,
            stdout: Stdio::Null,
            stderr: Stdio::Null,
            channel: false,
            terminal: None,
            policy: None,
            proxy_redirect: None,
            limits: Limits::default(),
            no_new_privs: true,
            label: String::new(),
            never_frozen: false,
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<I, A>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = A>,
        A: Into<OsString>,
    {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets the working directory.
    #[must_use]
    pub fn cwd(mut self, cwd: impl Into<PathBuf>) -> Self {
        self.cwd = cwd.into();
        self
    }

    /// Adds one variable to the environment.
    #[must_use]
    pub fn var(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Adds variables to the environment (usually those of [`crate::spawn::env::allow_list`]).
    #[must_use]
    pub fn vars<I, N, V>(mut self, vars: I) -> Self
    where
        I: IntoIterator<Item = (N, V)>,
        N: Into<OsString>,
        V: Into<OsString>,
    {
        self.env.extend(
            vars.into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        self
    }

    /// Sets standard input.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdio) -> Self {
        self.stdin = stdin;
        self
    }

    /// Sets standard output.
    #[must_use]
    pub fn stdout(mut self, stdout: Stdio) -> Self {
        self.stdout = stdout;
        self
    }

    /// Sets standard error.
    #[must_use]
    pub fn stderr(mut self, stderr: Stdio) -> Self {
        self.stderr = stderr;
        self
    }

    /// Requests a terminal instead of the three streams.
    #[must_use]
    pub fn terminal(mut self, size: Size) -> Self {
        self.terminal = Some(size);
        self
    }

    /// Uses pipes for standard input, output and error.
    #[must_use]
    pub fn piped(self) -> Self {
        self.stdin(Stdio::Pipe)
            .stdout(Stdio::Pipe)
            .stderr(Stdio::Pipe)
    }

    /// Requests a socket pair whose far end is file descriptor 3 of the process.
    #[must_use]
    pub fn channel(mut self) -> Self {
        self.channel = true;
        self
    }

    /// Sets the Landlock rules.
    #[must_use]
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Redirects connections that the rules do not allow through a proxy, which decides about them by host.
    #[must_use]
    pub fn proxy_redirect(mut self, redirect: ProxyRedirect) -> Self {
        self.proxy_redirect = Some(redirect);
        self
    }

    /// Sets the resource limits.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Lets setuid programs work in a process without a policy (a user's own shell command that calls `sudo`).
    #[must_use]
    pub fn allow_new_privs(mut self) -> Self {
        self.no_new_privs = false;
        self
    }

    /// Sets the description for the ledger and the log.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Starts it while other processes are frozen, and does not freeze it with them ([`Spec::never_frozen`]).
    #[must_use]
    pub fn never_frozen(mut self) -> Self {
        self.never_frozen = true;
        self
    }

    /// Sets the variables for the folders that its policy provides.
    pub(crate) fn name_places(&mut self) {
        if let Some(policy) = &self.policy {
            self.env.extend(policy.variables.iter().cloned());
        }
        let Some(folder) = self.policy.as_ref().and_then(|it| it.temporary.clone()) else {
            return;
        };
        for name in ["TMPDIR", "TMP", "TEMP"] {
            self.env.push((name.into(), folder.clone().into()));
        }
        // Where zsh keeps here-documents.
        self.env
            .push(("TMPPREFIX".into(), folder.join("zsh").into()));
    }

    /// Returns the value that `name` has in this environment (the last one given).
    pub(crate) fn var_value(&self, name: &str) -> Option<&OsStr> {
        self.env
            .iter()
            .rev()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.as_os_str())
    }

    /// Returns the label, or the program's file name.
    pub(crate) fn label_or_name(&self) -> String {
        if !self.label.is_empty() {
            return self.label.clone();
        }
        let name = self
            .program
            .file_name()
            .map_or(self.program.as_path(), Path::new);
        name.display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_value_counts_and_no_value_is_shown() {
        let spec = Spec::new("/bin/tool")
            .var("KEY", "old")
            .var("KEY", "sk-secret");
        assert_eq!(spec.var_value("KEY"), Some("sk-secret".as_ref()));
        let shown = format!("{spec:?}");
        assert!(
            shown.contains("KEY") && !shown.contains("secret"),
            "{shown}"
        );
        assert_eq!(
            (
                spec.label_or_name().as_str(),
                spec.label("mcp").label_or_name().as_str()
            ),
            ("tool", "mcp")
        );
    }
}
