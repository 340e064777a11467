use super::environment::of_key;
use super::*;
use crate::settings::sections::PLUGIN_KEYS;
use crate::settings::{ChatMessage, Isolation, JsRuntime, Sandbox};
use outrigger_protocol::diagnose::Diagnose;

struct TestFolder {
    dir: tempfile::TempDir,
    options: LoadOptions,
}

impl TestFolder {
    fn new(files: &[(&str, &str)], env: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let at = |path: &str| dir.path().join(path);
        let env = env
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let options = LoadOptions::new(at("work/sub"), at("work"), at("home"), env);
        Self { dir, options }
    }

    fn load(&self) -> Result<SettingsLoaded, ConfigError> {
        let mut loaded = load(&self.options)?;
        loaded.project();
        Ok(loaded)
    }

    fn text(&self, text: impl ToString) -> String {
        text.to_string()
            .replace(&self.dir.path().display().to_string(), "")
    }
}

#[test]
fn defaults_alone() {
    let loaded = TestFolder::new(&[], &[("OUTRIGGER_DATA_DIR", "x"), ("OUTRIGGER", "x")])
        .load()
        .unwrap();
    assert_eq!(loaded.settings, Settings::default());
    assert!(
        loaded
            .origins
            .values()
            .all(|origin| *origin == Origin::Default)
    );
    assert!(loaded.problems.is_empty());
    let seen: Vec<String> = loaded
        .settings
        .list()
        .iter()
        .map(|(name, value)| format!("{name} = {value}"))
        .collect();
    insta::assert_snapshot!(seen.join("\n"), @r#"
        sandbox = "on"
        strict_plugins = false
        trust.projects = "trust"
        trust.changes = "ask"
        trust.world_writable = false
        discovery.profile = "minimal"
        discovery.paths = []
        discovery.allow = []
        discovery.deny = []
        discovery.renew_seconds = 10
        telegram.chats = []
        telegram.agent = null
        telegram.api = "https://api.telegram.org"
        js.runtime = "auto"
        js.bun = null
        js.node = null
        js.environment = "user"
        js.install = "ask"
        deadlines.fast_ms = 500
        deadlines.normal_ms = 5000
        deadlines.load_ms = 10000
        deadlines.slow_ms = 30000
        models.first_byte_ms = 120000
        models.idle_ms = 120000
        models.total_ms = 1800000
        models.max_retries = 5
        models.fetch_catalog = true
        models.catalog_url = "https://models.dev"
        tools.output_bytes = 51200
        tools.output_lines = 2000
        tools.websearch_url = "https://mcp.exa.ai/mcp"
        tools.bash_timeout_ms = 120000
        tools.skill_server_idle_ms = 300000
        tools.sandbox = "workspace-write"
        tools.unix_sockets = false
        tools.hosts = null
        tools.secrets = []
        tools.env = []
        tools.write = []
        tools.ports = []
        browser.enabled = false
        browser.program = null
        browser.url = null
        browser.extension = null
        browser.extension_port = 39223
        browser.headless = true
        browser.arguments = []
        browser.secrets = []
        browser.fields = []
        browser.ask = []
        browser.eval = false
        agent.max_steps = null
        agent.max_continuations = null
        agent.max_plugin_turns = null
        budget.turns = null
        budget.tokens = null
        budget.cents = null
        log.plugin_stderr_level = "warn"
        log.plugin_stderr_lines_per_second = 50
        limits.plugin_memory_mb = 2048
        limits.plugin_processes = 128
        limits.plugin_open_files = 4096
        limits.plugin_health_seconds = 30
        limits.plugin_inline_bytes = 65536
        limits.plugin_stored_mb = 128
        limits.plugin_stored_requests = 20000
        flags.plugin_seq_hooks = true
        flags.plugin_timeout_self_heal = true
        flags.plugin_circuit_breaker = true
        flags.plugin_large_payload_file_ipc = true
        flags.plugin_message_mirror = true
        claude.mcp = true
        claude.commands = true
        claude.hooks = true
        claude.plugins = []
        audit.keep_records = 200000
        audit.keep_days = 90
        network.allow = []
        tui.theme = null
        tui.colors = "auto"
        tui.editing = "emacs"
        tui.mouse = false
        tui.keys = {}
        "#);
}

#[test]
fn layers_and_provenance() {
    let place = TestFolder::new(
        &[
            (
                "home/.config/outrigger/outrigger.toml",
                "[js]\nruntime = \"bun\"\nbun = \"~/b/bun\"\n[agent]\nmax_steps = 1\n[tools]\noutput_lines = 10",
            ),
            (
                "work/outrigger.toml",
                "[js]\nruntime = \"node\"\nnode = \"bin/node\"\n[plugins.\"@a/b\"]\npriority = 1\ndisabled = true",
            ),
            (
                "work/sub/outrigger.toml",
                "[agent]\nmax_steps = 2\n[plugins.other-one]\nfail_closed = [\"chat.params\"]",
            ),
            (
                "work/sub/.outrigger/outrigger.toml",
                "sandbox = \"off\"\n[agent]\nmax_steps = 3\n[deadlines]\nslow_ms = 29999\nload_ms = 10001",
            ),
        ],
        &[
            ("OUTRIGGER_TOOLS_OUTPUT_LINES", "20"),
            ("OUTRIGGER_BUN", "/opt/bun"),
            ("OUTRIGGER_FLAGS_PLUGIN_SEQ_HOOKS", "0"),
            ("OUTRIGGER_PLUGINS__A_B_PRIORITY", "-5"),
            ("OUTRIGGER_PLUGINS_OTHER_ONE_ISOLATION", "own"),
            ("OUTRIGGER_PLUGINS_OTHER_ONE_CHAT_MESSAGE", "assistant"),
            (
                "OUTRIGGER_PLUGINS_OTHER_ONE_FAIL_CLOSED",
                "tool.execute.before, chat.params",
            ),
            ("OUTRIGGER_JS_RUNTME", "bun"),
        ],
    );
    let loaded = place.load().unwrap();
    let settings = &loaded.settings;
    assert_eq!(
        (settings.sandbox, settings.js.runtime),
        (Sandbox::On, JsRuntime::Bun)
    );
    assert_eq!(settings.plugin("other-one").isolation, Isolation::Own);
    assert_eq!(
        settings.plugin("other-one").chat_message,
        ChatMessage::Assistant
    );
    assert_eq!(
        settings.plugin("unknown"),
        crate::settings::Plugin::default()
    );
    let values = settings.list();
    let set = values
        .iter()
        .filter(|(name, _)| loaded.origins[name] != Origin::Default);
    let mut seen: Vec<String> = set
        .map(|(name, value)| place.text(format!("{name} = {value}  # {}", loaded.origins[name])))
        .collect();
    seen.extend(loaded.problems.iter().map(|problem| place.text(problem)));
    insta::assert_snapshot!(seen.join("\n"), @r#"
        js.runtime = "bun"  # /home/.config/outrigger/outrigger.toml:2:11
        js.bun = "/opt/bun"  # environment OUTRIGGER_BUN
        plugins."@a/b".priority = -5  # environment OUTRIGGER_PLUGINS__A_B_PRIORITY
        plugins."@a/b".disabled_in_project = true  # /work/outrigger.toml:6:12
        plugins.other-one.isolation = "own"  # environment OUTRIGGER_PLUGINS_OTHER_ONE_ISOLATION
        plugins.other-one.chat_message = "assistant"  # environment OUTRIGGER_PLUGINS_OTHER_ONE_CHAT_MESSAGE
        plugins.other-one.fail_closed = ["tool.execute.before","chat.params"]  # environment OUTRIGGER_PLUGINS_OTHER_ONE_FAIL_CLOSED
        tools.output_lines = 20  # environment OUTRIGGER_TOOLS_OUTPUT_LINES
        agent.max_steps = 1  # /home/.config/outrigger/outrigger.toml:5:13
        flags.plugin_seq_hooks = false  # environment OUTRIGGER_FLAGS_PLUGIN_SEQ_HOOKS
        /work/outrigger.toml: js.node: ignored: a project cannot loosen its own sandbox; set it in the user's outrigger.toml or the environment
        /work/outrigger.toml: js.runtime: ignored: a project says nothing about what is the user's; set it in the user's outrigger.toml or the environment
        /work/sub/outrigger.toml: agent.max_steps: ignored: a project lowers a limit of the user's and does not raise it; set it in the user's outrigger.toml or the environment
        /work/sub/.outrigger/outrigger.toml: agent.max_steps: ignored: a project lowers a limit of the user's and does not raise it; set it in the user's outrigger.toml or the environment
        /work/sub/.outrigger/outrigger.toml: deadlines.load_ms: ignored: a project says nothing about what is the user's; set it in the user's outrigger.toml or the environment
        /work/sub/.outrigger/outrigger.toml: deadlines.slow_ms: ignored: a project says nothing about what is the user's; set it in the user's outrigger.toml or the environment
        /work/sub/.outrigger/outrigger.toml: sandbox: ignored: a project cannot loosen its own sandbox; set it in the user's outrigger.toml or the environment
        OUTRIGGER_JS_RUNTME: no setting has this variable; did you mean OUTRIGGER_JS_RUNTIME?
        "#);
}

#[test]
fn what_a_plugin_is_granted_is_the_users_to_say() {
    let user = "[plugins.acme]\nenv = [\"ACME_KEY\", \"B\"]\nports = [1455]\n";
    let project = "[plugins.acme]\nenv = [\"OTHER_KEY\"]\nports = [80]\npriority = 3\n";
    let files = [
        ("home/.config/outrigger/outrigger.toml", user),
        ("work/outrigger.toml", project),
    ];
    let loaded = TestFolder::new(&files, &[]).load().unwrap();
    let acme = loaded.settings.plugin("acme");
    assert_eq!(
        (acme.env, acme.ports, acme.priority),
        (vec!["ACME_KEY".to_owned(), "B".to_owned()], vec![1455], 3)
    );
    let reported: Vec<&str> = loaded
        .problems
        .iter()
        .filter_map(|problem| problem.pointer.as_deref())
        .collect();
    assert_eq!(reported, ["plugins.acme.env", "plugins.acme.ports"]);
    let variables = [
        ("OUTRIGGER_PLUGINS_ACME_ENV", "X_KEY, Y_KEY"),
        ("OUTRIGGER_PLUGINS_ACME_PORTS", "1,2"),
    ];
    let acme = TestFolder::new(&files, &variables).load().unwrap();
    let acme = acme.settings.plugin("acme");
    assert_eq!(
        (acme.env, acme.ports),
        (vec!["X_KEY".to_owned(), "Y_KEY".to_owned()], vec![1, 2])
    );
}

/// What a project's file sets although the user has the setting.
#[test]
fn a_project_sets_nothing_that_is_about_plugins_and_hooks_of_the_user() {
    let counted: Vec<&str> = keys::all()
        .filter(|key| {
            let value = key.schema.example().to_string().replace("\":", "\" = ");
            let (table, name) = key.name.split_once('.').unwrap_or(("", key.name));
            let header = match table {
                "" => String::new(),
                table => format!("[{table}]\n"),
            };
            let toml = format!("{header}{name} = {value}\n");
            let files = [("work/outrigger.toml", toml.as_str())];
            let with = TestFolder::new(&files, &[]).load().unwrap();
            let reported = with
                .problems
                .iter()
                .any(|it| it.pointer.as_deref() == Some(key.name));
            let is_default = with.origins[key.name] == Origin::Default;
            assert_eq!(
                reported, is_default,
                "{}: it counts, or it is reported",
                key.name
            );
            !is_default
        })
        .map(|key| key.name)
        .collect();
    assert_eq!(
        counted,
        [
            "models.first_byte_ms",
            "models.idle_ms",
            "models.total_ms",
            "models.max_retries",
            "tools.output_bytes",
            "tools.output_lines",
            "tools.bash_timeout_ms",
            "tools.skill_server_idle_ms",
            "agent.max_steps",
            "claude.mcp",
            "claude.commands",
        ],
        "none of these makes a plugin or hook of the user's run less"
    );
    let of_plugins: Vec<&str> = PLUGIN_KEYS
        .iter()
        .filter(|key| !matches!(key.project, ProjectFile::Security | ProjectFile::UserOnly))
        .map(|key| key.name)
        .collect();
    assert_eq!(
        of_plugins,
        [
            "isolation",
            "priority",
            "chat_message",
            "timeout_ms",
            "fail_closed",
            "disabled"
        ],
        "for what the project contributes"
    );
}

#[test]
fn wrong_variables_are_named() {
    for (name, value, expected) in [
        (
            "OUTRIGGER_SANDBOX",
            "no",
            "OUTRIGGER_SANDBOX: setting `sandbox`: expected \"on\", \"off\" or \"strict\", found \"no\"",
        ),
        (
            "OUTRIGGER_AGENT_MAX_STEPS",
            "many",
            "OUTRIGGER_AGENT_MAX_STEPS: setting `agent.max_steps`: expected a whole number from 1, found \"many\"",
        ),
        (
            "OUTRIGGER_AUDIT_KEEP_RECORDS",
            "9999",
            "OUTRIGGER_AUDIT_KEEP_RECORDS: setting `audit.keep_records`: expected a whole number from 10000, found \"9999\"",
        ),
        (
            "OUTRIGGER_AUDIT_KEEP_DAYS",
            "6",
            "OUTRIGGER_AUDIT_KEEP_DAYS: setting `audit.keep_days`: expected a whole number from 7, found \"6\"",
        ),
    ] {
        let error = TestFolder::new(&[], &[(name, value)]).load().unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(error.code(), "config.setting");
    }
}

#[test]
fn every_key_changes_its_setting() {
    let defaults: BTreeMap<String, serde_json::Value> =
        Settings::default().list().into_iter().collect();
    let mut names: Vec<String> = defaults.keys().cloned().collect();
    for key in keys::all() {
        let text = match key.schema.plain() {
            // Not its default, whichever that is.
            Schema::Boolean => (defaults[key.name] == false).to_string(),
            Schema::Integer { min, .. } => (min + 77).to_string(),
            Schema::Word(words) => words[words.len() - 1].into(),
            Schema::List(item) => item.example().to_string().replace('"', ""),
            Schema::Map(_) => "session_new=ctrl+n;app_exit=none".into(),
            other => other.example().as_str().unwrap().to_owned(),
        };
        let loaded = TestFolder::new(&[], &[(&of_key(key.name), &text)])
            .load()
            .unwrap();
        assert_ne!(loaded.settings, Settings::default(), "{}", key.name);
        let changed = loaded
            .origins
            .iter()
            .filter(|(_, origin)| **origin != Origin::Default);
        assert_eq!(
            changed.map(|(name, _)| name.as_str()).collect::<Vec<_>>(),
            [key.name]
        );
        names.retain(|name| name != key.name);
    }
    assert!(names.is_empty(), "settings without a key: {names:?}");
}

/// Whatever the schema of a setting accepts, its type holds: each word, and the ends of each range.
#[test]
fn schemas_accept_what_types_hold() {
    for key in keys::all() {
        for value in values_of(&key.schema) {
            (key.apply)(&mut Settings::default(), value);
        }
    }
    for key in PLUGIN_KEYS {
        for value in values_of(&key.schema) {
            (key.apply)(&mut crate::settings::Plugin::default(), value);
        }
    }
}

fn values_of(schema: &Schema) -> Vec<Value> {
    match schema.plain() {
        Schema::Word(words) => words.iter().map(|word| (*word).into()).collect(),
        Schema::Integer { min, max } => vec![(*min).into(), (*max).into()],
        Schema::List(item) => values_of(item)
            .into_iter()
            .map(|it| Value::from([it]))
            .collect(),
        other => vec![other.example()],
    }
}
