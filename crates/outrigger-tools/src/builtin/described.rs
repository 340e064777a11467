//! Descriptions of the bundled tools' parameters for the models, in our own words.

use serde_json::{Map, Value, json};

/// Tool, location of the parameter in its schema (`/` descends into the fields of an object or of a list's
/// items), text.
type Line = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const TABLE: &[Line] = &[
    ("apply_patch", "patchText", "The whole patch, with its first and its last line"),
    ("bash", "command", "Command line for the shell"),
    ("bash", "timeout", "Milliseconds after which the command is ended; two minutes when left out"),
    ("bash", "workdir", "Folder to run the command in; the project's working directory when left out"),
    ("edit", "filePath", "Absolute path of the file"),
    ("edit", "oldString", "Text in the file that is to go, exactly as it stands there"),
    ("edit", "newString", "Text to put in its place; it has to be another one"),
    ("edit", "replaceAll", "Whether every occurrence is replaced; false when left out"),
    ("glob", "pattern", "Pattern that the paths of the files have to match"),
    ("glob", "path", "Folder to look in; leave it out for the working directory"),
    ("grep", "pattern", "Regular expression to look for in the lines of files"),
    ("grep", "path", "File or folder to search; the working directory when left out"),
    ("grep", "include", "Pattern for the names of the files that are searched, such as \"*.rs\" or \"*.{js,ts}\""),
    ("lsp", "operation", "What to ask the language server"),
    ("lsp", "filePath", "The file, absolute or relative to the working directory"),
    ("lsp", "line", "Line, counted from 1"),
    ("lsp", "character", "Character of the line, counted from 1"),
    ("lsp", "query", "Part of the name for workspaceSymbol; all symbols when empty"),
    ("python", "script", "Source text of the script"),
    ("python", "input", "Text for standard input"),
    ("python", "timeout", "Milliseconds after which the script is ended; two minutes when left out"),
    ("question", "questions", "What to ask, one entry for each question"),
    ("question", "questions/question", "The question in full"),
    ("question", "questions/header", "A few words that stand for the question, at most 30 characters"),
    ("question", "questions/options", "The answers that are offered"),
    ("question", "questions/options/label", "The answer in one to five words"),
    ("question", "questions/options/description", "What choosing it means"),
    ("question", "questions/multiple", "Whether several answers may be chosen"),
    ("read", "filePath", "Absolute path of the file or folder"),
    ("read", "offset", "Line to begin at, counted from 1"),
    ("read", "limit", "Most lines to read; 2000 when left out"),
    ("skill", "name", "Name of the skill, one of those listed"),
    ("table", "path", "File to read"),
    ("table", "sheet", "Sheet of a spreadsheet; the first one when left out"),
    ("table", "rows", "Rows of a new table, instead of path"),
    ("table", "join", "A second file, and how its rows are put beside those of the first"),
    ("table", "join/path", "The second file"),
    ("table", "join/sheet", "Its sheet"),
    ("table", "join/on", "Columns whose cells have to be equal"),
    ("table", "join/on/left", "Column of the first table"),
    ("table", "join/on/right", "Column of the second one"),
    ("table", "join/how", "Which rows without a partner are kept: none (inner), those of the left or right table, or all (outer); inner when left out"),
    ("table", "where", "Conditions that a row has to fulfil, all of them"),
    ("table", "where/column", "Column to look at"),
    ("table", "where/op", "How it is compared"),
    ("table", "where/value", "With what: a text, a number, true or false; a list for in; nothing for empty and not_empty"),
    ("table", "sort", "Columns to sort by, the first one first"),
    ("table", "sort/column", "Name of the column"),
    ("table", "sort/descending", "The largest first"),
    ("table", "offset", "Rows to leave out at the beginning"),
    ("table", "limit", "Most rows; 100 when left out and there is no to"),
    ("table", "columns", "Columns that are wanted, in this order; all when left out"),
    ("table", "to", "File to write instead of answering with the rows"),
    ("task", "description", "The job in three to five words"),
    ("task", "prompt", "Everything that the agent needs to know for its job"),
    ("task", "subagent_type", "Name of the agent that does it"),
    ("task", "task_id", "The task_id of an earlier call, to go on with that agent's session; leave it out for a new one"),
    ("task", "command", "The slash command that this job comes from, if it comes from one"),
    ("todowrite", "todos", "The whole list as it is from now on"),
    ("todowrite", "todos/content", "What is to be done, in a few words"),
    ("todowrite", "todos/status", "How far it is: pending, in_progress, completed or cancelled"),
    ("todowrite", "todos/priority", "How much it matters: high, medium or low"),
    ("webfetch", "url", "Address to fetch"),
    ("webfetch", "format", "What to make of the page: text, markdown or html; markdown when left out"),
    ("webfetch", "timeout", "Seconds to wait, at most 120"),
    ("websearch", "query", "What to search for"),
    ("websearch", "numResults", "Most results; 8 when left out"),
    ("websearch", "livecrawl", "Whether pages are fetched anew: preferred, or fallback (where the service has no copy), which it is when left out"),
    ("websearch", "type", "How thoroughly: auto, fast or deep; auto when left out"),
    ("websearch", "contextMaxCharacters", "Most characters of the answer; 10000 when left out"),
    ("write", "content", "Everything that the file is to hold"),
    ("write", "filePath", "Absolute path of the file"),
];

/// Adds the descriptions of a tool's parameters to its properties.
pub(super) fn describe(tool: &str, properties: &mut Value) {
    for (_, place, text) in TABLE.iter().filter(|(name, ..)| *name == tool) {
        if let Some(parameter) = find(properties, place) {
            parameter.insert("description".into(), json!(text));
        }
    }
}

fn find<'a>(properties: &'a mut Value, place: &str) -> Option<&'a mut Map<String, Value>> {
    let (name, rest) = match place.split_once('/') {
        Some((name, rest)) => (name, Some(rest)),
        None => (place, None),
    };
    let parameter = properties.get_mut(name)?;
    match rest {
        None => parameter.as_object_mut(),
        Some(rest) => {
            let object = match parameter.get("items") {
                Some(_) => parameter.get_mut("items")?,
                None => parameter,
            };
            find(object.get_mut("properties")?, rest)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtin::{Options, register_all};
    use crate::runtime::ToolRuntime;

    fn undescribed(at: &str, schema: &Value, out: &mut Vec<String>) {
        let properties = schema.get("properties").and_then(Value::as_object);
        for (name, parameter) in properties.into_iter().flatten() {
            let at = format!("{at}/{name}");
            if parameter.get("description").is_none() && !at.starts_with("invalid/") {
                out.push(at.clone());
            }
            undescribed(&at, parameter.get("items").unwrap_or(parameter), out);
        }
    }

    #[test]
    fn every_parameter_is_described_and_every_line_describes_one() {
        let runtime = ToolRuntime::new();
        let options = Options {
            lsp: true,
            search: Some(crate::builtin::SearchService {
                url: String::new(),
                key: None,
            }),
            ..Options::default()
        };
        register_all(&runtime, &options).unwrap();
        let mut missing = Vec::new();
        let mut tools = Vec::new();
        for spec in runtime.specs() {
            undescribed(&spec.name, &spec.input_schema, &mut missing);
            tools.push(spec);
        }
        assert!(missing.is_empty(), "{missing:?}");
        let names: Vec<&str> = tools.iter().map(|spec| spec.name.as_str()).collect();
        let known = crate::builtin::NAMES;
        assert!(
            known.len() == names.len() && known.iter().all(|it| names.contains(it)),
            "{names:?}"
        );
        for (tool, place, _) in TABLE {
            let spec = tools.iter_mut().find(|spec| spec.name == *tool);
            let schema = &mut spec.unwrap_or_else(|| panic!("{tool}")).input_schema;
            let found = find(schema.get_mut("properties").unwrap(), place);
            assert!(found.is_some(), "{tool} {place}");
        }
    }
}
