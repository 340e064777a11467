//! Projections are a function of the log.

use std::collections::{BTreeMap, BTreeSet};

use outrigger_protocol::history::History;
use outrigger_protocol::log::LogRecord;
use outrigger_store::{Store, StoredHistory};
use proptest::prelude::*;

use crate::support::*;

/// What the events are generated from, small so that they meet each other.
#[derive(Clone, Debug)]
enum Act {
    Create(u8),
    Update(u8, u64),
    Delete(u8),
    Message(u8, u8, f64),
    RemoveMessage(u8, u8),
    Part(u8, u8, u8, String),
    RemovePart(u8, u8, u8),
    Todos(u8, Vec<String>),
    Step(u8, u8, u64, bool),
}

fn ses(n: u8) -> String {
    format!("ses_{n}")
}
fn msg(n: u8) -> String {
    format!("msg_{n}")
}
fn prt(n: u8) -> String {
    format!("prt_{n}")
}

impl Act {
    fn record(&self) -> LogRecord {
        match self {
            Self::Create(s) => created(session(&ses(*s), None, 1)),
            Self::Update(s, at) => updated(session(&ses(*s), Some("ses_0"), *at)),
            Self::Delete(s) => deleted(&ses(*s)),
            Self::Message(s, m, cost) => message(&ses(*s), &msg(*m), *cost),
            Self::RemoveMessage(s, m) => message_removed(&ses(*s), &msg(*m)),
            Self::Part(s, m, p, text) => part(&ses(*s), &msg(*m), &prt(*p), text),
            Self::RemovePart(s, m, p) => part_removed(&ses(*s), &msg(*m), &prt(*p)),
            Self::Todos(s, list) => todos(
                &ses(*s),
                &list.iter().map(String::as_str).collect::<Vec<_>>(),
            ),
            Self::Step(s, t, n, last) => step(&ses(*s), &format!("trn_{s}_{t}"), *n, *last),
        }
    }
}

fn act() -> impl Strategy<Value = Act> {
    let s = || 0..3u8;
    let m = || 0..3u8;
    prop_oneof![
        2 => s().prop_map(Act::Create),
        1 => (s(), 0..9u64).prop_map(|(s, at)| Act::Update(s, at)),
        1 => s().prop_map(Act::Delete),
        4 => (s(), m(), -1.0..1.0f64).prop_map(|(s, m, cost)| Act::Message(s, m, cost)),
        1 => (s(), m()).prop_map(|(s, m)| Act::RemoveMessage(s, m)),
        6 => (s(), m(), 0..4u8, ".{0,12}").prop_map(|(s, m, p, text)| Act::Part(s, m, p, text)),
        1 => (s(), m(), 0..4u8).prop_map(|(s, m, p)| Act::RemovePart(s, m, p)),
        1 => (s(), proptest::collection::vec(".{0,6}", 0..3)).prop_map(|(s, list)| Act::Todos(s, list)),
        2 => (s(), 0..2u8, 0..5u64, any::<bool>()).prop_map(|(s, t, n, last)| Act::Step(s, t, n, last)),
    ]
}

/// The same rules in plain maps: message -> parts with their text, per session.
#[derive(Default)]
struct Model {
    gone: BTreeSet<u8>,
    sessions: BTreeSet<u8>,
    messages: BTreeSet<(u8, u8)>,
    parts: BTreeMap<(u8, u8, u8), String>,
}

impl Model {
    fn apply(&mut self, act: &Act) {
        match act {
            Act::Create(s) => {
                self.gone.remove(s);
                self.sessions.insert(*s);
            }
            Act::Delete(s) => {
                self.gone.insert(*s);
                self.sessions.remove(s);
                self.messages.retain(|(of, _)| of != s);
                self.parts.retain(|(of, ..), _| of != s);
            }
            Act::Update(s, _)
            | Act::Message(s, ..)
            | Act::RemoveMessage(s, _)
            | Act::Part(s, ..)
            | Act::RemovePart(s, ..)
                if self.gone.contains(s) => {}
            Act::Update(s, _) => {
                self.sessions.insert(*s);
            }
            Act::Message(s, m, _) => {
                self.messages.insert((*s, *m));
            }
            Act::RemoveMessage(s, m) => {
                self.messages.remove(&(*s, *m));
                self.parts.retain(|(of, on, _), _| (of, on) != (s, m));
            }
            Act::Part(s, m, p, text) => {
                self.parts.insert((*s, *m, *p), text.clone());
            }
            Act::RemovePart(s, m, p) => {
                self.parts.remove(&(*s, *m, *p));
            }
            Act::Todos(..) | Act::Step(..) => {}
        }
    }

    fn messages(&self, s: u8) -> Vec<(String, Vec<String>)> {
        let of = |m: u8| {
            self.parts
                .range((s, m, 0)..=(s, m, u8::MAX))
                .map(|(_, text)| text.clone())
                .collect()
        };
        self.messages
            .range((s, 0)..=(s, u8::MAX))
            .map(|(_, m)| (msg(*m), of(*m)))
            .collect()
    }
}

fn shown(store: &Store, s: u8) -> Vec<(String, Vec<String>)> {
    use outrigger_protocol::message::PartKind;
    store
        .messages(&ses(s).into())
        .unwrap()
        .into_iter()
        .map(|m| {
            let texts = m.parts.into_iter().map(|p| match p.kind {
                PartKind::Text(t) => t.text,
                other => panic!("{other:?}"),
            });
            (m.info.id().to_string(), texts.collect())
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn a_rebuild_gives_the_same_bytes_and_both_are_what_the_events_say(
        batches in proptest::collection::vec(proptest::collection::vec(act(), 1..12), 1..8)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let (store, _) = Store::open(&folder.path().join("store.db")).unwrap();
            let mut model = Model::default();
            for batch in &batches {
                batch.iter().for_each(|act| model.apply(act));
                store.append(7, batch.iter().map(Act::record).collect()).await.unwrap();
            }
            let live = store.dump_projections().unwrap();
            for s in 0..3 {
                assert_eq!(shown(&store, s), model.messages(s));
                assert_eq!(store.session(&ses(s).into()).unwrap().is_some(), model.sessions.contains(&s));
            }
            store.rebuild().await.unwrap();
            assert_eq!(live, store.dump_projections().unwrap());
            assert!(store.verify_chain().unwrap().is_valid());
        });
    }
}

/// Changes of one session, long enough that its messages fill several leaves of the tree that they are kept in.
fn change() -> impl Strategy<Value = Act> {
    let m = || 0..60u8;
    prop_oneof![
        8 => (m(), -1.0..1.0f64).prop_map(|(m, cost)| Act::Message(0, m, cost)),
        1 => m().prop_map(|m| Act::RemoveMessage(0, m)),
        6 => (m(), 0..3u8, ".{0,6}").prop_map(|(m, p, text)| Act::Part(0, m, p, text)),
        1 => (m(), 0..3u8).prop_map(|(m, p)| Act::RemovePart(0, m, p)),
        1 => (1..3u8, m(), -1.0..1.0f64).prop_map(|(s, m, cost)| Act::Message(s, m, cost)),
        1 => (0..9u64).prop_map(|at| Act::Update(0, at)),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn a_history_that_is_kept_up_to_date_is_what_a_fresh_read_gives(
        batches in proptest::collection::vec(
            (proptest::collection::vec(change(), 1..40), any::<bool>(), 0..40u8),
            1..16,
        )
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("store.db");
            let (store, _) = Store::open(&path).unwrap();
            // As another process has it open.
            let (other, _) = Store::open(&path).unwrap();
            let id = ses(0).into();
            let (mut each, mut seldom) = (StoredHistory::default(), StoredHistory::default());
            for (batch, elsewhere, fate) in &batches {
                let writer = if *elsewhere { &other } else { &store };
                if *fate == 0 {
                    writer.append(7, vec![Act::Delete(0).record()]).await.unwrap();
                } else if *fate == 1 {
                    writer.append(7, vec![Act::Create(0).record()]).await.unwrap();
                }
                writer.append(7, batch.iter().map(Act::record).collect()).await.unwrap();
                store.update_history(&id, &mut each).unwrap();
                if *fate % 4 == 0 {
                    store.update_history(&id, &mut seldom).unwrap();
                }
                let mut fresh = StoredHistory::default();
                store.update_history(&id, &mut fresh).unwrap();
                let all: History = store.messages(&id).unwrap().into_iter().collect();
                assert_eq!(each.messages(), &all);
                assert_eq!(each.bytes(), fresh.bytes());
            }
            store.update_history(&id, &mut seldom).unwrap();
            assert_eq!(seldom.messages(), each.messages());
            assert_eq!(seldom.bytes(), each.bytes());
        });
    }

    #[test]
    fn pages_of_messages_are_cut_out_of_all(
        acts in proptest::collection::vec(change(), 1..120), most in 0..70usize, before in 0..64u8,
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let folder = tempfile::tempdir().unwrap();
            let (store, _) = Store::open(&folder.path().join("store.db")).unwrap();
            store.append(7, acts.iter().map(Act::record).collect()).await.unwrap();
            let id = ses(0).into();
            for before in [None, Some(msg(before).into())] {
                let mut all = store.messages(&id).unwrap();
                if let Some(before) = &before {
                    all.retain(|message| message.info.id() < before);
                }
                let page = all.split_off(all.len().saturating_sub(most));
                assert_eq!(store.newest_messages(&id, before.as_ref(), most).unwrap(), page);
            }
        });
    }
}

#[tokio::test]
async fn what_comes_late_for_a_deleted_session_does_not_bring_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&folder.path().join("store.db")).unwrap();
    let late = || {
        vec![
            updated(session("ses_1", None, 2)),
            message("ses_1", "msg_1", 0.0),
            part("ses_1", "msg_1", "prt_1", "x"),
            todos("ses_1", &["a"]),
            step("ses_1", "trn_1", 0, false),
        ]
    };
    store
        .append(1, vec![created(session("ses_1", None, 1))])
        .await
        .unwrap();
    store.append(1, late()).await.unwrap();
    store.append(1, vec![deleted("ses_1")]).await.unwrap();
    store.append(1, late()).await.unwrap();
    insta::assert_snapshot!(store.dump_projections().unwrap(), @r#"gone|Text("ses_1")"#);
    assert_eq!(store.head().unwrap().seq, 12, "the log keeps everything");
    assert!(store.open_turns().unwrap().is_empty());
}

#[tokio::test]
async fn numbers_that_are_not_json_do_not_part_log_and_projection() {
    let folder = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&folder.path().join("store.db")).unwrap();
    store
        .append(
            1,
            vec![
                message("ses_1", "msg_1", f64::NAN),
                message("ses_1", "msg_2", 0.1 + 0.2),
            ],
        )
        .await
        .unwrap();
    assert_sound(&store).await;
}
