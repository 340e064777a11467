//! `task`, `todowrite` and `skill`.

use outrigger_tools::SkillEntry;
use outrigger_tools::ToolHost;
use outrigger_tools::builtin::describe;
use serde_json::json;

use crate::support::Room;

#[tokio::test]
async fn task_hands_work_to_an_agent() {
    let room = Room::new();
    let input = json!({"description": "sub job", "prompt": "say sub", "subagent_type": "general"});
    let output = room.output("task", input).await;
    assert_eq!(output.title, "sub job");
    assert_eq!(
        output.output,
        "<task id=\"ses_child\" state=\"completed\">\n<task_result>\nsub says done\n</task_result>\n</task>"
    );
    assert_eq!(
        output.metadata,
        json!({"parentSessionId": "ses_1", "sessionId": "ses_child", "model": {"modelID": "m1", "providerID": "mock"}, "truncated": false})
    );
    assert_eq!(room.asked(), [r#"task ["general"] ["*"]"#]);
    let (_, message) = room
        .failure(
            "task",
            json!({"description": "d", "prompt": "p", "subagent_type": "nope"}),
        )
        .await;
    assert_eq!(
        message,
        "Unknown agent type: nope is not a valid agent type"
    );
}

#[tokio::test]
async fn todowrite_replaces_the_list() {
    let room = Room::new();
    let todos = json!([{"content": "one", "status": "completed", "priority": "high"}, {"content": "two", "status": "pending", "priority": "low"}]);
    let output = room.output("todowrite", json!({"todos": todos})).await;
    assert_eq!(output.title, "1 todos");
    assert_eq!(output.metadata, json!({"todos": todos, "truncated": false}));
    assert_eq!(output.output, serde_json::to_string_pretty(&todos).unwrap());
    assert_eq!(room.host.todos.lock().unwrap().len(), 2);
    assert_eq!(room.asked(), [r#"todowrite ["*"] ["*"]"#]);
    let (code, message) = room
        .failure("todowrite", json!({"todos": [{"content": "one"}]}))
        .await;
    assert_eq!(code, "tool.invalid_input");
    assert!(
        message.contains("Missing key\n  at [\"todos\"][0][\"status\"]"),
        "{message}"
    );
}

#[tokio::test]
async fn skill_gives_its_text_and_files() {
    let room = Room::new();
    let (_, message) = room.failure("skill", json!({"name": "nope"})).await;
    assert_eq!(message, "Skill \"nope\" not found. Available skills: none");
    for n in 0..12 {
        room.file(&format!("skills/tidy/y{n:02}.txt"), "");
    }
    room.file("skills/tidy/SKILL.md", "");
    let dir = room.project().join("skills/tidy");
    let entry = SkillEntry {
        name: "tidy".into(),
        description: "tidies things".into(),
        content: "TIDY-SKILL-BODY\n".into(),
        dir: dir.clone(),
    };
    room.host.skills.lock().unwrap().push(entry);
    let output = room.output("skill", json!({"name": "tidy"})).await;
    assert_eq!(output.title, "Loaded skill: tidy");
    assert_eq!(
        output.metadata,
        json!({"name": "tidy", "dir": dir, "truncated": false})
    );
    assert!(output.output.starts_with("<skill_content name=\"tidy\">\n# Skill: tidy\n\nTIDY-SKILL-BODY\n\nBase directory for this skill: ROOM/project/skills/tidy\nRelative paths in this skill (e.g., scripts/, reference/) are relative to this base directory.\nNote: file list is sampled.\n\n<skill_files>\n<file>ROOM/project/skills/tidy/y00.txt</file>\n"), "{}", output.output);
    assert!(
        output
            .output
            .ends_with("y09.txt</file>\n</skill_files>\n</skill_content>")
    );
    assert_eq!(room.asked(), [r#"skill ["tidy"] ["tidy"]"#]);
    let (_, message) = room.failure("skill", json!({"name": "nope"})).await;
    assert_eq!(message, "Skill \"nope\" not found. Available skills: tidy");

    let spec = room.runtime.spec("skill").unwrap();
    assert!(describe(&spec, &[], &room.host.skills()).ends_with("Skills:\n- tidy: tidies things"));
    let spec = room.runtime.spec("task").unwrap();
    assert!(describe(&spec, &room.host.agents(), &[]).ends_with("Agents:\n- general: does things"));
}
