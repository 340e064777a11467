//! The tools that OpenCode does not have: tables and Python.

use outrigger_protocol::tool::ToolOutcome;
use outrigger_tools::builtin::optional;
use serde_json::{Value, json};

use crate::support::*;

/// Returns the output or the error.
async fn answer_of(room: &Room, tool: &str, input: Value) -> String {
    let text = match room.execute(tool, input).await.outcome {
        ToolOutcome::Completed { output, .. } => output.output,
        ToolOutcome::Failed { code, message, .. } => format!("error {code}: {message}"),
    };
    room.plain(&text)
}

#[tokio::test]
async fn a_table_is_read_joined_and_written() {
    let room = Room::new();
    room.file("people.csv", "id,name,age\n1,Ada,36\n2,Bo,7\n3,Cy,\n");
    room.file(
        "scores.jsonl",
        "{\"id\":1,\"score\":2.5}\n{\"id\":3,\"score\":9}\n",
    );
    let mut out = Vec::new();
    for input in [
        json!({"path": "people.csv"}),
        json!({"path": "people.csv", "where": [{"column": "age", "op": "gt", "value": 7}]}),
        json!({"path": "people.csv", "sort": [{"column": "age"}], "limit": 1, "offset": 1, "columns": ["name"]}),
        json!({"path": "people.csv", "offset": 9}),
        json!({"path": "people.csv", "join": {"path": "scores.jsonl", "on": [{"left": "id", "right": "id"}], "how": "left"}, "to": "out/all.xlsx"}),
        json!({"path": "out/all.xlsx", "where": [{"column": "score", "op": "not_empty"}]}),
        json!({"rows": [{"a": 1}, {"b": "=x", "a": 2}], "to": "new.tsv"}),
        json!({"path": "new.tsv"}),
        json!({"path": "none.csv"}),
        json!({"path": "people.csv", "columns": ["nam"]}),
        json!({"path": "people.csv", "to": "x.ods"}),
        json!({"path": "people.csv", "rows": []}),
        json!({}),
        json!({"path": "people.csv", "where": [{"column": "age", "op": "like"}]}),
        json!({"path": "a.txt"}),
    ] {
        let answer = answer_of(&room, "table", input.clone()).await;
        out.push(format!("{input}\n{}", answer));
    }
    insta::assert_snapshot!(out.join("\n\n"), @r#"
    {"path":"people.csv"}
    id,name,age
    1,Ada,36
    2,Bo,7
    3,Cy,

    (3 rows)

    {"path":"people.csv","where":[{"column":"age","op":"gt","value":7}]}
    id,name,age
    1,Ada,36

    (3 rows, 1 match)

    {"path":"people.csv","sort":[{"column":"age"}],"limit":1,"offset":1,"columns":["name"]}
    name
    Ada

    (3 rows, 2 to 2 shown; use offset and limit for others)

    {"path":"people.csv","offset":9}
    id,name,age

    (3 rows, none shown)

    {"path":"people.csv","join":{"path":"scores.jsonl","on":[{"left":"id","right":"id"}],"how":"left"},"to":"out/all.xlsx"}
    Wrote 3 rows of 4 columns to ROOM/project/out/all.xlsx.

    {"path":"out/all.xlsx","where":[{"column":"score","op":"not_empty"}]}
    id,name,age,score
    1,Ada,36,2.5
    3,Cy,,9

    (3 rows, 2 match)

    {"rows":[{"a":1},{"b":"=x","a":2}],"to":"new.tsv"}
    Wrote 2 rows of 2 columns to ROOM/project/new.tsv.

    {"path":"new.tsv"}
    a,b
    1,
    2,=x

    (2 rows)

    {"path":"none.csv"}
    error tool.failed: Could not open ROOM/project/none.csv: No such file or directory (os error 2)

    {"path":"people.csv","columns":["nam"]}
    error tool.failed: Invalid arguments for table: there is no column nam; there are: id, name, age

    {"path":"people.csv","to":"x.ods"}
    error tool.failed: ROOM/project/x.ods: it cannot be written as this kind of spreadsheet: only .xlsx is written; write it as .csv, .tsv, .jsonl or .xlsx

    {"path":"people.csv","rows":[]}
    error tool.failed: Invalid arguments for table: it takes path or rows, not both

    {}
    error tool.failed: Invalid arguments for table: it takes path or rows

    {"path":"people.csv","where":[{"column":"age","op":"like"}]}
    error tool.invalid_input: The table tool was called with invalid arguments: SchemaError(Expected "eq" | "ne" | "lt" | "le" | "gt" | "ge" | "contains" | "starts_with" | "ends_with" | "in" | "empty" | "not_empty", got "like"
      at ["where"][0]["op"]).
    Please rewrite the input so it satisfies the expected schema.

    {"path":"a.txt"}
    error tool.failed: ROOM/project/a.txt: no format of tables is known by its name; use .csv, .tsv, .jsonl, .ndjson, .xlsx, .xlsm, .xlsb, .xls or .ods
    "#);
}

#[tokio::test]
async fn a_table_is_asked_for_as_the_files_are_that_it_reads_and_writes() {
    let room = Room::new();
    room.file("a.csv", "x\n1\n");
    answer_of(&room, "table", json!({"path": "a.csv", "join": {"path": room.outside().join("b.csv"), "on": [{"left": "x", "right": "x"}]}, "to": "c.csv"})).await;
    insta::assert_snapshot!(room.asked().join("\n"), @r#"
    read ["a.csv"] ["*"]
    external_directory ["ROOM/outside/*"] ["ROOM/outside/*"]
    read ["../outside/b.csv"] ["*"]
    edit ["c.csv"] ["*"]
    "#);
    for (refuse, file) in [("read", "a.csv"), ("edit", "d.csv")] {
        let room = Room::new();
        room.file("a.csv", "x\n1\n");
        *room.host.refuse.lock().unwrap() = Some(refuse);
        let answer = answer_of(&room, "table", json!({"path": "a.csv", "to": "d.csv"})).await;
        assert!(answer.starts_with("error"), "{file}: {answer}");
        assert!(!room.project().join("d.csv").exists());
    }
}

#[tokio::test]
async fn a_script_runs_in_the_sandbox_of_commands() {
    let room = Room::new();
    let mut out = Vec::new();
    for input in [
        json!({"script": "import sys, os\nprint(os.getcwd().split('/')[-1] != '', len(sys.stdin.read()))", "input": "x".repeat(200_000)}),
        json!({"script": "print('one'); raise SystemExit(3)"}),
        json!({"script": "1/0"}),
        json!({"script": "while True: pass", "timeout": 300}),
        json!({"script": "print(1)\u{0}"}),
    ] {
        out.push(answer_of(&room, "python", input).await);
    }
    insta::assert_snapshot!(out.join("\n\n"), @r#"
    True 200000


    one


    (exit code 3)

    Traceback (most recent call last):
      File "<string>", line 1, in <module>
    ZeroDivisionError: division by zero


    (exit code 1)

    (no output)

    <shell_metadata>
    shell tool terminated command after exceeding timeout 300 ms. If this command is expected to take longer and is not waiting for interactive input, retry with a larger timeout value in milliseconds.
    </shell_metadata>

    error tool.failed: The script contains a NUL byte or has more than 102400 bytes; write it to a file and run that
    "#);
    insta::assert_snapshot!(room.asked()[1], @r#"bash ["python3 -c print('one'); raise SystemExit(3)"] ["python3 -c *"]"#);
}

#[test]
fn they_are_known_as_what_nobody_has_to_offer() {
    let room = Room::new();
    let tools: Vec<String> = room
        .runtime
        .specs()
        .iter()
        .filter_map(|spec| Some(format!("{} by {}", spec.name, optional::plugin(spec)?)))
        .collect();
    assert_eq!(tools, ["table by core-table", "python by core-python"]);
}
