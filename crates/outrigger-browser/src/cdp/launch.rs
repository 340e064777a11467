//! Finding Chromium and starting it.

use std::path::{Path, PathBuf};

use outrigger_sandbox::{Child, Spawner, Spec, env};
use serde_json::{Value, json};

use super::{Connection, Event, over_pipe};
use crate::error::BrowserError;

/// Program names in distributions; the first one found is used.
const NAMES: [&str; 5] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
];

/// Disables features that pages do not need; most of them connect to hosts of the vendor.
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

/// Arguments that enforce the restrictions. They are last, so that they override earlier ones.
fn held(proxy: u16) -> [String; 7] {
    [
        format!("--proxy-server=http://127.0.0.1:{proxy}"),
        // Also for addresses of this machine.
        "--proxy-bypass-list=<-loopback>".to_owned(),
        // Only the proxy resolves names.
        "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1".to_owned(),
        "--dns-prefetch-disable".to_owned(),
        "--disable-quic".to_owned(),
        "--disable-extensions".to_owned(),
        "--disable-component-extensions-with-background-pages".to_owned(),
    ]
}

/// Arguments that would lift restrictions: for other programs, the network, files.
const REFUSED: [&str; 12] = [
    "--remote-debugging-",
    "--remote-allow-origins",
    "--user-data-dir",
    "--load-extension",
    "--enable-unsafe-extension-debugging",
    "--disable-web-security",
    "--allow-file-access",
    "--no-proxy-server",
    "--proxy-",
    "--host-",
    "--enable-quic",
    "--origin-to-force-quic-on",
];

/// Settings that a machine policy would contain; here they apply only to the profile.
fn preferences(downloads: &Path) -> Value {
    json!({
        "policy": { "url_blocklist": [
            "file://*", "javascript://*", "view-source://*", "devtools://*",
        ] },
        // Datagrams cannot go through the proxy, so they are disabled.
        "webrtc": { "ip_handling_policy": "disable_non_proxied_udp", "multiple_routes_enabled": false, "nonproxied_udp_enabled": false },
        "download": { "default_directory": downloads, "prompt_for_download": false },
        "browser": { "has_seen_welcome_page": true },
    })
}

/// How a Chromium is started.
#[derive(Clone, Debug)]
pub(crate) struct Launch<'a> {
    pub(crate) program: &'a Path,
    /// Private folder: profile, downloads, uploads.
    pub(crate) folder: &'a Path,
    pub(crate) headless: bool,
    pub(crate) arguments: &'a [String],
    /// Port of its proxy.
    pub(crate) proxy: u16,
}

impl Launch<'_> {
    /// Writes the settings of the profile before its first use.
    fn prepare(&self) -> std::io::Result<()> {
        let profile = self.folder.join("profile/Default");
        std::fs::create_dir_all(&profile)?;
        let preferences = preferences(&self.folder.join("downloads"));
        std::fs::write(profile.join("Preferences"), preferences.to_string())
    }

    /// Returns the first argument of the user that would lift a restriction.
    fn refused_argument(&self) -> Option<&str> {
        let opens = |it: &&String| REFUSED.iter().any(|start| it.starts_with(start));
        self.arguments.iter().find(opens).map(String::as_str)
    }
}

/// Finds the Chromium of this machine.
#[must_use]
pub fn find() -> Option<PathBuf> {
    let path = env::of_host(&[])
        .into_iter()
        .find(|(name, _)| name == "PATH")
        .map(|(_, value)| value)?;
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
    if let Some(argument) = launch.refused_argument() {
        return Err(failed(format!(
            "`browser.arguments` has {argument}, which would open it to others; take it out"
        )));
    }
    launch
        .prepare()
        .map_err(|error| failed(format!("its profile: {error}")))?;
    let mut child = spawner
        .spawn(spec_of(launch))
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

/// Its process.
fn spec_of(launch: &Launch<'_>) -> Spec {
    let profile = launch.folder.join("profile");
    // Chromium reads commands from descriptor 3 and writes to 4; one socket serves as both.
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
    // Its own sandbox does not work for root.
    if is_root() {
        spec = spec.arg("--no-sandbox");
    }
    spec.args(launch.arguments)
        .args(held(launch.proxy))
        .arg("about:blank")
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0)
}
