//! Laws of repetition.

use outrigger_kernel::repeats::{Made, Repeats, is_loop};
use proptest::prelude::*;

fn made(calls: &[(u64, u64)]) -> Vec<Made> {
    calls
        .iter()
        .map(|(call, result)| Made {
            call: *call,
            result: Some(*result),
        })
        .collect()
}

/// Returns whether any of these calls is a repetition; the result of each is fed before the next call.
fn loops(calls: &[(u64, u64)]) -> Vec<bool> {
    let mut repeats = Repeats::default();
    calls
        .iter()
        .map(|(call, result)| {
            let (position, repeats_itself) = repeats.add(*call);
            repeats.answered(position, *result);
            repeats_itself
        })
        .collect()
}

#[test]
fn by_table() {
    for (calls, want) in [
        (&[(1, 1), (1, 1), (1, 1)][..], true),
        (&[(1, 1), (1, 1)], false),
        (&[(1, 1), (1, 2), (1, 1)], false),
        (&[(1, 1), (2, 2), (1, 1), (2, 2), (1, 1), (2, 2)], true),
        (&[(1, 1), (2, 2), (1, 1), (2, 3), (1, 1), (2, 2)], false),
        (&[(9, 9), (1, 1), (1, 1), (1, 1)], true),
        (&[(1, 1), (1, 1), (9, 9), (1, 1)], false),
    ] {
        assert_eq!(is_loop(&made(calls)), want, "{calls:?}");
    }
}

proptest! {
    #[test]
    fn calls_that_all_differ_never_loop(n in 1_usize..200) {
        let calls: Vec<(u64, u64)> = (0..n as u64).map(|i| (i, 0)).collect();
        prop_assert!(loops(&calls).iter().all(|l| !l));
    }

    #[test]
    fn a_result_that_is_always_new_is_no_loop(n in 1_usize..200) {
        let calls: Vec<(u64, u64)> = (0..n as u64).map(|i| (1, i)).collect();
        prop_assert!(loops(&calls).iter().all(|l| !l));
    }

    /// For any calls before: the last call of the third round is detected.
    #[test]
    fn a_cycle_is_seen_in_its_third_round(
        before in prop::collection::vec((100_u64..200, 0_u64..3), 0..40),
        length in 1_usize..=8,
    ) {
        let cycle: Vec<(u64, u64)> = (0..length as u64).map(|i| (i, i)).collect();
        let mut calls = before.clone();
        calls.extend(cycle.repeat(3));
        let seen = loops(&calls);
        prop_assert!(seen.last().copied().unwrap_or_default());
        prop_assert!(seen[before.len()..seen.len() - 1].iter().all(|l| !l));
    }

    /// It depends on nothing but the retained calls.
    #[test]
    fn what_was_forgotten_does_not_matter(calls in prop::collection::vec((0_u64..3, 0_u64..2), 0..60)) {
        let seen = loops(&calls);
        let all = (1..=calls.len()).map(|n| {
            let mut made = made(&calls[..n]);
            if let Some(last) = made.last_mut() {
                last.result = None;
            }
            is_loop(&made)
        });
        prop_assert_eq!(seen, all.collect::<Vec<_>>());
    }
}
