//! Signatures (C7): `outrigger.plugin.sig` in a plugin's folder, made with a key that the machine policy names.
//!
//! The signed text is one line, the hash over the plugin's own files without the signature file itself (`outrigger plugin verify
//! --digest` prints it). Key and signature have minisign's form: two letters, eight bytes that identify the key, and the key or
//! the signature. `Ed` signs the text itself (`minisign -S -l`), `ED` its BLAKE2b-512 hash.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use blake2::{Blake2b512, Digest as _};
use outrigger_config::PolicyFile;
use outrigger_plugin_package::ResolvedPlugin;
use outrigger_stdx::text::hex;
use serde::Serialize;

use crate::content::{Before, Content, open};
use crate::error::TrustError;

/// Name of the file.
pub const SIGNATURE_FILE: &str = "outrigger.plugin.sig";
/// Maximum size of a signature in bytes.
const MAX_BYTES: u64 = 4096;

/// Result of verifying a plugin's signature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "signature", rename_all = "snake_case")]
pub enum Signed {
    /// By a key of the policy.
    Good {
        /// Id of the key.
        key: String,
    },
    /// No signature.
    None,
    /// By a key that no policy names.
    UnknownKey {
        /// Id of the key.
        key: String,
    },
    /// It does not match these files.
    Bad {
        /// Id of the key.
        key: String,
    },
    /// The file is not a signature.
    Unreadable {
        /// Reason.
        why: String,
    },
}

/// Eight bytes that identify a key, with the data after them.
struct Named {
    /// The hash of the text is signed, not the text.
    prehashed: bool,
    name: String,
    rest: Vec<u8>,
}

fn decode(text: &str, length: usize) -> Result<Named, String> {
    let mut lines = text.lines().map(str::trim);
    let line = lines
        .find(|line| !line.is_empty() && !line.starts_with("untrusted comment:"))
        .ok_or("it is empty")?;
    let bytes = STANDARD
        .decode(line)
        .map_err(|error| format!("it is not base64: {error}"))?;
    let (kind, rest) = bytes.split_at_checked(2).ok_or("it is too short")?;
    let prehashed = match kind {
        b"Ed" => false,
        b"ED" => true,
        _ => return Err("it is not an Ed25519 signature".to_owned()),
    };
    let (name, rest) = rest.split_at_checked(8).ok_or("it is too short")?;
    if rest.len() != length {
        return Err(format!("it has {} bytes instead of {length}", rest.len()));
    }
    Ok(Named {
        prehashed,
        // As minisign prints it: the number, whose first byte is the last one here.
        name: hex(&name.iter().rev().copied().collect::<Vec<u8>>()).to_uppercase(),
        rest: rest.to_vec(),
    })
}

/// Returns the signed text.
pub(crate) fn digest(content: &Content) -> String {
    let mut own = content.clone();
    own.files.remove(SIGNATURE_FILE);
    own.own()
}

/// Verifies the signature in a plugin's folder.
pub(crate) fn signed(folder: &Path, content: &Content, policies: &[PolicyFile]) -> Signed {
    let text = match read(&folder.join(SIGNATURE_FILE)) {
        Ok(Some(text)) => text,
        Ok(None) => return Signed::None,
        Err(why) => return Signed::Unreadable { why },
    };
    let signature = match decode(&text, 64) {
        Ok(signature) => signature,
        Err(why) => return Signed::Unreadable { why },
    };
    let keys = policies
        .iter()
        .flat_map(|file| &file.policy.signatures.keys);
    let mut known = false;
    for key in keys.filter_map(|key| decode(key, 32).ok().filter(|it| !it.prehashed)) {
        if key.name != signature.name {
            continue;
        }
        known = true;
        let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, &key.rest);
        let text = digest(content);
        let hash = Blake2b512::digest(text.as_bytes());
        let signed = if signature.prehashed {
            hash.as_slice()
        } else {
            text.as_bytes()
        };
        if key.verify(signed, &signature.rest).is_ok() {
            return Signed::Good {
                key: signature.name,
            };
        }
    }
    if known {
        Signed::Bad {
            key: signature.name,
        }
    } else {
        Signed::UnknownKey {
            key: signature.name,
        }
    }
}

fn read(path: &Path) -> Result<Option<String>, String> {
    use std::io::Read as _;
    let file = match open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let mut text = String::new();
    file.take(MAX_BYTES)
        .read_to_string(&mut text)
        .map_err(|error| error.to_string())?;
    Ok(Some(text))
}

/// Returns whether any policy is about signatures; if not, files need not be read for it.
pub(crate) fn matters(policies: &[PolicyFile]) -> bool {
    let mut all = policies.iter().map(|file| &file.policy.signatures);
    all.any(|it| it.require || !it.keys.is_empty())
}

/// Returns the problem with a plugin's signature: a bad one always is, a missing one if a policy requires it.
pub(crate) fn problem(signed: &Signed, policies: &[PolicyFile]) -> Option<String> {
    let requires = policies.iter().find(|file| file.policy.signatures.require);
    let file = requires.map(|file| file.path.display().to_string());
    match (signed, file) {
        (Signed::Good { .. }, _) => None,
        (Signed::Bad { key }, _) => {
            Some(format!("its signature by {key} is not that of these files"))
        }
        (Signed::Unreadable { why }, _) => {
            Some(format!("its {SIGNATURE_FILE} is not a signature: {why}"))
        }
        (Signed::None, Some(file)) => Some(format!(
            "it has no signature ({SIGNATURE_FILE}), and {file} requires one"
        )),
        (Signed::UnknownKey { key }, Some(file)) => Some(format!(
            "it is signed by {key}, which is not a key of {file}, and that requires one"
        )),
        (Signed::None | Signed::UnknownKey { .. }, None) => None,
    }
}

/// Returns the problem with the signature of a local plugin. Reads all of its files. Blocking.
#[must_use]
pub fn problem_of(resolved: &ResolvedPlugin, policies: &[PolicyFile]) -> Option<String> {
    if !matters(policies) {
        return None;
    }
    // Write access is checked elsewhere.
    let content = Content::of(resolved, true, &Before::default()).ok()?;
    problem(&signed(&resolved.dir, &content, policies), policies)
}

/// Refuses a plugin whose signature is not what the policies of the machine ask for.
///
/// # Errors
/// `plugin.signature`.
pub fn check(
    resolved: &ResolvedPlugin,
    content: &Content,
    policies: &[PolicyFile],
) -> Result<(), TrustError> {
    if !matters(policies) {
        return Ok(());
    }
    match problem(&signed(&resolved.dir, content, policies), policies) {
        None => Ok(()),
        Some(problem) => Err(TrustError::Signature {
            id: resolved.id.clone(),
            problem,
        }),
    }
}

#[cfg(test)]
mod tests {
    use outrigger_config::Policy;
    use ring::signature::{Ed25519KeyPair, KeyPair as _};

    use super::*;

    fn minisign(name: u8, rest: &[u8]) -> String {
        let bytes = [b"Ed".as_slice(), &[name; 8], rest].concat();
        format!("untrusted comment: a test\n{}\n", STANDARD.encode(bytes))
    }

    /// RFC 7693, appendix A.
    #[test]
    fn the_hash_is_that_of_the_newer_kind() {
        let hash = hex(&Blake2b512::digest(b"abc"));
        assert!(
            hash.starts_with("ba80a53f981c4d0d6a2797b69f12f6e9"),
            "{hash}"
        );
    }

    #[test]
    fn what_a_signature_is_worth() {
        let dir = tempfile::tempdir().unwrap();
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let put = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
        put("index.js", "export const P = 1");
        let content = || {
            let resolved = outrigger_plugin_package::resolve_path("./p", "p", dir.path()).unwrap();
            Content::of(&resolved, true, &Before::default()).unwrap()
        };
        let key = minisign(1, pair.public_key().as_ref());
        let policies = |keys: &[&String], require: bool| {
            let mut policy = Policy::default();
            policy.signatures.keys = keys.iter().map(|it| (*it).clone()).collect();
            policy.signatures.require = require;
            vec![PolicyFile {
                path: "/policy.toml".into(),
                policy,
                loose: false,
            }]
        };
        let says = |keys: &[&String], require: bool| {
            let policies = policies(keys, require);
            let signed = signed(dir.path(), &content(), &policies);
            let text = serde_json::to_value(&signed).unwrap()["signature"].clone();
            let problem = problem(&signed, &policies);
            let known = [
                "not that of these files",
                "no signature",
                "not a signature",
                "not a key of",
            ];
            let problem = problem.unwrap_or_default();
            let found = known.iter().find(|it| problem.contains(**it));
            assert_eq!(found.is_some(), !problem.is_empty(), "{problem}");
            format!("{} {}", text.as_str().unwrap(), found.unwrap_or(&""))
        };
        assert_eq!(says(&[&key], false), "none ");
        assert_eq!(says(&[&key], true), "none no signature");
        let signature = pair.sign(digest(&content()).as_bytes());
        put(SIGNATURE_FILE, &minisign(1, signature.as_ref()));
        assert_eq!(says(&[&key], true), "good ");
        // The newer kind signs the hash, and is not a signature of the text itself.
        let hash = Blake2b512::digest(digest(&content()).as_bytes());
        let newer = |signature: &[u8]| {
            let bytes = [b"ED".as_slice(), &[1; 8], signature].concat();
            format!("untrusted comment: a test\n{}\n", STANDARD.encode(bytes))
        };
        let hashed = pair.sign(hash.as_slice());
        put(SIGNATURE_FILE, &newer(hashed.as_ref()));
        assert_eq!(says(&[&key], true), "good ");
        put(SIGNATURE_FILE, &newer(signature.as_ref()));
        assert_eq!(says(&[&key], true), "bad not that of these files");
        put(SIGNATURE_FILE, &minisign(1, hashed.as_ref()));
        assert_eq!(says(&[&key], true), "bad not that of these files");
        put(SIGNATURE_FILE, &minisign(1, signature.as_ref()));
        let other = minisign(2, pair.public_key().as_ref());
        assert_eq!(says(&[&other], true), "unknown_key not a key of");
        assert_eq!(says(&[&other], false), "unknown_key ");
        // After a change of one byte.
        put("index.js", "export const P = 2");
        assert_eq!(says(&[&key], false), "bad not that of these files");
        for unreadable in ["nonsense".to_owned(), STANDARD.encode([b'X'; 74])] {
            put(SIGNATURE_FILE, &unreadable);
            assert_eq!(says(&[&key], false), "unreadable not a signature");
        }
    }
}
