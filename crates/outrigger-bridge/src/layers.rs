//! What an `invoke` goes through before it is executed, and after: one layer after the other, in one order. A layer may
//! refuse; none may be left out, and the guards come after the points, so that no plugin has a word after them (C9).

use std::sync::Arc;
use std::time::Instant;

use outrigger_kernel::hooks::{Context, Empty, HookInput, points::bridge as points};
use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_protocol::descriptor::Contract;
use outrigger_protocol::id::SessionId;
use outrigger_protocol::invoke::{EditParams, ExecParams, Invoke, ReadParams, WriteParams};
use outrigger_protocol::settings::SETTINGS;
use outrigger_protocol::startup::startup_file;
use outrigger_protocol::tool::ToolOutput;
use outrigger_sandbox::paths::{Roots, resolve};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{BridgeError, Commands, SharedExecutor};

/// Parameters of a call, checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Params {
    /// Of `read`.
    Read(ReadParams),
    /// Of `write`.
    Write(WriteParams),
    /// Of `edit`.
    Edit(EditParams),
    /// Of `exec`.
    Exec(ExecParams),
}

impl Params {
    /// Reads those of a contract.
    fn read(contract: Contract, value: &Value) -> Result<Self, BridgeError> {
        fn of<T: DeserializeOwned>(value: &Value) -> Result<T, BridgeError> {
            // A list would be read as the fields in their order.
            if !value.is_object() {
                return Err(BridgeError::new(
                    "bridge.params",
                    "the parameters are an object, each by its name",
                ));
            }
            T::deserialize(value)
                .map_err(|error| BridgeError::new("bridge.params", error.to_string()))
        }
        Ok(match contract {
            Contract::Read => Self::Read(of(value)?),
            Contract::Write => Self::Write(of(value)?),
            Contract::Edit => Self::Edit(of(value)?),
            Contract::Exec => Self::Exec(of(value)?),
            Contract::BrowserRead | Contract::BrowserWrite => {
                return Err(not_of_bridge(contract.name()));
            }
        })
    }

    /// The contract that they are of.
    #[must_use]
    pub fn contract(&self) -> Contract {
        match self {
            Self::Read(_) => Contract::Read,
            Self::Write(_) => Contract::Write,
            Self::Edit(_) => Contract::Edit,
            Self::Exec(_) => Contract::Exec,
        }
    }

    /// As arguments of the tool that fulfils the contract.
    #[must_use]
    pub fn to_value(&self) -> Value {
        match self {
            Self::Read(params) => json!(params),
            Self::Write(params) => json!(params),
            Self::Edit(params) => json!(params),
            Self::Exec(params) => json!(params),
        }
    }

    /// The path in it: the file, or the folder that a command runs in.
    fn path(&self) -> &str {
        match self {
            Self::Read(params) => &params.file_path,
            Self::Write(params) => &params.file_path,
            Self::Edit(params) => &params.file_path,
            Self::Exec(params) => params.workdir.as_deref().unwrap_or("."),
        }
    }
}

/// A call on its way through the layers.
pub struct Call {
    /// As it came.
    pub invoke: Invoke,
    /// Number of its connection.
    pub connection: u64,
    /// Its parameters, once they are read.
    pub params: Option<Params>,
    permit: Option<OwnedSemaphorePermit>,
    /// When it came.
    began: Instant,
}

impl Call {
    pub(crate) fn new(invoke: Invoke, connection: u64) -> Self {
        Self {
            invoke,
            connection,
            params: None,
            permit: None,
            began: Instant::now(),
        }
    }

    fn params(&self) -> Result<&Params, BridgeError> {
        let missing = || BridgeError::new("bridge.params", "the parameters were not read");
        self.params.as_ref().ok_or_else(missing)
    }

    /// For plugins, without contents.
    fn identity(&self) -> points::Call<'_> {
        let params = self.params.as_ref();
        points::Call {
            call_id: &self.invoke.id,
            side: points::Side::Executes,
            connector: None,
            connection: Some(self.connection),
            session_id: self.invoke.session_id.as_deref(),
            tool: params.map_or(self.invoke.tool.as_str(), |it| it.contract().name()),
            path: params.map(Params::path),
        }
    }
}

/// What a call came to.
pub(crate) type Outcome = Result<ToolOutput, BridgeError>;

/// One of them.
pub trait Layer: Send + Sync {
    /// For logs and the document.
    fn name(&self) -> &'static str;
    /// On the way in.
    ///
    /// # Errors
    /// The call is refused; layers after this one do not see it.
    fn before(&self, call: &mut Call) -> Result<(), BridgeError>;
    /// On the way out, for calls that this layer has seen.
    fn after(&self, call: &Call, outcome: &Outcome) {
        let _ = (call, outcome);
    }
}

/// The layers in their order.
pub(crate) fn all(
    executor: &SharedExecutor,
    root: &std::path::Path,
    commands: Commands,
    concurrent: usize,
) -> Vec<Box<dyn Layer>> {
    vec![
        Box::new(Audited(Arc::clone(executor))),
        Box::new(Valid),
        Box::new(Limited(Arc::new(Semaphore::new(concurrent)), concurrent)),
        Box::new(NotifyHooks(Arc::clone(executor))),
        Box::new(PathGuard {
            roots: Roots::new([root]),
            root: root.to_owned(),
        }),
        Box::new(commands),
    ]
}

/// Writes every call down, refused ones too. The intent of one that runs is written by the tool runtime.
struct Audited(SharedExecutor);

impl Layer for Audited {
    fn name(&self) -> &'static str {
        "audit"
    }
    fn before(&self, _call: &mut Call) -> Result<(), BridgeError> {
        Ok(())
    }
    fn after(&self, call: &Call, outcome: &Outcome) {
        let decision = match outcome {
            Ok(_) => "completed",
            Err(refusal) => &refusal.code,
        };
        // By a rule; what ran and did not end well has passed.
        let ended = ["timeout", "cancelled", "gone", "failed"];
        let refused = match decision.strip_prefix("bridge.") {
            Some(code) => !ended.contains(&code),
            None => matches!(decision, "tool.denied" | "tool.forbidden"),
        };
        let duration_ms = call.began.elapsed().as_secs_f64() * 1e3;
        self.0.audit(AuditRecord {
            session_id: call.invoke.session_id.clone().map(SessionId),
            subject: Some(format!("{} {}", call.invoke.tool, call.invoke.id)),
            errored: outcome.is_err(),
            policy_check_result: if refused {
                format!("refused: {decision}")
            } else {
                "passed".to_owned()
            },
            detail: outcome.as_ref().err().map(|it| it.message.clone()),
            duration_ms,
            ..AuditRecord::new(AuditKind::Bridge, 0, decision)
        });
    }
}

fn not_of_bridge(name: &str) -> BridgeError {
    BridgeError::new(
        "bridge.contract",
        format!("{name:?} is none of read, write, edit and exec"),
    )
}

/// Contract and parameters (C9, 2).
struct Valid;

impl Layer for Valid {
    fn name(&self) -> &'static str {
        "parameters"
    }
    fn before(&self, call: &mut Call) -> Result<(), BridgeError> {
        let name = &call.invoke.tool;
        let contract = Contract::from_name(name).ok_or_else(|| not_of_bridge(name))?;
        call.params = Some(Params::read(contract, &call.invoke.params)?);
        Ok(())
    }
}

/// How many calls run at once (C9, 3). One too many is refused, not queued.
struct Limited(Arc<Semaphore>, usize);

impl Layer for Limited {
    fn name(&self) -> &'static str {
        "concurrency"
    }
    fn before(&self, call: &mut Call) -> Result<(), BridgeError> {
        let permit = Arc::clone(&self.0).try_acquire_owned().map_err(|_| {
            BridgeError::new(
                "bridge.busy",
                format!("{} calls run already; wait for one of them", self.1),
            )
        })?;
        call.permit = Some(permit);
        Ok(())
    }
}

/// The points of the bridge, which only notify plugins.
struct NotifyHooks(SharedExecutor);

impl Layer for NotifyHooks {
    fn name(&self) -> &'static str {
        "points"
    }
    fn before(&self, call: &mut Call) -> Result<(), BridgeError> {
        let input = points::before_invoke::Input(call.identity());
        let (point, payload) = input.call(&Empty {});
        self.0.tell(call.connection, point, payload);
        Ok(())
    }
    fn after(&self, call: &Call, outcome: &Outcome) {
        match outcome {
            Ok(output) => {
                let input = points::after_invoke::Input(call.identity());
                let (point, payload) = input.call(&points::after_invoke::Output {
                    title: &output.title,
                    bytes: output.output.len(),
                });
                self.0.tell(call.connection, point, payload);
            }
            Err(refusal) => {
                let input = points::on_error::Input {
                    call: call.identity(),
                    code: &refusal.code,
                    message: &refusal.message,
                };
                let (point, payload) = input.call(&Context::default());
                self.0.tell(call.connection, point, payload);
            }
        }
    }
}

/// The strict path guard (C9, 4): everything is in the bridge's folder, links followed; and what says which programs are
/// started in it is written by nobody, since a command on the list may be git, and the user works there, too.
struct PathGuard {
    roots: Roots,
    root: std::path::PathBuf,
}

impl Layer for PathGuard {
    fn name(&self) -> &'static str {
        "paths"
    }
    fn before(&self, call: &mut Call) -> Result<(), BridgeError> {
        let params = call.params()?;
        let path = resolve(&self.root, std::path::Path::new(params.path()));
        let real = self
            .roots
            .contains(&path)
            .map_err(|error| BridgeError::new("bridge.path", error.to_string()))?;
        let writes = matches!(params, Params::Write(_) | Params::Edit(_));
        match self.reader(&path).or_else(|| self.reader(&real)) {
            Some(reader) if writes => Err(BridgeError::new(
                "bridge.path",
                format!(
                    "{} is not written over the bridge: it is what {reader} which programs to start",
                    params.path()
                ),
            )),
            _ => Ok(()),
        }
    }
}

impl PathGuard {
    /// The program that would run what a file below the bridge's folder names: git by `.git`, this program and others
    /// by their settings and plugins. Case is ignored, since some file systems ignore it.
    fn reader(&self, path: &std::path::Path) -> Option<&'static str> {
        let below = path.strip_prefix(&self.root).unwrap_or(path);
        below
            .components()
            .find_map(|part| {
                let is = |name: &str| part.as_os_str().eq_ignore_ascii_case(name);
                if is(".git") {
                    Some("tells git")
                } else if is(".claude") || SETTINGS.iter().any(|name| is(name)) {
                    Some("tells Outrigger and others")
                } else {
                    None
                }
            })
            .or_else(|| startup_file(below).map(|_| "tells Outrigger and others"))
    }
}

/// The command registry (C9, 5).
impl Layer for Commands {
    fn name(&self) -> &'static str {
        "commands"
    }
    fn before(&self, call: &mut Call) -> Result<(), BridgeError> {
        if let Some(Params::Exec(params)) = &mut call.params {
            params.command = self.admit(&params.command)?;
        }
        Ok(())
    }
}
