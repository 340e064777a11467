//! The network of a Chromium that we start: our proxy is its only connection to the network. Each connection is checked, whatever causes it (a
//! redirect, a subresource, a worker, a WebSocket, WebRTC, the browser itself), by its actual address: the proxy resolves names, not
//! Chromium.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use outrigger_network_proxy::{Client, Connection, Proxy, ProxyTicket, Upstream};
use outrigger_protocol::audit::{AuditKind, AuditRecord, POLICY_PASSED};
use outrigger_sandbox::ProcSockets;
use outrigger_stdx::clock::now_ms;
use outrigger_stdx::sync::lock;
use url::Url;

use crate::error::BrowserError;
use crate::record::RecordFn;
use crate::sites::Sites;

/// Maximum number of hosts whose refusals are remembered.
const MAX_REFUSED: usize = 1_000;
/// Hint for a refused address of this machine.
const HINT: &str = "a rule of the permission `webfetch` that names its address grants it";

/// Codes of refusals, by host and port.
type Refused = Arc<Mutex<HashMap<(String, u16), &'static str>>>;

/// The proxy of one browser.
pub(crate) struct Network {
    /// Stopped when this value is dropped.
    _proxy: Proxy,
    ticket: ProxyTicket,
    refused: Refused,
}

impl Network {
    /// Starts the proxy.
    ///
    /// # Errors
    /// [`BrowserError::Start`].
    pub(crate) async fn open(sites: &Arc<Sites>, record: &RecordFn) -> Result<Self, BrowserError> {
        let failed = |error| BrowserError::Start(format!("its proxy: {error}"));
        let environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        let proxy = Proxy::start(Upstream::of(&environment), ProcSockets)
            .await
            .map_err(failed)?;
        let refused = Refused::default();
        let (known, record, sites) = (Arc::clone(&refused), Arc::clone(record), Arc::clone(sites));
        let client = Client {
            name: "the browser".to_owned(),
            reach: outrigger_net::reach(),
            hint: HINT.to_owned(),
            on_connect: Arc::new(move |it| {
                remember(&known, it);
                record(connection(it));
            }),
        };
        let check = Arc::new(move |host: &str, port, address| sites.connects(host, port, address));
        let ticket = proxy.admit_checked(client, check).map_err(failed)?;
        Ok(Self {
            _proxy: proxy,
            ticket,
            refused,
        })
    }

    /// The proxy's port on `127.0.0.1`.
    pub(crate) fn port(&self) -> u16 {
        self.ticket.port()
    }

    /// Name and password of the proxy, unknown to other programs.
    pub(crate) fn login(&self) -> (String, String) {
        let url = Url::parse(&self.ticket.url()).ok();
        let part =
            |of: fn(&Url) -> Option<&str>| url.as_ref().and_then(of).unwrap_or_default().to_owned();
        (part(|it| Some(it.username())), part(Url::password))
    }

    /// Returns the code of the last refusal for the host of an address.
    pub(crate) fn refusal(&self, url: &str) -> Option<&'static str> {
        let url = Url::parse(url).ok()?;
        let place = (
            url.host_str()?.trim_matches(['[', ']']).to_owned(),
            url.port_or_known_default()?,
        );
        lock(&self.refused).get(&place).copied()
    }
}

fn remember(refused: &Refused, it: &Connection) {
    let mut refused = lock(refused);
    let place = (it.host.clone(), it.port);
    match it.refused {
        Some(why) => {
            if refused.len() >= MAX_REFUSED {
                refused.clear();
            }
            refused.insert(place, why.code());
        }
        None => drop(refused.remove(&place)),
    }
}

/// Returns the audit record of a connection of the browser.
fn connection(it: &Connection) -> AuditRecord {
    let (decision, policy) = match it.refused {
        Some(why) => ("deny", format!("refused: {}", why.code())),
        None => ("allow", POLICY_PASSED.to_owned()),
    };
    let more =
        (it.unreported > 0).then(|| format!("{} earlier refusals are not listed", it.unreported));
    let address = it.address.map(|address| address.to_string());
    let detail: Vec<String> = std::iter::once(it.client.clone())
        .chain(address)
        .chain(more)
        .collect();
    AuditRecord {
        subject: Some(format!("{}:{}", it.host, it.port)),
        errored: it.refused.is_some(),
        policy_check_result: policy,
        detail: Some(detail.join("; ")),
        ..AuditRecord::new(AuditKind::Network, now_ms(), decision)
    }
}
