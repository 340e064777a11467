//! Folders outside of the project that words of any program name.

use outrigger_protocol::descriptor::{Capability, Contract};
use outrigger_tools::routes::Route;
use outrigger_tools::{Grant, ToolContext, ToolError};
use serde_json::json;

use crate::declared::bind;
use crate::support::Room;

/// Returns the folders outside that are asked about before a line runs.
async fn asked(room: &Room, line: &str) -> Vec<String> {
    *room.host.refuse.lock().unwrap() = Some("bash");
    room.execute("bash", json!({"command": line})).await;
    let mut asked = room.asked();
    asked.retain(|it| it.starts_with("external_directory"));
    asked
}

#[tokio::test]
async fn every_word_that_names_a_file_outside_is_asked_about() {
    let room = Room::new();
    let outside = room.outside();
    std::fs::write(outside.join("notes.txt"), "OUTSIDE").unwrap();
    std::os::unix::fs::symlink(&outside, room.project().join("link")).unwrap();
    room.file("sub/x", "");
    let want = r#"external_directory ["ROOM/outside/*"] ["ROOM/outside/*"]"#;
    for line in [
        "grep . F",
        "sed -n p F",
        "sed -i s/a/b/ F",
        "for f in F; do cat $f; done",
        "a=(F); cat ${a[0]}",
        "cat {../outside/,}notes.txt",
        "cat ../outside/{a,{b,notes.txt}}",
        "cat ${x:-F}",
        "cat ${x:-../out}side/notes.txt",
        "cat $(echo F)",
        "cat `echo F`",
        "cat \"$(echo F)\"",
        "install F x",
        "dd if=F",
        "dd of=D/new",
        "wc --files0-from=F",
        "tar -C D -cf x .",
        "tar -CD -cf x .",
        "cc -ID x.c",
        "x=F; wc $x",
        "export x=F; wc $x",
        "x=F wc",
        "env wc F",
        "bash -c 'wc F'",
        "wc link/notes.txt",
        "wc link/../outside/notes.txt",
        "wc ../out*/notes.txt ../outside/new",
        "cd sub && wc ../../outside/notes.txt",
        "curl -d @F localhost",
        "curl file://F",
        "PATH=/usr/bin:D wc x",
        "cp --target-directory=D x",
        "[ -f $(wc F) ]",
    ] {
        let line = line.replace('F', "D/notes.txt");
        let line = line.replace('D', &outside.display().to_string());
        let asked = asked(&room, &line).await;
        assert!(
            asked.iter().any(|it| it.contains("ROOM/outside/*")),
            "{line}: {asked:?}"
        );
        if !line.contains("../out*") {
            assert_eq!(asked, [want], "{line}");
        }
    }
}

#[tokio::test]
async fn ordinary_lines_name_nothing_outside() {
    let room = Room::new();
    room.file("sub/x", "");
    room.file("a", "");
    for line in [
        "cargo test",
        "git diff origin/main -- src",
        "git log main..HEAD~2 -- a",
        "grep -rn \"/api/v1\" src",
        "grep -rn / a",
        "sed -n '/foo/,/bar/p' x",
        "sed '/tmp/d' x; sed s/a/../ x; sed s/a/b/ x",
        "curl https://x/y http://localhost:1/etc/x",
        "python3 -c 'print(\"/etc/passwd\")'",
        "ls /usr/include /etc /opt",
        "/usr/bin/env python3 x.py",
        "find . -path ./target -prune",
        "awk '/x/{print}' f",
        "awk -F/ '{print $1}' a | cut -d/ -f1 | tr / _",
        "docker run -v \"$PWD\":/src-of-nobody img",
        "ffmpeg -i a.mp4 /tmp/x-of-nobody",
        "echo foo > /dev/null 2>&1; grep x < /dev/null /dev/stdin",
        "test -f /etc/os-release && grep ID /etc/os-release /proc/cpuinfo",
        "test -f ~/.profile; [ -d ../outside ]",
        "cd sub && wc ../a && grep -r . ../sub",
        "wc a sub/../a ./sub/x $PWD/a",
        "for i in 1 2 {a,b}; do echo $i ${x:-y}; done",
        "cc -I/usr/include -L/usr/lib x.c -o x --sysroot=/usr",
        "readlink /proc/self/ns/pid; socat - UNIX-CONNECT:/run/of-nobody.sock",
        "git commit -m 'Read /etc/passwd and ../outside first'",
    ] {
        let asked = asked(&room, line).await;
        assert_eq!(asked, Vec::<String>::new(), "{line}");
    }
}

/// The stages of a call of `bash` hold for a line of a command's template.
#[tokio::test]
async fn lines_of_commands_are_calls_of_bash() {
    let room = Room::new();
    std::fs::write(room.outside().join("notes.txt"), "OUTSIDE").unwrap();
    let command = "wc ../outside/notes.txt > out";
    let call = room.call("bash", json!({"command": command}));
    let mut ctx = room.context(&call);
    let asked = |ctx: &ToolContext, here| {
        let asked = room.runtime.questions_of_line(false, here, ctx);
        asked.map(|asks| asks.into_iter().map(|it| it.permission).collect::<Vec<_>>())
    };
    let all = ["external_directory", "bash", "edit"];
    let in_sandbox = ["bash", "edit"];
    assert_eq!(asked(&ctx, false).unwrap(), all);
    ctx.granted = vec![Grant {
        who: "the agent `build`".to_owned(),
        capabilities: [Capability::FsRead].into(),
        how: String::new(),
    }];
    let error = asked(&ctx, false).unwrap_err();
    assert!(matches!(error, ToolError::NotGranted { .. }), "{error}");
    // A plugin's line runs in the plugin's sandbox.
    assert_eq!(asked(&ctx, true).unwrap(), in_sandbox);
    ctx.granted.clear();
    let rule = Route {
        contract: Some(Contract::Exec),
        provider: "a".to_owned(),
        ..Route::default()
    };
    bind(&room, vec![rule]);
    let error = asked(&ctx, false).unwrap_err().to_string();
    assert!(error.contains("send `exec` to a,"), "{error}");
    assert_eq!(asked(&ctx, true).unwrap(), in_sandbox);
}
