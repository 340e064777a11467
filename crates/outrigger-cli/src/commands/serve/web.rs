//! `outrigger web`: a server, and its page in the user's browser.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use outrigger_agent::Folders;
use outrigger_sandbox::{Spawner, Spec, env};
use outrigger_server::{PAGE, PageSession};

use crate::args::{Global, WebArgs};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::err;

/// Variables with which `xdg-open` finds the browser of the user's desktop.
const DESKTOP: [&str; 5] = [
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "BROWSER",
];

/// Prefix of the files that redirect a browser to the page.
const PREFIX: &str = "web-";
const SUFFIX: &str = ".html";

/// Runs the command.
pub(crate) async fn web(global: &Global, args: WebArgs, signals: Signals) -> Result<u8, Failure> {
    if !outrigger_web::is_built() {
        return Err(Failure::new(
            "web.page",
            "this program was built without the page",
            Some("run `cargo xtask web`, then build again".into()),
        ));
    }
    let page = Page {
        open: !args.no_open,
    };
    super::serve_with(global, args.serve, signals, Some(page)).await
}

/// The page of a listening server.
pub(crate) struct Page {
    open: bool,
}

impl Page {
    /// Prints the page's URL, and opens it. Returns what must live until the server ends.
    pub(super) async fn show(
        self,
        at: SocketAddr,
        session: Option<&PageSession>,
        folders: &Folders,
    ) -> Option<Opened> {
        let url = address(at, session.map(PageSession::token));
        err(&format!("page: {url}\n"));
        if !self.open {
            return None;
        }
        match Opened::browser(&url, folders).await {
            Ok(opened) => Some(opened),
            Err(why) => {
                err(&format!(
                    "no browser was opened ({why}): open that address\n"
                ));
                None
            }
        }
    }
}

/// Returns the page's URL. A browser does not send the fragment to the server, so the token is in no request and no log.
fn address(at: SocketAddr, token: Option<&str>) -> String {
    // Any address: this machine's own is one of them.
    let host = match at {
        _ if !at.ip().is_unspecified() => at.to_string(),
        SocketAddr::V4(_) => format!("127.0.0.1:{}", at.port()),
        SocketAddr::V6(_) => format!("[::1]:{}", at.port()),
    };
    let token = token.map(|token| format!("#token={token}"));
    format!("http://{host}{PAGE}{}", token.unwrap_or_default())
}

/// A file that redirects to the page, readable only by this user: process arguments are readable by every user of the machine. It is
/// locked as long as its server lives.
pub(super) struct Opened {
    path: PathBuf,
    _lock: File,
}

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Removes the files of killed servers. Their tokens are no longer valid.
pub(super) fn remove_leftovers(data: &Path) {
    for entry in fs::read_dir(data).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let number = (name.strip_prefix(PREFIX)).and_then(|rest| rest.strip_suffix(SUFFIX));
        if !number.is_some_and(|it| !it.is_empty() && it.bytes().all(|b| b.is_ascii_digit())) {
            continue;
        }
        let is_left = outrigger_files::open(&entry.path()).is_ok_and(|it| it.try_lock().is_ok());
        if is_left && let Err(error) = fs::remove_file(entry.path()) {
            tracing::warn!("[server] cannot remove {}: {error}", entry.path().display());
        }
    }
}

impl Opened {
    async fn browser(url: &str, folders: &Folders) -> Result<Self, String> {
        if outrigger_sandbox::which("xdg-open", std::env::var_os("PATH").unwrap_or_default())
            .is_none()
        {
            return Err("there is no xdg-open".into());
        }
        let opened = Self::write(url, folders).map_err(|error| error.to_string())?;
        let spawner = Spawner::new().map_err(|error| error.to_string())?;
        // In its own session: the browser stays open when the server ends. Its output is discarded.
        let spec = Spec::new("setsid")
            .args(["--fork", "xdg-open"])
            .arg(&opened.path)
            .vars(env::of_host(&DESKTOP))
            .label("browser");
        let mut child = (spawner.spawn(spec).await).map_err(|error| error.to_string())?;
        let exit = child.wait().await.map_err(|error| error.to_string())?;
        if exit.success() {
            Ok(opened)
        } else {
            Err(format!("setsid: {exit}"))
        }
    }

    fn write(url: &str, folders: &Folders) -> io::Result<Self> {
        let name = format!("{PREFIX}{}{SUFFIX}", std::process::id());
        let path = folders.data.join(name);
        fs::create_dir_all(&folders.data)?;
        let mut file = loop {
            let _ = fs::remove_file(&path);
            let mut options = OpenOptions::new();
            let options = options.write(true).create_new(true).mode(0o600);
            let file = options.open(&path)?;
            file.lock()?;
            // Another server may have taken it for a leftover before it was locked.
            if file.metadata()?.nlink() > 0 {
                break file;
            }
        };
        // A URL with base64 contains no special characters of HTML.
        writeln!(
            file,
            "<!doctype html><meta charset=utf-8><title>Outrigger</title><meta http-equiv=refresh content=\"0;url={url}\"><a href=\"{url}\">Outrigger</a>"
        )?;
        Ok(Self { path, _lock: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_in_the_fragment_alone() {
        for (at, token, want) in [
            (
                "127.0.0.1:4096",
                None,
                "http://127.0.0.1:4096/outrigger/web/",
            ),
            (
                "0.0.0.0:1",
                Some("b3_-"),
                "http://127.0.0.1:1/outrigger/web/#token=b3_-",
            ),
            ("[::]:1", None, "http://[::1]:1/outrigger/web/"),
            ("[::1]:1", None, "http://[::1]:1/outrigger/web/"),
        ] {
            assert_eq!(address(at.parse().unwrap(), token), want);
        }
    }

    #[test]
    fn what_a_killed_server_left_is_removed_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let others = [
            "web-.html",
            "web-x.html",
            "web-1.html.bak",
            "server-password",
        ];
        for name in others.iter().chain(&["web-1.html", "web-2.html"]) {
            fs::write(at(name), "x").unwrap();
        }
        let lives = File::open(at("web-2.html")).unwrap();
        lives.lock().unwrap();
        remove_leftovers(dir.path());
        assert!(!at("web-1.html").exists());
        assert!(at("web-2.html").exists());
        assert!(others.iter().all(|name| at(name).exists()));
        drop(lives);
        remove_leftovers(dir.path());
        assert!(!at("web-2.html").exists());
    }
}
