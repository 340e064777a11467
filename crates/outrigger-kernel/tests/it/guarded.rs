//! The guard: an attempted change for every point and field, every guarded field in every way, and the law over arbitrary
//! answers (C3, C9).

use outrigger_kernel::guard::{GuardedField, PLACES, Rule, runs_other_code};
use outrigger_kernel::hooks::{
    Chain, Deadline, Failure, Field, Handler, HookPoint, Kind, Phase, PointSpec, Rights,
};
use outrigger_protocol::history::{History, HistoryMessage};
use outrigger_protocol::hook::{Block, Change, Decision, HookFailure, HookOutcome, Key, Patch};
use outrigger_protocol::transfer::Piece;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::chain::{at, change, folded, handler, payload};

fn answer(point: &str, before: &Value, changes: Vec<Change>) -> (Value, Decision, Option<Rule>) {
    let mut chain = Chain::new(
        at(point),
        vec![handler(0, 1)],
        vec![payload(before.clone())],
    );
    chain.feed(0, HookOutcome::patch(vec![changes]), 1.0);
    let mut end = folded(&chain);
    let run = end.runs.remove(0);
    (end.outputs.remove(0), run.decision, run.refused)
}

fn of_kind(kind: Kind, other: bool) -> Value {
    match (kind, other) {
        (Kind::Any | Kind::String, false) => json!("a"),
        (Kind::Any | Kind::String, true) => json!("b"),
        (Kind::Number, other) => json!(i32::from(other)),
        (Kind::Bool, other) => json!(other),
        (Kind::Array, other) => json!([other]),
        (Kind::Object, other) => json!({"some": other}),
    }
}

fn of_another_kind(kind: Kind) -> Option<Value> {
    match kind {
        Kind::Any => None,
        Kind::Object | Kind::Array => Some(json!("x")),
        _ => Some(json!({})),
    }
}

/// Returns an output of the point with every field that may be changed, and one that may not.
fn output(point: HookPoint) -> Value {
    let named = point.spec().patch.iter().filter(|field| field.key != "*");
    let mut fields: Map<String, Value> = named
        .map(|field| (field.key.to_owned(), of_kind(field.kind, false)))
        .collect();
    fields.insert("closed".into(), json!({"deep": 1}));
    Value::Object(fields)
}

fn open_to_all(point: HookPoint) -> bool {
    point.spec().patch.iter().any(|field| field.key == "*")
}

fn try_field(point: HookPoint, before: &Value, field: &Field) {
    let name = point.name();
    let set = |value| vec![change(&[field.key], value)];
    let new = of_kind(field.kind, true);
    let (after, decision, refused) = answer(name, before, set(Some(new.clone())));
    assert_eq!(
        (&after[field.key], decision, refused),
        (&new, Decision::Patch, None),
        "{name} {}",
        field.key
    );
    if let Some(wrong) = of_another_kind(field.kind) {
        let (after, decision, refused) = answer(name, before, set(Some(wrong)));
        assert_eq!(
            (&after, decision, refused),
            (before, Decision::Refused, Some(Rule::Shape)),
            "{name} {}",
            field.key
        );
    }
    let (after, decision, refused) = answer(name, before, set(None));
    if field.required {
        assert_eq!(
            (&after, decision, refused),
            (before, Decision::Refused, Some(Rule::Shape)),
            "{name} {}",
            field.key
        );
    } else {
        assert_eq!(
            (after.get(field.key), decision, refused),
            (None, Decision::Patch, None),
            "{name} {}",
            field.key
        );
    }
}

#[test]
fn every_point_and_field_takes_what_it_allows_and_nothing_else() {
    for point in HookPoint::ALL.iter().copied() {
        let (name, before) = (point.name(), output(point));
        for field in point.spec().patch.iter().filter(|field| field.key != "*") {
            try_field(point, &before, field);
        }
        let closed = [
            vec![change(&["closed"], Some(json!(2)))],
            vec![change(&["closed", "deep"], Some(json!(2)))],
            vec![change(&["closed"], None)],
            vec![change(&["more"], Some(json!(2)))],
            vec![change(&[], Some(json!({})))],
        ];
        if !open_to_all(point) {
            for changes in closed {
                let (after, decision, refused) = answer(name, &before, changes.clone());
                assert_eq!(
                    (&after, decision, refused),
                    (&before, Decision::Refused, Some(Rule::Rights)),
                    "{name} {changes:?}"
                );
            }
        }
        if point.spec().phase == Phase::Observe {
            assert!(point.spec().patch.is_empty(), "{name}");
        }
        // A refusal is effective if the table allows it, and nowhere else.
        let mut chain = Chain::new(
            point,
            vec![handler(0, 1), handler(1, 1)],
            vec![payload(before.clone())],
        );
        let block = Block {
            code: "no".into(),
            message: "no".into(),
            details: Value::Null,
            plugin: None,
        };
        chain.feed(0, HookOutcome::Block(block.clone()), 1.0);
        if point.spec().block {
            let end = folded(&chain);
            assert_eq!(end.block, Some(block), "{name}");
            continue;
        }
        chain.feed(1, HookOutcome::Continue, 1.0);
        let end = folded(&chain);
        assert_eq!((end.block, &end.outputs[0]), (None, &before), "{name}");
        assert_eq!(
            (end.runs[0].decision, end.runs[0].refused),
            (Decision::Refused, Some(Rule::Rights)),
            "{name}"
        );
    }
}

fn nested(path: &[&str], value: Value) -> Value {
    path.iter()
        .rev()
        .fold(value, |value, key| json!({ *key: value }))
}

fn merge(base: &mut Value, more: Value) {
    match (base, more) {
        (Value::Object(base), Value::Object(more)) => {
            for (key, value) in more {
                merge(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, more) => *base = more,
    }
}

/// Returns an output of its point in which the field is guarded.
fn guarded(place: &GuardedField) -> Value {
    let value = match place.rule {
        Rule::Refusal => json!("deny"),
        Rule::Failure if place.path.ends_with(&["exit"]) => json!(3),
        Rule::Failure => json!(true),
        Rule::Verify => json!("failed_verify"),
        _ => json!("mine"),
    };
    let mut whole = match place.point {
        HookPoint::RunBeforeStart => {
            json!({"message": {"id": "m", "sessionID": "s", "role": "user", "text": "t"}, "parts": []})
        }
        HookPoint::ToolAfterResult => json!({"title": "t", "output": "o", "metadata": {"x": 1}}),
        _ => json!({}),
    };
    merge(&mut whole, nested(place.path, value));
    whole
}

#[test]
fn every_guarded_place_stays_by_every_way() {
    for place in PLACES {
        let before = guarded(place);
        let pointer = format!("/{}", place.path.join("/"));
        let kept = before.pointer(&pointer).unwrap().clone();
        for value in [
            Some(json!("allow")),
            Some(json!("theirs")),
            Some(json!(false)),
            Some(json!({})),
            Some(Value::Null),
            None,
        ] {
            let mut ways = vec![vec![change(place.path, value.clone())]];
            let mut whole = before.clone();
            merge(
                &mut whole,
                nested(place.path, value.clone().unwrap_or(Value::Null)),
            );
            ways.push(vec![change(&[], Some(whole))]);
            for depth in 1..place.path.len() {
                ways.push(vec![change(
                    &place.path[..depth],
                    Some(json!({"only": "mine"})),
                )]);
                ways.push(vec![change(&place.path[..depth], Some(json!("gone")))]);
                ways.push(vec![change(&place.path[..depth], None)]);
            }
            for way in ways {
                let (after, _, refused) = answer(place.point.name(), &before, way.clone());
                assert_eq!(after.pointer(&pointer), Some(&kept), "{pointer} {way:?}");
                assert!(refused.is_some(), "{pointer} {way:?}");
            }
        }
        // By its own path the rule is named.
        let (after, decision, refused) = answer(
            place.point.name(),
            &before,
            vec![change(place.path, Some(json!("other")))],
        );
        assert_eq!(
            (&after, decision, refused),
            (&before, Decision::Refused, Some(place.rule)),
            "{pointer}"
        );
    }
}

#[test]
fn what_is_beside_a_guarded_place_is_taken() {
    let before = json!({"message": {"id": "m", "sessionID": "s", "role": "user"}, "parts": []});
    let changes = vec![
        change(&["message", "id"], Some(json!("other"))),
        change(&["message", "agent"], Some(json!("plan"))),
    ];
    let (after, decision, refused) = answer("run.before_start", &before, changes);
    assert_eq!(
        after["message"],
        json!({"id": "m", "sessionID": "s", "role": "user", "agent": "plan"})
    );
    assert_eq!((decision, refused), (Decision::Patch, Some(Rule::Identity)));
}

/// A value that is not guarded yet may be set: a plugin may deny, and call its own result a failure.
#[test]
fn a_failure_may_be_explained_and_not_undone() {
    for (point, before, path, bad, good) in [
        (
            "tool.before_permission",
            json!({"status": "ask"}),
            vec!["status"],
            json!("deny"),
            json!("allow"),
        ),
        (
            "tool.after_result",
            json!({"output": "o"}),
            vec!["isError"],
            json!(true),
            json!(false),
        ),
        (
            "tool.after_result",
            json!({"output": "o", "metadata": {}}),
            vec!["metadata", "verify"],
            json!("failed_verify"),
            json!("verified"),
        ),
    ] {
        let mut chain = Chain::new(
            at(point),
            vec![handler(0, 1), handler(1, 2)],
            vec![payload(before.clone())],
        );
        for value in [&bad, &good] {
            let index = chain.runs().len();
            let answer = HookOutcome::patch(vec![vec![change(&path, Some(value.clone()))]]);
            chain.feed(index, answer, 1.0);
        }
        let end = folded(&chain);
        let pointer = format!("/{}", path.join("/"));
        assert_eq!(end.outputs[0].pointer(&pointer), Some(&bad), "{point}");
        assert_eq!(
            (end.runs[0].decision, end.runs[0].refused),
            (Decision::Patch, None),
            "{point}"
        );
        assert_eq!(end.runs[1].decision, Decision::Refused, "{point}");
        // The reverse is allowed.
        let (after, decision, _) = answer(point, &before, vec![change(&path, Some(good.clone()))]);
        assert_eq!(
            (after.pointer(&pointer), decision),
            (Some(&good), Decision::Patch),
            "{point}"
        );
    }
}

#[test]
fn variables_that_run_other_code_are_kept_out_of_approved_commands() {
    let before = json!({"env": {"A": "1"}});
    for (name, stays_out) in [
        ("LD_PRELOAD", true),
        ("LD_AUDIT", true),
        ("BASH_ENV", true),
        ("SHELLOPTS", true),
        ("BASHOPTS", true),
        ("PROMPT_COMMAND", true),
        ("BASH_FUNC_ls%%", true),
        ("DYLD_INSERT_LIBRARIES", true),
        ("LD_LIBRARY_PATH", true),
        ("NODE_OPTIONS", true),
        ("ENV", true),
        ("ZDOTDIR", true),
        ("PATH", false),
        ("LDFLAGS", false),
        ("NODE_ENV", false),
    ] {
        assert_eq!(runs_other_code(name), stays_out);
        let ways = [
            vec![change(&["env", name], Some(json!("x")))],
            vec![change(&["env"], Some(json!({"A": "1", name: "x"})))],
            vec![change(&[], Some(json!({"env": {"A": "1", name: "x"}})))],
        ];
        for way in ways {
            let (after, decision, refused) = answer("execute.before_shell", &before, way.clone());
            if stays_out {
                assert_eq!(
                    (&after, decision, refused),
                    (&before, Decision::Refused, Some(Rule::Approval)),
                    "{way:?}"
                );
            } else {
                assert_eq!(
                    (&after["env"][name], decision, refused),
                    (&json!("x"), Decision::Patch, None),
                    "{way:?}"
                );
            }
        }
    }
    // A value set by the host is preserved.
    let set = json!({"env": {"BASH_ENV": "ours"}});
    let (after, _, refused) = answer(
        "execute.before_shell",
        &set,
        vec![change(&["env", "BASH_ENV"], Some(json!("x")))],
    );
    assert_eq!((&after, refused), (&set, Some(Rule::Approval)));
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..3_i32).prop_map(Value::from),
        prop::sample::select(vec![
            "",
            "allow",
            "deny",
            "ask",
            "failed_verify",
            "user",
            "x"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((any_name(), inner), 0..4)
                .prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

fn any_name() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "message",
        "id",
        "sessionID",
        "role",
        "parts",
        "status",
        "metadata",
        "isError",
        "verify",
        "env",
        "LD_PRELOAD",
        "BASH_ENV",
        "PATH",
        "title",
        "output",
        "0",
    ])
    .prop_map(str::to_owned)
}

fn any_changes() -> impl Strategy<Value = Vec<Change>> {
    let key =
        prop_oneof![4 => any_name().prop_map(Key::Name), 1 => (0..3_usize).prop_map(Key::Index)];
    let change = (
        prop::collection::vec(key, 0..4),
        prop::option::of(any_value()),
    )
        .prop_map(|(path, value)| Change { path, value });
    prop::collection::vec(change, 0..5)
}

fn any_outcome() -> impl Strategy<Value = HookOutcome> {
    let answered = prop::collection::vec(any_changes(), 0..3).prop_map(HookOutcome::patch);
    let rearranged = any_changes().prop_map(|changes| {
        HookOutcome::Patch(Patch {
            items: vec![changes],
            order: Some(vec![Piece::New {
                value: json!({"id": "theirs"}),
            }]),
        })
    });
    let block = Block {
        code: "theirs".into(),
        message: "b".into(),
        details: json!({"a": 1}),
        plugin: None,
    };
    prop_oneof![
        8 => answered,
        1 => rearranged,
        1 => Just(HookOutcome::Block(block)),
        1 => Just(HookOutcome::Failed(HookFailure::Threw { message: "t".into() })),
        1 => Just(HookOutcome::Failed(HookFailure::TimedOut { ms: 1 })),
        1 => Just(HookOutcome::Failed(HookFailure::Skipped { reason: "s".into() })),
        1 => Just(HookOutcome::Failed(HookFailure::Lost { message: "l".into() })),
    ]
}

fn conversation(message: Value) -> History {
    [HistoryMessage::from(message)].into_iter().collect()
}

/// Handlers and their results, in the order in which a chain calls them: security-critical ones last.
fn in_order(mut answers: Vec<(Handler, HookOutcome)>) -> (Vec<Handler>, Vec<HookOutcome>) {
    answers.sort_by_key(|(handler, _)| handler.fail_closed);
    answers.into_iter().unzip()
}

fn any_handler() -> impl Strategy<Value = Handler> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(fail_closed, patch, block)| Handler {
        fail_closed,
        rights: Rights {
            patch,
            block,
            missing: None,
            account: None,
        },
        ..handler(0, 1)
    })
}

/// Points that plugins declare: one that allows refusals, and one that does not.
static DECLARED: [PointSpec; 2] = [own(true), own(false)];

const fn own(block: bool) -> PointSpec {
    PointSpec {
        name: "acme/deploy.before",
        hook: "acme/deploy.before",
        phase: Phase::Before,
        patch: &[Field {
            key: "title",
            kind: Kind::Any,
            required: false,
        }],
        block,
        deadline: Deadline::Normal,
        failure: if block {
            Failure::ThrowBlocks
        } else {
            Failure::Open
        },
        input: "",
        about: "",
    }
}

fn any_point() -> impl Strategy<Value = HookPoint> {
    let declared = DECLARED.iter().map(HookPoint::Declared);
    let all: Vec<HookPoint> = HookPoint::ALL.iter().copied().chain(declared).collect();
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(crate::cases(512))]

    /// C9: whatever a chain of plugins answers, a guarded field keeps its value, and no variable that runs other code is
    /// added.
    #[test]
    fn no_chain_of_answers_changes_a_guarded_place(
        which in 0..=PLACES.len(),
        answers in prop::collection::vec((any_handler(), any_outcome()), 1..6),
    ) {
        let (point, before, pointer) = match PLACES.get(which) {
            Some(place) => (place.point, guarded(place), Some(format!("/{}", place.path.join("/")))),
            None => (HookPoint::ExecuteBeforeShell, json!({"env": {"PATH": "/bin"}}), None),
        };
        let (handlers, outcomes) = in_order(answers);
        let mut chain = Chain::new(point, handlers, vec![payload(before.clone())]);
        for (n, outcome) in outcomes.into_iter().enumerate() {
            chain.feed(n, outcome, 1.0);
        }
        let end = chain.finish();
        match pointer {
            Some(pointer) => prop_assert_eq!(end.outputs[0].pointer(&pointer), before.pointer(&pointer)),
            None => {
                let bad = end.outputs[0]["env"].as_object().into_iter().flatten().find(|(name, _)| runs_other_code(name));
                prop_assert_eq!(bad, None);
            }
        }
    }

    /// C3: whatever handlers answer, only a handler with the right to it refuses or changes anything.
    #[test]
    fn no_chain_goes_beyond_what_its_point_and_its_plugins_may(
        point in any_point(),
        answers in prop::collection::vec((any_handler(), any_outcome()), 1..6),
    ) {
        let (handlers, outcomes) = in_order(answers);
        let open = |key: &str| point.spec().phase != Phase::Observe && point.spec().patch.iter().any(|field| field.key == key || field.key == "*");
        let before = output(point);
        let mut item = payload(before.clone());
        item.history = Some(conversation(json!({"id": "mine"})));
        let mut chain = Chain::new(point, handlers.clone(), vec![item]);
        for (n, outcome) in outcomes.iter().enumerate() {
            chain.feed(n, outcome.clone(), 1.0);
        }
        let end = chain.finish();
        let told_only = matches!(point.spec().phase, Phase::Observe | Phase::Error);
        for run in &end.runs {
            let (handler, outcome) = (&handlers[run.handler], &outcomes[run.handler]);
            if run.decision == Decision::Patch {
                prop_assert!(handler.rights.patch, "{}", point.name());
            }
            if matches!(run.decision, Decision::Block | Decision::FailedClosed) {
                // A custom point: as it allows, whatever is set for the handler.
                prop_assert!(!point.is_declared() || point.spec().block, "{}", point.name());
                prop_assert!(!told_only && point != HookPoint::RuntimeConfigure, "{}", point.name());
                prop_assert!(handler.fail_closed || (point.spec().block && handler.rights.block), "{}", point.name());
            }
            if let (HookOutcome::Block(block), Decision::Block) = (outcome, run.decision) {
                prop_assert_eq!(end.block.as_ref(), Some(block));
            }
            if matches!(outcome, HookOutcome::Block(_)) && run.decision != Decision::Block {
                prop_assert_eq!((run.decision, run.refused), (Decision::Refused, Some(Rule::Rights)));
            }
        }
        let refused = |run: &outrigger_kernel::hooks::HandlerRun| matches!(run.decision, Decision::Block | Decision::FailedClosed);
        prop_assert_eq!(end.block.is_some(), end.runs.last().is_some_and(refused));
        prop_assert!(end.runs.iter().rev().skip(1).all(|run| !refused(run)), "{}", point.name());
        let patched = end.runs.iter().any(|run| run.decision == Decision::Patch);
        for (key, value) in before.as_object().unwrap() {
            if !open(key) || !patched {
                prop_assert_eq!(end.outputs[0].get(key), Some(value), "{} {}", point.name(), key);
            }
        }
        if !open("messages") {
            prop_assert_eq!(end.history.map(|it| json!(it)), Some(json!([{"id": "mine"}])));
        }
    }
}

#[test]
fn rules_have_names_of_their_own() {
    let mut names: Vec<&str> = Rule::ALL.iter().map(|rule| rule.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Rule::ALL.len());
}

/// Changing who pays for a model request, where it goes and what answers it requires the grant; the rest of an answer is
/// applied.
#[test]
fn a_request_keeps_its_account_and_model_without_the_grant() {
    let tried = |point: &str, before: &Value, changes: Vec<Change>, account| {
        let rights = Rights {
            account,
            ..Rights::ALL
        };
        let handler = Handler {
            rights,
            ..handler(0, 1)
        };
        let mut chain = Chain::new(at(point), vec![handler], vec![payload(before.clone())]);
        chain.feed(0, HookOutcome::patch(vec![changes]), 1.0);
        let mut end = folded(&chain);
        let run = end.runs.remove(0);
        (end.outputs.remove(0), run)
    };
    let headers = "Authorization x-api-key API-KEY x_api_key x-goog-api-key cookie Host openai-organization x-goog-user-project \
        x-forwarded-host proxy-authorization Content-Length transfer-encoding x-amz-security-token chatgpt-account-id";
    let options = "model mOdel models tools mcp_servers mcp_sErvers mcpServers server_tools webhook webhook_url prompt previousResponseId conversation \
        cachedContent apiKey api_key base_url apiBase extra_body additionalModelRequestFields plugins web_search_options container";
    let free = [
        "x-test X-Trace anthropic-beta user-agent x-initiator originator session_id x-opencode-session",
        "temperature \
        reasoningEffort thinking promptCacheKey store max_tokens parallel_tool_calls max_tool_calls custom_option user service_tier safetySettings",
    ];
    for (point, way, guarded, free) in [
        ("llm.before_headers", &["headers"][..], headers, free[0]),
        ("llm.before_params", &["options"][..], options, free[1]),
        (
            "llm.before_request",
            &["params", "options"][..],
            options,
            free[1],
        ),
    ] {
        let mut before = output(at(point));
        let names = |text: &'static str| text.split_whitespace();
        let old: Map<String, Value> = names("model authorization")
            .map(|it| (it.into(), json!("old")))
            .collect();
        before[way[0]] = match way {
            [_] => json!(old),
            _ => json!({ "options": old }),
        };
        for name in names(guarded) {
            let deep: Vec<&str> = way.iter().copied().chain([name]).collect();
            let mut whole = before[way[0]].clone();
            let fields = match way {
                [_] => &mut whole,
                _ => &mut whole["options"],
            };
            fields[name] = json!("evil");
            let gone = old.contains_key(name).then(|| vec![change(&deep, None)]);
            let set = vec![change(&deep, Some(json!("evil")))];
            for changes in [Some(set), Some(vec![change(&way[..1], Some(whole))]), gone]
                .into_iter()
                .flatten()
            {
                let (after, run) = tried(point, &before, changes.clone(), Some("model"));
                let got = (after, run.decision, run.refused);
                assert_eq!(
                    got,
                    (before.clone(), Decision::Refused, Some(Rule::Account)),
                    "{point} {name}"
                );
                let message = run.message.unwrap_or_default();
                assert!(
                    message.contains(&format!("`{name}`")) && message.contains("model = true"),
                    "{message}"
                );
                let (after, run) = tried(point, &before, changes, None);
                assert!(after != before && run.refused.is_none(), "{point} {name}");
            }
            let other: Vec<&str> = way.iter().copied().chain(["x-test"]).collect();
            let both = vec![
                change(&deep, Some(json!("evil"))),
                change(&other, Some(json!("1"))),
            ];
            let (after, run) = tried(point, &before, both, Some("model"));
            let fields = way.iter().fold(&after, |place, key| &place[key]);
            assert_eq!(
                (&fields["x-test"], fields.get(name)),
                (&json!("1"), old.get(name)),
                "{point} {name}"
            );
            assert_eq!(
                (run.decision, run.refused),
                (Decision::Patch, Some(Rule::Account))
            );
        }
        for name in names(free) {
            let deep: Vec<&str> = way.iter().copied().chain([name]).collect();
            let (after, run) = tried(
                point,
                &before,
                vec![change(&deep, Some(json!("1")))],
                Some("model"),
            );
            assert!(
                after != before && run.refused.is_none(),
                "{point} {name}: {run:?}"
            );
        }
    }
}
