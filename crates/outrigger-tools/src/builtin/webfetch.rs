//! `webfetch`: fetches a web page.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures_util::future::BoxFuture;
use outrigger_net::is_local;
use outrigger_protocol::tool::{ToolOutput, ToolSpec};
use outrigger_stdx::text::unhex;
use reqwest::header::{ACCEPT, ACCEPT_LANGUAGE, CONTENT_TYPE, LOCATION};
use reqwest::redirect::Policy;
use reqwest::{Client, Response, Url};
use serde_json::{Value, json};

use super::{html, reading, spec, text};
use crate::error::ToolError;
use crate::host::{PermissionAsk, ToolContext, lock};
use crate::tool::Tool;

const DESCRIPTION: &str = r"
Fetches a URL and returns its content.

- url starts with http:// or https://.
- format: markdown (the default) and text convert HTML pages; html returns them unchanged. Other text is returned unchanged, images as images.
- timeout is in seconds, at most 120. At most 5 MB are read.
- It is read-only. If there is a more specific tool for a service, prefer that.
";

// OpenCode's figures.
const MAX_BYTES: usize = 5 * 1024 * 1024;
const TIMEOUT: f64 = 30.0;
const MAX_TIMEOUT: f64 = 120.0;
const MAX_REDIRECTS: usize = 10;

/// The webfetch tool.
pub(super) struct WebFetch {
    spec: ToolSpec,
    client: OnceLock<Result<Client, String>>,
    /// Hosts on this machine or its network that a user's rule names.
    local: Arc<Mutex<HashSet<String>>>,
}

impl WebFetch {
    pub(super) fn new() -> Self {
        Self {
            spec: reading(spec(
                "webfetch",
                DESCRIPTION,
                json!({
                    "url": {"type": "string"},
                    "format": {"type": "string", "enum": ["text", "markdown", "html"], "default": "markdown"},
                    "timeout": {"type": "number"},
                }),
                &["url"],
            )),
            client: OnceLock::new(),
            local: Arc::default(),
        }
    }

    // Created at the first call: loading certificates takes time that most turns need not spend.
    fn client(&self) -> Result<&Client, ToolError> {
        let made = self.client.get_or_init(|| {
            let local = Arc::clone(&self.local);
            let may_be: outrigger_net::LocalFn = Arc::new(move |host| lock(&local).contains(host));
            outrigger_net::public_builder(may_be)
                .user_agent(concat!(
                    "Mozilla/5.0 (compatible; outrigger/",
                    env!("CARGO_PKG_VERSION"),
                    ")"
                ))
                .redirect(Policy::none())
                .build()
                .map_err(|e| e.to_string())
        });
        made.as_ref()
            .map_err(|e| ToolError::failed(format!("No web client could be made: {e}")))
    }
}

/// What is left of the time that a call may take. Waiting for an answer to a question takes none of it.
struct Remaining(Duration);

impl Remaining {
    async fn within<T>(&mut self, work: impl Future<Output = T>) -> Result<T, ToolError> {
        let begun = Instant::now();
        let done = tokio::time::timeout(self.0, work).await;
        self.0 = self.0.saturating_sub(begun.elapsed());
        done.map_err(|_| ToolError::failed("Request timed out"))
    }
}

impl WebFetch {
    /// Returns the type and the content of a page.
    async fn fetch(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<(String, Vec<u8>), ToolError> {
        let url = address(input)?;
        let mut remaining = Remaining(timeout(input));
        let response = self.follow(input, &mut remaining, ctx).await?;
        let status = response.status();
        if !status.is_success() {
            return Err(ToolError::failed(format!(
                "StatusCode: non 2xx status code ({} GET {url})",
                status.as_u16()
            )));
        }
        let kind = response
            .headers()
            .get(CONTENT_TYPE)
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
            .to_owned();
        let body = remaining.within(body(response, url)).await??;
        Ok((kind, body))
    }

    /// Follows all redirects to the final response; each URL on the way is checked before it is requested. One of another host is
    /// decided as a call for it: who was allowed a host was not allowed all that it redirects to.
    async fn follow(
        &self,
        input: &Value,
        remaining: &mut Remaining,
        ctx: &ToolContext,
    ) -> Result<Response, ToolError> {
        let (url, accept) = (address(input)?, accept(format(input)));
        let failed = |why: &str| ToolError::failed(format!("Transport error (GET {url}): {why}"));
        let client = self.client()?;
        let mut at = Url::parse(url).map_err(|e| failed(&e.to_string()))?;
        let mut left = MAX_REDIRECTS;
        loop {
            if let Some(host) = at.host_str()
                && ctx.host.names_address(at.as_str())
            {
                lock(&self.local).insert(host.to_ascii_lowercase());
            }
            let request = client
                .get(at.clone())
                .header(ACCEPT, accept)
                .header(ACCEPT_LANGUAGE, "en-US,en;q=0.9");
            let answer = remaining
                .within(request.send())
                .await?
                .map_err(|e| transport(url, &e))?;
            let Some(to) = redirected(&at, &answer, ctx)? else {
                return Ok(answer);
            };
            left = left
                .checked_sub(1)
                .ok_or_else(|| failed("too many redirects"))?;
            if !is_same_host(&at, &to) {
                ctx.ask(of_redirect(&to, &at, input)).await?;
            }
            at = to;
        }
    }
}

/// Returns the redirect target of a response, if it may be requested: no rule may deny it, and it may only point to this machine or its
/// network if a rule names it or it is the server that was requested itself.
fn redirected(from: &Url, answer: &Response, ctx: &ToolContext) -> Result<Option<Url>, ToolError> {
    if !answer.status().is_redirection() {
        return Ok(None);
    }
    let location = answer.headers().get(LOCATION);
    let Some(location) = location.and_then(|it| it.to_str().ok()) else {
        return Ok(None);
    };
    let refused = |why: String| {
        ToolError::Denied(format!(
            "The page redirects to {location}, which is not asked: {why}"
        ))
    };
    let to = from
        .join(location)
        .map_err(|error| refused(error.to_string()))?;
    if !matches!(to.scheme(), "http" | "https") {
        return Err(refused("it is not a web address".to_owned()));
    }
    outrigger_net::check(&to).map_err(|why| refused(why.to_string()))?;
    if is_denied(&to, ctx) {
        return Err(refused("a rule denies it".to_owned()));
    }
    if is_local(&to) && to.origin() != from.origin() && !ctx.host.names_address(to.as_str()) {
        let why = "it is on this machine or its network, and no rule allows it by name";
        return Err(refused(why.to_owned()));
    }
    Ok(Some(to))
}

/// Returns whether both are the same server: a change from `http` to `https` is not another one.
fn is_same_host(one: &Url, other: &Url) -> bool {
    // The usual port of a scheme is none.
    one.host_str() == other.host_str() && one.port() == other.port()
}

/// Returns the question about a URL that `from` redirects to.
fn of_redirect(to: &Url, from: &Url, input: &Value) -> PermissionAsk {
    let mut metadata = input.clone();
    if let Value::Object(fields) = &mut metadata {
        fields.insert("url".to_owned(), json!(to.as_str()));
        fields.insert("redirectedFrom".to_owned(), json!(from.as_str()));
    }
    PermissionAsk {
        metadata,
        ..question(to.as_str(), input)
    }
}

/// Returns the question about a URL.
fn question(url: &str, input: &Value) -> PermissionAsk {
    // `http://x` is requested as `http://x/`, which a pattern for the host's pages (`http://x/*`) matches.
    let patterns = spelled(url);
    let asked = Url::parse(url)
        .map(String::from)
        .ok()
        .filter(|it| !patterns.contains(it));
    let mut metadata = input.clone();
    if let Value::Object(fields) = &mut metadata {
        fields.entry("format").or_insert(json!("markdown"));
    }
    PermissionAsk {
        permission: "webfetch".to_owned(),
        patterns,
        spellings: asked.into_iter().collect(),
        always: vec![always(url)],
        metadata,
        ..PermissionAsk::default()
    }
}

fn format(input: &Value) -> &str {
    match text(input, "format") {
        "" => "markdown",
        format => format,
    }
}

fn timeout(input: &Value) -> Duration {
    let seconds = input
        .get("timeout")
        .and_then(Value::as_f64)
        .unwrap_or(TIMEOUT);
    Duration::from_secs_f64(seconds.clamp(0.001, MAX_TIMEOUT))
}

fn address(input: &Value) -> Result<&str, ToolError> {
    let url = text(input, "url");
    if url.starts_with("http://") || url.starts_with("https://") {
        outrigger_net::check_text(url).map_err(|refused| ToolError::Denied(refused.to_string()))?;
        return Ok(url);
    }
    Err(ToolError::failed("URL must start with http:// or https://"))
}

/// Returns a URL as written, as requested and normalised, if these differ: rules are about what is requested.
fn spelled(url: &str) -> Vec<String> {
    let asked = Url::parse(url).ok();
    let more = asked.iter().flat_map(|it| [it.to_string(), plain(it)]);
    let mut all = vec![url.to_owned()];
    for form in more {
        let is_known = |it: &String| it.trim_end_matches('/') == form.trim_end_matches('/');
        if !all.iter().any(is_known) {
            all.push(form);
        }
    }
    all
}

/// Normalises a URL: removes what does not change its target, such as a user name and password, the dot after a host name, and
/// percent-encoding of plain characters.
fn plain(url: &Url) -> String {
    let mut plain = url.clone();
    // These fail for URLs without a host, which have neither.
    let _ = plain.set_username("");
    let _ = plain.set_password(None);
    let host = plain.host_str().and_then(|it| it.strip_suffix('.'));
    if let Some(host) = host.map(str::to_owned) {
        let _ = plain.set_host(Some(&host));
    }
    plain.set_path(&unescaped(url.path()));
    plain.into()
}

/// Decodes `%73` to `s` in a path: characters that mean the same either way.
fn unescaped(path: &str) -> String {
    let mut parts = path.split('%');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let byte = part.get(..2).and_then(|it| unhex(it)?.pop());
        let same = byte.filter(|it| it.is_ascii_alphanumeric() || b"-._~".contains(it));
        match same.zip(part.get(2..)) {
            Some((byte, rest)) => {
                out.push(char::from(byte));
                out.push_str(rest);
            }
            None => {
                out.push('%');
                out.push_str(part);
            }
        }
    }
    // Most servers treat `//x` as `/x`.
    while out.contains("//") {
        out = out.replace("//", "/");
    }
    out
}

/// Returns whether a rule denies the URL in any of its forms.
fn is_denied(url: &Url, ctx: &ToolContext) -> bool {
    let mut forms = [url.to_string(), plain(url)].into_iter();
    forms.any(|form| ctx.host.denies_address(&form))
}

/// Returns what "always" allows: an address of this machine or its network only by its exact name.
fn always(url: &str) -> String {
    match Url::parse(url) {
        Ok(url) if is_local(&url) => format!("{}/*", url.origin().ascii_serialization()),
        _ => "*".to_owned(),
    }
}

fn accept(format: &str) -> &'static str {
    match format {
        "html" => "text/html;q=1.0, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.1",
        "text" => "text/plain;q=1.0, text/markdown;q=0.9, text/html;q=0.8, */*;q=0.1",
        _ => {
            "text/markdown;q=1.0, text/x-markdown;q=0.9, text/plain;q=0.8, text/html;q=0.7, */*;q=0.1"
        }
    }
}

async fn body(mut response: Response, url: &str) -> Result<Vec<u8>, ToolError> {
    let too_large = || ToolError::failed("Response too large (exceeds 5MB limit)");
    if response
        .content_length()
        .is_some_and(|n| n > MAX_BYTES as u64)
    {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|e| transport(url, &e))? {
        if bytes.len() + chunk.len() > MAX_BYTES {
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

// The innermost cause is the most specific; the others repeat the URL.
fn transport(url: &str, error: &reqwest::Error) -> ToolError {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    let message = format!("Transport error (GET {url}): {cause}");
    if error.is_connect() || error.is_body() {
        ToolError::Unavailable(message)
    } else {
        ToolError::Failed(message)
    }
}

impl Tool for WebFetch {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn permissions(
        &self,
        input: &Value,
        ctx: &ToolContext,
    ) -> Result<Vec<PermissionAsk>, ToolError> {
        let question = question(address(input)?, input);
        let mut spellings = question.spellings.iter();
        if let Some(asked) = spellings.find(|it| ctx.host.denies_address(it)) {
            return Err(ToolError::Denied(format!("A rule denies {asked}")));
        }
        Ok(vec![question])
    }

    fn deadline(&self, input: &Value) -> Option<Duration> {
        // Two tries, and the conversion of the page.
        Some(timeout(input) * 2 + Duration::from_secs(30))
    }

    fn run<'a>(
        &'a self,
        input: Value,
        ctx: &'a ToolContext,
    ) -> BoxFuture<'a, Result<ToolOutput, ToolError>> {
        Box::pin(async move {
            let (url, format) = (address(&input)?, format(&input));
            let (kind, bytes) = self.fetch(&input, ctx).await?;
            let title = format!("{url} ({kind})");
            let mime = kind.split(';').next().unwrap_or("").trim().to_lowercase();
            if mime.starts_with("image/") && !mime.contains("svg") {
                return Ok(image(title, &mime, &bytes));
            }
            let page = String::from_utf8_lossy(&bytes).into_owned();
            let output = match mime.as_str() {
                "text/html" => converted(page, format).await?,
                _ => page,
            };
            Ok(ToolOutput {
                title,
                output,
                metadata: json!({}),
                attachments: None,
            })
        })
    }
}

/// Converts an HTML page to the requested format.
async fn converted(page: String, format: &str) -> Result<String, ToolError> {
    let format = format.to_owned();
    let convert = move || match format.as_str() {
        "text" => html::plain(&page),
        "html" => page,
        _ => html::markdown(&page),
    };
    let converted = tokio::task::spawn_blocking(convert).await;
    converted.map_err(|e| ToolError::failed(e.to_string()))
}

fn image(title: String, mime: &str, bytes: &[u8]) -> ToolOutput {
    ToolOutput {
        title,
        output: "Image fetched successfully".to_owned(),
        metadata: json!({}),
        attachments: Some(vec![json!({
            "type": "file", "mime": mime, "url": format!("data:{mime};base64,{}", STANDARD.encode(bytes)),
        })]),
    }
}
