//! Rules for files, in every form of rule and name.

use outrigger_protocol::permission::Action::{Allow, Ask, Deny};
use outrigger_tools::DecideRead as _;

use super::*;

struct World {
    root: PathBuf,
    _dir: tempfile::TempDir,
}

const FILES: [&str; 9] = [
    "home/project/.env",
    "home/project/sub/.env",
    "home/project/sub/a.txt",
    "home/project/keys/deep/id",
    "home/project/ge\u{301}heim.txt",
    "home/other/.env",
    "home/.ssh/id",
    "home/.aws/deep/credentials",
    "data/secret",
];

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        for file in FILES {
            std::fs::create_dir_all(root.join(file).parent().unwrap()).unwrap();
            std::fs::write(root.join(file), "x").unwrap();
        }
        let link = |to: &str, at: &str| std::os::unix::fs::symlink(to, root.join(at)).unwrap();
        link("../.env", "home/project/sub/link");
        link("keys", "home/project/doors");
        link("../../data", "home/project/data");
        std::fs::hard_link(
            root.join("home/project/.env"),
            root.join("home/project/hard"),
        )
        .unwrap();
        std::fs::hard_link(
            root.join("home/.ssh/id"),
            root.join("home/project/sub/hard"),
        )
        .unwrap();
        link("home", "linked");
        Self { root, _dir: dir }
    }

    fn access(&self, git: bool) -> Access {
        let location = ProjectLocation {
            directory: self.root.join("home/project/sub"),
            worktree: self.root.join("home/project"),
            git,
        };
        Access::new(&location, &self.root.join("home"))
    }

    fn rules(&self, permission: &str, pattern: &str, action: Action) -> PathRules {
        let rule = |permission: &str, pattern: &str, action| Rule {
            permission: permission.into(),
            pattern: pattern.replace("ROOT", &self.root.display().to_string()),
            action,
        };
        let rules = [rule("*", "*", Allow), rule(permission, pattern, action)];
        self.access(true).rules(&[&rules])
    }
}

/// A rule is about the same files however it is written, and what it denies no process sees.
#[test]
fn a_rule_binds_the_same_files_in_every_form() {
    let world = World::new();
    for (permission, pattern, path) in [
        ("read", ".env", "home/project/.env"),
        ("read", "./.env", "home/project/.env"),
        ("read", "sub/.env", "home/project/sub/.env"),
        ("read", "*.env", "home/project/sub/.env"),
        ("read", "**/.env", "home/project/.env"),
        ("read", "**/.env", "home/project/sub/.env"),
        ("read", "*.env", "home/other/.env"),
        ("read", "**/.env", "home/other/.env"),
        ("read", "../other/.env", "home/other/.env"),
        ("read", "../other/*", "home/other/.env"),
        ("read", "ROOT/home/project/.env", "home/project/.env"),
        ("read", "ROOT/home/project/**", "home/project/.env"),
        ("read", "ROOT/linked/project/.env", "home/project/.env"),
        ("read", "ROOT/linked/*/.env", "home/project/.env"),
        ("read", "~/project/.env", "home/project/.env"),
        ("read", "~/other/.env", "home/other/.env"),
        ("read", "~/other", "home/other/.env"),
        ("read", "~/*.env", "home/other/.env"),
        ("read", "ROOT/data/*", "home/project/data/secret"),
        ("read", "data/*", "data/secret"),
        ("read", ".env", "home/project/sub/link"),
        ("read", "keys/*", "home/project/doors/deep/id"),
        ("read", "keys", "home/project/keys/deep/id"),
        ("read", "doors/*", "home/project/keys/deep/id"),
        ("read", "*.ENV", "home/project/.env"),
        ("read", "g\u{e9}heim.txt", "home/project/ge\u{301}heim.txt"),
        ("read", ".env", "home/project/hard"),
        ("read", "~/.ssh/*", "home/project/sub/hard"),
        ("external_directory", "ROOT/home/.ssh/*", "home/.ssh/id"),
        ("external_directory", "~/.ssh/*", "home/.ssh/id"),
        ("external_directory", "~/.ssh", "home/.ssh/id"),
        ("external_directory", "~/.ssh/id", "home/.ssh/id"),
        ("external_directory", "ROOT/*/.ssh/*", "home/.ssh/id"),
        ("external_directory", "ROOT/**/.ssh/**", "home/.ssh/id"),
        ("external_directory", "**/.ssh/**", "home/.ssh/id"),
        ("external_directory", "*/.ssh/*", "home/.ssh/id"),
        (
            "external_directory",
            "~/.aws/**",
            "home/.aws/deep/credentials",
        ),
        ("external_directory", "ROOT/linked/.ssh/*", "home/.ssh/id"),
    ] {
        let rules = world.rules(permission, pattern, Deny);
        let path = world.root.join(path);
        let verdict = rules.decide_by_file(Operation::Read, &path).unwrap();
        assert_eq!(verdict.action, Deny, "{permission} {pattern} {path:?}");
        let write = rules.decide_by_file(Operation::Write, &path).unwrap();
        assert_eq!(write.action, Deny, "{permission} {pattern} {path:?}");
        let covers = rules.covers().unwrap();
        let real = path.canonicalize().unwrap();
        let search = SearchRules::new(rules.clone());
        let denies = |path: &Path| {
            let denies_file = || search.denies_file(&path.metadata().unwrap());
            search.of_unlinked(path) == Deny || (search.denies_files() && denies_file())
        };
        assert_eq!(search.of(&path), Deny, "{permission} {pattern} {path:?}");
        assert!(denies(&real), "{permission} {pattern} {path:?}");
        let covered: Vec<PathBuf> = covers
            .hide
            .iter()
            .filter_map(|it| it.canonicalize().ok())
            .collect();
        assert!(
            covered.iter().any(|it| real.starts_with(it)),
            "{permission} {pattern} {path:?}: {covered:?}"
        );
        // And no more than that.
        let plain = world.root.join("home/project/sub/a.txt");
        if !pattern.ends_with("project/**") {
            let verdict = rules.decide_by_file(Operation::Read, &plain).unwrap();
            assert_eq!(verdict.action, Allow, "{permission} {pattern}");
            assert_eq!(search.of(&plain), Allow, "{permission} {pattern}");
            assert!(!denies(&plain), "{permission} {pattern}");
            assert!(
                !covered.iter().any(|it| plain.starts_with(it)),
                "{pattern}: {covered:?}"
            );
        }
    }
}

#[test]
fn a_rule_that_allows_opens_what_it_names_and_nothing_else() {
    let world = World::new();
    for (pattern, path, want) in [
        ("*.txt", "home/project/sub/a.txt", Allow),
        (
            "ROOT/home/project/sub/a.txt",
            "home/project/sub/a.txt",
            Allow,
        ),
        ("a.txt", "home/project/sub/a.txt", Deny),
        ("*project*", "home/project/sub/a.txt", Deny),
        ("sub/A.txt", "home/project/sub/a.txt", Deny),
        ("sub/*", "home/project/sub/link", Deny),
        ("sub", "home/project/sub/a.txt", Deny),
    ] {
        let rule = |pattern: &str, action| Rule {
            permission: "read".into(),
            pattern: pattern.replace("ROOT", &world.root.display().to_string()),
            action,
        };
        let rules = [rule("*", Deny), rule(pattern, Allow)];
        let rules = world.access(true).rules(&[&rules]);
        let verdict = rules.decide(Operation::Read, &world.root.join(path));
        assert_eq!(verdict.action, want, "{pattern} {path}");
    }
}

/// What is asked is what is decided: by the name that a tool gives.
#[test]
fn questions_are_answered_by_the_same_rules() {
    let world = World::new();
    let pattern = |text: &str| text.replace("ROOT", &world.root.display().to_string());
    for (permission, rule, asked, action) in [
        ("read", "ROOT/home/project/.env", ".env", Deny),
        ("read", "~/other/*", "../other/.env", Ask),
        ("edit", "**/.env", ".env", Deny),
        ("external_directory", "~/.ssh", "ROOT/home/.ssh/*", Deny),
        ("external_directory", "**/.ssh", "ROOT/home/.ssh/*", Ask),
        ("bash", "ls", "ls", Deny),
        ("webfetch", "https://x/*", "https://x/y", Ask),
    ] {
        let rules = [
            Rule {
                permission: "*".into(),
                pattern: "*".into(),
                action: Allow,
            },
            Rule {
                permission: permission.into(),
                pattern: pattern(rule),
                action,
            },
        ];
        let answer = world
            .access(true)
            .evaluate(permission, &pattern(asked), &[&rules]);
        assert_eq!(answer, action, "{permission} {rule} {asked}");
    }
}

/// Where there is no repository a rule begins in the folder, as the tools ask, or at the root, as in OpenCode.
#[test]
fn without_a_repository_rules_begin_in_the_folder() {
    let world = World::new();
    let folder = world.root.join("home/other");
    let location = ProjectLocation {
        directory: folder.clone(),
        worktree: folder.clone(),
        git: false,
    };
    for pattern in [
        ".env".to_owned(),
        format!("{}/.env", folder.display()),
        format!("{}/.env", &folder.display().to_string()[1..]),
    ] {
        let rules = [Rule {
            permission: "read".into(),
            pattern: pattern.clone(),
            action: Deny,
        }];
        let rules = Access::new(&location, &world.root.join("home")).rules(&[&rules]);
        let verdict = rules.decide(Operation::Read, &folder.join(".env"));
        assert_eq!(verdict.action, Deny, "{pattern}");
        assert_eq!(
            rules.covers().unwrap().hide,
            [folder.join(".env")],
            "{pattern}"
        );
    }
}

/// An "always" about a file is about no resource of an MCP server.
#[test]
fn an_answer_about_files_covers_files() {
    let location = ProjectLocation {
        directory: "/p".into(),
        worktree: "/p".into(),
        git: false,
    };
    let access = Access::new(&location, Path::new("/home/me"));
    let ask = PermissionAsk {
        permission: "read".to_owned(),
        ..PermissionAsk::default()
    };
    for (approved, pattern, want) in [
        ("*", ".env", true),
        ("*", "mcp:notes:note://a", false),
        ("mcp:notes:*", "mcp:notes:note://a", true),
        ("mcp:notes:*", "mcp:other:note://a", false),
        ("mcp:notes:*", ".env", false),
    ] {
        let approvals = [Rule {
            permission: "read".into(),
            pattern: approved.into(),
            action: Action::Allow,
        }];
        let got = access.is_approved(&ask, pattern, &approvals);
        assert_eq!(got, want, "{approved} {pattern}");
    }
}
