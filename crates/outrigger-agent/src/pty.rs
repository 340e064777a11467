//! Terminals of clients: `GET /pty` and what is under it.
//!
//! A terminal is a person's shell, not the model's: nothing asks for permission, since who opens it is who would be
//! asked. It ends with the agent. What it wrote is kept, up to a limit, for clients that come later.

mod buffer;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use outrigger_protocol::Object;
use outrigger_protocol::event::{CustomEvent, Event};
use outrigger_protocol::turn::HookPayload;
use outrigger_sandbox::{Child, SandboxError, Size, Spec, Terminal};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::{broadcast, watch};

use self::buffer::{Buffer, Decoder};
use crate::inner::{Agent, Inner, lock};

/// Terminals that run at once; more are a client out of control.
const MOST: usize = 64;
/// Pieces of output that a slow client may be behind.
const BEHIND: usize = 1024;
/// How long output is still read when the shell has ended but something of it has the terminal open.
const LINGER: Duration = Duration::from_millis(200);
/// How long a ticket is good for (the reference's figure).
const TICKET: Duration = Duration::from_secs(60);
/// Tickets that wait to be used.
const MOST_TICKETS: usize = 256;
/// Shells that are started as login shells, as in the reference.
const LOGIN: &[&str] = &["bash", "dash", "fish", "ksh", "sh", "zsh"];

/// A terminal, as `GET /pty` tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PtyInfo {
    /// Identifier, `pty_…`.
    pub id: String,
    /// For people.
    pub title: String,
    /// Program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Where it was started.
    pub cwd: PathBuf,
    /// `running`; one that has ended is no longer listed.
    pub status: &'static str,
    /// Process number.
    pub pid: u32,
}

/// What a client may say of a new terminal.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NewPty {
    /// Program; the user's shell where nothing is said.
    pub command: Option<String>,
    /// Its arguments.
    pub args: Option<Vec<String>>,
    /// Where to start it; the agent's folder where nothing is said.
    pub cwd: Option<PathBuf>,
    /// For people.
    pub title: Option<String>,
    /// Further variables.
    pub env: Option<BTreeMap<String, String>>,
}

/// Why there is no terminal.
#[derive(Debug, thiserror::Error)]
pub enum PtyError {
    /// A plugin's `shell.env` hook refused.
    #[error("a plugin refused the terminal: {0}")]
    Blocked(String),
    /// Too many run.
    #[error("{MOST} terminals run already; close one")]
    TooMany,
    /// The program cannot be started.
    #[error(transparent)]
    Start(#[from] SandboxError),
    /// It was started without its terminal, or a size or text was not taken.
    #[error("the terminal failed: {0}")]
    Io(#[from] std::io::Error),
}

/// A client's view of a terminal.
#[derive(Debug)]
pub struct Attached {
    /// What was written before, from where the client asked.
    pub replay: String,
    /// Where the output stands, in UTF-16 units from its beginning, as clients count.
    pub cursor: u64,
    output: broadcast::Receiver<Arc<str>>,
    terminal: Arc<Terminal>,
}

impl Attached {
    /// What the program writes next; `None` at its end.
    ///
    /// # Errors
    /// The client is so far behind that output was lost to it: it has to come again with its cursor.
    pub async fn next(&mut self) -> Result<Option<Arc<str>>, Behind> {
        match self.output.recv().await {
            Ok(text) => Ok(Some(text)),
            Err(broadcast::error::RecvError::Closed) => Ok(None),
            Err(broadcast::error::RecvError::Lagged(_)) => Err(Behind),
        }
    }

    /// What types into the terminal, also while its output is waited for.
    #[must_use]
    pub fn keyboard(&self) -> Keyboard {
        Keyboard(Arc::clone(&self.terminal))
    }
}

/// A client did not take the output as fast as it came.
#[derive(Debug, PartialEq, Eq)]
pub struct Behind;

/// Types into a terminal.
#[derive(Clone, Debug)]
pub struct Keyboard(Arc<Terminal>);

impl Keyboard {
    /// Types a text. Waits while the program does not read.
    ///
    /// # Errors
    /// The terminal is gone.
    pub async fn write(&self, text: &[u8]) -> Result<(), PtyError> {
        Ok(self.0.write_all(text).await?)
    }
}

/// The terminals of an agent.
#[derive(Debug, Default)]
pub(crate) struct Ptys {
    open: Mutex<BTreeMap<String, Arc<Pty>>>,
    tickets: Mutex<Vec<Ticket>>,
}

#[derive(Debug)]
struct Ticket {
    text: String,
    pty: String,
    until: Instant,
}

#[derive(Debug)]
struct Pty {
    info: Mutex<PtyInfo>,
    terminal: Arc<Terminal>,
    screen: Mutex<Screen>,
    stop: watch::Sender<bool>,
}

/// The two change together: what is in the buffer is not told to who comes after it.
#[derive(Debug)]
struct Screen {
    buffer: Buffer,
    /// `None` when the program has ended.
    output: Option<broadcast::Sender<Arc<str>>>,
}

impl Pty {
    fn show(&self, text: String) {
        if text.is_empty() {
            return;
        }
        let mut screen = lock(&self.screen);
        screen.buffer.push(&text);
        if let Some(output) = &screen.output {
            // Nobody looking on is no error.
            let _ = output.send(text.into());
        }
    }
}

impl Ptys {
    fn get(&self, id: &str) -> Option<Arc<Pty>> {
        lock(&self.open).get(id).cloned()
    }

    /// Whether there is none.
    pub(crate) fn is_empty(&self) -> bool {
        lock(&self.open).is_empty()
    }

    /// Ends all of them.
    pub(crate) fn close(&self) {
        for (_, pty) in std::mem::take(&mut *lock(&self.open)) {
            pty.stop.send_replace(true);
        }
    }
}

fn event(kind: &str, properties: Value) -> Event {
    let properties = match properties {
        Value::Object(fields) => fields,
        _ => Object::new(),
    };
    Event::Custom(CustomEvent {
        depth: 0,
        kind: kind.to_owned(),
        properties,
    })
}

impl Inner {
    /// Events of terminals that cannot be stored are told in the log: the terminal itself is not at fault.
    async fn tell_pty(&self, kind: &str, properties: Value) {
        if let Err(error) = self.commit(Vec::new(), vec![event(kind, properties)]).await {
            tracing::error!("[pty] {kind}: {error}");
        }
    }

    fn login_shell(&self) -> PathBuf {
        let named = self.config.config.shell.as_ref().map(PathBuf::from);
        let own = std::env::var_os("SHELL").map(PathBuf::from);
        named
            .or_else(|| own.filter(|shell| shell.is_file()))
            .or_else(|| {
                outrigger_sandbox::which("bash", std::env::var_os("PATH").unwrap_or_default())
            })
            .unwrap_or_else(|| PathBuf::from("/bin/sh"))
    }
}

impl Agent {
    /// The terminals that run, the oldest first.
    #[must_use]
    pub fn ptys(&self) -> Vec<PtyInfo> {
        let open = lock(&self.inner.ptys.open);
        open.values().map(|pty| lock(&pty.info).clone()).collect()
    }

    /// One of them.
    #[must_use]
    pub fn pty(&self, id: &str) -> Option<PtyInfo> {
        self.inner.ptys.get(id).map(|pty| lock(&pty.info).clone())
    }

    /// Opens a terminal and tells `pty.created`. Plugins' `shell.env` hooks say which variables it gets.
    ///
    /// # Errors
    /// [`PtyError`]; then no process is left.
    pub async fn open_pty(&self, new: NewPty) -> Result<PtyInfo, PtyError> {
        let inner = &self.inner;
        if lock(&inner.ptys.open).len() >= MOST {
            return Err(PtyError::TooMany);
        }
        let folder = &inner.place.directory;
        let cwd = new.cwd.map_or_else(
            || folder.clone(),
            |cwd| outrigger_sandbox::paths::resolve(folder, &cwd),
        );
        let env = self.pty_environment(&cwd, new.env).await?;
        let command = match new.command.filter(|command| !command.is_empty()) {
            Some(command) => PathBuf::from(command),
            None => inner.login_shell(),
        };
        let mut args = new.args.unwrap_or_default();
        let name = command.file_name().and_then(|name| name.to_str());
        if name.is_some_and(|name| LOGIN.contains(&name)) {
            args.push("-l".to_owned());
        }
        let spec = Spec::new(&command)
            .args(&args)
            .cwd(&cwd)
            .vars(env)
            .terminal(Size::default())
            .allow_new_privs()
            .label("terminal");
        let mut child = inner.commands_spawner.spawn(spec).await?;
        let terminal = child.terminal.take().ok_or_else(|| {
            std::io::Error::new(std::io::ErrorKind::NotFound, "there is no terminal")
        })?;
        let id = crate::ids::pty();
        let tail = id.get(id.len().saturating_sub(4)..).unwrap_or(&id);
        let info = PtyInfo {
            title: new
                .title
                .filter(|title| !title.is_empty())
                .unwrap_or_else(|| format!("Terminal {tail}")),
            command: command.to_string_lossy().into_owned(),
            args,
            cwd,
            status: "running",
            pid: child.pid(),
            id,
        };
        let (stop, stopped) = watch::channel(false);
        let pty = Arc::new(Pty {
            info: Mutex::new(info.clone()),
            terminal: Arc::new(terminal),
            screen: Mutex::new(Screen {
                buffer: Buffer::default(),
                output: Some(broadcast::Sender::new(BEHIND)),
            }),
            stop,
        });
        lock(&inner.ptys.open).insert(info.id.clone(), Arc::clone(&pty));
        inner.tell_pty("pty.created", json!({ "info": info })).await;
        tokio::spawn(follow(Arc::downgrade(inner), pty, child, stopped));
        Ok(info)
    }

    async fn pty_environment(
        &self,
        cwd: &Path,
        wished: Option<BTreeMap<String, String>>,
    ) -> Result<Vec<(std::ffi::OsString, std::ffi::OsString)>, PtyError> {
        let payload = HookPayload::new(json!({ "cwd": cwd }), json!({ "env": {} }));
        let result = self
            .inner
            .run_hooks("execute.before_shell", vec![payload], None, None, None)
            .await;
        if let Some(block) = result.block {
            return Err(PtyError::Blocked(block.message));
        }
        let mut added: Object = wished
            .into_iter()
            .flatten()
            .map(|(name, value)| (name, json!(value)))
            .collect();
        let hooks = result.outputs.first().and_then(|out| out.get("env"));
        added.extend(
            hooks
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default(),
        );
        added.insert("TERM".into(), json!("xterm-256color"));
        added.insert("OPENCODE_TERMINAL".into(), json!("1"));
        Ok(outrigger_tools::builtin::shell_environment(
            &[],
            Some(&added),
        ))
    }

    /// Changes title or size and tells `pty.updated`; `None` when there is no such terminal.
    ///
    /// # Errors
    /// [`PtyError::Io`] when the size was not taken.
    pub async fn update_pty(
        &self,
        id: &str,
        title: Option<String>,
        size: Option<Size>,
    ) -> Result<Option<PtyInfo>, PtyError> {
        let Some(pty) = self.inner.ptys.get(id) else {
            return Ok(None);
        };
        if let Some(size) = size {
            pty.terminal.resize(size)?;
        }
        let info = {
            let mut info = lock(&pty.info);
            if let Some(title) = title.filter(|title| !title.is_empty()) {
                info.title = title;
            }
            info.clone()
        };
        self.inner
            .tell_pty("pty.updated", json!({ "info": info }))
            .await;
        Ok(Some(info))
    }

    /// Ends a terminal with all that runs in it and tells `pty.deleted`; false when there is no such terminal.
    pub async fn remove_pty(&self, id: &str) -> bool {
        let Some(pty) = lock(&self.inner.ptys.open).remove(id) else {
            return false;
        };
        pty.stop.send_replace(true);
        self.inner
            .tell_pty("pty.deleted", json!({ "id": id }))
            .await;
        true
    }

    /// Looks on. `from` says which output is wanted first, in UTF-16 units from the beginning; without it all that is
    /// kept. `None` when there is no such terminal.
    #[must_use]
    pub fn attach_pty(&self, id: &str, from: PtyFrom) -> Option<Attached> {
        let pty = self.inner.ptys.get(id)?;
        let screen = lock(&pty.screen);
        let output = screen.output.as_ref()?.subscribe();
        let cursor = screen.buffer.end();
        let replay = match from {
            PtyFrom::Now => String::new(),
            PtyFrom::Kept => screen.buffer.since(0).to_owned(),
            PtyFrom::At(cursor) => screen.buffer.since(cursor).to_owned(),
        };
        Some(Attached {
            replay,
            cursor,
            output,
            terminal: Arc::clone(&pty.terminal),
        })
    }

    /// A word that lets who knows it attach to this terminal once, within a minute; `None` when there is no such terminal,
    /// or the system has no randomness.
    #[must_use]
    pub fn pty_ticket(&self, id: &str) -> Option<(String, Duration)> {
        self.inner.ptys.get(id)?;
        let mut bytes = [0_u8; 24];
        getrandom::fill(&mut bytes).ok()?;
        let text = outrigger_protocol::text::hex(&bytes);
        let mut tickets = lock(&self.inner.ptys.tickets);
        let now = Instant::now();
        tickets.retain(|ticket| ticket.until > now);
        if tickets.len() >= MOST_TICKETS {
            tickets.remove(0);
        }
        tickets.push(Ticket {
            text: text.clone(),
            pty: id.to_owned(),
            until: now + TICKET,
        });
        Some((text, TICKET))
    }

    /// Uses a ticket up; false when it is not one for this terminal.
    #[must_use]
    pub fn use_pty_ticket(&self, id: &str, text: &str) -> bool {
        let now = Instant::now();
        let mut tickets = lock(&self.inner.ptys.tickets);
        let found = tickets
            .iter()
            .position(|t| t.until > now && t.pty == id && same(&t.text, text));
        found.map(|at| tickets.remove(at)).is_some()
    }
}

/// Compares secrets without telling by the time where they differ.
fn same(a: &str, b: &str) -> bool {
    let differ = a
        .bytes()
        .zip(b.bytes())
        .fold(0, |all, (a, b)| all | (a ^ b));
    a.len() == b.len() && std::hint::black_box(differ) == 0
}

/// Which output of a terminal a client wants first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PtyFrom {
    /// All that is kept.
    Kept,
    /// From this place on.
    At(u64),
    /// Only what is still to come.
    Now,
}

/// Reads what the program writes until it ends or is stopped, and tells its end. The child is dropped, and with it what
/// still runs in the terminal, before anyone is told.
async fn follow(
    inner: Weak<Inner>,
    pty: Arc<Pty>,
    mut child: Child,
    mut stopped: watch::Receiver<bool>,
) {
    let mut decoder = Decoder::default();
    let mut buffer = vec![0; 8192];
    let mut open = true;
    let exit = loop {
        tokio::select! {
            _ = stopped.wait_for(|stop| *stop) => break None,
            read = pty.terminal.read(&mut buffer), if open => match read {
                Ok(count) if count > 0 => pty.show(decoder.push(buffer.get(..count).unwrap_or_default())),
                _ => open = false,
            },
            exit = child.wait() => break exit.ok(),
        }
    };
    if exit.is_some() && open {
        let rest = async {
            while let Ok(count @ 1..) = pty.terminal.read(&mut buffer).await {
                pty.show(decoder.push(buffer.get(..count).unwrap_or_default()));
            }
        };
        let _ = tokio::time::timeout(LINGER, rest).await;
    }
    pty.show(decoder.end());
    drop(child);
    lock(&pty.screen).output = None;
    let id = lock(&pty.info).id.clone();
    // A terminal that was removed has been told of already.
    if let (Some(exit), Some(inner)) = (exit, inner.upgrade()) {
        lock(&inner.ptys.open).remove(&id);
        // As shells count: 128 and the number of the signal.
        let code = exit.code.or(exit.signal.map(|signal| 128 + signal));
        inner
            .tell_pty(
                "pty.exited",
                json!({ "id": id, "exitCode": code.unwrap_or(0) }),
            )
            .await;
    }
}
