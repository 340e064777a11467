//! The available providers and models.

use outrigger_models::{ModelError, Models, ModelsOptions, max_output_tokens};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::message::ModelRef;
use serde_json::{Value, json};

use crate::{KEY, mock, models, resolve};

fn fails(models: &Models, name: &str) -> ModelError {
    models.resolve(&ModelRef::parse(name).unwrap()).unwrap_err()
}

#[test]
fn what_hooks_get_has_the_form_of_opencode() {
    let models = models(mock("http://127.0.0.1:1/v1"), &[]);
    let resolved = resolve(&models, "mock/m1");
    // Key by key as in the `chat.params` rows of the recordings.
    insta::assert_snapshot!(serde_json::to_value(&resolved.model).unwrap(), @r#"{"id":"m1","providerID":"mock","api":{"id":"m1","url":"","npm":"@ai-sdk/openai-compatible"},"name":"M1","family":"","capabilities":{"temperature":false,"reasoning":false,"attachment":false,"toolcall":true,"input":{"text":true,"audio":false,"image":false,"video":false,"pdf":false},"output":{"text":true,"audio":false,"image":false,"video":false,"pdf":false},"interleaved":false},"cost":{"input":0.0,"output":0.0,"cache":{"read":0.0,"write":0.0}},"limit":{"context":100000,"output":4000},"status":"active","options":{},"headers":{},"release_date":"","variants":{}}"#);
    let open = serde_json::to_value(&*resolved.provider_for_hooks(false)).unwrap();
    assert_eq!(
        open["options"],
        json!({"baseURL": "http://127.0.0.1:1/v1", "apiKey": KEY})
    );
    assert_eq!(open["models"]["m1"]["providerID"], "mock");
    let mut keys: Vec<&String> = open.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["env", "id", "models", "name", "options", "source"]);
    let closed = serde_json::to_string(&*resolved.provider_for_hooks(true)).unwrap();
    assert!(
        !closed.contains(KEY) && closed.contains("[key removed]"),
        "{closed}"
    );
    assert_eq!(max_output_tokens(&resolved.model), 4000);
}

#[test]
fn no_secret_of_a_provider_is_shown() {
    let mut config = mock("http://u:pass-1@127.0.0.1:1/v1?key=key-2");
    let options = &mut config["mock"]["options"];
    options["headers"] = json!({ "X-Goog": "key-3" });
    options["credentials"] = json!({ "private_key": "key-4", "client_email": "key-5" });
    config["mock"]["models"]["m1"]["headers"] = json!({ "X-H": "key-6" });
    let resolved = resolve(&models(config, &[]), "mock/m1");
    let shown = serde_json::to_string(&*resolved.provider_for_hooks(true)).unwrap();
    assert!(
        !shown.contains("pass-1") && !shown.contains("key-"),
        "{shown}"
    );
    assert!(shown.contains("@127.0.0.1:1/v1?key="), "{shown}");
}

/// Hooks receive no secret: neither by its name, as a header, in an address, nor taken by the configuration from elsewhere.
#[test]
fn hooks_get_no_secret_of_a_provider_or_a_model() {
    let mut config = mock("http://user:in-login@127.0.0.1:1/v1?key=in-query");
    config["mock"]["options"]["headers"] = json!({ "X-Goog": "in-header" });
    config["mock"]["options"]["note"] = json!("from in-env-secret");
    config["mock"]["options"]["credentials"] =
        json!({ "private_key": "in-pem", "client_email": "m" });
    config["mock"]["models"]["m1"]["headers"] =
        json!({ "Authorization": "Bearer in-model", "X-H": "in-other" });
    let models = Models::new(ModelsOptions {
        providers: config.as_object().unwrap().clone(),
        secrets: vec!["in-env-secret".into()],
        ..ModelsOptions::default()
    });
    let resolved = resolve(&models, "mock/m1");
    for shown in [
        serde_json::to_string(&*resolved.provider_for_hooks(true)).unwrap(),
        serde_json::to_string(&resolved.model_for_hooks()).unwrap(),
    ] {
        let known = [
            "in-login",
            "in-query",
            "in-header",
            "in-env",
            "in-pem",
            "in-model",
            "in-other",
        ];
        assert!(known.iter().all(|it| !shown.contains(it)), "{shown}");
        assert!(shown.contains("[key removed]"), "{shown}");
    }
    // Requests have them.
    assert_eq!(resolved.model.headers["X-H"], "in-other");
}

/// A request's options go to hooks without likely secrets, which are restored where the hooks left the options unchanged.
#[test]
fn what_hooks_do_not_get_of_the_options_comes_back() {
    let mut config = mock("http://127.0.0.1:1/v1");
    config["mock"]["models"]["m1"]["options"] = json!({
        "odd": "hY7-ws92kq", "nested": { "odd": ["qY8-ws92kq", "plain"] }, "reasoningEffort": "high", "thinking": { "type": "enabled" },
    });
    let resolved = resolve(&models(config, &[]), "mock/m1");
    let real = resolved.default_options("ses_1", false);
    let shown = resolved.options_for_hooks(&real);
    let text = serde_json::to_string(&shown).unwrap();
    assert!(!text.contains("ws92kq"), "{text}");
    assert!(
        text.contains("high") && text.contains("enabled") && text.contains("plain"),
        "{text}"
    );
    let mut left = shown.clone();
    left.insert("reasoningEffort".into(), json!("low"));
    left.insert("temperature".into(), json!(1));
    left.insert("elsewhere".into(), shown["odd"].clone());
    outrigger_models::put_back(&mut left, &shown, &real);
    assert_eq!(left["odd"], "hY7-ws92kq");
    assert_eq!(left["nested"], real["nested"]);
    assert_eq!(left["reasoningEffort"], "low");
    assert_eq!(left["temperature"], 1);
    assert!(!left.contains_key("elsewhere"));
}

#[test]
fn names_that_do_not_exist_come_with_near_ones() {
    let env = [("ANTHROPIC_API_KEY", KEY)];
    let mut config = mock("http://127.0.0.1:1/v1");
    config["bed"] = json!({"npm": "@ai-sdk/cohere", "models": {"b": {}}});
    config["bare"] = json!({"npm": "@ai-sdk/openai-compatible", "options": {"apiKey": "k"}, "models": {"b": {}}});
    let models = models(config, &env);
    let errors: Vec<String> = [
        "antropic/claude",
        "anthropic/claude-haiku-45",
        "mock/m2",
        "openai/gpt-5",
        "bed/b",
    ]
    .iter()
    .map(|n| {
        let error = fails(&models, n);
        format!(
            "{} | {error} | {}",
            error.code(),
            error.hint().unwrap_or_default()
        )
    })
    .collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
    model.unknown_provider | unknown provider `antropic`; near: `anthropic` | check the part before the first slash, or describe it under `provider.antropic` in opencode.json (npm, options.baseURL, models)
    model.unknown_model | provider `anthropic` has no model `claude-haiku-45`; near: `claude-haiku-4-5`, `claude-fable-5`, `claude-opus-4-5` | check the name, or add it under `provider.anthropic.models["claude-haiku-45"]` in opencode.json
    model.unknown_model | provider `mock` has no model `m2` | check the name, or add it under `provider.mock.models["m2"]` in opencode.json
    model.no_key | no API key for provider `openai` | `outrigger auth login -p openai` stores one, or set OPENAI_API_KEY or `provider.openai.options.apiKey` in opencode.json
    model.unsupported_provider | provider `bed` uses `@ai-sdk/cohere`, which Outrigger does not support | if the service has an OpenAI-compatible endpoint, set `npm` to "@ai-sdk/openai-compatible" and `options.baseURL` to it
    "#);
}

#[test]
fn configuration_catalog_and_environment_are_joined() {
    let config = json!({"anthropic": {
    "whitelist": ["claude-haiku-4-5", "mine"],
    "models": {
        "mine": {"id": "claude-haiku-4-5", "name": "Mine", "limit": {"output": 1000}, "options": {"a": 1, "b": 1},
            "variants": {"high": {"b": 2}, "off": {"disabled": true}}},
    }}});
    let models = models(
        config,
        &[("ANTHROPIC_API_KEY", KEY), ("OPENROUTER_API_KEY", KEY)],
    );
    let mine = models
        .resolve(&ModelRef {
            variant: Some("high".into()),
            ..ModelRef::parse("anthropic/mine").unwrap()
        })
        .unwrap();
    assert_eq!(mine.model.api.id, "claude-haiku-4-5");
    assert_eq!(
        (mine.model.limit.context, mine.model.limit.output),
        (200_000, 1000)
    );
    assert_eq!(mine.model.family, "claude-haiku");
    assert_eq!(
        Value::Object(mine.default_options("s", false)),
        json!({"a": 1, "b": 2, "thinking": {"type": "enabled", "budgetTokens": 16000}})
    );
    assert_eq!(
        mine.model.variants.keys().collect::<Vec<_>>(),
        ["high", "max"]
    );
    assert_eq!(
        fails(&models, "anthropic/claude-opus-5").code(),
        "model.unknown_model"
    );
    // A dated version of a known model has its family's limits.
    let dated = resolve(&models, "openrouter/qwen/qwen3.6-27b:free");
    assert_eq!(dated.model.api.id, "qwen/qwen3.6-27b:free");
    assert!(dated.model.limit.context > 0);
    let ids: Vec<String> = models
        .providers()
        .iter()
        .map(|p| format!("{}:{}", p.id, p.source))
        .collect();
    assert_eq!(ids, ["anthropic:config", "openrouter:env"]);
}

#[test]
fn default_and_small_models() {
    let env = [("OPENAI_API_KEY", KEY), ("DEEPSEEK_API_KEY", KEY)];
    let name = |m: ModelRef| format!("{}/{}", m.provider_id, m.model_id);
    let small = |models: &Models, of: &str| name(models.small_model(&ModelRef::parse(of).unwrap()));
    let plain = models(json!({}), &env);
    assert!(name(plain.default_model().unwrap()).starts_with("openai/gpt-5"));
    assert!(small(&plain, "openai/gpt-5").contains("-nano"));
    assert_eq!(
        small(&plain, "deepseek/deepseek-v4-pro"),
        "deepseek/deepseek-v4-pro"
    );
    let set = Models::new(ModelsOptions {
        providers: mock("http://127.0.0.1:1").as_object().cloned().unwrap(),
        model: Some("mock/m1".into()),
        small_model: Some("mock/m1".into()),
        ..ModelsOptions::default()
    });
    assert_eq!(name(set.default_model().unwrap()), "mock/m1");
    assert_eq!(small(&set, "openai/gpt-5"), "mock/m1");
    assert_eq!(
        models(json!({}), &[]).default_model().unwrap_err().code(),
        "model.none"
    );
    let off = Models::new(ModelsOptions {
        disabled: vec!["openai".into()],
        env: [("OPENAI_API_KEY".to_owned(), KEY.to_owned())].into(),
        ..ModelsOptions::default()
    });
    assert_eq!(off.default_model().unwrap_err().code(), "model.none");
    assert_eq!(fails(&off, "openai/gpt-5").code(), "model.config");
}

#[test]
fn a_cached_catalog_brings_providers() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("models.json");
    std::fs::write(&file, r#"{"acme":{"id":"acme","name":"Acme","env":["ACME_KEY"],"npm":"@ai-sdk/openai-compatible","api":"http://127.0.0.1:1/v1",
        "models":{"a1":{"id":"a1","name":"A1","limit":{"context":1000,"output":100},"cost":{"input":1,"output":2}}}}}"#).unwrap();
    let models = Models::new(ModelsOptions {
        env: [("ACME_KEY".to_owned(), KEY.to_owned())].into(),
        catalog: outrigger_models::CatalogOptions {
            of_opencode: Some(file),
            ..Default::default()
        },
        ..ModelsOptions::default()
    });
    let model = resolve(&models, "acme/a1").model;
    assert_eq!((model.limit.context, model.cost.output), (1000, 2.0));
    assert_eq!(
        models
            .providers()
            .iter()
            .map(|p| p.id.clone())
            .collect::<Vec<_>>(),
        ["acme"]
    );
}
