//! Every text that the derive, and the traits that it leans on, can answer a mistake with is shown by a case of `tests/ui`.

use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Expr, ExprLit, ItemMod, LitStr, Macro};

#[test]
fn every_diagnostic_has_a_case() {
    let shown: String = files("tests/ui", "stderr").iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let mut texts = Vec::new();
    let is_test = |path: &PathBuf| path.to_string_lossy().contains("/src/tests");
    for file in files("idem-derive/src", "rs").iter().filter(|path| !is_test(path)) {
        texts.extend(texts_of(&fs::read_to_string(file).unwrap(), Texts::messages));
    }
    for file in files("idem-core/src", "rs") {
        texts.extend(texts_of(&fs::read_to_string(file).unwrap(), Texts::explanations));
    }
    let without: Vec<_> = texts.iter().filter(|text| !is_shown(text, &shown)).collect();
    assert!(without.is_empty(), "no case of tests/ui shows:\n{without:#?}");
    assert!(texts.len() > 60, "only {} texts were found", texts.len());
}

/// Where the derive passes on what syn says, in syn's words: each place with what shows that the text stands where the
/// user has to look, or why no text comes from there.
const SYNS_WORDS: [(&str, usize, &str); 2] = [
    // A value that is no expression, and not one that is cut off: `attributes/value_that_is_no_expression.rs`. The other
    // is for what is left behind the last word, which is read up to its end.
    ("attr/item.rs", 2, "expected an expression"),
    // An item that is none even without its attributes: the compiler has refused it before it asks the derive.
    ("lib.rs", 1, ""),
];

#[test]
fn what_syn_says_is_passed_on_where_it_is_known_to_help() {
    let shown: String = files("tests/ui", "stderr").iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    for file in files("idem-derive/src", "rs") {
        let source = fs::read_to_string(&file).unwrap();
        let name = file.to_string_lossy().split_once("idem-derive/src/").unwrap().1.to_owned();
        let passes = source.matches("ctxt.syn(").count() + source.matches("error.into_compile_error()").count();
        let known = SYNS_WORDS.iter().find(|(known, ..)| *known == name);
        assert_eq!(passes, known.map_or(0, |(_, count, _)| *count), "{name} passes on texts that are not its own");
        assert!(known.is_none_or(|(_, _, text)| shown.contains(text)), "no case shows what {name} passes on");
    }
    // At the end of what it reads syn has no place to point at.
    assert!(!shown.contains("unexpected end of input"));
}

#[test]
fn there_are_cases_enough_each_with_its_text() {
    let cases = files("tests/ui", "rs");
    let cases: Vec<_> = cases.iter().filter(|path| !path.ends_with("ui.rs")).collect();
    assert!(cases.len() >= 40, "{}", cases.len());
    for case in cases {
        let text = fs::read_to_string(case.with_extension("stderr"))
            .unwrap_or_else(|_| panic!("{} has no text", case.display()));
        // Every case is wrong in the way its name says, and never because the derive gave up.
        assert!(!text.contains("panicked at") && !text.contains("macro panicked"), "{}", case.display());
        // What is quoted of the standard library depends on whether its source is installed.
        assert!(!text.contains("$RUST"), "{} points into the standard library", case.display());
    }
}

#[test]
fn a_text_without_a_case_is_found() {
    let source = r#"fn f(ctxt: &Ctxt) { ctxt.error(span, format!("`{word}` is not a thing that {} does", 1)); }"#;
    let texts = texts_of(source, Texts::messages);
    assert_eq!(texts, ["`{word}` is not a thing that {} does"]);
    assert!(!is_shown(&texts[0], "error: something else"));
    assert!(is_shown(&texts[0], "error: `x` is not a thing that idem does"));
    assert!(!is_shown(&texts[0], "error: `x` is not a thing that"));
    let source =
        r#"#[diagnostic::on_unimplemented(message = "no {Self} here", note = "as \"said\" before")] trait T {}"#;
    assert_eq!(texts_of(source, Texts::explanations), ["no {Self} here", "as \"said\" before"]);
}

/// Whether the text's fixed pieces stand on one line, in order.
fn is_shown(text: &str, shown: &str) -> bool {
    let text = text.replace("{{", "\u{1}").replace("}}", "\u{2}");
    let pieces: Vec<_> = text
        .split('{')
        .enumerate()
        .map(|(at, piece)| if at == 0 { piece } else { piece.split_once('}').map_or("", |(_, rest)| rest) })
        .map(|piece| piece.replace('\u{1}', "{").replace('\u{2}', "}"))
        .collect();
    shown.lines().any(|line| {
        let mut rest = Some(line);
        for piece in &pieces {
            rest = rest.and_then(|rest| rest.split_once(piece.as_str())).map(|(_, rest)| rest);
        }
        rest.is_some()
    })
}

fn texts_of(source: &str, of: fn(&mut Texts, &syn::File)) -> Vec<String> {
    let mut texts = Texts::default();
    of(&mut texts, &syn::parse_file(source).unwrap());
    texts.found
}

#[derive(Default)]
struct Texts {
    found: Vec<String>,
    explanations_only: bool,
}

impl Texts {
    /// Every string that reads as a sentence: what the derive says, and nothing else of it has blanks in it.
    fn messages(&mut self, file: &syn::File) {
        self.visit_file(file);
    }

    /// What `on_unimplemented` says, and the assertions about versions.
    fn explanations(&mut self, file: &syn::File) {
        self.explanations_only = true;
        self.visit_file(file);
    }

    fn strings(&mut self, tokens: proc_macro2::TokenStream) {
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Group(group) => self.strings(group.stream()),
                token => {
                    if let Ok(text) = syn::parse2::<LitStr>(token.into()) {
                        self.add(&text);
                    }
                }
            }
        }
    }

    fn add(&mut self, text: &LitStr) {
        let text = text.value();
        if text.split_whitespace().count() > 2 {
            self.found.push(text);
        }
    }
}

impl<'ast> Visit<'ast> for Texts {
    fn visit_attribute(&mut self, attribute: &'ast Attribute) {
        let is_explanation = attribute.path().segments.last().is_some_and(|last| last.ident == "on_unimplemented");
        if is_explanation && let Ok(list) = attribute.meta.require_list() {
            self.strings(list.tokens.clone());
        }
    }

    fn visit_expr(&mut self, expr: &'ast Expr) {
        if let Expr::Lit(ExprLit { lit: syn::Lit::Str(text), .. }) = expr
            && !self.explanations_only
        {
            self.add(text);
        }
        visit::visit_expr(self, expr);
    }

    fn visit_macro(&mut self, of: &'ast Macro) {
        let name = of.path.segments.last().map(|last| last.ident.to_string()).unwrap_or_default();
        if !self.explanations_only && name == "format" {
            self.strings(of.tokens.clone());
        }
    }

    // The const assertions about versions are compile errors too.
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if self.explanations_only && item.sig.constness.is_some() {
            for statement in &item.block.stmts {
                if let syn::Stmt::Macro(statement) = statement {
                    self.strings(statement.mac.tokens.clone());
                }
            }
        }
        visit::visit_item_fn(self, item);
    }

    fn visit_item_mod(&mut self, item: &'ast ItemMod) {
        if item.ident != "tests" {
            visit::visit_item_mod(self, item);
        }
    }
}

pub(super) fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut found = Vec::new();
    // Of the root itself only what lies in it: below it are the builds.
    let goes_down = folder != ".";
    let mut folders = vec![root.join(folder)];
    while let Some(folder) = folders.pop() {
        for path in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if path.is_dir() && goes_down {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == ending) {
                found.push(path);
            }
        }
    }
    found
}
