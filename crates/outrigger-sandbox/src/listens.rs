//! Whose port it is: whether a process, or something that it started, listens there.

use std::collections::HashSet;
use std::fs;

use crate::procfs;
use crate::setup::tag_of;
use crate::tree::{Root, members};

/// The state `TCP_LISTEN`, as `/proc/net/tcp` writes it.
const LISTENS: &str = "0A";

/// Whether `pid` or one of its tree listens on this TCP port. Reads `/proc`, some milliseconds.
pub(crate) fn listens(pid: u32, port: u16) -> bool {
    let files = ["/proc/net/tcp", "/proc/net/tcp6"];
    let sockets: HashSet<String> = files
        .into_iter()
        .filter_map(|file| fs::read_to_string(file).ok())
        .flat_map(|text| listeners(&text, port))
        .collect();
    if sockets.is_empty() {
        return false;
    }
    let root = Root {
        pid,
        is_ours: true,
        tag: tag_of(pid),
    };
    members(root, &procfs::all(), tag_of)
        .iter()
        .any(|member| has_open(member.pid, &sockets))
}

/// Which of these processes, or of what they started, has a connection from one port of this machine to another open. Reads
/// `/proc`, some milliseconds.
pub(crate) fn connects(pids: &[u32], from: u16, to: u16) -> Option<usize> {
    let files = ["/proc/net/tcp", "/proc/net/tcp6"];
    let sockets: HashSet<String> = files
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
            tag: tag_of(*pid),
        };
        *pid != 0
            && members(root, &all, tag_of)
                .iter()
                .any(|member| has_open(member.pid, &sockets))
    })
}

/// The inodes of the sockets that are connected from a port to a port.
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

/// The inodes of the sockets that listen on a port.
fn listeners(table: &str, port: u16) -> Vec<String> {
    let line = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().collect();
        let (_, at) = fields.get(1)?.rsplit_once(':')?;
        let here = u16::from_str_radix(at, 16).ok()? == port;
        let inode = fields.get(9)?;
        (here && fields.get(3) == Some(&LISTENS)).then(|| format!("socket:[{inode}]"))
    };
    table.lines().skip(1).filter_map(line).collect()
}

fn has_open(pid: u32, sockets: &HashSet<String>) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
        return false;
    };
    open.flatten()
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .any(|link| link.to_str().is_some_and(|link| sockets.contains(link)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_own_port_and_nobody_elses() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        // The host is never a member of a tree, so the table is asked alone.
        let table = fs::read_to_string("/proc/net/tcp").unwrap();
        let sockets: HashSet<String> = listeners(&table, port).into_iter().collect();
        assert_eq!(sockets.len(), 1);
        assert!(has_open(std::process::id(), &sockets));
        assert!(!listens(1, port));
        drop(listener);
        assert!(listeners(&fs::read_to_string("/proc/net/tcp").unwrap(), port).is_empty());
    }
}
