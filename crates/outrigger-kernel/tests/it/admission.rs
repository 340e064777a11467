//! Admission of plugins (D1 to D5).

use outrigger_kernel::admission::{
    BUNDLED, Candidate, Entry, Files, Machine, Profile, Reason, Rules, Source, Switch, decide,
};
use proptest::prelude::*;

fn texts(list: &[&str]) -> Vec<String> {
    list.iter().map(|it| (*it).to_owned()).collect()
}

fn one(id: &str, source: Source) -> Candidate {
    Candidate::new(id, source, &format!("{}/{id}", source.name()))
}

/// Returns `id source: reason`, in order.
fn decisions(entries: &[Entry]) -> Vec<String> {
    let line = |entry: &Entry| {
        let reason = entry.disabled.as_ref().map_or("enabled", Reason::name);
        format!(
            "{} {}: {reason}",
            entry.candidate.id,
            entry.candidate.source.name()
        )
    };
    entries.iter().map(line).collect()
}

fn alone(candidate: Candidate, rules: &Rules, machine: &Machine) -> String {
    let entries = decide(vec![candidate], rules, machine);
    let entry = entries.first().unwrap();
    match &entry.disabled {
        None => "enabled".to_owned(),
        Some(reason) => format!("{}: {}", reason.layer().name(), reason.name()),
    }
}

fn switch(id: &str, on: bool) -> Rules {
    let switch = Switch {
        on,
        by: "test".into(),
    };
    Rules {
        switches: [(id.to_owned(), switch)].into(),
        ..Rules::default()
    }
}

#[test]
fn each_reason_has_its_layer() {
    let found = |change: fn(&mut Candidate)| {
        let mut it = one("a", Source::UserRoot);
        it.files = Some(Files::default());
        change(&mut it);
        it
    };
    let none = Rules::default();
    let deny = Rules {
        deny: texts(&["b", "a*"]),
        ..Rules::default()
    };
    let allow = Rules {
        allow: texts(&["a"]),
        ..Rules::default()
    };
    for (candidate, rules, want) in [
        (found(|_| {}), &none, "enabled"),
        (found(|_| {}), &deny, "policy: Denied"),
        (found(|_| {}), &switch("a", false), "policy: SwitchedOff"),
        (
            found(|it| it.enabled_by_default = false),
            &none,
            "policy: OffByDefault",
        ),
        (
            found(|it| it.enabled_by_default = false),
            &switch("a", true),
            "enabled",
        ),
        (
            found(|it| {
                it.excluded = Some(Reason::LeftOut {
                    by: "--pure".into(),
                })
            }),
            &switch("a", true),
            "policy: LeftOut",
        ),
        (
            found(|it| it.excluded = Some(Reason::ForbiddenByManagedPolicy { file: "f".into() })),
            &switch("a", true),
            "policy: ForbiddenByManagedPolicy",
        ),
        (
            found(|it| {
                it.files = Some(Files {
                    outside: Some("/x".into()),
                    ..Files::default()
                })
            }),
            &none,
            "admission: ManifestOutsideRoot",
        ),
        (
            found(|it| {
                it.files = Some(Files {
                    world_writable: Some("/x".into()),
                    ..Files::default()
                })
            }),
            &switch("a", true),
            "admission: WorldWritablePath",
        ),
        (
            found(|it| {
                it.files = Some(Files {
                    signature: Some("none".into()),
                    ..Files::default()
                })
            }),
            &none,
            "admission: Signature",
        ),
        (
            found(|it| it.side_effects = true),
            &none,
            "admission: SideEffectsNotAllowed",
        ),
        (
            found(|it| it.side_effects = true),
            &switch("a", true),
            "admission: SideEffectsNotAllowed",
        ),
        (found(|it| it.side_effects = true), &allow, "enabled"),
        // Entries in OpenCode's list are allowed by that; an entry without a path has no files to check.
        (
            found(|it| {
                it.side_effects = true;
                it.listed = true
            }),
            &none,
            "enabled",
        ),
        (
            found(|it| {
                it.side_effects = true;
                it.files = None
            }),
            &none,
            "enabled",
        ),
        (
            found(|it| it.unsupported = Some("no".into())),
            &none,
            "admission: UnsupportedExternalPlugin",
        ),
        (found(|it| it.env = texts(&["HERE"])), &none, "enabled"),
        (
            found(|it| it.env = texts(&["HERE", "GONE"])),
            &none,
            "dependencies: MissingEnv",
        ),
        (
            found(|it| it.env_any = vec![texts(&["GONE", "HERE"])]),
            &none,
            "enabled",
        ),
        (
            found(|it| it.env_any = vec![texts(&["HERE"]), texts(&["GONE", "LOST"])]),
            &none,
            "dependencies: MissingEnvAny",
        ),
        (
            found(|it| it.external_bins = texts(&["git"])),
            &none,
            "enabled",
        ),
        (
            found(|it| it.external_bins = texts(&["git", "nope"])),
            &none,
            "dependencies: MissingExternalBin",
        ),
        (
            found(|it| it.depends_on = texts(&["b"])),
            &none,
            "dependencies: MissingDependency",
        ),
        (found(|it| it.depends_on = texts(&["a"])), &none, "enabled"),
        (one("builtin-tools", Source::UserRoot), &none, "enabled"),
    ] {
        let machine = Machine {
            env: texts(&["HERE"]),
            bins: texts(&["git"]),
        };
        assert_eq!(
            alone(candidate.clone(), rules, &machine),
            want,
            "{candidate:?}"
        );
    }
}

#[test]
fn the_first_layer_that_says_no_is_reported() {
    let mut it = one("a", Source::UserRoot);
    it.env = texts(&["GONE"]);
    it.files = Some(Files {
        world_writable: Some("/x".into()),
        ..Files::default()
    });
    let machine = Machine::default();
    assert_eq!(
        alone(it.clone(), &switch("a", false), &machine),
        "policy: SwitchedOff"
    );
    assert_eq!(
        alone(it.clone(), &Rules::default(), &machine),
        "admission: WorldWritablePath"
    );
    it.files = None;
    assert_eq!(
        alone(it, &Rules::default(), &machine),
        "dependencies: MissingEnv"
    );
}

#[test]
fn higher_precedence_wins_and_a_required_id_is_nobody_elses() {
    let mut candidates: Vec<Candidate> = BUNDLED.iter().map(|it| it.candidate()).collect();
    for source in [
        Source::ConfigPath,
        Source::EnvRoot,
        Source::WorkspaceRoot,
        Source::UserRoot,
    ] {
        candidates.push(one("same", source));
        candidates.push(one("builtin-tools", source));
    }
    // The id of a bundled plugin that is not required can be taken.
    candidates.push(one("core-web", Source::UserRoot));
    // A file that merely has the name is not one of them.
    let mut file = one("mcp", Source::WorkspaceRoot);
    (file.listed, file.has_own_id) = (true, false);
    candidates.push(file);
    let decisions = decisions(&decide(candidates, &Rules::default(), &Machine::default()));
    insta::assert_snapshot!(decisions.join("\n"), @r"
    builtin-tools ConfigPath: ReservedBundledPluginId
    builtin-tools EnvRoot: ReservedBundledPluginId
    builtin-tools WorkspaceRoot: ReservedBundledPluginId
    builtin-tools UserRoot: ReservedBundledPluginId
    builtin-tools Bundled: enabled
    core-command Bundled: enabled
    core-fs Bundled: enabled
    core-python Bundled: MissingExternalBin
    core-table Bundled: enabled
    core-web UserRoot: enabled
    core-web Bundled: ShadowedByHigherPrecedence
    mcp WorkspaceRoot: enabled
    mcp Bundled: NotInProfile
    openrouter Bundled: MissingEnv
    same ConfigPath: enabled
    same EnvRoot: ShadowedByHigherPrecedence
    same WorkspaceRoot: ShadowedByHigherPrecedence
    same UserRoot: ShadowedByHigherPrecedence
    skill-source-local Bundled: enabled
    telegram Bundled: NotInProfile
    ");
}

/// What a project may shadow: no id that the user has rules for, and nothing by a plugin that does not run
/// itself.
#[test]
fn what_displaces_and_what_does_not() {
    let of_project = |change: fn(&mut Candidate)| {
        let mut it = one("a", Source::WorkspaceRoot);
        (it.of_project, it.files) = (true, Some(Files::default()));
        change(&mut it);
        it
    };
    let kept = Rules {
        kept: texts(&["a"]).into_iter().collect(),
        ..Rules::default()
    };
    let none = Rules::default();
    let allow = Rules {
        allow: texts(&["a"]),
        ..Rules::default()
    };
    let by_place = Rules {
        allow: texts(&["WorkspaceRoot/a"]),
        ..Rules::default()
    };
    let on_by_place = Rules {
        switches: switch("WorkspaceRoot/a", true).switches,
        ..Rules::default()
    };
    for (change, rules, project, user) in [
        (
            (|_| {}) as fn(&mut Candidate),
            &none,
            "enabled",
            "ShadowedByHigherPrecedence",
        ),
        (|_| {}, &kept, "ReservedUserPluginId", "enabled"),
        (
            |it| it.enabled_by_default = false,
            &none,
            "OffByDefault",
            "enabled",
        ),
        (
            |it| it.enabled_by_default = false,
            &switch("a", true),
            "OffByDefault",
            "enabled",
        ),
        (
            |it| it.enabled_by_default = false,
            &on_by_place,
            "enabled",
            "ShadowedByHigherPrecedence",
        ),
        (|_| {}, &switch("a", false), "SwitchedOff", "SwitchedOff"),
        (
            |_| {},
            &switch("WorkspaceRoot/a", false),
            "SwitchedOff",
            "enabled",
        ),
        (
            |it| it.side_effects = true,
            &allow,
            "SideEffectsNotAllowed",
            "enabled",
        ),
        (
            |it| it.side_effects = true,
            &by_place,
            "enabled",
            "ShadowedByHigherPrecedence",
        ),
        (
            |it| it.untrusted = Some("new".into()),
            &none,
            "Untrusted",
            "enabled",
        ),
        (
            |it| it.env = texts(&["GONE"]),
            &none,
            "MissingEnv",
            "enabled",
        ),
        (
            |it| it.depends_on = texts(&["nobody"]),
            &none,
            "MissingDependency",
            "enabled",
        ),
    ] {
        let candidates = vec![of_project(change), one("a", Source::UserRoot)];
        assert_eq!(
            decisions(&decide(candidates, rules, &Machine::default())),
            [
                format!("a WorkspaceRoot: {project}"),
                format!("a UserRoot: {user}")
            ],
            "{rules:?}"
        );
    }
    // Bundled ones too; ids that only the user's rules and the project share remain the project's.
    let mut core = of_project(|_| {});
    core.id = "core-fs".into();
    core.enabled_by_default = false;
    let mut all: Vec<Candidate> = BUNDLED.iter().map(|it| it.candidate()).collect();
    all.push(core);
    let entries = decide(all, &none, &Machine::default());
    assert!(decisions(&entries).contains(&"core-fs Bundled: enabled".to_owned()));
    assert_eq!(
        alone(of_project(|_| {}), &kept, &Machine::default()),
        "enabled"
    );
}

/// A candidate that is excluded enables another one, on which a third depends.
#[test]
fn who_steps_back_leaves_room() {
    let mut first = one("a", Source::WorkspaceRoot);
    first.depends_on = texts(&["nobody"]);
    let mut needs = one("b", Source::UserRoot);
    needs.depends_on = texts(&["a"]);
    let entries = decide(
        vec![needs, one("a", Source::UserRoot), first],
        &Rules::default(),
        &Machine::default(),
    );
    assert_eq!(
        decisions(&entries),
        [
            "a WorkspaceRoot: MissingDependency",
            "a UserRoot: enabled",
            "b UserRoot: enabled"
        ]
    );
}

#[test]
fn profiles_by_table() {
    let running = |profile| {
        let all: Vec<Candidate> = BUNDLED.iter().map(|it| it.candidate()).collect();
        let rules = Rules {
            profile,
            ..Rules::default()
        };
        let machine = Machine {
            env: texts(&["OPENROUTER_API_KEY", "TELOXIDE_TOKEN"]),
            bins: texts(&["python3"]),
        };
        let entries = decide(all, &rules, &machine);
        entries
            .iter()
            .filter(|it| !it.is_enabled())
            .map(|it| it.candidate.id.clone())
            .collect::<Vec<_>>()
    };
    assert_eq!(running(Profile::Minimal), ["mcp", "telegram"]);
    assert_eq!(running(Profile::Messaging), ["mcp"]);
    assert!(running(Profile::Full).is_empty());
}

#[test]
fn who_needs_whom() {
    let needs = |list: &[(&str, &[&str])]| {
        let candidate = |(id, needs): &(&str, &[&str])| {
            let mut it = one(id, Source::UserRoot);
            it.depends_on = texts(needs);
            it.enabled_by_default = *id != "off";
            it
        };
        let entries = decide(
            list.iter().map(candidate).collect(),
            &Rules::default(),
            &Machine::default(),
        );
        entries
            .iter()
            .map(|entry| match &entry.disabled {
                None => format!("{} runs", entry.candidate.id),
                Some(reason) => format!("{}: {}", entry.candidate.id, reason.text()),
            })
            .collect::<Vec<_>>()
            .join("; ")
    };
    for (list, want) in [
        (&[("a", &["b"][..]), ("b", &[])][..], "a runs; b runs"),
        (
            &[("a", &["b"]), ("b", &["c"])],
            "a: it needs b, which does not run; b: no plugin c",
        ),
        (
            &[("a", &["off"]), ("off", &[])],
            "a: it needs off, which does not run; off: its manifest leaves it off (`enabled_by_default`)",
        ),
        (
            &[("a", &["b"]), ("b", &["c"]), ("c", &["a"]), ("d", &["c"])],
            "a: plugins need each other in a circle: a -> b -> c -> a; b: plugins need each other in a circle: a -> b -> c -> a; c: plugins need each other in a circle: a -> b -> c -> a; d: it needs c, which does not run",
        ),
    ] {
        assert_eq!(needs(list), want);
    }
}

fn any_candidate() -> impl Strategy<Value = Candidate> {
    let source = prop_oneof![
        Just(Source::ConfigPath),
        Just(Source::EnvRoot),
        Just(Source::WorkspaceRoot),
        Just(Source::UserRoot),
    ];
    let ids = ["a", "b", "c", "builtin-tools", "core-fs", "mcp"];
    let flags = proptest::array::uniform6(any::<bool>());
    (
        0..ids.len(),
        source,
        0..3_usize,
        flags,
        proptest::collection::vec(0..ids.len(), 0..3),
    )
        .prop_map(
            move |(id, source, order, [listed, own, on, effects, path, env], needs)| Candidate {
                order,
                listed,
                has_own_id: own || !listed,
                enabled_by_default: on,
                side_effects: effects,
                files: path.then(Files::default),
                env: if env { texts(&["GONE"]) } else { Vec::new() },
                depends_on: needs.iter().map(|at| ids[*at].to_owned()).collect(),
                ..Candidate::new(
                    ids[id],
                    source,
                    &format!("{id}-{order}-{listed}{own}{on}{effects}{path}{env}{needs:?}"),
                )
            },
        )
}

fn all(found: &[Candidate]) -> Vec<Candidate> {
    BUNDLED
        .iter()
        .map(|it| it.candidate())
        .chain(found.iter().cloned())
        .collect()
}

proptest! {
    #![proptest_config(crate::cases(256))]

    #[test]
    fn the_order_of_finding_does_not_matter(
        found in proptest::collection::vec(any_candidate(), 0..8).prop_shuffle(),
        turn in 0..20_usize,
    ) {
        let candidates = all(&found);
        let mut other = candidates.clone();
        let by = turn % other.len();
        other.rotate_left(by);
        other.reverse();
        let (rules, machine) = (Rules::default(), Machine::default());
        prop_assert_eq!(
            decisions(&decide(candidates, &rules, &machine)),
            decisions(&decide(other, &rules, &machine))
        );
    }

    #[test]
    fn deciding_again_changes_nothing(found in proptest::collection::vec(any_candidate(), 0..8)) {
        let (rules, machine) = (Rules::default(), Machine::default());
        let once = decide(all(&found), &rules, &machine);
        let again: Vec<Candidate> = once.iter().map(|it| it.candidate.clone()).collect();
        prop_assert_eq!(&decide(again, &rules, &machine), &once);
    }

    #[test]
    fn a_required_id_runs_as_ours_and_as_nobody_elses(
        found in proptest::collection::vec(any_candidate(), 0..8),
        deny in proptest::sample::subsequence(vec!["builtin-tools", "*", "a"], 0..3),
    ) {
        let mut rules = switch("builtin-tools", false);
        rules.deny = texts(&deny);
        for entry in decide(all(&found), &rules, &Machine::default()) {
            if entry.candidate.id == "builtin-tools" {
                prop_assert_eq!(entry.is_enabled(), entry.candidate.source == Source::Bundled);
            }
        }
    }

    #[test]
    fn one_more_denial_brings_nothing_to_life(
        found in proptest::collection::vec(any_candidate(), 0..8),
        deny in proptest::sample::subsequence(vec!["a", "b", "core-*", "mcp"], 0..4),
        more in proptest::sample::select(vec!["a", "b", "c", "core-fs", "*"]),
    ) {
        let rules = Rules { deny: texts(&deny), profile: Profile::Full, ..Rules::default() };
        let mut stricter = rules.clone();
        stricter.deny.push(more.to_owned());
        let before = decide(all(&found), &rules, &Machine::default());
        let after = decide(all(&found), &stricter, &Machine::default());
        for (before, after) in before.iter().zip(&after) {
            prop_assert_eq!(&before.candidate, &after.candidate);
            // Except those it shadowed that depend on a denied plugin, and a cycle that it was part of.
            let freed = matches!(
                before.disabled,
                Some(
                    Reason::ShadowedByHigherPrecedence { .. }
                        | Reason::DependencyDisabled { .. }
                        | Reason::DependencyCycle { .. }
                )
            );
            prop_assert!(before.is_enabled() || !after.is_enabled() || freed, "{:?}", after.candidate);
        }
    }

    #[test]
    fn no_two_of_one_id_run_but_those_that_opencode_lists(found in proptest::collection::vec(any_candidate(), 0..8)) {
        let entries = decide(all(&found), &Rules::default(), &Machine::default());
        let runs: Vec<&Entry> = entries.iter().filter(|it| it.is_enabled() && it.candidate.has_own_id).collect();
        for (at, one) in runs.iter().enumerate() {
            for other in runs.iter().skip(at + 1).filter(|it| it.candidate.id == one.candidate.id) {
                prop_assert!(one.candidate.listed && other.candidate.listed);
            }
        }
    }
}
