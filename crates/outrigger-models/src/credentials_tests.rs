use super::*;
use std::os::unix::fs::PermissionsExt as _;

use outrigger_protocol::diagnose::Diagnose;

fn names(credentials: &Credentials) -> Vec<String> {
    let stored = credentials.all();
    stored
        .values()
        .map(|s| format!("{} {} {:?}", s.provider, s.credential.kind(), s.origin))
        .collect()
}

fn folder() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (own, theirs) = (
        dir.path().join("data/auth.json"),
        dir.path().join("oc.json"),
    );
    (dir, own, theirs)
}

#[test]
fn our_file_is_for_this_user_alone_and_wins_over_that_of_opencode() {
    let (_dir, own, theirs) = folder();
    let before = r#"{"acme":{"type":"api","key":"theirs"},"other":{"type":"api","key":"o"},"odd":{"type":"?"},"old":7}"#;
    std::fs::write(&theirs, before).unwrap();
    let credentials = Credentials::new(own.clone(), Some(theirs.clone()), None);
    assert_eq!(
        names(&credentials),
        ["acme api OpenCode", "other api OpenCode"]
    );

    credentials
        .set("acme", &Credential::key("ours"), None)
        .unwrap();
    credentials
        .set("https://id.test/", &Credential::key("w"), None)
        .unwrap();
    assert_eq!(credentials.get("acme"), Some(Credential::key("ours")));
    assert_eq!(
        std::fs::metadata(&own).unwrap().permissions().mode() & 0o777,
        0o600
    );

    // A logout is effective, and logging in again works; OpenCode's file stays unchanged.
    credentials.remove("acme").unwrap();
    credentials.remove("other").unwrap();
    credentials.remove("nobody").unwrap();
    assert_eq!(names(&credentials), ["https://id.test api Own"]);
    credentials
        .set("other", &Credential::key("again"), None)
        .unwrap();
    let another = Credentials::new(own, Some(theirs.clone()), None);
    assert_eq!(
        names(&another),
        ["https://id.test api Own", "other api Own"]
    );
    assert_eq!(std::fs::read_to_string(theirs).unwrap(), before);
}

#[test]
fn the_environment_counts_instead_of_files_and_a_login_beside_it_lasts_as_long_as_the_process() {
    let (_dir, own, _) = folder();
    let files = Credentials::new(own.clone(), None, None);
    files.set("filed", &Credential::key("f"), None).unwrap();
    let text = r#"{"acme":{"type":"api","key":"e"},"beta":{"type":"api","key":"b"}}"#;
    let credentials = Credentials::new(own.clone(), None, Some(text));
    assert_eq!(
        names(&credentials),
        ["acme api Environment", "beta api Environment"]
    );
    credentials
        .set("acme", &Credential::key("new"), None)
        .unwrap();
    credentials.remove("beta").unwrap();
    assert_eq!(names(&credentials), ["acme api Own"]);
    assert_eq!(names(&files), ["filed api Own"]);
    for text in ["", "nonsense", "[]"] {
        assert_eq!(
            names(&Credentials::new(own.clone(), None, Some(text))),
            ["filed api Own"]
        );
    }
}

#[test]
fn a_damaged_file_is_named_and_not_overwritten() {
    let (_dir, own, _) = folder();
    std::fs::create_dir_all(own.parent().unwrap()).unwrap();
    std::fs::write(&own, "{\"acme\": sk-secret").unwrap();
    let credentials = Credentials::new(own.clone(), None, None);
    assert_eq!(credentials.get("acme"), None);
    let error = credentials
        .set("acme", &Credential::key("k"), None)
        .unwrap_err();
    assert_eq!(error.code(), "auth.format");
    assert!(
        error.hint().is_some() && !error.to_string().contains("secret"),
        "{error}"
    );
    assert_eq!(
        std::fs::read_to_string(&own).unwrap(),
        "{\"acme\": sk-secret"
    );
}

#[test]
fn two_processes_lose_nothing_of_each_other() {
    let (_dir, own, _) = folder();
    std::thread::scope(|scope| {
        for n in 0..8 {
            let own = own.clone();
            scope.spawn(move || {
                let credentials = Credentials::new(own, None, None);
                credentials
                    .set(&format!("p{n}"), &Credential::key("k"), None)
                    .unwrap();
            });
        }
    });
    assert_eq!(Credentials::new(own, None, None).all().len(), 8);
}

/// The audit must know them before they are used, including those that another process stored.
#[test]
fn credentials_are_reported_where_they_are_stored_and_where_they_are_read() {
    let (_dir, own, _) = folder();
    let credentials = Credentials::new(own.clone(), None, None);
    let another = Credentials::new(own, None, None);
    another
        .set("a", &Credential::key("of before"), None)
        .unwrap();
    let reported: Arc<Mutex<Vec<Value>>> = Arc::default();
    let sink = Arc::clone(&reported);
    credentials.watch(move |credential| lock(&sink).push(credential["key"].clone()));
    let taken = || std::mem::take(&mut *lock(&reported));
    assert_eq!(taken(), ["of before"]);
    credentials
        .set("a", &Credential::key("of this process"), None)
        .unwrap();
    assert_eq!(taken(), ["of this process"]);
    another
        .set("a", &Credential::key("of another one"), None)
        .unwrap();
    assert_eq!(
        credentials.get("a"),
        Some(Credential::key("of another one"))
    );
    assert_eq!(taken(), ["of another one"]);
}
