//! The arrows between the modules of `idem-core`, and between the crates, as the architecture has them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;
use syn::{UseTree, Visibility};

/// Each module and all that stands above it and that it may use. A module may name only modules above it, so there is
/// no cycle.
#[rustfmt::skip] // a table: one row a module
const ARROWS: [(&str, &[&str]); 26] = [
    ("canonical", &[]),
    ("exact", &[]),
    ("key", &[]),
    ("clock", &[]),
    ("hash", &["canonical"]),
    ("contract", &["canonical", "hash"]),
    ("command", &["canonical", "contract", "hash"]),
    ("snapshot", &["canonical", "command", "contract", "hash"]),
    ("calls", &["key"]),
    ("record", &["key", "hash", "calls"]),
    ("rules", &["record"]),
    ("decide", &["record", "hash", "calls", "rules"]),
    ("store", &["record", "key", "hash", "calls", "contract"]),
    ("transition", &["record", "calls", "store"]),
    ("memory", &["key", "record", "clock", "store", "transition"]),
    ("reply", &["record", "decide"]),
    ("heartbeat", &["record", "rules", "store"]),
    ("events", &["record", "store"]),
    ("reconciler", &["record", "calls", "rules", "decide", "store", "reply"]),
    ("engine", &["key", "clock", "hash", "contract", "command", "calls", "record", "rules", "decide", "store",
        "transition", "reply", "heartbeat", "events", "reconciler"]),
    ("provider", &["reply"]),
    ("consumer", &["engine", "store"]),
    ("recovery", &["engine", "record", "calls", "rules", "decide", "store", "events", "reconciler"]),
    ("operator", &["engine", "key", "record", "calls", "rules", "store", "reply", "events"]),
    ("retention", &["engine", "store", "events"]),
    ("worker", &["engine", "events", "recovery", "retention"]),
];

/// Modules that stand beside the path and may look at all of it.
const BESIDE: [&str; 3] = ["lib", "derive", "testing"];

#[test]
fn modules_use_only_what_is_below_them() {
    let sources = rust_files(&root().join("idem-core/src"));
    let mut wrong = Vec::new();
    for file in &sources {
        wrong.extend(upward(&module_of(file), &fs::read_to_string(file).unwrap()));
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
    let allowed: [(&str, &[&str]); 4] = [
        ("idem-derive", &[]),
        ("idem-core", &["idem-derive"]),
        ("idem-axum", &["idem-core"]),
        ("idem-sqlx", &["idem-core"]),
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

/// What a source of `module` names of `crate::` that it must not.
fn upward(module: &str, source: &str) -> Vec<String> {
    if BESIDE.contains(&module) {
        return Vec::new();
    }
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == module) else {
        return vec![format!("{module} is in no row of the table")];
    };
    let mut names = Names::default();
    names.visit_file(&syn::parse_file(source).unwrap());
    let upward = names.0.into_iter().filter(|name| name != module && !allowed.contains(&name.as_str()));
    upward.map(|name| format!("{module} -> {name}")).collect()
}

/// The second segments of all paths that begin with `crate`, in `use` lines and elsewhere.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl<'ast> Visit<'ast> for Names {
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if let UseTree::Path(path) = &item.tree
            && path.ident == "crate"
        {
            self.first_of(&path.tree);
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.first().is_some_and(|segment| segment.ident == "crate")
            && let Some(second) = path.segments.iter().nth(1)
        {
            self.0.insert(second.ident.to_string());
        }
        syn::visit::visit_path(self, path);
    }

    // `pub(in crate::a)` names a module without using it.
    fn visit_visibility(&mut self, _: &'ast Visibility) {}
}

impl Names {
    fn first_of(&mut self, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                self.0.insert(path.ident.to_string());
            }
            UseTree::Name(name) => {
                self.0.insert(name.ident.to_string());
            }
            UseTree::Rename(name) => {
                self.0.insert(name.ident.to_string());
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.first_of(tree)),
            UseTree::Glob(_) => {
                self.0.insert("*".to_owned());
            }
        }
    }
}

/// `engine/claim.rs` and `engine.rs` are both the module `engine`.
fn module_of(file: &Path) -> String {
    let inside = file.strip_prefix(root().join("idem-core/src")).unwrap();
    let first = inside.components().next().unwrap().as_os_str().to_str().unwrap();
    first.trim_end_matches(".rs").to_owned()
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
