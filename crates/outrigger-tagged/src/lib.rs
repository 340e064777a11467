//! `#[tagged("kind")]`, for enums of `outrigger-protocol` whose variant is named by a field.
//!
//! It replaces `#[serde(tag = "kind")]` and `derive(Deserialize)`. The enum is serialised as by serde. For deserialisation, it has a
//! twin without a tag, whose code serde derives (`remote`), and the tag field selects its variant
//! (`outrigger_protocol::tagged`). In tests a second twin uses serde's own implementation, to compare both.

use proc_macro::{Group, Ident, TokenStream, TokenTree};

/// Reads an enum with a tag.
#[proc_macro_attribute]
pub fn tagged(tag: TokenStream, item: TokenStream) -> TokenStream {
    match Enum::read(item) {
        Some(read) => [read.written(&tag), read.twin(&tag)].into_iter().collect(),
        None => parsed("compile_error!(\"`tagged` is for enums without parameters\");"),
    }
}

/// An enum, as far as it matters.
struct Enum {
    /// All before `pub enum`.
    attributes: TokenStream,
    /// Of these, `#[serde(…)]`.
    for_serde: TokenStream,
    /// `pub enum Name { … }`.
    declaration: Vec<TokenTree>,
    name: Ident,
    variants: Group,
}

impl Enum {
    fn read(item: TokenStream) -> Option<Self> {
        let mut tokens = item.into_iter().peekable();
        let (mut attributes, mut for_serde) = (TokenStream::new(), TokenStream::new());
        while let Some(hash) = tokens.next_if(|it| matches!(it, TokenTree::Punct(_))) {
            let attribute = [hash, tokens.next()?];
            if is_serde(&attribute[1]) {
                for_serde.extend(attribute.clone());
            }
            attributes.extend(attribute);
        }
        let declaration: Vec<TokenTree> = tokens.collect();
        match declaration.as_slice() {
            [
                ..,
                TokenTree::Ident(word),
                TokenTree::Ident(name),
                TokenTree::Group(variants),
            ] if word.to_string() == "enum" => {
                let (name, variants) = (name.clone(), variants.clone());
                Some(Self {
                    attributes,
                    for_serde,
                    declaration,
                    name,
                    variants,
                })
            }
            _ => None,
        }
    }

    /// The enum itself, which serde writes with its tag.
    fn written(&self, tag: &TokenStream) -> TokenStream {
        let mut written = self.attributes.clone();
        written.extend(parsed(&format!("#[serde(tag = {tag})]")));
        written.extend(self.declaration.iter().cloned());
        written
    }

    fn twin(&self, tag: &TokenStream) -> TokenStream {
        let Self {
            name,
            for_serde,
            variants,
            ..
        } = self;
        parsed(&format!(
            "const _: () = {{
                #[derive(::serde::Deserialize)]
                #[serde(remote = \"{name}\", rename = \"{name}\")]
                {for_serde}
                enum Untagged {variants}

                impl<'de> ::serde::Deserialize<'de> for {name} {{
                    fn deserialize<D: ::serde::Deserializer<'de>>(from: D) -> ::core::result::Result<Self, D::Error> {{
                        Untagged::deserialize(crate::tagged::Tagged::new({tag}, from))
                    }}
                }}

                #[cfg(test)]
                mod by_serde {{
                    use super::*;

                    #[derive(::serde::Deserialize)]
                    #[serde(remote = \"{name}\", rename = \"{name}\", tag = {tag})]
                    {for_serde}
                    enum Tagged {variants}

                    impl crate::tagged::tests::BySerde for {name} {{
                        fn by_serde<'de, D: ::serde::Deserializer<'de>>(from: D) -> ::core::result::Result<Self, D::Error> {{
                            Tagged::deserialize(from)
                        }}
                    }}
                }}
            }};"
        ))
    }
}

fn is_serde(attribute: &TokenTree) -> bool {
    let TokenTree::Group(attribute) = attribute else {
        return false;
    };
    attribute
        .stream()
        .into_iter()
        .next()
        .is_some_and(|it| it.to_string() == "serde")
}

fn parsed(text: &str) -> TokenStream {
    text.parse().unwrap_or_default()
}
