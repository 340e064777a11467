//! Descriptions of the bundled tools' parameters for the models, in our own words.

use serde_json::{Map, Value, json};

/// Tool, location of the parameter in its schema (`/` descends into the fields of an object or of a list's
/// items), text.
type Line = (&'static str, &'static str, &'static str);

#[rustfmt::skip]
const TABLE: &[Line] = &[
    ("apply_patch", "patchText", "Complete patch, including its first and last line"),
    ("bash", "command", "Shell command to run"),
    ("bash", "timeout", "Timeout in milliseconds (default 120000)"),
    ("bash", "workdir", "Directory to run the command in (default: the working directory)"),
    ("edit", "filePath", "Absolute path of the file"),
    ("edit", "oldString", "Exact text to replace"),
    ("edit", "newString", "Replacement text; must differ from oldString"),
    ("edit", "replaceAll", "Replace every occurrence (default false)"),
    ("glob", "pattern", "Glob pattern to match file paths"),
    ("glob", "path", "Directory to search (default: the working directory)"),
    ("grep", "pattern", "Regular expression to search for in file contents"),
    ("grep", "path", "File or directory to search (default: the working directory)"),
    ("grep", "include", "Glob pattern for file names, such as \"*.rs\" or \"*.{js,ts}\""),
    ("lsp", "operation", "Operation of the language server"),
    ("lsp", "filePath", "Path of the file, absolute or relative to the working directory"),
    ("lsp", "line", "Line number, starting at 1"),
    ("lsp", "character", "Character in the line, starting at 1"),
    ("lsp", "query", "Part of a symbol name for workspaceSymbol; empty for all symbols"),
    ("python", "script", "Python source code"),
    ("python", "input", "Text for standard input"),
    ("python", "timeout", "Timeout in milliseconds (default 120000)"),
    ("question", "questions", "Questions to ask"),
    ("question", "questions/question", "Complete question"),
    ("question", "questions/header", "Short label of the question, at most 30 characters"),
    ("question", "questions/options", "Answers to choose from"),
    ("question", "questions/options/label", "Answer in one to five words"),
    ("question", "questions/options/description", "Explanation of the answer"),
    ("question", "questions/multiple", "Allow several answers"),
    ("read", "filePath", "Absolute path of the file or directory"),
    ("read", "offset", "First line to read, starting at 1"),
    ("read", "limit", "Maximum number of lines (default 2000)"),
    ("skill", "name", "Name of a listed skill"),
    ("table", "path", "File to read"),
    ("table", "sheet", "Sheet of a spreadsheet (default: the first)"),
    ("table", "rows", "Rows of a new table, instead of path"),
    ("table", "join", "Second file to join with the first"),
    ("table", "join/path", "Path of the second file"),
    ("table", "join/sheet", "Sheet of the second file"),
    ("table", "join/on", "Pairs of columns with equal cells"),
    ("table", "join/on/left", "Column of the first table"),
    ("table", "join/on/right", "Column of the second table"),
    ("table", "join/how", "Join type: inner, left, right or outer (default inner)"),
    ("table", "where", "Conditions that every returned row meets"),
    ("table", "where/column", "Column to compare"),
    ("table", "where/op", "Comparison operator"),
    ("table", "where/value", "Text, number or boolean to compare with; a list for in; omit for empty and not_empty"),
    ("table", "sort", "Columns to sort by, most significant first"),
    ("table", "sort/column", "Column name"),
    ("table", "sort/descending", "Sort in descending order"),
    ("table", "offset", "Number of rows to skip"),
    ("table", "limit", "Maximum number of rows (default 100, unlimited with to)"),
    ("table", "columns", "Columns to return, in this order (default: all)"),
    ("table", "to", "File to write the rows to instead of returning them"),
    ("task", "description", "Task in three to five words"),
    ("task", "prompt", "Complete instructions for the agent"),
    ("task", "subagent_type", "Name of the agent to run"),
    ("task", "task_id", "task_id of an earlier call, to continue its session; omit to start a new one"),
    ("task", "command", "Slash command that started this task, if any"),
    ("todowrite", "todos", "Complete updated list"),
    ("todowrite", "todos/content", "Short description of the task"),
    ("todowrite", "todos/status", "Status: pending, in_progress, completed or cancelled"),
    ("todowrite", "todos/priority", "Priority: high, medium or low"),
    ("webfetch", "url", "URL to fetch"),
    ("webfetch", "format", "Output format: text, markdown or html (default markdown)"),
    ("webfetch", "timeout", "Timeout in seconds, at most 120"),
    ("websearch", "query", "Search query"),
    ("websearch", "numResults", "Maximum number of results (default 8)"),
    ("websearch", "livecrawl", "Whether to crawl pages live: preferred, or fallback if no copy is cached (default fallback)"),
    ("websearch", "type", "Search depth: auto, fast or deep (default auto)"),
    ("websearch", "contextMaxCharacters", "Maximum number of characters to return (default 10000)"),
    ("write", "content", "Complete content of the file"),
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
