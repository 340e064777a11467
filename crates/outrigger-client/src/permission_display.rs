//! A permission question in a terminal: its display ([`ShownPermission`]) in a frame, and the meaning of an answer.

use outrigger_api::permission::{OUTSIDE, ShownPermission, is_ours};
use outrigger_protocol::permission::PermissionRequest;
use outrigger_terminal::{Frame, Shown, Size, prompt};

/// The text after the keys: any words are an answer.
const INSTEAD: &str = "or what instead";

/// A displayed question, with the user's position in its details.
#[derive(Debug)]
pub struct Display {
    frame: Frame,
    what: String,
    short: String,
    keys: Vec<&'static str>,
    /// The page that `v` shows next.
    page: usize,
}

impl Display {
    /// Creates the display of a request. `can_grant`: the client can grant permanently.
    #[must_use]
    pub fn of(request: &PermissionRequest, can_grant: bool) -> Self {
        let permission = request.permission.as_str();
        let grant = request.missing_grant.as_ref().filter(|_| can_grant);
        let mut keys = vec!["[y]es", "[n]o"];
        if !request.always.is_empty() {
            keys.push("[a]lways");
        }
        if grant.is_some() {
            keys.push("[g]rant");
        }
        let shown = ShownPermission::of(request);
        let (what, short) = match permission {
            OUTSIDE => (
                "run it outside of the sandbox, with all your rights".to_owned(),
                "outside of the sandbox".to_owned(),
            ),
            known if is_ours(known) => (in_a_sentence(&shown.title), known.to_owned()),
            _ => ("allow this call".to_owned(), "allow".to_owned()),
        };
        let mut frame = Frame::new();
        for fact in shown.facts {
            frame.add(&fact.name, fact.text);
        }
        if let Some(grant) = grant {
            let line = format!("{} for {}, from now on", grant.grant, grant.plugin);
            frame.add("grant", line);
        }
        Self {
            frame,
            what,
            short,
            keys,
            page: 0,
        }
    }

    /// Returns the question: its subject, as much as fits on the screen, and the prompt.
    #[must_use]
    pub fn text(&self, size: Size) -> String {
        let Shown { text, is_cut } = self.frame.bounded(size, "; [v]iew shows all");
        let view = if is_cut { Some("[v]iew") } else { None };
        text + &self.prompt(view, size)
    }

    /// Returns the next page of the details, and the prompt.
    pub fn view(&mut self, size: Size) -> String {
        let pages = self.frame.pages(size);
        let page = pages
            .get(self.page)
            .or(pages.first())
            .map(String::as_str)
            .unwrap_or_default();
        self.page = match self.page + 1 {
            next if next < pages.len() => next,
            _ => 0,
        };
        let view = match self.page {
            _ if pages.len() < 2 => None,
            0 => Some("[v]iew again"),
            _ => Some("[v]iew more"),
        };
        format!("{page}{}", self.prompt(view, size))
    }

    /// Returns the untrusted texts that it shows, in full.
    #[must_use]
    pub fn frame(&self) -> &Frame {
        &self.frame
    }

    /// Returns the question in our own words.
    #[must_use]
    pub fn what(&self) -> &str {
        &self.what
    }

    fn prompt(&self, view: Option<&'static str>, size: Size) -> String {
        let mut keys = self.keys.clone();
        keys.extend(view);
        let plain = prompt(&self.what, &self.short, &keys, size);
        // Any words are a no that the model reads. If there is no room, this is not mentioned.
        keys.push(INSTEAD);
        let whole = prompt(&self.what, &self.short, &keys, size);
        if whole.contains(INSTEAD) {
            whole
        } else {
            plain
        }
    }
}

/// Returns a title of ours as the words of a question: `Run a command` as `run a command`.
fn in_a_sentence(title: &str) -> String {
    let mut chars = title.chars();
    chars
        .next()
        .map(|first| first.to_ascii_lowercase())
        .into_iter()
        .chain(chars)
        .collect()
}

#[cfg(test)]
mod tests {
    use outrigger_protocol::id::{PermissionId, SessionId};
    use outrigger_protocol::permission::CALL;
    use outrigger_protocol::provenance::{Actor, Deed, Provenance};
    use serde_json::{Value, json};

    use super::*;

    const SIZE: Size = Size {
        columns: 80,
        rows: 24,
    };

    fn request(permission: &str, patterns: &[&str], metadata: Value) -> PermissionRequest {
        PermissionRequest {
            id: PermissionId("per_1".into()),
            session_id: SessionId("ses_1".into()),
            permission: permission.into(),
            patterns: patterns.iter().map(|it| (*it).to_owned()).collect(),
            always: Vec::new(),
            metadata,
            tool: None,
            provenance: Provenance::default(),
            missing_grant: None,
        }
    }

    fn shown(request: &PermissionRequest) -> String {
        Display::of(request, true).text(SIZE)
    }

    fn bash(command: &str, patterns: &[&str]) -> PermissionRequest {
        let input = json!({ "command": command, "workdir": "sub", "description": "list files" });
        let call = json!({ "tool": "bash", "input": input });
        request("bash", patterns, json!({ "command": "ls", CALL: call }))
    }

    #[test]
    fn a_command_is_shown_as_it_was_given() {
        let command = "cd sub && python3 - <<'E' | sh\nimport os\nos.system('x')\nE";
        let mut request = bash(command, &["python3 - <<'E'", "sh"]);
        request.always = vec!["python3 *".into()];
        request.metadata["programs"] = json!(["./x is /p/sub/x"]);
        insta::assert_snapshot!(shown(&request), @r"
            runs │ python3 - <<'E'
                 │ sh
         command │ cd sub && python3 - <<'E' | sh
                 │ import os
                 │ os.system('x')
                 │ E
          folder │ sub
         program │ ./x is /p/sub/x
          always │ python3 *
        ? run a command? [y]es, [n]o, [a]lways, or what instead: 
        ");
    }

    #[test]
    fn a_command_cannot_hide_itself() {
        let asked = shown(&bash("rm \u{1b}[2K\rls", &["rm \u{1b}[2K\rls"]));
        assert!(asked.starts_with(" command │ rm ␛[2K␍ls\n"), "{asked}");
    }

    /// The model once made the last row of the screen look like another question.
    #[test]
    fn padding_forges_no_question() {
        let head = "? allow bash (touch \"$(echo pwned)\" #";
        for blank in [' ', '\u{2800}', '\u{a0}', '\u{3000}', '\t', '#'] {
            for columns in [40, 80, 132] {
                let padding = blank.to_string().repeat(columns * 30 - head.len());
                let command = format!("touch \"$(echo pwned)\" #{padding}? allow bash (ls");
                for size in [Size { columns, rows: 24 }, Size { columns, rows: 12 }] {
                    let text = Display::of(&bash(&command, &[&command]), true).text(size);
                    assert!(text.contains("touch \"$(echo"), "{text}");
                    let end = match columns {
                        40 => "\n? run a command? [y]es, [n]o: ",
                        _ => "\n? run a command? [y]es, [n]o, or what instead: ",
                    };
                    assert!(text.ends_with(end), "{text}");
                    assert!(text.lines().count() < size.rows, "{text}");
                }
            }
        }
    }

    #[test]
    fn a_tool_of_a_server_is_shown_with_its_arguments() {
        let input =
            json!({ "path": "/etc/x", "body": "one\npath: /tmp/harmless", "deep": { "a": [1] } });
        let call = json!({ "tool": "files_delete", "input": input });
        let mut request = request("files_delete", &["*"], json!({ CALL: call }));
        request.always = vec!["*".into()];
        insta::assert_snapshot!(shown(&request), @r#"
            tool │ files_delete
            with │ path: /etc/x
                 │ body:
                 │     one
                 │     path: /tmp/harmless
                 │ deep: {"a":[1]}
          always │ all calls of this kind
        ? allow this call? [y]es, [n]o, [a]lways, or what instead: 
        "#);
    }

    #[test]
    fn a_change_is_shown_with_who_wants_it() {
        let diff = "--- a.txt\n+++ a.txt\n@@ -1 +1 @@\n-one\n+two\n";
        let call = json!({ "tool": "write", "input": { "content": "two\n" } });
        let mut request = request("edit", &["a.txt"], json!({ "diff": diff, CALL: call }));
        request.provenance = Provenance::prompted(Actor::User).with(
            Actor::plugin(&"acme".into()),
            Deed::Changed,
            None,
        );
        insta::assert_snapshot!(shown(&request), @r"
              by │ user prompted, plugin acme changed
            tool │ write
            file │ a.txt
          change │ --- a.txt
                 │ +++ a.txt
                 │ @@ -1 +1 @@
                 │ -one
                 │ +two
        ? change a file? [y]es, [n]o, or what instead: 
        ");
    }

    #[test]
    fn a_folder_outside_is_shown_with_the_call_behind_it() {
        let mut request = bash("cat /etc/*", &["/etc/*"]);
        request.permission = "external_directory".into();
        let text = shown(&request);
        assert!(
            text.contains(" outside │ /etc/*\n command │ cat /etc/*\n"),
            "{text}"
        );
        let call =
            json!({ "tool": "task", "input": { "subagent_type": "general", "prompt": "do\nit" } });
        let task = super::tests::request("task", &["general"], json!({ CALL: call }));
        let text = shown(&task);
        assert!(
            text.contains("prompt:\n         │     do\n         │     it\n"),
            "{text}"
        );
    }

    #[test]
    fn outside_of_the_sandbox_is_said_with_the_reason() {
        let mut request = bash("sh x.sh", &["sh x.sh"]);
        request.permission = "sandbox".into();
        request.metadata["reason"] = "it failed in the sandbox".into();
        request.metadata["output"] = "sh: x: Permission denied\n".into();
        insta::assert_snapshot!(shown(&request), @r"
         because │ it failed in the sandbox
            tool │ bash
         command │ sh x.sh
          folder │ sub
         printed │ sh: x: Permission denied
        ? run it outside of the sandbox, with all your rights? [y]es, [n]o: 
        ");
    }

    /// A plugin's text about its own question is marked as such, and cannot replace ours.
    #[test]
    fn a_plugin_does_not_speak_for_us() {
        let call = json!({ "tool": "mine", "input": { "x": 1 } });
        let metadata =
            json!({ "command": "ls", "diff": "+harmless", "programs": ["/bin/ls"], CALL: call });
        let text = shown(&request("bash", &["rm -rf ."], metadata));
        for line in [
            "    tool │ mine\n",
            "    runs │ rm -rf .\n",
            "    with │ x: 1\n",
            "    says │ command: ls\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
        assert!(
            !text.contains(" command │") && !text.contains("program │"),
            "{text}"
        );
    }

    #[test]
    fn all_of_it_can_be_looked_at() {
        let script: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let mut display = Display::of(&bash(&script, &[&script]), true);
        let asked = display.text(SIZE);
        assert!(
            asked.ends_with("? run a command? [y]es, [n]o, [v]iew, or what instead: "),
            "{asked}"
        );
        assert!(
            asked.contains("; [v]iew shows all") && !asked.contains("line 50"),
            "{asked}"
        );
        let pages: Vec<String> = (0..5).map(|_| display.view(SIZE)).collect();
        let all = pages.concat();
        assert!(
            (0..100).all(|n| all.contains(&format!("│ line {n}\n"))),
            "{all}"
        );
        assert!(
            pages[0].ends_with("[v]iew more, or what instead: ")
                && pages[4].ends_with("[v]iew again, or what instead: "),
            "{all}"
        );
        assert_eq!(display.view(SIZE), pages[0]);
    }
}
