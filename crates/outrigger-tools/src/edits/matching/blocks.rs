//! Rules that match the first and the last line of a block and compare what is between them.

use std::ops::Range;

use strsim::generic_levenshtein;

use super::Spans;
use super::lines::{Line, span, split};

// Minimum average similarity of the inner lines of a block between two anchors.
const SIMILAR: f64 = 0.6;
// A block must be this much more similar than the next best.
const MARGIN: f64 = 0.02;
// Permitted difference in the number of lines of a block: a quarter, and at least one.
const SLACK: usize = 4;
// Longer lines are only compared for equality.
const MAX_LINE_LENGTH: usize = 400;
// Maximum number of compared pairs of characters; further lines are only compared for equality.
const MAX_PAIRS: usize = 50_000_000;
// Maximum number of candidate blocks; a file of closing braces has no end of them.
const MAX_BLOCKS: usize = 200;

/// Matches if first and last line are equal except for white space, and what is between them is similar. For blocks of three
/// lines or more.
pub(super) fn anchored(content: &str, old: &str) -> Spans {
    let mut scored: Vec<(f64, Range<usize>)> = Vec::new();
    let (here, wanted) = (split(content), split(old));
    let mut pairs = MAX_PAIRS;
    for block in blocks(&here, &wanted) {
        let score = similarity(
            &block[1..block.len() - 1],
            &wanted[1..wanted.len() - 1],
            &mut pairs,
        );
        if let Some(span) = span(block, old).filter(|_| score >= SIMILAR) {
            scored.push((score, span));
        }
        if scored.len() >= MAX_BLOCKS {
            break;
        }
    }
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    let Some(best) = scored.first().cloned() else {
        return Vec::new();
    };
    let rivals = scored.iter().filter(|other| best.0 - other.0 < MARGIN);
    let mut spans: Spans = rivals.map(|(_, span)| span.clone()).collect();
    spans.sort_by_key(|span| span.start);
    spans
}

/// Matches if first and last line are equal except for white space, there are as many lines between them, and at least half of
/// these are equal too.
pub(super) fn context_aware(content: &str, old: &str) -> Spans {
    let (here, wanted) = (split(content), split(old));
    if wanted.len() < 3 {
        return Vec::new();
    }
    here.windows(wanted.len())
        .filter(|window| ends_match(window, &wanted) && half_equal(window, &wanted))
        .filter_map(|window| span(window, old))
        .collect()
}

fn half_equal(window: &[Line<'_>], wanted: &[Line<'_>]) -> bool {
    let inner = wanted.len() - 1;
    let pairs = window[1..inner].iter().zip(&wanted[1..inner]);
    let equal: Vec<bool> = pairs
        .filter(|(a, b)| !(a.text.trim().is_empty() && b.text.trim().is_empty()))
        .map(|(a, b)| a.text.trim() == b.text.trim())
        .collect();
    equal.iter().filter(|same| **same).count() * 2 >= equal.len()
}

fn ends_match(block: &[Line<'_>], wanted: &[Line<'_>]) -> bool {
    let same = |a: Option<&Line<'_>>, b: Option<&Line<'_>>| match (a, b) {
        (Some(a), Some(b)) => a.text.trim() == b.text.trim() && !b.text.trim().is_empty(),
        _ => false,
    };
    same(block.first(), wanted.first()) && same(block.last(), wanted.last())
}

// Returns runs of lines of about the right length whose ends match; from each first line the one with the nearest length.
fn blocks<'a, 'b>(here: &'b [Line<'a>], wanted: &[Line<'_>]) -> Vec<&'b [Line<'a>]> {
    let size = wanted.len();
    if size < 3 {
        return Vec::new();
    }
    let slack = (size / SLACK).max(1);
    let mut found = Vec::new();
    for start in 0..here.len() {
        let mut sizes: Vec<usize> = (size.saturating_sub(slack).max(3)..=size + slack).collect();
        sizes.sort_by_key(|s| s.abs_diff(size));
        let block = sizes
            .into_iter()
            .filter_map(|s| here.get(start..start + s))
            .find(|block| ends_match(block, wanted));
        found.extend(block);
    }
    found
}

fn similarity(a: &[Line<'_>], b: &[Line<'_>], pairs: &mut usize) -> f64 {
    let most = a.len().max(b.len());
    if most == 0 {
        return 1.0;
    }
    let sum: f64 = a
        .iter()
        .zip(b)
        .map(|(a, b)| alike(a.text.trim(), b.text.trim(), pairs))
        .sum();
    sum / most as f64
}

fn alike(a: &str, b: &str, pairs: &mut usize) -> f64 {
    if a == b {
        return 1.0;
    }
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let most = a.len().max(b.len());
    let cost = a.len().saturating_mul(b.len());
    if most > MAX_LINE_LENGTH || cost > *pairs {
        return 0.0;
    }
    *pairs -= cost;
    1.0 - generic_levenshtein(&a, &b) as f64 / most as f64
}
