//! A client's identity, signed with its key (`private_key_jwt`, RFC 7523).

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use serde_json::json;

use super::now;

/// Lifetime of an assertion in seconds.
const LIFETIME: f64 = 300.0;

/// The value of `client_assertion_type`.
pub(super) const ASSERTION_TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

/// A signing key.
enum Key {
    Ecdsa(EcdsaKeyPair),
    Ed25519(Ed25519KeyPair),
    Rsa(Box<RsaKeyPair>),
}

/// Creates an assertion of a client for one authorization server.
///
/// # Errors
/// The key cannot be read; the text does not contain it.
pub(super) fn assertion(file: &Path, client: &str, audience: &str) -> Result<String, String> {
    let wrong = |reason: &str| format!("the key {}: {reason}", file.display());
    let text = outrigger_files::read(file, outrigger_files::DATA)
        .map_err(|error| wrong(&error.to_string()))?;
    let der = pem(&String::from_utf8_lossy(&text))
        .ok_or_else(|| wrong("it is not a PKCS #8 key in PEM (`BEGIN PRIVATE KEY`)"))?;
    let random = SystemRandom::new();
    let key = key(&der, &random).ok_or_else(|| wrong("it is not of P-256, Ed25519 or RSA"))?;
    let mut id = [0_u8; 16];
    getrandom::fill(&mut id).map_err(|error| error.to_string())?;
    let begun = now().floor();
    let head = json!({"alg": key.algorithm(), "typ": "JWT"});
    let claims = json!({
        "iss": client, "sub": client, "aud": audience, "jti": URL_SAFE_NO_PAD.encode(id),
        "iat": begun, "exp": begun + LIFETIME,
    });
    let part = |value: &serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(&head), part(&claims));
    let signature = key
        .sign(signed.as_bytes(), &random)
        .ok_or_else(|| wrong("it does not sign"))?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

fn key(der: &[u8], random: &SystemRandom) -> Option<Key> {
    let ecdsa = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der, random);
    if let Ok(key) = ecdsa {
        return Some(Key::Ecdsa(key));
    }
    if let Ok(key) = Ed25519KeyPair::from_pkcs8_maybe_unchecked(der) {
        return Some(Key::Ed25519(key));
    }
    let rsa = RsaKeyPair::from_pkcs8(der).ok()?;
    Some(Key::Rsa(Box::new(rsa)))
}

impl Key {
    fn algorithm(&self) -> &'static str {
        match self {
            Self::Ecdsa(_) => "ES256",
            Self::Ed25519(_) => "EdDSA",
            Self::Rsa(_) => "RS256",
        }
    }

    fn sign(&self, message: &[u8], random: &SystemRandom) -> Option<Vec<u8>> {
        match self {
            Self::Ecdsa(key) => Some(key.sign(random, message).ok()?.as_ref().to_vec()),
            Self::Ed25519(key) => Some(key.sign(message).as_ref().to_vec()),
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                let signed = key.sign(&RSA_PKCS1_SHA256, random, message, &mut signature);
                signed.ok().map(|()| signature)
            }
        }
    }
}

/// Decodes the bytes of a key.
fn pem(text: &str) -> Option<Vec<u8>> {
    let (_, rest) = text.split_once("-----BEGIN PRIVATE KEY-----")?;
    let (body, _) = rest.split_once("-----END PRIVATE KEY-----")?;
    let body: String = body.split_whitespace().collect();
    STANDARD.decode(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{ECDSA_P256_SHA256_FIXED, KeyPair as _, UnparsedPublicKey};
    use serde_json::Value;

    #[test]
    fn an_assertion_is_signed_and_for_one_server() {
        let random = SystemRandom::new();
        let der = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("key.pem");
        let text = format!(
            "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
            STANDARD.encode(der.as_ref())
        );
        std::fs::write(&file, text).unwrap();
        let made = assertion(&file, "me", "https://auth.test").unwrap();
        let (signed, signature) = made.rsplit_once('.').unwrap();
        let Some(Key::Ecdsa(key)) = key(der.as_ref(), &random) else {
            panic!("no key");
        };
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, key.public_key().as_ref());
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        public.verify(signed.as_bytes(), &signature).unwrap();
        let claims = URL_SAFE_NO_PAD
            .decode(signed.split('.').nth(1).unwrap())
            .unwrap();
        let claims: Value = serde_json::from_slice(&claims).unwrap();
        assert_eq!(
            (&claims["iss"], &claims["sub"], &claims["aud"]),
            (&json!("me"), &json!("me"), &json!("https://auth.test"))
        );
        std::fs::write(
            &file,
            "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----",
        )
        .unwrap();
        let error = assertion(&file, "me", "x").unwrap_err();
        assert!(
            error.ends_with("it is not of P-256, Ed25519 or RSA"),
            "{error}"
        );
    }
}
