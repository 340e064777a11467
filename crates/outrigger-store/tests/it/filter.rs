//! Listing sessions and values by the API's query parameters.

use outrigger_protocol::event::{BusEvent, Event};
use outrigger_protocol::log::LogRecord;
use outrigger_protocol::session::{Session, SessionTime};
use outrigger_store::{SessionFilter, Store};

fn made(id: &str, title: &str, path: &str, updated: u64, archived: Option<u64>) -> LogRecord {
    let info = Session {
        id: id.into(),
        title: title.into(),
        path: path.into(),
        project_id: "p".into(),
        time: SessionTime {
            updated,
            archived,
            ..SessionTime::default()
        },
        ..Session::default()
    };
    let event = Event::SessionCreated {
        session_id: info.id.clone(),
        info: Box::new(info),
    };
    LogRecord::Event(Box::new(BusEvent {
        id: format!("evt_{id}").as_str().into(),
        event,
    }))
}

#[tokio::test]
async fn every_filter_leaves_what_it_says() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&dir.path().join("s.db")).unwrap();
    let records = vec![
        made("ses_1", "Fix the Parser", "", 10, None),
        made("ses_2", "100% done", "app", 20, Some(5)),
        made("ses_3", "parsing_more", "app/web", 30, None),
        made("ses_4", "other", "apple", 40, None),
    ];
    store.append(1, records).await.unwrap();
    let all = SessionFilter::default;
    let cases = [
        ("all", all(), "4321"),
        (
            "since",
            SessionFilter {
                since: Some(20),
                ..all()
            },
            "432",
        ),
        (
            "before",
            SessionFilter {
                before: Some(20),
                ..all()
            },
            "1",
        ),
        (
            "far",
            SessionFilter {
                since: Some(u64::MAX),
                ..all()
            },
            "",
        ),
        (
            "search",
            SessionFilter {
                search: Some("PARS".into()),
                ..all()
            },
            "31",
        ),
        (
            "no wildcards",
            SessionFilter {
                search: Some("%".into()),
                ..all()
            },
            "2",
        ),
        (
            "not archived",
            SessionFilter {
                not_archived: true,
                ..all()
            },
            "431",
        ),
        (
            "path",
            SessionFilter {
                path: Some("app".into()),
                ..all()
            },
            "32",
        ),
        (
            "limit",
            SessionFilter {
                limit: Some(2),
                ..all()
            },
            "43",
        ),
    ];
    for (name, filter, want) in cases {
        let got: String = store
            .sessions(&filter)
            .unwrap()
            .iter()
            .map(|s| s.id.as_str().trim_start_matches("ses_").to_owned())
            .collect();
        assert_eq!(got, want, "{name}");
    }
}

#[tokio::test]
async fn values_are_listed_by_the_start_of_their_key() {
    let dir = tempfile::tempdir().unwrap();
    let (store, _) = Store::open(&dir.path().join("s.db")).unwrap();
    for key in ["a:2", "a:1", "a_x", "b:1"] {
        store.meta_set(key, Some(key)).await.unwrap();
    }
    let keys: Vec<String> = store
        .meta_list("a:")
        .unwrap()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(keys, ["a:1", "a:2"]);
}
