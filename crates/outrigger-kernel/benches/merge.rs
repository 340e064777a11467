//! `cargo xtask bench messages`: how fast events become a conversation on one core (limit: over 200,000 tool pairs a second),
//! and how much is allocated for a message.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    unsafe_code,
    reason = "a benchmark, which counts what is allocated"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::hint::black_box;
use std::sync::atomic::{AtomicUsize, Ordering};

use outrigger_kernel::merge::{Conversation, Form};
use outrigger_protocol::event::Event;
use outrigger_protocol::message::{MessageInfo, Part};
use serde_json::{Value, json};

const PAIRS: usize = 100_000;
const RUNS: usize = 5;

/// Counts bytes that are allocated, not those that are given back.
struct Counting;

static ALLOCATED: AtomicUsize = AtomicUsize::new(0);

// SAFETY: all of it is the system's allocator; the counter is beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is passed on.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATED.fetch_add(size.saturating_sub(layout.size()), Ordering::Relaxed);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Seconds of CPU of this thread: others on the machine do not count.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Input, output and metadata of a call, as the bundled tools write them.
fn call(n: usize) -> (&'static str, Value, String, Value) {
    let path = format!("/project/src/file_{}.rs", n % 100);
    let line = "let answer = compute(&input)?;\n";
    match n % 4 {
        0 => (
            "bash",
            json!({"command": "cargo test", "description": "Runs the tests"}),
            line.repeat(20),
            json!({"output": line.repeat(20), "exit": 0}),
        ),
        1 => (
            "edit",
            json!({"filePath": path, "oldString": line, "newString": line.repeat(2)}),
            String::new(),
            json!({"filediff": {"file": path, "before": line.repeat(20), "after": line.repeat(21)}}),
        ),
        2 => (
            "glob",
            json!({"pattern": "**/*.rs"}),
            "/project/src/main.rs\n".repeat(20),
            json!({"count": 20, "truncated": false}),
        ),
        _ => (
            "read",
            json!({ "filePath": path }),
            line.repeat(20),
            json!({"preview": line}),
        ),
    }
}

fn updated(n: usize, tool: &str, state: &Value) -> Event {
    let part: Part = serde_json::from_value(json!({
        "id": format!("prt_{n:026}"), "sessionID": "ses_1", "messageID": "msg_2", "type": "tool", "callID": format!("call_{n}"), "tool": tool, "state": state,
    }))
    .unwrap();
    Event::PartUpdated {
        session_id: "ses_1".into(),
        part: Box::new(part),
        time: 1000,
    }
}

/// The start of a call, and its result.
fn pair(n: usize) -> [Event; 2] {
    let (tool, input, output, metadata) = call(n);
    let running = json!({"status": "running", "input": input, "time": {"start": 1000}});
    let completed = json!({
        "status": "completed", "input": input, "output": output, "title": "", "metadata": metadata, "time": {"start": 1000, "end": 1250},
    });
    [updated(n, tool, &running), updated(n, tool, &completed)]
}

fn answer() -> Event {
    let info: MessageInfo = serde_json::from_value(json!({
        "id": "msg_2", "sessionID": "ses_1", "parentID": "msg_1", "role": "assistant", "mode": "build", "agent": "build",
        "providerID": "mock", "modelID": "m1", "time": {"created": 900}, "path": {"cwd": "/project", "root": "/project"}, "cost": 0,
        "tokens": {"input": 0, "output": 0, "reasoning": 0, "cache": {"read": 0, "write": 0}},
    }))
    .unwrap();
    Event::MessageUpdated {
        session_id: "ses_1".into(),
        info: Box::new(info),
    }
}

fn main() {
    // A hundred, over and over: what is measured is the merging, not the memory of a million texts.
    let events: Vec<Event> = (0..100).flat_map(pair).collect();
    for (name, form) in [("merged", Form::Merged), ("apart", Form::Apart)] {
        let (mut rates, mut bytes) = (Vec::new(), 0);
        for _ in 0..RUNS {
            let mut conversation = Conversation::new(form);
            let _ = conversation.on(&answer());
            let (before, started) = (ALLOCATED.load(Ordering::Relaxed), cpu());
            let mut changes = 0;
            for event in events.iter().cycle().take(2 * PAIRS) {
                changes += black_box(conversation.on(black_box(event))).len();
            }
            rates.push(PAIRS as f64 / (cpu() - started));
            bytes = (ALLOCATED.load(Ordering::Relaxed) - before) / changes;
        }
        rates.sort_by(f64::total_cmp);
        println!(
            "{name:<8} {:>10.0} tool pairs a second of CPU (goal for merged: over 200,000), {bytes} bytes allocated for a change",
            rates.get(RUNS / 2).copied().unwrap_or_default()
        );
    }
}
