//! Sockets that must not be created, and operations on other sockets that would connect or send without anyone deciding
//! about it.

use seccompiler::{
    BackendError, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition, SeccompRule,
};

use super::{Calls, FilterOptions, Rules};

/// `NETLINK_ROUTE`: interfaces and addresses.
const ROUTE: u64 = 0;
/// `SOCK_PACKET`, the old name of a packet socket.
const PACKET: libc::c_int = 10;
/// The low bits of a socket's type; the rest are flags.
const TYPE: u64 = 0xf;
/// `MSG_FASTOPEN`: data, and with it a connection, without `connect`.
const FAST_OPEN: u64 = 0x2000_0000;
/// Kinds of internet sockets that connect without TCP: SCTP, DCCP, RDS.
const OTHER_STREAMS: [libc::c_int; 3] = [libc::SOCK_RDM, libc::SOCK_SEQPACKET, DCCP];
/// `SOCK_DCCP`.
const DCCP: libc::c_int = 6;
/// `SOL_IP`, which IPv6 sockets accept, too.
const IP_LEVEL: u64 = 0;
/// `IP_LOCAL_PORT_RANGE`: the range from which the system picks ports.
const PORT_RANGE: u64 = 51;
const INTERNET: [libc::c_int; 2] = [libc::AF_INET, libc::AF_INET6];

/// Returns the rules of refused calls.
pub(super) fn rules(calls: Calls, options: FilterOptions) -> Result<Rules, BackendError> {
    let mut socket = other_families(calls.unix_sockets || options.host_rules_unix_sockets)?;
    socket.extend(kinds(calls)?);
    let mut rules = Rules::new();
    if options.landlock_rules_tcp {
        socket.extend(other_streams()?);
        rules.extend(fast_open()?);
    }
    rules.insert(libc::SYS_socket, socket);
    // The process must not choose "a port that the system picks".
    let option = |number, value| SeccompCondition::new(number, Len::Dword, Op::Eq, value);
    let range = SeccompRule::new(vec![option(1, IP_LEVEL)?, option(2, PORT_RANGE)?])?;
    rules.insert(libc::SYS_setsockopt, vec![range]);
    if !calls.unix_sockets {
        // One of a pair of datagram sockets can be reconnected to a path; one of a pair of stream sockets cannot. A raw UNIX
        // socket is a datagram socket.
        let pairs = [libc::SOCK_DGRAM, libc::SOCK_RAW]
            .into_iter()
            .map(|datagrams| SeccompRule::new(vec![kind(datagrams)?]))
            .collect::<Result<_, _>>()?;
        rules.insert(libc::SYS_socketpair, pairs);
    }
    Ok(rules)
}

fn family(op: Op, family: libc::c_int) -> Result<SeccompCondition, BackendError> {
    SeccompCondition::new(0, Len::Dword, op, u64::from(family.unsigned_abs()))
}

fn kind(kind: libc::c_int) -> Result<SeccompCondition, BackendError> {
    let kind = u64::from(kind.unsigned_abs());
    SeccompCondition::new(1, Len::Dword, Op::MaskedEq(TYPE), kind)
}

/// Matches sockets of one family and kind.
fn of(family_of: libc::c_int, kind_of: libc::c_int) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![family(Op::Eq, family_of)?, kind(kind_of)?])
}

/// Matches families other than the internet's, `NETLINK_ROUTE`, and UNIX sockets if those may be created.
fn other_families(unix: bool) -> Result<Vec<SeccompRule>, BackendError> {
    let mut other = vec![
        family(Op::Ne, libc::AF_INET)?,
        family(Op::Ne, libc::AF_INET6)?,
        family(Op::Ne, libc::AF_NETLINK)?,
    ];
    if unix {
        other.push(family(Op::Ne, libc::AF_UNIX)?);
    }
    let netlink = vec![
        family(Op::Eq, libc::AF_NETLINK)?,
        SeccompCondition::new(2, Len::Dword, Op::Ne, ROUTE)?,
    ];
    Ok(vec![SeccompRule::new(other)?, SeccompRule::new(netlink)?])
}

/// Matches raw sockets, and those that send without a connection.
fn kinds(calls: Calls) -> Result<Vec<SeccompRule>, BackendError> {
    let mut refused = Vec::new();
    if !calls.unix_sockets {
        // Nothing decides about data sent without a connection.
        for kind_of in [libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET] {
            refused.push(of(libc::AF_UNIX, kind_of)?);
        }
    }
    for family_of in INTERNET {
        for kind_of in [libc::SOCK_RAW, PACKET] {
            refused.push(of(family_of, kind_of)?);
        }
        if !calls.udp {
            refused.push(of(family_of, libc::SOCK_DGRAM)?);
        }
    }
    Ok(refused)
}

/// Matches streams that Landlock does not see: multipath TCP, SCTP and the like.
fn other_streams() -> Result<Vec<SeccompRule>, BackendError> {
    let protocol = |other: libc::c_int| {
        SeccompCondition::new(2, Len::Dword, Op::Ne, u64::from(other.unsigned_abs()))
    };
    let mut refused = Vec::new();
    for family_of in INTERNET {
        let other = vec![
            family(Op::Eq, family_of)?,
            kind(libc::SOCK_STREAM)?,
            protocol(0)?,
            protocol(libc::IPPROTO_TCP)?,
        ];
        refused.push(SeccompRule::new(other)?);
        for kind_of in OTHER_STREAMS {
            refused.push(of(family_of, kind_of)?);
        }
    }
    Ok(refused)
}

/// Refuses to connect by sending.
fn fast_open() -> Result<Rules, BackendError> {
    let mut rules = Rules::new();
    for (call, flags) in [
        (libc::SYS_sendto, 3),
        (libc::SYS_sendmsg, 2),
        (libc::SYS_sendmmsg, 3),
    ] {
        let open = SeccompCondition::new(flags, Len::Dword, Op::MaskedEq(FAST_OPEN), FAST_OPEN)?;
        rules.insert(call, vec![SeccompRule::new(vec![open])?]);
    }
    Ok(rules)
}
