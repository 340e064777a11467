//! Fields of a model request that decide who pays for it, where it goes, which model answers, and what else the service
//! does: control over any of these amounts to being the model. Only a plugin with the user's grant `model` may change them.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use outrigger_protocol::keys::{is_secret_name, words};
use serde_json::{Map, Value};

use super::{Breach, Rule, at};
use crate::hooks::HookPoint;

/// Headers of this kind, besides those named like a secret: the account, the destination, and the length of the request.
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

/// Prefixes of other such headers: of proxies, clouds, and gateways that choose the account and the model.
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

/// Options of this kind, in lower case and without `-` and `_`, including those that pass raw fields to the service
/// (`extra_body`).
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

/// Ends of other such options, in the same form (`mcp_servers`, `webhook_url`, `serverTools`).
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

/// Location of headers or options of a request at a point.
struct Part {
    point: HookPoint,
    path: &'static [&'static str],
    is_guarded: fn(&str) -> bool,
    /// Name of an entry for messages.
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

/// Returns whether a header decides who pays for a request or where it goes.
#[must_use]
pub fn is_guarded_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    is_secret_name(&name)
        || HEADERS.contains(&name.as_str())
        || HEADER_PREFIXES.iter().any(|it| name.starts_with(it))
}

/// Returns whether an option decides which model answers a request, where, for whose account, or what else the service
/// does.
#[must_use]
pub fn is_guarded_option(name: &str) -> bool {
    // Without regard to case, as services in Go read names: `mOdel` is `model` there.
    let flat = words(name).concat();
    is_secret_name(name)
        || OPTIONS.contains(&flat.as_str())
        || OPTION_ENDS.iter().any(|end| flat.ends_with(end))
}

/// Restores what a plugin without the grant changed, and reports it.
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
    let before = at(before, part.path)
        .and_then(Value::as_object)
        .unwrap_or(&none);
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
