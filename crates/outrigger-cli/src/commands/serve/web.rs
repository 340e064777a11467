//! `outrigger web`: a server, and the page in the user's browser.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use outrigger_agent::Folders;
use outrigger_sandbox::{Spawner, Spec, env};
use outrigger_server::{Login, PAGE};

use crate::args::{Global, WebArgs};
use crate::failure::Failure;
use crate::signals::Signals;
use crate::terminal::err;

/// What `xdg-open` needs to find the browser of the user's desktop.
const DESKTOP: [&str; 5] = [
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "BROWSER",
];

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

/// The page of a server that listens.
pub(crate) struct Page {
    open: bool,
}

impl Page {
    /// Says where the page is, and opens it. What lives until the server ends is answered.
    pub(super) async fn show(
        self,
        at: SocketAddr,
        login: Option<&Login>,
        folders: &Folders,
    ) -> Option<Opened> {
        let url = address(at, login);
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

/// Where the page is. What a browser sends to a server is without the fragment, so the token is in no request and no log.
fn address(at: SocketAddr, login: Option<&Login>) -> String {
    // Any address: this machine's own is one of them.
    let host = match at {
        _ if !at.ip().is_unspecified() => at.to_string(),
        SocketAddr::V4(_) => format!("127.0.0.1:{}", at.port()),
        SocketAddr::V6(_) => format!("[::1]:{}", at.port()),
    };
    let token = login.map(|login| {
        let pair = format!("{}:{}", login.username, login.password);
        format!("#token={}", URL_SAFE_NO_PAD.encode(pair))
    });
    format!("http://{host}{PAGE}{}", token.unwrap_or_default())
}

/// A file that leads to the page, for this user alone: arguments of processes are for everybody on the machine to read.
pub(super) struct Opened(PathBuf);

impl Drop for Opened {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
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
        // In a session of its own: the browser stays when the server ends. It writes where nobody reads.
        let spec = Spec::new("setsid")
            .args(["--fork", "xdg-open"])
            .arg(&opened.0)
            .vars(env::of_host(&DESKTOP))
            .label("browser");
        let mut child = (spawner.spawn(spec).await).map_err(|error| error.to_string())?;
        let exit = child.wait().await.map_err(|error| error.to_string())?;
        match exit.success() {
            true => Ok(opened),
            false => Err(format!("setsid: {exit}")),
        }
    }

    fn write(url: &str, folders: &Folders) -> io::Result<Self> {
        let path = folders
            .data
            .join(format!("web-{}.html", std::process::id()));
        fs::create_dir_all(&folders.data)?;
        let _ = fs::remove_file(&path);
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)?;
        // An address with a base64 text has nothing that HTML would read.
        writeln!(
            file,
            "<!doctype html><meta charset=utf-8><title>Outrigger</title><meta http-equiv=refresh content=\"0;url={url}\"><a href=\"{url}\">Outrigger</a>"
        )?;
        Ok(Self(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_in_the_fragment_alone() {
        let login = Login {
            username: "opencode".into(),
            password: "a b+c?".into(),
        };
        for (at, login, want) in [
            (
                "127.0.0.1:4096",
                None,
                "http://127.0.0.1:4096/outrigger/web/",
            ),
            (
                "0.0.0.0:1",
                Some(&login),
                "http://127.0.0.1:1/outrigger/web/#token=b3BlbmNvZGU6YSBiK2M_",
            ),
            ("[::]:1", None, "http://[::1]:1/outrigger/web/"),
            ("[::1]:1", None, "http://[::1]:1/outrigger/web/"),
        ] {
            assert_eq!(address(at.parse().unwrap(), login), want);
        }
    }
}
