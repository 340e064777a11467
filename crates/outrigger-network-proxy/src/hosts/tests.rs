use super::*;
use proptest::prelude::*;

fn reach(asked: Option<&[&str]>, granted: &[&str]) -> Reach {
    Reach {
        asked: asked.map(|list| Hosts::parse(list).unwrap()),
        granted: Hosts::parse(granted).unwrap(),
        forbidden: Hosts::default(),
    }
}

const PUBLIC: &str = "93.184.216.34";

#[test]
fn who_reaches_what() {
    type Row<'a> = (
        Option<&'a [&'a str]>,
        &'a [&'a str],
        &'a str,
        &'a str,
        &'a str,
    );
    let any = &["*"][..];
    let rows: &[Row<'_>] = &[
        (None, any, "example.com", PUBLIC, "ok"),
        (None, any, "example.com", "2606:2800::1", "ok"),
        (None, any, PUBLIC, PUBLIC, "ok"),
        // A name that resolves to this machine, to a private network, to a cloud's credentials.
        (None, any, "example.com", "127.0.0.1", "network.private"),
        (None, any, "example.com", "10.1.2.3", "network.private"),
        (
            None,
            any,
            "example.com",
            "169.254.169.254",
            "network.private",
        ),
        (None, any, "example.com", "100.64.0.1", "network.private"),
        (None, any, "example.com", "::1", "network.private"),
        (None, any, "example.com", "::", "network.private"),
        (None, any, "example.com", "0.0.0.0", "network.private"),
        (None, any, "example.com", "fd00::1", "network.private"),
        (None, any, "example.com", "fe80::1", "network.private"),
        (
            None,
            any,
            "example.com",
            "::ffff:127.0.0.1",
            "network.private",
        ),
        (None, any, "example.com", "::127.0.0.1", "network.private"),
        (
            None,
            any,
            "example.com",
            "64:ff9b::7f00:1",
            "network.private",
        ),
        (None, any, "example.com", "2002:7f00:1::", "network.private"),
        (None, any, "example.com", "2001::1", "network.private"),
        (None, any, "localhost", "127.0.0.1", "network.private"),
        // A granted name alone does not grant its address.
        (
            None,
            &["example.com"],
            "example.com",
            "127.0.0.1",
            "network.private",
        ),
        (None, &["*.corp"], "git.corp", "10.1.2.3", "network.private"),
        (
            None,
            &["*.corp", "10.0.0.0/8"],
            "git.corp",
            "10.1.2.3",
            "ok",
        ),
        (None, &["127.0.0.1"], "127.0.0.1", "127.0.0.1", "ok"),
        (
            None,
            &["127.0.0.1:80"],
            "127.0.0.1",
            "127.0.0.1",
            "network.private",
        ),
        (None, &["127.0.0.1:443"], "127.0.0.1", "127.0.0.1", "ok"),
        (None, &["127.0.0.1"], "2130706433", "127.0.0.1", "ok"),
        (None, &["localhost"], "localhost", "127.0.0.1", "ok"),
        (None, &["localhost"], "localhost", "::1", "ok"),
        (
            None,
            &["localhost"],
            "localhost",
            "10.0.0.1",
            "network.private",
        ),
        (
            None,
            &["localhost"],
            "other",
            "127.0.0.1",
            "network.not_granted",
        ),
        (None, &["[::1]:443"], "::1", "::1", "ok"),
        // Names.
        (
            None,
            &["example.com"],
            "evil.com",
            PUBLIC,
            "network.not_granted",
        ),
        (
            None,
            &["example.com"],
            "www.example.com",
            PUBLIC,
            "network.not_granted",
        ),
        (None, &["*.example.com"], "www.example.com", PUBLIC, "ok"),
        (None, &["*.example.com"], "a.b.example.com", PUBLIC, "ok"),
        (
            None,
            &["*.example.com"],
            "example.com",
            PUBLIC,
            "network.not_granted",
        ),
        (
            None,
            &["*.example.com"],
            "evilexample.com",
            PUBLIC,
            "network.not_granted",
        ),
        (
            None,
            &["example.com:80"],
            "example.com",
            PUBLIC,
            "network.not_granted",
        ),
        (None, &["example.com:443"], "example.com", PUBLIC, "ok"),
        (None, &[], "example.com", PUBLIC, "network.not_granted"),
        // A manifest gets no more than it requests, and private addresses only as far as granted.
        (Some(&["a.com"]), any, "a.com", PUBLIC, "ok"),
        (Some(&["a.com"]), any, "b.com", PUBLIC, "network.not_asked"),
        (
            Some(&["127.0.0.1"]),
            any,
            "127.0.0.1",
            "127.0.0.1",
            "network.private",
        ),
        (
            Some(&["127.0.0.1"]),
            &["*", "127.0.0.1"],
            "127.0.0.1",
            "127.0.0.1",
            "ok",
        ),
        (
            Some(&["a.com"]),
            &["*", "127.0.0.1"],
            "127.0.0.1",
            "127.0.0.1",
            "network.not_asked",
        ),
        (Some(any), &["127.0.0.1"], "127.0.0.1", "127.0.0.1", "ok"),
        (Some(&[]), any, "a.com", PUBLIC, "network.not_asked"),
    ];
    for (asked, granted, host, address, want) in rows {
        let reach = reach(*asked, granted);
        let address = address.parse().unwrap();
        let got = reach
            .before(host, 443)
            .and_then(|()| reach.address(host, 443, address))
            .map_or_else(Refusal::code, |()| "ok");
        assert_eq!(got, *want, "{asked:?} {granted:?} {host} {address}");
    }
}

#[test]
fn patterns_are_read_or_refused() {
    for (text, shown) in [
        ("Example.COM", Some("example.com")),
        ("example.com.", Some("example.com")),
        ("*.example.com:443", Some("*.example.com:443")),
        ("*:443", Some("*:443")),
        ("localhost:*", Some("localhost")),
        ("127.0.0.1:80", Some("127.0.0.1:80")),
        ("::1", Some("::1")),
        ("[::1]:80", Some("[::1]:80")),
        ("::ffff:10.0.0.1", Some("10.0.0.1")),
        ("10.0.0.0/8", Some("10.0.0.0/8")),
        ("10.0.0.0/33", None),
        ("", None),
        ("a b", None),
        ("http://a", None),
        ("a/b", None),
        ("user@a", None),
        ("a:0", None),
        ("a:99999", None),
        ("a..b", None),
        ("*.*", None),
        ("a*", None),
        ("[a]:80", None),
    ] {
        let read = HostRule::parse(text).ok().map(|rule| rule.to_string());
        assert_eq!(read.as_deref(), shown, "{text}");
    }
}

#[test]
fn authorities_that_could_mean_two_things_are_refused() {
    for (text, want) in [
        ("Example.com:443", Some("example.com:443")),
        ("example.com.:443", Some("example.com:443")),
        ("example.com", Some("example.com:80")),
        ("[::1]:8080", Some("::1:8080")),
        ("[0:0::1]", Some("::1:80")),
        ("good.com@127.0.0.1:80", None),
        ("good.com#@evil.com:80", None),
        ("good.com%00.evil.com:80", None),
        ("good.com\\.evil.com:80", None),
        ("good.com .evil.com:80", None),
        ("g\u{f6}od.com:80", None),
        ("good.com:+80", None),
        ("good.com:0", None),
        ("good.com:80:90", None),
        ("", None),
        (":80", None),
    ] {
        let got = authority(text, Some(80)).map(|(host, port)| format!("{host}:{port}"));
        assert_eq!(got.as_deref(), want, "{text}");
    }
}

#[test]
fn hosts_of_addresses() {
    for (url, want) in [
        ("https://Api.Example.com/v1", Some("api.example.com:443")),
        ("HTTP://127.0.0.1:8080?x", Some("127.0.0.1:8080")),
        ("http://[::1]", Some("::1:80")),
        ("ftp://example.com", None),
        ("http://user@example.com/", None),
        ("http://good.com\\@evil.com/", None),
        ("example.com", None),
    ] {
        let got = of_url(url).map(|(host, port)| format!("{host}:{port}"));
        assert_eq!(got.as_deref(), want, "{url}");
    }
}

proptest! {
    /// However an IPv4 address is embedded in an IPv6 one, it is as public as itself.
    #[test]
    fn a_disguise_changes_nothing(bits: u32) {
        let plain = Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = plain.octets();
        let (high, low) = (u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d]));
        for disguised in [
            Ipv6Addr::new(0, 0, 0, 0, 0, 0xffff, high, low),
            Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
            Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
        ] {
            prop_assert_eq!(is_public(disguised.into()), is_public(plain.into()), "{}", disguised);
        }
    }
}
