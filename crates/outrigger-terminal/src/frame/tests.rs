use proptest::prelude::*;

use super::*;

const LONG: Size = Size {
    columns: 80,
    rows: 24,
};

/// Returns the most columns that a character may take; the actual width depends on the terminal.
fn most(c: char) -> usize {
    if c.is_ascii() { 1 } else { 2 }
}

/// Checks that each row is one on the screen, and begins with our own prefix.
fn holds(text: &str, columns: usize) -> Result<(), TestCaseError> {
    prop_assert!(text.is_empty() || text.ends_with('\n'));
    for line in text.lines() {
        let width: usize = line.chars().map(most).sum();
        prop_assert!(width < columns.max(LABEL + 2), "{line:?} in {columns}");
        let ours = if columns >= MIN_LABELLED {
            line.get(..LABEL).is_some_and(|label| {
                ["", "command", "folder"].contains(&label.trim())
                    && line[LABEL..].starts_with([' '])
            })
        } else {
            line.starts_with(['│', '┊', '⋮']) || ["command:", "folder:"].contains(&line)
        };
        prop_assert!(ours, "{line:?}");
        let hidden = |c: char| is_control(c) || is_invisible(c) || is_blank(c) && c != ' ';
        prop_assert!(!line.chars().any(hidden), "{line:?}");
    }
    Ok(())
}

fn hostile() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        any::<String>(),
        Just("\n".to_owned()),
        Just("? allow bash (ls)? [y]es, [n]o: ".to_owned()),
        Just("\u{1b}[2J\u{1b}[H\r\u{8}\u{9b}2J".to_owned()),
        (
            prop_oneof![
                Just(' '),
                Just('\u{2800}'),
                Just('\u{a0}'),
                Just('\u{3000}'),
                Just('\t'),
                Just('\n'),
                Just('#'),
                Just('日')
            ],
            1..3000_usize
        )
            .prop_map(|(c, n)| c.to_string().repeat(n)),
        Just("👩\u{200d}💻\u{301}\u{202e}".to_owned()),
    ];
    proptest::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_text_leaves_its_frame(one in hostile(), other in hostile(), columns in 8..200_usize, rows in 1..60_usize) {
        let size = Size { columns, rows };
        let frame = Frame::new().with("command", one).with("folder", other);
        let shown = frame.bounded(size, "; [v]iew shows all");
        holds(&shown.text, columns)?;
        // Together with the prompt it fits on one screen.
        prop_assert!(shown.text.lines().count() < rows.max(MIN_ROWS + 1), "{}", shown.text);
        for page in frame.pages(size) {
            holds(&page, columns)?;
        }
        let whole = frame.whole(columns);
        holds(&whole, columns)?;
        prop_assert_eq!(frame.pages(size).concat(), whole.clone());
        prop_assert!(shown.is_cut || shown.text == whole);
    }

    /// The displayed text is the text itself, except for runs.
    #[test]
    fn no_character_is_lost(text in "[a-z;&|<>$ \"'(){}]{0,400}", columns in 30..120_usize) {
        let whole = Frame::new().with("command", text.clone()).whole(columns);
        let back: String = whole.lines().map(|line| line.chars().skip(LABEL + 3).collect::<String>()).collect();
        prop_assert_eq!(back, shortened(text.trim_end_matches('\n')).as_str().to_owned().repeat(usize::from(!text.is_empty())));
    }

    #[test]
    fn what_is_set_off_begins_no_line(text in hostile(), columns in 20..200_usize) {
        for line in set_off(&text, columns).lines() {
            let width: usize = name(line).chars().map(most).sum();
            prop_assert!(line.starts_with("│ ") && width < columns, "{line:?}");
        }
    }

    #[test]
    fn a_prompt_is_one_line_of_ours(columns in 40..200_usize, rows in 1..60_usize) {
        let prompt = prompt("allow external_directory", "external_directory", &["[y]es", "[n]o", "[a]lways", "[g]rant", "[v]iew"], Size { columns, rows });
        prop_assert!(prompt.len() < columns && prompt.is_ascii());
    }
}

#[test]
fn padding_does_not_push_a_question_off_the_screen() {
    for blank in [
        " ", "\u{2800}", "\u{a0}", "\u{3000}", "\t", "\n", "# ", "a b",
    ] {
        let call = format!("touch pwned #{}? allow bash (ls", blank.repeat(2340));
        let shown = Frame::new().with("command", call).bounded(LONG, "");
        assert!(
            shown.text.starts_with(" command │ touch pwned #"),
            "{blank:?}: {}",
            shown.text
        );
        let end = shown.text.replace("\n         ┊ ", "");
        assert!(
            end.ends_with("? allow bash (ls\n"),
            "{blank:?}: {}",
            shown.text
        );
        assert!(shown.text.lines().count() <= 22, "{blank:?}");
    }
}

#[test]
fn what_is_cut_is_counted() {
    let script: String = (1..=100).map(|n| format!("line {n}\n")).collect();
    let frame = Frame::new().with("command", script).with("folder", "sub");
    let shown = frame.bounded(
        Size {
            columns: 60,
            rows: 12,
        },
        "; [v]iew shows all",
    );
    insta::assert_snapshot!(shown.text, @r"
         command │ line 1
                 │ line 2
                 │ line 3
                 │ line 4
                 │ line 5
                 │ line 6
                 ⋮ 92 more lines, 641 characters; [v]iew shows all
                 │ line 99
                 │ line 100
          folder │ sub
        ");
    assert!(shown.is_cut);
    assert_eq!(
        frame
            .pages(Size {
                columns: 60,
                rows: 12
            })
            .len(),
        11
    );
}
