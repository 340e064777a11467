//! `cargo xtask bench runtime`: what a command in the sandbox costs over one without, until it runs and after it has ended, in an empty
//! project and in one of 30,000 files (limit: a start costs 3 ms at most).

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use outrigger_agent::{Agent, Boot};
use outrigger_sandbox::{Child, Spawner, Spec, Stdio};

const RUNS: usize = 200;
/// Files in a folder, folders in a folder, and these.
const FILES: [usize; 3] = [30, 50, 20];
const PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Until the command runs, and from its end until its result is there.
struct Cost {
    start: Duration,
    end: Duration,
}

async fn measured(start: impl Future<Output = Child>) -> Cost {
    let began = Instant::now();
    let mut child = start.await;
    let start = began.elapsed();
    child.wait().await.unwrap();
    let ended = Instant::now();
    let child = tokio::task::spawn_blocking(move || {
        assert!(child.finish().changes.is_empty());
        child
    });
    let child = child.await.unwrap();
    let end = ended.elapsed();
    drop(child);
    Cost { start, end }
}

fn middle(of: impl Iterator<Item = Duration>) -> Duration {
    let mut all: Vec<Duration> = of.collect();
    all.sort();
    all.get(all.len() / 2).copied().unwrap_or_default()
}

fn print(what: &str, costs: &[Cost], bare: Option<&Cost>) -> Cost {
    let cost = Cost {
        start: middle(costs.iter().map(|it| it.start)),
        end: middle(costs.iter().map(|it| it.end)),
    };
    let ms = |it: Duration| it.as_secs_f64() * 1e3;
    let above = bare
        .map(|bare| ms(cost.start) - ms(bare.start))
        .map(|it| format!("  above a bare start {it:>6.2} ms"));
    println!(
        "{what:<44} start {:>7.2} ms  end {:>6.2} ms{}",
        ms(cost.start),
        ms(cost.end),
        above.unwrap_or_default()
    );
    cost
}

fn fill(project: &Path) {
    let [files, folders, around] = FILES;
    for outer in 0..around {
        for inner in 0..folders {
            let folder = project.join(format!("{outer}/{inner}"));
            fs::create_dir_all(&folder).unwrap();
            for file in 0..files {
                fs::write(folder.join(file.to_string()), "").unwrap();
            }
        }
    }
}

async fn bare(folder: &Path) -> Cost {
    let spawner = Spawner::new().unwrap();
    let start = async || {
        let spec = Spec::new("true").cwd(folder).var("PATH", PATH);
        let spec = spec.stdout(Stdio::Pipe).stderr(Stdio::Pipe);
        spawner.spawn(spec).await.unwrap()
    };
    let mut all = Vec::new();
    for _ in 0..RUNS {
        all.push(measured(start()).await);
    }
    print("without a sandbox", &all, None)
}

async fn sandboxed(what: &str, folder: &Path, project: &Path, bare: &Cost) {
    let home = folder.join("home");
    fs::create_dir_all(&home).unwrap();
    let variables = [("HOME", home.to_str().unwrap()), ("PATH", PATH)]
        .map(|(name, value)| (name.to_owned(), value.to_owned()));
    let mut boot = Boot::new(project.to_owned(), BTreeMap::from(variables));
    boot.pure = true;
    let agent = Agent::boot(boot).await.unwrap();
    let words = [OsString::from("true")];
    let start = async || agent.start_sandboxed(&words).await.unwrap();
    let first = measured(start()).await;
    print(&format!("{what}, the first command"), &[first], Some(bare));
    let mut all = Vec::new();
    for _ in 0..RUNS {
        all.push(measured(start()).await);
    }
    print(&format!("{what}, later commands"), &all, Some(bare));
    agent.shutdown().await;
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let [empty, full] = ["empty", "full"].map(|name| root.join(name));
        fs::create_dir(&empty).unwrap();
        fill(&full);
        let bare = bare(&root).await;
        sandboxed("in an empty project", &root, &empty, &bare).await;
        sandboxed("in one of 30,000 files", &root, &full, &bare).await;
    });
}
