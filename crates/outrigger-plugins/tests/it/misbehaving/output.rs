//! Attribution of printed lines in a shared process (A9).

use std::time::Duration;

use serde_json::json;

use super::log::Captured;
use crate::support::*;

const NOISY: &str = r#"console.error("imported by noisy")
export default async () => {
  console.warn("started by noisy")
  return { "chat.params": async () => {
    for (let n = 0; n < 500; n++) { console.log("noise " + n); if (n % 50 === 0) await null }
  } }
}"#;

const QUIET: &str = r#"export default async () => ({ "chat.params": async () => {
  await new Promise((done) => setTimeout(done, 5))
  process.stderr.write("half a line, ")
  process.stderr.write("said by quiet\nand another\n")
  setTimeout(() => console.log("later by quiet"), 1)
  await new Promise((done) => setTimeout(done, 20))
} })"#;

#[test]
fn is_said_and_a_noisy_plugin_takes_nothing_of_its_neighbours_rate() {
    let captured = Captured::default();
    captured.run(async {
        let project = Project::new();
        let specs = vec![
            project.plugin("noisy", NOISY),
            project.plugin("quiet", QUIET),
        ];
        let plugins = project.load(specs).await;
        let output = json!({"options": {}});
        run(&plugins, "llm.before_params", json!({}), output).await;
        plugins.dispose(Duration::from_secs(5)).await;
    });
    let lines = captured.lines();
    let has = |line: &str| lines.iter().any(|it| it == line);
    for line in [
        "[plugin:noisy] started by noisy",
        "[plugin:noisy] noise 0",
        "[plugin:quiet] half a line, said by quiet",
        "[plugin:quiet] and another",
        "[plugin:quiet] later by quiet",
    ] {
        assert!(has(line), "{line}: {lines:#?}");
    }
    let dropped = |name: &str| {
        let prefix = format!("[plugin:{name}] (");
        lines.iter().any(|it| it.starts_with(&prefix))
    };
    assert_eq!((dropped("noisy"), dropped("quiet")), (true, false));
}
