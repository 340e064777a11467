//! A shared conversation stays consistent under any operation.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

fn shared(value: Value) -> Arc<HistoryMessage> {
    Arc::new(value.into())
}

/// A quick hash that detects changes.
fn sum(bytes: &[u8]) -> Digest {
    let mut sum = [0_u8; 32];
    for (at, byte) in bytes.iter().enumerate() {
        sum[at % 32] = sum[at % 32].wrapping_mul(31).wrapping_add(*byte);
    }
    sum
}

fn digest(history: &History) -> Digest {
    history.digest(|message| sum(json!(message).to_string().as_bytes()), sum)
}

proptest! {
    #[test]
    fn it_is_the_list_that_it_stands_for(
        length in 0_usize..300,
        edits in prop::collection::vec((0_u8..4, 0_usize..320), 0..6),
    ) {
        let mut history: History = (0..length).map(|i| json!({"n": i})).collect();
        let mut list: Vec<Value> = (0..length).map(|i| json!({"n": i})).collect();
        for (edit, at) in edits {
            // So that something is out of date, and a peer has the old version.
            let (before, known) = (history.clone(), (history.bytes(), digest(&history)));
            match edit {
                0 => {
                    history.push(shared(json!(at)));
                    list.push(json!(at));
                }
                1 => {
                    prop_assert_eq!(history.set(at, json!("new").into()), at < list.len());
                    if let Some(place) = list.get_mut(at) { *place = json!("new"); }
                }
                2 => {
                    history.change(at, |message| *message = json!([message.take()]));
                    if let Some(place) = list.get_mut(at) { *place = json!([place.take()]); }
                }
                _ => {
                    let from = at.min(list.len());
                    let rest = list.len() - from;
                    let order = [Piece::Kept(from, rest), Piece::New { value: json!(at) }, Piece::Kept(0, from)];
                    history = history.arranged(&order).unwrap();
                    list.rotate_left(from);
                    list.insert(rest, json!(at));
                }
            }
            let bytes: u64 = list.iter().map(|value| value.to_string().len() as u64).sum();
            prop_assert_eq!(history.bytes(), bytes);
            prop_assert_eq!(history.len(), list.len());
            let rebuilt = History::of(history.iter().cloned().collect());
            prop_assert_eq!(&rebuilt, &history);
            prop_assert_eq!(digest(&rebuilt), digest(&history));
            let from = at.min(list.len());
            prop_assert_eq!(history.iter_from(from).count(), list.len() - from);
            prop_assert!(history.iter_from(from).next().is_none_or(|it| it.to_value() == list[from]));
            prop_assert_eq!(json!(history), json!(list));
            prop_assert!(!history.is_over(bytes));
            prop_assert!(bytes == 0 || history.is_over(bytes - 1));
            let fresh: History = list.iter().cloned().collect();
            prop_assert_eq!(digest(&history), digest(&fresh));
            prop_assert_eq!(&history, &fresh);
            prop_assert_eq!((before.bytes(), digest(&before)), known);
        }
    }
}

#[test]
fn an_order_that_names_what_there_is_not_is_none() {
    let history: History = ["a", "b", "c"]
        .into_iter()
        .map(|text| json!(text))
        .collect();
    for (order, want) in [
        (json!([[1, 2], [0, 1]]), Some(json!(["b", "c", "a"]))),
        (json!([[2, 2]]), None),
        (json!([[0, 2], [0, 2]]), None),
        (json!([[usize::MAX, 1]]), None),
        (json!([[0, 1], [0, usize::MAX]]), None),
    ] {
        let pieces: Vec<Piece> = serde_json::from_value(order.clone()).unwrap();
        let arranged = history.arranged(&pieces).map(|history| json!(history));
        assert_eq!(arranged, want, "{order}");
    }
}

#[test]
fn what_did_not_change_is_shared_with_the_list_before() {
    let list = |changed: usize| -> History {
        let one = |i| {
            if i == changed {
                json!("changed")
            } else {
                json!(i)
            }
        };
        (0..300).map(one).collect()
    };
    let (before, mut after) = (list(usize::MAX), list(17));
    after.push(shared(json!("more")));
    assert_eq!(after.shared_from(&before, 0), 0);
    after.renew(&before);
    // Leaves of 16, 16 of them in a node: the second leaf of the first node differs, and the last leaf of the
    // last node.
    for (at, shared) in [
        (0, 16),
        (1, 0),
        (16, 0),
        (17, 0),
        (32, 16),
        (256, 16),
        (272, 16),
        (288, 0),
        (301, 0),
    ] {
        assert_eq!(after.shared_from(&before, at), shared, "from {at}");
    }
    let is = |at| Arc::ptr_eq(after.get(at).unwrap(), before.get(at).unwrap());
    assert_eq!((is(16), is(17), is(18)), (true, false, true));
}

#[test]
fn a_list_that_grows_shares_the_tree_of_the_one_before() {
    let mut history = History::default();
    for index in 0..5000 {
        let before = history.clone();
        history.push(shared(json!(index)));
        // The pieces that both have: at most the number of the tree's levels times the nodes per level.
        let (mut at, mut pieces) = (0, 0);
        while at < history.len() {
            at += history.shared_from(&before, at).max(1);
            pieces += 1;
        }
        assert!(pieces <= 4 * 16, "{pieces} pieces of {index}");
        // After the tree has become higher, and nothing is shared by growth alone, it is found again.
        if [16, 256, 4096].contains(&index) {
            for (one, other) in [(&history, &before), (&before, &history)] {
                let mut again = History::default();
                one.iter().for_each(|one| again.push(Arc::clone(one)));
                assert_eq!(again.shared_from(other, 0), 0);
                again.share(other);
                assert_eq!(again.shared_from(other, 0), index);
            }
        }
    }
}

#[test]
fn texts_are_compared_not_values() {
    for (a, b) in [
        (json!({"a": 1, "b": 2}), json!({"b": 2, "a": 1})),
        (json!(0.0), json!(-0.0)),
        (json!([1]), json!([1, 1])),
        (json!({"a": null}), json!({})),
        (json!(1), json!(1.0)),
    ] {
        assert!(shared(a.clone()).is_same(&shared(a.clone())), "{a}");
        assert!(!shared(a.clone()).is_same(&shared(b.clone())), "{a} {b}");
    }
}
