//! What of a model request decides who pays for it, where it goes, which model answers, and what the service does besides
//! answering: with any of these a plugin is as good as the model. Only one with the user's grant `model` changes it.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::keys::{is_secret_name, words};
use serde_json::{Map, Value};

use super::{Breach, Rule, at};
use crate::hooks::HookPoint;

/// Headers of this kind, besides those that have the name of a secret: whose account it is, where the request goes, and how
/// long it is.
const HEADERS: &[&str] = &[
    "ai-model-id",
    "chatgpt-account-id",
    "connection",
    "content-length",
    "expect",
    "forwarded",
    "host",
    "openai-organization",
    "openai-project",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "x-host",
    "x-http-method-override",
    "x-method-override",
    "x-original-host",
    "x-original-url",
    "x-rewrite-url",
];

/// How others begin: of proxies, of clouds, and of gateways that choose the account and the model.
const HEADER_PREFIXES: &[&str] = &[
    "ai-gateway-",
    "cf-aig-",
    "helicone-",
    "proxy-",
    "x-amz",
    "x-forwarded-",
    "x-goog-",
    "x-litellm-",
    "x-ms-",
    "x-portkey-",
];

/// Options of this kind, in small letters and without `-` and `_`. What holds fields for the service as they are
/// (`extra_body`) is one of them.
const OPTIONS: &[&str] = &[
    "account",
    "adapterid",
    "additionalmodelrequestfields",
    "agent",
    "apibase",
    "assistantid",
    "background",
    "baseurl",
    "body",
    "cachedcontent",
    "container",
    "conversation",
    "customllmprovider",
    "deployment",
    "deploymentid",
    "enablesearch",
    "engine",
    "extrabody",
    "extraheaders",
    "extraquery",
    "fallback",
    "fallbacks",
    "functions",
    "guardrailconfig",
    "guardrailidentifier",
    "headers",
    "lora",
    "mockresponse",
    "modelid",
    "organization",
    "preset",
    "previousresponseid",
    "prompt",
    "promptid",
    "project",
    "provider",
    "query",
    "region",
    "route",
    "search",
    "searchparameters",
    "skills",
    "threadid",
    "toolconfig",
    "websearch",
    "websearchoptions",
];

/// Last words of others (`mcp_servers`, `webhook_url`, `serverTools`).
const OPTION_ENDS: &[&str] = &[
    "connector",
    "connectors",
    "endpoint",
    "host",
    "mcp",
    "model",
    "models",
    "plugin",
    "plugins",
    "proxy",
    "server",
    "servers",
    "tool",
    "tools",
    "uri",
    "url",
    "urls",
    "webhook",
    "webhooks",
];

/// Where a point has headers or options of a request.
struct Part {
    point: HookPoint,
    path: &'static [&'static str],
    is_guarded: fn(&str) -> bool,
    /// What an entry of it is, for people.
    what: &'static str,
}

const PARTS: [Part; 3] = [
    Part {
        point: HookPoint::LlmBeforeHeaders,
        path: &["headers"],
        is_guarded: is_guarded_header,
        what: "header",
    },
    Part {
        point: HookPoint::LlmBeforeParams,
        path: &["options"],
        is_guarded: is_guarded_option,
        what: "option",
    },
    Part {
        point: HookPoint::LlmBeforeRequest,
        path: &["params", "options"],
        is_guarded: is_guarded_option,
        what: "option",
    },
];

/// Whether a header says who pays for a request or where it goes.
#[must_use]
pub fn is_guarded_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    is_secret_name(&name)
        || HEADERS.contains(&name.as_str())
        || HEADER_PREFIXES.iter().any(|it| name.starts_with(it))
}

/// Whether an option says which model answers a request, where, for whose account, or what the service does besides.
#[must_use]
pub fn is_guarded_option(name: &str) -> bool {
    let words = words(name);
    let last = words.last().map(String::as_str).unwrap_or_default();
    is_secret_name(name)
        || OPTIONS.contains(&words.concat().as_str())
        || OPTION_ENDS.contains(&last)
}

/// Puts back what a plugin without the grant changed of it, and says what that was.
pub(crate) fn uphold_request(
    point: HookPoint,
    grant: &str,
    before: &Value,
    output: &mut Value,
) -> Vec<Breach> {
    let Some(part) = PARTS.iter().find(|part| part.point == point) else {
        return Vec::new();
    };
    let none = Map::new();
    let before = at(before, part.path).and_then(Value::as_object);
    let before = before.unwrap_or(&none);
    let Some(Value::Object(after)) = part
        .path
        .iter()
        .try_fold(output, |place, key| place.get_mut(*key))
    else {
        return Vec::new();
    };
    let mut names: Vec<String> = after
        .iter()
        .filter(|(name, value)| before.get(*name) != Some(*value))
        .map(|(name, _)| name.clone())
        .collect();
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    names.extend(gone.cloned());
    names.retain(|name| (part.is_guarded)(name));
    for name in &names {
        match before.get(name) {
            Some(old) => after.insert(name.clone(), old.clone()),
            None => after.shift_remove(name),
        };
    }
    if names.is_empty() {
        return Vec::new();
    }
    let (what, names) = (part.what, names.join("`, `"));
    let message = format!(
        "the {what} `{names}` would decide whose account pays for the request, where it goes or what answers it, which this plugin may not (`{grant} = true` for it under [plugins.NAME] in your own outrigger.toml grants that)"
    );
    let rule = Rule::Account;
    alloc::vec![Breach { rule, message }]
}
