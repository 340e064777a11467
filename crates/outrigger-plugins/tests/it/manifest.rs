//! Plugins with an `outrigger.plugin.toml`: what they get, and which requests are refused.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use outrigger_config::policy::{Grant, Policy, PolicyGrants};
use outrigger_config::{PluginSpec, PolicyFile};
use outrigger_plugins::{PluginRules, Plugins};
use outrigger_protocol::manifest::{MANIFEST_FILE, Manifest};
use serde_json::json;

use crate::support::*;

const HEAD: &str = "id = \"acme\"\nversion = \"1.2.0\"\nkind = \"capability\"\n";

/// A plugin in a folder of its own, with a manifest.
fn folder(project: &Project, source: &str, manifest: &str) -> PluginSpec {
    let dir = project.path("plugins/acme");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("main.mjs"), source).unwrap();
    fs::write(
        dir.join("package.json"),
        r#"{"name":"acme-package","type":"module","main":"main.mjs"}"#,
    )
    .unwrap();
    fs::write(dir.join(MANIFEST_FILE), manifest).unwrap();
    project.spec(&format!("file://{}", dir.display()))
}

fn file(project: &Project, name: &str) -> PathBuf {
    project.path("plugins/acme").join(name)
}

fn policy(grants: PolicyGrants) -> Vec<PolicyFile> {
    vec![PolicyFile {
        path: "/etc/outrigger/policy.toml".into(),
        policy: Policy {
            grants,
            ..Policy::default()
        },
        loose: false,
    }]
}

fn forbidding(project: &mut Project, forbid: &str) {
    let policy = outrigger_config::read_toml(&format!("[forbid]\n{forbid}\n"), "policy.toml");
    project.settings.policies = vec![PolicyFile {
        path: "/etc/outrigger/policy.toml".into(),
        policy: policy.unwrap(),
        loose: false,
    }];
}

/// Name, what stands in the manifest behind its head, what else is done, what becomes of the plugin.
type Row = (&'static str, &'static str, fn(&mut Project), &'static str);

const ROWS: &[Row] = &[
    (
        "a program that the policy forbids",
        "entry = \"main.mjs\"\n[permissions]\nprocesses = [\"git\", \"nc\"]",
        |project| forbidding(project, "programs = [\"n*\"]"),
        "acme failed plugin.too_wide",
    ),
    (
        "a file that the policy forbids",
        "entry = \"main.mjs\"\n[permissions.files]\nread = [\"/srv/keys/one\"]",
        |project| forbidding(project, "files = [\"/srv/keys/\"]"),
        "acme failed plugin.too_wide",
    ),
    (
        "an entry outside of the package",
        "entry = \"../evil.mjs\"",
        |_| {},
        "acme failed plugin.own_manifest",
    ),
    (
        "an entry by an absolute path",
        "entry = \"/etc/hostname\"",
        |_| {},
        "acme failed plugin.own_manifest",
    ),
    (
        "an entry that is a link out of the package",
        "entry = \"link.mjs\"",
        |project| {
            fs::write(project.path("plugins/evil.mjs"), appender("evil")).unwrap();
            symlink(project.path("plugins/evil.mjs"), file(project, "link.mjs")).unwrap();
        },
        "acme failed plugin.entry_outside",
    ),
    (
        "an entry that is not there",
        "entry = \"gone.mjs\"",
        |_| {},
        "acme failed plugin.entry_missing",
    ),
    (
        "a host that is an address",
        "[permissions.network]\nhosts = [\"https://acme.test/\"]",
        |_| {},
        "acme failed plugin.own_manifest",
    ),
    (
        "a program by a path of the project",
        "[permissions]\nprocesses = [\"./run\"]",
        |_| {},
        "acme failed plugin.own_manifest",
    ),
    (
        "files outside of the project by .. behind a root",
        "[permissions.files]\nwrite = [\"/opt/../etc\"]",
        |_| {},
        "acme failed plugin.own_manifest",
    ),
    (
        "files outside of the project by ..",
        "[permissions.files]\nread = [\"${project}/../secrets\"]",
        |_| {},
        "acme failed plugin.own_manifest",
    ),
    (
        "files of somebody's home folder",
        "[permissions.files]\nread = [\"~root/.ssh\"]",
        |_| {},
        "acme failed plugin.own_manifest",
    ),
    (
        "a key that nobody knows",
        "[permissions.fils]\nread = []",
        |_| {},
        "acme failed plugin.own_manifest",
    ),
    (
        "a variable that is none",
        "[permissions]\nsecrets = [\"A=B\"]",
        |_| {},
        "acme failed plugin.own_manifest",
    ),
    (
        "no TOML",
        "[permissions",
        |_| {},
        "acme failed plugin.own_manifest",
    ),
    (
        "a secret that the policy forbids",
        "[permissions]\nsecrets = [\"AWS_KEY\"]",
        |project| {
            project.settings.policies = policy(PolicyGrants {
                forbid_env: vec!["AWS_*".into()],
                ..PolicyGrants::default()
            });
        },
        "acme failed plugin.too_wide",
    ),
    (
        "a port that the policy forbids",
        "[permissions.network]\nlisten = [4711]",
        |project| {
            project.settings.policies = policy(PolicyGrants {
                forbid: vec![Grant::Ports],
                ..PolicyGrants::default()
            });
        },
        "acme failed plugin.too_wide",
    ),
    (
        "UNIX sockets that the policy forbids",
        "[permissions]\nunix_sockets = true",
        |project| {
            project.settings.policies = policy(PolicyGrants {
                forbid: vec![Grant::UnixSockets],
                ..PolicyGrants::default()
            });
        },
        "acme failed plugin.too_wide",
    ),
    (
        "a variable that is not set",
        "[requirements]\nenv = [\"OUTRIGGER_TEST_NOT_SET\"]",
        |_| {},
        "acme skipped plugin.requirements",
    ),
    (
        "a group of variables none of which is set",
        "[requirements]\nenv_any = [[\"PATH\"], [\"OUTRIGGER_TEST_NOT_SET\", \"OUTRIGGER_TEST_NEITHER\"]]",
        |_| {},
        "acme skipped plugin.requirements",
    ),
    (
        "a program that is not there",
        "[requirements]\nexternal_bins = [\"sh\", \"no-such-program\"]",
        |_| {},
        "acme skipped plugin.requirements",
    ),
    (
        "a companion that is not there",
        "depends_on = [\"other\"]",
        |_| {},
        "acme failed plugin.depends_on",
    ),
    (
        "the id of a bundled plugin in package.json",
        "",
        |project| {
            fs::remove_file(file(project, MANIFEST_FILE)).unwrap();
            fs::write(
                file(project, "package.json"),
                r#"{"name":"skill-source-local","main":"main.mjs"}"#,
            )
            .unwrap();
        },
        "acme failed plugin.reserved_id",
    ),
    (
        "all is well",
        "depends_on = [\"acme\"]\n[requirements]\nenv = [\"PATH\"]\nexternal_bins = [\"sh\"]",
        |_| {},
        "acme active",
    ),
];

#[tokio::test]
async fn a_manifest_that_lies_or_asks_too_much_is_refused() {
    let mut wrong = Vec::new();
    for (name, rest, also, want) in ROWS {
        let mut project = Project::new();
        let spec = folder(&project, &appender("acme"), &format!("{HEAD}{rest}\n"));
        also(&mut project);
        let plugins = project.load(vec![spec]).await;
        let got = listed(&plugins);
        if got != *want {
            let cause = plugins.list().remove(0).cause;
            wrong.push(format!("{name}: {got} instead of {want}: {cause:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn the_id_of_a_bundled_plugin_is_refused() {
    let project = Project::new();
    let manifest = HEAD.replace("acme", "builtin-tools");
    let spec = folder(&project, &appender("acme"), &manifest);
    let plugins = project.load(vec![spec]).await;
    assert_eq!(listed(&plugins), "acme failed plugin.reserved_id");
}

#[tokio::test]
async fn an_error_has_a_place_and_a_way_out() {
    let project = Project::new();
    let mut seen = String::new();
    for rest in [
        "[permisions]",
        "entry = \"../x\"",
        "[requirements]\nenv = [\"A B\"]",
        "[hook_policy]\nmax_timeout_ms = \"5\"",
    ] {
        let spec = folder(&project, "", &format!("{HEAD}{rest}\n"));
        let cause = project
            .load(vec![spec])
            .await
            .list()
            .remove(0)
            .cause
            .unwrap();
        let message = cause
            .message
            .replace(&project.root.path().display().to_string(), "");
        seen += &format!(
            "{}\n  {}\n",
            message.split("used: ").last().unwrap(),
            cause.hint.unwrap_or("-".into())
        );
    }
    insta::assert_snapshot!(seen, @r#"
    /plugins/acme/outrigger.plugin.toml:4:2: unknown setting `permisions`
      did you mean `permissions`?
    /plugins/acme/outrigger.plugin.toml:4:1: `entry`: "../x" does not lie inside of the package
      -
    /plugins/acme/outrigger.plugin.toml:5:1: `requirements.env`: "A B" is not the name of a variable
      -
    /plugins/acme/outrigger.plugin.toml:5:18: not valid TOML: invalid type: string "5", expected u64
      correct the text at this place; text values stand in double quotes
    "#);
}

#[tokio::test]
async fn a_manifest_is_part_of_what_is_trusted() {
    for change in [
        |project: &Project| fs::remove_file(file(project, MANIFEST_FILE)).unwrap(),
        |project: &Project| {
            fs::write(
                file(project, MANIFEST_FILE),
                format!("{HEAD}[permissions.files]\nwrite = [\"${{project}}\"]\n"),
            )
            .unwrap()
        },
    ] {
        let project = Project::new();
        let spec = folder(&project, &appender("acme"), HEAD);
        assert_eq!(
            listed(&project.load(vec![spec.clone()]).await),
            "acme active"
        );
        change(&project);
        let listed = listed(&project.load(vec![spec]).await);
        assert!(listed.ends_with("failed plugin.changed"), "{listed}");
    }
}

/// Says what of the world it can reach.
const REACHES: &str = r#"
import fs from "node:fs"
const can = (what) => { try { what(); return "yes" } catch (error) { return error.code ?? "no" } }
export default async ({ directory }) => ({
  "experimental.chat.system.transform": async (input, output) => {
    output.system.push(JSON.stringify({
      read: can(() => fs.readFileSync(directory + "/readable/a.txt")),
      write: can(() => fs.writeFileSync(directory + "/writable/b.txt", "x")),
      other: can(() => fs.readFileSync(directory + "/other.txt")),
      rewrite: can(() => fs.writeFileSync(directory + "/readable/a.txt", "x")),
    }))
  },
  "chat.params": async () => {},
  tool: {
    named: { description: "x", args: {}, execute: async () => "x" },
    unnamed: { description: "x", args: {}, execute: async () => "x" },
  },
})
"#;

#[tokio::test]
async fn a_plugin_gets_what_it_asks_for_and_the_user_grants() {
    let mut project = Project::new();
    for (name, text) in [
        ("readable/a.txt", "a"),
        ("writable/a.txt", "a"),
        ("other.txt", "a"),
    ] {
        let path = project.path("project").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let manifest = format!(
        "{HEAD}[provides]\ntools = [\"named\"]\n[hook_policy]\nallowedHooks = [\"chat.system.transform\"]\nmax_timeout_ms = 900\npriority = 7\n[permissions]\nenv = [\"ACME_*\"]\nsecrets = [\"ACME_API_KEY\", \"ACME_SECOND_KEY\"]\n[permissions.files]\nread = [\"readable\"]\nwrite = [\"${{project}}/writable\"]\n"
    );
    let spec = folder(&project, REACHES, &manifest);
    let path = project.path("plugins/acme").display().to_string();
    // Granted is one of the two, and one that it does not ask for.
    let granted = PluginRules {
        env: vec!["ACME_API_KEY".into(), "OTHER_KEY".into()],
        ports: vec![4711],
        ..PluginRules::default()
    };
    project.rules(&path, granted);
    let plugins = project.load(vec![spec]).await;
    assert_eq!(listed(&plugins), "acme active");
    let status = status(&plugins, "acme");
    assert_eq!(status.hooks, ["experimental.chat.system.transform"]);
    assert_eq!(status.tools, ["named"]);
    let shown = status.manifest.unwrap();
    assert!(shown.declared);
    insta::assert_snapshot!(format!("{}\n{}", shown.withheld.join("\n"), status.warnings.join("\n")), @r#"
    the variable ACME_SECOND_KEY (`env = ["ACME_SECOND_KEY"]` grants it)
    the hook chat.params is not called: `hook_policy.allowed_hooks` of its manifest does not name it
    the tool unnamed is not registered: `provides.tools` of its manifest does not name it
    "#);
    let result = system(&plugins).await;
    let refusals: serde_json::Value =
        serde_json::from_str(&refusals(result.outputs[0]["system"][0].as_str().unwrap())).unwrap();
    if outrigger_sandbox::Spawner::new().unwrap().landlock_abi() == 0 {
        return skip("there is no Landlock");
    }
    let reached = json!([
        refusals["read"],
        refusals["write"],
        refusals["other"],
        refusals["rewrite"]
    ]);
    assert_eq!(reached, json!(["yes", "yes", "EACCES", "EACCES"]));
}

/// What a manifest says of side effects is not taken on its word: what it asks for says it as well, and what it does not ask for
/// it does not get.
#[tokio::test]
async fn one_that_denies_its_side_effects_has_none() {
    let denies = "[provides]\ntools = [\"named\"]\nhas_side_effects = false\n";
    for (asks, effects) in [
        ("", false),
        ("[permissions.files]\nwrite = [\"out\"]\n", true),
        ("[permissions]\nprocesses = [\"git\"]\n", true),
        ("[permissions.network]\nlisten = [4711]\n", true),
    ] {
        let text = format!("{HEAD}entry = \"main.mjs\"\n{denies}{asks}");
        let manifest: Manifest = outrigger_config::read_toml(&text, MANIFEST_FILE).unwrap();
        assert_eq!(manifest.has_side_effects(), effects, "{asks}");
    }
    let project = Project::new();
    fs::create_dir(project.path("project/writable")).unwrap();
    let spec = folder(&project, REACHES, &format!("{HEAD}{denies}"));
    let plugins = project.load(vec![spec]).await;
    assert_eq!(status(&plugins, "acme").tools, ["named"]);
    if outrigger_sandbox::Spawner::new().unwrap().landlock_abi() == 0 {
        return skip("there is no Landlock");
    }
    let result = system(&plugins).await;
    let written: serde_json::Value =
        serde_json::from_str(&refusals(result.outputs[0]["system"][0].as_str().unwrap())).unwrap();
    assert_eq!(written["write"], "EACCES");
    assert!(!project.path("project/writable/b.txt").exists());
}

/// Says what it reaches outside of the project, and which programs it can run.
const OUTSIDE: &str = r#"
import fs from "node:fs"
import { spawnSync } from "node:child_process"
const can = (what) => { try { what(); return "yes" } catch (error) { return error.code ?? "no" } }
const runs = (...command) => { const { status, error } = spawnSync(command[0], command.slice(1)); return error ? error.code : status === 0 ? "yes" : "no" }
export default async ({ directory }) => ({
  "experimental.chat.system.transform": async (input, output) => {
    const outside = directory + "/../outside"
    output.system.push(JSON.stringify([
      can(() => fs.readFileSync(outside + "/granted/a.txt")),
      can(() => fs.writeFileSync(outside + "/granted/a.txt", "x")),
      can(() => fs.writeFileSync(outside + "/changed/a.txt", "x")),
      can(() => fs.readFileSync(outside + "/asked/a.txt")),
      can(() => fs.readFileSync(outside + "/unasked/a.txt")),
      runs("/bin/true"),
      runs("/bin/ls", "/"),
      runs("/lib64/ld-linux-x86-64.so.2", "/bin/ls", "/"),
    ]))
  },
})
"#;

#[tokio::test]
async fn places_outside_and_programs_are_what_was_granted() {
    let mut project = Project::new();
    for name in ["granted", "changed", "asked", "unasked"] {
        fs::create_dir_all(project.path("outside").join(name)).unwrap();
        fs::write(project.path("outside").join(name).join("a.txt"), "a").unwrap();
    }
    let outside = project.path("outside");
    let at = |name: &str| fs::canonicalize(&outside).unwrap().join(name);
    let manifest = format!(
        "{HEAD}[permissions]\nprocesses = [\"true\", \"cat\"]\n[permissions.files]\nread = [{:?}, {:?}]\nwrite = [{:?}]\n",
        at("granted"),
        at("asked"),
        at("changed"),
    );
    let spec = folder(&project, OUTSIDE, &manifest);
    let path = project.path("plugins/acme").display().to_string();
    let granted = PluginRules {
        read: vec![at("granted"), at("unasked")],
        write: vec![at("changed")],
        processes: Some(vec!["true".into(), "ls".into()]),
        ..PluginRules::default()
    };
    project.rules(&path, granted);
    let plugins = project.load(vec![spec.clone()]).await;
    assert_eq!(listed(&plugins), "acme active");
    let shown = status(&plugins, "acme").manifest.unwrap();
    let asked = at("asked").display().to_string();
    assert_eq!(
        shown.withheld,
        [format!("{asked} (`read = [\"{asked}\"]` grants it)")]
    );
    let reached = async |plugins: &Plugins| -> serde_json::Value {
        let result = system(plugins).await;
        serde_json::from_str(&refusals(result.outputs[0]["system"][0].as_str().unwrap())).unwrap()
    };
    let got = reached(&plugins).await;
    plugins.dispose(std::time::Duration::from_secs(5)).await;
    if outrigger_sandbox::Spawner::new().unwrap().landlock_abi() == 0 {
        return skip("there is no Landlock");
    }
    assert_eq!(
        got,
        json!([
            "yes", "EACCES", "yes", "EACCES", "EACCES", "yes", "EACCES", "no"
        ])
    );
    // None at all: it cannot even make a process.
    let granted = PluginRules {
        processes: Some(Vec::new()),
        ..PluginRules::default()
    };
    project.rules(&path, granted);
    let plugins = project.load(vec![spec]).await;
    let got = reached(&plugins).await;
    let runs = got.as_array().unwrap().iter().skip(5);
    assert!(
        runs.into_iter().all(|it| it == "EPERM" || it == "EACCES"),
        "{got}"
    );
}

#[tokio::test]
async fn a_plugin_without_a_manifest_is_given_the_default_and_that_is_shown() {
    let project = Project::new();
    let spec = project.plugin("plain", &appender("plain"));
    let plugins = project.load(vec![spec]).await;
    let shown = status(&plugins, "plain").manifest.unwrap();
    assert!(!shown.declared);
    assert_eq!(shown.manifest, Manifest::inferred("plain", None));
    assert_eq!(shown.manifest.permissions.files.write, ["${project}"]);
}

/// Changes or refuses what it can wherever it is called.
const TRIES: &str = r#"
const refuse = async () => { throw Object.assign(new Error("no"), { name: "HookBlock", code: "acme.no" }) }
export default async () => ({
  "chat.params": async (_, output) => { output.temperature = 1 },
  "experimental.chat.system.transform": async (_, output) => { output.system.push("acme") },
  "tool.execute.after": async (_, output) => { output.title = "acme" },
  "tool.on_error": async (_, output) => { output.context.push("acme") },
  "permission.ask": async (_, output) => { output.status = "allow" },
  "shell.env": async (_, output) => { output.env.ACME = "1" },
  "chat.message": async (_, output) => { output.parts.push({ type: "text", text: "acme" }) },
  "tool.execute.before": async () => { throw new Error("no") },
  "llm.before_request": refuse,
  "chat.headers": refuse,
})
"#;

/// C3: what hooks of a plugin may do whose manifest names none of them, names them, or names those that refuse; and what they
/// may without a manifest.
#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_that_names_no_hooks_gives_what_c3_gives() {
    let points = [
        ("llm.before_params", json!({"options": {}})),
        ("llm.before_system", json!({"system": []})),
        ("tool.after_result", json!({"title": "", "output": ""})),
        ("tool.on_error", json!({"context": []})),
        ("tool.before_permission", json!({"status": "ask"})),
        ("execute.before_shell", json!({"env": {}})),
        ("run.before_start", json!({"message": {}, "parts": []})),
        ("tool.before_call", json!({"args": {}})),
        ("llm.before_request", json!({})),
        ("llm.before_headers", json!({"headers": {}})),
    ];
    let every = "[hook_policy]\nallowed_hooks = [\"chat.params\", \"llm.before_system\", \"tool.after_result\", \"tool.on_error\", \"permission.ask\", \"shell.env\", \"chat.message\", \"tool.before_call\", \"llm.before_request\", \"chat.headers\"]\n";
    let policy = "[hook_policy]\nfail_closed = [\"llm.before_request\", \"tool.execute.before\"]\n";
    let mut seen = String::new();
    for (name, manifest) in [
        ("nothing named", Some("")),
        ("all named", Some(every)),
        ("a policy plugin", Some(policy)),
        ("no manifest", None),
    ] {
        let project = Project::new();
        let spec = folder(
            &project,
            TRIES,
            &format!("{HEAD}{}", manifest.unwrap_or_default()),
        );
        if manifest.is_none() {
            fs::remove_file(file(&project, MANIFEST_FILE)).unwrap();
        }
        let plugins = project.load(vec![spec]).await;
        seen += &format!(
            "{name}: {}\n",
            plugins.list()[0].manifest.clone().unwrap().hooks
        );
        for (point, output) in &points {
            let result = run(&plugins, point, json!({}), output.clone()).await;
            let record = &result.records[0];
            let same = result.outputs[0] == *output;
            let code = result.block.map(|block| block.code).unwrap_or_default();
            let refused = record.audit.refused.unwrap_or_default();
            seen += &format!(
                "  {point} {} {} {refused} {code}\n",
                record.decision.name(),
                if same { "same" } else { "changed" },
            );
        }
    }
    insta::assert_snapshot!(seen);
}

/// A manifest says by itself that a failure refuses only where every handler may refuse; elsewhere the user says it.
#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_makes_its_plugin_a_guard_where_handlers_may_refuse() {
    const THROWS: &str = "const no = () => { throw new Error('no') }\nexport default async () => ({ 'chat.headers': no, 'llm.before_request': no })";
    for (users, headers) in [
        (vec![], None),
        (vec!["llm.before_headers"], Some("hook.failed_closed")),
    ] {
        let mut project = Project::new();
        let rules = PluginRules {
            fail_closed: users.iter().map(|it| (*it).to_owned()).collect(),
            ..PluginRules::default()
        };
        project.rules("acme", rules);
        let policy = "[hook_policy]\nfail_closed = [\"chat.headers\", \"llm.before_request\"]\n";
        let spec = folder(&project, THROWS, &format!("{HEAD}{policy}"));
        let plugins = project.load(vec![spec]).await;
        let withheld = plugins.list()[0].manifest.clone().unwrap().withheld;
        let says = "a refusal where chat.headers fails, which may refuse nothing (`fail_closed = [\"chat.headers\"]` grants it)";
        assert_eq!(withheld, if users.is_empty() { vec![says] } else { vec![] });
        for (point, output, code) in [
            ("llm.before_headers", json!({"headers": {}}), headers),
            ("llm.before_request", json!({}), Some("hook.failed_closed")),
        ] {
            let block = run(&plugins, point, json!({}), output).await.block;
            let block = block.map(|block| block.code);
            assert_eq!(block.as_deref(), code, "{point} {users:?}");
        }
    }
}
