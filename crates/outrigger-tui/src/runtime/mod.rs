//! The event loop: inputs update the state, its effects are performed, and the screen is redrawn.
//!
//! It waits for keys, events and responses, and each second of a turn, and the end of a notice: it does not wake up while nothing happens.

pub(crate) mod paint;
mod perform;
mod screen;

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crossterm::event::{Event as Terminal, EventStream, MouseButton, MouseEventKind};
use futures_util::StreamExt as _;
use outrigger_client::{ClientError, Connection, Events, StreamItem};
use outrigger_terminal::Frame;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, oneshot};

use self::screen::Screen;
use crate::app::{App, Options};
use crate::state::asking::Ask;
use crate::state::effect::{Effect, Input, Start};

/// Minimum time between frames of streaming text.
const FRAME: Duration = Duration::from_millis(16);
/// Pause before a server that is gone is asked again.
const RECONNECT: Duration = Duration::from_secs(1);
/// Time between the seconds of a turn that are shown.
const SECOND: Duration = Duration::from_secs(1);
/// Rows per step of the mouse wheel.
const WHEEL: isize = 3;

/// Lets the user's editor change a text.
type Edit = dyn Fn(&str) -> Result<String, String> + Send + Sync;
/// Writes a session to a file.
type Export = dyn Fn(&str, &str) -> Result<String, String> + Send + Sync;
/// Reads a file.
type Read = dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync;

/// Services of the surrounding program: the interface itself does not access files or processes.
pub struct Services {
    /// Stores a prompt for later runs.
    pub remember: Box<dyn Fn(&str) + Send + Sync>,
    /// Writes a session to a file as Markdown; returns the path of the file, or an error.
    pub export: Box<Export>,
    /// Stores the name of the chosen theme for later runs.
    pub keep_theme: Box<dyn Fn(&str) + Send + Sync>,
    /// Opens the user's editor on a text at this terminal and waits for it; returns the new text or an error.
    pub edit: Box<Edit>,
    /// Reads a file that the user named, if possible.
    pub read: Box<Read>,
}

/// Shows messages and questions of the agent's start to the user. Cheap to clone.
#[derive(Clone)]
pub struct Host {
    inputs: mpsc::UnboundedSender<Input>,
    asks: Arc<Mutex<HashMap<u64, oneshot::Sender<bool>>>>,
}

impl Host {
    /// Shows the progress of the start.
    pub fn progress(&self, text: impl Into<String>) {
        let _ = self.inputs.send(Input::Progress(text.into()));
    }

    /// Shows a problem that does not stop the start.
    pub fn notice(&self, text: impl Into<String>) {
        let _ = self.inputs.send(Input::Notice(text.into()));
    }

    /// Asks the user; anything but a yes is a no.
    pub async fn ask(&self, what: impl Into<String>, summary: Frame, details: Frame) -> bool {
        let (sender, receiver) = oneshot::channel();
        let id = {
            let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
            let id = asks.keys().max().map_or(0, |it| it + 1);
            asks.insert(id, sender);
            id
        };
        let ask = Ask {
            id,
            summary,
            details,
            what: what.into(),
        };
        let _ = self.inputs.send(Input::Ask(ask));
        receiver.await.unwrap_or(false)
    }

    fn answer(&self, id: u64, yes: bool) {
        let mut asks = self.asks.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = asks.remove(&id) {
            let _ = sender.send(yes);
        }
    }
}

/// Opens the interface, gets the agent from `connect`, and returns when the user quits or `stop` is ready.
///
/// # Errors
/// There is no terminal, or it disappears.
pub async fn run<F>(
    options: Options,
    start: Start,
    mouse: bool,
    services: Services,
    connect: impl FnOnce(Host) -> F,
    stop: impl Future<Output = ()>,
) -> io::Result<()>
where
    F: Future<Output = Result<Connection, ClientError>> + Send + 'static,
{
    let (sender, inputs) = mpsc::unbounded_channel();
    let host = Host {
        inputs: sender.clone(),
        asks: Arc::default(),
    };
    let mut screen = Screen::open(mouse)?;
    let mut app = App::new(options, Screen::size());
    screen.draw(&mut app)?;
    let connecting = tokio::spawn(connect(host.clone()));
    let mut interface = Interface {
        app,
        screen,
        inputs,
        sender,
        host,
        services: Arc::new(services),
        connection: None,
        events: None,
        reconnecting: None,
        start,
        began: Instant::now(),
        drawn: Instant::now(),
        ticked: Instant::now(),
        is_dirty: false,
    };
    let result = tokio::select! {
        biased;
        () = stop => Ok(()),
        result = interface.until_left(connecting) => result,
    };
    drop(interface);
    result
}

/// Waits until a notice disappears, this many milliseconds after the begin; for ever if there is none.
async fn faded(began: Instant, until: Option<u64>) {
    match until {
        Some(ms) => tokio::time::sleep_until((began + Duration::from_millis(ms)).into()).await,
        None => std::future::pending().await,
    }
}

struct Interface {
    app: App,
    screen: Screen,
    inputs: mpsc::UnboundedReceiver<Input>,
    sender: mpsc::UnboundedSender<Input>,
    host: Host,
    services: Arc<Services>,
    connection: Option<Connection>,
    events: Option<Events>,
    /// Listens to the server again once it is there.
    reconnecting: Option<Reconnecting>,
    start: Start,
    began: Instant,
    drawn: Instant,
    ticked: Instant,
    is_dirty: bool,
}

type Reconnecting = tokio::task::JoinHandle<Events>;
type Connecting = tokio::task::JoinHandle<Result<Connection, ClientError>>;

impl Interface {
    async fn until_left(&mut self, mut connecting: Connecting) -> io::Result<()> {
        let mut hangup = signal(SignalKind::hangup())?;
        let mut keys = EventStream::new();
        let mut is_started = false;
        loop {
            let due = self.drawn + FRAME;
            let second = self.ticked + SECOND;
            let input = tokio::select! {
                biased;
                _ = hangup.recv() => return Ok(()),
                key = keys.next() => match key {
                    Some(event) => of_terminal(event?),
                    None => return Ok(()),
                },
                connection = &mut connecting, if !is_started => {
                    is_started = true;
                    Some(self.connected(connection).await)
                }
                item = next_event(&mut self.events) => Some(of_stream(item)),
                events = reconnected(&mut self.reconnecting) => Some(self.back(events)),
                input = self.inputs.recv() => input,
                () = tokio::time::sleep_until(second.into()), if self.app.busy_for().is_some() => {
                    self.ticked = Instant::now();
                    Some(Input::Tick)
                }
                () = faded(self.began, self.app.notice_until()) => Some(Input::Tick),
                () = tokio::time::sleep_until(due.into()), if self.is_dirty => {
                    self.draw()?;
                    None
                }
            };
            let Some(input) = input else { continue };
            if matches!(input, Input::Gone) {
                self.events = None;
                self.reconnect();
            }
            let at_once = matches!(input, Input::Key(_) | Input::Paste(_) | Input::Resize(..));
            let now = u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX);
            let effects = self.app.update(input, now);
            for effect in effects {
                match effect {
                    Effect::Quit => return Ok(()),
                    Effect::Suspend => self.suspend()?,
                    Effect::Edit(text) => {
                        // A reader of the terminal would take keys from the editor.
                        drop(keys);
                        self.edit(&text)?;
                        keys = EventStream::new();
                    }
                    effect => self.perform(effect)?,
                }
            }
            self.is_dirty = true;
            if at_once {
                self.draw()?;
            }
        }
    }

    fn draw(&mut self) -> io::Result<()> {
        self.is_dirty = false;
        self.drawn = Instant::now();
        self.screen.draw(&mut self.app)
    }

    fn back(&mut self, events: Option<Events>) -> Input {
        self.reconnecting = None;
        self.events = events;
        Input::Back
    }

    /// Asks the server again and again, until it answers or the user leaves.
    fn reconnect(&mut self) {
        let Some(connection) = self.connection.clone() else {
            return;
        };
        self.reconnecting = Some(tokio::spawn(async move {
            loop {
                tokio::time::sleep(RECONNECT).await;
                if let Ok(events) = connection.listen().await {
                    return events;
                }
            }
        }));
    }

    async fn connected(
        &mut self,
        connection: Result<Result<Connection, ClientError>, tokio::task::JoinError>,
    ) -> Input {
        let failed = |error: ClientError| Input::Failed(error);
        let connection = match connection {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return failed(error),
            Err(error) => return failed(ClientError::new("tui.start", error.to_string(), None)),
        };
        match connection.listen().await {
            Ok(events) => {
                self.events = Some(events);
                self.connection = Some(connection);
                Input::Ready(std::mem::take(&mut self.start))
            }
            Err(error) => failed(error),
        }
    }
}

/// Completes with the events of the server once it answers again.
async fn reconnected(reconnecting: &mut Option<Reconnecting>) -> Option<Events> {
    match reconnecting {
        Some(task) => task.await.ok(),
        None => std::future::pending().await,
    }
}

async fn next_event(events: &mut Option<Events>) -> StreamItem {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

fn of_stream(item: StreamItem) -> Input {
    match item {
        StreamItem::Event(event) => Input::Bus(event),
        StreamItem::Gap => Input::Gap,
        StreamItem::End => Input::Gone,
    }
}

fn of_terminal(event: Terminal) -> Option<Input> {
    match event {
        Terminal::Key(key) => Some(Input::Key(key)),
        Terminal::Paste(text) => Some(Input::Paste(text)),
        Terminal::Resize(columns, rows) => Some(Input::Resize(columns, rows)),
        Terminal::Mouse(mouse) => match mouse.kind {
            MouseEventKind::ScrollUp => Some(Input::Wheel(-WHEEL)),
            MouseEventKind::ScrollDown => Some(Input::Wheel(WHEEL)),
            MouseEventKind::Down(MouseButton::Left) => Some(Input::Click(mouse.column, mouse.row)),
            _ => None,
        },
        _ => None,
    }
}
