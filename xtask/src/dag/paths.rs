//! The paths that a source file names, and the names that it re-exports.

use std::collections::BTreeMap;

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

use crate::source::{attributes, is_test};

/// What one file says about other modules.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Every path that production code names, as it is written.
    pub(super) paths: Vec<Vec<String>>,
    /// Names that a visible `use` passes on, with the path that each stands for.
    pub(super) exports: BTreeMap<String, Vec<String>>,
    /// How deep the walk is inside modules that the file declares inline.
    depth: usize,
}

/// Reads a file.
pub(super) fn read(file: &syn::File) -> Source {
    let mut source = Source::default();
    source.visit_file(file);
    source
}

impl Source {
    fn add(&mut self, mut path: Vec<String>) {
        // `super` inside an inline module is this file, or the module around it.
        let levels = path.iter().take_while(|step| *step == "super").count();
        let inside = levels.min(self.depth);
        if inside > 0 {
            path.drain(..inside);
            if levels == inside {
                path.insert(0, "self".to_owned());
            }
        }
        self.paths.push(path);
    }

    /// The leaves of a `use`: each name with its path.
    fn leaves(prefix: &[String], tree: &UseTree, leaves: &mut Vec<(String, Vec<String>)>) {
        let with = |name: String| [prefix, &[name]].concat();
        match tree {
            UseTree::Path(path) => Self::leaves(&with(path.ident.to_string()), &path.tree, leaves),
            UseTree::Name(name) if name.ident == "self" => {
                leaves.push((prefix.last().cloned().unwrap_or_default(), prefix.to_vec()));
            }
            UseTree::Name(name) => leaves.push((name.ident.to_string(), with(name.ident.to_string()))),
            UseTree::Rename(name) => leaves.push((name.rename.to_string(), with(name.ident.to_string()))),
            UseTree::Glob(_) => leaves.push(("*".to_owned(), prefix.to_vec())),
            UseTree::Group(group) => group.items.iter().for_each(|tree| Self::leaves(prefix, tree, leaves)),
        }
    }

    /// The paths in the tokens of a macro call.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) if colons == 2 => path.push(name.to_string()),
                TokenTree::Punct(mark) if mark.as_char() == ':' && !path.is_empty() && colons < 2 => {
                    colons += 1;
                    continue;
                }
                other => {
                    self.flush(&mut path);
                    match other {
                        TokenTree::Ident(name) => path.push(name.to_string()),
                        TokenTree::Group(group) => self.tokens(group.stream()),
                        _ => {}
                    }
                }
            }
            colons = 0;
        }
        self.flush(&mut path);
    }

    fn flush(&mut self, path: &mut Vec<String>) {
        let path = std::mem::take(path);
        if path.len() > 1 {
            self.add(path);
        }
    }
}

impl<'ast> Visit<'ast> for Source {
    fn visit_item(&mut self, item: &'ast Item) {
        if is_test(attributes(item)) {
            return;
        }
        match item {
            Item::Use(item) => {
                let mut leaves = Vec::new();
                Self::leaves(&[], &item.tree, &mut leaves);
                for (name, path) in leaves {
                    if matches!(item.vis, Visibility::Inherited) || name == "*" {
                        self.add(path);
                    } else {
                        self.exports.insert(name, path);
                    }
                }
            }
            Item::Mod(module) if module.content.is_some() => {
                self.depth += 1;
                visit::visit_item(self, item);
                self.depth -= 1;
            }
            _ => visit::visit_item(self, item),
        }
    }

    /// `pub(in crate::a)` limits the visibility of a name, and is not a use.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if !is_test(&item.attrs) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.add(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(text: &str) -> Vec<String> {
        let source = read(&syn::parse_file(text).unwrap());
        source.paths.iter().map(|path| path.join("::")).collect()
    }

    #[test]
    fn finds_paths_of_uses_types_calls_and_macros() {
        let text =
            "use crate::{a::A, b::{self, c::*}};\nfn f(x: crate::d::D) { super::e(); m!(crate::g::h(1)); }";
        assert_eq!(
            paths(text),
            ["crate::a::A", "crate::b", "crate::b::c", "crate::d::D", "super::e", "crate::g::h"]
        );
    }

    #[test]
    fn super_in_an_inline_module_is_the_file() {
        assert_eq!(paths("mod inner { use super::x; use super::super::y; }"), ["self::x", "super::y"]);
    }

    #[test]
    fn a_visible_use_is_an_export() {
        let source = read(&syn::parse_file("pub use self::a::A as B;").unwrap());
        assert!(source.paths.is_empty());
        assert_eq!(source.exports.get("B"), Some(&["self", "a", "A"].map(str::to_owned).to_vec()));
    }
}
