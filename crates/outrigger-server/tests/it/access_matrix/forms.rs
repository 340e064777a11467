//! The forms of a rule about a file, each with a separate file, and the names under which that file is reached.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// The location of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Location {
    Project,
    Beside,
    Home,
}

/// A form of rule: its description, the location and name of its file, and the pattern. `N` is the form's number, `DIR` the file's
/// folder relative to the project, `ABS` the same from the root, `ROOT` the folder of everything.
pub(super) struct Form {
    pub(super) what: &'static str,
    pub(super) place: Location,
    file: &'static str,
    pattern: &'static str,
}

const fn form(
    what: &'static str,
    place: Location,
    file: &'static str,
    pattern: &'static str,
) -> Form {
    Form {
        what,
        place,
        file,
        pattern,
    }
}

use Location::{Beside, Home, Project};

/// Rules for `read` and `edit`: patterns of files.
pub(super) const OF_FILES: &[Form] = &[
    form("relative", Project, "secret-N.csv", "DIR/secret-N.csv"),
    form("dot", Project, "secret-N.csv", "./DIR/secret-N.csv"),
    form("two slashes", Project, "secret-N.csv", "DIR//secret-N.csv"),
    form("dots", Project, "secret-N.csv", "DIR/x/../secret-N.csv"),
    form("absolute", Project, "secret-N.csv", "ABS/secret-N.csv"),
    form(
        "absolute, dots",
        Project,
        "secret-N.csv",
        "ABS/./x//../secret-N.csv",
    ),
    form(
        "from home",
        Project,
        "secret-N.csv",
        "~/../project/DIR/secret-N.csv",
    ),
    form(
        "from the folder above",
        Project,
        "secret-N.csv",
        "../project/DIR/secret-N.csv",
    ),
    form("any folder", Project, "secret-N.csv", "**/secret-N.csv"),
    form("name", Project, "secret-N.csv", "*secret-N.csv"),
    form("extension", Project, "secret-N.keyN", "*.keyN"),
    form(
        "any folder, extension",
        Project,
        "secret-N.keyN",
        "**/*.keyN",
    ),
    form(
        "absolute, extension",
        Project,
        "secret-N.keyN",
        "ROOT/project/*.keyN",
    ),
    form("one character", Project, "secret-N.csv", "DIR/secret-N.cs?"),
    form("folder", Project, "secret-N.csv", "DIR"),
    form("folder, slash", Project, "secret-N.csv", "DIR/"),
    form("folder, star", Project, "secret-N.csv", "DIR/*"),
    form("folder, two stars", Project, "secret-N.csv", "DIR/**"),
    form("folder anywhere", Project, "secret-N.csv", "**/DIR/**"),
    form("folder, deep", Project, "deep/er/secret-N.csv", "DIR"),
    form("absolute folder", Project, "deep/secret-N.csv", "ABS/*"),
    form("upper case", Project, "secret-N.csv", "DIR/SECRET-N.CSV"),
    form(
        "composed",
        Project,
        "gehe\u{301}im-N.csv",
        "DIR/geh\u{e9}im-N.csv",
    ),
    form(
        "decomposed",
        Project,
        "geh\u{e9}im-N.csv",
        "DIR/gehe\u{301}im-N.csv",
    ),
    form("space", Project, "secret N.csv", "DIR/secret N.csv"),
    form("link to it", Project, "secret-N.csv", "names/link-N.csv"),
    form("linked folder", Project, "secret-N.csv", "names/folder-N/*"),
    form("hard link", Project, "secret-N.csv", "names/hard-N.csv"),
    form(
        "outside, relative",
        Beside,
        "secret-N.csv",
        "DIR/secret-N.csv",
    ),
    form(
        "outside, absolute",
        Beside,
        "secret-N.csv",
        "ABS/secret-N.csv",
    ),
    form("outside, folder", Beside, "deep/secret-N.csv", "DIR"),
    form(
        "outside, any folder",
        Beside,
        "secret-N.csv",
        "**/secret-N.csv",
    ),
    form("outside, extension", Beside, "secret-N.keyN", "*.keyN"),
    form(
        "outside, link to it",
        Beside,
        "secret-N.csv",
        "names/link-N.csv",
    ),
    form("home", Home, "secret-N.csv", "~/dN/secret-N.csv"),
    form("home, star", Home, "secret-N.csv", "~/dN/*"),
    form("home, folder", Home, "deep/secret-N.csv", "~/dN"),
];

/// Rules for `external_directory`: patterns of folders outside.
pub(super) const OF_FOLDERS: &[Form] = &[
    form("star", Beside, "secret-N.csv", "ABS/*"),
    form("two stars", Beside, "deep/secret-N.csv", "ABS/**"),
    form("folder", Beside, "deep/secret-N.csv", "ABS"),
    form("folder, slash", Beside, "secret-N.csv", "ABS/"),
    form("dots", Beside, "secret-N.csv", "ABS/x/../*"),
    form("file", Beside, "secret-N.csv", "ABS/secret-N.csv"),
    form("any folder", Beside, "secret-N.csv", "**/dN/**"),
    form("star around", Beside, "secret-N.csv", "*/dN/*"),
    form("upper case", Beside, "secret-N.csv", "ROOT/beside/DN/*"),
    form("home, star", Home, "secret-N.csv", "~/dN/*"),
    form("home, folder", Home, "deep/secret-N.csv", "~/dN"),
    form("home, file", Home, "secret-N.csv", "~/dN/secret-N.csv"),
];

/// A file with its own text, and all its names.
pub(super) struct Victim {
    pub(super) what: &'static str,
    pub(super) place: Location,
    /// Absolute.
    pub(super) path: PathBuf,
    /// Its folder, relative to the project.
    pub(super) folder: String,
    /// Its file name.
    pub(super) file: String,
    /// The rule's pattern, or `None` for a file without a rule.
    pub(super) pattern: Option<String>,
    /// By kind; names that a shell cannot take are skipped there.
    pub(super) names: Vec<(&'static str, String)>,
    number: usize,
}

impl Victim {
    /// Creates the file, and the links to it.
    pub(super) fn make(root: &Path, number: usize, form: &Form, is_free: bool) -> Self {
        let n = number.to_string();
        let (from_project, at) = match form.place {
            Project => (format!("d{n}"), root.join("project")),
            Beside => (format!("../beside/d{n}"), root.join("beside")),
            Home => (format!("../home/d{n}"), root.join("home")),
        };
        let dir = at.join(format!("d{n}"));
        let inner = form.file.replace('N', &n);
        let path = dir.join(&inner);
        std::fs::create_dir_all(dir.join("x")).unwrap();
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let names = root.join("project/names");
        std::fs::create_dir_all(&names).unwrap();
        let link = |to: &Path, name: &str| {
            symlink(to, names.join(name)).unwrap();
            format!("names/{name}")
        };
        let folder = path.parent().unwrap().to_owned();
        let file = path.file_name().unwrap().to_str().unwrap().to_owned();
        let to_file = link(&path, &format!("link-{n}.csv"));
        let again = link(
            Path::new(&format!("link-{n}.csv")),
            &format!("again-{n}.csv"),
        );
        let to_folder = link(&folder, &format!("folder-{n}"));
        let mut victim = Self {
            what: form.what,
            place: form.place,
            folder: from_project.clone(),
            pattern: (!is_free).then(|| {
                form.pattern
                    .replace('N', &n)
                    .replace("DIR", &from_project)
                    .replace("ABS", dir.to_str().unwrap())
                    .replace("ROOT", root.to_str().unwrap())
            }),
            names: vec![
                ("relative", format!("{from_project}/{inner}")),
                ("absolute", path.display().to_string()),
                ("dot", format!("./{from_project}/./{inner}")),
                ("dots", format!("{from_project}/x/../{inner}")),
                ("two slashes", format!("{from_project}//{inner}")),
                ("link", to_file),
                ("link to a link", again),
                ("linked folder", format!("{to_folder}/{file}")),
                ("hard link", format!("names/hard-{n}.csv")),
                (
                    "root of a process",
                    format!("/proc/self/root{}", path.display()),
                ),
            ],
            path,
            file,
            number,
        };
        std::fs::write(&victim.path, victim.text()).unwrap();
        std::fs::hard_link(&victim.path, names.join(format!("hard-{n}.csv"))).unwrap();
        // A trailing slash means nothing to a tool, and is an error for a shell.
        let slash = format!("{from_project}/{inner}/");
        victim.names.push(("slash at the end", slash));
        victim
    }

    /// Returns its file names, including the one in the folder of names through a hard link.
    pub(super) fn file_names(&self) -> impl Iterator<Item = String> {
        [self.file.clone(), format!("hard-{}.csv", self.number)].into_iter()
    }

    /// Returns the beginning of its line, which a call may name.
    pub(super) fn head(&self) -> String {
        format!("head{}of", self.number)
    }

    /// Returns the end of its line: an answer that contains it has read the file.
    pub(super) fn canary(&self) -> String {
        format!("canary{}end", self.number)
    }

    pub(super) fn text(&self) -> String {
        format!("{},{}\n", self.head(), self.canary())
    }

    pub(super) fn number(&self) -> usize {
        self.number
    }

    pub(super) fn name(&self) -> &str {
        &self.names[0].1
    }
}
