//! Finding Chromium and starting it.

use std::path::{Path, PathBuf};

use outrigger_sandbox::{Child, Spawner, Spec, env};

use super::{Connection, Event, over_pipe};
use crate::error::BrowserError;

/// Names under which distributions have it, the first one that is there counts.
const NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

/// What Chromium need not do for us: nothing of it is the page's business, and most of it asks hosts of its maker.
const FLAGS: [&str; 17] = [
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-domain-reliability",
    "--disable-sync",
    "--disable-breakpad",
    "--disable-client-side-phishing-detection",
    "--disable-backgrounding-occluded-windows",
    "--disable-background-timer-throttling",
    "--disable-renderer-backgrounding",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,AutofillServerCommunication",
    "--metrics-recording-only",
    "--password-store=basic",
    "--use-mock-keychain",
];

/// How a Chromium is started.
#[derive(Clone, Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a Path,
    /// A folder of its own: profile, downloads, what is uploaded.
    pub(crate) folder: &'a Path,
    pub(crate) headless: bool,
    pub(crate) arguments: &'a [String],
}

/// The Chromium of this machine.
#[must_use]
pub fn find() -> Option<PathBuf> {
    let path = env::of_host(&[])
        .into_iter()
        .find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value)?;
    NAMES.iter().find_map(|name| {
        let mut folders = std::env::split_paths(&path);
        folders.find_map(|folder| {
            let file = folder.join(name);
            file.is_file().then_some(file)
        })
    })
}

/// Starts it. It ends with the [`Child`].
///
/// # Errors
/// [`BrowserError::Start`].
pub(crate) async fn start(
    launch: &Launch<'_>,
    spawner: &Spawner,
) -> Result<
    (
        Child,
        Connection,
        tokio::sync::mpsc::UnboundedReceiver<Event>,
    ),
    BrowserError,
> {
    let failed = |why: String| BrowserError::Start(format!("{}: {why}", launch.program.display()));
    if let Some(pattern) = spawner.forbids().and_then(|it| it.program(launch.program)) {
        return Err(failed(format!(
            "the policy of this machine forbids it (`{pattern}`)"
        )));
    }
    let profile = launch.folder.join("profile");
    // Chromium reads commands from descriptor 3 and writes to 4; ours is one socket, which does for both.
    let mut spec = Spec::new("/bin/sh")
        .args(["-c", "exec \"$0\" \"$@\" 4>&3"])
        .arg(launch.program)
        .args(FLAGS)
        .arg(format!("--user-data-dir={}", profile.display()))
        .vars(env::of_host(&[
            "DISPLAY",
            "WAYLAND_DISPLAY",
            "XAUTHORITY",
            "DBUS_SESSION_BUS_ADDRESS",
        ]))
        .cwd(launch.folder)
        .channel()
        .label("browser");
    if launch.headless {
        spec = spec.arg("--headless=new");
    }
    // Its own sandbox refuses to be made by root.
    if is_root() {
        spec = spec.arg("--no-sandbox");
    }
    spec = spec.args(launch.arguments).arg("about:blank");
    let mut child = spawner
        .spawn(spec)
        .await
        .map_err(|error| failed(error.to_string()))?;
    let channel = child
        .channel
        .take()
        .ok_or_else(|| failed("it has no channel".to_owned()))?;
    let (connection, wire, events) = Connection::new();
    over_pipe(channel, wire);
    Ok((child, connection, events))
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0)
}
