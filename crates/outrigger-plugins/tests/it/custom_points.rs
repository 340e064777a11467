//! Points and events that plugins declare (B8).

use std::fs;
use std::time::{Duration, Instant};

use outrigger_config::PluginSpec;
use outrigger_plugins::{PluginRules, Plugins};
use outrigger_protocol::manifest::MANIFEST_FILE;
use serde_json::{Value, json};

use crate::support::*;

/// Creates a plugin in a separate folder that declares points.
fn declaring(project: &Project, id: &str, manifest: &str, source: &str) -> PluginSpec {
    let dir = project.path("plugins").join(id.replace('/', "+"));
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("main.mjs"), source).unwrap();
    let head = format!(
        "id = \"{id}\"\nversion = \"1.0.0\"\nkind = \"capability\"\nentry = \"main.mjs\"\n"
    );
    fs::write(dir.join(MANIFEST_FILE), head + manifest).unwrap();
    fs::write(
        dir.join("package.json"),
        r#"{"type":"module","name":"x","main":"main.mjs"}"#,
    )
    .unwrap();
    project.spec(&format!("file://{}", dir.display()))
}

const BEFORE: &str = r#"
[[points]]
name = "acme/deploy.before"
description = "Before."
allows = ["patch", "block"]
input = { type = "object", properties = { target = { type = "string" } }, required = ["target"] }
output = { type = "object", properties = { steps = { type = "array", items = { type = "string" } } }, required = ["steps"], additionalProperties = false }
[[points]]
name = "acme/deploy.after"
description = "After."
[[events]]
name = "acme/deploy.done"
description = "Done."
schema = { type = "object", properties = { n = { type = "integer" } }, required = ["n"] }
"#;

/// Runs what a system transform's input names, and returns the results in its output.
const ACME: &str = r#"export default { id: "acme", server: async ({ outrigger, ...rest }) => ({
  "experimental.chat.system.transform": async (input, output) => {
    const told = (answer) => output.system.push(JSON.stringify(answer))
    for (const [what, ...args] of input.do) {
      await outrigger[what](...args).then(told, (error) => told({ code: error.code, message: error.message, refusal: error.refusal }))
    }
    output.system.push(Object.keys(rest).includes("outrigger") ? "listed" : "not listed")
  },
  "acme/deploy.after": async (input) => {
    if (input.again) await outrigger.call(input.again, { target: "x", again: input.again }, { steps: [] })
  },
})}"#;

async fn done(plugins: &Plugins, calls: Value) -> Vec<Value> {
    let result = run(
        plugins,
        "experimental.chat.system.transform",
        json!({ "do": calls }),
        json!({"system": []}),
    )
    .await;
    let texts = result.outputs[0]["system"].as_array().unwrap();
    texts
        .iter()
        // A notification has no answer.
        .filter_map(|text| serde_json::from_str(text.as_str()?).ok())
        .collect()
}

fn subscriber(name: &str, body: &str) -> String {
    format!(
        r#"export default async () => ({{ "acme/deploy.before": async (input, output) => {{ {body} }}, event: async () => {{}} }}) // {name}"#
    )
}

fn records(project: &Project) -> Vec<String> {
    let ran = project.handler.ran.lock().unwrap();
    let line = |record: &outrigger_protocol::hook::HookRecord| {
        let rule = record
            .audit
            .refused
            .map(|rule| format!(" {rule}"))
            .unwrap_or_default();
        format!(
            "{} {} {}{rule}",
            record.plugin, record.point, record.outcome
        )
    };
    ran.iter().map(line).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn others_subscribe_in_the_order_of_hooks() {
    let mut project = Project::new();
    project.rules(
        "late",
        PluginRules {
            priority: 5,
            ..PluginRules::default()
        },
    );
    let plugins = project
        .load(vec![
            project.plugin(
                "early",
                &subscriber("early", "output.steps.push(\"early\" + input.target)"),
            ),
            declaring(&project, "acme", BEFORE, ACME),
            project.plugin("late", &subscriber("late", "output.steps.push(\"late\")")),
            project.plugin("rude", &subscriber("rude", "output.steps = 7")),
            project.plugin("wrong", &subscriber("wrong", "output.steps.push(7)")),
            project.plugin("more", &subscriber("more", "output.extra = 1")),
        ])
        .await;
    let call = json!(["call", "acme/deploy.before", {"target": "x"}, {"steps": ["a"]}]);
    let answer = done(&plugins, json!([call])).await;
    assert_eq!(answer, [json!({"steps": ["a", "late", "earlyx"]})]);
    // An output that does not match the declared schema is refused and recorded; the others' changes stand.
    insta::assert_snapshot!(records(&project).join("\n"), @r"
    late acme/deploy.before ok
    early acme/deploy.before ok
    rude acme/deploy.before ok shape
    wrong acme/deploy.before ok shape
    more acme/deploy.before ok rights
    ");
    let (points, events) = plugins.points();
    let own = points
        .iter()
        .find(|row| row.name == "acme/deploy.before")
        .unwrap();
    assert_eq!(own.declared_by.as_deref(), Some("acme"));
    assert_eq!(own.allows, ["observe", "patch", "block"]);
    assert_eq!(own.subscribers, ["late", "early", "rude", "wrong", "more"]);
    assert_eq!(events[0].name, "acme/deploy.done");
    assert!(
        points
            .iter()
            .any(|row| row.name == "tool.before_call" && row.declared_by.is_none())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_throw_refuses_where_the_point_allows_it() {
    let project = Project::new();
    let plugins = project
        .load(vec![
            declaring(&project, "acme", BEFORE, ACME),
            project.plugin(
                "strict",
                &subscriber(
                    "strict",
                    "if (input.target === \"prod\") throw new Error(\"not on a Friday\");
                     if (input.target === \"box\") throw Object.assign(new Error(\"no\"), {name: \"HookBlock\", code: \"strict.box\", details: {rule: 7}});",
                ),
            ),
        ])
        .await;
    let call =
        |target: &str| json!(["call", "acme/deploy.before", {"target": target}, {"steps": []}]);
    let answers = done(&plugins, json!([call("prod"), call("box"), call("test")])).await;
    let threw = json!({"code": "hook.threw", "details": null});
    let refusal = json!({"code": "strict.box", "details": {"rule": 7}});
    assert_eq!(
        answers,
        [
            json!({"code": "point.refused", "message": "not on a Friday", "refusal": threw}),
            json!({"code": "point.refused", "message": "no", "refusal": refusal}),
            json!({"steps": []})
        ]
    );
}

/// The request, the code of the refusal, its message.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        r#"["call", "acme/deploy.never", {}, {}]"#,
        "custom_point.undeclared",
        "[[points]]",
    ),
    (
        r#"["call", "other/run.now", {}, {}]"#,
        "custom_point.undeclared",
        "",
    ),
    (
        r#"["call", "theirs/work.now", {}, {}]"#,
        "custom_point.owner",
        "theirs",
    ),
    (
        r#"["call", "tool.before_call", {}, {"args": {}}]"#,
        "custom_point.owner",
        "of the program",
    ),
    (
        r#"["call", "tool.execute.before", {}, {"args": {}}]"#,
        "custom_point.owner",
        "of the program",
    ),
    (
        r#"["call", "permission.ask", {}, {"status": "allow"}]"#,
        "custom_point.owner",
        "of the program",
    ),
    (
        r#"["call", "acme/deploy.before", {}, {"steps": []}]"#,
        "custom_point.schema",
        "its input",
    ),
    (
        r#"["call", "acme/deploy.before", {"target": 7}, {"steps": []}]"#,
        "custom_point.schema",
        "/target",
    ),
    (
        r#"["call", "acme/deploy.before", {"target": "x"}, {"steps": [7]}]"#,
        "custom_point.schema",
        "/steps/0",
    ),
    (
        r#"["call", "acme/deploy.done", {}, {}]"#,
        "custom_point.undeclared",
        "",
    ),
    (
        r#"["emit", "acme/deploy.never", {}]"#,
        "custom_point.undeclared",
        "[[events]]",
    ),
    (
        r#"["emit", "acme/deploy.before", {}]"#,
        "custom_point.undeclared",
        "",
    ),
    (
        r#"["emit", "theirs/work.done", {}]"#,
        "custom_point.owner",
        "theirs",
    ),
    (
        r#"["emit", "session.created", {}]"#,
        "custom_point.undeclared",
        "",
    ),
    (
        r#"["emit", "acme/deploy.done", {"n": "x"}]"#,
        "custom_point.schema",
        "/n",
    ),
    (
        r#"["emit", "acme/deploy.done", []]"#,
        "custom_point.schema",
        "object",
    ),
];

#[tokio::test(flavor = "multi_thread")]
async fn what_a_plugin_may_not_reach_is_refused_and_written_down() {
    let project = Project::new();
    let theirs = "[[points]]\nname = \"theirs/work.now\"\ndescription = \"x\"\n[[events]]\nname = \"theirs/work.done\"\ndescription = \"x\"\n";
    let plugins = project
        .load(vec![
            declaring(&project, "acme", BEFORE, ACME),
            declaring(&project, "theirs", theirs, &appender("theirs")),
        ])
        .await;
    let calls: Vec<Value> = REFUSED
        .iter()
        .map(|row| serde_json::from_str(row.0).unwrap())
        .collect();
    let answers = done(&plugins, json!(calls)).await;
    assert_eq!(answers.len(), REFUSED.len());
    for ((call, code, says), answer) in REFUSED.iter().zip(&answers) {
        assert_eq!(answer["code"], *code, "{call} {answer}");
        assert!(
            answer["message"].as_str().unwrap().contains(says),
            "{call} {answer}"
        );
    }
    let written = records(&project);
    assert_eq!(written.len(), REFUSED.len(), "{written:?}");
    assert!(
        written[0].ends_with("acme/deploy.never refused undeclared"),
        "{written:?}"
    );
    assert_eq!(project.handler.emitted.lock().unwrap().len(), 0);
    // A plugin without a manifest has no points to reach, whatever it requests.
    let bare = r#"export default async ({ outrigger }) => ({ "experimental.chat.system.transform": async (input, output) => {
      output.system.push(await outrigger.call("acme/deploy.after", {}, {}).catch((error) => error.code))
    }})"#;
    let project = Project::new();
    let plugins = project.load(vec![project.plugin("bare", bare)]).await;
    assert_eq!(
        summary(&system(&plugins).await),
        "custom_point.undeclared | bare ok"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_point_that_comes_back_to_itself_is_refused_with_the_way() {
    let project = Project::new();
    let other = "[[points]]\nname = \"other/work.now\"\ndescription = \"x\"\n";
    // acme's point calls itself; or other's handler there reaches other's point, whose handler in acme reaches acme's.
    let back = r#"export default { id: "other", server: async ({ outrigger }) => ({
      "acme/deploy.before": async (input, output) => {
        await Promise.resolve()
        try { await outrigger.call("other/work.now", { back: true }, {}) } catch (error) { output.steps.push(error.message) }
      },
    })}"#;
    let acme = ACME.replace(
        "\"acme/deploy.after\"",
        r#""other/work.now": async (input) => {
          await new Promise((resolve) => setTimeout(resolve, 5))
          await outrigger.call("acme/deploy.before", { target: "again" }, { steps: [] })
        },
        "acme/deploy.after""#,
    );
    let plugins = project
        .load(vec![
            declaring(&project, "acme", BEFORE, &acme),
            declaring(&project, "other", other, back),
        ])
        .await;
    let calls = json!([
        ["call", "acme/deploy.before", {"target": "x"}, {"steps": []}],
        ["call", "acme/deploy.after", {"again": "acme/deploy.after"}, {}],
    ]);
    let answers = done(&plugins, calls).await;
    // The refused handler threw; if a throw refuses nothing, that is just recorded.
    assert_eq!(answers, [json!({"steps": []}), json!({})]);
    let ran = project.handler.ran.lock().unwrap();
    let cycles: Vec<&str> = ran
        .iter()
        .filter(|record| record.audit.refused == Some("cycle"))
        .map(|record| record.message.as_deref().unwrap())
        .collect();
    assert_eq!(
        cycles,
        [
            "it calls itself: acme/deploy.before -> other/work.now -> acme/deploy.before",
            "it calls itself: acme/deploy.after -> acme/deploy.after",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn events_go_out_as_declared_and_no_faster_than_allowed() {
    let project = Project::new();
    let plugins = project
        .load(vec![declaring(&project, "acme", BEFORE, ACME)])
        .await;
    let mut calls = vec![json!(["emit", "acme/deploy.done", {"n": 0, "pad": "x".repeat(70_000)}])];
    calls.extend((0..400).map(|n| json!(["emit", "acme/deploy.done", {"n": n}])));
    let began = Instant::now();
    let answers = done(&plugins, json!(calls)).await;
    // 50 within any second: a machine that is busy for longer lets more of them through.
    let seconds = usize::try_from(began.elapsed().as_secs()).unwrap() + 2;
    let codes: Vec<&str> = answers
        .iter()
        .filter_map(|answer| answer["code"].as_str())
        .collect();
    assert_eq!(codes[0], "custom_point.size");
    assert!(codes[1..].iter().all(|code| *code == "custom_point.rate"));
    let emitted = project.handler.emitted.lock().unwrap().len();
    assert_eq!(emitted + codes.len(), 401);
    assert!(
        (50..=50 * seconds).contains(&emitted),
        "{emitted} in {seconds} s"
    );
}

/// A loop of refusals would fill log and audit and displace the records of others.
#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_listed_so_many_times_a_minute_and_counted() {
    let project = Project::new();
    let source = r#"export default { id: "acme", server: async ({ outrigger }) => ({
      "experimental.chat.system.transform": async (input, output) => {
        const codes = []
        for (let n = 0; n < 500; n++) await outrigger.emit("acme/nothing" + n, {}).catch((error) => codes.push(error.code))
        output.system.push(codes.filter((code) => code === "custom_point.undeclared").length + "")
      },
    })}"#;
    let plugins = project
        .load(vec![declaring(&project, "acme", BEFORE, source)])
        .await;
    assert_eq!(summary(&system(&plugins).await), "500 | acme ok");
    assert_eq!(records(&project).len(), 30);
    plugins.dispose(Duration::from_secs(2)).await;
    let limits = || -> Vec<String> {
        let notices = project.notices.lock().unwrap();
        notices
            .iter()
            .filter_map(|notice| match notice {
                outrigger_plugins::Notice::Limit { plugins, cause } => {
                    Some(format!("{}: {cause}", plugins.join(" ")))
                }
                _ => None,
            })
            .collect()
    };
    drop(plugins);
    wait_for("the rest is reported", || limits().len() == 2).await;
    insta::assert_snapshot!(limits().join("\n"), @r"
    acme: more than 30 of its calls and events were refused within a minute, the last because no event acme/nothing30 is declared: it belongs under [[events]] in outrigger.plugin.toml; more are counted and not listed
    acme: 470 refused calls and events of it are not listed
    ");
}

/// Nested calls, concurrent calls, a call that is too large, and more calls within a minute than are listed.
#[tokio::test(flavor = "multi_thread")]
async fn calls_are_bounded_in_depth_number_and_size() {
    let project = Project::new();
    let source = r#"export default { id: "acme", server: async ({ outrigger }) => {
      const refused = []
      const call = (name, input) => outrigger.call("acme/deep." + name, input, {}).catch((error) => refused.push(name + " " + error.code))
      const hooks = { "experimental.chat.system.transform": async (input, output) => {
        await call("p0", {})
        await Promise.all(Array.from({ length: 40 }, () => call("waits", { ms: 300 })))
        await call("waits", { pad: "x".repeat(1024 * 1024) })
        for (let n = 0; n < 400; n++) await call("quick", {})
        output.system.push(refused.join(", "))
      } }
      for (let n = 0; n < 9; n++) hooks["acme/deep.p" + n] = () => call("p" + (n + 1), {})
      hooks["acme/deep.waits"] = ({ ms }) => new Promise((resolve) => setTimeout(resolve, ms ?? 0))
      hooks["acme/deep.quick"] = async () => {}
      return hooks
    } }"#;
    let names = (0..10)
        .map(|n| format!("p{n}"))
        .chain(["waits".to_owned(), "quick".to_owned()]);
    let points: String = names
        .map(|name| format!("[[points]]\nname = \"acme/deep.{name}\"\ndescription = \"x\"\n"))
        .collect();
    let plugins = project
        .load(vec![declaring(&project, "acme", &points, source)])
        .await;
    let at_once = ["waits custom_point.rate"; 40 - 32].join(", ");
    assert_eq!(
        summary(&system(&plugins).await),
        format!("p8 custom_point.depth, {at_once}, waits custom_point.size | acme ok")
    );
    let written = records(&project);
    let ran = written.iter().filter(|it| it.ends_with(" ok")).count();
    assert_eq!(ran, 300, "of 8 + 32 + 400");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_that_hangs_costs_itself_and_not_the_caller() {
    let mut project = Project::new();
    project.hook_deadline("stuck", HANGS);
    let plugins = project
        .load(vec![
            declaring(&project, "acme", BEFORE, ACME),
            project.plugin("stuck", &subscriber("stuck", "await new Promise(() => {})")),
            project.plugin("fine", &subscriber("fine", "output.steps.push(\"fine\")")),
        ])
        .await;
    let call = json!(["call", "acme/deploy.before", {"target": "x"}, {"steps": []}]);
    let answers = done(&plugins, json!([call])).await;
    assert_eq!(answers.len(), 1, "{answers:?}");
    let written = records(&project).join("\n");
    assert!(
        written.contains("stuck acme/deploy.before timeout"),
        "{written}"
    );
    let acme = status(&plugins, "acme");
    assert_eq!(acme.generation, 1, "its process was not restarted");
    plugins.dispose(Duration::from_secs(2)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_declares_what_it_may_not_is_refused() {
    for (declared, says) in [
        (
            "[[points]]\nname = \"other/x.y\"\ndescription = \"x\"",
            "5:3: `points`: \"other/x.y\" is not in the plugin's namespace",
        ),
        (
            "[[points]]\nname = \"acme/tool.before\"\ndescription = \"x\"",
            "reserved domain",
        ),
        (
            "[[events]]\nname = \"session.created\"\ndescription = \"x\"",
            "`events`",
        ),
        (
            "[[points]]\nname = \"acme/x.y\"\ndescription = \"x\"\noutput = { type = \"objekt\" }",
            "type = ",
        ),
        (
            "[[points]]\nname = \"acme/x.y\"\ndescription = \"x\"\ninput = { type = \"objekt\" }",
            "invalid schema of \"acme/x.y\"",
        ),
        (
            "[[points]]\nname = \"acme/x.y\"\ndescription = \"x\"\noutput = { type = \"object\", required = [\"steps\"] }\nexamples = [{ output = { steps = 1 } }, { output = {} }]",
            "5:3: `points`: example 2 of \"acme/x.y\": its output: it does not fit the schema: \"steps\" is a required property",
        ),
        (
            "[[events]]\nname = \"acme/x.y\"\ndescription = \"x\"\nschema = { type = \"object\", required = [\"n\"] }\nexamples = [{ properties = {} }]",
            "`events`: example 1 of \"acme/x.y\": it does not fit the schema",
        ),
        (
            "[[points]]\nname = \"acme/x.y\"\ndescription = \"x\"\nmore = 1",
            "unknown setting `more`",
        ),
    ] {
        let project = Project::new();
        let plugins = project
            .load(vec![declaring(&project, "acme", declared, ACME)])
            .await;
        let cause = plugins.list()[0].cause.clone().unwrap();
        assert_eq!(cause.code, "plugin.own_manifest");
        assert!(cause.message.contains(says), "{says}: {}", cause.message);
    }
}

/// A missing guard at a custom point refuses (C5).
#[tokio::test(flavor = "multi_thread")]
async fn a_guard_of_a_point_that_is_not_there_refuses() {
    for (fail_closed, code) in [(true, json!("point.refused")), (false, Value::Null)] {
        let mut project = Project::new();
        if fail_closed {
            let rules = PluginRules {
                fail_closed: vec!["acme/deploy.before".into()],
                ..PluginRules::default()
            };
            project.rules("rules", rules);
        }
        let specs = vec![
            declaring(&project, "acme", BEFORE, ACME),
            project.plugin("rules", "this is nothing"),
        ];
        let plugins = project.load(specs).await;
        let call = json!(["call", "acme/deploy.before", { "target": "x" }, { "steps": [] }]);
        let answers = done(&plugins, json!([call])).await;
        assert_eq!(answers[0]["code"], code, "{answers:?}");
    }
}

/// A custom point can be refused only as it allows, whatever a subscriber or the user sets for a handler there.
#[tokio::test(flavor = "multi_thread")]
async fn nobody_refuses_at_a_point_that_allows_no_refusal() {
    const THROWS: &str = "export default async () => ({ 'acme/deploy.before': async () => { throw Object.assign(new Error('no'), NAME) } })";
    let policy = "[hook_policy]\nallowed_hooks = [\"acme/deploy.before\"]\nfail_closed = [\"acme/deploy.before\"]\n";
    let patch = BEFORE.replace("allows = [\"patch\", \"block\"]", "allows = [\"patch\"]");
    for (points, refused) in [(BEFORE, true), (patch.as_str(), false)] {
        for name in ["{}", "{ name: 'HookBlock', code: 'rules.no' }"] {
            for by_user in [true, false] {
                let mut project = Project::new();
                let rules = PluginRules {
                    fail_closed: vec!["acme/deploy.before".into()],
                    ..PluginRules::default()
                };
                let source = THROWS.replace("NAME", name);
                let subscriber = if by_user {
                    project.rules("rules", rules);
                    project.plugin("rules", &source)
                } else {
                    declaring(&project, "rules", policy, &source)
                };
                let specs = vec![declaring(&project, "acme", points, ACME), subscriber];
                let plugins = project.load(specs).await;
                let call =
                    json!(["call", "acme/deploy.before", { "target": "x" }, { "steps": [] }]);
                let answers = done(&plugins, json!([call])).await;
                let about = format!("{refused} {name} {by_user}: {answers:?}");
                let code = answers[0]["code"].as_str();
                assert_eq!(code == Some("point.refused"), refused, "{about}");
                let warnings = status(&plugins, "rules").warnings.join("\n");
                let problem = "fail_closed names acme/deploy.before, where nothing can be refused";
                assert_eq!(warnings.contains(problem), !refused, "{about} {warnings}");
            }
        }
    }
}
