use outrigger_config::settings::Isolation;
use outrigger_kernel::hooks::Deadline;
use outrigger_protocol::diagnose::Diagnose;

use super::*;

#[test]
fn from_outrigger_toml() {
    let mut settings = Settings {
        sandbox: Sandbox::Off,
        ..Settings::default()
    };
    settings.deadlines.normal_ms = 700;
    settings.log.plugin_stderr_level = "off".into();
    settings.flags.plugin_timeout_self_heal = false;
    settings.plugins.insert(
        "guard".into(),
        outrigger_config::settings::Plugin {
            isolation: Isolation::Own,
            priority: 9,
            timeout_ms: Some(200),
            ..Default::default()
        },
    );
    let ours = PluginSettings::from(&settings);
    assert_eq!(
        (ours.sandbox, ours.self_heal, ours.output.lines_per_second),
        (false, false, 0)
    );
    assert_eq!(
        ours.deadlines.of(Deadline::Normal),
        Duration::from_millis(700)
    );
    assert_eq!(
        PluginSettings::from(&Settings::default()),
        PluginSettings::default()
    );
    let rules = ours.rules("guard#2", "guard@^1", PluginScope::Local);
    assert_eq!(
        (rules.isolation, rules.priority, rules.hook_deadline),
        (Isolation::Own, 9, Some(Duration::from_millis(200)))
    );
    assert_eq!(
        ours.rules("other", "./guard.ts", PluginScope::Local),
        PluginRules::default()
    );
}

#[test]
fn a_guard_is_one_by_whichever_name_and_a_project_changes_nothing_about_it() {
    use outrigger_config::settings::Plugin;
    let guard = Plugin {
        fail_closed: vec!["tool.execute.before".into()],
        timeout_ms: Some(900),
        ..Plugin::default()
    };
    let of_project = Plugin {
        timeout_ms: Some(1),
        priority: -9,
        ..Plugin::default()
    };
    let late = Duration::from_millis(1);
    for (guarded, changed, spec, deadline) in [
        // Package and id are two names of one plugin.
        (
            "@acme/guard",
            "guard",
            "@acme/guard@1",
            Duration::from_millis(900),
        ),
        (
            "@acme/guard@1",
            "@acme/guard",
            "@acme/guard@1",
            Duration::from_millis(900),
        ),
        // Another one is nobody's guard.
        ("@acme/guard", "guard", "other", late),
    ] {
        let mut settings = Settings::default();
        settings.plugins.insert(guarded.into(), guard.clone());
        settings.plugins.insert(changed.into(), of_project.clone());
        settings.guards.insert(guarded.into());
        settings
            .without_project
            .insert(changed.into(), Plugin::default());
        let ours = PluginSettings::from(&settings);
        let rules = ours.rules("guard", spec, PluginScope::Local);
        assert_eq!(
            rules.hook_deadline,
            Some(deadline),
            "{guarded} {changed} {spec}"
        );
        let kept = deadline != late;
        assert_eq!(
            (rules.priority == 0, !rules.fail_closed.is_empty()),
            (kept, kept)
        );
        let package = outrigger_config::package_name(spec);
        let refused = ours.refused_of_project(&["guard", &package, spec], PluginScope::Local);
        assert_eq!(refused.is_some(), kept, "{refused:?}");
    }
}

#[test]
fn a_project_changes_nothing_about_a_plugin_that_it_does_not_bring() {
    let mut settings = Settings::default();
    use outrigger_config::settings::Plugin;
    let user = Plugin {
        priority: 1,
        ..Plugin::default()
    };
    let changed = Plugin {
        priority: 2,
        timeout_ms: Some(1),
        isolation: Isolation::Shared,
        chat_message: outrigger_config::settings::ChatMessage::Assistant,
        ..Plugin::default()
    };
    for name in ["mine", "./mine.ts"] {
        settings.plugins.insert(name.into(), changed.clone());
    }
    settings.without_project.insert("mine".into(), user.clone());
    settings
        .without_project
        .insert("./mine.ts".into(), Plugin::default());
    let ours = PluginSettings::from(&settings);
    for (scope, want) in [(PluginScope::Global, &user), (PluginScope::Local, &changed)] {
        let rules = ours.rules("mine", "./mine.ts", scope);
        assert_eq!(rules, PluginRules::from(want), "{scope:?}");
        let refused = ours.refused_of_project(&["mine", "./mine.ts"], scope);
        assert_eq!(
            refused.is_some(),
            scope == PluginScope::Global,
            "{refused:?}"
        );
    }
    // It may be stricter about any.
    settings
        .plugins
        .entry("mine".into())
        .or_default()
        .fail_closed = vec!["chat.params".into()];
    let rules = PluginSettings::from(&settings).rules("mine", "mine", PluginScope::Global);
    assert_eq!((rules.priority, rules.fail_closed.len()), (1, 1));
}

#[test]
fn a_runtime_that_is_asked_for_is_not_replaced_by_the_other() {
    let settings = |runtime| PluginSettings {
        js: Js {
            runtime,
            ..Js::default()
        },
        ..PluginSettings::default()
    };
    let nowhere = Lookup::default();
    for (wanted, says) in [
        (Wanted::Auto, "no JavaScript runtime found"),
        (Wanted::Bun, "no JavaScript runtime found"),
        (Wanted::Node, "node named by the settings does not exist"),
    ] {
        let error = settings(wanted).runtime(&nowhere).unwrap_err();
        assert_eq!(error.code(), "plugin.no_runtime");
        assert!(error.to_string().contains(says), "{error}");
    }
}
