//! Hooks and events: what changes, in which order, and how large the answer is.

use outrigger_protocol::event::BusEvent;
use outrigger_protocol::rpc::{EventBatch, HookRun, OpenField};
use outrigger_protocol::turn::HookPayload;
use serde_json::{Value, json};

use crate::support::{LONG, Room, anything, handler, hook, items, run, runtimes, show};

#[tokio::test]
async fn what_a_handler_does_to_its_output() {
    let cases = [
        ("output.a = 2", "a=2"),
        ("output.list.push('z')", r#"list=["x","y","z"]"#),
        ("output.list[1] = 'Y'", "list.1=\"Y\""),
        (
            "delete output.a; output.nested.deep.b = null",
            "nested.deep.b=null a=-",
        ),
        ("output.a = undefined", "a=-"),
        ("output.list[0] = undefined", "list.0=null"),
        ("output.list = output.list.map((x) => x)", "unchanged"),
        ("output.nested = { deep: { b: 1 } }", "unchanged"),
        ("output.nested.deep = 'flat'", "nested.deep=\"flat\""),
        ("output.fn = () => 1; output.sym = Symbol('s')", "unchanged"),
        (
            "output.when = new Date(0); output.num = NaN",
            r#"when="1970-01-01T00:00:00.000Z" num=null"#,
        ),
        ("output.__proto__ = { evil: 1 }; output.ok = 1", "ok=1"),
        (
            "output.text = '\u{1f600}'.slice(0, 1) + '!'",
            "text=\"\u{fffd}!\"",
        ),
        ("output['k\\ud800'] = 1", "k\u{fffd}=1"),
        ("output = { replaced: true }", "unchanged"),
        (
            "output.self = output",
            "! answer cannot be serialised: cyclic, or nested deeper than 100 levels",
        ),
        (
            "output.big = 1n",
            "! answer cannot be serialised: JSON has no BigInt",
        ),
        (
            "Object.defineProperty(output, 'trap', { enumerable: true, get() { throw new Error('boo') } })",
            "! answer cannot be serialised: boo",
        ),
        ("throw new Error('no')", "! no"),
        ("throw 'text'", "! text"),
        ("throw ''", "! unknown error"),
        ("throw null", "! null"),
        ("return Promise.reject(new TypeError())", "! TypeError"),
    ];
    let source: String = cases
        .iter()
        .enumerate()
        .map(|(index, (code, _))| format!("'case.{index}'(input, output) {{ {code} }},\n"))
        .collect();
    let source = format!("export const P = async () => ({{ {source} }});");
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", &source)]).await;
        for (index, (code, expected)) in cases.iter().enumerate() {
            let output = json!({"a": 1, "list": ["x", "y"], "nested": {"deep": {"b": 1}}});
            let results = hook(&process, &run(&format!("case.{index}"), &["p"], output)).await;
            assert_eq!(
                show(&results[0]),
                *expected,
                "{} under {:?}",
                code,
                runtime.kind
            );
        }
    }
}

#[tokio::test]
async fn later_handlers_see_what_earlier_ones_left_and_nothing_of_those_that_failed() {
    let first = "export const A = async () => ({ h: async (i, o) => { await 0; o.seen.push('a'); o.a = 1 } });";
    let broken = "export const B = async () => ({ h: async (i, o) => { o.seen.push('b'); delete o.a; throw new Error('b failed') } });";
    let cyclic =
        "export const C = async () => ({ h: async (i, o) => { o.seen.push('c'); o.self = o } });";
    let last = "export const D = async () => ({ h: async (i, o) => { o.result = [...o.seen, o.a, 'self' in o].join() } });";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room
            .load(&[("a", first), ("b", broken), ("c", cyclic), ("d", last)])
            .await;
        let results = hook(
            &process,
            &run("h", &["a", "b", "c", "d"], json!({"seen": []})),
        )
        .await;
        let shown: Vec<String> = results.iter().map(show).collect();
        assert_eq!(
            shown,
            [
                r#"seen=["a"] a=1"#,
                "! b failed",
                "! answer cannot be serialised: cyclic, or nested deeper than 100 levels",
                r#"result="a,1,false""#,
            ]
        );
        assert!(results.iter().all(|result| result.ms >= 0.0));
    }
}

#[tokio::test]
async fn many_items_are_one_call_and_a_throw_undoes_all_of_them() {
    let plugin = "export const P = async () => ({
        'tool.definition': async (input, output) => { if (input.toolID !== 'skip') output.description += '!' },
        late: async (input, output) => { output.description = 'x'; if (input.toolID === 'last') throw new Error('late') },
        show: async (input, output) => { output.seen = output.description },
    });";
    let items = |names: &[&str]| -> Vec<HookPayload> {
        let item =
            |name: &&str| HookPayload::new(json!({"toolID": name}), json!({"description": name}));
        names.iter().map(item).collect()
    };
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", plugin)]).await;
        let run = HookRun {
            hook: "tool.definition".into(),
            handlers: vec![handler("p")],
            open: anything(),
            items: items(&["a", "skip", "b"]),
            chain: None,
        };
        assert_eq!(
            show(&hook(&process, &run).await[0]),
            r#"description="a!" |  | description="b!""#
        );
        let run = HookRun {
            hook: "late".into(),
            handlers: vec![handler("p")],
            open: anything(),
            items: items(&["first", "last"]),
            chain: None,
        };
        assert_eq!(show(&hook(&process, &run).await[0]), "! late");
    }
}

#[tokio::test]
async fn config_gets_the_document_alone_and_may_delete_from_it() {
    let plugin = "export const P = async () => ({ config: async (config, extra) => {
        delete config.agent.old; config.command = { go: { template: 'x' } }; config.alone = extra === undefined;
        config.mcp.server.enabled = false; delete config.theme } });";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, loaded) = room.load(&[("p", plugin)]).await;
        assert_eq!(loaded.plugins[0].instances[0].hooks, ["config"]);
        let document = json!({"agent": {"old": {}, "new": {}}, "mcp": {"server": {"enabled": true}}, "theme": "x"});
        let results = hook(&process, &run("config", &["p"], document)).await;
        assert_eq!(
            show(&results[0]),
            r#"agent.old=- mcp.server.enabled=false command={"go":{"template":"x"}} alone=true theme=-"#
        );
    }
}

#[tokio::test]
async fn frames_of_every_size_go_both_ways() {
    let plugin = "export const P = async () => ({
        size: async (input, output) => { output.size = output.text.length },
        grow: async (input, output) => { output.text = 'y'.repeat(output.size) } });";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", plugin)]).await;
        for size in [0, 1, 1000, 65_536, 219_264, 1 << 20, 16 << 20] {
            let results = hook(
                &process,
                &run("size", &["p"], json!({"text": "x".repeat(size)})),
            )
            .await;
            assert_eq!(
                show(&results[0]),
                format!("size={size}"),
                "what did not change is not sent back"
            );
            let results = hook(&process, &run("grow", &["p"], json!({"size": size}))).await;
            assert_eq!(
                items(&results[0])[0][0].value,
                Some(Value::from("y".repeat(size)))
            );
        }
        // Many large answers at once: no frame may be cut into by another.
        let text = json!({"size": 2 << 20});
        let grow = run("grow", &["p"], text);
        let all = futures_util::future::join_all((0..8).map(|_| hook(&process, &grow))).await;
        assert!(all.iter().all(|results| {
            items(&results[0])[0][0]
                .value
                .as_ref()
                .unwrap()
                .as_str()
                .unwrap()
                .len()
                == 2 << 20
        }));
    }
}

#[tokio::test]
async fn an_answer_over_the_frame_limit_is_the_handlers_error() {
    let plugin = "export const P = async () => ({
        flood: async (i, o) => { o.text = 'x'.repeat(65 * 1024 * 1024) },
        check: async (i, o) => { o.length = o.text.length } });";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", plugin)]).await;
        let results = hook(&process, &run("flood", &["p"], json!({"text": ""}))).await;
        assert!(
            show(&results[0]).starts_with("! answer cannot be serialised: a frame of"),
            "{}",
            show(&results[0])
        );
        assert_eq!(
            show(&hook(&process, &run("check", &["p"], json!({"text": "ok"}))).await[0]),
            "length=2"
        );
    }
}

#[tokio::test]
async fn events_come_in_order_before_later_hooks_and_their_failures_are_reported() {
    let plugin = "const seen = [];
        export const P = async () => ({
            event: ({ event }) => {
                seen.push(Object.keys(event).join() + ':' + event.properties.n);
                if (event.properties.n === 1) throw new Error('sync');
                if (event.properties.n === 2) return Promise.reject(new Error('async'));
                if (event.properties.n === 3) return new Promise(() => {});
            },
            look: async (i, o) => { o.seen = seen.splice(0) },
        });";
    let events = |from: u64| -> EventBatch {
        let event =
            |n| json!({"id": format!("evt_{n}"), "type": "acme.tick", "properties": {"n": n}});
        let events =
            (from..from + 4).map(|n| serde_json::from_value::<BusEvent>(event(n)).unwrap());
        EventBatch::of(events.collect())
    };
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", plugin)]).await;
        process.event_batch(&events(1)).unwrap();
        let results = hook(&process, &run("look", &["p"], json!({}))).await;
        assert_eq!(
            show(&results[0]),
            r#"seen=["id,type,properties:1","id,type,properties:2","id,type,properties:3","id,type,properties:4"]"#
        );
        process.event_batch(&events(5)).unwrap();
        hook(&process, &run("look", &["p"], json!({}))).await;
        assert_eq!(process.entered(), None);
        let logs = room.host.logs.lock().unwrap().join("\n");
        insta::allow_duplicates! { insta::assert_snapshot!(logs, @r"
        event of p: sync (on acme.tick)
        event of p: async (on acme.tick)
        "); }
    }
}

#[tokio::test]
async fn stray_failures_and_noise_do_not_end_the_process() {
    let plugin = "console.log('{\"jsonrpc\":\"2.0\"}'.repeat(100)); console.error('noise');
        export const P = async () => ({ h: async (i, o) => {
            console.log('x'.repeat(100000));
            setTimeout(() => { throw new Error('from a timer') }, 0);
            Promise.reject(new Error('nobody waits'));
            await new Promise((done) => setTimeout(done, 50));
            o.ok = true } });";
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", plugin)]).await;
        assert_eq!(
            show(&hook(&process, &run("h", &["p"], json!({}))).await[0]),
            "ok=true"
        );
        let logs = room.host.logs.lock().unwrap().join("\n");
        assert!(logs.contains("uncaught exception: from a timer"), "{logs}");
        assert!(logs.contains("unhandled rejection: nobody waits"), "{logs}");
        assert!(process.is_alive());
        process.shutdown(LONG).await.unwrap();
        assert!(!process.is_alive());
    }
}

/// What the host takes back must not be seen by the handlers behind it, so the run ends there and they are asked anew.
#[tokio::test]
async fn a_run_ends_behind_a_handler_that_changed_what_it_may_not() {
    let fields = vec![
        OpenField {
            key: "system".into(),
            kind: "array".into(),
            required: true,
        },
        OpenField {
            key: "title".into(),
            kind: "string".into(),
            required: false,
        },
    ];
    for (code, results) in [
        ("output.system.push('a')", 2),
        ("output.system = []; output.title = 'x'", 2),
        ("output.title = null", 2),
        ("output.other = 1", 1),
        ("delete output.system", 1),
        ("output.system = 'text'", 1),
        ("output.title = 5", 1),
        ("delete output.fixed", 1),
    ] {
        let first =
            format!("export const P = async () => ({{ hook: (_, output) => {{ {code} }} }})");
        let second = "export const P = async () => ({ hook: () => {} })";
        for runtime in runtimes() {
            let room = Room::new(&runtime);
            let (process, _) = room.load(&[("first", &first), ("second", second)]).await;
            let mut run = run(
                "hook",
                &["first", "second"],
                json!({"system": [], "fixed": 1}),
            );
            run.open.clone_from(&fields);
            assert_eq!(hook(&process, &run).await.len(), results, "{code}");
        }
    }
}
