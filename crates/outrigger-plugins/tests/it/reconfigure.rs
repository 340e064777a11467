//! A restarted process calls its plugins' `config` hooks with the input of the first time. Their changes are compared and
//! not applied.

use outrigger_plugins::Stage;
use serde_json::json;

use crate::support::*;

/// A plugin that is of no use before its `config` hook has run.
fn needy(config: &str) -> String {
    format!(
        r#"import fs from "node:fs"
        export default async ({{ directory }}) => {{
          let model
          return {{
            config: async (config) => {{ model = config.model; {config} }},
            "experimental.chat.system.transform": async (input, output) => {{
              if (input.fault) return new Promise(() => {{}})
              output.system.push(`needy ${{model}}`)
            }},
          }}
        }}"#
    )
}

/// The first call after a restart, and the plugin then; `until` is the stage that it comes to.
async fn restarted(config: &str, until: Stage) -> (String, Vec<String>) {
    let mut project = Project::new();
    project.hook_deadline("needy", HANGS);
    if until != Stage::Active {
        project.settings.deadlines.load = HANGS;
    }
    let specs = vec![
        project.plugin(
            "first",
            "export default async () => ({ config: async (config) => { config.model = 'a/b' } })",
        ),
        project.plugin("needy", &needy(config)),
    ];
    let plugins = project.load(specs).await;
    let (configured, _) = plugins.configure(json!({"model": "x/y"})).await;
    assert_eq!(configured["model"], "a/b");
    let fault = json!({"fault": true});
    run(&plugins, "llm.before_system", fault, json!({"system": []})).await;
    let next = summary(&system(&plugins).await);
    wait_for("the stage", || status(&plugins, "needy").stage == until).await;
    (next, status(&plugins, "needy").warnings)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_config_hook_is_called_again_and_compared() {
    // As the plugins before it had left the configuration, not as it was at the very start.
    let (next, warnings) =
        restarted("config.agent = { mine: { prompt: 'p' } }", Stage::Active).await;
    assert!(next.contains("needy a/b"), "{next}");
    assert!(warnings.is_empty(), "{warnings:?}");

    let different = "config.started = Math.random(); config.same = 1";
    let (next, warnings) = restarted(different, Stage::Active).await;
    assert!(next.contains("needy a/b"), "{next}");
    assert_eq!(
        warnings,
        [
            "its `config` hook changed something else when its process was started again (/started); the configuration stays as it was"
        ]
    );

    let once = "const file = directory + '/once'; if (fs.existsSync(file)) throw new Error('only once'); fs.writeFileSync(file, '')";
    let (next, warnings) = restarted(once, Stage::Active).await;
    assert!(next.contains("needy a/b"), "{next}");
    assert_eq!(
        warnings,
        [
            "its `config` hook failed when its process was started again: only once; the configuration stays as it was"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_hangs_in_it_the_second_time_is_left_out_with_its_cause() {
    let hangs = "const file = directory + '/once'; if (fs.existsSync(file)) await new Promise(() => {}); fs.writeFileSync(file, '')";
    let (next, _) = restarted(hangs, Stage::Failed).await;
    assert_eq!(next, " | needy skipped");
}
