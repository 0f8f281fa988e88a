//! Rust source as the checks see it: production items only, each name and text with its line.

use std::ops::Range;

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use syn::spanned::Spanned as _;
use syn::visit::{self, Visit};
use syn::{Attribute, Item, LitStr, Meta, Visibility};

use crate::project::Outcome;

/// The parts of one source file that people read outside the code.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// String literals, with the line each starts on.
    pub(crate) literals: Vec<(usize, String)>,
    /// Doc comments, one entry per line.
    pub(crate) docs: Vec<(usize, String)>,
    /// Names that a `pub` item, field or variant declares.
    pub(crate) names: Vec<(usize, String)>,
}

/// Parses a file. `path` is only used in the error.
pub(crate) fn parse(path: &str, text: &str) -> Outcome<syn::File> {
    syn::parse_file(text)
        .map_err(|error| format!("{path}:{}: cannot be parsed: {error}", error.span().start().line))
}

/// Returns the texts of a file, without its tests.
pub(crate) fn texts(file: &syn::File) -> Texts {
    let mut texts = Texts::default();
    texts.visit_file(file);
    texts
}

/// Returns the comments of a file with their lines, those of tests too.
///
/// A comment is the rest of a line after `//` outside a literal.
pub(crate) fn comments(text: &str) -> Vec<(usize, String)> {
    let mut literals = Vec::new();
    if let Ok(tokens) = text.parse() {
        find_literals(tokens, &mut literals);
    }
    let mut comments = Vec::new();
    let mut start = 0;
    for (index, line) in text.split_inclusive('\n').enumerate() {
        let mut slashes = line.match_indices("//").map(|(at, _)| at);
        if let Some(at) = slashes.find(|at| !literals.iter().any(|literal| literal.contains(&(start + at)))) {
            comments.push((index + 1, line.get(at..).unwrap_or_default().trim_end().to_owned()));
        }
        start += line.len();
    }
    comments
}

/// Adds the byte ranges of the literals, without doc comments.
fn find_literals(tokens: TokenStream, found: &mut Vec<Range<usize>>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if !is_doc_comment(&group) => find_literals(group.stream(), found),
            TokenTree::Literal(literal) => found.push(literal.span().byte_range()),
            _ => {}
        }
    }
}

/// Returns the files that a file declares as modules for tests only.
pub(crate) fn test_files(path: &str, file: &syn::File) -> Vec<String> {
    let modules = file.items.iter().filter_map(|item| match item {
        Item::Mod(item) if item.content.is_none() && is_test(&item.attrs) => Some(item.ident.to_string()),
        _ => None,
    });
    modules.map(|name| format!("{}/{name}.rs", child_directory(path))).collect()
}

/// The directory of a file's child modules.
pub(crate) fn child_directory(path: &str) -> &str {
    let stem = path.trim_end_matches(".rs");
    let parent = ["lib", "main", "mod"].iter().find_map(|root| stem.strip_suffix(root)?.strip_suffix('/'));
    parent.unwrap_or(stem)
}

/// Returns whether an item is compiled for tests only.
pub(crate) fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => mentions_test(list.tokens.clone()),
        _ => false,
    })
}

/// `cfg(test)`, `cfg(all(test, …))`; not `cfg(not(test))`.
fn mentions_test(tokens: TokenStream) -> bool {
    let words: Vec<String> = tokens.into_iter().map(|token| token.to_string()).collect();
    words.iter().any(|word| word == "test" || (word.starts_with('(') && word.contains("test")))
        && !words.iter().any(|word| word == "not")
}

/// The attributes of an item, of any kind.
pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

impl Texts {
    fn declare(&mut self, visibility: &Visibility, name: &syn::Ident) {
        if !matches!(visibility, Visibility::Inherited) {
            self.names.push((name.span().start().line, name.to_string()));
        }
    }

    /// Adds a literal, line by line. `written` is how the source has it.
    fn literal(&mut self, first: usize, last: usize, written: &str, value: &str) {
        // Most long literals open with an escaped line end: their text starts on the next line.
        let first = if written.starts_with("\"\\\n") { first + 1 } else { first };
        let lines = value.lines().enumerate();
        self.literals.extend(lines.map(|(offset, line)| ((first + offset).min(last), line.to_owned())));
    }

    /// Adds the literals of a macro call or an attribute, which are bare lists of tokens.
    fn tokens(&mut self, tokens: TokenStream) {
        for token in tokens {
            match token {
                TokenTree::Group(group) if !is_doc_comment(&group) => self.tokens(group.stream()),
                TokenTree::Literal(literal) => {
                    let written = literal.to_string();
                    if let Ok(text) = syn::parse_str::<LitStr>(&written) {
                        let first = literal.span().start().line;
                        let last = literal.span().end().line;
                        self.literal(first, last, &written, &text.value());
                    }
                }
                _ => {}
            }
        }
    }
}

/// `[doc = "…"]`: what a doc comment inside a macro call is read as.
fn is_doc_comment(group: &Group) -> bool {
    let mut tokens = group.stream().into_iter();
    group.delimiter() == Delimiter::Bracket
        && matches!(tokens.next(), Some(TokenTree::Ident(name)) if name == "doc")
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        match item {
            Item::Const(item) => self.declare(&item.vis, &item.ident),
            Item::Enum(item) => {
                self.declare(&item.vis, &item.ident);
                for variant in &item.variants {
                    self.declare(&item.vis, &variant.ident);
                }
            }
            Item::Fn(item) => self.declare(&item.vis, &item.sig.ident),
            Item::Mod(item) => self.declare(&item.vis, &item.ident),
            Item::Static(item) => self.declare(&item.vis, &item.ident),
            Item::Struct(item) => self.declare(&item.vis, &item.ident),
            Item::Trait(item) => self.declare(&item.vis, &item.ident),
            Item::Type(item) => self.declare(&item.vis, &item.ident),
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            self.declare(&item.vis, &item.sig.ident);
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        if let Some(name) = &field.ident {
            self.declare(&field.vis, name);
        }
        visit::visit_field(self, field);
    }

    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        match &attribute.meta {
            Meta::NameValue(pair) if pair.path.is_ident("doc") => {
                if let syn::Expr::Lit(syn::ExprLit { lit: syn::Lit::Str(text), .. }) = &pair.value {
                    self.docs.push((attribute.span().start().line, text.value()));
                }
            }
            Meta::List(list) => self.tokens(list.tokens.clone()),
            _ => visit::visit_attribute(self, attribute),
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast LitStr) {
        let first = literal.span().start().line;
        let last = literal.span().end().line;
        let written = literal.token().to_string();
        self.literal(first, last, &written, &literal.value());
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts_of(source: &str) -> Texts {
        texts(&parse("a.rs", source).unwrap())
    }

    #[test]
    fn finds_literals_in_calls_and_in_macros() {
        let found = texts_of("fn f() {\n    g(\"one\");\n    format!(\"two {x}\");\n}\n");
        assert_eq!(found.literals, [(2, "one".to_owned()), (3, "two {x}".to_owned())]);
    }

    #[test]
    fn names_are_those_of_pub_items_fields_and_variants() {
        let found =
            texts_of("pub enum A { B }\npub(crate) fn c() {}\nfn d() {}\nstruct E { pub f: u8, g: u8 }");
        let names: Vec<&str> = found.names.iter().map(|(_, name)| name.as_str()).collect();
        assert_eq!(names, ["A", "B", "c", "f"]);
    }

    #[test]
    fn knows_the_files_of_test_modules() {
        let file = parse("a.rs", "#[cfg(test)]\nmod properties;\nmod b;\n").unwrap();
        assert_eq!(test_files("crates/a/src/lib.rs", &file), ["crates/a/src/properties.rs"]);
        assert_eq!(test_files("crates/a/src/b.rs", &file), ["crates/a/src/b/properties.rs"]);
    }

    #[test]
    fn leaves_tests_out() {
        let found =
            texts_of("#[cfg(test)]\nmod tests { pub fn a() { b(\"c\"); } }\n#[test]\nfn d() { e(\"f\"); }");
        assert!(found.literals.is_empty() && found.names.is_empty());
    }

    #[test]
    fn a_literal_over_several_lines_has_the_line_of_each() {
        let found = texts_of("fn f() {\n    g(\"\\\none\n two\");\n    h!(\"\\\n  three\");\n}\n");
        let lines: Vec<usize> = found.literals.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [3, 4, 6]);
    }

    #[test]
    fn doc_comments_in_macro_calls_are_not_literals() {
        assert!(texts_of("codes! {\n    /// One.\n    A\n}\n").literals.is_empty());
    }

    #[test]
    fn comments_are_found_outside_literals() {
        let source = "//! é\n/// Doc.\nfn f() {\n    g(\"é http://a\"); // after\n    r#\"\n// in\n\"#;\n}\n";
        let found = comments(source);
        let expected = [(1, "//! é"), (2, "/// Doc."), (4, "// after")];
        assert_eq!(found, expected.map(|(line, text)| (line, text.to_owned())));
    }

    #[test]
    fn doc_comments_are_not_literals() {
        let found = texts_of("/// One.\nfn f() {}\n");
        assert_eq!(found.docs, [(1, " One.".to_owned())]);
        assert!(found.literals.is_empty());
    }
}
