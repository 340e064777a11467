//! `cargo xtask bench hooks`: what a hook call costs, and what large histories cost, measured over a real plugin process.
//!
//! Prints a table; `--json FILE` writes the values, `--check` makes a missed goal an error. `--only
//! hook|transform|curve|host|traces|recovery` runs a part. Not a test: figures want a quiet machine.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod bare;
mod history;
mod peak;
mod room;
mod side;
mod traces;

use std::time::{Duration, Instant};

use outrigger_plugins::PluginSettings;
use serde_json::{Value, json};

use crate::room::Room;
use crate::side::{Cost, Side, measure};

/// How large histories travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Inline,
    File,
    Mirror,
}

impl Way {
    const ALL: &[Self] = &[Self::Inline, Self::File, Self::Mirror];

    fn name(self) -> &'static str {
        match self {
            Self::Inline => "inline",
            Self::File => "file",
            Self::Mirror => "mirror",
        }
    }
}

struct Options {
    only: Option<String>,
    json: Option<String>,
    check: bool,
}

fn options() -> Options {
    let mut options = Options {
        only: None,
        json: None,
        check: false,
    };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            // What cargo hands to every benchmark.
            "--bench" => {}
            "--only" => options.only = arguments.next(),
            "--json" => options.json = arguments.next(),
            "--check" => options.check = true,
            other => {
                eprintln!("bench hooks takes no `{other}`");
                std::process::exit(2);
            }
        }
    }
    options
}

fn main() {
    let options = options();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let only = options.only.clone();
    // On a worker, as turns are.
    let measured = runtime.spawn(async move {
        let wanted = |name: &str| only.as_deref().is_none_or(|only| only == name);
        let mut report = Report::default();
        if wanted("hook") {
            hook(&mut report).await;
        }
        if wanted("transform") {
            transform(&mut report).await;
        }
        if wanted("curve") {
            curve(&mut report).await;
        }
        if wanted("host") {
            beside_ten(&mut report).await;
        }
        if wanted("traces") {
            traces::traces(&mut report).await;
        }
        if wanted("recovery") {
            recovery(&mut report).await;
        }
        report
    });
    let report = runtime.block_on(measured).unwrap();
    if let Some(file) = &options.json {
        let text = serde_json::to_string_pretty(&report.values).unwrap();
        std::fs::write(file, text).unwrap();
    }
    for line in &report.missed {
        eprintln!("bench: missed: {line}");
    }
    if options.check && !report.missed.is_empty() {
        std::process::exit(1);
    }
}

#[derive(Default)]
pub(crate) struct Report {
    pub(crate) values: Vec<Value>,
    missed: Vec<String>,
}

impl Report {
    pub(crate) fn goal(&mut self, text: String, met: bool) -> &'static str {
        if met {
            return "ok";
        }
        self.missed.push(text);
        "MISSED"
    }
}

/// The value below which this share of them lies, in microseconds.
fn at(sorted: &[Duration], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share of a length"
    )]
    let index = (last as f64 * share).round() as usize;
    sorted[index].as_secs_f64() * 1e6
}

/// An empty hook beside the same two programs with nothing but a socket between them, and beside the least that is said in
/// a call, in turns: as calls come in a session, each to a process that sleeps (most of each figure is its waking), and one
/// right after the other.
async fn hook(report: &mut Report) {
    let room = Room::new(Way::Inline).await;
    let mut bare = bare::start(&room).await;
    println!("one hook call without content, microseconds");
    println!("{:76} {:>8} {:>8} {:>8}", "", "p50", "p95", "p99");
    for (name, calls, pause) in [
        (
            "a millisecond after the last",
            300,
            Some(Duration::from_millis(1)),
        ),
        ("right behind the last", 1000, None),
    ] {
        let mut times = Times::default();
        for round in 0..=ROUNDS {
            let mut now = Times::default();
            for _ in 0..calls {
                rest(pause).await;
                now.hooks.push(timed(room.empty()).await);
            }
            for _ in 0..calls {
                rest(pause).await;
                now.pings.push(timed(bare.ping()).await);
            }
            for _ in 0..calls {
                rest(pause).await;
                now.calls.push(timed(bare.call()).await);
            }
            // The first one warms all up.
            if round > 0 {
                times.append(now);
            }
        }
        compare(report, name, times);
    }
    room.end().await;
    println!();
}

#[derive(Default)]
struct Times {
    hooks: Vec<Duration>,
    pings: Vec<Duration>,
    calls: Vec<Duration>,
}

impl Times {
    fn append(&mut self, mut more: Self) {
        self.hooks.append(&mut more.hooks);
        self.pings.append(&mut more.pings);
        self.calls.append(&mut more.calls);
    }
}

pub(crate) async fn timed(work: impl Future<Output = ()>) -> Duration {
    let began = Instant::now();
    work.await;
    began.elapsed()
}

const ROUNDS: usize = 6;

async fn rest(pause: Option<Duration>) {
    if let Some(pause) = pause {
        tokio::time::sleep(pause).await;
    }
}

fn compare(report: &mut Report, name: &str, mut times: Times) {
    let Times {
        hooks,
        pings,
        calls,
    } = &mut times;
    for (what, times) in [
        ("bare socket ping-pong", &mut *pings),
        ("bare, with JSON and the plugin named before", &mut *calls),
        ("empty hook", &mut *hooks),
    ] {
        times.sort_unstable();
        let (p50, p95, p99) = (at(times, 0.5), at(times, 0.95), at(times, 0.99));
        let label = format!("{what}, {name}");
        println!("{label:76} {p50:8.1} {p95:8.1} {p99:8.1}");
        report.values.push(
            json!({"figure": what, "calls": name, "unit": "us", "p50": p50, "p95": p95, "p99": p99}),
        );
    }
    let least = at(hooks, 0.5) / at(calls, 0.5);
    println!("  p50 beside the bare one that names the plugin: {least:.2}");
    let ratio = at(hooks, 0.5) / at(pings, 0.5);
    let tail = at(hooks, 0.99);
    let verdict = report.goal(
        format!("{name}: p50 {ratio:.2} times the bare one"),
        ratio <= 1.5,
    );
    println!("  p50 within 1.5 times the bare one: {ratio:.2}  {verdict}");
    let verdict = report.goal(format!("{name}: p99 {tail:.0} us"), tail < 1000.0);
    println!("  p99 under 1 ms: {tail:.0} us  {verdict}");
}

fn heading(title: &str) {
    println!("{title}");
    println!(
        "{:34} {:8} {:>9} {:>7} {:>9} {:>9}",
        "", "way", "JS CPU", "", "latency", "host CPU"
    );
}

fn line(label: &str, way: Way, cost: &Cost, base: Option<&Cost>) {
    let saved = base.map_or_else(String::new, |base| {
        format!("{:+.0} %", (cost.js_ms / base.js_ms - 1.0) * 100.0)
    });
    println!(
        "{label:34} {:8} {:6.2} ms {saved:>7} {:6.2} ms {:6.3} ms",
        way.name(),
        cost.js_ms,
        cost.latency_ms,
        cost.host_ms
    );
}

async fn transform(report: &mut Report) {
    heading("experimental.chat.messages.transform, one message more each call, each call");
    for (total, size, calls) in [
        (1 << 20, 50 << 10, 100),
        (10 << 20, 50 << 10, 30),
        (1 << 20, 1 << 10, 100),
        (10 << 20, 1 << 10, 30),
    ] {
        let messages = total / size;
        let label = format!("{} MB as {messages} of {} KB", total >> 20, size >> 10);
        let mut base = None;
        for way in Way::ALL {
            let cost = measure(*way, messages, size, calls).await;
            line(&label, *way, &cost, base.as_ref());
            report.values.push(json!({
                "figure": "transform", "way": way.name(), "messages": messages, "message_bytes": size,
                "js_cpu_ms": cost.js_ms, "js_peak_ms": cost.peak_ms, "latency_ms": cost.latency_ms, "host_cpu_ms": cost.host_ms,
            }));
            match &base {
                Some(base) => {
                    saves(report, &label, *way, (total, size), cost.js_ms / base.js_ms);
                    shortens(report, &label, *way, &cost, base);
                }
                None => base = Some(cost),
            }
        }
    }
    println!();
}

/// The limits for the large history; and the default transfer, the mirror, always saves what A14 wants.
fn saves(report: &mut Report, label: &str, way: Way, (total, size): (usize, usize), part: f64) {
    let large = total > 1 << 20;
    let goal = match (way, large, size > 1 << 10) {
        (Way::File, true, true) => 0.55,
        (Way::File, true, false) => 0.30,
        (Way::Mirror, true, true) => 0.90,
        (Way::Mirror, true, false) => 0.75,
        (Way::Mirror, false, _) => 0.40,
        _ => return,
    };
    let text = format!(
        "{label}, {}: {:.0} % less JS CPU (goal {:.0} %)",
        way.name(),
        (1.0 - part) * 100.0,
        goal * 100.0
    );
    let verdict = report.goal(text.clone(), 1.0 - part >= goal);
    println!("  {text}  {verdict}");
}

/// The length of the peak in the default way, beside sending every payload inline: A14 wants 40 % less.
fn shortens(report: &mut Report, label: &str, way: Way, cost: &Cost, base: &Cost) {
    const GOAL: f64 = 0.40;
    let part = cost.peak_ms / base.peak_ms;
    let text = format!(
        "{label}, {}: busy for {:.1} ms without a break, inline {:.1} ms: {:.0} % less (goal {:.0} %)",
        way.name(),
        cost.peak_ms,
        base.peak_ms,
        (1.0 - part) * 100.0,
        GOAL * 100.0
    );
    if way == Way::Mirror {
        // Where nothing was seen of the payload inline, nothing was measured.
        let verdict = report.goal(text.clone(), base.peak_ms > 0.0 && 1.0 - part >= GOAL);
        println!("  {text}  {verdict}");
    } else {
        println!("  {text}");
    }
}

async fn curve(report: &mut Report) {
    let size = 1 << 10;
    heading("the same by number of messages of 1 KB");
    for messages in [10, 100, 1_000, 10_000] {
        let label = format!("{messages} messages");
        let mut base = None;
        for way in Way::ALL {
            let calls = (400_000 / messages).clamp(60, 2_000) as u32;
            let cost = measure(*way, messages, size, calls).await;
            line(&label, *way, &cost, base.as_ref());
            report.values.push(json!({
                "figure": "curve", "way": way.name(), "messages": messages, "message_bytes": size,
                "js_cpu_ms": cost.js_ms, "latency_ms": cost.latency_ms, "host_cpu_ms": cost.host_ms,
            }));
            if *way == Way::Mirror && messages >= 1_000 {
                #[expect(clippy::cast_precision_loss, reason = "a small count")]
                let each = cost.js_ms * 1000.0 / messages as f64;
                let text = format!("{label}, mirror: {each:.2} us of JS CPU a message (goal 2)");
                let verdict = report.goal(text.clone(), each <= 2.0);
                println!("  {text}  {verdict}");
            }
            if base.is_none() {
                base = Some(cost);
            }
        }
    }
    println!();
}

/// What the host itself spends on a mirrored history, beside one of ten messages: with a plugin that answers at once, and
/// with one that works for as long as the other needs for its messages. What comes behind a wait costs the host more than
/// what comes right after the last call, whatever was waited for; what messages cost is what is above the second. All by
/// turns and compared within each, so that a machine whose speed changes changes it for all.
async fn beside_ten(report: &mut Report) {
    const SIZE: usize = 1 << 10;
    const TURNS: usize = 9;
    const CALLS: u32 = 20;
    println!(
        "host CPU of a mirrored history beside one of ten messages, the median of {TURNS} turns"
    );
    for messages in [100, 1_000, 10_000] {
        let mut many = Side::new(Way::Mirror, messages, SIZE).await;
        let mut ten = Side::new(Way::Mirror, 10, SIZE).await;
        let mut slow = Side::new(Way::Mirror, 10, SIZE).await;
        let (mut plain, mut held) = (Vec::new(), Vec::new());
        for _ in 0..TURNS {
            let (long, cost) = many.calls(CALLS).await;
            let (short, least) = ten.calls(CALLS).await;
            slow.room.works(long.saturating_sub(short)).await;
            let (_, as_long) = slow.calls(CALLS).await;
            plain.push(cost / least);
            held.push(cost / as_long);
        }
        let (many, ten, slow) = (many.end().await, ten.end().await, slow.end().await);
        let (plain, held) = (median(plain), median(held));
        report.values.push(json!({
            "figure": "host", "messages": messages, "host_cpu_ms": many.host_ms, "times_ten": plain, "times_ten_as_long": held,
        }));
        let text = format!(
            "{messages} messages: {held:.2} times that of ten which take {:.1} ms as well (goal 1.5)",
            slow.latency_ms
        );
        let verdict = report.goal(text.clone(), held <= 1.5);
        println!("  {text}  {verdict}");
        println!(
            "    {:.3} ms; {plain:.2} times that of ten which take {:.1} ms",
            many.host_ms, ten.latency_ms
        );
    }
    println!();
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// How long the first call behind a hang takes: the process has been killed and is started and initialised again (A7).
async fn recovery(report: &mut Report) {
    const EACH: usize = 100;
    const LIMIT: f64 = 2_000_000.0;
    let mut settings = PluginSettings::default();
    settings.deadlines.normal = Duration::from_millis(100);
    // The hook is to be called every time.
    settings.breaker.timeouts = usize::MAX;
    let room = Room::with(settings).await;
    println!("the next call after a timeout, {EACH} recoveries of each kind, milliseconds");
    println!("{:28} {:>8} {:>8} {:>8}", "", "p50", "p95", "max");
    for fault in ["spins", "waits"] {
        let mut times = Vec::new();
        for _ in 0..EACH {
            let late = room.system(Some(fault)).await;
            assert_eq!(late, ["timeout"], "{fault}");
            let began = Instant::now();
            let next = room.system(None).await;
            times.push(began.elapsed());
            assert_eq!(next, ["ok"], "behind {fault}");
        }
        times.sort_unstable();
        let (p50, p95, max) = (at(&times, 0.5), at(&times, 0.95), at(&times, 1.0));
        let name = format!("a handler that {fault}");
        println!(
            "{name:28} {:8.1} {:8.1} {:8.1}",
            p50 / 1e3,
            p95 / 1e3,
            max / 1e3
        );
        report.values.push(
            json!({"figure": "recovery", "fault": fault, "unit": "us", "p50": p50, "p95": p95, "max": max}),
        );
        let verdict = report.goal(format!("recovery under 2 s: {max:.0} us"), max < LIMIT);
        println!("under 2 s  {verdict}");
    }
    room.end().await;
    println!();
}
