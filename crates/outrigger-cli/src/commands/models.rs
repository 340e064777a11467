//! `outrigger models`.

use outrigger_agent::Agent;
use serde_json::Value;

use crate::args::{Global, ModelsArgs};
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{err, one_line, out};

/// Prints the models of the usable providers, one `provider/model` per line, by name.
pub(crate) async fn models(global: &Global, args: ModelsArgs) -> Result<u8, Failure> {
    let agent = Agent::boot(crate::boot::boot(global, &Line::new())?).await?;
    agent.providers_ready().await;
    let refreshed = if args.refresh {
        agent.models().refresh_catalog().await
    } else {
        Ok(())
    };
    let source = agent.models().catalog_source();
    let mut providers = agent.models().providers();
    agent.shutdown().await;
    refreshed.map_err(|error| Failure::of(&error))?;
    if args.refresh {
        err(&one_line(format_args!("the catalog is {source}")));
    }
    providers.sort_by(|a, b| a.id.cmp(&b.id));
    if let Some(wanted) = &args.provider {
        providers.retain(|provider| provider.id == *wanted);
        if providers.is_empty() {
            return Err(Failure::new(
                "model.unknown_provider",
                format!("provider `{wanted}` cannot be used here"),
                Some("`outrigger models` lists all; `outrigger auth login` stores a key".into()),
            ));
        }
    }
    let mut text = String::new();
    for provider in &providers {
        let mut models: Vec<(&String, &Value)> = provider.models.iter().collect();
        models.sort_by(|a, b| a.0.cmp(b.0));
        for (id, model) in models {
            text.push_str(&one_line(format_args!("{}/{id}", provider.id)));
            if args.verbose {
                text.push_str(&serde_json::to_string_pretty(model).unwrap_or_default());
                text.push('\n');
            }
        }
    }
    if text.is_empty() {
        err(
            "no provider has a key, so there are no models to list: `outrigger auth login` stores one; or set the provider's variable, for example \
             ANTHROPIC_API_KEY, or describe a provider under `provider` in opencode.json\n",
        );
    }
    out(&text);
    Ok(0)
}
