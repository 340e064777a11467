//! Which addresses tabs may show: the rules of `outrigger-browser-core`, with this machine's name resolution and ports.

use std::collections::HashMap;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use outrigger_browser_core::site::{Address, Refused, SiteRules, origin};
use outrigger_network_proxy::hosts::{Refusal, is_public};
use outrigger_stdx::sync::lock;
use url::Url;

/// Lifetime of a cached name resolution.
const NAME_LIFE: Duration = Duration::from_secs(30);
/// Maximum number of cached names.
const MAX_NAMES: usize = 1_000;

/// Maximum size of a socket table, in bytes.
const MAX_TABLE: u64 = 16 * 1024 * 1024;

/// Decides which addresses may be shown.
#[derive(Debug, Default)]
pub struct Sites {
    rules: Mutex<SiteRules>,
    names: Mutex<HashMap<String, (bool, Instant)>>,
    /// Folder with the ports of servers of this program.
    servers: Option<PathBuf>,
    /// For tests: sites are served by this process.
    is_test: bool,
}

impl Sites {
    /// Creates it with the folder in which Outrigger's servers register their ports, one file each.
    #[must_use]
    pub fn new(servers: Option<PathBuf>) -> Self {
        Self {
            servers,
            ..Self::default()
        }
    }

    /// For tests whose site is served by this process.
    #[doc(hidden)]
    #[must_use]
    pub fn for_tests(site: &str) -> Self {
        let sites = Self {
            is_test: true,
            ..Self::default()
        };
        if let Ok(url) = Url::parse(site) {
            sites.allow(&url);
        }
        sites
    }

    /// Records that a rule of the user allows this local origin by name.
    pub fn allow(&self, url: &Url) {
        if let Some(it) = of(url, true) {
            let origin = origin(it.scheme, it.host, it.port);
            let mut rules = lock(&self.rules);
            if !rules.local.contains(&origin) {
                rules.local.push(origin);
            }
        }
    }

    /// Returns the verdict about an address if it needs no name resolution; otherwise `None`.
    #[must_use]
    pub fn judge_known(&self, url: &str) -> Option<Result<(), Refused>> {
        let Ok(url) = Url::parse(url) else {
            return Some(Err(Refused::Scheme(String::new())));
        };
        let is_local = outrigger_net::is_local(&url);
        let host = url.host_str().unwrap_or_default();
        let known = is_local
            || url.domain().is_none()
            || lock(&self.names)
                .get(host)
                .is_some_and(|(_, at)| at.elapsed() < NAME_LIFE);
        known.then(|| {
            let leads = lock(&self.names).get(host).is_some_and(|(leads, _)| *leads);
            self.judge_as(&url, is_local || leads)
        })
    }

    /// Returns the verdict about an address. A name that resolves to this machine or its network counts as local.
    ///
    /// # Errors
    /// [`Refused`].
    pub async fn judge(&self, url: &str) -> Result<(), Refused> {
        if let Some(verdict) = self.judge_known(url) {
            return verdict;
        }
        let parsed = Url::parse(url).map_err(|_| Refused::Scheme(String::new()))?;
        let host = parsed.host_str().unwrap_or_default();
        let leads = outrigger_net::leads_to_local(host).await;
        {
            let mut names = lock(&self.names);
            if names.len() >= MAX_NAMES {
                names.clear();
            }
            names.insert(host.to_owned(), (leads, Instant::now()));
        }
        self.judge_as(&parsed, leads)
    }

    /// Checks whether the browser may connect to an address by its name. A local address needs a rule
    /// that names it like the connection does, so a name that changes its address later gains nothing.
    ///
    /// # Errors
    /// [`Refusal::Private`].
    pub(crate) fn connects(&self, host: &str, port: u16, address: IpAddr) -> Result<(), Refusal> {
        if is_public(address) {
            return Ok(());
        }
        let host = if host.contains(':') {
            format!("[{host}]")
        } else {
            host.to_owned()
        };
        let is_allowed = {
            let rules = lock(&self.rules);
            let allows = |scheme| rules.local.contains(&origin(scheme, &host, port));
            allows("http") || allows("https")
        };
        if is_allowed && !self.is_own(port) {
            Ok(())
        } else {
            Err(Refusal::Private(address))
        }
    }

    /// For tests: sets a cached name resolution.
    #[doc(hidden)]
    pub fn found(&self, host: &str, leads_to_local: bool) {
        lock(&self.names).insert(host.to_owned(), (leads_to_local, Instant::now()));
    }

    fn judge_as(&self, url: &Url, is_local: bool) -> Result<(), Refused> {
        let address = of(url, is_local).unwrap_or(Address {
            scheme: url.scheme(),
            ..Address::default()
        });
        if is_local && self.is_own(address.port) {
            return Err(Refused::OwnPort(address.port));
        }
        outrigger_net::check(url).map_err(|refused| Refused::Local(refused.to_string()))?;
        lock(&self.rules).judge(address)
    }

    /// Returns whether a server of this program listens on a port: this process, or a registered one.
    fn is_own(&self, port: u16) -> bool {
        let announced = self
            .servers
            .as_ref()
            .is_some_and(|folder| folder.join(port.to_string()).exists());
        announced || (!self.is_test && listens(port))
    }
}

fn of(url: &Url, is_local: bool) -> Option<Address<'_>> {
    let host = url.host_str()?;
    Some(Address {
        scheme: url.scheme(),
        host,
        port: url.port_or_known_default().unwrap_or_default(),
        is_local,
    })
}

/// Returns whether this process listens on a port.
fn listens(port: u16) -> bool {
    let Ok(folder) = std::fs::read_dir("/proc/self/fd") else {
        return false;
    };
    let links = folder
        .flatten()
        .filter_map(|it| std::fs::read_link(it.path()).ok());
    let sockets: Vec<String> = links
        .filter_map(|it| {
            Some(
                it.to_str()?
                    .strip_prefix("socket:[")?
                    .strip_suffix(']')?
                    .to_owned(),
            )
        })
        .collect();
    ["/proc/self/net/tcp", "/proc/self/net/tcp6"]
        .into_iter()
        .any(|table| {
            let text =
                outrigger_files::read_to_string(Path::new(table), MAX_TABLE).unwrap_or_default();
            text.lines().skip(1).any(|line| {
                let fields: Vec<&str> = line.split_ascii_whitespace().collect();
                let (Some(local), Some(state), Some(inode)) =
                    (fields.get(1), fields.get(3), fields.get(9))
                else {
                    return false;
                };
                let at = local
                    .rsplit_once(':')
                    .and_then(|(_, it)| u16::from_str_radix(it, 16).ok());
                *state == "0A" && at == Some(port) && sockets.iter().any(|it| it == inode)
            })
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn addresses_of_this_machine_take_a_rule_and_our_own_ports_none_opens() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("39999"), "").unwrap();
        let sites = Sites::new(Some(dir.path().to_owned()));
        let own = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let own = own.local_addr().unwrap().port();
        for allowed in [3000, own, 39999] {
            sites.allow(&Url::parse(&format!("http://127.0.0.1:{allowed}/")).unwrap());
        }
        let code = async |url: &str| sites.judge(url).await.map_err(|it| it.code()).err();
        assert_eq!(code("http://127.0.0.1:3000/x").await, None);
        assert_eq!(code("ws://127.0.0.1:3000/x").await, None);
        assert_eq!(code("http://127.0.0.1:3001/").await, Some("browser.local"));
        assert_eq!(code("http://[::1]:3000/").await, Some("browser.local"));
        assert_eq!(code("http://localhost:3000/").await, Some("browser.local"));
        assert_eq!(
            code(&format!("http://127.0.0.1:{own}/")).await,
            Some("browser.own_port")
        );
        assert_eq!(
            code("http://127.0.0.1:39999/").await,
            Some("browser.own_port")
        );
        assert_eq!(code("file:///etc/passwd").await, Some("browser.scheme"));
        assert_eq!(code("http://192.168.1.1/").await, Some("browser.local"));
        assert_eq!(code("not an address").await, Some("browser.scheme"));
    }
}
