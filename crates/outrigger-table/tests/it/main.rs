//! Tables from bytes to bytes.

#![expect(
    clippy::unwrap_used,
    reason = "helpers of tests; clippy only exempts the test functions"
)]

use std::fmt::Write as _;

use outrigger_table::{
    Format, Join, MAX_BYTES, Query, Table, TableError, join, read, shown, write,
};
use proptest::prelude::*;
use serde_json::{Value, json};

const PEOPLE: &str = "\u{feff}name,city,age\nAda,London,36\n\"Lovelace, B.\",\"Paris \"\"P\"\"\",\nCy,,9\nDot,Oslo,100\n";

fn csv(text: &str) -> Table {
    read(text.as_bytes(), Format::Csv, None).unwrap()
}

fn rows_of(table: &Table) -> String {
    let mut out = table.columns.join(" | ");
    for row in &table.rows {
        let cells: Vec<String> = row
            .iter()
            .map(|cell| {
                if cell.is_null() {
                    "-".into()
                } else {
                    shown(cell)
                }
            })
            .collect();
        let _ = write!(out, "\n{}", cells.join(" | "));
    }
    out
}

fn query(query: Value) -> Result<String, TableError> {
    let query: Query = serde_json::from_value(query).unwrap();
    let (table, matched) = query.run(csv(PEOPLE))?;
    Ok(format!("{matched} matched\n{}", rows_of(&table)))
}

#[test]
fn files_are_read_with_their_quirks() {
    for (format, text, expected) in [
        (
            Format::Csv,
            PEOPLE,
            "name | city | age\nAda | London | 36\nLovelace, B. | Paris \"P\" | -\nCy | - | 9\nDot | Oslo | 100",
        ),
        (
            Format::Csv,
            "a,,a\r\n1,2,3\r\n4\r\n",
            "a | column_2 | a_2\n1 | 2 | 3\n4 | - | -",
        ),
        (Format::Csv, "", ""),
        (Format::Tsv, "a\tb\n1,5\tx\n", "a | b\n1,5 | x"),
        (
            Format::JsonLines,
            "{\"a\":1}\n\n{\"b\":[1,{\"c\":2}],\"a\":null}\n",
            "a | b\n1 | -\n- | [1,{\"c\":2}]",
        ),
    ] {
        assert_eq!(
            rows_of(&read(text.as_bytes(), format, None).unwrap()),
            expected,
            "{text}"
        );
    }
}

#[test]
fn what_cannot_be_read_says_where_and_why() {
    let large = vec![b'a'; MAX_BYTES + 1];
    for (format, bytes, sheet, code, says) in [
        (
            Format::Csv,
            &b"a,b\n1,2,3\n"[..],
            None,
            "table.row",
            "row 1 has 3 cells, and there are 2 columns",
        ),
        (
            Format::Csv,
            b"a\n\xff\n",
            None,
            "table.unreadable",
            "invalid utf-8",
        ),
        (
            Format::Csv,
            b"a\n",
            Some("Sheet1"),
            "table.sheet",
            "it is not a spreadsheet",
        ),
        (
            Format::JsonLines,
            b"{}\n[1]\n",
            None,
            "table.unreadable",
            "line 2",
        ),
        (
            Format::JsonLines,
            b"\xff",
            None,
            "table.unreadable",
            "utf-8",
        ),
        (
            Format::Spreadsheet,
            b"no such thing",
            None,
            "table.unreadable",
            "a spreadsheet",
        ),
        (
            Format::Spreadsheet,
            b"PK\x03\x04half",
            None,
            "table.unreadable",
            "a spreadsheet",
        ),
        (
            Format::Csv,
            &large,
            None,
            "table.too_large",
            "more than the 67108864",
        ),
    ] {
        let error = read(bytes, format, sheet).unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains(says), "{error}");
    }
}

#[test]
fn spreadsheets_go_there_and_back() {
    let table = Table {
        columns: vec!["text".into(), "number".into(), "yes".into()],
        rows: vec![
            vec![json!("a"), json!(7), json!(true)],
            vec![json!("=1+1"), json!(1.5), Value::Null],
            vec![
                json!("007"),
                json!(9_007_199_254_740_993_i64),
                json!({"n": 1}),
            ],
        ],
    };
    let bytes = write(&table, Format::Spreadsheet).unwrap();
    let back = read(&bytes, Format::Spreadsheet, None).unwrap();
    // No formula is created from a text, no digit is lost, and nested values become JSON.
    assert_eq!(
        rows_of(&back),
        "text | number | yes\na | 7 | true\n=1+1 | 1.5 | -\n007 | 9007199254740993 | {\"n\":1}"
    );
    let error = read(&bytes, Format::Spreadsheet, Some("Other")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no sheet Other; there are: Sheet1"
    );
    let long = Table {
        columns: vec!["a".into()],
        rows: vec![vec![json!("x".repeat(40_000))]],
    };
    assert_eq!(
        write(&long, Format::Spreadsheet).unwrap_err().code(),
        "table.too_large"
    );
}

#[test]
fn rows_are_filtered_sorted_and_cut() {
    for (wanted, expected) in [
        (
            json!({"where": [{"column": "age", "op": "gt", "value": 9}], "sort": [{"column": "age", "descending": true}]}),
            "2 matched\nname | city | age\nDot | Oslo | 100\nAda | London | 36",
        ),
        (
            json!({"sort": [{"column": "age"}], "columns": ["age", "name"]}),
            "4 matched\nage | name\n9 | Cy\n36 | Ada\n100 | Dot\n- | Lovelace, B.",
        ),
        (
            json!({"sort": [{"column": "city", "descending": true}], "limit": 1, "offset": 1, "columns": ["city"]}),
            "4 matched\ncity\nOslo",
        ),
        (
            json!({"where": [{"column": "city", "op": "empty"}], "columns": ["name"]}),
            "1 matched\nname\nCy",
        ),
        (
            json!({"where": [{"column": "city", "op": "ne", "value": "Oslo"}], "columns": ["name"]}),
            "3 matched\nname\nAda\nLovelace, B.\nCy",
        ),
        (
            json!({"where": [{"column": "name", "op": "in", "value": ["Cy", "Dot"]}, {"column": "city", "op": "contains", "value": "sl"}], "columns": ["name"]}),
            "1 matched\nname\nDot",
        ),
        (
            json!({"where": [{"column": "name", "op": "starts_with", "value": "Lo"}], "columns": ["city"]}),
            "1 matched\ncity\nParis \"P\"",
        ),
        (json!({"offset": 9}), "4 matched\nname | city | age"),
    ] {
        assert_eq!(query(wanted.clone()).unwrap(), expected, "{wanted}");
    }
}

#[test]
fn what_is_not_there_is_named_with_what_is() {
    for (wanted, expected) in [
        (
            json!({"columns": ["nam"]}),
            "there is no column nam; there are: name, city, age",
        ),
        (
            json!({"sort": [{"column": "x"}]}),
            "there is no column x; there are: name, city, age",
        ),
        (
            json!({"where": [{"column": "age", "op": "in", "value": 1}]}),
            "invalid condition on age: `in` takes a list",
        ),
        (
            json!({"where": [{"column": "age", "op": "eq"}]}),
            "invalid condition on age: it has no value; use `empty` or `not_empty` for empty cells",
        ),
        (
            json!({"where": [{"column": "age", "op": "lt", "value": [1]}]}),
            "invalid condition on age: its value is not a text, number or boolean",
        ),
        (
            json!({"where": [{"column": "age", "op": "empty", "value": 1}]}),
            "invalid condition on age: `empty` takes no value",
        ),
    ] {
        assert_eq!(
            query(wanted.clone()).unwrap_err().to_string(),
            expected,
            "{wanted}"
        );
    }
}

#[test]
fn tables_are_joined() {
    let left = csv("id,name\n1,Ada\n2,Bo\n2,Cy\n,Dot\n007,Eve\n");
    let right = read(b"{\"key\":2,\"name\":\"two\"}\n{\"key\":1.0,\"name\":\"one\"}\n{\"key\":7,\"name\":\"seven\"}\n{\"name\":\"none\"}\n", Format::JsonLines, None).unwrap();
    for (how, expected) in [
        ("inner", "1 | Ada | one\n2 | Bo | two\n2 | Cy | two"),
        (
            "left",
            "1 | Ada | one\n2 | Bo | two\n2 | Cy | two\n- | Dot | -\n007 | Eve | -",
        ),
        (
            "right",
            "1 | Ada | one\n2 | Bo | two\n2 | Cy | two\n7 | - | seven\n- | - | none",
        ),
        (
            "outer",
            "1 | Ada | one\n2 | Bo | two\n2 | Cy | two\n- | Dot | -\n007 | Eve | -\n7 | - | seven\n- | - | none",
        ),
    ] {
        let by: Join =
            serde_json::from_value(json!({"on": [{"left": "id", "right": "key"}], "how": how}))
                .unwrap();
        let joined = join(&left, &right, &by).unwrap();
        assert_eq!(
            rows_of(&joined),
            format!("id | name | right_name\n{expected}"),
            "{how}"
        );
    }
    let on = |left: &str, right: &str| {
        serde_json::from_value::<Join>(json!({"on": [{"left": left, "right": right}]})).unwrap()
    };
    let error = join(&left, &right, &on("id", "id")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "there is no column id; there are: key, name"
    );
    let same = Table {
        columns: vec!["a".into()],
        rows: vec![vec![json!(1)]; 4000],
    };
    assert_eq!(
        join(&same, &same, &on("a", "a")).unwrap_err().code(),
        "table.too_large"
    );
    let none: Join = serde_json::from_value(json!({"on": []})).unwrap();
    assert_eq!(
        join(&same, &same, &none).unwrap_err().code(),
        "table.condition"
    );
}

#[test]
fn the_name_of_a_file_tells_its_format() {
    use std::path::Path;
    for (name, read, written) in [
        ("a.CSV", Some(Format::Csv), Some(Format::Csv)),
        ("a.b.tsv", Some(Format::Tsv), Some(Format::Tsv)),
        ("a.ndjson", Some(Format::JsonLines), Some(Format::JsonLines)),
        (
            "a.xlsx",
            Some(Format::Spreadsheet),
            Some(Format::Spreadsheet),
        ),
        ("a.ods", Some(Format::Spreadsheet), None),
        ("a.txt", None, None),
        ("csv", None, None),
    ] {
        assert_eq!(Format::of(Path::new(name)).ok(), read, "{name}");
        assert_eq!(Format::to_write(Path::new(name)).ok(), written, "{name}");
    }
}

fn cell() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9_f64).prop_map(Value::from),
        "[ -~\n\"\t\u{e9}]{1,12}".prop_map(Value::from),
    ]
}

fn table() -> impl Strategy<Value = Table> {
    (1..5_usize, 0..8_usize).prop_flat_map(|(columns, rows)| {
        prop::collection::vec(prop::collection::vec(cell(), columns), rows).prop_map(move |rows| {
            Table {
                columns: (0..columns).map(|n| format!("c{n}")).collect(),
                rows,
            }
        })
    })
}

proptest! {
    /// Written tables are read back: as texts from CSV and TSV, unchanged from JSON lines.
    #[test]
    fn a_table_survives_its_file(table in table()) {
        for format in [Format::Csv, Format::Tsv] {
            let back = read(&write(&table, format).unwrap(), format, None).unwrap();
            prop_assert_eq!(&back.columns, &table.columns);
            let texts = |table: &Table| -> Vec<Vec<String>> { table.rows.iter().map(|row| row.iter().map(shown).collect()).collect() };
            prop_assert_eq!(texts(&back), texts(&table));
        }
        let back = read(&write(&table, Format::JsonLines).unwrap(), Format::JsonLines, None).unwrap();
        prop_assert_eq!(back.rows.len(), table.rows.len());
        for (row, before) in back.rows.iter().zip(&table.rows) {
            for (place, name) in table.columns.iter().enumerate() {
                let cell = back.column(name).map_or(&Value::Null, |at| &row[at]);
                prop_assert_eq!(cell, &before[place]);
            }
        }
    }

    /// Sorting is idempotent, and loses no row.
    #[test]
    fn a_sort_is_an_order(table in table(), descending: bool) {
        let query: Query = serde_json::from_value(json!({"sort": [{"column": "c0", "descending": descending}]})).unwrap();
        let (once, _) = query.run(table.clone()).unwrap();
        let (twice, matched) = query.run(once.clone()).unwrap();
        prop_assert_eq!(&once, &twice);
        prop_assert_eq!(matched, table.rows.len());
    }

    /// A row appears in a join once per partner, and an outer join keeps all rows.
    #[test]
    fn a_join_counts(left in table(), right in table()) {
        let on = |how: &str| serde_json::from_value::<Join>(json!({"on": [{"left": "c0", "right": "c0"}], "how": how})).unwrap();
        let rows = |how: &str| join(&left, &right, &on(how)).unwrap().rows.len();
        let (inner, outer) = (rows("inner"), rows("outer"));
        prop_assert_eq!(inner + outer, rows("left") + rows("right"));
        prop_assert_eq!(rows("inner"), join(&right, &left, &on("inner")).unwrap().rows.len());
    }
}
