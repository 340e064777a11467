//! Settings of a repository that start no program, and refer to no other settings or repository. Any other setting is removed
//! from a repository created by a command.

use crate::git_config::Setting;

/// Sections whose settings are all harmless, except those in [`NOT`].
const SECTIONS: [&str; 17] = [
    "advice",
    "branch",
    "checkout",
    "color",
    "extensions",
    "feature",
    "fetch",
    "fsck",
    "index",
    "log",
    "maintenance",
    "pack",
    "pull",
    "rerere",
    "status",
    "transfer",
    "user",
];
const NOT: [(&str, &str); 2] = [("branch", "mergeoptions"), ("log", "showsignature")];

/// Further harmless settings, by section and name.
const NAMES: [(&str, &[&str]); 6] = [
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "bare",
            "bigfilethreshold",
            "checkstat",
            "commentchar",
            "commitgraph",
            "compression",
            "eol",
            "filemode",
            "hidedotfiles",
            "ignorecase",
            "logallrefupdates",
            "longpaths",
            "loosecompression",
            "multipackindex",
            "packedgitlimit",
            "packedgitwindowsize",
            "precomposeunicode",
            "preloadindex",
            "protecthfs",
            "protectntfs",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "sharedrepository",
            "sparsecheckout",
            "sparsecheckoutcone",
            "splitindex",
            "symlinks",
            "trustctime",
            "untrackedcache",
            "whitespace",
        ],
    ),
    (
        "remote",
        &[
            "fetch",
            "gh-resolved",
            "mirror",
            "partialclonefilter",
            "promisor",
            "prune",
            "prunetags",
            "push",
            "pushurl",
            "skipdefaultupdate",
            "skipfetchall",
            "tagopt",
            "url",
        ],
    ),
    (
        "submodule",
        &[
            "active",
            "branch",
            "fetchjobs",
            "fetchrecursesubmodules",
            "ignore",
            "path",
            "propagatebranches",
            "recurse",
            "shallow",
            "update",
            "url",
        ],
    ),
    (
        "gc",
        &[
            "auto",
            "autodetach",
            "autopacklimit",
            "pruneexpire",
            "worktreepruneexpire",
        ],
    ),
    ("lfs", &["repositoryformatversion"]),
    (
        "push",
        &[
            "autosetupremote",
            "default",
            "followtags",
            "recursesubmodules",
        ],
    ),
];

/// Whether a setting is one of these.
pub(crate) fn is_harmless(setting: &Setting) -> bool {
    let (section, name) = (setting.section.as_str(), setting.name.as_str());
    let named = NAMES.iter().find(|(it, _)| *it == section);
    let listed = match named {
        Some((_, names)) => names.contains(&name),
        None => SECTIONS.contains(&section) && !NOT.contains(&(section, name)),
    };
    // `ext::COMMAND` is a URL, and `!COMMAND` an update method.
    let text = setting.text().trim_start();
    let starts = text.starts_with('!') || name.ends_with("url") && text.contains("::");
    listed && !starts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git_config::parse;

    #[test]
    fn what_starts_programs_is_not_harmless() {
        let harmless = "[core]\nrepositoryformatversion=0\nfilemode\n[remote \"origin\"]\n\
            url=https://x/y\nfetch=+refs/*:refs/*\n[branch \"main\"]\nremote=origin\nmerge=refs/heads/main\n\
            [submodule \"a\"]\nurl=../a\nactive=true\nupdate=rebase\n[extensions]\nworktreeconfig=true\n[user]\nname=me\n";
        assert!(parse(harmless).iter().all(is_harmless));
        let others = "[core]\nfsmonitor=./x\nhooksPath=x\nsshCommand=x\neditor=x\npager=x\ngitproxy=x\naskpass=x\n\
            attributesfile=x\nalternaterefscommand=x\nworktree=../../x\n[alias]\nst=!x\n[include]\npath=x\n[includeIf \"gitdir:/\"]\npath=x\n\
            [filter \"a\"]\nclean=x\nsmudge=x\nprocess=x\n[diff]\nexternal=x\n[diff \"a\"]\ntextconv=x\ncommand=x\n\
            [merge \"a\"]\ndriver=x\n[gpg]\nprogram=x\n[credential]\nhelper=!x\n[remote \"o\"]\nurl=ext::sh\nuploadpack=x\n\
            receivepack=x\nvcs=x\nproxy=x\n[submodule \"a\"]\nupdate=!x\n[url \"x\"]\ninsteadof=y\n[gc]\nrecentobjectshook=x\n\
            [pager]\nlog=x\n[sequence]\neditor=x\n[uploadpack]\npackobjectshook=x\n[protocol \"ext\"]\nallow=always\n\
            [hook \"x\"]\ncommand=x\n[interactive]\ndifffilter=x\n[trailer \"a\"]\ncommand=x\n[init]\ntemplatedir=x\n\
            [lfs]\nx=y\n[http]\nproxy=x\n[branch \"x\"]\nmergeoptions=-s x\n[sendemail]\nsmtpserver=x\n[fsmonitor]\nx=y\n";
        let left: Vec<String> = parse(others)
            .iter()
            .filter(|it| is_harmless(it))
            .map(Setting::key)
            .collect();
        assert_eq!(left, [""; 0]);
    }
}
