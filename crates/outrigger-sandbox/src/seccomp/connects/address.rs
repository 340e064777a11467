//! Reads the address that a process wants to connect to.

use std::ffi::OsStr;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use rustix::net::AddressFamily;

use super::Errno;

/// The only address whose ports can be granted.
pub(super) const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// Size of the family field, which precedes the path of a UNIX socket.
const FAMILY: usize = 2;
/// `sizeof(struct sockaddr_in)`.
const INET: usize = 16;
/// `SIN6_LEN_RFC2133`: the minimum that the kernel accepts.
const INET6: usize = 24;

/// The target of a connection.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// An address; an IPv4-mapped IPv6 address becomes an IPv4 one.
    Inet(SocketAddr),
    /// A UNIX socket with a path.
    Path(PathBuf),
    /// A UNIX socket with a name that is not a path.
    Abstract,
    /// No address: disconnects, or is the kernel's own (netlink).
    Nothing,
}

/// Parses the bytes for a socket of this family. The kernel interprets the address by the socket's family, so that
/// decides, not the family field in the bytes.
pub(super) fn target(socket: AddressFamily, bytes: &[u8]) -> Result<Target, Errno> {
    let said = bytes.first_chunk().ok_or(libc::EINVAL)?;
    let said = AddressFamily::from_raw(u16::from_ne_bytes(*said));
    if said == AddressFamily::UNSPEC {
        return match socket {
            AddressFamily::INET | AddressFamily::INET6 | AddressFamily::NETLINK => {
                Ok(Target::Nothing)
            }
            _ => Err(libc::EINVAL),
        };
    }
    if said != socket {
        return Err(libc::EAFNOSUPPORT);
    }
    match socket {
        AddressFamily::INET => inet(bytes).ok_or(libc::EINVAL).map(Target::Inet),
        AddressFamily::INET6 => inet6(bytes).ok_or(libc::EINVAL).map(Target::Inet),
        AddressFamily::UNIX => unix_target(bytes.get(FAMILY..).unwrap_or_default()),
        AddressFamily::NETLINK => Ok(Target::Nothing),
        _ => Err(libc::EPERM),
    }
}

fn port(bytes: &[u8]) -> Option<u16> {
    let port: &[u8; 2] = bytes.get(2..)?.first_chunk()?;
    Some(u16::from_be_bytes(*port))
}

fn inet(bytes: &[u8]) -> Option<SocketAddr> {
    let address: &[u8; 4] = bytes.get(4..INET)?.first_chunk()?;
    Some(SocketAddr::new(
        Ipv4Addr::from(*address).into(),
        port(bytes)?,
    ))
}

fn inet6(bytes: &[u8]) -> Option<SocketAddr> {
    let address: &[u8; 16] = bytes.get(8..INET6)?.first_chunk()?;
    let address = Ipv6Addr::from(*address);
    let address = match address.to_ipv4_mapped() {
        Some(v4) => v4.into(),
        None => address.into(),
    };
    Some(SocketAddr::new(address, port(bytes)?))
}

fn unix_target(name: &[u8]) -> Result<Target, Errno> {
    match name.first() {
        None => Err(libc::EINVAL),
        Some(0) => Ok(Target::Abstract),
        Some(_) => {
            let path = name.split(|byte| *byte == 0).next().unwrap_or_default();
            Ok(Target::Path(OsStr::from_bytes(path).into()))
        }
    }
}

/// Returns the address of a TCP port of [`HERE`] for a socket of the IPv4 or IPv6 family.
pub(super) fn here(v6: bool, port: u16) -> Vec<u8> {
    let family = if v6 {
        AddressFamily::INET6
    } else {
        AddressFamily::INET
    };
    let mut bytes = family.as_raw().to_ne_bytes().to_vec();
    bytes.extend(port.to_be_bytes());
    if v6 {
        bytes.extend([0; 4]);
        bytes.extend(Ipv4Addr::LOCALHOST.to_ipv6_mapped().octets());
        bytes.extend([0; 4]);
    } else {
        bytes.extend(Ipv4Addr::LOCALHOST.octets());
        bytes.extend([0; 8]);
    }
    bytes
}

/// Returns the address of an open UNIX socket as a path in this process.
pub(super) fn unix(fd: libc::c_int) -> Vec<u8> {
    let mut bytes = AddressFamily::UNIX.as_raw().to_ne_bytes().to_vec();
    bytes.extend(format!("/proc/self/fd/{fd}\0").into_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const V4: AddressFamily = AddressFamily::INET;
    const V6: AddressFamily = AddressFamily::INET6;
    const UNIX: AddressFamily = AddressFamily::UNIX;

    fn bytes(family: AddressFamily, rest: &[u8]) -> Vec<u8> {
        [family.as_raw().to_ne_bytes().as_slice(), rest].concat()
    }

    #[test]
    fn what_addresses_say() {
        let v4 = bytes(V4, &[0x1f, 0x90, 10, 1, 2, 3, 0, 0, 0, 0, 0, 0, 0, 0]);
        let inet = |text: &str| Ok(Target::Inet(text.parse().unwrap()));
        let mut v6 = bytes(V6, &[0x1f, 0x90, 0, 0, 0, 0]);
        v6.extend("2001:db8::1".parse::<Ipv6Addr>().unwrap().octets());
        let rows = [
            (V4, v4.clone(), inet("10.1.2.3:8080")),
            (V4, here(false, 80), inet("127.0.0.1:80")),
            (V6, here(true, 80), inet("127.0.0.1:80")),
            (V6, v6.clone(), inet("[2001:db8::1]:8080")),
            // Too short, of another family, of none.
            (V4, v4[..15].to_vec(), Err(libc::EINVAL)),
            (V6, v6[..23].to_vec(), Err(libc::EINVAL)),
            (V4, vec![2], Err(libc::EINVAL)),
            (V4, v6, Err(libc::EAFNOSUPPORT)),
            (V6, v4, Err(libc::EAFNOSUPPORT)),
            (V4, vec![0, 0, 1, 2], Ok(Target::Nothing)),
            (UNIX, vec![0, 0], Err(libc::EINVAL)),
            (UNIX, bytes(UNIX, b""), Err(libc::EINVAL)),
            (UNIX, bytes(UNIX, b"\0name"), Ok(Target::Abstract)),
            (
                UNIX,
                bytes(UNIX, b"/run/x\0junk"),
                Ok(Target::Path("/run/x".into())),
            ),
            (UNIX, bytes(UNIX, b"x"), Ok(Target::Path("x".into()))),
            (
                AddressFamily::VSOCK,
                bytes(AddressFamily::VSOCK, &[0; 14]),
                Err(libc::EPERM),
            ),
        ];
        for (family, bytes, want) in rows {
            assert_eq!(target(family, &bytes), want, "{family:?} {bytes:?}");
        }
    }
}
