//! The arrows between the modules of `idem-core`, and between the crates, as the architecture has them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::visit::Visit;
use syn::{UseTree, Visibility};

/// Each module and all that stands above it and that it uses. A module may name only modules above it, so there is no
/// cycle; and each arrow is there because it is used.
#[rustfmt::skip] // a table: one row a module
const ARROWS: [(&str, &[&str]); 26] = [
    ("canonical", &[]),
    ("exact", &[]),
    ("key", &[]),
    ("clock", &[]),
    ("hash", &["canonical"]),
    ("contract", &["canonical", "hash"]),
    ("command", &["canonical", "contract", "hash"]),
    ("snapshot", &["command", "contract"]),
    ("calls", &["key"]),
    ("record", &["key", "hash", "calls"]),
    ("rules", &["record"]),
    ("decide", &["record", "hash", "calls", "rules"]),
    ("store", &["record", "key", "hash", "calls"]),
    ("transition", &["record", "calls", "store"]),
    ("memory", &["key", "record", "clock", "store", "transition"]),
    ("reply", &["record", "rules", "decide"]),
    ("events", &["record", "calls", "store"]),
    ("heartbeat", &["record", "rules", "store", "events"]),
    ("reconciler", &["record", "calls", "rules", "decide", "store", "reply"]),
    ("engine", &["key", "clock", "hash", "contract", "command", "calls", "record", "rules", "decide", "store",
        "reply", "heartbeat", "events", "reconciler"]),
    ("provider", &["reply"]),
    ("consumer", &["engine", "store"]),
    ("recovery", &["engine", "decide", "store", "transition", "events"]),
    ("operator", &["engine", "key", "record", "calls", "rules", "decide", "store", "transition", "reply", "events"]),
    ("retention", &["engine", "store", "events"]),
    ("worker", &["engine", "events", "retention"]),
];

/// Modules that stand beside the path and may look at all of it.
const BESIDE: [&str; 3] = ["lib", "derive", "testing"];

#[test]
fn modules_use_only_what_is_below_them() {
    let sources = rust_files(&root().join("idem-core/src"));
    let mut wrong = Vec::new();
    for file in &sources {
        wrong.extend(upward(&module_path(file).join("/"), &fs::read_to_string(file).unwrap()));
    }
    assert!(wrong.is_empty(), "imports against the arrows:\n{}", wrong.join("\n"));
    assert!(sources.len() > 15, "only {} files were read", sources.len());
}

#[test]
fn a_planted_upward_import_is_found() {
    assert_eq!(upward("calls", "use crate::record::Fence;"), ["calls -> record"]);
    assert_eq!(upward("hash", "mod a { fn f() { use crate::{canonical::Sink, engine}; } }"), ["hash -> engine"]);
    assert_eq!(upward("key", "pub(crate) fn f(x: crate::store::Seen) {}"), ["key -> store"]);
    assert_eq!(upward("unheard_of", ""), ["unheard_of is in no row of the table"]);
    assert!(upward("record", "use crate::key::Scope; use std::fmt;").is_empty());
    // Through the parents, from a file of its own and from modules inside it.
    assert_eq!(upward("hash/state", "use super::super::record::Fence; use super::CommandHash;"), ["hash -> record"]);
    assert_eq!(upward("hash", "use super::{record, canonical};"), ["hash -> record"]);
    assert_eq!(
        upward("hash", "mod a { mod b { fn f(x: super::super::super::record::Fence) {} } }"),
        ["hash -> record"]
    );
    assert!(upward("hash", "mod a { use super::super::canonical; use super::record; }").is_empty());
    assert_eq!(upward("hash", "mod a { use super::{super::key, record}; }"), ["hash -> key"]);
    // In macros, by their callers and by what they write.
    assert_eq!(upward("key", "macro_rules! m { () => { $crate::store::Seen } }"), ["key -> store"]);
    assert_eq!(upward("key", "fn f() { assert!(x as crate::store::Seen); }"), ["key -> store"]);
}

#[test]
fn every_arrow_of_the_table_is_used() {
    let mut used = BTreeSet::new();
    for file in rust_files(&root().join("idem-core/src")) {
        let path = module_path(&file);
        let names = names_of(&path, &fs::read_to_string(&file).unwrap());
        used.extend(names.into_iter().map(|name| (path[0].clone(), name)));
    }
    let arrows =
        ARROWS.iter().flat_map(|(module, uses)| uses.iter().map(|name| (module.to_string(), name.to_string())));
    let unused: Vec<_> = arrows.filter(|arrow| !used.contains(arrow)).collect();
    assert!(unused.is_empty(), "arrows that nothing uses: {unused:?}");
}

#[test]
fn the_table_has_no_cycle() {
    for (row, (module, uses)) in ARROWS.iter().enumerate() {
        for used in *uses {
            assert!(
                ARROWS[..row].iter().any(|(above, _)| above == used),
                "{module} names {used}, which is not above it"
            );
        }
    }
}

#[test]
fn crates_depend_as_the_architecture_says() {
    let allowed: [(&str, &[&str]); 5] = [
        ("idem-derive", &[]),
        ("idem-core", &["idem-derive"]),
        ("idem-axum", &["idem-core"]),
        ("idem-sqlx", &["idem-core"]),
        ("idem-admin", &["idem-core", "idem-sqlx"]),
    ];
    for (name, allowed) in allowed {
        let manifest = fs::read_to_string(root().join(name).join("Cargo.toml")).unwrap();
        let dependencies = manifest.split("\n[dependencies]\n").nth(1).unwrap().split("\n[").next().unwrap();
        let used: Vec<_> = dependencies
            .lines()
            .filter_map(|line| line.split(['.', ' ', '=']).next())
            .filter(|name| name.starts_with("idem-"))
            .collect();
        assert_eq!(used, allowed, "the dependencies of {name}");
    }
}

/// What a source names of `crate::` that its module must not. `engine/claim` is a file of the module `engine`.
fn upward(path: &str, source: &str) -> Vec<String> {
    let path: Vec<String> = path.split('/').map(str::to_owned).collect();
    let module = path[0].as_str();
    if BESIDE.contains(&module) {
        return Vec::new();
    }
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == module) else {
        return vec![format!("{module} is in no row of the table")];
    };
    let names = names_of(&path, source);
    // `__private` is the crate's own list of what its macros write.
    let is_allowed = |name: &String| name == module || name == "__private" || allowed.contains(&name.as_str());
    let upward = names.into_iter().filter(|name| !is_allowed(name));
    upward.map(|name| format!("{module} -> {name}")).collect()
}

fn names_of(path: &[String], source: &str) -> BTreeSet<String> {
    let mut names = Names { depth: path.len(), found: BTreeSet::new() };
    names.visit_file(&syn::parse_file(source).unwrap());
    names.found
}

/// The modules of the crate that a source names, in `use` lines, in other paths and in macros.
struct Names {
    /// How many modules deep the source is at this place.
    depth: usize,
    found: BTreeSet<String>,
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.used(&item.tree, Some(self.depth));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<_> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.path(&segments);
        syn::visit::visit_path(self, path);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.depth += 1;
        syn::visit::visit_item_mod(self, item);
        self.depth -= 1;
    }

    fn visit_macro(&mut self, of: &'ast syn::Macro) {
        self.visit_path(&of.path);
        self.tokens(of.tokens.clone());
    }

    // `pub(in crate::a)` names a module without using it.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

impl Names {
    /// Goes down a `use`. `above` is how many modules are left above the place that the path has come to; none once it
    /// has gone into one that is not known here.
    fn used(&mut self, tree: &UseTree, above: Option<usize>) {
        let mut step = |ident: &syn::Ident| -> Option<usize> {
            let above = above?;
            match ident.to_string().as_str() {
                "crate" => Some(0),
                "self" => Some(above),
                "super" => above.checked_sub(1),
                name if above == 0 => {
                    self.found.insert(name.to_owned());
                    None
                }
                _ => None,
            }
        };
        match tree {
            UseTree::Path(path) => {
                let above = step(&path.ident);
                self.used(&path.tree, above);
            }
            UseTree::Name(name) => drop(step(&name.ident)),
            UseTree::Rename(name) => drop(step(&name.ident)),
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.used(tree, above)),
            UseTree::Glob(_) if above == Some(0) => drop(self.found.insert("*".to_owned())),
            UseTree::Glob(_) => {}
        }
    }

    fn path(&mut self, segments: &[String]) {
        let supers = segments.iter().take_while(|segment| *segment == "super").count();
        let inside = match segments.first().map(String::as_str) {
            Some("crate") => segments.get(1),
            Some("super") if supers >= self.depth => segments.get(supers),
            _ => None,
        };
        self.found.extend(inside.cloned());
    }

    /// Reads the paths of a macro's tokens: `crate::a` and, as a macro writes it, `$crate::a`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut segments = Vec::new();
        let mut goes_on = false;
        for token in tokens {
            let is_colon = matches!(&token, TokenTree::Punct(punct) if punct.as_char() == ':');
            if !goes_on && !is_colon {
                self.path(&std::mem::take(&mut segments));
            }
            goes_on = is_colon;
            match token {
                TokenTree::Group(group) => self.tokens(group.stream()),
                TokenTree::Ident(ident) => segments.push(ident.to_string()),
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        self.path(&segments);
    }
}

/// `engine/claim.rs` is the module `claim` of `engine`.
fn module_path(file: &Path) -> Vec<String> {
    let inside = file.strip_prefix(root().join("idem-core/src")).unwrap().with_extension("");
    inside.components().map(|part| part.as_os_str().to_str().unwrap().to_owned()).collect()
}

fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => files.extend(rust_files(&path)),
            false if path.extension().is_some_and(|ending| ending == "rs") => files.push(path),
            false => {}
        }
    }
    files
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
