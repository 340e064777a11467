//! Defaults of requests: sampling, options and variants of known models. The rules are OpenCode's
//! (`ProviderTransform` in 1.18.33), for the packages with an adapter here.

use outrigger_protocol::Object;
use outrigger_protocol::model::ModelInfo;
use serde_json::{Value, json};

const OPENAI: &str = "@ai-sdk/openai";
const GOOGLE: &str = "@ai-sdk/google";
const ANTHROPIC: &str = "@ai-sdk/anthropic";
const EFFORTS: [&str; 3] = ["low", "medium", "high"];

/// Returns the numbers after the first `word` in a name, as in `gpt-5.1` or `gemini-2.5`.
fn version(id: &str, word: &str) -> Option<(u32, Option<u32>)> {
    let rest = id.split_once(word)?.1;
    let mut parts = rest.splitn(2, ['.', '-']);
    let digits = |text: &str| -> Option<u32> {
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        text.get(..end)?.parse().ok()
    };
    let major = digits(parts.next()?)?;
    // A date is not a version.
    let minor = parts.next().and_then(digits).filter(|minor| *minor < 100);
    Some((major, minor))
}

fn is_known_gemini(id: &str) -> bool {
    let version = version(id, "gemini-");
    match version {
        Some((2, Some(5)) | (3, Some(1))) => true,
        Some((3, Some(5))) => id.contains("flash") && !id.contains("flash-lite"),
        Some((3, None)) => id.contains("gemini-3-flash") || id.contains("gemini-3-pro"),
        _ => false,
    }
}

/// Returns the default temperature.
#[must_use]
pub fn temperature(model: &ModelInfo) -> Option<f64> {
    let id = model.api.id.to_lowercase();
    let has = |parts: &[&str]| parts.iter().any(|part| id.contains(part));
    if has(&["claude"]) {
        None
    } else if has(&["gemini"]) {
        is_known_gemini(&id).then_some(1.0)
    } else if has(&["glm-4.6", "glm-4.7", "minimax-m2"]) {
        Some(1.0)
    } else if has(&["kimi-k2"]) {
        Some(if has(&["thinking", "k2.", "k2p", "k2-5"]) {
            1.0
        } else {
            0.6
        })
    } else {
        None
    }
}

/// Returns the default of nucleus sampling.
#[must_use]
pub fn top_p(model: &ModelInfo) -> Option<f64> {
    let id = model.api.id.to_lowercase();
    if id.contains("gemini") {
        return is_known_gemini(&id).then_some(0.95);
    }
    let known = ["minimax-m2", "kimi-k2.5", "kimi-k2p5", "kimi-k2-5"];
    known.iter().any(|part| id.contains(part)).then_some(0.95)
}

/// Returns the default of top-k sampling.
#[must_use]
pub fn top_k(model: &ModelInfo) -> Option<f64> {
    let id = model.api.id.to_lowercase();
    if id.contains("minimax-m2") {
        let new = ["m2.", "m25", "m21"].iter().any(|part| id.contains(part));
        return Some(if new { 40.0 } else { 20.0 });
    }
    (id.contains("gemini") && is_known_gemini(&id)).then_some(64.0)
}

/// Returns the default options of a request. `small` is for titles and the like, which need no reasoning.
pub(crate) fn options(model: &ModelInfo, provider: &Object, session: &str, small: bool) -> Object {
    let mut out = Object::new();
    let npm = model.api.npm.as_str();
    let mut set = |key: &str, value: Value| {
        out.insert(key.to_owned(), value);
    };
    if matches!(npm, OPENAI | "@ai-sdk/xai") || model.provider_id == "openai" {
        set("store", json!(false));
    }
    if small {
        let first = model.variants.values().next().and_then(Value::as_object);
        out.extend(first.cloned().unwrap_or_default());
        return out;
    }
    let id = model.api.id.to_lowercase();
    if npm == "@openrouter/ai-sdk-provider" {
        set("usage", json!({"include": true}));
        let major = version(&id, "gemini-").map(|v| v.0);
        if id.contains("gemini") && !matches!(major, Some(1 | 2)) {
            set("reasoning", json!({"effort": "high"}));
        }
    }
    if ["zai", "zhipuai"]
        .iter()
        .any(|part| model.provider_id.contains(part))
        && npm == "@ai-sdk/openai-compatible"
    {
        set(
            "thinking",
            json!({"type": "enabled", "clear_thinking": false}),
        );
    }
    if npm == GOOGLE && model.capabilities.reasoning {
        let old = matches!(version(&id, "gemini-").map(|v| v.0), Some(1 | 2));
        set(
            "thinkingConfig",
            if old {
                json!({"includeThoughts": true})
            } else {
                json!({"includeThoughts": true, "thinkingLevel": "high"})
            },
        );
    }
    if let Some(key) = cache_key(npm, provider) {
        set(key, json!(session));
    }
    if id.contains("gpt-5") && !id.contains("gpt-5-chat") {
        out.extend(gpt_5(npm, &id));
    }
    out
}

/// Returns the name under which the session is sent as the key of the prompt cache.
fn cache_key(npm: &str, provider: &Object) -> Option<&'static str> {
    match provider.get("setCacheKey") {
        Some(Value::Bool(false)) => None,
        _ if npm == "@ai-sdk/cerebras" || npm == "@ai-sdk/deepinfra" => Some("prompt_cache_key"),
        wish if matches!(npm, OPENAI | "@ai-sdk/xai" | "@ai-sdk/mistral")
            || wish == Some(&Value::Bool(true)) =>
        {
            Some("promptCacheKey")
        }
        _ => None,
    }
}

/// Returns the reasoning and verbosity options of this family.
fn gpt_5(npm: &str, id: &str) -> Object {
    let mut out = Object::new();
    let mut set = |key: &str, value: Value| {
        out.insert(key.to_owned(), value);
    };
    if !id.contains("gpt-5-pro") {
        set("reasoningEffort", json!("medium"));
        if npm == OPENAI {
            set("reasoningSummary", json!("auto"));
            set("include", json!(["reasoning.encrypted_content"]));
        }
    }
    if npm == OPENAI && id.contains("gpt-5.") && !id.contains("codex") && !id.contains("-chat") {
        set("textVerbosity", json!("low"));
    }
    out
}

/// Returns the reasoning efforts that an OpenAI model supports.
fn efforts(id: &str, release: &str) -> Vec<&'static str> {
    let with = |before: &[&'static str], after: &[&'static str]| [before, &EFFORTS, after].concat();
    if id.contains("deep-research") {
        return vec!["medium"];
    }
    let five = version(id, "gpt-").filter(|v| v.0 == 5);
    let minor = five.and_then(|v| v.1).filter(|minor| *minor > 0);
    if five.is_some() {
        if id.contains("-chat") {
            return minor.map_or_else(Vec::new, |_| vec!["medium"]);
        }
        if id.contains("-pro") {
            return match minor {
                Some(_) => vec!["medium", "high", "xhigh"],
                None => vec!["high"],
            };
        }
        if id.contains("codex") {
            return match minor {
                Some(3..) => with(&["none"], &["xhigh"]),
                _ if id.contains("codex-max") || minor.is_some_and(|m| m >= 2) => {
                    with(&[], &["xhigh"])
                }
                _ => with(&[], &[]),
            };
        }
        match minor {
            Some(1) => return with(&["none"], &[]),
            Some(_) => return with(&["none"], &["xhigh"]),
            None => {}
        }
    }
    let mut before = Vec::new();
    if release >= "2025-11-13" {
        before.push("none");
    }
    if five.is_some() {
        before.push("minimal");
    }
    let after: &[&str] = if release >= "2025-12-04" {
        &["xhigh"]
    } else {
        &[]
    };
    with(&before, after)
}

fn each(names: impl IntoIterator<Item = &'static str>, of: impl Fn(&str) -> Value) -> Object {
    names
        .into_iter()
        .map(|name| (name.to_owned(), of(name)))
        .collect()
}

/// Returns a model's own named sets of options.
pub(crate) fn variants(model: &ModelInfo) -> Object {
    if !model.capabilities.reasoning {
        return Object::new();
    }
    let id = model.api.id.to_lowercase();
    let plain = [
        "deepseek-chat",
        "deepseek-reasoner",
        "deepseek-r1",
        "deepseek-v3",
        "minimax",
        "glm",
        "kimi",
        "k2p",
        "qwen",
        "big-pickle",
    ];
    if plain
        .iter()
        .any(|part| model.id.to_lowercase().contains(part))
    {
        return Object::new();
    }
    match model.api.npm.as_str() {
        OPENAI => each(
            efforts(&id, &model.release_date),
            |effort| json!({"reasoningEffort": effort, "reasoningSummary": "auto", "include": ["reasoning.encrypted_content"]}),
        ),
        GOOGLE => gemini_variants(&id),
        ANTHROPIC => claude_variants(&id, model.limit.output),
        "@openrouter/ai-sdk-provider" => {
            let names = if id.contains("gpt") || id.starts_with("openai/") {
                vec!["none", "minimal", "low", "medium", "high", "xhigh"]
            } else {
                EFFORTS.to_vec()
            };
            each(names, |effort| json!({"reasoning": {"effort": effort}}))
        }
        "@ai-sdk/groq" => each(
            ["none", "low", "medium", "high"],
            |effort| json!({"reasoningEffort": effort}),
        ),
        "@ai-sdk/cerebras"
        | "@ai-sdk/togetherai"
        | "@ai-sdk/xai"
        | "@ai-sdk/deepinfra"
        | "@ai-sdk/openai-compatible" => {
            let mut names = EFFORTS.to_vec();
            if id.contains("deepseek-v4") {
                names.push("max");
            }
            each(names, |effort| json!({"reasoningEffort": effort}))
        }
        _ => Object::new(),
    }
}

fn gemini_variants(id: &str) -> Object {
    if version(id, "gemini-") == Some((2, Some(5))) {
        let most = if id.contains("pro") { 32_768 } else { 24_576 };
        let budget = |tokens: u32| json!({"thinkingConfig": {"includeThoughts": true, "thinkingBudget": tokens}});
        return [
            ("high".to_owned(), budget(16_000)),
            ("max".to_owned(), budget(most)),
        ]
        .into_iter()
        .collect();
    }
    let old = matches!(version(id, "gemini-").map(|v| v.0), Some(1 | 2));
    let names: &[&str] = if id.contains("gemma") {
        &["minimal", "high"]
    } else if old {
        &["low", "high"]
    } else if id.contains("flash") {
        &["minimal", "low", "medium", "high"]
    } else {
        &EFFORTS
    };
    each(
        names.iter().copied(),
        |level| json!({"thinkingConfig": {"includeThoughts": true, "thinkingLevel": level}}),
    )
}

fn claude_variants(id: &str, output: u64) -> Object {
    let has = |parts: &[&str]| parts.iter().any(|part| id.contains(part));
    let version = ["opus-", "sonnet-", "haiku-"]
        .iter()
        .find_map(|word| version(id, word));
    let adaptive = |names: &'static [&'static str], extra: bool| {
        each(names.iter().copied(), |effort| {
            let mut thinking = json!({"type": "adaptive"});
            if let (true, Some(map)) = (extra, thinking.as_object_mut()) {
                map.insert("display".into(), "summarized".into());
            }
            json!({"thinking": thinking, "effort": effort})
        })
    };
    let is_new =
        version.is_some_and(|(major, minor)| major > 4 || (major == 4 && minor.unwrap_or(0) >= 7));
    if id.contains("claude-") && is_new {
        return adaptive(&["low", "medium", "high", "xhigh", "max"], true);
    }
    if has(&["opus-4-6", "opus-4.6", "sonnet-4-6", "sonnet-4.6"]) {
        return adaptive(&["low", "medium", "high", "max"], false);
    }
    let budget =
        |most: u64, share: u64| json!({"type": "enabled", "budgetTokens": most.min(share)});
    let high = budget(16_000, (output / 2).saturating_sub(1));
    if has(&["opus-4-5", "opus-4.5"]) {
        return each(
            EFFORTS,
            |effort| json!({"thinking": high, "effort": effort}),
        );
    }
    let max = budget(31_999, output.saturating_sub(1));
    [
        ("high".to_owned(), json!({"thinking": high})),
        ("max".to_owned(), json!({"thinking": max})),
    ]
    .into_iter()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn model(npm: &str, id: &str, reasoning: bool) -> ModelInfo {
        let mut model = ModelInfo {
            id: id.into(),
            provider_id: "p".into(),
            release_date: "2025-08-07".into(),
            ..ModelInfo::default()
        };
        model.api.npm = npm.into();
        model.api.id = id.into();
        model.capabilities.reasoning = reasoning;
        model.limit.output = 64_000;
        model
    }

    // The rows of gpt-5, gpt-4o, gemini-2.5-pro and the small models are recordings of OpenCode; the others were
    // taken from its source.
    #[test]
    fn a_request_asks_for_what_opencode_asks_for() {
        let none = Object::new();
        for (npm, id, want) in [
            (
                OPENAI,
                "gpt-5",
                json!({"store": false, "promptCacheKey": "s", "reasoningEffort": "medium", "reasoningSummary": "auto", "include": ["reasoning.encrypted_content"]}),
            ),
            (
                OPENAI,
                "gpt-5.1",
                json!({"store": false, "promptCacheKey": "s", "reasoningEffort": "medium", "reasoningSummary": "auto", "include": ["reasoning.encrypted_content"], "textVerbosity": "low"}),
            ),
            (
                OPENAI,
                "gpt-4o",
                json!({"store": false, "promptCacheKey": "s"}),
            ),
            (
                GOOGLE,
                "gemini-2.5-pro",
                json!({"thinkingConfig": {"includeThoughts": true}}),
            ),
            (
                GOOGLE,
                "gemini-3.8-flash",
                json!({"thinkingConfig": {"includeThoughts": true, "thinkingLevel": "high"}}),
            ),
            (ANTHROPIC, "claude-sonnet-4-5", json!({})),
            ("@ai-sdk/openai-compatible", "m1", json!({})),
        ] {
            let got = options(&model(npm, id, true), &none, "s", false);
            assert_eq!(Value::Object(got), want, "{npm} {id}");
        }
        let mut small = model(OPENAI, "gpt-5.4-nano", true);
        small.variants = variants(&small);
        assert_eq!(
            Value::Object(options(&small, &none, "s", true)),
            json!({"store": false, "reasoningEffort": "none", "reasoningSummary": "auto", "include": ["reasoning.encrypted_content"]})
        );
        let off = json!({"setCacheKey": false}).as_object().cloned().unwrap();
        assert!(
            options(&model(OPENAI, "gpt-4o", false), &off, "s", false)
                .get("promptCacheKey")
                .is_none()
        );
    }

    #[test]
    fn sampling_and_variants_follow_the_model() {
        let of = |id: &str| {
            let m = model("x", id, false);
            (temperature(&m), top_p(&m), top_k(&m))
        };
        assert_eq!(of("gemini-2.5-pro"), (Some(1.0), Some(0.95), Some(64.0)));
        assert_eq!(of("gemini-3.8-flash"), (None, None, None));
        assert_eq!(of("kimi-k2-instruct"), (Some(0.6), None, None));
        assert_eq!(of("claude-opus-5"), (None, None, None));
        for (npm, id, want) in [
            (OPENAI, "gpt-5", "minimal low medium high"),
            (OPENAI, "gpt-5.1", "none low medium high"),
            (OPENAI, "gpt-5.2-codex", "low medium high xhigh"),
            (OPENAI, "gpt-5-chat-latest", ""),
            (OPENAI, "o3", "low medium high"),
            (GOOGLE, "gemini-2.5-flash", "high max"),
            (GOOGLE, "gemini-3-pro-preview", "low medium high"),
            (ANTHROPIC, "claude-sonnet-4-5-20250929", "high max"),
            (ANTHROPIC, "claude-opus-4-7", "low medium high xhigh max"),
            ("@ai-sdk/openai-compatible", "qwen3", ""),
            ("@ai-sdk/openai-compatible", "m1", "low medium high"),
        ] {
            let got = variants(&model(npm, id, true));
            assert_eq!(
                got.keys().cloned().collect::<Vec<_>>().join(" "),
                want,
                "{npm} {id}"
            );
        }
        assert!(variants(&model(OPENAI, "gpt-5", false)).is_empty());
    }
}
