use super::*;
use outrigger_config::{PluginSource, PluginSpec};

fn registry(rules: &[PluginRules]) -> Registry {
    let plugins = rules
        .iter()
        .enumerate()
        .map(|(i, rules)| Plugin {
            rules: rules.clone(),
            group: Some(1),
            ..Plugin::found(
                format!("p{i}"),
                &PluginSpec {
                    spec: format!("p{i}"),
                    options: None,
                    declared_in: "opencode.json".into(),
                    source: PluginSource::Config,
                    scope: outrigger_config::PluginScope::Local,
                },
            )
        })
        .collect();
    Registry::new(plugins, Arc::new(|_| {}))
}

fn loaded(hooks: &[&[&str]]) -> LoadedPlugin {
    let instances = hooks
        .iter()
        .map(|hooks| Instance {
            hooks: hooks.iter().map(|h| (*h).to_owned()).collect(),
            ..Instance::default()
        })
        .collect();
    LoadedPlugin {
        instances,
        ..LoadedPlugin::default()
    }
}

fn order(registry: &Registry, point: &str) -> String {
    let bound = registry.bound(HookPoint::parse(point).unwrap());
    let names: Vec<String> = bound
        .iter()
        .flat_map(|b| b.iter())
        .map(|b| format!("{}.{}:{}", b.id, b.instance, b.hook))
        .collect();
    names.join(" ")
}

#[test]
fn order_aliases_and_failures() {
    let high = PluginRules {
        priority: 5,
        ..PluginRules::default()
    };
    let registry = registry(&[PluginRules::default(), PluginRules::default(), high]);
    assert!(registry.adopt(
        0,
        loaded(&[&["chat.message"], &["text.complete", "chat.message"]])
    ));
    assert!(registry.adopt(
        1,
        loaded(&[&[
            "experimental.text.complete",
            "text.complete",
            "unknown.hook"
        ]])
    ));
    assert!(registry.adopt(2, loaded(&[&["chat.message"]])));
    assert_eq!(
        order(&registry, "run.before_start"),
        "p2.0:chat.message p0.0:chat.message p0.1:chat.message"
    );
    assert_eq!(
        order(&registry, "llm.after_text"),
        "p0.1:text.complete p1.0:experimental.text.complete"
    );
    assert_eq!(order(&registry, "tool.before_call"), "");

    registry.off(
        0,
        &PluginError::Process {
            process: "x".into(),
            message: "gone".into(),
        },
    );
    assert_eq!(order(&registry, "run.before_start"), "p2.0:chat.message");
    let status = registry.list().remove(0).1;
    assert_eq!(
        (status.stage, status.cause.map(|c| c.at)),
        (Stage::Off, Some(Stage::Active))
    );
}

#[test]
fn hooks_of_several_instances_are_listed_once_and_called_each() {
    let registry = registry(&[PluginRules::default()]);
    assert!(registry.adopt(0, loaded(&[&["event", "chat.message"], &["event"]])));
    assert_eq!(registry.list()[0].1.hooks.join(" "), "event chat.message");
    assert_eq!(
        order(&registry, "session.on_event"),
        "p0.0:event p0.1:event"
    );
}

#[test]
fn a_plugin_that_needs_bun_waits_while_it_may_come() {
    let registry = registry(&[PluginRules::default()]);
    let problem = |needs_bun| LoadedPlugin {
        problems: vec![Problem {
            stage: "import".into(),
            message: "no bun here".into(),
            needs_bun,
        }],
        ..LoadedPlugin::default()
    };
    registry.may_wait_for_bun();
    assert!(!registry.adopt(0, problem(true)));
    assert_eq!(registry.list()[0].1.stage, Stage::Found);
    assert_eq!(registry.waiting().len(), 1);
    assert!(registry.waiting().is_empty());

    registry.no_bun("the registry is away".into());
    assert!(!registry.adopt(0, problem(true)));
    let cause = registry.list()[0].1.cause.clone().unwrap();
    insta::assert_snapshot!(cause.message, @"plugin p0 failed at import: no bun here; the registry is away");
    registry.may_wait_for_bun();
    assert!(!registry.adopt(0, problem(false)));
    assert!(registry.waiting().is_empty());
}

#[test]
fn a_plugin_without_instances_fails_by_its_first_problem() {
    let registry = registry(&[PluginRules::default(), PluginRules::default()]);
    let problem = Problem {
        stage: "import".into(),
        message: "Unexpected token".into(),
        needs_bun: false,
    };
    assert!(!registry.adopt(
        0,
        LoadedPlugin {
            problems: vec![problem],
            ..LoadedPlugin::default()
        }
    ));
    assert!(registry.adopt(1, LoadedPlugin::default()));
    let list = registry.list();
    let cause = list[0].1.cause.clone().unwrap();
    assert_eq!(
        (cause.code.as_str(), list[0].1.stage),
        ("plugin.import", Stage::Failed)
    );
    assert_eq!(
        (list[1].1.stage, list[1].1.warnings.len()),
        (Stage::Active, 1)
    );
}
