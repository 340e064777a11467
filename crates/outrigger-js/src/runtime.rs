//! Finding Bun, or else Node.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use outrigger_sandbox::host_path::which_of_host;
use outrigger_sandbox::{Spawner, Spec, env, run, which};

use crate::error::JsError;

/// The oldest Node whose module hooks and string functions the host script needs.
const OLDEST_NODE: u32 = 20;
const VERSION_DEADLINE: Duration = Duration::from_secs(10);

/// Kind of JavaScript runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuntimeKind {
    /// Bun, which OpenCode's plugins are written for.
    Bun,
    /// Node, which runs about half of them: no TypeScript (before 22.18), no `Bun` object, no `$`.
    Node,
}

impl RuntimeKind {
    /// Returns its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Bun => "bun",
            Self::Node => "node",
        }
    }

    /// Returns the kind by the name of the program; anything not called `node` is taken for a Bun.
    fn of(program: &Path) -> Self {
        let stem = program
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default();
        if stem.starts_with("node") {
            Self::Node
        } else {
            Self::Bun
        }
    }
}

/// Where a runtime is looked for, in this order.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    /// Path from the settings.
    pub configured: Option<PathBuf>,
    /// Value of `OUTRIGGER_BUN`.
    pub bun: Option<PathBuf>,
    /// Value of `OUTRIGGER_NODE`.
    pub node: Option<PathBuf>,
    /// Value of `PATH`: searched for `bun`, and for `node` last of all.
    pub path: OsString,
    /// Outrigger's data folder, where `outrigger plugin setup` installs `bun/bin/bun`.
    pub data: Option<PathBuf>,
}

impl Lookup {
    /// Creates a lookup with `OUTRIGGER_BUN`, `OUTRIGGER_NODE` and `PATH` of the host's environment.
    #[must_use]
    pub fn from_env(configured: Option<PathBuf>, data: Option<PathBuf>) -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        Self {
            configured,
            bun: variable("OUTRIGGER_BUN").map(PathBuf::from),
            node: variable("OUTRIGGER_NODE").map(PathBuf::from),
            path: variable("PATH").unwrap_or_default(),
            data,
        }
    }
}

/// An installed JavaScript runtime.
#[derive(Clone, Debug)]
pub struct JsRuntime {
    /// Kind of runtime.
    pub kind: RuntimeKind,
    /// Absolute path of the program.
    pub path: PathBuf,
    version: OnceLock<String>,
}

impl JsRuntime {
    /// Creates a runtime at a known path.
    #[must_use]
    pub fn at(kind: RuntimeKind, path: impl Into<PathBuf>) -> Self {
        Self {
            kind,
            path: path.into(),
            version: OnceLock::new(),
        }
    }

    /// Looks in the settings, `OUTRIGGER_BUN`, `OUTRIGGER_NODE`, `PATH` and the data folder; Bun goes before a Node that
    /// nobody named. Starts nothing.
    ///
    /// # Errors
    /// [`JsError::RuntimeNotThere`] when a named one does not exist (it is not passed over, so that a typing error
    /// does not choose another runtime); [`JsError::RuntimeMissing`] when there is none.
    pub fn find(lookup: &Lookup) -> Result<Self, JsError> {
        let named = [
            (lookup.configured.as_ref(), None, "the settings"),
            (lookup.bun.as_ref(), Some(RuntimeKind::Bun), "OUTRIGGER_BUN"),
            (
                lookup.node.as_ref(),
                Some(RuntimeKind::Node),
                "OUTRIGGER_NODE",
            ),
        ];
        for (path, kind, named_by) in named {
            let Some(path) = path else { continue };
            let found = if path.components().count() > 1 {
                path.is_file().then(|| path.clone())
            } else {
                which_of_host(path, &lookup.path)
            };
            let Some(found) = found else {
                return Err(JsError::RuntimeNotThere {
                    path: path.clone(),
                    named_by,
                });
            };
            return Ok(Self::at(
                kind.unwrap_or_else(|| RuntimeKind::of(&found)),
                absolute(found),
            ));
        }
        let installed = lookup.data.as_ref().map(|data| data.join("bun/bin/bun"));
        if let Some(bun) = which_of_host("bun", &lookup.path)
            .or_else(|| installed.clone().filter(|path| path.is_file()))
        {
            return Ok(Self::at(RuntimeKind::Bun, absolute(bun)));
        }
        if let Some(node) = which_of_host("node", &lookup.path) {
            return Ok(Self::at(RuntimeKind::Node, absolute(node)));
        }
        let mut searched: Vec<String> =
            ["settings", "OUTRIGGER_BUN", "OUTRIGGER_NODE", "bun on PATH"]
                .map(str::to_owned)
                .to_vec();
        searched.extend(installed.map(|path| path.display().to_string()));
        searched.push("node on PATH".to_owned());
        let passed_over = ["bun", "node"].map(|name| which(name, &lookup.path));
        searched.extend(passed_over.into_iter().flatten().map(|path| {
            let path = path.display();
            format!("not {path}: commands of the model may write there")
        }));
        Err(JsError::RuntimeMissing { searched })
    }

    /// Its version, asked for once with `--version`.
    ///
    /// # Errors
    /// [`JsError::RuntimeVersion`] when it does not answer; [`JsError::RuntimeTooOld`] for a Node before 20.
    pub async fn version(&self, spawner: &Spawner) -> Result<String, JsError> {
        if let Some(version) = self.version.get() {
            return Ok(version.clone());
        }
        let failed = |reason: String| JsError::RuntimeVersion {
            path: self.path.clone(),
            reason,
        };
        let spec = Spec::new(&self.path)
            .arg("--version")
            .vars(env::of_host(&[]));
        let output = run(spawner, spec, VERSION_DEADLINE, 4096)
            .await
            .map_err(|error| failed(error.to_string()))?;
        if output.timed_out || !output.exit.success() {
            return Err(failed(output.exit.to_string()));
        }
        let version = String::from_utf8_lossy(&output.stdout)
            .trim()
            .trim_start_matches('v')
            .to_owned();
        self.check_version(&version)?;
        Ok(self.version.get_or_init(|| version).clone())
    }

    /// Rejects a Node that is too old.
    pub(crate) fn check_version(&self, version: &str) -> Result<(), JsError> {
        let major = version
            .split('.')
            .next()
            .and_then(|major| major.parse::<u32>().ok());
        if self.kind == RuntimeKind::Node && major.is_some_and(|major| major < OLDEST_NODE) {
            return Err(JsError::RuntimeTooOld {
                path: self.path.clone(),
                version: version.to_owned(),
            });
        }
        Ok(())
    }

    /// Returns the arguments that start `script`. In the project's folder Bun would install packages at import and load
    /// `.env`.
    pub(crate) fn arguments(&self, script: &Path) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = match self.kind {
            RuntimeKind::Bun => vec!["--no-install".into(), "--no-env-file".into()],
            RuntimeKind::Node => vec!["--no-warnings".into()],
        };
        arguments.push(script.into());
        arguments
    }
}

fn absolute(path: PathBuf) -> PathBuf {
    std::path::absolute(&path).unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use outrigger_protocol::diagnose::Diagnose;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\necho 18.2.0\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn the_order_of_places() {
        let root = tempfile::tempdir().unwrap();
        let at = |name: &str| root.path().join(name);
        for name in [
            "named/node20",
            "env/bun",
            "env/node",
            "path/bun",
            "nodes/node",
            "data/bun/bin/bun",
        ] {
            program(&at(name));
        }
        let both = OsString::from(format!(
            "{}:{}",
            at("nodes").display(),
            at("path").display()
        ));
        let all = Lookup {
            configured: Some(at("named/node20")),
            bun: Some(at("env/bun")),
            node: Some(at("env/node")),
            path: both,
            data: Some(at("data")),
        };
        let lookups = [
            all.clone(),
            Lookup {
                configured: None,
                ..all.clone()
            },
            Lookup {
                configured: None,
                bun: None,
                ..all.clone()
            },
            Lookup {
                configured: None,
                bun: None,
                node: None,
                ..all.clone()
            },
            Lookup {
                path: at("nodes").into(),
                data: all.data.clone(),
                ..Lookup::default()
            },
            Lookup {
                path: at("nodes").into(),
                ..Lookup::default()
            },
        ];
        let found: Vec<String> = lookups
            .iter()
            .map(|lookup| JsRuntime::find(lookup).unwrap())
            .map(|found| {
                format!(
                    "{} {}",
                    found.kind.name(),
                    found.path.strip_prefix(root.path()).unwrap().display()
                )
            })
            .collect();
        insta::assert_snapshot!(found.join("\n"), @r"
        node named/node20
        bun env/bun
        node env/node
        bun path/bun
        bun data/bun/bin/bun
        node nodes/node
        ");
    }

    #[test]
    fn a_named_runtime_that_is_not_there_is_an_error_and_so_is_none_at_all() {
        let lookup = Lookup {
            bun: Some("/nowhere/bun".into()),
            path: std::env::var_os("PATH").unwrap(),
            ..Lookup::default()
        };
        let error = JsRuntime::find(&lookup).unwrap_err();
        insta::assert_snapshot!(error, @"the JavaScript runtime /nowhere/bun named by OUTRIGGER_BUN does not exist");
        let error = JsRuntime::find(&Lookup {
            data: Some("/data".into()),
            ..Lookup::default()
        })
        .unwrap_err();
        assert_eq!(error.code(), "js.runtime_missing");
        assert!(error.hint().unwrap().contains("outrigger plugin setup"));
        insta::assert_snapshot!(error, @"no JavaScript runtime found (looked for: settings, OUTRIGGER_BUN, OUTRIGGER_NODE, bun on PATH, /data/bun/bin/bun, node on PATH)");
    }

    #[tokio::test]
    async fn an_old_node_is_refused() {
        let root = tempfile::tempdir().unwrap();
        program(&root.path().join("node"));
        let spawner = Spawner::new().unwrap();
        let node = JsRuntime::at(RuntimeKind::Node, root.path().join("node"));
        assert_eq!(
            node.version(&spawner).await.unwrap_err().code(),
            "js.runtime_too_old"
        );
        let bun = JsRuntime::at(RuntimeKind::Bun, root.path().join("node"));
        assert_eq!(bun.version(&spawner).await.unwrap(), "18.2.0");
    }
}
