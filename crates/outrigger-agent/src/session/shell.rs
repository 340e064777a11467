//! Commands that the user runs in a session: a user message with the command as its answer, so that the model reads both
//! with the next prompt. Needs no approval, since the user runs it.

use std::time::Duration;

use outrigger_kernel::hooks::HookInput;
use outrigger_kernel::hooks::points::execute::before_shell;
use outrigger_protocol::event::Event;
use outrigger_protocol::id::{CallId, MessageId, SessionId};
use outrigger_protocol::message::{
    AssistantMessage, MessageInfo, MessageTime, MessageWithParts, ModelRef, Part, PartKind,
    PartTime, TextPart, ToolPart, ToolState, UserMessage,
};
use outrigger_protocol::provenance::Provenance;
use outrigger_protocol::session::SessionStatus;
use outrigger_sandbox::{Child, Spec, Stdio};
use outrigger_tools::read_some;
use serde_json::json;
use tokio::sync::watch;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::error::AgentError;
use crate::state::Agent;
use crate::turn::effects::spawn::is_raised;
use crate::turn::turns::{CancelOnDrop, Registered};
use outrigger_session_state::bus::numbered;
use outrigger_session_state::ids;
use outrigger_stdx::clock::now_ms;

/// Maximum size in bytes of the stored output; the end is kept.
const MAX_OUTPUT: usize = 30_000;
/// Interval at which a running command's output is published.
const PROGRESS: Duration = Duration::from_millis(150);
/// Time for which output is still read after the shell exited while a descendant holds the pipe.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(250);

/// A command of the user.
#[derive(Clone, Debug, Default)]
pub struct ShellInput {
    /// The command line.
    pub command: String,
    /// Agent named by the messages; `None`: the default agent.
    pub agent: Option<String>,
    /// Model named by the messages; `None`: the model of the agent or session.
    pub model: Option<ModelRef>,
    /// Id of the user message, if the client chose one.
    pub message_id: Option<MessageId>,
}

impl Agent {
    /// Runs a command of the user in an idle session. [`Self::cancel`] ends it, keeping what it has printed, and so
    /// does a caller that disconnects.
    ///
    /// # Errors
    /// [`AgentError::NoSession`], [`AgentError::NoAgent`], [`AgentError::Working`] and [`AgentError::Busy`] while a turn
    /// runs, a model that cannot be used, and those of the store. What goes wrong with the command is its output.
    pub async fn shell(
        &self,
        id: &SessionId,
        input: ShellInput,
    ) -> Result<MessageWithParts, AgentError> {
        let (cancel, cancelled) = watch::channel(false);
        let mut guard = CancelOnDrop(Some(cancel.clone()));
        let (agent, id) = (self.clone(), id.clone());
        let task = tokio::spawn(async move {
            let queue = agent.state.sessions.locks.queue(&id);
            let place = queue.try_lock_owned();
            let _place = place.map_err(|_| AgentError::Working(id.to_string()))?;
            let _owner = agent.at_rest(&id)?;
            agent.state.sessions.turns.register(&id, cancel)?;
            let _registered = Registered {
                state: &agent.state,
                id: id.clone(),
            };
            agent.run_shell(&id, input, cancelled).await
        });
        let result = task.await;
        guard.0 = None;
        result.unwrap_or_else(|lost| Err(AgentError::Lost(lost.to_string())))
    }

    async fn run_shell(
        &self,
        id: &SessionId,
        input: ShellInput,
        mut cancelled: watch::Receiver<bool>,
    ) -> Result<MessageWithParts, AgentError> {
        let session = self.session(id)?;
        self.clean_up_revert(&session, &Provenance::default())
            .await?;
        let info = self.choose_agent(input.agent.as_deref())?;
        let model = self.choose_model(&session, &info, input.model.clone())?;
        let (begun, mut message, mut part) = self.pair(id, &info.name, model, &input);
        self.state.commit(Vec::new(), begun).await?;

        let mut output = Tail::default();
        let ended = tokio::select! {
            ended = self.follow(id, &input.command, &part, &mut output) => ended,
            true = is_raised(&mut cancelled) => {
                Err("<metadata>\nUser aborted the command\n</metadata>".to_owned())
            }
        };
        let (text, exit) = match ended {
            Ok(exit) => (output.text(), exit),
            Err(note) => (format!("{}\n\n{note}", output.text()), None),
        };
        let at = now_ms();
        message.time.completed = Some(at);
        complete(&mut part, (text, exit), at);
        let info = MessageInfo::Assistant(message);
        let events = vec![
            updated(id, info.clone()),
            part_updated(&part),
            status(id, SessionStatus::Idle),
            Event::SessionIdle {
                session_id: id.clone(),
            },
        ];
        self.state.commit(Vec::new(), events).await?;
        Ok(MessageWithParts {
            info,
            parts: vec![part],
        })
    }

    /// Returns the two messages as they are when the command begins.
    fn pair(
        &self,
        id: &SessionId,
        agent: &str,
        model: ModelRef,
        input: &ShellInput,
    ) -> (Vec<Event>, AssistantMessage, Part) {
        let at = now_ms();
        let time = MessageTime {
            created: at,
            completed: None,
        };
        let user = UserMessage {
            id: input.message_id.clone().unwrap_or_else(ids::message),
            session_id: id.clone(),
            time: time.clone(),
            agent: agent.to_owned(),
            model: model.clone(),
            ..UserMessage::default()
        };
        let message = AssistantMessage {
            id: ids::message(),
            parent_id: user.id.clone(),
            session_id: id.clone(),
            mode: agent.to_owned(),
            agent: agent.to_owned(),
            path: self.state.project.message_path(),
            model_id: model.model_id,
            provider_id: model.provider_id,
            time,
            ..AssistantMessage::default()
        };
        let part = |message_id: &MessageId, kind| Part {
            id: ids::part(),
            session_id: id.clone(),
            message_id: message_id.clone(),
            kind,
        };
        let said = part(&user.id, announced());
        let call = part(&message.id, running(&input.command, at));
        let events = vec![
            status(id, SessionStatus::Busy),
            updated(id, MessageInfo::User(user)),
            part_updated(&said),
            updated(id, MessageInfo::Assistant(message.clone())),
            part_updated(&call),
        ];
        (events, message, call)
    }

    /// Runs the command, publishes its output, and returns its exit code, if it has one. Dropping the future kills it with everything that it started.
    async fn follow(
        &self,
        id: &SessionId,
        command: &str,
        part: &Part,
        output: &mut Tail,
    ) -> Result<Option<i32>, String> {
        let mut child = self.start_shell(id, command, part).await?;
        let (mut stdout, mut stderr) = (child.stdout.take(), child.stderr.take());
        let (mut out, mut err) = (vec![0; 16 * 1024], vec![0; 16 * 1024]);
        let mut tick = interval(PROGRESS);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut ended, mut code): (Option<Instant>, _) = (None, None);
        while ended.is_none() || stdout.is_some() || stderr.is_some() {
            let linger = ended.unwrap_or_else(Instant::now) + DRAIN_TIMEOUT;
            tokio::select! {
                n = read_some(&mut stdout, &mut out), if stdout.is_some() => output.add(out.get(..n).unwrap_or_default()),
                n = read_some(&mut stderr, &mut err), if stderr.is_some() => output.add(err.get(..n).unwrap_or_default()),
                exit = child.wait(), if ended.is_none() => {
                    code = exit.map_err(|e| e.to_string())?.code;
                    ended = Some(Instant::now());
                }
                _ = tick.tick(), if output.fresh => self.show(part, output),
                () = tokio::time::sleep_until(linger), if ended.is_some() => break,
            }
        }
        Ok(code)
    }

    /// Starts the shell with the variables that plugins add (`shell.env`).
    async fn start_shell(
        &self,
        id: &SessionId,
        command: &str,
        part: &Part,
    ) -> Result<Child, String> {
        let cwd = &self.state.project.location.directory;
        let call = match &part.kind {
            PartKind::Tool(call) => call.call_id.clone(),
            _ => CallId::default(),
        };
        let input = before_shell::Input {
            cwd: &cwd.to_string_lossy(),
            session_id: Some(id),
            call_id: Some(&call),
        };
        let (point, payload) = input.call(&before_shell::Output::default());
        let result = self
            .state
            .run_hooks(point, vec![payload], Some(id), None, None)
            .await;
        if let Some(block) = result.block {
            return Err(block.message);
        }
        let added = result.outputs.first().and_then(before_shell::read);
        let options = &self.state.tools.options;
        let spec = Spec::new(outrigger_tools::builtin::shell_program(options))
            .arg("-c")
            .arg(command)
            .cwd(cwd)
            .vars(outrigger_tools::builtin::shell_environment(
                &options.shell_env,
                added,
            ))
            .var("TERM", "dumb")
            .stdout(Stdio::Pipe)
            .stderr(Stdio::Pipe)
            .allow_new_privs()
            .never_frozen()
            .label("shell");
        let child = self.state.processes.commands_spawner.spawn(spec).await;
        child.map_err(|e| format!("The command could not be started: {e}"))
    }

    /// Published but not stored: the result contains all of it.
    fn show(&self, part: &Part, output: &mut Tail) {
        output.fresh = false;
        let mut part = part.clone();
        if let PartKind::Tool(ToolPart {
            state: ToolState::Running { metadata, .. },
            ..
        }) = &mut part.kind
        {
            *metadata = Some(json!({ "output": output.text() }));
        }
        self.state.broadcast(vec![numbered(part_updated(&part))]);
    }
}

/// Returns the text of the user message.
fn announced() -> PartKind {
    PartKind::Text(TextPart {
        text: "The following tool was executed by the user".into(),
        synthetic: Some(true),
        ..TextPart::default()
    })
}

/// Returns the command as a running call.
fn running(command: &str, at: u64) -> PartKind {
    PartKind::Tool(ToolPart {
        call_id: CallId(ids::part().0.replacen("prt", "call", 1)),
        tool: "bash".into(),
        state: ToolState::Running {
            input: json!({ "command": command }),
            title: None,
            metadata: None,
            time: PartTime {
                start: at,
                end: None,
                ..PartTime::default()
            },
        },
        metadata: None,
        provenance: Provenance::default(),
        extra: serde_json::Map::new(),
    })
}

/// Completes the call with the command's output and exit code.
fn complete(part: &mut Part, (output, exit): (String, Option<i32>), at: u64) {
    let PartKind::Tool(call) = &mut part.kind else {
        return;
    };
    let start = match &call.state {
        ToolState::Running { time, .. } => time.start,
        _ => at,
    };
    call.state = ToolState::Completed {
        input: call.state.input().clone(),
        metadata: json!({ "output": output, "exit": exit }),
        output,
        title: String::new(),
        time: PartTime {
            start,
            end: Some(at),
            ..PartTime::default()
        },
        attachments: None,
    };
}

fn updated(id: &SessionId, info: MessageInfo) -> Event {
    Event::MessageUpdated {
        session_id: id.clone(),
        info: Box::new(info),
    }
}

fn part_updated(part: &Part) -> Event {
    Event::PartUpdated {
        session_id: part.session_id.clone(),
        part: Box::new(part.clone()),
        time: now_ms(),
    }
}

fn status(id: &SessionId, status: SessionStatus) -> Event {
    Event::SessionStatus {
        session_id: id.clone(),
        status,
    }
}

/// The last bytes of an output.
#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    cut: bool,
    /// Output arrived since the last publication.
    fresh: bool,
}

impl Tail {
    fn add(&mut self, bytes: &[u8]) {
        self.fresh |= !bytes.is_empty();
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() > 2 * MAX_OUTPUT {
            self.bytes.drain(..self.bytes.len() - MAX_OUTPUT);
            self.cut = true;
        }
    }

    fn text(&self) -> String {
        let from = self.bytes.len().saturating_sub(MAX_OUTPUT);
        let end = String::from_utf8_lossy(self.bytes.get(from..).unwrap_or_default());
        if self.cut || from > 0 {
            return format!("...output truncated...\n\n{end}");
        }
        end.into_owned()
    }
}
