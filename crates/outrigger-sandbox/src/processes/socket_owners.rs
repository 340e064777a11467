//! Checks whether a process, or one that it started, and no other process listens at an address.

use std::collections::HashSet;
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use outrigger_network_proxy::ProcessSockets;

use crate::processes::procfs;
use crate::processes::tag;
use crate::processes::tree::{Root, members};

/// The state `TCP_LISTEN` in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// The names of this machine and of others.
const HOSTS: &str = "/etc/hosts";

/// Answers the proxy's queries from `/proc`.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProcSockets;

impl ProcessSockets for ProcSockets {
    fn listens(&self, pid: u32, to: IpAddr, port: u16) -> bool {
        listens(pid, to, port)
    }

    fn connects(&self, pids: &[u32], from: u16, to: u16) -> Option<usize> {
        connects(pids, from, to)
    }
}

/// Returns whether a connection to this address and port goes to `pid` or its tree, and to no other process. Reads `/proc`;
/// takes some milliseconds.
pub(crate) fn listens(pid: u32, to: IpAddr, port: u16) -> bool {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let all: Vec<Listener> = tables
        .into_iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .flat_map(|text| listeners(&text, port))
        .collect();
    let sockets = answering(&all, to);
    if sockets.is_empty() {
        return false;
    }
    let root = Root {
        pid,
        is_ours: true,
        tag: tag::of(pid),
    };
    let members = members(root, &procfs::all(), tag::of);
    // Several may share an address (`SO_REUSEPORT`), and the system picks one of them.
    sockets
        .iter()
        .all(|socket| members.iter().any(|member| has_open(member.pid, socket)))
}

/// Returns whether a connection to this host, which is of this machine, goes to a command in a sandbox of any Outrigger of this user.
/// What the user's settings name there is somebody else's: a command that has taken the port would be sent the user's keys. Other
/// hosts than loopback addresses, `localhost` and names that `/etc/hosts` gives to this machine are not looked at. Reads `/proc`; the tables of sockets only where commands have some.
#[must_use]
pub fn command_listens(host: &str, port: u16) -> bool {
    let host = host.trim_matches(['[', ']']).trim_end_matches('.');
    let addresses = own_addresses(host);
    if addresses.is_empty() {
        return false;
    }
    let (commands, others): (Vec<u32>, Vec<u32>) =
        procfs::pids().partition(|it| tag::is_of_command(*it));
    let open: Vec<Option<Vec<u64>>> = commands.into_iter().map(open_sockets).collect();
    // A process can hide its files from a host that is not root.
    let is_hidden = open.iter().any(Option::is_none);
    let theirs: HashSet<u64> = open.into_iter().flatten().flatten().collect();
    if theirs.is_empty() && !is_hidden {
        return false;
    }
    let listening: Vec<u64> = addresses
        .into_iter()
        .flat_map(|ip| sockets(ip, port))
        .collect();
    let is_of_others = || {
        let known = others.into_iter().flat_map(open_sockets).flatten();
        let known: HashSet<u64> = known.collect();
        listening.iter().all(|it| known.contains(it))
    };
    listening.iter().any(|it| theirs.contains(it))
        || is_hidden && !listening.is_empty() && !is_of_others()
}

/// Returns the loopback addresses of a host: a literal address, `localhost`, or a name in `/etc/hosts`.
#[must_use]
pub fn own_addresses(host: &str) -> Vec<IpAddr> {
    own_addresses_by(host, || fs::read_to_string(HOSTS).unwrap_or_default())
}

/// `table`: the text of the table of names.
fn own_addresses_by(host: &str, table: impl FnOnce() -> String) -> Vec<IpAddr> {
    let is_own = |ip: &IpAddr| ip.to_canonical().is_loopback() || ip.is_unspecified();
    let is_local =
        host.eq_ignore_ascii_case("localhost") || host.to_ascii_lowercase().ends_with(".localhost");
    match host.parse::<IpAddr>() {
        Ok(ip) => [ip].into_iter().filter(is_own).collect(),
        Err(_) if is_local => vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()],
        Err(_) => named(host, &table()).filter(is_own).collect(),
    }
}

/// Returns the addresses that a table of names (`hosts(5)`) gives to a name.
fn named<'a>(name: &'a str, table: &'a str) -> impl Iterator<Item = IpAddr> + 'a {
    table.lines().filter_map(move |line| {
        let mut words = line.split('#').next()?.split_whitespace();
        let address = words.next()?.parse().ok()?;
        let mut names = words;
        names
            .any(|it| it.eq_ignore_ascii_case(name))
            .then_some(address)
    })
}

/// Returns the inodes of a process's sockets; `None` if its files cannot be seen.
fn open_sockets(pid: u32) -> Option<Vec<u64>> {
    let open = match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(open) => open,
        // It has ended.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Some(Vec::new()),
        Err(_) => return None,
    };
    let links = open
        .flatten()
        .filter_map(|it| fs::read_link(it.path()).ok());
    Some(links.filter_map(|it| inode(it.to_str()?)).collect())
}

/// Returns the number in the name of a socket among the open files of a process.
fn inode(name: &str) -> Option<u64> {
    name.strip_prefix("socket:[")?
        .strip_suffix(']')?
        .parse()
        .ok()
}

/// Returns the inodes of the sockets that may receive a connection to this address and port.
pub(crate) fn sockets(to: IpAddr, port: u16) -> Vec<u64> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"];
    let all: Vec<Listener> = tables
        .into_iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .flat_map(|text| listeners(&text, port))
        .collect();
    // "Every address" means this machine's loopback.
    let to = match to {
        IpAddr::V4(ip) if ip.is_unspecified() => IpAddr::V4(Ipv4Addr::LOCALHOST),
        IpAddr::V6(ip) if ip.is_unspecified() => IpAddr::V6(Ipv6Addr::LOCALHOST),
        other => other,
    };
    let found = answering(&all, to);
    // A socket whose owner cannot be determined has none.
    found
        .into_iter()
        .map(|name| inode(name).unwrap_or(0))
        .collect()
}

/// Returns which of these processes, or of their descendants, has an open connection from one local port to another. Reads
/// `/proc`; takes some milliseconds.
pub(crate) fn connects(pids: &[u32], from: u16, to: u16) -> Option<usize> {
    let files = ["/proc/net/tcp", "/proc/net/tcp6"];
    let sockets: Vec<String> = files
        .into_iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .flat_map(|text| connections(&text, from, to))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let all = procfs::all();
    pids.iter().position(|pid| {
        let root = Root {
            pid: *pid,
            is_ours: true,
            tag: tag::of(*pid),
        };
        *pid != 0
            && members(root, &all, tag::of)
                .iter()
                .any(|member| sockets.iter().any(|it| has_open(member.pid, it)))
    })
}

/// Returns the inodes of the sockets that connect the two ports.
fn connections(table: &str, from: u16, to: u16) -> Vec<String> {
    let port = |at: &str| u16::from_str_radix(at.rsplit_once(':')?.1, 16).ok();
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let here = port(fields.get(1)?)? == from && port(fields.get(2)?)? == to;
        let inode = fields.get(9)?;
        here.then(|| format!("socket:[{inode}]"))
    };
    table.lines().skip(1).filter_map(line).collect()
}

/// A listening socket: its address, and its name among the open files of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Listener {
    at: IpAddr,
    socket: String,
}

/// Returns those that may receive a connection to this address: listeners on it or, if there are none, on every address.
fn answering(all: &[Listener], to: IpAddr) -> Vec<&str> {
    let at = |fits: &dyn Fn(IpAddr) -> bool| -> Vec<&str> {
        all.iter()
            .filter(|it| fits(it.at.to_canonical()))
            .map(|it| it.socket.as_str())
            .collect()
    };
    let exact = at(&|at| at == to.to_canonical());
    if exact.is_empty() {
        at(&|at| at.is_unspecified() && (at.is_ipv6() || to.to_canonical().is_ipv4()))
    } else {
        exact
    }
}

/// Returns the listeners on a port.
fn listeners(table: &str, port: u16) -> Vec<Listener> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (address, at) = fields.get(1)?.rsplit_once(':')?;
        let here = u16::from_str_radix(at, 16).ok()? == port;
        let inode = fields.get(9)?;
        let listens = here && fields.get(3) == Some(&LISTENS);
        listens.then_some(Listener {
            at: address_of(address)?,
            socket: format!("socket:[{inode}]"),
        })
    };
    table.lines().skip(1).filter_map(line).collect()
}

/// Parses an address of the table: words of four bytes in native byte order.
fn address_of(digits: &str) -> Option<IpAddr> {
    let words: Vec<[u8; 4]> = (0..digits.len() / 8)
        .map(|word| {
            let word = digits.get(word * 8..word * 8 + 8)?;
            Some(u32::from_str_radix(word, 16).ok()?.to_ne_bytes())
        })
        .collect::<Option<_>>()?;
    let bytes = words.concat();
    let v4 = <[u8; 4]>::try_from(bytes.as_slice()).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes.as_slice()).map(IpAddr::from))
        .ok()
}

fn has_open(pid: u32, socket: &str) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    open.flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|link| link.to_str() == Some(socket))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    /// Attempt 1383 of docs/bypass/attempts.toml.
    #[test]
    fn names_of_this_machine_are_known() {
        let table = "127.0.0.1 localhost\n127.0.1.1\tbox box.lan # db2\n#127.0.0.1 off\n::1 Db\n10.0.0.7 far\n0.0.0.0 none\n";
        for (host, want) in [
            ("db", &["::1"][..]),
            ("DB.", &["::1"]),
            ("box.lan", &["127.0.1.1"]),
            ("db2", &[]),
            ("off", &[]),
            ("far", &[]),
            ("none", &["0.0.0.0"]),
            ("other", &[]),
            ("10.0.0.7", &[]),
            ("127.0.0.9", &["127.0.0.9"]),
        ] {
            let host = host.trim_end_matches('.');
            let found = own_addresses_by(host, || table.to_owned());
            let found: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(found, want, "{host}");
        }
    }

    #[test]
    fn the_own_port_and_nobody_elses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // The host is never a member of a tree, so only the table is checked.
        let table = || listeners(&fs::read_to_string("/proc/net/tcp").unwrap(), port);
        let found = table();
        let here: IpAddr = "127.0.0.1".parse().unwrap();
        assert_eq!(found.iter().map(|it| it.at).collect::<Vec<_>>(), [here]);
        assert!(has_open(std::process::id(), &found[0].socket));
        assert!(!listens(1, here, port));
        drop(listener);
        assert!(table().is_empty());
    }

    #[test]
    fn who_gets_a_connection() {
        let all = |at: &[&str]| -> Vec<Listener> {
            let listener = |at: &&str| Listener {
                at: at.parse().unwrap(),
                socket: (*at).to_owned(),
            };
            at.iter().map(listener).collect()
        };
        let rows: &[(&[&str], &str, &[&str])] = &[
            (&["127.0.0.1"], "127.0.0.1", &["127.0.0.1"]),
            (&["127.0.0.2"], "127.0.0.1", &[]),
            (&["127.0.0.2", "127.0.0.1"], "127.0.0.1", &["127.0.0.1"]),
            (&["0.0.0.0", "127.0.0.1"], "127.0.0.1", &["127.0.0.1"]),
            (&["0.0.0.0", "::"], "127.0.0.1", &["0.0.0.0", "::"]),
            (&["0.0.0.0", "::"], "::1", &["::"]),
            (&["::1"], "127.0.0.1", &[]),
            (&["::ffff:127.0.0.1"], "127.0.0.1", &["::ffff:127.0.0.1"]),
            (&["127.0.0.1"], "::ffff:127.0.0.1", &["127.0.0.1"]),
            (
                &["127.0.0.1", "127.0.0.1"],
                "127.0.0.1",
                &["127.0.0.1", "127.0.0.1"],
            ),
        ];
        for (listening, to, want) in rows {
            let all = all(listening);
            assert_eq!(
                answering(&all, to.parse().unwrap()),
                *want,
                "{listening:?} {to}"
            );
        }
    }

    #[test]
    fn addresses_of_the_table() {
        for (digits, want) in [
            ("0100007F", Some("127.0.0.1")),
            ("00000000", Some("0.0.0.0")),
            ("00000000000000000000000001000000", Some("::1")),
            ("0000000000000000FFFF00000100007F", Some("::ffff:127.0.0.1")),
            ("01000", None),
            ("", None),
        ] {
            let want = want.map(|want| want.parse().unwrap());
            if cfg!(target_endian = "little") {
                assert_eq!(address_of(digits), want, "{digits}");
            }
        }
    }
}
