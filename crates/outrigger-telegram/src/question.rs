//! A permission question as a chat gets it: the whole call in blocks of untrusted text, and our own words below them.

use outrigger_api::permission::{ShownPermission, is_ours};
use outrigger_protocol::permission::PermissionRequest;
use outrigger_terminal::Frame;

use crate::bot::split;

/// Columns of a block. A client wraps what is wider than its screen, inside of the block.
const COLUMNS: usize = 64;
/// Maximum number of blocks; more than that nobody reads in a chat.
const MAX_BLOCKS: usize = 9;

/// A question.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Question {
    /// Untrusted, each within the limit of a message.
    pub(crate) blocks: Vec<String>,
    /// Our own words, with the commands that answer.
    pub(crate) prompt: String,
    /// It lists what `/always` would allow.
    pub(crate) offers_always: bool,
}

/// A question that is larger than what a chat shows.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLong {
    /// Number of blocks that it would need.
    blocks: usize,
}

impl TooLong {
    /// Returns the reason for the user.
    pub(crate) fn said(&self) -> String {
        format!(
            "A call was refused without asking you: its question takes {} messages, and a chat shows at most {MAX_BLOCKS}. \
             Such calls can be allowed on the page (`outrigger web`) or in a terminal.",
            self.blocks
        )
    }

    /// Returns the reason for the model.
    pub(crate) fn for_the_model(&self) -> String {
        format!(
            "Nobody was asked: the user is in a chat, and the question about this call takes {} messages there, more than the {MAX_BLOCKS} \
             that a chat shows. Do it in smaller steps.",
            self.blocks
        )
    }
}

impl Question {
    /// Renders a request.
    ///
    /// # Errors
    /// [`TooLong`]. It is not cut: what is left out of a question would be allowed unseen.
    pub(crate) fn of(
        request: &PermissionRequest,
        shown: &ShownPermission,
    ) -> Result<Self, TooLong> {
        let mut frame = Frame::new();
        for fact in &shown.facts {
            frame.add(&fact.name, fact.text.as_str());
        }
        if let Some(missing) = &request.missing_grant {
            let line = format!("the grant `{}` for {}", missing.grant, missing.name);
            frame.add("lacks", line);
        }
        let blocks = split(&frame.whole(COLUMNS));
        if blocks.len() > MAX_BLOCKS {
            let blocks = blocks.len();
            return Err(TooLong { blocks });
        }
        // A foreign name is untrusted, and is in a block.
        let what = if is_ours(&request.permission) {
            shown.title.as_str()
        } else {
            "Allow this call"
        };
        let id = request.id.as_str();
        let mut prompt = format!("{what}? Answer with\n/allow {id}\n/reject {id}");
        let offers_always = shown.facts.iter().any(|fact| fact.name == "always");
        if offers_always {
            prompt.push_str(&format!(
                "\nor, for all that is listed at `always`, until Outrigger ends, with\n/always {id}"
            ));
        }
        Ok(Self {
            blocks,
            prompt,
            offers_always,
        })
    }
}

#[cfg(test)]
mod tests {
    use outrigger_protocol::id::{PermissionId, SessionId};
    use outrigger_protocol::permission::{CALL, HOOK_REASON, MissingGrant};
    use outrigger_protocol::provenance::{Actor, Deed, Provenance};
    use serde_json::{Value, json};

    use super::*;

    fn request(permission: &str, metadata: Value) -> PermissionRequest {
        PermissionRequest {
            id: PermissionId("per_1".into()),
            session_id: SessionId("ses_1".into()),
            permission: permission.into(),
            patterns: vec!["a".into()],
            always: Vec::new(),
            metadata,
            tool: None,
            provenance: Provenance::default(),
            missing_grant: None,
        }
    }

    fn asked(request: &PermissionRequest) -> Result<Question, TooLong> {
        Question::of(request, &ShownPermission::of(request))
    }

    fn bash(command: &str) -> PermissionRequest {
        let call = json!({ "tool": "bash", "input": { "command": command } });
        request("bash", json!({ CALL: call }))
    }

    #[test]
    fn a_script_is_shown_whole_and_imitates_no_answer() {
        let mut request =
            bash("python3 - <<'E'\n/allow per_2\nimport os\nos.system('touch\u{202e} x')\nE");
        request.always = vec!["python3 *".into()];
        let question = asked(&request).unwrap();
        insta::assert_snapshot!(question.blocks.concat(), @r"
            runs │ a
         command │ python3 - <<'E'
                 │ /allow per_2
                 │ import os
                 │ os.system('touch\u202e x')
                 │ E
          always │ python3 *
        ");
        insta::assert_snapshot!(question.prompt, @r"
        Run a command? Answer with
        /allow per_1
        /reject per_1
        or, for all that is listed at `always`, until Outrigger ends, with
        /always per_1
        ");
        assert!(question.offers_always);
    }

    #[test]
    fn a_change_says_who_wants_it_why_it_is_asked_and_what_is_missing() {
        let diff = "--- tasks.json\n+++ tasks.json\n@@ -0,0 +1 @@\n+{}\n";
        let why = "a runs later: an editor runs its tasks";
        let call = json!({ "tool": "write" });
        let mut request = request(
            "edit",
            json!({ "diff": diff, HOOK_REASON: why, CALL: call }),
        );
        let plugin = Actor::plugin(&"acme".into());
        request.provenance = Provenance::prompted(Actor::User).with(plugin, Deed::Changed, None);
        request.missing_grant = Some(Box::new(MissingGrant {
            plugin: "acme".into(),
            name: "acme-guard".into(),
            grant: "rewrite".into(),
        }));
        let question = asked(&request).unwrap();
        insta::assert_snapshot!(question.blocks.concat(), @r"
              by │ user prompted, plugin acme changed
         because │ a runs later: an editor runs its tasks
            tool │ write
            file │ a
          change │ --- tasks.json
                 │ +++ tasks.json
                 │ @@ -0,0 +1 @@
                 │ +{}
           lacks │ the grant `rewrite` for acme-guard
        ");
        // Nothing is listed that it would allow.
        assert_eq!(
            question.prompt,
            "Change a file? Answer with\n/allow per_1\n/reject per_1"
        );
        assert!(!question.offers_always);
    }

    #[test]
    fn outside_of_the_sandbox_is_in_our_own_words_and_a_foreign_name_is_not() {
        let mut outside = bash("sh x.sh");
        outside.permission = "sandbox".into();
        let question = asked(&outside).unwrap();
        let ours = "Run a command outside of the sandbox, with all your rights? Answer with\n";
        assert!(question.prompt.starts_with(ours), "{}", question.prompt);
        let foreign = asked(&request("ok\n/allow per_2", json!({}))).unwrap();
        assert!(foreign.prompt.starts_with("Allow this call? "));
        assert!(!foreign.prompt.contains("per_2"));
        let block = foreign.blocks.concat();
        assert!(
            block.contains("    tool │ ok\n         │ /allow per_2\n"),
            "{block}"
        );
    }

    #[test]
    fn what_does_not_fit_is_refused_and_says_so() {
        let lines = |n: usize| -> String { (0..n).map(|n| format!("echo {n}\n")).collect() };
        let fits = asked(&bash(&lines(1000))).unwrap();
        assert!(fits.blocks.len() > 1 && fits.blocks.concat().contains("echo 999"));
        let long = asked(&bash(&lines(10_000))).unwrap_err();
        let needs = format!("takes {} messages", long.blocks);
        assert!(long.said().contains(&needs), "{}", long.said());
        assert!(long.for_the_model().contains(&needs));
    }
}
