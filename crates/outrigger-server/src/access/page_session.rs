//! How the page signs in and recognises its server.
//!
//! The page never sends the password. It sends a token that is valid for this server's life: if another program takes over the port after
//! the server has ended, it may receive the token, which is worthless by then. Before the page sends anything to a server that was started
//! in the meantime, that server must prove that it belongs to the same user: it answers a nonce of the page with an HMAC based on the key
//! in [`KEY_FILE`]. The answer is bound to one address, so another program that listens elsewhere cannot obtain a proof by relaying the
//! nonce. The page derives the new token from the key and the server's instance name.
//!
//! The counterpart in TypeScript: `web/src/lib/server.ts`.

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

/// A file in our data folder from which the keys of pages are derived.
const KEY_FILE: &str = "server-page-key";

/// Slows down guessing a chosen password for a program that was given a proof of it.
const ROUNDS: NonZeroU32 = NonZeroU32::new(100_000).expect("not zero");
/// Permitted lengths of a page's nonce.
const NONCE: std::ops::RangeInclusive<usize> = 16..=64;

/// The page sessions of one server.
pub struct PageSession {
    /// The name of this server instance.
    instance: String,
    token: String,
    key: [u8; 32],
    login: Login,
    address: SocketAddr,
    /// The key derived from the password, computed on first use.
    by_password: OnceLock<hmac::Key>,
}

impl fmt::Debug for PageSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PageSession({}, ...)", self.instance)
    }
}

/// The response to a page that has signed in.
pub(crate) struct SignedIn {
    pub(crate) token: String,
    /// Proves that the server knows the password, too.
    pub(crate) proof: String,
}

impl PageSession {
    /// Creates the sessions of a server that listens at `address`. The key is kept in the folder `data`.
    ///
    /// # Errors
    /// The folder is not writable, or the system has no randomness.
    pub fn new(data: &Path, login: Login, address: SocketAddr) -> io::Result<Self> {
        let kept = keep_secret(&data.join(KEY_FILE))?;
        // After a change of the password, earlier pages are unknown.
        let whose = format!("page key\n{}\n{}", login.username, login.password);
        let key = tag(&key_of(kept.as_bytes()), &[&whose]);
        let instance = URL_SAFE_NO_PAD.encode(outrigger_stdx::random::bytes::<16>()?);
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

    /// Returns the token that the page sends as `Authorization: Bearer`. It expires with this server.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    pub(crate) fn instance(&self) -> &str {
        &self.instance
    }

    /// Returns whether this is the current token.
    pub(crate) fn knows(&self, token: &str) -> bool {
        let given = tag(&key_of(&self.key), &["compare", token]);
        let known = hmac::Key::new(hmac::HMAC_SHA256, &self.key);
        // Compares digests in constant time.
        hmac::verify(&known, text(&["compare", &self.token]).as_bytes(), &given).is_ok()
    }

    /// Returns the key with which the page at this address recognises the server. `None` if another program could listen at that address.
    pub(crate) fn key(&self, host: &str) -> Option<String> {
        self.is_own(host).then(|| URL_SAFE_NO_PAD.encode(self.key))
    }

    /// Proves to the page at this address that the server belongs to the same user.
    pub(crate) fn proof(&self, host: &str, nonce: &str) -> Option<String> {
        let proves = self.is_own(host) && is_nonce(nonce);
        let said = ["server", host, &self.instance, nonce];
        proves.then(|| URL_SAFE_NO_PAD.encode(tag(&key_of(&self.key), &said)))
    }

    /// Checks a password that the user typed and that the page does not send.
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

    /// Returns whether a `Host` is the numeric address on which this server listens: no other program can listen there. A name may point
    /// elsewhere, and so may the port of a tunnel.
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

/// Joins texts for one purpose, so that they cannot be used for another.
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

    /// Computes what the page derives from its key and the server's name.
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
        // Another password or another user's key is not accepted as a proof.
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

    /// A relayed request from another address is not answered: names and other ports could belong to any program.
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
            // A replay of what a page sent earlier.
            typed("s3cret", "AAAAAAAAAAAAAAAAAAAAAA", "opencode"),
            String::new(),
        ] {
            assert!(session.sign_in("opencode", NUMBER, &wrong).is_none());
        }
    }
}
