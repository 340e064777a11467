//! TypeScript of schemas.

use std::fmt::Write as _;

use crate::{Field, Schema};

/// Returns the declaration of a named schema.
#[must_use]
pub fn declaration(name: &str, schema: &Schema) -> String {
    let inner = match schema {
        Schema::Named(_, inner) => inner,
        other => other,
    };
    match inner.plain() {
        Schema::Object(fields) if !fields.is_empty() => {
            format!("export interface {name} {}\n", object(fields, 0))
        }
        _ => format!("export type {name} = {}\n", kind(inner, 0)),
    }
}

/// Returns the type of a schema, at this depth.
fn kind(schema: &Schema, depth: usize) -> String {
    match schema {
        Schema::Any => "unknown".to_owned(),
        Schema::Null => "null".to_owned(),
        Schema::Boolean => "boolean".to_owned(),
        Schema::Exactly(which) => which.to_string(),
        Schema::String | Schema::Text(_) => "string".to_owned(),
        Schema::Word(words) => words
            .iter()
            .map(|word| format!("\"{word}\""))
            .collect::<Vec<_>>()
            .join(" | "),
        Schema::Number | Schema::Integer { .. } => "number".to_owned(),
        Schema::List(item) => format!("Array<{}>", kind(item, depth)),
        Schema::Pair(first, second) => format!("[{}, {}]", kind(first, depth), kind(second, depth)),
        Schema::Map(values) => format!("Record<string, {}>", kind(values, depth)),
        Schema::Object([]) => "Record<string, unknown>".to_owned(),
        Schema::Object(fields) => object(fields, depth),
        Schema::AnyOf(all) => all
            .iter()
            .map(|one| kind(one, depth))
            .collect::<Vec<_>>()
            .join(" | "),
        Schema::Named(name, _) => (*name).to_owned(),
        Schema::Of(inner) | Schema::Said(_, inner) => kind(inner, depth),
    }
}

fn object(fields: &[Field], depth: usize) -> String {
    let margin = "  ".repeat(depth + 1);
    let mut text = String::from("{\n");
    for field in fields {
        let about = field.about();
        if !about.is_empty() {
            let _ = writeln!(text, "{margin}/** {about} */");
        }
        let mark = if field.required { "" } else { "?" };
        let _ = writeln!(
            text,
            "{margin}{}{mark}: {}",
            name(field.name),
            kind(&field.schema, depth + 1)
        );
    }
    let _ = write!(text, "{}}}", "  ".repeat(depth));
    text
}

/// Returns a key, quoted if it is not an identifier.
fn name(key: &str) -> String {
    let mut chars = key.chars();
    let begins = chars.next().is_some_and(|c| c.is_alphabetic() || c == '_');
    if begins && chars.all(|c| c.is_alphanumeric() || c == '_') {
        key.to_owned()
    } else {
        format!("\"{key}\"")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema;

    static PART: Schema = Schema::Named("Part", &schema!({ id: string }));

    #[test]
    fn schemas_are_typescript() {
        for (schema, want) in [
            (schema!([string]), "Array<string>"),
            (schema!("a" | "b"), "\"a\" | \"b\""),
            (const { schema!([PART | null]) }, "Array<Part | null>"),
            (
                schema!({ number | boolean }),
                "Record<string, number | boolean>",
            ),
            (schema!({}), "Record<string, unknown>"),
            (schema!([integer, any]), "[number, unknown]"),
            (schema!(true), "true"),
        ] {
            assert_eq!(kind(&schema, 0), want);
        }
        assert_eq!(
            declaration("Part", &PART),
            "export interface Part {\n  id: string\n}\n"
        );
        assert_eq!(
            declaration(
                "Form",
                &schema!({
                    /// Who.
                    name?: string,
                    "a-b": {c: integer}
                })
            ),
            "export interface Form {\n  /** Who. */\n  name?: string\n  \"a-b\": {\n    c: number\n  }\n}\n"
        );
        assert_eq!(
            declaration("Word", &schema!("a" | "b")),
            "export type Word = \"a\" | \"b\"\n"
        );
    }
}
