use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use outrigger_plugins::{Cache, Installer, LOCK_FILE, LockFile, PackageError};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_sandbox::{Spawner, Spec, env, run, which};

use crate::support::*;

/// Packs a package with npm and answers the tarball, or `None` where there is no npm.
async fn pack(root: &Path, name: &str, version: &str, manifest: &str) -> Option<PathBuf> {
    let Some(npm) = npm() else {
        skip("there is no npm on PATH");
        return None;
    };
    let folder = root.join(format!("src-{name}-{version}"));
    fs::create_dir_all(&folder).unwrap();
    let rest = if manifest.is_empty() {
        String::new()
    } else {
        format!(", {manifest}")
    };
    fs::write(
        folder.join("package.json"),
        format!(
            r#"{{"name":"{name}","version":"{version}","type":"module","main":"index.js"{rest}}}"#
        ),
    )
    .unwrap();
    let needs = if manifest.contains("dep-package") {
        "import \"dep-package\"\n"
    } else {
        ""
    };
    let source = appender(&format!("{name}@{version}:"));
    fs::write(folder.join("index.js"), format!("{needs}{source}")).unwrap();
    let spec = Spec::new(npm.path())
        .args(["pack", "--silent"])
        .cwd(&folder)
        .vars(env::allow_list(&["npm_config_*"]));
    let output = run(
        &Spawner::new().unwrap(),
        spec,
        Duration::from_secs(120),
        65536,
    )
    .await
    .unwrap();
    assert!(
        output.exit.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    Some(folder.join(format!("{name}-{version}.tgz")))
}

struct Npm(PathBuf);
impl Npm {
    fn path(&self) -> &Path {
        &self.0
    }
}

fn npm() -> Option<Npm> {
    which("npm", std::env::var_os("PATH").unwrap_or_default()).map(Npm)
}

fn installers() -> Vec<Installer> {
    runtimes()
        .bun
        .map(Installer::Bun)
        .into_iter()
        .chain(npm().map(|npm| Installer::Npm(npm.0)))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_installed_once_locked_and_found_again_without_an_installer() {
    for installer in installers() {
        let project = Project::new();
        let Some(tarball) = pack(project.root.path(), "demo-plugin", "1.2.3", "").await else {
            return;
        };
        let request = format!("file:{}", tarball.display());
        let spawner = Spawner::new().unwrap();
        let cache = Cache::new(
            &project.path("cache"),
            Some(installer.clone()),
            spawner.clone(),
        );
        assert_eq!(cache.find("demo-plugin", &request).unwrap(), None);
        let mut finished = 0;
        let package = cache
            .get("demo-plugin", "demo-plugin", &request, |grown| {
                finished += usize::from(grown.is_none())
            })
            .await
            .unwrap();
        assert_eq!(package.version, "1.2.3");
        let lock = LockFile::read(cache.root()).unwrap();
        let locked = lock.find("demo-plugin", &request).unwrap();
        assert_eq!(locked.version, "1.2.3");
        assert!(
            locked.integrity.as_deref().unwrap().starts_with("sha512-"),
            "{installer:?}"
        );

        // The tarball is gone and there is nothing to install with, and still it is found.
        fs::remove_file(&tarball).unwrap();
        let offline = Cache::new(&project.path("cache"), None, spawner);
        let mut count = |grown: Option<u64>| finished += usize::from(grown.is_none());
        let again = offline.get("demo-plugin", "demo-plugin", &request, &mut count);
        assert_eq!(again.await.unwrap(), package);
        // It says itself that it is 1.2.3: who asks the registry for that gets nothing of an address.
        assert_eq!(offline.find("demo-plugin", "1.2.3").unwrap(), None);
        // What is of the registry is found by its version.
        let folder = package.dir.parent().and_then(Path::parent).unwrap();
        let registrys = cache.root().join("demo-plugin@1.2.3");
        fs::rename(folder, &registrys).unwrap();
        let found = offline.find("demo-plugin", "1.2.3").unwrap().unwrap();
        assert!(found.dir.starts_with(&registrys), "{found:?}");
        assert_eq!(finished, 1);
        let error = offline
            .get("demo-plugin@2", "demo-plugin", "2", |_| {})
            .await
            .unwrap_err();
        assert_eq!(error.code(), "plugin.no_installer");
        let names: Vec<_> = fs::read_dir(cache.root())
            .unwrap()
            .map(|e| e.unwrap().file_name())
            .collect();
        assert!(names.iter().any(|name| name == LOCK_FILE), "{names:?}");
        assert_eq!(
            fs::read_dir(cache.root().join(".staging")).unwrap().count(),
            0
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_install_at_once_get_one_whole_package() {
    let Some(installer) = installers().pop() else {
        return skip("there is neither Bun nor npm");
    };
    let project = Project::new();
    let Some(tarball) = pack(project.root.path(), "demo-plugin", "2.0.0", "").await else {
        return;
    };
    let request = format!("file:{}", tarball.display());
    let tasks: Vec<_> = (0..3)
        .map(|_| {
            // Each its own cache object, as each host has.
            let cache = Cache::new(
                &project.path("cache"),
                Some(installer.clone()),
                Spawner::new().unwrap(),
            );
            let request = request.clone();
            tokio::spawn(async move {
                cache
                    .get("demo-plugin", "demo-plugin", &request, |_| {})
                    .await
            })
        })
        .collect();
    for task in tasks {
        let package = task.await.unwrap().unwrap();
        assert!(package.dir.join("index.js").is_file());
    }
    let cache = Cache::new(&project.path("cache"), None, Spawner::new().unwrap());
    assert_eq!(LockFile::read(cache.root()).unwrap().plugins.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn one_bad_dependency_fails_only_its_plugin_with_the_installers_last_lines() {
    let mut project = Project::new();
    let root = project.root.path().to_owned();
    let Some(dependency) = pack(&root, "dep-package", "3.0.0", "").await else {
        return;
    };
    // Imported inside the sandbox, so its folder must be within the plugin's reach.
    let needs = format!(
        r#""dependencies":{{"dep-package":"file:{}"}}"#,
        dependency.display()
    );
    let Some(good) = pack(&root, "good-plugin", "1.0.0", &needs).await else {
        return;
    };
    let Some(bad) = pack(
        &root,
        "bad-plugin",
        "1.0.0",
        r#""dependencies":{"x":"file:/nowhere/x.tgz"}"#,
    )
    .await
    else {
        return;
    };
    let Some(old) = pack(
        &root,
        "old-plugin",
        "1.0.0",
        r#""engines":{"opencode":"^0.3"}"#,
    )
    .await
    else {
        return;
    };
    let Some(web) = pack(
        &root,
        "web-plugin",
        "1.0.0",
        r#""exports":{".":"./index.js"}"#,
    )
    .await
    else {
        return;
    };
    let spec =
        |name: &str, tarball: &Path| project.spec(&format!("{name}@file:{}", tarball.display()));
    let specs = vec![
        spec("bad-plugin", &bad),
        spec("good-plugin", &good),
        spec("old-plugin", &old),
        spec("web-plugin", &web),
        project.plugin("local", &appender("local")),
    ];
    let plugins = project.load(specs.clone()).await;
    insta::assert_snapshot!(listed(&plugins), @r"
    bad-plugin failed plugin.install
    good-plugin active
    old-plugin failed plugin.incompatible
    web-plugin active
    local active
    ");
    assert!(
        message(&plugins, "bad-plugin").contains("x.tgz"),
        "{}",
        message(&plugins, "bad-plugin")
    );
    assert_eq!(
        status(&plugins, "good-plugin").version.as_deref(),
        Some("1.0.0")
    );
    assert_eq!(
        project.stages("good-plugin"),
        "found installing installed starting initialised active"
    );
    assert!(
        summary(&system(&plugins).await)
            .starts_with("good-plugin@1.0.0:1 web-plugin@1.0.0:1 local1 |")
    );
    plugins.dispose(Duration::from_secs(5)).await;

    // With what is in the cache and no installer in reach, the same plugins run.
    let runtime = project.settings.js.clone();
    project.settings.js = outrigger_config::settings::Js {
        node: which("node", &project.runtimes.path),
        ..runtime
    };
    project.runtimes.path = "/nowhere".into();
    project.seen.lock().unwrap().clear();
    let plugins = project.load(specs).await;
    assert!(
        listed(&plugins).contains("good-plugin active"),
        "{}",
        listed(&plugins)
    );
    assert_eq!(
        project.stages("good-plugin"),
        "found installed starting initialised active"
    );
}

/// Of a package the id is known when it is installed, and denies it as its name does.
#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_denied_by_its_name_and_by_its_id() {
    for (deny, listed_as) in [
        ("other", "acme active"),
        ("acme", "denied-plugin skipped plugin.forbidden"),
        ("ac*", "denied-plugin skipped plugin.forbidden"),
    ] {
        let mut project = Project::new();
        let source = project.root.path().join("src-denied-plugin-1.0.0");
        fs::create_dir_all(&source).unwrap();
        fs::write(
            source.join("outrigger.plugin.toml"),
            "id = \"acme\"\nversion = \"1.0.0\"\nkind = \"hook\"\nentry = \"index.js\"\n",
        )
        .unwrap();
        let Some(tarball) = pack(project.root.path(), "denied-plugin", "1.0.0", "").await else {
            return;
        };
        let policy = format!("[plugins]\ndeny = [{deny:?}]\n");
        project.settings.policies = vec![outrigger_config::PolicyFile {
            path: "/etc/outrigger/policy.toml".into(),
            policy: outrigger_config::read_toml(&policy, "policy.toml").unwrap(),
            loose: false,
        }];
        let spec = format!("denied-plugin@file:{}", tarball.display());
        let spec = project.spec(&spec);
        // By its name it is not even on the list that is loaded.
        let by_name = outrigger_config::PolicyFile {
            policy: outrigger_config::read_toml(
                "[plugins]\ndeny = [\"denied-plugin\"]\n",
                "policy.toml",
            )
            .unwrap(),
            ..project.settings.policies[0].clone()
        };
        assert!(by_name.forbids(&spec));
        assert!(!project.settings.policies[0].forbids(&spec));
        let plugins = project.load(vec![spec]).await;
        assert_eq!(listed(&plugins), listed_as, "{deny}");
    }
}

#[test]
fn the_errors_say_what_to_do() {
    let error = PackageError::NoInstaller {
        spec: "demo".into(),
    };
    insta::assert_snapshot!(error, @"plugin demo has to be installed from npm, and neither bun nor npm was found");
    assert!(error.hint().unwrap().contains("OUTRIGGER_BUN"));
}

#[tokio::test(flavor = "multi_thread")]
async fn install_scripts_do_not_run() {
    for installer in installers() {
        let project = Project::new();
        let ran = project.path("ran");
        let script = format!("touch {}", ran.display());
        let scripts = ["preinstall", "install", "postinstall", "prepare"];
        let scripts: Vec<String> = scripts
            .iter()
            .map(|name| format!("\"{name}\":\"{script}\""))
            .collect();
        // What packs it may run `prepare`; what installs it must run none.
        let manifest = format!(
            "\"scripts\":{{{}}},\"trustedDependencies\":[\"scripted-plugin\"]",
            scripts.join(",")
        );
        let packed = pack(project.root.path(), "scripted-plugin", "1.0.0", &manifest).await;
        let Some(tarball) = packed else {
            return;
        };
        let _ = fs::remove_file(&ran);
        let request = format!("file:{}", tarball.display());
        let spawner = Spawner::new().unwrap();
        let cache = Cache::new(&project.path("cache"), Some(installer.clone()), spawner);
        let package = cache
            .get("scripted-plugin", "scripted-plugin", &request, |_| {})
            .await
            .unwrap();
        assert_eq!(package.version, "1.0.0");
        assert!(!ran.exists(), "{installer:?}");
        // A second name, in a cache that commands write, would be a way to change it.
        let file = package.dir.join("package.json").metadata().unwrap();
        assert_eq!(
            std::os::unix::fs::MetadataExt::nlink(&file),
            1,
            "{installer:?}"
        );
    }
}

/// A folder with these files, as a git repository with one commit.
async fn repository(folder: &Path, files: &[(&str, String)]) {
    fs::create_dir_all(folder).unwrap();
    for (name, text) in files {
        script(&folder.join(name), text);
    }
    let commit =
        "git init -q . && git add -A && git -c user.name=a -c user.email=a@a commit -q -m i";
    let spec = Spec::new("sh").args(["-c", commit]).cwd(folder);
    let spec = spec.vars(env::allow_list(&[]));
    let spawner = Spawner::new().unwrap();
    let output = run(&spawner, spec, Duration::from_secs(60), 65536);
    let output = output.await.unwrap();
    assert!(
        output.exit.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// npm prepares a git dependency by installing in its clone, where the package's `.npmrc` counts. What that names as git is not run.
#[tokio::test(flavor = "multi_thread")]
async fn the_settings_of_a_git_dependency_run_nothing_while_it_is_installed() {
    let Some(npm) = npm() else {
        return skip("there is no npm on PATH");
    };
    let project = Project::new();
    let root = project.root.path().canonicalize().unwrap();
    let (one, two) = (root.join("one"), root.join("one/.git/two"));
    let manifest = format!(
        r#"{{"name":"git-plugin","version":"1.0.0","main":"i.js","scripts":{{"prepare":"true"}},
            "dependencies":{{"two":"git+file://{}"}}}}"#,
        two.display()
    );
    let evil = "#!/bin/sh\ntouch \"$TMPDIR/ran\"\nexec git \"$@\"\n";
    let files = [
        ("package.json", manifest),
        ("i.js", "export const A = async () => ({})".to_owned()),
        (".npmrc", "git=./evil.sh\n".to_owned()),
        ("evil.sh", evil.to_owned()),
    ];
    repository(&one, &files).await;
    let second = r#"{"name":"two","version":"1.0.0"}"#.to_owned();
    repository(&two, &[("package.json", second)]).await;
    let cache = Cache::new(
        &project.path("cache"),
        Some(Installer::Npm(npm.0)),
        Spawner::new().unwrap(),
    );
    let request = format!("git+file://{}", one.display());
    let package = cache
        .get("git-plugin", "git-plugin", &request, |_| {})
        .await
        .unwrap();
    assert_eq!(package.version, "1.0.0");
    let temporary = cache.root().join(".installer/tmp");
    assert!(temporary.is_dir() && !temporary.join("ran").exists());
}

/// Whatever an installer is made to run reads and writes what the installation needs, and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn an_installer_is_in_a_sandbox() {
    let project = Project::new();
    let root = project.root.path().canonicalize().unwrap();
    let (program, secret) = (root.join("tool/bin/npm"), root.join("secret"));
    fs::write(&secret, "MARKER").unwrap();
    let text = format!(
        "#!/bin/sh\ntest \"$1\" = config && exit 1\ncat {secret} > stolen; touch {outside}; touch {other}/changed\n\
         mkdir -p node_modules/p && echo '{{\"version\":\"1.0.0\"}}' > node_modules/p/package.json\n",
        secret = secret.display(),
        outside = root.join("outside").display(),
        other = project.path("cache/plugins/other@1.0.0").display(),
    );
    script(&program, &text);
    fs::create_dir_all(project.path("cache/plugins/other@1.0.0")).unwrap();
    for installer in [
        Installer::Npm(program.clone()),
        Installer::Bun(program.clone()),
    ] {
        let name = installer.name().to_owned();
        let cache = Cache::new(
            &project.path("cache"),
            Some(installer),
            Spawner::new().unwrap(),
        );
        let package = cache.get(&name, "p", &name, |_| {}).await.unwrap();
        let stolen = package.dir.join("../../stolen");
        assert_eq!(fs::read_to_string(stolen).unwrap(), "", "{name}");
        assert!(!root.join("outside").exists(), "{name}");
        let other = cache.root().join("other@1.0.0/changed");
        assert!(!other.exists(), "{name}");
    }
}
