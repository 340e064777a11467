//! URLs of models in clouds.

use outrigger_protocol::model::ModelInfo;
use serde_json::Value;

use super::{Cloud, Settings};
use crate::provider::Adapter;
use crate::transport::token_endpoint::encoded;

/// Returns the URL of a model; `base` is a configured one. `None`: the common form is used.
///
/// # Errors
/// What is missing, and where to configure it.
pub(crate) fn url(
    cloud: Cloud,
    adapter: Adapter,
    settings: &Settings,
    model: &ModelInfo,
    base: Option<&str>,
) -> Result<Option<String>, String> {
    let base = base.map(|it| it.trim().trim_end_matches('/'));
    let id = &model.api.id;
    Ok(Some(match (cloud, adapter) {
        (Cloud::Azure, _) if model.api.npm == "@ai-sdk/azure" => {
            azure(adapter, settings, id, base)?
        }
        (Cloud::Bedrock, Adapter::Bedrock) => bedrock(settings, id, base)?,
        (Cloud::Vertex, Adapter::Gemini) => {
            let at = vertex(settings, base, "us-central1", "google")?;
            format!("{at}/{id}:streamGenerateContent?alt=sse")
        }
        (Cloud::Vertex, Adapter::Anthropic) => {
            let at = vertex(settings, base, "global", "anthropic")?;
            format!("{at}/{id}:streamRawPredict")
        }
        _ => return Ok(None),
    }))
}

fn azure(
    adapter: Adapter,
    settings: &Settings,
    id: &str,
    base: Option<&str>,
) -> Result<String, String> {
    let base = match (base, settings.resource()) {
        (Some(base), _) => base.to_owned(),
        (None, Some(resource)) => format!("https://{}.openai.azure.com/openai", host(resource)?),
        (None, None) => {
            return Err(
                "needs the name of its resource: `options.resourceName`, or AZURE_RESOURCE_NAME"
                    .to_owned(),
            );
        }
    };
    let path = match adapter {
        Adapter::Responses => "responses",
        _ => "chat/completions",
    };
    let by_deployment = settings.options.get("useDeploymentBasedUrls") == Some(&Value::Bool(true));
    let (middle, version) = if by_deployment {
        (format!("deployments/{}", encoded(id)), "2025-04-01-preview")
    } else {
        ("v1".to_owned(), "v1")
    };
    let version = encoded(settings.option("apiVersion").unwrap_or(version));
    Ok(format!("{base}/{middle}/{path}?api-version={version}"))
}

fn bedrock(settings: &Settings, id: &str, base: Option<&str>) -> Result<String, String> {
    let region = settings.region();
    let base = match settings.option("endpoint").or(base) {
        Some(base) => base.trim_end_matches('/').to_owned(),
        None => format!("https://bedrock-runtime.{}.amazonaws.com", host(region)?),
    };
    let id = encoded(&in_region(id, region));
    Ok(format!("{base}/model/{id}/converse-stream"))
}

/// Returns the inference profile of a model: many models are available only in a group of regions. The rules are
/// OpenCode's.
fn in_region(id: &str, region: &str) -> String {
    const US: [&str; 7] = [
        "nova-micro",
        "nova-lite",
        "nova-pro",
        "nova-premier",
        "nova-2",
        "claude",
        "deepseek.r1",
    ];
    const EU: [&str; 5] = ["claude", "nova-lite", "nova-micro", "llama3", "pixtral"];
    const AU: [&str; 2] = ["anthropic.claude-sonnet-4-5", "anthropic.claude-haiku"];
    const ASIA: [&str; 4] = ["claude", "nova-lite", "nova-micro", "nova-pro"];
    const GROUPS: [&str; 7] = ["global.", "us.", "eu.", "jp.", "apac.", "au.", "arn:"];
    const IN_EU: [&str; 4] = ["eu-west-", "eu-north-1", "eu-central-1", "eu-south-"];
    let has = |parts: &[&str]| parts.iter().any(|part| id.contains(part));
    if GROUPS.iter().any(|prefix| id.starts_with(prefix)) {
        return id.to_owned();
    }
    let is_eu = IN_EU.iter().any(|prefix| region.starts_with(prefix));
    let group = match region.split('-').next().unwrap_or_default() {
        "us" if !region.starts_with("us-gov") && has(&US) => "us",
        "eu" if is_eu && has(&EU) => "eu",
        "ap" if matches!(region, "ap-southeast-2" | "ap-southeast-4") && has(&AU) => "au",
        "ap" if region == "ap-northeast-1" && has(&ASIA) => "jp",
        "ap" if region != "ap-northeast-1" && has(&ASIA) => "apac",
        _ => return id.to_owned(),
    };
    format!("{group}.{id}")
}

fn vertex(
    settings: &Settings,
    base: Option<&str>,
    default: &'static str,
    publisher: &str,
) -> Result<String, String> {
    match base {
        Some(base) if publisher == "google" => return Ok(format!("{base}/models")),
        Some(base) => return Ok(base.to_owned()),
        None => {}
    }
    let project = settings.project().ok_or(
        "needs a project: `options.project`, or GOOGLE_VERTEX_PROJECT or GOOGLE_CLOUD_PROJECT",
    )?;
    let location = settings.location(default);
    let version = if publisher == "google" {
        "v1beta1"
    } else {
        "v1"
    };
    Ok(format!(
        "https://{}/{version}/projects/{}/locations/{}/publishers/{publisher}/models",
        endpoint(location)?,
        encoded(project),
        encoded(location),
    ))
}

/// Returns the host of Vertex in a location.
fn endpoint(location: &str) -> Result<String, String> {
    Ok(match location {
        "global" => "aiplatform.googleapis.com".to_owned(),
        "eu" | "us" => format!("aiplatform.{location}.rep.googleapis.com"),
        location => format!("{}-aiplatform.googleapis.com", host(location)?),
    })
}

/// Validates a part of a host name: it must not change the target.
fn host(name: &str) -> Result<&str, String> {
    let fits = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if fits && !name.is_empty() {
        Ok(name)
    } else {
        Err(format!("`{name}` cannot be part of a host name"))
    }
}

/// Replaces `${NAME}` in a URL of the catalog.
///
/// # Errors
/// A name without a value.
pub(crate) fn fill(template: &str, settings: &Settings) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((name, tail)) = after.split_once('}') else {
            break;
        };
        out.push_str(before);
        out.push_str(&value(name, settings)?);
        rest = tail;
    }
    out.push_str(rest);
    Ok(out)
}

fn value(name: &str, settings: &Settings) -> Result<String, String> {
    let missing = || format!("needs {name}, which is not set");
    let location = settings.location("us-central1");
    Ok(match name {
        "AZURE_RESOURCE_NAME" => host(settings.resource().ok_or_else(missing)?)?.to_owned(),
        "AWS_REGION" => host(settings.region())?.to_owned(),
        "GOOGLE_VERTEX_PROJECT" => encoded(settings.project().ok_or_else(missing)?),
        "GOOGLE_VERTEX_LOCATION" => host(location)?.to_owned(),
        "GOOGLE_VERTEX_ENDPOINT" => endpoint(location)?,
        _ => return Err(missing()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn settings(options: &Value, env: &[(&str, &str)]) -> Settings {
        let env = env.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Settings::new(options.as_object().unwrap(), &env.collect())
    }

    #[test]
    fn addresses_by_table() {
        let azure = (Cloud::Azure, Adapter::Responses, "@ai-sdk/azure");
        let bedrock = (Cloud::Bedrock, Adapter::Bedrock, "@ai-sdk/amazon-bedrock");
        let gemini = (Cloud::Vertex, Adapter::Gemini, "@ai-sdk/google-vertex");
        let claude = (
            Cloud::Vertex,
            Adapter::Anthropic,
            "@ai-sdk/google-vertex/anthropic",
        );
        for ((cloud, adapter, npm), id, options, env, want) in [
            (
                azure,
                "gpt",
                json!({"resourceName": "mine"}),
                vec![],
                "https://mine.openai.azure.com/openai/v1/responses?api-version=v1",
            ),
            (
                azure,
                "gpt",
                json!({"useDeploymentBasedUrls": true, "apiVersion": "1"}),
                vec![("AZURE_RESOURCE_NAME", "r")],
                "https://r.openai.azure.com/openai/deployments/gpt/responses?api-version=1",
            ),
            (
                azure,
                "gpt",
                json!({"resourceName": "evil.example/"}),
                vec![],
                "`evil.example/` cannot be part of a host name",
            ),
            (
                azure,
                "gpt",
                json!({}),
                vec![],
                "needs the name of its resource: `options.resourceName`, or AZURE_RESOURCE_NAME",
            ),
            (
                bedrock,
                "anthropic.claude-x-v1:0",
                json!({}),
                vec![("AWS_REGION", "eu-west-1")],
                "https://bedrock-runtime.eu-west-1.amazonaws.com/model/eu.anthropic.claude-x-v1%3A0/converse-stream",
            ),
            (
                bedrock,
                "zai.glm",
                json!({"region": "us-west-2"}),
                vec![],
                "https://bedrock-runtime.us-west-2.amazonaws.com/model/zai.glm/converse-stream",
            ),
            (
                bedrock,
                "zai.glm",
                json!({"region": "x.evil"}),
                vec![],
                "`x.evil` cannot be part of a host name",
            ),
            (
                bedrock,
                "global.anthropic.claude",
                json!({}),
                vec![],
                "https://bedrock-runtime.us-east-1.amazonaws.com/model/global.anthropic.claude/converse-stream",
            ),
            (
                gemini,
                "gemini-3",
                json!({"project": "p 1"}),
                vec![],
                "https://us-central1-aiplatform.googleapis.com/v1beta1/projects/p%201/locations/us-central1/publishers/google/models/gemini-3:streamGenerateContent?alt=sse",
            ),
            (
                claude,
                "claude@1",
                json!({}),
                vec![("GOOGLE_CLOUD_PROJECT", "p")],
                "https://aiplatform.googleapis.com/v1/projects/p/locations/global/publishers/anthropic/models/claude@1:streamRawPredict",
            ),
            (
                gemini,
                "gemini-3",
                json!({}),
                vec![],
                "needs a project: `options.project`, or GOOGLE_VERTEX_PROJECT or GOOGLE_CLOUD_PROJECT",
            ),
        ] {
            let settings = settings(&options, &env);
            let mut model = ModelInfo::default();
            model.api.npm = npm.into();
            model.api.id = id.into();
            let got = url(cloud, adapter, &settings, &model, None);
            assert_eq!(got.map_or_else(|e| e, |u| u.unwrap()), want);
        }
        let all = settings(
            &json!({"region": "us-west-2", "resourceName": "r", "project": "p"}),
            &[],
        );
        for (template, want) in [
            (
                "https://${AZURE_RESOURCE_NAME}.services.ai.azure.com/models",
                "https://r.services.ai.azure.com/models",
            ),
            (
                "https://a.${AWS_REGION}.b/${GOOGLE_VERTEX_PROJECT}",
                "https://a.us-west-2.b/p",
            ),
            ("https://plain/v1", "https://plain/v1"),
            ("https://${HOME}/", "needs HOME, which is not set"),
        ] {
            assert_eq!(fill(template, &all).unwrap_or_else(|e| e), want);
        }
    }
}
