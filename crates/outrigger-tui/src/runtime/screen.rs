//! The terminal while the interface uses it: the only place that writes to it and restores it.

use std::io;
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use rustix::termios::{InputModes, LocalModes, OptionalActions, OutputModes, Termios};

use super::paint::Painter;
use crate::app::App;

/// Alternate screen, bracketed paste, distinguishable keys (shift and return), and the window's title kept for later.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?2004h\u{1b}[>1u\u{1b}[22;2t\u{1b}[?25l";
const MOUSE: &str = "\u{1b}[?1000h\u{1b}[?1006h";
/// Reverts all of that, whichever of it was set.
const LEAVE: &str = "\u{1b}[?2026l\u{1b}[23;2t\u{1b}[<1u\u{1b}[?1006l\u{1b}[?1000l\u{1b}[?2004l\u{1b}[0m\u{1b}[?25h\u{1b}[?1049l";

/// The interface owns the terminal.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// The terminal. Restored on drop.
pub(crate) struct Screen {
    painter: Painter,
    mouse: bool,
    /// The title of the window; `None` before the first one.
    title: Option<String>,
    /// The terminal modes before, which are restored.
    before: Option<Termios>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// There is no terminal, or it cannot be set.
    pub(crate) fn open(mouse: bool) -> io::Result<Self> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                restore();
                before(panic);
            }));
        });
        let mut screen = Self {
            painter: Painter::default(),
            mouse,
            title: None,
            before: rustix::termios::tcgetattr(rustix::stdio::stdin())
                .ok()
                .map(sane),
        };
        screen.take()?;
        Ok(screen)
    }

    /// Takes the terminal again.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub(crate) fn take(&mut self) -> io::Result<()> {
        // Restores sane modes in case an editor crashed or an earlier process of ours was killed.
        if let Some(before) = &self.before {
            let _ =
                rustix::termios::tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before);
        }
        crossterm::terminal::enable_raw_mode()?;
        TAKEN.store(true, SeqCst);
        self.painter.forget();
        self.title = None;
        let mouse = if self.mouse { MOUSE } else { "" };
        send(&format!("{ENTER}{mouse}"))
    }

    /// Releases the terminal for a while.
    pub(crate) fn lend(&mut self) {
        restore();
    }

    /// Returns columns and rows.
    pub(crate) fn size() -> (u16, u16) {
        let size = rustix::termios::tcgetwinsize(rustix::stdio::stdout());
        match size {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col, size.ws_row),
            _ => (80, 24),
        }
    }

    /// Draws the state.
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn draw(&mut self, app: &mut App) -> io::Result<()> {
        let (columns, rows) = app.size;
        let mut buffer = Buffer::empty(Rect::new(0, 0, columns, rows));
        let cursor: Option<Position> = crate::view::draw(app, &mut buffer);
        let title = crate::view::window_title(app);
        if self.title.as_ref() != Some(&title) {
            send(&format!("\u{1b}]2;{title}\u{7}"))?;
            self.title = Some(title);
        }
        send(&self.painter.frame(buffer, cursor))
    }

    /// Copies a text to the clipboard if the terminal allows it (OSC 52).
    ///
    /// # Errors
    /// The terminal is gone.
    pub(crate) fn copy(text: &str) -> io::Result<()> {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(text);
        send(&format!("\u{1b}]52;c;{text}\u{7}"))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Returns the modes in which a shell reads lines: a killed program may have left others.
fn sane(mut termios: Termios) -> Termios {
    if !termios.local_modes.contains(LocalModes::ICANON) {
        termios.local_modes |=
            LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        termios.input_modes |= InputModes::ICRNL | InputModes::IXON;
        termios.output_modes |= OutputModes::OPOST | OutputModes::ONLCR;
    }
    termios
}

/// Restores the terminal if the interface owns it.
fn restore() {
    if TAKEN.swap(false, SeqCst) {
        let _ = send(LEAVE);
        let _ = crossterm::terminal::disable_raw_mode();
    }
}

fn send(text: &str) -> io::Result<()> {
    let mut rest = text.as_bytes();
    while !rest.is_empty() {
        match rustix::io::write(rustix::stdio::stdout(), rest) {
            Ok(sent) => rest = rest.get(sent..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            // Another process made it non-blocking: wait until it accepts more.
            Err(rustix::io::Errno::AGAIN) => {
                let mut fds = [rustix::event::PollFd::from_borrowed_fd(
                    rustix::stdio::stdout(),
                    rustix::event::PollFlags::OUT,
                )];
                rustix::event::poll(&mut fds, None)?;
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
