//! Tools of plugins: schema, context, answers, permission, cancelling.

use std::sync::Arc;
use std::time::Duration;

use outrigger_js::JsError;
use serde_json::json;

use crate::support::{LONG, Room, hook, run, runtimes, show, tool_run};

const TOOLS: &str = "let signal; const tool = (execute, args = {}) => ({ description: 'd', args, execute });
    export const P = async ({ serverUrl }) => ({
        tool: {
            text: tool(async () => 'plain'),
            full: tool(async () => ({ title: 't', output: 'o', metadata: { n: 1 }, attachments: [{ mime: 'x' }] })),
            bare: tool(async () => ({ output: 'o' })),
            data: tool(async () => ({ output: { a: [1] } })),
            none: tool(async () => undefined),
            cyclic: tool(async () => { const o = { output: 'x', metadata: {} }; o.metadata.o = o; return o }),
            throws: tool(async () => { throw new Error('tool failed') }),
            keys: tool(async (args, ctx) => Object.keys(ctx).join() + ' ' + JSON.stringify(args) + ' ' + ctx.callID + ' ' + ctx.extra.model.id),
            raw: tool(async (args) => JSON.stringify(args), { path: { type: 'string' }, junk: 'no', any: true }),
            report: tool(async (args, ctx) => { ctx.metadata({ title: 'half', metadata: { n: 1 } }); await ctx.metadata({}); return 'done' }),
            ask: tool(async (args, ctx) => { await ctx.ask({ permission: 'edit', patterns: [args.path], always: ['*'], metadata: {} }); return 'allowed' }),
            wait: tool((args, ctx) => new Promise((_, reject) => { signal = ctx.abort; ctx.abort.addEventListener('abort', () => reject(new Error('aborted'))) })),
            fetches: tool(async (args) => (await fetch(new URL('/slow/' + args.n, serverUrl)).then((r) => r.json())).path),
        },
        aborted: async (_, output) => { output.aborted = signal?.aborted ?? 'no signal' },
        quick: async (_, output) => { output.ok = true },
    });";

#[tokio::test]
async fn answers_of_tools() {
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, loaded) = room.load(&[("p", TOOLS)]).await;
        let tools = &loaded.plugins[0].instances[0].tools;
        assert_eq!(tools.len(), 13);
        assert_eq!(
            tools[0].schema,
            json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object", "properties": {}})
        );
        assert_eq!(
            tools[8].schema,
            json!({"type": "object", "properties": {"path": {"type": "string"}, "any": true}, "required": ["path", "any"]})
        );
        let cases = [
            ("text", r#"{"title":"","output":"plain","metadata":{}}"#),
            (
                "full",
                r#"{"title":"t","output":"o","metadata":{"n":1},"attachments":[{"mime":"x"}]}"#,
            ),
            ("bare", r#"{"title":"","output":"o","metadata":{}}"#),
            (
                "data",
                r#"{"title":"","output":"{\"a\":[1]}","metadata":{}}"#,
            ),
            (
                "none",
                "! tool none answered with neither a string nor an object with `output`",
            ),
            (
                "cyclic",
                "! answer cannot be serialised: cyclic, or nested deeper than 100 levels",
            ),
            ("throws", "! tool failed"),
            (
                "keys",
                r#"{"title":"","output":"sessionID,abort,messageID,callID,extra,agent,messages,metadata,ask,directory,worktree {\"path\":\"ok\"} call_1 m","metadata":{}}"#,
            ),
            (
                "raw",
                r#"{"title":"","output":"{\"path\":\"ok\"}","metadata":{}}"#,
            ),
            ("report", r#"{"title":"","output":"done","metadata":{}}"#),
            ("ask", r#"{"title":"","output":"allowed","metadata":{}}"#),
            ("nothere", "! plugin p has no tool nothere"),
        ];
        for (name, expected) in cases {
            let answer = process
                .tool_run(
                    &tool_run("p", name, json!({"path": "ok"})),
                    LONG,
                    std::future::pending(),
                )
                .await;
            let shown = match answer {
                Ok(output) => serde_json::to_string(&output).unwrap(),
                Err(error) => format!("! {error}"),
            };
            assert_eq!(shown, expected, "{name} under {:?}", runtime.kind);
        }
        let refused = process
            .tool_run(
                &tool_run("p", "ask", json!({"path": "secret"})),
                LONG,
                std::future::pending(),
            )
            .await;
        assert_eq!(refused.unwrap_err().to_string(), "edit was refused");
        let reports = room.host.metadata.lock().unwrap();
        assert_eq!(
            (reports[0].title.as_deref(), &reports[0].metadata),
            (Some("half"), &json!({"n": 1}))
        );
    }
}

#[tokio::test]
async fn a_cancelled_call_fires_abort() {
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", TOOLS)]).await;
        let call = tool_run("p", "wait", json!({}));
        let cancel = async {
            // The signal exists once the tool was entered.
            while process
                .entered()
                .is_none_or(|enter| enter.what != "tool:wait")
            {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let cancelled = process.tool_run(&call, LONG, cancel).await;
        assert!(
            matches!(cancelled, Err(JsError::Cancelled { .. })),
            "{cancelled:?}"
        );
        // The cancel arrives before the next call.
        assert_eq!(
            show(&hook(&process, &run("aborted", &["p"], json!({}))).await[0]),
            "aborted=true"
        );
        // A dropped future and a deadline do the same.
        let late = process
            .tool_run(&call, Duration::from_millis(300), std::future::pending())
            .await;
        assert!(matches!(late, Err(JsError::CallTimeout { .. })), "{late:?}");
        assert_eq!(
            show(&hook(&process, &run("aborted", &["p"], json!({}))).await[0]),
            "aborted=true"
        );
    }
}

#[tokio::test]
async fn many_tools_and_their_requests_are_in_flight_while_a_hook_runs() {
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", TOOLS)]).await;
        let process = Arc::new(process);
        let calls: Vec<_> = (0..20)
            .map(|n| {
                let process = Arc::clone(&process);
                // Also says that the futures can be sent to other threads.
                tokio::spawn(async move {
                    process
                        .tool_run(
                            &tool_run("p", "fetches", json!({"n": n})),
                            LONG,
                            std::future::pending(),
                        )
                        .await
                })
            })
            .collect();
        while room.host.slow.lock().unwrap().len() < 20 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(
            show(&hook(&process, &run("quick", &["p"], json!({}))).await[0]),
            "ok=true"
        );
        for _ in 0..20 {
            room.host.gate.notify_one();
            tokio::task::yield_now().await;
        }
        room.host.gate.notify_waiters();
        for (n, call) in calls.into_iter().enumerate() {
            assert_eq!(call.await.unwrap().unwrap().output, format!("/slow/{n}"));
        }
    }
}
