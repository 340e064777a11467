//! The lifecycle of plugins (C7): a suspended plugin stays suspended, and a reload uses the current files.

use outrigger_plugin_supervisor::launch::short_digest;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use outrigger_config::PluginSpec;
use outrigger_config::settings::TrustChanges;
use outrigger_plugins::{Begun, Notice, PluginError, Plugins, Stage};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_protocol::manifest::MANIFEST_FILE;
use outrigger_test_support::process::alive;
use serde_json::json;

use crate::support::*;

fn project() -> Project {
    let mut project = Project::new();
    project.settings.trust.changes = TrustChanges::Allow;
    project
}

/// Kills a plugin's process, and waits until the host knows: a call that was on its way would be lost with it.
async fn kill(plugins: &Plugins, id: &str) {
    let killed = status(plugins, id).pid.unwrap();
    let pid = rustix::process::Pid::from_raw(i32::try_from(killed).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    let is_known = || status(plugins, id).pid != Some(killed);
    wait_for("the end of the process", is_known).await;
}

async fn heard(plugins: &Plugins) -> String {
    summary(&system(plugins).await)
}

/// A plugin in a folder, with a manifest.
fn folder(project: &Project, id: &str, more: &str, files: &[(&str, &str)]) -> PluginSpec {
    let dir = project.path("plugins").join(id);
    fs::create_dir_all(&dir).unwrap();
    manifest(&dir, id, more);
    fs::write(dir.join("main.mjs"), appender(id)).unwrap();
    for (name, text) in files {
        fs::write(dir.join(name), text).unwrap();
    }
    project.spec(&format!("file://{}", dir.display()))
}

fn manifest(dir: &Path, id: &str, more: &str) {
    let head = format!("id = \"{id}\"\nversion = \"1.0.0\"\nkind = \"capability\"\n");
    let text = format!("{head}entry = \"main.mjs\"\n{more}");
    fs::write(dir.join(MANIFEST_FILE), text).unwrap();
}

/// Two in one process: whatever starts that anew, the suspended one is called no more, at no moment.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_suspended_stays_suspended() {
    let project = project();
    let specs = vec![
        project.plugin("a", &appender("a")),
        project.plugin("b", &appender("b")),
    ];
    let plugins = project.load(specs).await;
    assert_eq!(status(&plugins, "a").pid, status(&plugins, "b").pid);
    plugins.suspend("b").await.unwrap();
    assert_eq!(heard(&plugins).await, "a1 | a ok");
    let generation = plugins.reload("a").await.unwrap();
    assert_eq!(status(&plugins, "b").stage, Stage::Suspended);
    assert_eq!(heard(&plugins).await, "a1 | a ok");
    kill(&plugins, "a").await;
    for _ in 0..3 {
        let now = heard(&plugins).await;
        assert!(!now.contains('b'), "{now}");
    }
    wait_for("the restart", || {
        let a = status(&plugins, "a");
        a.generation > generation && a.stage == Stage::Active
    })
    .await;
    assert_eq!(status(&plugins, "b").stage, Stage::Suspended);
    let stages = project.stages("b");
    assert!(stages.ends_with("active suspended"), "{stages}");
    plugins.resume("b").await.unwrap();
    let now = heard(&plugins).await;
    assert!(now.ends_with("a ok, b ok"), "{now}");
}

/// Both of a shared process changed, so one cannot come without the other.
#[tokio::test(flavor = "multi_thread")]
async fn all_that_changed_in_a_shared_process_is_exchanged() {
    let mut project = project();
    let specs = |project: &Project, one: &str, two: &str| {
        vec![
            project.plugin("a", &appender(one)),
            project.plugin("b", &appender(two)),
        ]
    };
    let first = specs(&project, "a", "b");
    let plugins = project.load(first).await;
    specs(&project, "A", "B");
    plugins.reload("a").await.unwrap();
    assert_eq!(heard(&plugins).await, "A1 B1 | a ok, b ok");
    // One that cannot be loaded is named, and both go on.
    specs(&project, "AA", "BB");
    fs::write(project.path("plugins/b.mjs"), "this is nothing").unwrap();
    let error = plugins.reload("a").await.unwrap_err().to_string();
    assert!(error.contains('b'), "{error}");
    assert_eq!(heard(&plugins).await, "A2 B2 | a ok, b ok");
    // Nor one that nobody looked at.
    project = Project::new();
    let first = specs(&project, "a", "b");
    let plugins = project.load(first).await;
    specs(&project, "A", "B");
    assert_eq!(
        plugins.reload("a").await.unwrap_err().code(),
        "plugin.changed"
    );
    assert_eq!(heard(&plugins).await, "a1 b1 | a ok, b ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_failed_is_started_when_it_was_mended() {
    let project = project();
    let specs = vec![
        project.plugin("a", "this is nothing"),
        project.plugin("b", &appender("b")),
    ];
    let plugins = project.load(specs).await;
    assert_eq!(status(&plugins, "a").stage, Stage::Failed);
    let error = plugins.reload("a").await.unwrap_err();
    assert_eq!(error.code(), "plugin.life_cycle");
    assert_eq!(status(&plugins, "a").stage, Stage::Failed);
    project.plugin("a", &appender("a"));
    plugins.reload("a").await.unwrap();
    assert_eq!(heard(&plugins).await, "a1 b1 | a ok, b ok");
    assert!(status(&plugins, "a").cause.is_none());
    // Alone, too, when nothing was ever started here.
    let spec = folder(&project, "c", "nonsense = 1\n", &[]);
    let plugins = project.load(vec![spec]).await;
    assert!(plugins.reload("c").await.is_err());
    manifest(&project.path("plugins/c"), "c", "");
    plugins.reload("c").await.unwrap();
    assert_eq!(heard(&plugins).await, "c1 | c ok");
}

/// The layers of the snapshot, and what it needs, are asked again; the old one runs on.
#[tokio::test(flavor = "multi_thread")]
async fn a_generation_that_is_not_admitted_does_not_take_over() {
    let mut project = project();
    let allowed = project.path("allowed");
    fs::write(&allowed, "").unwrap();
    let asked: PathBuf = allowed.clone();
    project.admits = Some(Arc::new(move |plugin| {
        if asked.exists() {
            Ok(())
        } else {
            Err(PluginError::NotAdmitted {
                id: plugin.spec.clone(),
                reason: "Denied".into(),
                why: "not any more".into(),
                remedy: String::new(),
            })
        }
    }));
    let a = folder(&project, "a", "", &[]);
    let b = folder(&project, "b", "", &[]);
    let plugins = project.load(vec![a, b]).await;
    let dir = project.path("plugins/a");
    manifest(&dir, "a", "depends_on = [\"nobody\"]\n");
    let error = plugins.reload("a").await.unwrap_err();
    assert_eq!(error.code(), "plugin.depends_on");
    manifest(&dir, "a", "depends_on = [\"b\"]\n");
    plugins.reload("a").await.unwrap();
    // What others need is not suspended, and nothing is resumed without what it needs.
    let error = plugins.suspend("b").await.unwrap_err().to_string();
    assert!(error.contains("a need it"), "{error}");
    plugins.suspend("a").await.unwrap();
    plugins.suspend("b").await.unwrap();
    let error = plugins.resume("a").await.unwrap_err();
    assert_eq!(error.code(), "plugin.depends_on");
    plugins.resume("b").await.unwrap();
    plugins.resume("a").await.unwrap();
    fs::remove_file(&allowed).unwrap();
    let error = plugins.reload("a").await.unwrap_err();
    assert_eq!(error.code(), "plugin.not_admitted");
    assert_eq!(heard(&plugins).await, "a1 b1 | a ok, b ok");
}

/// In the order of the configuration the one that is needed would be first, and is refused then.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_suspended_can_be_again_in_the_order_that_is_reported() {
    let project = project();
    let b = folder(&project, "b", "", &[]);
    let a = folder(&project, "a", "", &[]);
    manifest(&project.path("plugins/a"), "a", "depends_on = [\"b\"]\n");
    let plugins = project.load(vec![b, a]).await;
    plugins.suspend("a").await.unwrap();
    plugins.suspend("b").await.unwrap();
    let order = plugins.suspended();
    assert_eq!(order, ["a", "b"]);
    plugins.resume("b").await.unwrap();
    plugins.resume("a").await.unwrap();
    for id in order {
        plugins.suspend(&id).await.unwrap();
    }
}

const INNER: &str = r#"
export default { id: "x", server: async () => ({ tool: {
  one: { description: "1", args: {}, execute: async () => "1" },
  two: { description: "2", args: {}, execute: async () => "2" },
} }) }
"#;

fn hosting(tools: &str, subs: &[&str]) -> String {
    let subs = subs.iter().map(|id| {
        format!(
            "[[subplugins]]\nid = \"{id}\"\nentry = \"inner.mjs\"\ntools = [\"one\", \"two\"]\n"
        )
    });
    format!(
        "[provides]\ntools = [{tools}]\n{}",
        subs.collect::<String>()
    )
}

/// What it hosts is held to its manifest of now (C8), and ends with it.
#[tokio::test(flavor = "multi_thread")]
async fn hosted_plugins_follow_the_manifest_of_their_host() {
    let project = project();
    let both = hosting("\"one\", \"two\"", &["in", "out"]);
    let spec = folder(&project, "acme", &both, &[("inner.mjs", INNER)]);
    let plugins = project.load(vec![spec]).await;
    assert_eq!(status(&plugins, "acme>in").tools, ["one", "two"]);
    let out = status(&plugins, "acme>out").pid.unwrap();
    manifest(
        &project.path("plugins/acme"),
        "acme",
        &hosting("\"one\"", &["in", "new"]),
    );
    plugins.reload("acme").await.unwrap();
    assert_eq!(status(&plugins, "acme>in").tools, ["one"]);
    assert_eq!(status(&plugins, "acme>new").tools, ["one"]);
    let gone = status(&plugins, "acme>out");
    assert_eq!((gone.stage, gone.tools.len()), (Stage::Off, 0));
    wait_for("the end of its process", || !alive(out)).await;
    let names: Vec<String> = plugins.tools().into_iter().map(|it| it.spec.name).collect();
    assert_eq!(names, ["one", "one"]);
    let error = plugins.reload("acme>in").await.unwrap_err().to_string();
    assert!(error.contains("with its host, acme"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hosted_process_ends_when_its_host_is_off() {
    let mut project = project();
    project.settings.restarts.most = 0;
    let spec = folder(
        &project,
        "acme",
        &hosting("\"one\"", &["in"]),
        &[("inner.mjs", INNER)],
    );
    let plugins = project.load(vec![spec]).await;
    let hosted = status(&plugins, "acme>in").pid.unwrap();
    kill(&plugins, "acme").await;
    system(&plugins).await;
    wait_for("off", || status(&plugins, "acme>in").stage == Stage::Off).await;
    wait_for("the end of its process", || !alive(hosted)).await;
}

/// A new `config` hook is called with the current configuration; what it changes is not applied, and that is reported.
#[tokio::test(flavor = "multi_thread")]
async fn a_new_config_hook_is_called() {
    let project = project();
    let spec = project.plugin("a", &appender("a"));
    let plugins = project.load(vec![spec]).await;
    plugins.configure(json!({"model": "x/y"})).await;
    project.plugin(
        "a",
        r#"export default async () => {
          let model
          return {
            config: async (config) => { model = config.model; config.extra = 1 },
            "experimental.chat.system.transform": async (input, output) => { output.system.push(model) },
          }
        }"#,
    );
    plugins.reload("a").await.unwrap();
    assert_eq!(heard(&plugins).await, "x/y | a ok");
    let warnings = status(&plugins, "a").warnings.concat();
    assert!(warnings.contains("/extra"), "{warnings}");
    // It is called again when its process is started again.
    kill(&plugins, "a").await;
    assert_eq!(heard(&plugins).await, "x/y | a ok");
}

/// Hooks only (C6): what else a plugin of that kind brings is skipped, and that is reported.
#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_of_hooks_brings_nothing_else() {
    let project = project();
    let spec = folder(&project, "acme", "", &[]);
    let dir = project.path("plugins/acme");
    let text = fs::read_to_string(dir.join(MANIFEST_FILE)).unwrap();
    fs::write(dir.join(MANIFEST_FILE), text.replace("capability", "hook")).unwrap();
    fs::write(
        dir.join("main.mjs"),
        r#"export default { id: "x", server: async () => ({
          "experimental.chat.system.transform": async (input, output) => { output.system.push("acme") },
          auth: { provider: "openai", methods: [] },
          provider: { id: "openai", models: async () => ({}) },
          tool: { one: { description: "1", args: {}, execute: async () => "1" } },
        }) }"#,
    )
    .unwrap();
    let plugins = project.load(vec![spec]).await;
    assert_eq!(heard(&plugins).await, "acme | acme ok");
    assert!(plugins.tools().is_empty() && plugins.auth_hooks().is_empty());
    let warnings = status(&plugins, "acme").warnings.concat();
    for says in [
        "the tool one is not registered",
        "its `auth` and `provider` are skipped",
    ] {
        assert!(warnings.contains(says), "{warnings}");
    }
}

/// A hosted plugin is called where its host stands, not behind all others; and a point of a plugin can refuse, too.
#[tokio::test(flavor = "multi_thread")]
async fn a_hosted_plugin_is_called_behind_its_host() {
    let project = project();
    let hosts = "[[subplugins]]\nid = \"in\"\nentry = \"inner.mjs\"\nhooks = [\"experimental.chat.system.transform\"]\n";
    let specs = vec![
        folder(&project, "first", hosts, &[("inner.mjs", &appender("in"))]),
        folder(&project, "second", "", &[]),
    ];
    let plugins = project.load(specs).await;
    assert_eq!(
        heard(&plugins).await,
        "first1 in1 second1 | first ok, first>in ok, second ok"
    );
}

/// Every state that a plugin comes to is reported, once.
#[tokio::test(flavor = "multi_thread")]
async fn states_are_reported() {
    let mut project = project();
    project.rules(
        "off",
        outrigger_plugins::PluginRules {
            disabled: true,
            ..Default::default()
        },
    );
    let specs = vec![
        project.plugin("a", &appender("a")),
        project.plugin("bad", "this is nothing"),
        project.plugin("off", &appender("off")),
    ];
    let plugins = project.load(specs).await;
    let states = |id: &str| -> String {
        let notices = project.notices.lock().unwrap();
        notices
            .iter()
            .filter_map(|it| match it {
                Notice::State { plugin, action, .. } if plugin == id => Some(action.as_str()),
                _ => None,
            })
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(states("a"), "register activate");
    assert_eq!(states("bad"), "register fail");
    assert_eq!(states("off"), "register deactivate");
    kill(&plugins, "a").await;
    heard(&plugins).await;
    assert_eq!(states("a"), "register activate", "a restart is none");
    plugins.suspend("a").await.unwrap();
    plugins.resume("a").await.unwrap();
    project.plugin("bad", &appender("bad"));
    plugins.reload("bad").await.unwrap();
    assert_eq!(states("a"), "register activate suspend resume");
    assert_eq!(states("bad"), "register fail activate reload");
}

/// A plugin that waits in its hook while there is a file `wait`.
fn waiting(name: &str) -> String {
    format!(
        r#"import fs from "node:fs"
        export default async ({{ directory }}) => ({{
          "experimental.chat.system.transform": async (input, output) => {{
            output.system.push("{name}")
            fs.writeFileSync(directory + "/begun", "")
            while (fs.existsSync(directory + "/wait")) await new Promise((done) => setTimeout(done, 20))
          }},
        }})"#
    )
}

/// One that asks for a process of its own now is moved there, beside those that it shared one with; the call that runs ends where
/// it began.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_needs_a_process_of_its_own_now_is_moved() {
    let mut project = project();
    project.settings.deadlines.normal = Duration::from_secs(30);
    let dir = project.path("plugins/a");
    fs::create_dir_all(&dir).unwrap();
    let package = r#"{"name":"a","type":"module","main":"main.mjs"}"#;
    fs::write(dir.join("package.json"), package).unwrap();
    fs::write(dir.join("main.mjs"), appender("a")).unwrap();
    let specs = vec![
        project.spec(&format!("file://{}", dir.display())),
        project.plugin("b", &waiting("b")),
        project.plugin("c", &appender("c")),
    ];
    let plugins = project.load(specs).await;
    let pid = |plugins: &Plugins, id: &str| status(plugins, id).pid.unwrap();
    let shared = pid(&plugins, "b");
    assert_eq!((pid(&plugins, "a"), pid(&plugins, "c")), (shared, shared));
    let wait = project.path("project/wait");
    fs::write(&wait, "").unwrap();
    let running = plugins.clone();
    let running = tokio::spawn(async move { heard(&running).await });
    wait_for("the hook", || project.path("project/begun").exists()).await;
    manifest(&dir, "a", "");
    fs::write(dir.join("main.mjs"), appender("A")).unwrap();
    assert_eq!(plugins.reload("a").await.unwrap(), 2);
    let (own, rest) = (pid(&plugins, "a"), pid(&plugins, "b"));
    assert!(own != shared && rest != shared && own != rest);
    assert_eq!(pid(&plugins, "c"), rest);
    assert!(alive(shared), "a call is still in it");
    fs::remove_file(&wait).unwrap();
    assert_eq!(running.await.unwrap(), "a1 b c1 | a ok, b ok, c ok");
    wait_for("the end of the old one", || !alive(shared)).await;
    assert_eq!(heard(&plugins).await, "A1 b c1 | a ok, b ok, c ok");
    // What comes later is each for itself.
    plugins.reload("a").await.unwrap();
    assert_eq!(pid(&plugins, "b"), rest);
}

/// Two ask for processes of their own now, and the second cannot be started: where it stays it is what it was, with what it had.
#[tokio::test(flavor = "multi_thread")]
async fn one_that_cannot_move_out_stays_as_it_was() {
    let project = project();
    let package = r#"{"name":"x","type":"module","main":"old.mjs"}"#;
    let specs = ["a", "b"].map(|id| {
        let dir = project.path("plugins").join(id);
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join("package.json"), package.replace('x', id)).unwrap();
        fs::write(dir.join("old.mjs"), appender(id)).unwrap();
        fs::write(dir.join("main.mjs"), appender(&id.to_uppercase())).unwrap();
        project.spec(&format!("file://{}", dir.display()))
    });
    let c = project.plugin("c", &appender("c"));
    let plugins = project.load(specs.into_iter().chain([c]).collect()).await;
    assert_eq!(heard(&plugins).await, "a1 b1 c1 | a ok, b ok, c ok");
    for id in ["a", "b"] {
        manifest(&project.path("plugins").join(id), id, "");
    }
    // A file stands where its own folder would be.
    let mut homes = fs::read_dir(project.path("data/plugin-homes")).unwrap();
    let homes = homes.next().unwrap().unwrap().path();
    for file in ["b", "b.mjs"] {
        let source = project.path("plugins").join(file);
        let digest = short_digest(source.as_os_str().as_encoded_bytes());
        fs::write(homes.join(format!("b-project-{digest}")), "").unwrap();
    }
    plugins.reload("a").await.unwrap();
    let pid = |id: &str| status(&plugins, id).pid.unwrap();
    assert!(pid("a") != pid("b") && pid("b") == pid("c"));
    // What is on the disk now is not what it was trusted as, so the process of the two is the one that it was.
    assert_eq!(heard(&plugins).await, "A1 b2 c2 | a ok, b ok, c ok");
}

/// Nobody calls the old generation any more, but a login holds it: it is asked whether it answers, and watched, all the same.
#[tokio::test(flavor = "multi_thread")]
async fn an_old_generation_is_asked_and_watched() {
    let spins = "for (;;) {}";
    let grows = "globalThis.kept ??= []; globalThis.kept.push(Buffer.alloc(64 << 20, 1))";
    for (what, code) in [("a spin", spins), ("memory", grows)] {
        let mut project = project();
        project.settings.health = (what == "a spin").then(|| Duration::from_millis(200));
        // How long an answer to such a question may take.
        project.settings.deadlines.normal = Duration::from_secs(2);
        project.settings.limits.memory = 600 << 20;
        let source = |name: &str, code: &str| {
            format!(
                r#"import fs from "node:fs"
                export default async ({{ directory }}) => {{
                  setInterval(() => {{ if (fs.existsSync(directory + "/now")) {{ {code} }} }}, 50)
                  return {{
                    auth: {{ provider: "acme", methods: [{{ type: "oauth", label: "x", authorize: async () => ({{
                      url: "https://acme.test", instructions: "", method: "auto", callback: () => new Promise(() => {{}}),
                    }}) }}] }},
                    "experimental.chat.system.transform": async (input, output) => {{ output.system.push("{name}") }},
                  }}
                }}"#
            )
        };
        let plugins = project
            .load(vec![project.plugin("a", &source("old", code))])
            .await;
        let old = status(&plugins, "a").pid.unwrap();
        let hooks = plugins.auth_hooks();
        let Ok(Begun::Waits(flow)) = hooks[0].authorize(0, None).await else {
            panic!("{what}: no login");
        };
        project.plugin("a", &source("new", ""));
        plugins.reload("a").await.unwrap();
        assert!(alive(old), "{what}: the login holds it");
        fs::write(project.path("project/now"), "").unwrap();
        wait_for(what, || !alive(old)).await;
        assert!(flow.finish(None).await.is_err(), "{what}");
        assert_eq!(heard(&plugins).await, "new | a ok", "{what}");
    }
}

/// Which hosts it reaches, and what it is not given, is by the manifest of now.
#[tokio::test(flavor = "multi_thread")]
async fn hosts_and_what_is_withheld_are_those_of_the_manifest_of_now() {
    let mut project = project();
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            let _ = std::io::Read::read(&mut stream, &mut [0; 1024]);
            let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\nhi";
            let _ = std::io::Write::write_all(&mut stream, answer);
        }
    });
    let host = format!("127.0.0.1:{port}");
    let asks = |secrets: &str, hosts: &str, tools: &str| {
        format!(
            "[provides]\ntools = [{tools}]\n[permissions]\nsecrets = [{secrets}]\n[permissions.network]\nhosts = [{hosts}]\n"
        )
    };
    let both = asks("\"ONE_KEY\"", &format!("{host:?}"), "\"one\", \"two\"");
    let spec = folder(&project, "acme", &both, &[]);
    let dir = project.path("plugins/acme");
    let source = format!(
        r#"export default async () => ({{
          "experimental.chat.system.transform": async (input, output) => {{
            const said = await fetch("http://{host}").then((it) => it.text(), String)
            output.system.push(said === "hi" ? "reached" : "refused")
          }},
          tool: {{
            one: {{ description: "1", args: {{}}, execute: async () => "1" }},
            two: {{ description: "2", args: {{}}, execute: async () => "2" }},
          }},
        }})"#
    );
    fs::write(dir.join("main.mjs"), source).unwrap();
    let rules = outrigger_plugins::PluginRules {
        hosts: Some(vec![host.clone()]),
        ..Default::default()
    };
    project.rules(&dir.display().to_string(), rules);
    let plugins = project.load(vec![spec]).await;
    let withheld = |plugins: &Plugins| {
        status(plugins, "acme")
            .manifest
            .unwrap()
            .withheld
            .join("; ")
    };
    assert!(
        withheld(&plugins).contains("ONE_KEY"),
        "{}",
        withheld(&plugins)
    );
    assert_eq!(status(&plugins, "acme").tools, ["one", "two"]);
    assert_eq!(heard(&plugins).await, "reached | acme ok");
    manifest(&dir, "acme", &asks("\"TWO_KEY\"", "", "\"one\""));
    plugins.reload("acme").await.unwrap();
    let now = withheld(&plugins);
    assert!(now.contains("TWO_KEY") && !now.contains("ONE_KEY"), "{now}");
    assert_eq!(status(&plugins, "acme").tools, ["one"]);
    assert_eq!(heard(&plugins).await, "refused | acme ok");
    manifest(&dir, "acme", &both);
    plugins.reload("acme").await.unwrap();
    assert_eq!(heard(&plugins).await, "reached | acme ok");
}
