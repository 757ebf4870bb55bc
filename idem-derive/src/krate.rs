//! Where idem-core is: under its own name, unless the user's manifest gives it another.
//!
//! Reads as much TOML as dependencies are written in, rather than bringing a parser for all of it into every build.
//! What it does not understand leaves the name as it is, and `#[idem(crate = …)]` always decides.

use std::sync::OnceLock;
use std::{env, fs, path};

use proc_macro2::{Ident, Span, TokenStream};
use quote::quote;
use syn::Path;

/// The path of idem-core.
pub(crate) fn path_of_core() -> TokenStream {
    static NAME: OnceLock<Option<String>> = OnceLock::new();
    let name = NAME.get_or_init(from_manifest).as_deref().unwrap_or(OWN_NAME);
    // A name that is no path was not understood.
    let path = syn::parse_str(name).unwrap_or_else(|_| Path::from(Ident::new(OWN_NAME, Span::call_site())));
    quote!(::#path)
}

fn from_manifest() -> Option<String> {
    let folder = env::var_os("CARGO_MANIFEST_DIR")?;
    let read = |folder: &path::Path| fs::read_to_string(folder.join("Cargo.toml")).ok();
    let manifest = read(folder.as_ref())?;
    let workspace = path::Path::new(&folder).ancestors().filter_map(read).find(|text| text.contains("[workspace"));
    renamed(&manifest, workspace.as_deref().unwrap_or_default())
}

/// The path that a manifest gives to idem-core, if it is not idem-core's own name. idem-axum brings idem-core along.
pub(crate) fn renamed(manifest: &str, workspace: &str) -> Option<String> {
    let (manifest, workspace) = (an_entry_a_line(manifest), an_entry_a_line(workspace));
    let own: Vec<_> = dependencies(&manifest, |table| !table.starts_with("workspace.")).collect();
    let shared: Vec<_> = dependencies(&workspace, |table| table.starts_with("workspace.")).collect();
    let package = |dependency: &Dependency<'_>| {
        let inherited = shared.iter().find(|shared| shared.name == dependency.name).and_then(|shared| shared.package);
        dependency.package.or(inherited).unwrap_or(dependency.name).to_owned()
    };
    let name_of = |wanted: &str| own.iter().find(|dependency| package(dependency) == wanted).map(|found| found.name);
    let path = match name_of("idem-core") {
        Some(name) => name.replace('-', "_"),
        None => format!("{}::idem_core", name_of("idem-axum")?.replace('-', "_")),
    };
    (path != OWN_NAME).then_some(path)
}

/// The text with no comment, and with each value on one line, however its brackets were spread.
fn an_entry_a_line(manifest: &str) -> String {
    let mut text = String::with_capacity(manifest.len());
    let (mut open, mut quote, mut is_comment) = (0_u32, None, false);
    for character in manifest.chars() {
        match (character, quote) {
            ('\n', _) => {
                (quote, is_comment) = (None, false);
                text.push(if open == 0 { '\n' } else { ' ' });
                continue;
            }
            _ if is_comment => continue,
            ('#', None) => {
                is_comment = true;
                continue;
            }
            ('"' | '\'', None) => quote = Some(character),
            (_, Some(opened)) if opened == character => quote = None,
            ('[' | '{', None) => open += 1,
            (']' | '}', None) => open = open.saturating_sub(1),
            _ => {}
        }
        text.push(character);
    }
    text
}

struct Dependency<'t> {
    name: &'t str,
    package: Option<&'t str>,
}

/// The dependencies of the tables that are asked for.
fn dependencies(manifest: &str, wanted: fn(&str) -> bool) -> impl Iterator<Item = Dependency<'_>> {
    let mut table = "";
    manifest.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some(header) = line.strip_prefix('[') {
            table = header.split(']').next().unwrap_or_default();
        }
        if !wanted(table) {
            return None;
        }
        let (kind, name) = table.rsplit_once("dependencies")?;
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if let Some(name) = name.strip_prefix('.') {
            // `[dependencies.name]`: the header alone names it, and `package` says what it is.
            let is_package = key.trim() == "package";
            let name = bare(name);
            return (line.starts_with('[') || is_package).then(|| Dependency { name, package: quoted(value) });
        }
        let is_entry = name.is_empty() && !line.starts_with(['[', '#']) && !value.is_empty() && !kind.ends_with('_');
        if let Some(name) = key.trim().strip_suffix(".package") {
            return is_entry.then(|| Dependency { name: bare(name), package: quoted(value) });
        }
        let name = bare(key.trim().trim_end_matches(".workspace"));
        let package = value.split_once("package").and_then(|(_, rest)| quoted(rest.trim_start().strip_prefix('=')?));
        is_entry.then_some(Dependency { name, package })
    })
}

/// A key without its quotes.
fn bare(key: &str) -> &str {
    key.trim_matches(['"', '\''])
}

/// The first string of a value.
fn quoted(value: &str) -> Option<&str> {
    value.split(['"', '\'']).nth(1)
}

const OWN_NAME: &str = "idem_core";
