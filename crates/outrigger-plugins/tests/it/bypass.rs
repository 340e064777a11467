//! Attempts to start a plugin that is not what the user trusted (trust by content). Each row is one attempt; all of them are
//! refused, by a stable code.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use outrigger_config::settings::{TrustChanges, TrustProjects};
use outrigger_config::{PluginScope, PluginSource, PluginSpec};
use outrigger_plugins::{
    ReviewOptions, Reviewed, TRUST_FILE, TrustFn, TrustQuestion, accept, review,
};
use outrigger_protocol::diagnose::Diagnose;
use outrigger_sandbox::Spawner;

use crate::support::*;

/// A project with one plugin of several files, trusted by its first use.
struct Trusted {
    project: Project,
    plugins: Vec<PluginSpec>,
}

const ENTRY: &str = "import '#inner'\nimport { help } from './lib/help.js'\nimport dep from 'dep'\nexport default async () => ({ 'experimental.chat.system.transform': async (i, o) => { o.system.push(help + dep) } })\n";

impl Trusted {
    async fn new() -> Self {
        let project = Project::new();
        let at = |name: &str| project.path("project/.opencode").join(name);
        for (name, text) in [
            ("plugin/guard.mjs", ENTRY),
            ("plugin/lib/help.js", "export const help = 'help'\n"),
            (
                "package.json",
                r##"{"type":"module","version":"1.0.0","imports":{"#inner":{"node":"./inner.js","bun":"./inner.js"}}}"##,
            ),
            ("inner.js", ""),
            (
                "node_modules/dep/package.json",
                r#"{"name":"dep","type":"module","main":"index.js","dependencies":{"deep":"1"}}"#,
            ),
            (
                "node_modules/dep/index.js",
                "import d from 'deep'\nexport default 'dep' + d\n",
            ),
            (
                "node_modules/deep/package.json",
                r#"{"name":"deep","type":"module","main":"index.js"}"#,
            ),
            ("node_modules/deep/index.js", "export default 'deep'\n"),
            ("unrelated.json", "{}"),
        ] {
            fs::create_dir_all(at(name).parent().unwrap()).unwrap();
            fs::write(at(name), text).unwrap();
        }
        let plugins = vec![found(&at("plugin/guard.mjs"))];
        let trusted = Self { project, plugins };
        assert_eq!(trusted.start().await, "guard active");
        trusted
    }

    fn at(&self, name: &str) -> PathBuf {
        self.project.path("project/.opencode").join(name)
    }

    fn change(&self, name: &str, text: &str) {
        fs::write(self.at(name), text).unwrap();
    }

    /// Starts the plugins and returns the stage of each.
    async fn start(&self) -> String {
        let plugins = self.project.load(self.plugins.clone()).await;
        let listed = listed(&plugins);
        plugins.dispose(std::time::Duration::from_secs(5)).await;
        listed
    }

    fn review(&self) -> ReviewOptions {
        ReviewOptions {
            plugins: self.plugins.clone(),
            rules: self.project.settings.trust.clone(),
            data: self.project.path("data"),
            cache: self.project.path("cache"),
            project: self.project.path("project"),
            spawner: Spawner::new().unwrap(),
        }
    }

    /// Returns the project's trust file.
    fn lock(&self) -> PathBuf {
        let folders = fs::read_dir(self.project.path("data/trust")).unwrap();
        let mut locks = folders.map(|folder| folder.unwrap().path().join(TRUST_FILE));
        locks.next().unwrap()
    }
}

fn found(path: &Path) -> PluginSpec {
    PluginSpec {
        spec: format!("file://{}", path.display()),
        options: None,
        declared_in: path.parent().unwrap().parent().unwrap().to_owned(),
        source: PluginSource::Auto,
        scope: PluginScope::Local,
    }
}

/// Attempts by name, with the code that they are refused by.
type Row = (&'static str, fn(&mut Trusted), &'static str);

const CHANGED: &str = "guard failed plugin.changed";

const ROWS: &[Row] = &[
    (
        "the entry is changed",
        |t| t.change("plugin/guard.mjs", "export default async () => ({})"),
        CHANGED,
    ),
    (
        "what the entry imports is changed",
        |t| t.change("plugin/lib/help.js", "export const help = 'evil'\n"),
        CHANGED,
    ),
    (
        "a package that the entry imports is changed",
        |t| t.change("node_modules/dep/index.js", "export default 'evil'\n"),
        CHANGED,
    ),
    (
        "a file is added to a package that the entry imports",
        |t| t.change("node_modules/dep/more.js", ""),
        CHANGED,
    ),
    (
        "a package that such a package depends on is changed",
        |t| t.change("node_modules/deep/index.js", "export default 'evil'\n"),
        CHANGED,
    ),
    (
        "what a name of package.json leads to is changed",
        |t| t.change("inner.js", "globalThis.evil = true\n"),
        CHANGED,
    ),
    (
        "an import is led elsewhere by package.json",
        |t| {
            t.change(
                "package.json",
                r##"{"type":"module","imports":{"#x":"./evil.js"}}"##,
            )
        },
        CHANGED,
    ),
    (
        "an import is led elsewhere by a new tsconfig.json",
        |t| {
            t.change(
                "tsconfig.json",
                r#"{"compilerOptions":{"paths":{"dep":["./evil.js"]}}}"#,
            )
        },
        CHANGED,
    ),
    (
        "a nearer package is put before the one that was trusted",
        |t| {
            fs::create_dir_all(t.at("plugin/node_modules/dep")).unwrap();
            t.change(
                "plugin/node_modules/dep/package.json",
                r#"{"name":"dep","type":"module","main":"i.js"}"#,
            );
            t.change("plugin/node_modules/dep/i.js", "export default 'evil'\n");
        },
        CHANGED,
    ),
    (
        "the entry is swapped for a link",
        |t| {
            t.change("evil.mjs", "export default async () => ({})");
            fs::remove_file(t.at("plugin/guard.mjs")).unwrap();
            symlink(t.at("evil.mjs"), t.at("plugin/guard.mjs")).unwrap();
        },
        CHANGED,
    ),
    (
        "the folder of an import is swapped for a link",
        |t| {
            fs::create_dir(t.at("evil")).unwrap();
            t.change("evil/help.js", "export const help = 'evil'\n");
            fs::remove_dir_all(t.at("plugin/lib")).unwrap();
            symlink(t.at("evil"), t.at("plugin/lib")).unwrap();
        },
        CHANGED,
    ),
    (
        "a package is swapped for a link",
        |t| {
            fs::rename(t.at("node_modules/dep"), t.at("node_modules/dep2")).unwrap();
            fs::create_dir(t.at("evil")).unwrap();
            t.change(
                "evil/package.json",
                r#"{"name":"dep","type":"module","main":"index.js"}"#,
            );
            t.change("evil/index.js", "export default 'evil'\n");
            symlink(t.at("evil"), t.at("node_modules/dep")).unwrap();
        },
        CHANGED,
    ),
    (
        "the text keeps its size and its time of modification",
        |t| {
            let file = t.at("plugin/lib/help.js");
            let time = fs::metadata(&file).unwrap().modified().unwrap();
            fs::write(&file, "export const help = 'evil'\n").unwrap();
            fs::File::options()
                .write(true)
                .open(&file)
                .unwrap()
                .set_modified(time)
                .unwrap();
        },
        CHANGED,
    ),
    (
        "a file is made executable",
        |t| {
            fs::set_permissions(
                t.at("plugin/lib/help.js"),
                fs::Permissions::from_mode(0o755),
            )
            .unwrap();
        },
        CHANGED,
    ),
    (
        "a plugin is added to a project whose plugins were trusted",
        |t| {
            t.change("plugin/evil.mjs", "export default async () => ({})");
            let evil = found(&t.at("plugin/evil.mjs"));
            t.plugins.push(evil);
        },
        "guard active\nevil failed plugin.untrusted",
    ),
    (
        "a plugin is renamed, so that nothing is known of it",
        |t| {
            fs::rename(t.at("plugin/guard.mjs"), t.at("plugin/other.mjs")).unwrap();
            t.plugins = vec![found(&t.at("plugin/other.mjs"))];
        },
        "other failed plugin.untrusted",
    ),
    (
        "the folder may be written to by everybody",
        |t| {
            fs::set_permissions(t.at("plugin"), fs::Permissions::from_mode(0o777)).unwrap();
        },
        "guard failed plugin.world_writable",
    ),
    (
        "a folder above may be written to by everybody",
        |t| {
            fs::set_permissions(t.at("."), fs::Permissions::from_mode(0o777)).unwrap();
        },
        "guard failed plugin.world_writable",
    ),
    (
        "an imported file may be written to by everybody",
        |t| {
            fs::set_permissions(
                t.at("plugin/lib/help.js"),
                fs::Permissions::from_mode(0o666),
            )
            .unwrap();
        },
        "guard failed plugin.world_writable",
    ),
    (
        "the project's own lock says that a changed plugin is right",
        |t| {
            t.change("plugin/guard.mjs", "export default async () => ({})");
            let own = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
            let hash = t.lock();
            let hash = fs::read_to_string(hash).unwrap().replace("sha256:", "");
            assert!(!hash.is_empty());
            let text =
                format!(r#"{{"version":1,"plugins":{{".opencode/plugin/other.mjs":"{own}"}}}}"#);
            fs::write(t.project.path("project").join(TRUST_FILE), text).unwrap();
        },
        CHANGED,
    ),
    (
        "the project pins something else",
        |t| {
            let own = "sha256:0000000000000000000000000000000000000000000000000000000000000000";
            let text =
                format!(r#"{{"version":1,"plugins":{{".opencode/plugin/guard.mjs":"{own}"}}}}"#);
            fs::write(t.project.path("project").join(TRUST_FILE), text).unwrap();
        },
        "guard failed plugin.not_pinned",
    ),
    (
        "the project's lock is broken",
        |t| {
            fs::write(t.project.path("project").join(TRUST_FILE), "{").unwrap();
        },
        "guard failed plugin.trust_file",
    ),
    (
        "what is trusted is broken",
        |t| fs::write(t.lock(), "{").unwrap(),
        "guard failed plugin.unreviewable",
    ),
    (
        "the list of files is removed and the plugin changed",
        |t| {
            let folder = t.lock().parent().unwrap().to_owned();
            for file in fs::read_dir(folder)
                .unwrap()
                .map(|file| file.unwrap().path())
            {
                if file.extension().is_some_and(|it| it == "json") {
                    fs::remove_file(file).unwrap();
                }
            }
            t.change("plugin/lib/help.js", "export const help = 'evil'\n");
        },
        CHANGED,
    ),
    (
        "the list of files is edited to look like the changed ones",
        |t| {
            t.change("plugin/lib/help.js", "export const help = 'evil'\n");
            let folder = t.lock().parent().unwrap().to_owned();
            for file in fs::read_dir(folder)
                .unwrap()
                .map(|file| file.unwrap().path())
            {
                if file.extension().is_some_and(|it| it == "json") {
                    fs::write(file, r#"{"at":0,"files":{}}"#).unwrap();
                }
            }
        },
        CHANGED,
    ),
    (
        "projects are denied and this one was never trusted",
        |t| {
            t.project.settings.trust.projects = TrustProjects::Deny;
            t.change("plugin/evil.mjs", "export default async () => ({})");
            t.plugins = vec![found(&t.at("plugin/evil.mjs"))];
        },
        "evil failed plugin.untrusted",
    ),
    (
        "the import becomes a pipe that nobody writes to",
        |t| {
            let file = t.at("plugin/lib/help.js");
            fs::remove_file(&file).unwrap();
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, &file, rustix::fs::FileType::Fifo, mode, 0)
                .unwrap();
        },
        CHANGED,
    ),
    (
        "a link leads to the whole machine",
        |t| {
            t.project.settings.trust.world_writable = true;
            symlink("/", t.at("node_modules/dep/all")).unwrap();
        },
        "guard failed plugin.unreviewable",
    ),
];

#[tokio::test]
async fn every_way_around_trust_is_refused() {
    let mut wrong = Vec::new();
    for (name, attempt, want) in ROWS {
        let mut trusted = Trusted::new().await;
        attempt(&mut trusted);
        let got = trusted.start().await;
        if got != *want {
            wrong.push(format!("{name}: {got:?} instead of {want:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(ROWS.len() >= 20);
}

#[tokio::test]
async fn what_does_not_change_the_plugin_is_not_asked_about() {
    let trusted = Trusted::new().await;
    trusted.change("unrelated.json", "{\"a\":1}");
    trusted.change("plugin/notes.md", "hello");
    trusted.change(
        "package.json",
        r##"{"type":"module","version":"2.0.0","dependencies":{"x":"1"},"imports":{"#inner":{"node":"./inner.js","bun":"./inner.js"}}}"##,
    );
    // Written again unchanged.
    trusted.change("plugin/guard.mjs", ENTRY);
    assert_eq!(trusted.start().await, "guard active");
    assert_eq!(trusted.start().await, "guard active");
}

fn answers(yes: bool, asked: &Arc<Mutex<Vec<TrustQuestion>>>) -> Option<TrustFn> {
    let asked = Arc::clone(asked);
    Some(Arc::new(move |question| {
        asked.lock().unwrap().push(question);
        Box::pin(async move { yes })
    }))
}

#[tokio::test]
async fn a_person_is_asked_once_and_shown_what_changed() {
    let mut trusted = Trusted::new().await;
    trusted.change("plugin/lib/help.js", "export const help = 'better'\n");
    let asked = Arc::default();
    trusted.project.trust = answers(false, &asked);
    assert_eq!(trusted.start().await, CHANGED);
    trusted.project.trust = answers(true, &asked);
    assert_eq!(trusted.start().await, "guard active");
    // The answer is effective from then on.
    assert_eq!(trusted.start().await, "guard active");
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    insta::assert_snapshot!(format!("{}: {}\n{}", asked[1].plugin, asked[1].reason, asked[1].details), @r"
    guard: its files are not those that were trusted
      changed  lib/help.js  27 -> 29 bytes
        @@ -1 +1 @@
        -export const help = 'help'
        +export const help = 'better'

    ");
}

#[tokio::test]
async fn a_review_accepts_what_it_showed_and_nothing_else() {
    let trusted = Trusted::new().await;
    trusted.change("plugin/lib/help.js", "export const help = 'better'\n");
    let options = trusted.review();
    let shown = review(&options, Some("guard")).await;
    assert_eq!(shown[0].state, Reviewed::Changed);
    assert_eq!(review(&options, Some("other")).await.len(), 0);
    // Between the review and the answer.
    trusted.change("plugin/lib/help.js", "export const help = 'evil'\n");
    let error = accept(&options, &shown, true, 1).await.unwrap_err();
    assert_eq!(error.code(), "plugin.changed");
    assert_eq!(trusted.start().await, CHANGED);
    trusted.change("plugin/lib/help.js", "export const help = 'better'\n");
    accept(&options, &shown, true, 1).await.unwrap();
    assert_eq!(trusted.start().await, "guard active");
    // It is pinned for everyone now; another change is refused even if it is trusted.
    trusted.change("plugin/lib/help.js", "export const help = 'evil'\n");
    let shown = review(&options, None).await;
    assert!(shown[0].reason.as_ref().unwrap().contains("outrigger.lock"));
    accept(&options, &shown, false, 1).await.unwrap();
    assert_eq!(trusted.start().await, "guard failed plugin.not_pinned");
}

#[tokio::test]
async fn settings_decide_about_projects_and_changes() {
    let mut trusted = Trusted::new().await;
    trusted.project.settings.trust.changes = TrustChanges::Allow;
    trusted.change("plugin/lib/help.js", "export const help = 'better'\n");
    assert_eq!(trusted.start().await, "guard active");
    trusted.project.settings.trust.world_writable = true;
    fs::set_permissions(trusted.at("plugin"), fs::Permissions::from_mode(0o777)).unwrap();
    assert_eq!(trusted.start().await, "guard active");
    trusted.project.settings.trust.projects = TrustProjects::Ask;
    trusted.change("plugin/more.mjs", "export default async () => ({})");
    let more = found(&trusted.at("plugin/more.mjs"));
    trusted.plugins.push(more.clone());
    assert_eq!(
        trusted.start().await,
        "guard active\nmore failed plugin.untrusted"
    );
    // Plugins in the user's own configuration are their own.
    trusted.plugins[1].scope = PluginScope::Global;
    assert!(
        trusted
            .start()
            .await
            .starts_with("guard active\nmore active")
    );
}

/// A file that changes while it is loaded, and is restored before the next check.
#[tokio::test]
async fn a_file_that_is_swapped_while_it_is_loaded_costs_the_process() {
    let mut project = Project::new();
    // In a sandbox it cannot write there at all.
    project.settings.sandbox = false;
    let file = project.path("project/.opencode/plugin/swap.mjs");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    let source = "import fs from 'node:fs'\nconst me = new URL(import.meta.url).pathname\nconst text = fs.readFileSync(me)\nif (fs.existsSync(me + '.on')) { fs.writeFileSync(me, 'evil'); fs.writeFileSync(me, text) }\nexport default async () => ({})\n";
    fs::write(&file, source).unwrap();
    let trusted = Trusted {
        plugins: vec![found(&file)],
        project,
    };
    assert_eq!(trusted.start().await, "swap active");
    fs::write(file.with_file_name("swap.mjs.on"), "").unwrap();
    assert_eq!(trusted.start().await, "swap failed plugin.changed");
}

/// Another program of the user replaces a file between the check and the import, or a link to one. In a sandbox the plugin
/// cannot do that to its own code; the code that runs is the code that was checked.
#[tokio::test]
async fn code_that_is_swapped_by_another_program_does_not_run() {
    const WAITS: &str = "import fs from 'node:fs'
const at = (name) => process.cwd() + '/' + name
if (fs.existsSync(at('race'))) {
  fs.writeFileSync(at('waits'), '')
  for (let i = 0; i < 2000 && !fs.existsSync(at('go')); i += 1) await new Promise((done) => setTimeout(done, 5))
}
const dep = await import('dep').catch(() => ({}))
const inner = await import('./inner.mjs').catch(() => ({}))
dep.run?.(at('dep'))
inner.run?.(at('inner'))
export default async () => ({})
";
    const EVIL: &str = "import fs from 'node:fs'
fs.writeFileSync(process.cwd() + '/evil', '')
export const run = () => {}
";
    const RUN: &str =
        "import fs from 'node:fs'\nexport const run = (file) => fs.writeFileSync(file, '')\n";
    let project = Project::new();
    let at = |name: &str| project.path("project").join(name);
    let put = |name: &str, text: &str| {
        let file = at(".opencode").join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    };
    let manifest = |main: &str| format!(r#"{{"name":"dep","type":"module","main":"{main}"}}"#);
    put("plugin/waits.mjs", WAITS);
    put("plugin/inner.mjs", RUN);
    put("node_modules/dep/package.json", &manifest("i.js"));
    put("node_modules/dep/i.js", RUN);
    put("evil.mjs", EVIL);
    let [race, waits, go, evil] = ["race", "waits", "go", "evil"].map(at);
    let entry = at(".opencode/plugin/waits.mjs");
    let ran = ["dep", "inner"].map(at);
    let trusted = Trusted {
        plugins: vec![found(&entry)],
        project,
    };
    assert_eq!(trusted.start().await, "waits active");
    assert!(ran.iter().all(|it| it.exists()));
    fs::write(&race, "").unwrap();
    for (what, swapped) in [
        ("a source", vec![("plugin/inner.mjs", EVIL.to_owned())]),
        (
            "what a package begins with",
            vec![("node_modules/dep/package.json", manifest("../../evil.mjs"))],
        ),
        (
            "a nearer package",
            vec![
                ("plugin/node_modules/dep/package.json", manifest("i.js")),
                ("plugin/node_modules/dep/i.js", EVIL.to_owned()),
            ],
        ),
    ] {
        for file in [&waits, &go].into_iter().chain(&ran) {
            let _ = fs::remove_file(file);
        }
        let before: Vec<_> = swapped
            .iter()
            .map(|(name, _)| fs::read_to_string(trusted.at(name)).ok())
            .collect();
        let swap = async {
            while !waits.exists() {
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            for (name, text) in &swapped {
                fs::create_dir_all(trusted.at(name).parent().unwrap()).unwrap();
                fs::write(trusted.at(name), text).unwrap();
            }
            fs::write(&go, "").unwrap();
        };
        let (listed, ()) = tokio::join!(trusted.start(), swap);
        assert_eq!(listed, "waits failed plugin.changed", "{what}");
        assert!(!evil.exists(), "{what}");
        for ((name, _), before) in swapped.iter().zip(before) {
            match before {
                Some(text) => fs::write(trusted.at(name), text).unwrap(),
                None => fs::remove_file(trusted.at(name)).unwrap(),
            }
        }
        let _ = fs::remove_dir_all(trusted.at("plugin/node_modules"));
    }
}
