//! Where the system has no user namespaces, as Ubuntu 24.04 for programs that it does not know: nothing can be covered, and what is
//! hidden is not allowed instead.

use std::fs;
use std::sync::Arc;

use outrigger_sandbox::Policy;
use outrigger_sandbox::path_masks::{Covers, Kept};

use super::{helper, output, sh, spawner};

#[tokio::test]
async fn what_is_hidden_is_not_read_without_user_namespaces() {
    if !helper::is_without_namespaces() {
        let test = "no_views::what_is_hidden_is_not_read_without_user_namespaces";
        let Some(spec) = helper::without_namespaces(test).await else {
            return;
        };
        let output = output(spec).await.unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.exit.success(), "{said}{errors}");
        assert!(said.contains("held without views"), "{said}");
        return;
    }
    assert!(!spawner().has_views());
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    for file in [
        ".ssh/id",
        ".config/gh/hosts",
        ".config/git/x",
        "work/x",
        "a",
        "data/keys",
        "data/shown/x",
    ] {
        let path = home.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "content").unwrap();
    }
    let hide = [".ssh", ".config/gh"].map(|it| home.join(it)).to_vec();
    let policy = || Policy {
        read: vec!["/".into()],
        hide: hide.clone(),
        kept: Kept::new(
            Covers {
                held: vec![home.join("data/shown")],
                closed: vec![home.join("data")],
                ..Covers::default()
            },
            Arc::new(|| Ok(Covers::default())),
        ),
        ..Policy::system()
    };
    for (script, works) in [
        ("cat a work/x .config/git/x", true),
        (
            "ls . .config && grep -r root /etc/passwd && test -e /proc/self",
            true,
        ),
        ("cat data/shown/x && ls data", true),
        ("cat data/keys", false),
        ("cat .ssh/id", false),
        ("cat .config/gh/hosts", false),
        ("cp -r .ssh /dev/null", false),
        (
            "ln -s .ssh/id work/link; cat work/link || cat $(readlink -f .ssh)/id",
            false,
        ),
        ("cat /proc/self/cwd/.ssh/id", false),
    ] {
        let spec = sh(script)
            .cwd(&home)
            .policy(policy().write(home.join("work")));
        let output = output(spec).await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.exit.success(), works, "{script}: {said}");
    }
    println!("held without views");
}
