//! AWS signatures (Signature Version 4), and their keys: those of the environment, or a profile of `~/.aws` with keys. Methods
//! that start programs or ask servers for keys (`credential_process`, single sign-on, roles) are not supported: `aws configure
//! export-credentials --format env` prints keys for these, too.

use std::path::PathBuf;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use jiff::Timestamp;
use outrigger_stdx::text::hex;
use reqwest::Url;
use ring::{digest, hmac};

use super::Settings;
use crate::transport::token_endpoint::encoded;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const SERVICE: &str = "bedrock";

/// AWS keys. Deliberately without `Debug`.
struct Keys {
    id: String,
    secret: String,
    token: Option<String>,
}

/// Signs requests to one region.
pub(crate) struct Signer {
    settings: Settings,
}

impl Signer {
    pub(crate) fn new(settings: Settings) -> Self {
        Self { settings }
    }

    pub(super) fn sign(
        &self,
        url: &str,
        headers: &mut HeaderMap,
        body: &Bytes,
    ) -> Result<(), String> {
        let signing = Signing {
            keys: &keys(&self.settings)?,
            region: self.settings.region(),
            time: Timestamp::now(),
        };
        signing.put(url, headers, body)
    }
}

/// Reads the keys for each request: another program may renew a profile's.
fn keys(settings: &Settings) -> Result<Keys, String> {
    let variable = |name: &str| settings.variable(&[name]).map(str::to_owned);
    let profile = settings.option("profile");
    let id = variable("AWS_ACCESS_KEY_ID");
    let secret = variable("AWS_SECRET_ACCESS_KEY");
    if let (None, Some(id), Some(secret)) = (profile, id, secret) {
        let token = variable("AWS_SESSION_TOKEN");
        return Ok(Keys { id, secret, token });
    }
    let named = || settings.variable(&["AWS_PROFILE"]);
    let profile = profile.or_else(named).unwrap_or("default");
    let file = |name: &str, default: &str| {
        variable(name)
            .map(PathBuf::from)
            .or_else(|| settings.home_file(default))
    };
    let credentials = file("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials");
    let config = file("AWS_CONFIG_FILE", ".aws/config");
    let files = [
        (credentials, profile.to_owned()),
        (config, format!("profile {profile}")),
    ];
    files.iter().find_map(|(path, section)| {
        let text = outrigger_files::read_to_string(path.as_deref()?, outrigger_files::SETTINGS);
        in_section(&text.ok()?, section)
    }).ok_or_else(|| {
        format!(
            "no AWS credentials: set AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY (`aws \
             configure export-credentials --profile {profile} --format env` prints them, also for logins and roles)"
        )
    })
}

/// Returns the keys in a section of an INI file.
fn in_section(text: &str, section: &str) -> Option<Keys> {
    let mut is_in = false;
    let (mut id, mut secret, mut token) = (None, None, None);
    for line in text.lines().map(str::trim) {
        if let Some(name) = line.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            is_in = name.trim() == section;
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|_| is_in) else {
            continue;
        };
        let value = Some(value.trim().to_owned());
        match key.trim() {
            "aws_access_key_id" => id = value,
            "aws_secret_access_key" => secret = value,
            "aws_session_token" => token = value,
            _ => {}
        }
    }
    let (id, secret) = (id?, secret?);
    Some(Keys { id, secret, token })
}

struct Signing<'a> {
    keys: &'a Keys,
    region: &'a str,
    time: Timestamp,
}

impl Signing<'_> {
    fn put(&self, url: &str, headers: &mut HeaderMap, body: &Bytes) -> Result<(), String> {
        let url = Url::parse(url).map_err(|error| error.to_string())?;
        let stamp = self.time.strftime("%Y%m%dT%H%M%SZ").to_string();
        let day = self.time.strftime("%Y%m%d").to_string();
        let host = url.host_str().ok_or("the address has no host")?;
        let host = match url.port() {
            Some(port) => format!("{host}:{port}"),
            None => host.to_owned(),
        };
        let hash = sha256(body);
        let mut signed = vec![
            ("host", host),
            ("x-amz-content-sha256", hash.clone()),
            ("x-amz-date", stamp.clone()),
        ];
        if let Some(token) = &self.keys.token {
            signed.push(("x-amz-security-token", token.clone()));
        }
        let names: Vec<&str> = signed.iter().map(|(name, _)| *name).collect();
        let names = names.join(";");
        let lines: String = signed
            .iter()
            .map(|(name, value)| format!("{name}:{value}\n"))
            .collect();
        // All services but one require the path to be encoded once more.
        let path: Vec<String> = url.path().split('/').map(encoded).collect();
        let query = url.query().unwrap_or_default();
        let request = format!(
            "POST\n{}\n{query}\n{lines}\n{names}\n{hash}",
            path.join("/")
        );
        let scope = format!("{day}/{}/{SERVICE}/aws4_request", self.region);
        let digest = sha256(request.as_bytes());
        let signature = self.signature(&day, &format!("{ALGORITHM}\n{stamp}\n{scope}\n{digest}"));
        let id = &self.keys.id;
        let authorization = format!(
            "{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}"
        );
        // The client sets the host itself.
        let put = signed.into_iter().skip(1);
        for (name, value) in put.chain([("authorization", authorization)]) {
            let mut value = HeaderValue::from_str(&value)
                .map_err(|_| "an AWS key has characters that cannot be sent")?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(())
    }

    fn signature(&self, day: &str, text: &str) -> String {
        let first = format!("AWS4{}", self.keys.secret);
        let mut key = hmac::Key::new(hmac::HMAC_SHA256, first.as_bytes());
        for part in [day, self.region, SERVICE, "aws4_request"] {
            let tag = hmac::sign(&key, part.as_bytes());
            key = hmac::Key::new(hmac::HMAC_SHA256, tag.as_ref());
        }
        hex(hmac::sign(&key, text.as_bytes()).as_ref())
    }
}

fn sha256(bytes: &[u8]) -> String {
    hex(digest::digest(&digest::SHA256, bytes).as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of AWS's own library (botocore) for the same request.
    #[test]
    fn a_signature_is_that_of_awss_own_library() {
        let keys = Keys {
            id: "AKIDEXAMPLE".into(),
            secret: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".into(),
            token: Some("TOKEN".into()),
        };
        let signing = Signing {
            keys: &keys,
            region: "us-east-1",
            time: "2015-08-30T12:36:00Z".parse().unwrap(),
        };
        let mut headers = HeaderMap::new();
        let url =
            "https://bedrock-runtime.us-east-1.amazonaws.com/model/us.a-v1%3A0/converse-stream";
        signing
            .put(url, &mut headers, &Bytes::from_static(b"{}"))
            .unwrap();
        assert_eq!(
            headers["authorization"],
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/bedrock/aws4_request, \
             SignedHeaders=host;x-amz-content-sha256;x-amz-date;x-amz-security-token, Signature=c80da10549da591311231829876601ec92e9be8447902cca735bd5c1b85ca3b9"
        );
    }

    #[test]
    fn keys_are_those_of_the_environment_or_of_a_profile() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("credentials");
        std::fs::write(&file, "[default]\naws_access_key_id = D\naws_secret_access_key=ds\n[work]\naws_access_key_id=W\n# x\naws_secret_access_key = ws\naws_session_token = wt\n[half]\naws_access_key_id=H\n").unwrap();
        let file = file.to_str().unwrap();
        let of_env = [("AWS_ACCESS_KEY_ID", "E"), ("AWS_SECRET_ACCESS_KEY", "es")];
        for (options, env, want) in [
            ("{}", of_env.to_vec(), Some(("E", "es", None))),
            ("{}", vec![], Some(("D", "ds", None))),
            (
                "{}",
                vec![("AWS_PROFILE", "work")],
                Some(("W", "ws", Some("wt"))),
            ),
            (
                r#"{"profile": "work"}"#,
                of_env.to_vec(),
                Some(("W", "ws", Some("wt"))),
            ),
            (r#"{"profile": "half"}"#, vec![], None),
        ] {
            let places = [
                ("AWS_SHARED_CREDENTIALS_FILE", file),
                ("AWS_CONFIG_FILE", "/no/such/file"),
            ];
            let env = env
                .into_iter()
                .chain(places)
                .map(|(k, v)| (k.to_owned(), v.to_owned()))
                .collect();
            let options = serde_json::from_str(options).unwrap();
            let got = keys(&Settings::new(&options, &env)).ok();
            let got = got
                .as_ref()
                .map(|k| (&*k.id, &*k.secret, k.token.as_deref()));
            assert_eq!(got, want);
        }
    }
}
