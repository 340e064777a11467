//! The breaker compared with a simple model of A8, over random timelines.

use outrigger_kernel::breaker::{Breaker, Gate, Rules, Turned, View};
use proptest::prelude::*;

const RULES: Rules = Rules {
    timeouts: 3,
    window: 60_000,
    pause: 60_000,
};

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Answer,
    Timeout,
    Unclear,
}
use End::{Answer, Timeout, Unclear};

/// Runs calls one after another: `(pause before, duration, result)`; returns what was let through and the
/// state changes.
fn run(calls: &[(u64, u64, End)]) -> String {
    let (mut breaker, mut now, mut out) = (Breaker::default(), 0, Vec::new());
    for (pause, took, end) in calls {
        now += pause;
        let gate = breaker.ask(now);
        let mut word = match gate {
            Gate::Call => "call".to_owned(),
            Gate::Trial => "trial".to_owned(),
            Gate::Skip { .. } => "skip".to_owned(),
        };
        if !matches!(gate, Gate::Skip { .. }) {
            now += took;
            let turned = match end {
                Answer => breaker.answered(gate),
                Timeout => breaker.timed_out(gate, now, &RULES),
                Unclear => breaker.unclear(gate),
            };
            match turned {
                Some(Turned::Open { until }) if *end == Unclear => {
                    assert!(until <= now, "{until}");
                    word += "!untold";
                }
                Some(Turned::Open { until }) => {
                    assert_eq!(until, now + RULES.pause);
                    word += "!open";
                }
                Some(Turned::Closed) => word += "!closed",
                None => {}
            }
        }
        out.push(word);
    }
    out.join(" ")
}

#[test]
fn a_breaker_opens_pauses_tries_and_closes() {
    let slow = 30_000;
    for (what, calls, expected) in [
        (
            "three within the window",
            vec![
                (0, 100, Timeout),
                (0, 100, Answer),
                (0, 100, Timeout),
                (0, 100, Answer),
                (0, 100, Timeout),
                (0, 1, Answer),
            ],
            "call call call call call!open skip",
        ),
        (
            "three in a row at a deadline of 30 s",
            vec![
                (0, slow, Timeout),
                (5000, slow, Timeout),
                (5000, slow, Timeout),
            ],
            "call call call!open",
        ),
        (
            "three in a row however far apart",
            vec![
                (0, 100, Timeout),
                (3_600_000, 100, Timeout),
                (3_600_000, 100, Timeout),
            ],
            "call call call!open",
        ),
        (
            "an answer in between, and the window is over",
            vec![
                (0, 100, Timeout),
                (0, 1, Answer),
                (59_000, 1000, Timeout),
                (0, 1, Answer),
                (100, 100, Timeout),
            ],
            "call call call call call",
        ),
        (
            "skipped for the pause, then one trial that goes well, and the count begins anew",
            vec![
                (0, 1, Timeout),
                (0, 1, Timeout),
                (0, 1, Timeout),
                (59_999, 1, Answer),
                (1, 1, Answer),
                (0, 1, Timeout),
                (0, 1, Timeout),
                (0, 1, Timeout),
            ],
            "call call call!open skip trial!closed call call call!open",
        ),
        (
            "a trial that times out",
            vec![
                (0, 1, Timeout),
                (0, 1, Timeout),
                (0, 1, Timeout),
                (60_000, 5000, Timeout),
                (59_999, 1, Answer),
                (1, 1, Answer),
            ],
            "call call call!open trial!open skip trial!closed",
        ),
        (
            "a trial that was cancelled is made again",
            vec![
                (0, 1, Timeout),
                (0, 1, Timeout),
                (0, 1, Timeout),
                (60_000, 5, Unclear),
                (0, 1, Answer),
            ],
            "call call call!open trial!untold trial!closed",
        ),
        (
            "what is unclear counts for nothing",
            vec![
                (0, 1, Timeout),
                (0, 1, Unclear),
                (0, 1, Timeout),
                (0, 1, Unclear),
                (0, 1, Unclear),
            ],
            "call call call call call",
        ),
    ] {
        assert_eq!(run(&calls), expected, "{what}");
    }
}

#[test]
fn while_a_trial_is_under_way_others_are_skipped_and_old_calls_decide_nothing() {
    let mut breaker = Breaker::default();
    let old = breaker.ask(0);
    for now in 0..3 {
        let gate = breaker.ask(now);
        breaker.timed_out(gate, now, &RULES);
    }
    assert_eq!(breaker.view(3, &RULES), View::Open { until: 60_002 });
    // It was let through before and ends now.
    assert_eq!(breaker.answered(old), None);
    assert_eq!(breaker.timed_out(old, 10, &RULES), None);
    assert_eq!(breaker.view(10, &RULES), View::Open { until: 60_002 });
    let trial = breaker.ask(60_002);
    assert_eq!(
        (trial, breaker.view(60_002, &RULES)),
        (Gate::Trial, View::HalfOpen)
    );
    assert_eq!(breaker.ask(60_003), Gate::Skip { until: 60_002 });
    assert_eq!(breaker.answered(old), None);
    assert_eq!(breaker.view(60_003, &RULES), View::HalfOpen);
    assert_eq!(breaker.answered(trial), Some(Turned::Closed));
    assert_eq!(breaker.view(60_004, &RULES), View::Closed { timeouts: 0 });
}

fn lines() -> impl Strategy<Value = Vec<(u64, u64, End)>> {
    let end = prop_oneof![3 => Just(Timeout), 2 => Just(Answer), 1 => Just(Unclear)];
    prop::collection::vec(
        (prop_oneof![0..100_u64, 0..90_000_u64], 0..40_000_u64, end),
        0..60,
    )
}

proptest! {
    #![proptest_config(crate::cases(200))]

    /// A8, formulated differently: from the whole history of ended calls since the last reset.
    #[test]
    fn it_agrees_with_the_rule_over_any_time_line(calls in lines()) {
        let mut breaker = Breaker::default();
        let mut now = 0;
        let mut open_until: Option<u64> = None;
        let mut ended: Vec<(u64, End)> = Vec::new();
        for (pause, took, end) in calls {
            now += pause;
            let gate = breaker.ask(now);
            let expected = match open_until {
                None => Gate::Call,
                Some(until) if now < until => Gate::Skip { until },
                Some(_) => Gate::Trial,
            };
            prop_assert_eq!(gate, expected);
            if matches!(gate, Gate::Skip { .. }) {
                continue;
            }
            now += took;
            let trial = gate == Gate::Trial;
            let turned = match end {
                Answer => breaker.answered(gate),
                Timeout => breaker.timed_out(gate, now, &RULES),
                Unclear => breaker.unclear(gate),
            };
            if end != Unclear {
                ended.push((now, end));
            }
            let recent = ended.iter().filter(|(at, end)| *end == Timeout && now - at < RULES.window).count();
            let row = ended.iter().rev().take_while(|(_, end)| *end == Timeout).count();
            let opens = end == Timeout && (trial || recent >= 3 || row >= 3);
            let expected = if opens {
                open_until = Some(now + RULES.pause);
                ended.clear();
                Some(Turned::Open { until: now + RULES.pause })
            } else if trial && end == Answer {
                open_until = None;
                ended.clear();
                Some(Turned::Closed)
            } else {
                if trial { open_until = Some(now - took); }
                trial.then_some(Turned::Open { until: now - took })
            };
            prop_assert_eq!(turned, expected);
        }
    }

    /// Overlapping calls: never two trials at once, and an open breaker lets nothing through before its time.
    #[test]
    fn overlapping_calls_get_one_trial_at_a_time(
        steps in prop::collection::vec((0..20_000_u64, any::<prop::sample::Index>(), any::<bool>(), prop_oneof![Just(Answer), Just(Timeout), Just(Unclear)]), 0..200),
    ) {
        let mut breaker = Breaker::default();
        let mut now = 0;
        let mut open: Vec<Gate> = Vec::new();
        for (pause, which, begins, end) in steps {
            now += pause;
            if begins || open.is_empty() {
                let before = breaker.view(now, &RULES);
                let gate = breaker.ask(now);
                match (before, gate) {
                    (View::Closed { .. }, Gate::Call) => open.push(gate),
                    (View::Open { until }, Gate::Trial) => {
                        prop_assert!(now >= until && !open.contains(&Gate::Trial));
                        open.push(gate);
                    }
                    (View::Open { until }, Gate::Skip { .. }) => prop_assert!(now < until),
                    (View::HalfOpen, Gate::Skip { .. }) => prop_assert!(open.contains(&Gate::Trial)),
                    other => prop_assert!(false, "{:?}", other),
                }
            } else {
                let gate = open.swap_remove(which.index(open.len()));
                match end {
                    Answer => { breaker.answered(gate); }
                    Timeout => { breaker.timed_out(gate, now, &RULES); }
                    Unclear => { breaker.unclear(gate); }
                }
            }
        }
    }
}
