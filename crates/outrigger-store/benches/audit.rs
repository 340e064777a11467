//! `cargo xtask bench audit`: what a record of the audit costs (limits: under 10 us of CPU in a batch, under 40 us when an
//! effect waits for it, both at p50).

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::time::Instant;

use outrigger_protocol::audit::{AuditKind, AuditRecord};
use outrigger_store::Store;

const BATCH: u32 = 512;
const BATCHES: usize = 100;
const WAITED: usize = 2_000;

/// CPU time of this process so far, in microseconds.
fn cpu() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    let own: f64 = stat
        .split(' ')
        .next()
        .and_then(|ns| ns.parse().ok())
        .unwrap_or(0.0);
    // Every thread has its own figure; the one above is of the main thread.
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let all: f64 = tasks
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next()?.parse::<f64>().ok())
        .sum();
    all.max(own) / 1000.0
}

/// As a hook's run makes it.
fn record(n: usize) -> AuditRecord {
    AuditRecord {
        trace_id: "trn_01JD000000000000000000".into(),
        session_id: Some("ses_01JD000000000000000000".into()),
        step_id: Some((n % 30).to_string()),
        hook_name: Some("tool.before_call".into()),
        plugin_id: Some("oh-my-opencode".into()),
        plugin_id_claimed: true,
        input_hash: Some("ab".repeat(32)),
        output_hash: Some("cd".repeat(32)),
        duration_ms: 1.25,
        ..AuditRecord::new(AuditKind::Hook, 1_700_000_000_000, "patch")
    }
}

/// p50 and p99.
fn usual(mut values: Vec<f64>) -> (f64, f64) {
    values.sort_by(f64::total_cmp);
    let at = |part: f64| {
        let at = (values.len() as f64 * part) as usize;
        values.get(at).copied().unwrap_or_default()
    };
    (at(0.5), at(0.99))
}

fn tell(what: &str, values: Vec<f64>, goal: u32) {
    let (p50, p99) = usual(values);
    println!("{what:<48} p50 {p50:>7.2} us  p99 {p99:>7.2} us  goal: p50 under {goal} us");
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&folder.path().join("store.db")).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut batches = Vec::new();
        for _ in 0..BATCHES {
            let began = cpu();
            for n in 0..BATCH as usize {
                store.audit_lazily(1, vec![record(n)]);
            }
            store.flush(false).await.unwrap();
            batches.push((cpu() - began) / f64::from(BATCH));
        }
        tell("a record of the audit in a batch, CPU", batches, 10);
        let mut waited = Vec::new();
        for n in 0..WAITED {
            let began = Instant::now();
            store.audit(1, vec![record(n)]).await.unwrap();
            waited.push(began.elapsed().as_secs_f64() * 1e6);
        }
        tell("a record of the audit that is waited for", waited, 40);
        let began = Instant::now();
        let report = store.verify_audit(None).unwrap();
        assert!(report.is_valid(), "{report:?}");
        println!(
            "check of a record of the audit: {:.1} us",
            began.elapsed().as_secs_f64() * 1e6 / report.rows as f64
        );
    });
}
