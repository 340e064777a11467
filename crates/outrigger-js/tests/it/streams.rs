//! Endless answers: chunks as they are read, no more than that, and cancelled when unwanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures_util::StreamExt as _;
use outrigger_js::SdkAnswer;
use serde_json::json;

use crate::support::{LONG, Room, hook, run, runtimes, show, tool_run};

/// What became of the streams that were asked for.
#[derive(Default)]
pub(crate) struct Streams {
    /// Pieces that were taken out of the sources.
    taken: Arc<AtomicUsize>,
    /// Sources that are there.
    open: Arc<AtomicUsize>,
}

struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Streams {
    /// Pieces `N:` with so many letters behind it, without end; with a second number so many pieces.
    pub(crate) fn open(&self, path: &str) -> SdkAnswer {
        let mut numbers = path.split('/').map(|part| part.parse().unwrap());
        let (size, count): (usize, usize) = (
            numbers.next().unwrap(),
            numbers.next().unwrap_or(usize::MAX),
        );
        self.open.fetch_add(1, Ordering::SeqCst);
        let (open, taken) = (Open(Arc::clone(&self.open)), Arc::clone(&self.taken));
        let body = futures_util::stream::iter(0..count).map(move |n| {
            let _ = &open;
            taken.fetch_add(1, Ordering::SeqCst);
            Bytes::from(format!("{n}:{}\n", "\u{e4}".repeat(size)))
        });
        let headers = vec![("content-type".to_owned(), "text/event-stream".to_owned())];
        SdkAnswer::streamed(200, headers, body.boxed())
    }

    async fn all_closed(&self) -> bool {
        let end = Instant::now() + LONG;
        while self.open.load(Ordering::SeqCst) > 0 {
            if Instant::now() > end {
                return false;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        true
    }
}

const READER: &str = "
const read = async (serverUrl, path, most, pause, signal) => {
    const answer = await fetch(new URL(path, serverUrl), { signal });
    const reader = answer.body.getReader();
    const decoder = new TextDecoder();
    let text = '';
    while (text.split('\\n').length <= most) {
        const { done, value } = await reader.read();
        if (done) break;
        text += decoder.decode(value, { stream: true });
        if (pause) await new Promise((resolve) => setTimeout(resolve, pause));
    }
    return { reader, text, lines: text.trimEnd().split('\\n'), status: answer.status, kind: answer.headers.get('content-type') };
};
let held;
export const P = async ({ serverUrl }) => ({
    whole: async (_, o) => {
        const { lines, status, kind } = await read(serverUrl, '/stream/3/500', Infinity);
        o.got = [status, kind, lines.length, lines[0], lines[499]].join(' ');
    },
    empty: async (_, o) => { o.got = (await read(serverUrl, '/stream/3/0', Infinity)).text.length },
    large: async (_, o) => {
        const { lines } = await read(serverUrl, '/stream/3000000/3', Infinity);
        o.got = lines.map((line) => line.length).join();
    },
    many: async (_, o) => {
        const all = await Promise.all(Array.from({ length: 60 }, () => read(serverUrl, '/stream/1000/40', Infinity)));
        o.got = all.filter(({ lines }) => lines.length === 40 && lines[39].startsWith('39:')).length;
    },
    cancel: async (_, o) => {
        const { reader, lines } = await read(serverUrl, '/stream/10', 3);
        await reader.cancel();
        o.got = lines.slice(0, 3).map((line) => line[0]).join();
    },
    abort: async (_, o) => {
        const control = new AbortController();
        const { reader } = await read(serverUrl, '/stream/10', 3, 0, control.signal);
        control.abort();
        let failure;
        while (!failure) await reader.read().then(({ done }) => { if (done) failure = { name: 'done' } }, (error) => { failure = error });
        o.got = failure.name;
    },
    leak: async (_, o) => {
        held = [];
        const failures = [];
        for (let n = 0; n < 258; n++)
            await fetch(new URL('/stream/10', serverUrl)).then((answer) => held.push(answer), (error) => failures.push(error.message));
        o.got = [held.length, failures.join(' '), (await fetch(new URL('/session', serverUrl))).status].join(' | ');
        held.forEach((answer) => answer.body.cancel());
    },
    slow: async (_, o) => { held = await read(serverUrl, '/stream/1000', 1); o.got = held.lines[0].slice(0, 2) },
});
";

#[tokio::test]
async fn they_come_whole_in_order_and_many_at_once() {
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", READER)]).await;
        let mut shown = Vec::new();
        for name in ["whole", "empty", "large", "many"] {
            shown.push(show(
                &hook(&process, &run(name, &["p"], json!({}))).await[0],
            ));
        }
        insta::allow_duplicates! { insta::assert_snapshot!(shown.join("\n"), @r#"
        got="200 text/event-stream 500 0:äää 499:äää"
        got=0
        got="3000002,3000002,3000002"
        got=60
        "#); }
        assert!(room.host.streams.all_closed().await);
    }
}

#[tokio::test]
async fn what_is_not_wanted_any_more_is_given_up() {
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let (process, _) = room.load(&[("p", READER)]).await;
        let mut shown = Vec::new();
        for name in ["cancel", "abort", "leak"] {
            shown.push(show(
                &hook(&process, &run(name, &["p"], json!({}))).await[0],
            ));
            assert!(room.host.streams.all_closed().await, "{name}");
        }
        insta::allow_duplicates! { insta::assert_snapshot!(shown.join("\n"), @r#"
        got="0,1,2"
        got="AbortError"
        got="256 | more than 256 streams are open: close some more than 256 streams are open: close some | 200"
        "#); }
    }
}

/// A reader that does not read costs a window, whatever is sent meanwhile, and holds up no other call.
#[tokio::test]
async fn a_slow_reader_takes_no_more_than_its_window_and_holds_nobody_up() {
    for runtime in runtimes() {
        let room = Room::new(&runtime);
        let tool = "export const Q = async () => ({ tool: { t: { description: '', args: {}, execute: async () => 'ran' } } });";
        let (process, _) = room.load(&[("p", READER), ("q", tool)]).await;
        let first = show(&hook(&process, &run("slow", &["p"], json!({}))).await[0]);
        assert_eq!(first, r#"got="0:""#);
        let mut before = usize::MAX;
        let streams = &room.host.streams;
        while before != streams.taken.load(Ordering::SeqCst) {
            before = streams.taken.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        // 2 KB each, 256 KiB of window.
        assert!((100..400).contains(&before), "{before} pieces");
        let call = tool_run("q", "t", json!({}));
        let ran = process.tool_run(&call, LONG, std::future::pending()).await;
        assert_eq!(ran.unwrap().output, "ran");
        drop(process);
        assert!(streams.all_closed().await, "gone with its process");
    }
}
