//! Machines with Node and npm but without Bun. npm is a script here, which "fetches" the Bun of the test
//! tools.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_config::settings::Install;
use outrigger_js::Lookup;
use outrigger_plugins::{BUN_SPEC, Stage, bun_path, setup_bun, setup_runtime};
use outrigger_sandbox::{Spawner, which};

use crate::support::*;

/// Creates a project whose machine has Node and this npm, or `None` if there is no Bun or no Node to test
/// with.
fn machine(npm: impl Fn(&Path) -> String) -> Option<(Project, PathBuf)> {
    let on_path = |name| which(name, std::env::var_os("PATH")?);
    let (Some(bun), Some(node)) = (runtimes().bun.or_else(|| on_path("bun")), on_path("node"))
    else {
        skip("there is no Bun or no Node");
        return None;
    };
    let mut project = Project::new();
    let path = project.path("path");
    fs::create_dir(&path).unwrap();
    symlink(node, path.join("node")).unwrap();
    // It is asked for the user's settings first; in its sandbox it writes nothing besides the installation.
    let script = format!(
        "#!/bin/sh\ntest \"$1\" = config && exit 1\necho \"$*\" >> \"$TMPDIR/npm.log\"\n{}\n",
        npm(&bun)
    );
    fs::write(path.join("npm"), script).unwrap();
    fs::set_permissions(path.join("npm"), fs::Permissions::from_mode(0o755)).unwrap();
    project.runtimes = Lookup {
        path: path.into(),
        data: Some(project.path("data")),
        ..Lookup::default()
    };
    let log = project.path("data/bun/.installer/tmp/npm.log");
    Some((project, log))
}

/// Returns an npm with a registry.
fn online(bun: &Path) -> String {
    format!(
        "name=$(sed -n 's/.*\"@oven.\\(bun-[a-z0-9-]*\\)\".*/\\1/p' package.json)\n\
         grep -q sha512- package-lock.json || exit 9\n\
         mkdir -p node_modules/@oven/$name/bin && ln -s {} node_modules/@oven/$name/bin/bun",
        bun.display()
    )
}

fn offline(_: &Path) -> String {
    "echo 'npm error code ENOTFOUND' >&2\nexit 1".to_owned()
}

fn calls(log: &Path) -> usize {
    fs::read_to_string(log).unwrap_or_default().lines().count()
}

/// Returns a plugin that appends its runtime.
fn named(name: &str, import: &str) -> String {
    format!(
        r#"{import}
        export default async () => ({{ "experimental.chat.system.transform": async (input, output) => {{
          output.system.push("{name}:" + (process.versions.bun ? "bun" : "node"))
        }} }})"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_whose_file_needs_bun_brings_it_once() {
    let Some((project, log)) = machine(online) else {
        return;
    };
    let typed = project.path("plugins/typed.tsx");
    fs::write(&typed, named("typed", "const a: number = 1")).unwrap();
    let specs = vec![
        project.spec(&format!("file://{}", typed.display())),
        project.plugin("plain", &named("plain", "")),
    ];
    for fetching in ["installing active", ""] {
        project.seen.lock().unwrap().clear();
        let plugins = project.load(specs.clone()).await;
        assert_eq!(
            summary(&system(&plugins).await),
            "typed:bun plain:bun | typed ok, plain ok"
        );
        plugins.dispose(Duration::from_secs(5)).await;
        assert_eq!(project.stages("bun"), fetching);
    }
    assert_eq!(calls(&log), 1);
    let mode = fs::metadata(bun_path(&project.path("data")))
        .unwrap()
        .permissions();
    assert_eq!(mode.mode() & 0o777, 0o755);
    let left = fs::read_dir(project.path("data/bun/.staging")).unwrap();
    assert_eq!(left.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_plugin_whose_import_needs_bun_gets_it_and_the_others_stay_where_they_are() {
    let Some((project, log)) = machine(online) else {
        return;
    };
    fs::write(project.path("plugins/part.ts"), "export const part = 1").unwrap();
    let specs = vec![
        project.plugin("glob", &named("glob", "import { Glob } from \"bun\"")),
        project.plugin("plain", &named("plain", "")),
        project.plugin("short", &named("short", "import { part } from \"./part\"")),
        project.plugin("broken", "import \"no-such-package\""),
    ];
    let plugins = project.load(specs.clone()).await;
    assert_eq!(
        summary(&system(&plugins).await),
        "glob:bun plain:node short:bun | glob ok, plain ok, short ok"
    );
    insta::assert_snapshot!(listed(&plugins), @r"
    glob active
    plain active
    short active
    broken failed plugin.import
    ");
    assert_eq!(
        project.stages("glob"),
        "found installed starting initialised active"
    );
    plugins.dispose(Duration::from_secs(5)).await;
    let plugins = project.load(specs).await;
    assert!(
        summary(&system(&plugins).await).starts_with("glob:bun plain:bun short:bun |"),
        "now it is there for all"
    );
    assert_eq!(calls(&log), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn offline_the_others_run_and_the_cause_says_why() {
    let Some((project, log)) = machine(offline) else {
        return;
    };
    let typed = project.path("plugins/typed.tsx");
    fs::write(&typed, named("typed", "const a: number = 1")).unwrap();
    let file = project.spec(&format!("file://{}", typed.display()));
    let import = project.plugin("glob", &named("glob", "import { Glob } from \"bun\""));
    let plain = project.plugin("plain", &named("plain", ""));
    for (specs, failing) in [
        (
            vec![file, import.clone(), plain.clone()],
            vec!["typed", "glob"],
        ),
        (vec![import, plain], vec!["glob"]),
    ] {
        let plugins = project.load(specs).await;
        assert_eq!(
            summary(&system(&plugins).await),
            "plain:node | plain ok",
            "{failing:?}"
        );
        for id in failing {
            let text = message(&plugins, id);
            assert!(
                text.contains("needs Bun")
                    && text.ends_with(
                        "; Bun 1.4.5 could not be installed: npm failed: code ENOTFOUND"
                    ),
                "{text}"
            );
        }
    }
    // Once for each load, however many plugins asked.
    assert_eq!(calls(&log), 2);
    let seen = project.seen.lock().unwrap();
    let last = seen.iter().rev().find(|p| p.plugin == "bun").unwrap();
    assert_eq!((last.spec.as_str(), last.stage), (BUN_SPEC, Stage::Skipped));
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_fetched_without_need_or_leave() {
    let Some((mut project, log)) = machine(online) else {
        return;
    };
    let plain = project.plugin("plain", &named("plain", ""));
    let plugins = project.load(vec![plain]).await;
    assert_eq!(summary(&system(&plugins).await), "plain:node | plain ok");

    // Other plugins are added to the project.
    project.settings.trust.changes = outrigger_config::settings::TrustChanges::Allow;
    project.settings.js.install = Install::Never;
    let import = project.plugin("glob", &named("glob", "import { Glob } from \"bun\""));
    let plugins = project.load(vec![import.clone()]).await;
    let text = message(&plugins, "glob");
    assert!(
        text.ends_with("this plugin needs Bun: run `outrigger plugin setup`"),
        "{text}"
    );

    // A runtime that the user named is used.
    project.settings.js.install = Install::Auto;
    project.settings.js.node = which("node", &project.runtimes.path);
    project.load(vec![import.clone()]).await;
    assert_eq!(calls(&log), 0);

    // The command is sufficient consent, and `js.runtime = "bun"` sufficient need.
    project.settings.js.node = None;
    project.settings.js.install = Install::Never;
    let data = project.path("data");
    let spawner = Spawner::new().unwrap();
    let progress: outrigger_plugins::ProgressFn = std::sync::Arc::new(|_| {});
    let runtime = setup_runtime(
        &project.settings,
        &project.runtimes,
        &data,
        &spawner,
        &progress,
    )
    .await
    .unwrap();
    assert_eq!(runtime.path, bun_path(&data));
    assert_eq!(calls(&log), 1);
    let plugins = project.load(vec![import]).await;
    assert_eq!(summary(&system(&plugins).await), "glob:bun | glob ok");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_run_is_not_kept() {
    let broken =
        |_: &Path| online(Path::new("/dev/null")).replace("ln -s /dev/null", "cp /dev/null");
    let Some((project, _)) = machine(broken) else {
        return;
    };
    let (data, spawner) = (project.path("data"), Spawner::new().unwrap());
    let npm = which("npm", &project.runtimes.path);
    let error = setup_bun(&data, npm.as_deref(), &spawner, &mut |_| {})
        .await
        .unwrap_err();
    assert!(error.to_string().contains("does not run here"), "{error}");
    assert!(!bun_path(&data).exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_fetched_without_consent() {
    let Some((mut project, log)) = machine(online) else {
        return;
    };
    project.settings.js.install = Install::Ask;
    let import = project.plugin("glob", &named("glob", "import { Glob } from \"bun\""));
    let answers = |yes: bool| -> Option<outrigger_plugins::ConsentFn> {
        Some(std::sync::Arc::new(move |what: &str| {
            assert_eq!(what, BUN_SPEC);
            Box::pin(async move { yes })
        }))
    };
    for (consent, why) in [
        (
            None,
            "Bun is not there, and nobody can be asked whether to fetch it (`js.install = \"auto\"` does so without asking)",
        ),
        (
            answers(false),
            "Bun is not there, and it was not to be fetched",
        ),
    ] {
        project.consent = consent;
        let plugins = project.load(vec![import.clone()]).await;
        let text = message(&plugins, "glob");
        assert!(text.contains("needs Bun") && text.ends_with(why), "{text}");
        plugins.dispose(Duration::from_secs(5)).await;
    }
    assert_eq!(calls(&log), 0);
    project.consent = answers(true);
    let plugins = project.load(vec![import]).await;
    assert_eq!(summary(&system(&plugins).await), "glob:bun | glob ok");
    assert_eq!(calls(&log), 1);
}
