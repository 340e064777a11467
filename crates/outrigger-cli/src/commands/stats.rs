//! `outrigger stats`: tokens and cost, by day and by model.

use std::collections::BTreeMap;

use outrigger_agent::ProjectLocation;
use outrigger_store::ModelUsage;
use serde_json::json;

use super::session::stored::open;
use crate::args::{Global, StatsArgs};
use crate::failure::Failure;
use crate::terminal::progress::Line;
use crate::terminal::{name, out};

const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// Runs the command. Starts no plugin.
pub(crate) fn stats(global: &Global, args: &StatsArgs) -> Result<u8, Failure> {
    let boot = crate::boot::boot(global, &Line::new())?;
    let folder = ProjectLocation::find(&boot.directory).directory;
    let folder = folder.to_string_lossy();
    let store = open(&boot)?;
    let since = args.days.map_or(0, |days| {
        outrigger_stdx::clock::now_ms().saturating_sub(u64::from(days) * DAY_MS)
    });
    let usage = store.usage(since, args.here.then_some(&*folder))?;
    if args.json {
        let rows: Vec<_> = usage.iter().map(row).collect();
        let text = serde_json::to_string_pretty(&rows).unwrap_or_default();
        out(&format!("{text}\n"));
        return Ok(0);
    }
    if usage.is_empty() {
        out("no model was used in this time\n");
        return Ok(0);
    }
    let days = sums(&usage, |it| it.day.clone());
    let models = sums(&usage, |it| format!("{}/{}", it.provider, it.model));
    let total = sums(&usage, |_| "total".to_owned());
    out(&format!(
        "{}\n{}\n{}",
        table("Day", &days),
        table("Model", &models),
        table("", &total)
    ));
    Ok(0)
}

fn row(usage: &ModelUsage) -> serde_json::Value {
    json!({ "day": usage.day, "provider": usage.provider, "model": usage.model, "answers": usage.answers,
        "input": usage.input, "output": usage.output, "cacheRead": usage.cache_read, "cacheWrite": usage.cache_write,
        "cost": usage.cost })
}

fn sums(usage: &[ModelUsage], key: impl Fn(&ModelUsage) -> String) -> BTreeMap<String, ModelUsage> {
    let mut sums: BTreeMap<String, ModelUsage> = BTreeMap::new();
    for one in usage {
        let sum = sums.entry(key(one)).or_default();
        sum.answers += one.answers;
        sum.input += one.input;
        sum.output += one.output;
        sum.cache_read += one.cache_read;
        sum.cache_write += one.cache_write;
        sum.cost += one.cost;
    }
    sums
}

fn table(title: &str, rows: &BTreeMap<String, ModelUsage>) -> String {
    let width = rows
        .keys()
        .map(|it| it.chars().count())
        .max()
        .unwrap_or(0)
        .max(10);
    let heads = ["Answers", "Input", "Cached", "Output"].map(|head| format!("{head:>12}"));
    let mut text = match title {
        "" => String::new(),
        title => format!("{title:<width$}{}{:>12}\n", heads.concat(), "Cost"),
    };
    for (key, sum) in rows {
        let counts = [sum.answers, sum.input, sum.cache_read, sum.output]
            .map(|count| format!("{count:>12}"))
            .concat();
        let cost = format!("${:.4}", sum.cost);
        text.push_str(&format!("{:<width$}{counts}{cost:>12}\n", name(key)));
    }
    text
}
