//! Circles between the modules of one crate that use each other, directly or through others. A module is a file or a
//! directory directly under `src/`, with everything below it.
//!
//! An edge is a path that starts at `crate`, `self`, `super` or a child module, in code that is not a test. A name that a
//! module re-exports counts as one of the file that declares it.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use syn::{
    Item, UseTree, Visibility,
    visit::{self, Visit},
};

use crate::{
    project::{Outcome, read, tracked},
    source::{self, attributes, is_test},
};

/// The path of a file's module, from the root of its crate: `["routes", "execute"]`.
type Module = Vec<String>;

/// The files of one crate.
#[derive(Default)]
struct Crate {
    files: BTreeMap<Module, Source>,
}

/// Returns the circles of a package, the largest first.
pub(super) fn circles(package: &str) -> Outcome<Vec<Vec<String>>> {
    let directory = if package == "cogn" { "cog" } else { package };
    let root = format!("crates/{directory}/src");
    let mut texts = Vec::new();
    for path in tracked(&root, ".rs")? {
        texts.push((path.trim_start_matches(&root).trim_start_matches('/').to_owned(), read(&path)?));
    }
    if texts.is_empty() {
        return Err(format!("{root} has no files of {package}"));
    }
    circles_in(&texts)
}

/// Returns the circles between files, given by their path under `src/` and their text.
fn circles_in(texts: &[(String, String)]) -> Outcome<Vec<Vec<String>>> {
    let mut files = BTreeMap::new();
    let mut test_files = Vec::new();
    for (path, text) in texts {
        let file = source::parse(path, text)?;
        test_files.extend(source::test_files(path, &file));
        files.insert(path.as_str(), file);
    }
    let mut all = Crate::default();
    for (path, file) in files {
        let is_test = test_files.iter().any(|test| test.trim_start_matches('/') == path);
        if !is_test && !path.ends_with("tests.rs") && !path.contains("tests/") && !path.starts_with("bin/") {
            all.files.insert(module_of(path), source_of(&file));
        }
    }
    Ok(all.circles())
}

/// The module of a file, from its path under `src/`.
fn module_of(path: &str) -> Module {
    let stem = path.trim_end_matches(".rs");
    let steps = stem.split('/').filter(|step| !matches!(*step, "lib" | "main" | "mod"));
    steps.map(str::to_owned).collect()
}

/// Everything that can be reached from `start`.
fn reach(edges: &BTreeMap<String, BTreeSet<String>>, start: &String) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut open = vec![start];
    while let Some(module) = open.pop() {
        for next in edges.get(module).into_iter().flatten() {
            if seen.insert(next.clone()) {
                open.push(next);
            }
        }
    }
    seen
}

impl Crate {
    fn circles(&self) -> Vec<Vec<String>> {
        let reached = self.reached();
        let mut circles: Vec<Vec<String>> = Vec::new();
        for (module, others) in &reached {
            let mut circle = others.clone();
            circle.retain(|other| reached.get(other).is_some_and(|back| back.contains(module)));
            let circle = Vec::from_iter(circle);
            if circle.len() > 1 && !circles.contains(&circle) {
                circles.push(circle);
            }
        }
        circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        circles
    }

    /// What each module uses, directly or through others.
    fn reached(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for file in self.files.keys() {
            if let Some(module) = file.first() {
                edges.entry(module.clone()).or_default().extend(self.uses(file));
            }
        }
        edges.keys().map(|module| (module.clone(), reach(&edges, module))).collect()
    }

    /// The modules that one file uses, without its own. The root of the crate only collects: it is part of no circle.
    fn uses(&self, file: &Module) -> BTreeSet<String> {
        let paths = self.files.get(file).map_or(&[][..], |source| &source.paths);
        let found = paths.iter().filter_map(|path| self.resolve(file, path, 0));
        found
            .filter_map(|target| target.into_iter().next())
            .filter(|module| file.first() != Some(module))
            .collect()
    }

    /// The file that declares what a path names.
    fn resolve(&self, from: &Module, path: &[String], depth: usize) -> Option<Module> {
        let (mut module, rest) = self.start(from, path)?;
        let mut rest = rest.iter();
        let mut name = rest.next();
        while let Some(step) = name {
            module.push(step.clone());
            if !self.files.contains_key(&module) {
                module.pop();
                break;
            }
            name = rest.next();
        }
        let exported = name.and_then(|name| self.files.get(&module)?.exports.get(name));
        match exported {
            Some(target) if depth < 8 => self.resolve(&module, target, depth + 1),
            _ => Some(module),
        }
    }

    /// Where a path starts, and what follows; none for the paths of other crates.
    fn start<'p>(&self, from: &Module, path: &'p [String]) -> Option<(Module, &'p [String])> {
        let (first, rest) = path.split_first()?;
        let mut module = from.clone();
        match first.as_str() {
            "crate" => Some((Module::new(), rest)),
            "self" => Some((module, rest)),
            "super" => {
                module.pop();
                match rest.first().map(String::as_str) {
                    Some("super") => self.start(&module, rest),
                    _ => Some((module, rest)),
                }
            }
            child => {
                module.push(child.to_owned());
                self.files.contains_key(&module).then(|| (from.clone(), path))
            }
        }
    }
}

// The paths that a source file names, and the names that it re-exports.

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
fn source_of(file: &syn::File) -> Source {
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

    fn found(files: &[(&str, &str)]) -> Vec<Vec<String>> {
        let texts: Vec<_> =
            files.iter().map(|(path, text)| ((*path).to_owned(), (*text).to_owned())).collect();
        circles_in(&texts).unwrap()
    }

    #[test]
    fn finds_a_circle_of_two() {
        let circles = found(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "use crate::b::B;"),
            ("b.rs", "fn f() -> super::a::A { crate::a::g() }"),
        ]);
        assert_eq!(circles, [["a", "b"]]);
    }

    #[test]
    fn finds_a_circle_over_a_third_module() {
        let circles = found(&[
            ("a.rs", "use crate::{b::{self, B}, z};"),
            ("b.rs", "use super::c;"),
            ("c.rs", "fn f() { vec![crate::a::X] }"),
            ("z.rs", ""),
        ]);
        assert_eq!(circles, [["a", "b", "c"]]);
    }

    #[test]
    fn one_way_is_not_a_circle() {
        assert!(found(&[("a.rs", "use crate::b::B; use std::fs;"), ("b.rs", "use other::a;")]).is_empty());
    }

    #[test]
    fn files_below_one_module_may_use_each_other() {
        let circles = found(&[
            ("a.rs", "mod b; mod c; fn f() { b::g() }"),
            ("a/b.rs", "use super::c::C;"),
            ("a/c.rs", "use crate::a::f;"),
        ]);
        assert!(circles.is_empty());
    }

    #[test]
    fn a_file_below_a_module_counts_for_it() {
        let circles = found(&[
            ("a.rs", "mod b;"),
            ("a/b.rs", "use crate::c::C;"),
            ("c.rs", "mod d;"),
            ("c/d.rs", "use crate::a::A;"),
        ]);
        assert_eq!(circles, [["a", "c"]]);
    }

    #[test]
    fn a_visibility_is_not_a_use() {
        let circles = found(&[
            ("a.rs", "mod b; fn f() { b::g(); crate::c::h() }"),
            ("a/b.rs", ""),
            ("c.rs", "pub(in crate::a) fn h() {}"),
        ]);
        assert!(circles.is_empty());
    }

    #[test]
    fn a_re_export_counts_for_the_file_that_declares_it() {
        let circles = found(&[
            ("lib.rs", "mod a; mod b; pub use a::A;"),
            ("a.rs", "mod inner; pub(crate) use self::inner::A;"),
            ("a/inner.rs", "use crate::b::B;"),
            ("b.rs", "use crate::A;"),
        ]);
        assert_eq!(circles, [["a", "b"]]);
    }

    #[test]
    fn tests_do_not_count() {
        let circles = found(&[
            ("a.rs", "use crate::b::B;\n#[cfg(test)]\nmod tests { use crate::c::C; }"),
            ("b.rs", "#[test]\nfn f() { crate::a::g() }"),
            ("c.rs", "use crate::a::A;"),
        ]);
        assert!(circles.is_empty(), "{circles:?}");
    }

    fn paths(text: &str) -> Vec<String> {
        let source = source_of(&syn::parse_file(text).unwrap());
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
        let source = source_of(&syn::parse_file("pub use self::a::A as B;").unwrap());
        assert!(source.paths.is_empty());
        assert_eq!(source.exports.get("B"), Some(&["self", "a", "A"].map(str::to_owned).to_vec()));
    }
}
