//! Registers the ports of this user's servers: a file for each in the data folder, `servers/PORT`, that names the process.
//!
//! A client that attaches without a password offers the kept one. Any user of the machine can listen on a port, so the password
//! is offered only if a living process has registered the listening socket here as its own. (The owning process cannot be
//! inspected without root.) The files are readable only by the user, and inaccessible to plugins.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use outrigger_sandbox::start_time;

/// A server's file, removed on drop.
#[derive(Debug)]
pub struct Announced(PathBuf);

impl Drop for Announced {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn folder(data: &Path) -> PathBuf {
    data.join("servers")
}

/// Registers a port of this process with its listening sockets.
///
/// # Errors
/// The data folder is not writable.
pub fn announce(data: &Path, port: u16) -> io::Result<Announced> {
    let folder = folder(data);
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(&folder)?;
    let pid = std::process::id();
    let path = folder.join(port.to_string());
    let sockets = listening(port).filter(|inode| is_own(*inode));
    let mut text = format!("{pid} {}", start_time(pid).unwrap_or_default());
    for socket in sockets {
        let _ = write!(text, " {socket}");
    }
    outrigger_files::replace(&path, text.as_bytes(), outrigger_files::Readers::Owner)?;
    Ok(Announced(path))
}

/// Returns whether every listener on this port of a local address is a registered server that still lives. `false` if there is no
/// listener, or it cannot be determined.
#[must_use]
pub fn is_announced(data: &Path, port: u16) -> bool {
    let Some(sockets) = announced_sockets(&folder(data).join(port.to_string())) else {
        return false;
    };
    let mut all = listening(port).peekable();
    all.peek().is_some() && all.all(|inode| sockets.contains(&inode))
}

/// Returns the local sockets that listen on a port.
fn listening(port: u16) -> impl Iterator<Item = u64> {
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .into_iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(move |table| listeners(&table, port))
}

/// Returns the sockets in a file, if the process that wrote it lives and runs as this user.
fn announced_sockets(path: &Path) -> Option<Vec<u64>> {
    let meta = fs::symlink_metadata(path).ok()?;
    if !meta.is_file() || meta.mode() & 0o077 != 0 {
        return None;
    }
    let text = outrigger_files::read_to_string(path, outrigger_files::SETTINGS).ok()?;
    let mut words = text.split_whitespace();
    let pid: u32 = words.next()?.parse().ok()?;
    let same = start_time(pid)? == words.next()?.parse::<u64>().ok()?;
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    let owner: u32 = uids.split_whitespace().next()?.parse().ok()?;
    let sockets = words.map(str::parse).collect::<Result<_, _>>().ok()?;
    (same && owner == meta.uid()).then_some(sockets)
}

/// Returns the sockets that listen on a port in a kernel table, at an address that a loopback address connects to.
fn listeners(table: &str, port: u16) -> Vec<u64> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, at) = fields.get(1)?.split_once(':')?;
        let listens = *fields.get(3)? == "0A";
        let here = u16::from_str_radix(at, 16).ok()? == port && is_local(address);
        (listens && here).then(|| fields.get(9)?.parse().ok())?
    };
    table.lines().skip(1).filter_map(row).collect()
}

/// Returns whether the address is loopback or "any" in the kernel's form: words of four bytes in native byte order (here: last
/// byte first).
fn is_local(address: &str) -> bool {
    match address.len() {
        8 => address == "00000000" || address.ends_with("7F"),
        32 => {
            let mapped = address.get(..24) == Some("0000000000000000FFFF0000");
            address == "0".repeat(32)
                || address == "00000000000000000000000001000000"
                || (mapped && address.ends_with("7F"))
        }
        _ => false,
    }
}

/// Returns whether this process holds the socket.
fn is_own(inode: u64) -> bool {
    let wanted = PathBuf::from(format!("socket:[{inode}]"));
    let open = fs::read_dir("/proc/self/fd");
    open.into_iter()
        .flatten()
        .flatten()
        .any(|entry| fs::read_link(entry.path()).is_ok_and(|link| link == wanted))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_who_said_so_and_listens_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(!is_announced(data, port), "nobody said so");
        let announced = announce(data, port).unwrap();
        assert!(is_announced(data, port));
        let file = data.join("servers").join(port.to_string());
        let mine = fs::read_to_string(&file).unwrap();

        for (text, why) in [
            ("1 1", "another process"),
            ("", "nobody"),
            (
                &*format!("{} 1", std::process::id()),
                "an earlier process of that number",
            ),
        ] {
            fs::write(&file, text).unwrap();
            assert!(!is_announced(data, port), "{why}");
        }
        fs::write(&file, &mine).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert!(!is_announced(data, port), "others could have written it");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(is_announced(data, port));

        // The same port at another local address would be reached by the same name.
        let twin = TcpListener::bind(("::1", port));
        drop(listener);
        if twin.is_err() {
            assert!(!is_announced(data, port), "nobody listens any more");
        }
        drop(announced);
        assert!(!file.exists());
    }

    #[test]
    fn the_kernels_tables_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
            0: 0100007F:1000 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 11 1\n\
            1: 00000000:1000 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 12 1\n\
            2: 0100007F:1000 0100007F:2000 01 00000000:00000000 00:00000000 00000000  1000        0 13 1\n\
            3: 0100007F:1001 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 14 1\n\
            4: 0100A8C0:1000 00000000:0000 0A 00000000:00000000 00:00000000 00000000  1000        0 15 1\n\
            5: 00000000000000000000000001000000:1000 0:0 0A 0:0 0:0 0  1000        0 16 1\n\
            6: 0000000000000000FFFF00000100007F:1000 0:0 0A 0:0 0:0 0  1000        0 17 1\n\
            7: 000080FE000000000000000001000000:1000 0:0 0A 0:0 0:0 0  1000        0 18 1\n\
            nonsense\n";
        assert_eq!(listeners(table, 0x1000), [11, 12, 16, 17]);
    }
}
