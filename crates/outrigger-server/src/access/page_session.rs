//! How the page signs in, and how it knows its server again.
//!
//! The page never sends the password. It sends a token of this server's life: another program that takes the port after the server has
//! ended may be sent it, and it opens nothing any more. Before the page sends anything to a server that was started in between, that server
//! must prove that it is the same user's: it answers a number that the page chose with an HMAC that takes the key of [`KEY_FILE`]. The
//! answer is for one address alone, so another program that listens elsewhere gets no proof by passing the question on. From the key and
//! the name that the server gave itself, the page makes the new token.
//!
//! The same in TypeScript: `web/src/lib/server.ts`.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::OnceLock;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;

use super::guard::Login;
use crate::listen::password::keep_secret;

/// In the folder of our own data: what the keys of pages are made from.
const KEY_FILE: &str = "server-page-key";

/// A password that somebody chose is tried out so slowly by a program that was given a proof of it.
const ROUNDS: NonZeroU32 = NonZeroU32::new(100_000).expect("not zero");
/// Characters of a number that a page may choose.
const NONCE: std::ops::RangeInclusive<usize> = 16..=64;

/// Sessions of pages at one server.
pub struct PageSession {
    /// The name of this server's life.
    instance: String,
    token: String,
    key: [u8; 32],
    login: Login,
    address: SocketAddr,
    /// What the password gives, made when it is first needed.
    by_password: OnceLock<hmac::Key>,
}

impl fmt::Debug for PageSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageSession({}, ...)", self.instance)
    }
}

/// What a page that has signed in is given.
pub(crate) struct SignedIn {
    pub(crate) token: String,
    /// Shows that the server knows the password, too.
    pub(crate) proof: String,
}

impl PageSession {
    /// For a server that listens at `address`. The key is kept in the folder `data`.
    ///
    /// # Errors
    /// A folder that cannot be written to; a system without randomness.
    pub fn new(data: &Path, login: Login, address: SocketAddr) -> io::Result<Self> {
        let kept = keep_secret(&data.join(KEY_FILE))?;
        // With another password the pages of before are strangers.
        let whose = format!("page key\n{}\n{}", login.username, login.password);
        let key = tag(&key_of(kept.as_bytes()), &[&whose]);
        let mut name = [0_u8; 16];
        getrandom::fill(&mut name).map_err(io::Error::other)?;
        let instance = URL_SAFE_NO_PAD.encode(name);
        let token = URL_SAFE_NO_PAD.encode(tag(&key_of(&key), &["token", &instance]));
        Ok(Self {
            instance,
            token,
            key,
            login,
            address,
            by_password: OnceLock::new(),
        })
    }

    /// What the page sends as `Authorization: Bearer`. It ends with this server.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    /// Whether that is the token of this server's life.
    pub(crate) fn knows(&self, token: &str) -> bool {
        let given = tag(&key_of(&self.key), &["compare", token]);
        let known = hmac::Key::new(hmac::HMAC_SHA256, &self.key);
        // Compares digests, in a time that tells nothing.
        hmac::verify(&known, text(&["compare", &self.token]).as_bytes(), &given).is_ok()
    }

    /// By which the page at this address knows the server again. None where somebody else could listen at that address beside this server.
    pub(crate) fn key(&self, host: &str) -> Option<String> {
        self.is_own(host).then(|| URL_SAFE_NO_PAD.encode(self.key))
    }

    /// Shows the page at this address that its next server is the same user's.
    pub(crate) fn proof(&self, host: &str, nonce: &str) -> Option<String> {
        let proves = self.is_own(host) && is_nonce(nonce);
        let said = ["server", host, &self.instance, nonce];
        proves.then(|| URL_SAFE_NO_PAD.encode(tag(&key_of(&self.key), &said)))
    }

    /// Checks what a person typed, which the page does not send.
    pub(crate) fn sign_in(&self, user: &str, nonce: &str, proof: &str) -> Option<SignedIn> {
        let key = self.by_password.get_or_init(|| self.stretched());
        let proof = URL_SAFE_NO_PAD.decode(proof).ok()?;
        let said = text(&["sign-in", user, &self.instance, nonce]);
        let knows = is_nonce(nonce) && hmac::verify(key, said.as_bytes(), &proof).is_ok();
        (knows && user == self.login.username).then(|| SignedIn {
            token: self.token.clone(),
            proof: URL_SAFE_NO_PAD.encode(tag(key, &["signed-in", &self.token, nonce])),
        })
    }

    fn stretched(&self) -> hmac::Key {
        let mut key = [0_u8; 32];
        ring::pbkdf2::derive(
            ring::pbkdf2::PBKDF2_HMAC_SHA256,
            ROUNDS,
            self.instance.as_bytes(),
            self.login.password.as_bytes(),
            &mut key,
        );
        key_of(&key)
    }

    /// Whether a `Host` is where this server listens, by its number: only there nobody else can. A name may lead elsewhere, and so
    /// may the port of a tunnel.
    fn is_own(&self, host: &str) -> bool {
        let Ok(host) = host.parse::<SocketAddr>() else {
            return false;
        };
        let own = self.address;
        let is_here = match own.ip() {
            IpAddr::V4(ip) if ip.is_unspecified() => host.is_ipv4(),
            IpAddr::V6(ip) if ip.is_unspecified() => host.is_ipv6(),
            ip => host.ip() == ip,
        };
        is_here && host.port() == own.port() && host.ip().is_loopback()
    }
}

fn is_nonce(nonce: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
    NONCE.contains(&nonce.len()) && nonce.bytes().all(fits)
}

fn key_of(bytes: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, bytes)
}

/// What is said for one purpose, which is no other purpose's.
fn text(said: &[&str]) -> String {
    format!("outrigger page 1\n{}", said.join("\n"))
}

fn tag(key: &hmac::Key, said: &[&str]) -> [u8; 32] {
    let tag = hmac::sign(key, text(said).as_bytes());
    let mut bytes = [0; 32];
    bytes.copy_from_slice(tag.as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    const NUMBER: &str = "a-number_of-the-page";

    fn login(password: &str) -> Login {
        Login {
            username: "opencode".into(),
            password: password.into(),
        }
    }

    fn at(data: &Path, password: &str, address: &str) -> PageSession {
        PageSession::new(data, login(password), address.parse().unwrap()).unwrap()
    }

    /// What the page works out of its key and the server's name.
    fn made(key: &str, said: &[&str]) -> String {
        let key = URL_SAFE_NO_PAD.decode(key).unwrap();
        URL_SAFE_NO_PAD.encode(tag(&key_of(&key), said))
    }

    #[test]
    fn a_token_ends_with_its_server_and_the_next_one_proves_itself() {
        let dir = tempfile::tempdir().unwrap();
        let host = "127.0.0.1:4096";
        let first = at(dir.path(), "s3cret", host);
        let second = at(dir.path(), "s3cret", host);
        assert!(first.knows(first.token()) && !second.knows(first.token()));
        assert!(!first.knows("") && !first.token().contains("s3cret"));
        let key = first.key(host).unwrap();
        let name = second.instance();
        let proof = second.proof(host, NUMBER).unwrap();
        assert_eq!(proof, made(&key, &["server", host, name, NUMBER]));
        assert!(second.knows(&made(&key, &["token", name])));
        // Another password, another user's key: nothing that the page takes for a proof.
        let other = tempfile::tempdir().unwrap();
        for stranger in [
            at(dir.path(), "changed", host),
            at(other.path(), "s3cret", host),
        ] {
            let name = stranger.instance();
            let proof = stranger.proof(host, NUMBER).unwrap();
            assert_ne!(proof, made(&key, &["server", host, name, NUMBER]));
            assert!(!stranger.knows(&made(&key, &["token", name])));
        }
    }

    /// What a program at another address passes on is not answered: by names and other ports it could be anybody's.
    #[test]
    fn a_proof_is_for_the_address_that_the_server_has() {
        let dir = tempfile::tempdir().unwrap();
        for (listens, host, is_own) in [
            ("127.0.0.1:4096", "127.0.0.1:4096", true),
            ("127.0.0.1:4096", "127.0.0.1:4097", false),
            ("127.0.0.1:4096", "127.0.0.2:4096", false),
            ("127.0.0.1:4096", "localhost:4096", false),
            ("127.0.0.1:4096", "[::1]:4096", false),
            ("127.0.0.1:4096", "127.0.0.1", false),
            ("[::1]:4096", "[::1]:4096", true),
            ("0.0.0.0:4096", "127.0.0.1:4096", true),
            ("0.0.0.0:4096", "[::1]:4096", false),
            ("0.0.0.0:4096", "192.168.0.2:4096", false),
            ("[::]:4096", "[::1]:4096", true),
            ("[::]:4096", "127.0.0.1:4096", false),
        ] {
            let session = at(dir.path(), "s3cret", listens);
            assert_eq!(session.key(host).is_some(), is_own, "{listens} {host}");
            let proof = session.proof(host, NUMBER);
            assert_eq!(proof.is_some(), is_own, "{listens} {host}");
        }
        let session = at(dir.path(), "s3cret", "127.0.0.1:1");
        for nonce in ["", "short", "a number\nof two lines", &"x".repeat(65)] {
            assert_eq!(session.proof("127.0.0.1:1", nonce), None, "{nonce}");
        }
    }

    #[test]
    fn who_knows_the_password_signs_in_without_sending_it() {
        let dir = tempfile::tempdir().unwrap();
        let session = at(dir.path(), "s3cret", "127.0.0.1:1");
        let typed = |password: &str, instance: &str, user: &str| {
            let mut key = [0; 32];
            let salt = instance.as_bytes();
            let hash = ring::pbkdf2::PBKDF2_HMAC_SHA256;
            ring::pbkdf2::derive(hash, ROUNDS, salt, password.as_bytes(), &mut key);
            URL_SAFE_NO_PAD.encode(tag(&key_of(&key), &["sign-in", user, instance, NUMBER]))
        };
        let name = session.instance();
        let proof = typed("s3cret", name, "opencode");
        let signed_in = session.sign_in("opencode", NUMBER, &proof).unwrap();
        assert!(session.knows(&signed_in.token));
        assert!(session.sign_in("root", NUMBER, &proof).is_none());
        let proof = typed("s3cret", name, "root");
        assert!(session.sign_in("root", NUMBER, &proof).is_none());
        for wrong in [
            typed("secret", name, "opencode"),
            // What a page sent to the server before, which somebody kept.
            typed("s3cret", "AAAAAAAAAAAAAAAAAAAAAA", "opencode"),
            String::new(),
        ] {
            assert!(session.sign_in("opencode", NUMBER, &wrong).is_none());
        }
    }
}
